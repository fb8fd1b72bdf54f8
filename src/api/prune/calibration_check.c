/* SPDX-License-Identifier: Apache-2.0
 * Checks the options of calibration, and fills in defaults. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/prune/calibration_in.h"
#include "api/prune/rule_in.h"
#include "base/error.h"
#include "calibrate/fit.h"
#include "data/prepare.h"
#include "lacuna/calibration.h"
#include "lacuna/process_group.h"
#include "lacuna/prune.h"

enum { MOST_SIDE = LACI_PREPROCESSING_MAX, MOST_STEPS = 1000000000 };
static const char magnitude[] = "magnitude", with_data[] = "alps", in_memory[] = "memory";

const char *laci_score_name_of_options(const lac_options *options) {
  if (options->scores) return in_memory;
  if (options->score) return options->score;
  if (!options->calibration) return magnitude;
  const bool blocks = options->v || (options->mask && strcmp(options->mask, "1d") != 0);
  return options->calibration->optional && blocks ? magnitude : with_data;
}

const laci_score *laci_score_of_options(const lac_options *options) {
  return laci_score_find(laci_score_name_of_options(options));
}

lac_status laci_check_score(const lac_options *options, lac_error *err) {
  const char *name = laci_score_name_of_options(options);
  const laci_score *score = laci_score_find(name);
  char known[256] = "";
  if (options->scores) {
    if (!options->score && !options->calibration) return LAC_OK;
    return laci_fail(err, LAC_BAD_ARGUMENT, "scores in memory and %s: wanted one of them",
                     options->score ? "a score by name" : "calibration");
  }
  if (!score && laci_score_is_file_name(name)) {
    if (!options->calibration) return LAC_OK;
    return laci_fail(err, LAC_BAD_ARGUMENT,
                     "score %s: a file's scores are for pruning without inputs of the network",
                     name);
  }
  if (!score) {
    for (int at = 0; laci_score_at(at); at++) {
      size_t n = strlen(known);
      (void)snprintf(known + n, sizeof known - n, "%s%s", at ? ", " : "",
                     laci_score_name(laci_score_at(at)));
    }
    return laci_fail(err, LAC_BAD_ARGUMENT, "score %s: wanted one of %s, or a file, FILE.npz", name,
                     known);
  }
  if (options->calibration || !laci_score_needs_gram(score)) return LAC_OK;
  return laci_hint(
      err, LAC_HINT_CALIBRATION,
      laci_fail(err, LAC_BAD_ARGUMENT,
                "score %s: it looks at inputs of the network, and there are none", name));
}

lac_status laci_check_one_process(const lac_options *options, lac_error *err) {
  const int n = options->group ? lac_process_group_size(options->group) : 1;
  if (n <= 1) return LAC_OK;
  return laci_fail(err, LAC_UNSUPPORTED,
                   "%s: calibration is one process's work, and these are %d: wanted one, or "
                   "pruning without data",
                   options->calibration->data, n);
}

lac_status laci_check_calibration(const lac_options *options, lac_error *err) {
  const lac_calibration *c = options->calibration;
  if (!c->data) return laci_fail(err, LAC_BAD_ARGUMENT, "calibration without data");
  lac_status st = laci_check_one_process(options, err);
  if (st) return st;
  if (c->resize < 0 || c->resize > MOST_SIDE || c->crop < 0 || c->crop > MOST_SIDE) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "resize %d and crop %d: wanted 0 to %d pixels",
                     c->resize, c->crop, MOST_SIDE);
  }
  if (c->keep_dense < 0)
    return laci_fail(err, LAC_BAD_ARGUMENT, "%d layers to stay dense, wanted 0 or more",
                     c->keep_dense);
  if (isnan(c->max_drop))
    return laci_fail(err, LAC_BAD_ARGUMENT, "a loss that is no number, wanted 0 or more, or -1");
  if (!(c->refine >= 0 && c->refine <= 1e9))
    return laci_fail(err, LAC_BAD_ARGUMENT, "refinement of %g seconds, wanted 0 (none) to 1e9",
                     c->refine);
  if (c->refine_steps < 0 || c->refine_steps > MOST_STEPS)
    return laci_fail(err, LAC_BAD_ARGUMENT, "%lld steps of refinement, wanted 0 to %d",
                     (long long)c->refine_steps, MOST_STEPS);
  return laci_scale_check_mean_and_std(c->mean, c->std, err);
}
