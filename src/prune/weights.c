/* SPDX-License-Identifier: Apache-2.0
 * Masks and new weights: all new bytes are made beside the old ones, then all are put in place. */
#include <string.h>

#include "analyze/analyze.h"
#include "base/error.h"
#include "base/log.h"
#include "graph/graph.h"
#include "permute/orders.h"
#include "permute/plan.h"
#include "prune/prune_in.h"
#include "sparse/mask.h"
#include "tensor/shape.h"

lac_status laci_reordered_bytes(const laci_stored *stored, const laci_plan *plan, uint8_t **bytes,
                                lac_error *err) {
  *bytes = NULL;
  const laci_value_orders *orders = &plan->orders.values[stored->value];
  if (laci_orders_are_identity(orders)) return LAC_OK;
  uint8_t *fresh = laci_alloc(stored->size_bytes, 1);
  if (!fresh) return laci_fail_memory(err, stored->name);
  lac_status st = laci_reorder(&stored->shape, lac_dtype_size(stored->dtype), orders, stored->bytes,
                               fresh, err);
  if (st) laci_free(fresh);
  else *bytes = fresh;
  return st;
}

/* Dequantisation parameters that lie along a reordered axis of the weight move with it. */
static bool reorder_scales(const laci_plan *plan, const laci_layer *layer, laci_weight_view *view,
                           double **memory) {
  *memory = NULL;
  if (view->n_scales < 2) return true;
  const laci_stored *stored = &plan->analysis->graph->stored[layer->stored];
  const laci_value_orders *orders = &plan->orders.values[stored->value];
  for (int i = 0; i < orders->n; i++) {
    const laci_axis_order *order = &orders->items[i];
    int axis = order->axes[0];
    if (laci_shape_count_range(&stored->shape, axis + 1, stored->shape.rank) !=
            view->scale_stride ||
        stored->shape.dims[axis] != view->n_scales || order->n_groups > 0) {
      continue;
    }
    double *moved = *memory = laci_alloc(2 * (size_t)view->n_scales, sizeof *moved);
    if (!moved) return false;
    for (int64_t k = 0; k < view->n_scales; k++) {
      moved[k] = view->scale ? view->scale[order->order[k]] : 1;
      moved[view->n_scales + k] = view->zero ? view->zero[order->order[k]] : 0;
    }
    view->scale = moved;
    view->zero = moved + view->n_scales;
    return true;
  }
  return true;
}

static lac_status keep_mask(laci_pruning *p, int stored, const uint8_t *mask, int64_t count,
                            lac_error *err) {
  uint8_t *bits = laci_alloc((size_t)(count + 7) / 8, 1);
  if (!bits) return laci_fail_memory(err, "the masks");
  for (int64_t e = 0; e < count; e++) bits[e / 8] |= (uint8_t)((mask[e] & 1) << (e % 8));
  p->masks[p->n_masks++] = (laci_pruned_mask){.stored = stored, .count = count, .bits = bits};
  return LAC_OK;
}

/* Every layer that has this stored tensor has it pruned now. */
static void note_masked(laci_pruning *p, int stored, const laci_mask_stats *stats) {
  for (int l = 0; l < p->analysis->n_layers; l++) {
    if (p->analysis->layers[l].stored != stored) continue;
    laci_pruned_layer *out = &p->layers[l];
    out->pruned = true;
    out->n_zeros = stats->n_zeros;
    out->n_elements = stats->n_elements;
    out->holds_pattern = stats->holds_pattern;
    out->kept = stats->total;
  }
}

