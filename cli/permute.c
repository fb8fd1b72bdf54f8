/* SPDX-License-Identifier: Apache-2.0
 * `lacuna permute`: searches a permutation, or applies or inverts a saved one. */
#include "base/error.h"
#include "pipeline.h"

static lac_status search_or_apply_orders(const arguments *args, const lac_options *options,
                                         lac_model *model, lac_report **report, lac_error *err) {
  if (!args->apply && !args->invert) return lac_permute(model, options, report, err);
  bool invert = args->invert != NULL;
  return lac_permutation_apply(model, invert ? args->invert : args->apply, invert, options, report,
                               err);
}

exit_code verb_permute(const arguments *args, lac_error *err) {
  if (args->apply && args->invert) {
    return exit_code_of_status(
        laci_fail(err, LAC_BAD_ARGUMENT, "--apply and --invert: only one of them can be done"));
  }
  return pipeline_run_verb(args, search_or_apply_orders, err);
}
