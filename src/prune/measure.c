/* SPDX-License-Identifier: Apache-2.0
 * What layers hold and what N:M would keep of them. How an element is scored is sparse/score.h's.
 */
#include "analyze/analyze.h"
#include "base/error.h"
#include "graph/graph.h"
#include "prune/prune_in.h"
#include "sparse/mask.h"
#include "sparse/score.h"

/* The pattern says something about it and holds, and something is left of it. */
static bool is_pruned(const laci_pruned_layer *layer, int64_t channels_in, int pattern_n) {
  return layer->holds_pattern && channels_in > pattern_n && !laci_pruned_layer_is_zero(layer);
}

lac_status laci_pruning_measure(laci_pruning *p, laci_pool *pool, lac_error *err) {
  for (int l = 0; l < p->analysis->n_layers; l++) {
    const laci_layer *layer = &p->analysis->layers[l];
    laci_pruned_layer *out = &p->layers[l];
    if (!layer->view.bytes || !(layer->eligible || layer->view.dtype == LAC_DTYPE_F32)) continue;
    laci_mask_stats stats;
    laci_weight_view view;
    laci_held held;
    lac_status st = laci_weight_hold(&layer->view, &view, &held, err);
    if (st) return st;
    st = laci_mask_measure(&view, p->pattern, pool, &stats, layer->eligible ? err : NULL);
    laci_let_go(&held);
    if (st && layer->eligible) return st;
    if (st) continue; /* a layer that stays as it is may hold what it likes */
    out->kept_identity = out->kept = stats.kept;
    out->total = stats.total;
    out->n_zeros = stats.n_zeros;
    out->n_elements = stats.n_elements;
    out->holds_pattern = stats.holds_pattern;
    out->was_pruned = is_pruned(out, layer->channels_in, p->pattern.n);
    if (layer->eligible && laci_pruned_layer_is_zero(out)) {
      out->reason = "all zero: no magnitude tells which weights to keep";
    }
  }
  return LAC_OK;
}

lac_status laci_pruning_measure_kept(laci_pruning *p, laci_pool *pool, lac_error *err) {
  const laci_analysis *a = p->analysis;
  for (int l = 0; l < a->n_layers; l++) {
    const laci_layer *layer = &a->layers[l];
    uint8_t *bytes;
    if (!layer->eligible) continue;
    p->layers[l].kept = p->layers[l].kept_identity;
    lac_status st = laci_reordered_bytes(p->plan, layer->stored, &bytes, err);
    if (st) return st;
    if (!bytes) continue;
    laci_mask_stats stats;
    laci_weight_view view = layer->view;
    view.bytes = bytes;
    view.bytes_from = NULL;
    st = laci_mask_measure(&view, p->pattern, pool, &stats, err);
    laci_free(bytes);
    if (st) return st;
    p->layers[l].kept = stats.kept;
  }
  return LAC_OK;
}
