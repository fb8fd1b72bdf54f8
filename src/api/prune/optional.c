/* SPDX-License-Identifier: Apache-2.0
 * Optional calibration (lac_calibration.optional): prunes without calibration if that is impossible
 * or does not help. This is found out before any work, or when a first try fails. */
#include "analyze/analyze.h"
#include "api/prune/calibration_in.h"
#include "api/prune/prune_in.h"
#include "api/prune/synthetic_in.h"
#include "base/error.h"
#include "base/log.h"
#include "graph/graph.h"
#include "lacuna/calibration.h"
#include "lacuna/prune.h"

static lac_status check_any_layer_eligible(const laci_analysis *analysis, lac_error *err) {
  for (int l = 0; l < analysis->n_layers; l++)
    if (analysis->layers[l].eligible) return LAC_OK;
  return laci_fail(err, LAC_UNSUPPORTED, "no layer is to be pruned");
}

/* Would calibration take hours by default? Networks of images are not checked: they are small
 * enough. */
static lac_status check_calibration_time(const laci_analysis *analysis, lac_error *err) {
  const int64_t most = 200000000;
  int64_t n = 0;
  if (!laci_synthetic_find_noun(analysis->graph)) return LAC_OK;
  for (int l = 0; l < analysis->n_layers; l++) {
    const laci_layer *layer = &analysis->layers[l];
    if (layer->eligible) n += laci_shape_count(&analysis->graph->values[layer->weight].type.shape);
  }
  if (n <= most) return LAC_OK;
  return laci_fail(err, LAC_UNSUPPORTED,
                   "%lld weights to be fitted without data, at most %lld where nobody asked for it",
                   (long long)n, (long long)most);
}

bool laci_calibration_can_be_skipped(const laci_analysis *analysis, const lac_options *options,
                                     lac_error *why) {
  const lac_calibration *c = options->calibration;
  if (!c || !c->optional) return false;
  if (check_any_layer_eligible(analysis, why)) return true;
  if (laci_check_one_process(options, why)) {
    laci_log(LAC_LOG_WARNING, "pruned without calibration: %s", why->text);
    return true;
  }
  return laci_calibration_is_drawn(c) &&
         (laci_synthetic_check_network(analysis->graph, c->crop, why) ||
          check_calibration_time(analysis, why));
}

/* Can the failure have been caused by the calibration, so that pruning without it may succeed? */
static bool is_calibration_failure(lac_status status) {
  return status == LAC_BAD_SHAPE || status == LAC_BAD_VALUE || status == LAC_UNSUPPORTED ||
         status == LAC_MEMORY_LIMIT || status == LAC_NO_MEMORY;
}

lac_status laci_prune_model(lac_model *model, const lac_options *options, bool permute, bool mask,
                            lac_report **out, lac_error *err) {
  lac_options own = *options;
  laci_prune_kind kind = {.permute = permute, .mask = mask};
  lac_error failure = {0};
  lac_status st = laci_prune_once(model, &own, &kind, out, &failure);
  if (is_calibration_failure(st) && mask && own.calibration && own.calibration->optional) {
    laci_log(LAC_LOG_WARNING, "pruned without calibration: %s", failure.text);
    kind.unfit = failure;
    failure = (lac_error){0};
    own.calibration = NULL;
    st = laci_prune_once(model, &own, &kind, out, &failure);
  }
  if (st && err) *err = failure;
  return st;
}