/* The layer's new weight, masked. */
static lac_status mask_layer(laci_pruning *p, int l, bool keeps, laci_pool *pool, lac_error *err) {
  const laci_layer *layer = &p->analysis->layers[l];
  const laci_stored *stored = &p->analysis->graph->stored[layer->stored];
  uint8_t **bytes = &p->weights[layer->stored];
  if (!*bytes) {
    *bytes = laci_alloc(stored->size_bytes, 1);
    if (!*bytes) return laci_fail_memory(err, stored->name);
    memcpy(*bytes, stored->bytes, stored->size_bytes);
  }
  int64_t n = laci_shape_count(&stored->shape);
  uint8_t *mask = laci_alloc((size_t)n, 1);
  laci_weight_view view = layer->view;
  double *scales = NULL;
  view.bytes = *bytes;
  laci_mask_stats stats;
  lac_status st = mask && reorder_scales(p->plan, layer, &view, &scales)
                      ? LAC_OK
                      : laci_fail_memory(err, stored->name);
  if (!st && keeps) laci_mask_of_zeros(&view, mask);
  else if (!st) st = laci_mask_choose(&view, p->pattern, pool, mask, err);
  if (!st) laci_mask_apply(&view, mask, *bytes);
  if (!st) st = laci_mask_measure(&view, p->pattern, pool, &stats, err);
  if (!st) st = keep_mask(p, layer->stored, mask, n, err);
  if (!st) note_masked(p, layer->stored, &stats);
  laci_free(scales);
  laci_free(mask);
  return st;
}

lac_status laci_pruning_set_weight(laci_pruning *p, int l, const uint8_t *mask, uint8_t *take,
                                   laci_pool *pool, lac_error *err) {
  const laci_layer *layer = &p->analysis->layers[l];
  const laci_stored *stored = &p->analysis->graph->stored[layer->stored];
  uint8_t **bytes = &p->weights[layer->stored];
  laci_weight_view view = layer->view;
  laci_mask_stats kept, stats;
  double *scales = NULL;
  uint8_t *masked = laci_alloc(stored->size_bytes, 1);
  lac_status st = masked && reorder_scales(p->plan, layer, &view, &scales)
                      ? LAC_OK
                      : laci_fail_memory(err, stored->name);
  if (!st) {
    memcpy(masked, *bytes ? *bytes : stored->bytes, stored->size_bytes);
    laci_mask_apply(&view, mask, masked);
    view.bytes = masked;
    st = laci_mask_measure(&view, p->pattern, pool, &kept, err);
  }
  view.bytes = take;
  if (!st) st = laci_mask_measure(&view, p->pattern, pool, &stats, err);
  if (!st) st = keep_mask(p, layer->stored, mask, laci_shape_count(&stored->shape), err);
  laci_free(scales);
  laci_free(masked);
  if (st) return st;
  stats.total = kept.total;
  note_masked(p, layer->stored, &stats);
  laci_free(*bytes);
  *bytes = take;
  return LAC_OK;
}

lac_status laci_pruning_make_weights(laci_pruning *p, const laci_prune_options *options,
                                     laci_pool *pool, lac_error *err) {
  const laci_analysis *a = p->analysis;
  lac_status st = LAC_OK;
  p->weights = laci_alloc((size_t)a->graph->n_stored, sizeof *p->weights);
  if (!p->weights) return laci_fail_memory(err, "the new weights");
  for (int s = 0; s < a->graph->n_stored && !st; s++) {
    st = laci_reordered_bytes(&a->graph->stored[s], p->plan, &p->weights[s], err);
  }
  for (int l = 0; l < a->n_layers && !st && options->mask; l++) {
    const laci_pruned_layer *layer = &p->layers[l];
    bool keeps = options->keep_pruned && layer->was_pruned;
    if (!a->layers[l].eligible || layer->pruned || laci_pruned_layer_is_zero(layer)) continue;
    if (options->calibration && !keeps) continue; /* by samples, when the others are there */
    st = mask_layer(p, l, keeps, pool, err);
    if (!st && laci_interrupted()) st = laci_fail(err, LAC_INTERRUPTED, "interrupted");
  }
  return st;
}

void laci_pruning_commit(laci_pruning *p, laci_graph *graph) {
  for (int s = 0; s < graph->n_stored; s++) {
    if (!p->weights[s]) continue;
    laci_free(graph->stored[s].owned);
    graph->stored[s].owned = p->weights[s];
    graph->stored[s].bytes = p->weights[s];
    p->weights[s] = NULL;
  }
}
