/* SPDX-License-Identifier: Apache-2.0
 * `lacuna prune`: permute, prune, verify, save. */
#include "pipeline.h"

static lac_status prune(const arguments *args, const lac_options *options, lac_model *model,
                        lac_report **report, lac_error *err) {
  (void)args;
  return lac_prune(model, options, report, err);
}

exit_code verb_prune(const arguments *args, lac_error *err) {
  return pipeline_run(args, prune, err);
}
