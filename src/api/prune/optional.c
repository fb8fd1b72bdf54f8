/* SPDX-License-Identifier: Apache-2.0
 * Calibration that is optional (lac_calibration.optional): prunes without it where it cannot be
 * done or does not help. That is seen before any work, or when a first try fails. */
#include "analyze/analyze.h"
#include "api/prune/calibration_in.h"
#include "api/prune/prune_in.h"
#include "api/prune/synthetic_in.h"
#include "base/error.h"
#include "base/log.h"
#include "lacuna/calibration.h"
#include "lacuna/prune.h"

static lac_status check_eligible(const laci_analysis *analysis, lac_error *err) {
  for (int l = 0; l < analysis->n_layers; l++)
    if (analysis->layers[l].eligible) return LAC_OK;
  return laci_fail(err, LAC_UNSUPPORTED, "no layer is to be pruned");
}

bool laci_calibration_is_unfit(const laci_analysis *analysis, const lac_options *options,
                               lac_error *why) {
  const lac_calibration *c = options->calibration;
  laci_synthetic_input ignored;
  if (!c || !c->optional) return false;
  if (check_eligible(analysis, why)) return true;
  if (laci_check_one_process(options, why)) {
    laci_log(LAC_LOG_WARNING, "pruned without calibration: %s", why->text);
    return true;
  }
  return c->synthetic && laci_synthetic_find_layout(analysis->graph, c->crop, &ignored, why);
}

/* Could the failure be one of calibration alone? */
static bool is_of_calibration(lac_status status) {
  return status == LAC_BAD_SHAPE || status == LAC_BAD_VALUE || status == LAC_UNSUPPORTED ||
         status == LAC_MEMORY_LIMIT || status == LAC_NO_MEMORY;
}

lac_status laci_prune_model(lac_model *model, const lac_options *options, bool permute, bool mask,
                            lac_report **out, lac_error *err) {
  lac_options own = *options;
  laci_prune_kind kind = {.permute = permute, .mask = mask};
  lac_error failure = {0};
  lac_status st = laci_prune_once(model, &own, &kind, out, &failure);
  if (is_of_calibration(st) && mask && own.calibration && own.calibration->optional) {
    laci_log(LAC_LOG_WARNING, "pruned without calibration: %s", failure.text);
    kind.unfit = failure;
    failure = (lac_error){0};
    own.calibration = NULL;
    st = laci_prune_once(model, &own, &kind, out, &failure);
  }
  if (st && err) *err = failure;
  return st;
}
