/* SPDX-License-Identifier: Apache-2.0
 * Measuring and changing stored tensors. */
#include "api/apply.h"

#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "sparse/mask.h"

/* A stored tensor's bytes as the plan orders them; NULL with LAC_OK: they stay as they are. */
static lac_status reordered(const laci_stored *stored, const laci_plan *plan, uint8_t **bytes,
                            lac_error *err) {
  *bytes = NULL;
  const laci_value_orders *orders = plan ? &plan->orders.values[stored->value] : NULL;
  if (!orders || laci_orders_are_identity(orders)) return LAC_OK;
  uint8_t *fresh = laci_alloc(stored->size_bytes, 1);
  if (!fresh) return laci_fail_memory(err, stored->name);
  lac_status st = laci_reorder(&stored->shape, lac_dtype_size(stored->dtype), orders, stored->bytes,
                               fresh, err);
  if (st) laci_free(fresh);
  else *bytes = fresh;
  return st;
}

lac_status laci_measure_layers(laci_report *report, const laci_analysis *a, laci_pattern pattern,
                               laci_pool *pool, lac_error *err) {
  for (int l = 0; l < a->n_layers; l++) {
    const laci_layer *layer = &a->layers[l];
    lac_layer *out = &report->layers[l];
    if (!layer->view.bytes || !(layer->eligible || layer->view.dtype == LAC_DTYPE_F32)) continue;
    laci_mask_stats stats;
    lac_status st =
        laci_mask_measure(&layer->view, pattern, pool, &stats, layer->eligible ? err : NULL);
    if (st && layer->eligible) return st;
    if (st) continue; /* a layer that stays as it is may hold what it likes */
    out->kept_identity = out->kept = stats.kept;
    out->total = stats.total;
    out->n_zeros = stats.n_zeros;
    out->n_elements = stats.n_elements;
    out->zero_ratio = stats.n_elements ? (double)stats.n_zeros / (double)stats.n_elements : 0;
    out->holds_pattern = stats.holds_pattern;
    out->was_pruned = laci_layer_is_pruned(out, pattern.n);
    if (out->eligible && laci_layer_is_zero(out)) {
      out->reason = "all zero: no magnitude tells which weights to keep";
    }
  }
  return LAC_OK;
}

lac_status laci_measure_kept(laci_report *report, const laci_analysis *a, const laci_plan *plan,
                             laci_pattern pattern, laci_pool *pool, lac_error *err) {
  for (int l = 0; l < a->n_layers; l++) {
    const laci_layer *layer = &a->layers[l];
    uint8_t *bytes;
    if (!layer->eligible) continue;
    report->layers[l].kept = report->layers[l].kept_identity;
    lac_status st = reordered(&a->graph->stored[layer->stored], plan, &bytes, err);
    if (st) return st;
    if (!bytes) continue;
    laci_mask_stats stats;
    laci_weight_view view = layer->view;
    view.bytes = bytes;
    st = laci_mask_measure(&view, pattern, pool, &stats, err);
    laci_free(bytes);
    if (st) return st;
    report->layers[l].kept = stats.kept;
  }
  return LAC_OK;
}

/* Dequantisation parameters that lie along a reordered axis of the weight move with it. */
static bool reorder_scales(const laci_analysis *a, const laci_plan *plan, const laci_layer *layer,
                           laci_weight_view *view, double **memory) {
  *memory = NULL;
  if (!plan || view->n_scales < 2) return true;
  const laci_stored *stored = &a->graph->stored[layer->stored];
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

static lac_status mask_layer(const laci_analysis *a, const laci_plan *plan, int l,
                             laci_pattern pattern, laci_pool *pool, laci_report *report,
                             uint8_t **bytes, lac_error *err) {
  const laci_layer *layer = &a->layers[l];
  const laci_stored *stored = &a->graph->stored[layer->stored];
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
  lac_status st = mask && reorder_scales(a, plan, layer, &view, &scales)
                      ? LAC_OK
                      : laci_fail_memory(err, stored->name);
  if (!st && report->keep_pruned && report->layers[l].was_pruned) laci_mask_of_zeros(&view, mask);
  else if (!st) st = laci_mask_choose(&view, pattern, pool, mask, err);
  if (!st) laci_mask_apply(&view, mask, *bytes);
  if (!st) st = laci_mask_measure(&view, pattern, pool, &stats, err);
  if (!st) st = laci_report_keep_mask(report, stored->name, mask, n, err);
  if (!st) {
    for (int k = 0; k < a->n_layers; k++) {
      if (a->layers[k].stored != layer->stored) continue;
      lac_layer *out = &report->layers[k];
      out->pruned = true;
      out->n_zeros = stats.n_zeros;
      out->zero_ratio = (double)stats.n_zeros / (double)stats.n_elements;
      out->holds_pattern = stats.holds_pattern;
      out->kept = stats.total;
    }
  }
  laci_free(scales);
  laci_free(mask);
  return st;
}

lac_status laci_apply(laci_graph *graph, const laci_analysis *a, const laci_plan *plan, bool prune,
                      laci_pattern pattern, laci_pool *pool, laci_report *report, lac_error *err) {
  uint8_t **fresh = laci_alloc((size_t)graph->n_stored, sizeof *fresh);
  lac_status st = fresh ? LAC_OK : laci_fail_memory(err, "the new weights");
  for (int s = 0; s < graph->n_stored && !st; s++)
    st = reordered(&graph->stored[s], plan, &fresh[s], err);
  for (int l = 0; l < a->n_layers && !st && prune; l++) {
    if (!a->layers[l].eligible || report->layers[l].pruned) continue;
    if (laci_layer_is_zero(&report->layers[l])) continue;
    st = mask_layer(a, plan, l, pattern, pool, report, &fresh[a->layers[l].stored], err);
    if (!st && laci_interrupted()) st = laci_fail(err, LAC_INTERRUPTED, "interrupted");
  }
  for (int s = 0; fresh && s < graph->n_stored; s++) {
    if (!fresh[s]) continue;
    if (st) {
      laci_free(fresh[s]);
      continue;
    }
    laci_free(graph->stored[s].owned);
    graph->stored[s].owned = fresh[s];
    graph->stored[s].bytes = fresh[s];
  }
  laci_free(fresh);
  return st;
}
