/* SPDX-License-Identifier: Apache-2.0
 * Makes masks and new weights. The new bytes are made one tensor at a time, in memory or in a
 * temporary file, while the old ones are kept. The commit then replaces all of them. */
#include <string.h>

#include "analyze/analyze.h"
#include "base/divide.h"
#include "base/error.h"
#include "base/acquire.h"
#include "base/log.h"
#include "base/spill.h"
#include "graph/graph.h"
#include "permute/orders.h"
#include "permute/plan.h"
#include "prune/prune_in.h"
#include "sparse/measure.h"
#include "sparse/mask.h"
#include "tensor/buf.h"
#include "tensor/shape.h"

lac_status laci_copy_reordered_bytes(const laci_plan *plan, int stored, uint8_t **bytes,
                                     lac_error *err) {
  *bytes = NULL;
  const laci_graph *graph = plan->analysis->graph;
  const laci_stored *from = &graph->stored[stored];
  const laci_value_orders *orders = &plan->orders.values[from->value];
  if (laci_orders_are_identity(orders)) return LAC_OK;
  laci_acquired_bytes held;
  lac_status st = laci_stored_acquire(graph, from, &held, err);
  if (st) return st;
  uint8_t *fresh = laci_alloc(from->size_bytes, 1);
  st = fresh
           ? laci_reorder(&from->shape, lac_dtype_size(from->dtype), orders, held.bytes, fresh, err)
           : laci_fail_memory(err, from->name);
  laci_bytes_release(&held);
  if (st) laci_free(fresh);
  else *bytes = fresh;
  return st;
}

/* Copies a tensor in the plan's order as laci_copy_reordered_bytes does, but also if the order does
 * not change it. */
static lac_status copy_bytes_in_order(const laci_plan *plan, int stored, uint8_t **bytes,
                                      lac_error *err) {
  const laci_graph *graph = plan->analysis->graph;
  const laci_stored *from = &graph->stored[stored];
  laci_acquired_bytes held;
  lac_status st = laci_copy_reordered_bytes(plan, stored, bytes, err);
  if (st || *bytes) return st;
  st = laci_stored_acquire(graph, from, &held, err);
  if (st) return st;
  if (held.copy) {
    *bytes = held.copy;
    return LAC_OK;
  }
  *bytes = laci_alloc(from->size_bytes, 1);
  if (!*bytes) return laci_fail_memory(err, from->name);
  memcpy(*bytes, held.bytes, from->size_bytes);
  return LAC_OK;
}

/* Makes `take` the new bytes: stores it in memory, as *kept, or writes it to the temporary file and
 * frees it. Takes ownership of `take`, even on failure. */
static lac_status store_or_spill_bytes(laci_spill *spill, const char *name, uint8_t *take, size_t n,
                                       uint8_t **kept, lac_error *err) {
  const uint8_t *view;
  *kept = take;
  if (!spill) return LAC_OK;
  lac_status st = laci_spill_append(spill, name, take, n, &view, err);
  laci_free(take);
  *kept = st ? NULL : (uint8_t *)(uintptr_t)view;
  return st;
}

static lac_status store_new_weight(laci_pruning *p, int stored, uint8_t *take, lac_error *err) {
  const laci_stored *from = &p->analysis->graph->stored[stored];
  return store_or_spill_bytes(p->weights_spill, from->name, take, from->size_bytes,
                              &p->weights[stored], err);
}

lac_status laci_pruning_replace_tensor(laci_pruning *p, int stored, uint8_t *take, lac_error *err) {
  if (!p->weights_spill) laci_free(p->weights[stored]);
  return store_new_weight(p, stored, take, err);
}

lac_status laci_reorder_scores(const laci_pruning *p, int stored, laci_weight_view *view,
                               float **memory, lac_error *err) {
  const laci_stored *from = &p->analysis->graph->stored[stored];
  const laci_value_orders *orders = &p->plan->orders.values[from->value];
  *memory = NULL;
  view->score = p->scores ? p->scores[stored] : NULL;
  if (!view->score || laci_orders_are_identity(orders)) return LAC_OK;
  float *moved = laci_alloc((size_t)laci_shape_count(&from->shape), sizeof *moved);
  if (!moved) return laci_fail_memory(err, from->name);
  lac_status st = laci_reorder(&from->shape, sizeof *moved, orders, view->score, moved, err);
  if (st) laci_free(moved);
  else view->score = *memory = moved;
  return st;
}

/* Reorders scales of blocks into `moved`. They have all axes of the weight, but along the axis of
 * the blocks there is one for each block. That axis is never reordered. */
static bool reorder_block_scales(const laci_shape *weight, const laci_value_orders *orders,
                                 laci_weight_view *view, double *moved) {
  laci_shape shape = *weight;
  for (int axis = 0; axis < shape.rank; axis++) {
    if (shape.dims[axis] == view->scale_size &&
        laci_shape_count_range(weight, axis + 1, shape.rank) == view->scale_stride)
      shape.dims[axis] = laci_ceil_div(view->scale_size, view->scale_block);
  }
  const double *const from[2] = {view->scale, view->zero};
  const double *to[2] = {NULL, NULL};
  for (int i = 0; i < 2; i++) {
    if (!from[i]) continue;
    double *here = moved + i * view->n_scales;
    if (laci_reorder(&shape, sizeof *moved, orders, from[i], here, NULL)) return false;
    to[i] = here;
  }
  view->scale = to[0];
  view->zero = to[1];
  return true;
}

/* Reorders the view's scales and zero points into `moved`, and points the view there. If they do
 * not move, the view stays unchanged. Returns false on failure. */
static bool reorder_view_scales(const laci_stored *stored, const laci_value_orders *orders,
                                laci_weight_view *view, double *moved) {
  if (view->n_scales < 2) return true;
  if (view->scale_block) return reorder_block_scales(&stored->shape, orders, view, moved);
  for (int i = 0; i < orders->n; i++) {
    const laci_axis_order *order = &orders->items[i];
    int axis = order->axes[0];
    if (laci_shape_count_range(&stored->shape, axis + 1, stored->shape.rank) !=
            view->scale_stride ||
        stored->shape.dims[axis] != view->n_scales || order->n_groups > 0) {
      continue;
    }
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

bool laci_reorder_scales(const laci_plan *plan, const laci_layer *layer, laci_weight_view *view,
                         double **memory) {
  const laci_stored *stored = &plan->analysis->graph->stored[layer->stored];
  const laci_value_orders *orders = &plan->orders.values[stored->value];
  const size_t own = 2 * (size_t)view->n_scales;
  const size_t grids = view->grid ? 2 * (size_t)view->grid->to.n_scales : 0;
  *memory = NULL;
  if (own + grids == 0 || laci_orders_are_identity(orders)) return true;
  /* one block of memory has the scales of the view, those of the grid, and the grid itself */
  *memory =
      laci_alloc(own + grids + sizeof(laci_weight_grid) / sizeof **memory + 1, sizeof **memory);
  if (!*memory || !reorder_view_scales(stored, orders, view, *memory)) return false;
  if (!view->grid) return true;
  laci_weight_grid *grid = (laci_weight_grid *)(void *)(*memory + own + grids);
  *grid = *view->grid;
  view->grid = grid;
  return reorder_view_scales(stored, orders, &grid->to, *memory + own);
}

static lac_status store_mask(laci_pruning *p, int stored, const uint8_t *mask, int64_t count,
                             lac_error *err) {
  uint8_t *bits = laci_alloc((size_t)(count + 7) / 8, 1);
  if (!bits) return laci_fail_memory(err, "the masks");
  for (int64_t e = 0; e < count; e++) bits[e / 8] |= (uint8_t)((mask[e] & 1) << (e % 8));
  laci_pruned_mask made = {.stored = stored, .count = count, .spilled = p->masks_spill != NULL};
  lac_status st = store_or_spill_bytes(p->masks_spill, p->analysis->graph->stored[stored].name,
                                       bits, (size_t)(count + 7) / 8, &made.bits, err);
  if (!st) p->masks[p->n_masks++] = made;
  return st;
}

static lac_status record_layer_measurement(laci_pruning *p, int l,
                                           const laci_weight_measurement *found, lac_error *err) {
  const laci_mask_stats *stats = &found->stats;
  laci_pruned_layer *out = &p->layers[l];
  out->pruned = out->is_pruned = out->measured = true;
  out->n_zeros = stats->n_zeros;
  out->n_elements = stats->n_elements;
  out->holds_pattern = stats->holds_pattern;
  out->holds_rows = found->holds_rows;
  out->kept = stats->total;
  return laci_pruning_set_reason_few_nonzeros(p, l, err);
}

/* Measures a masked weight. This also checks that it satisfies the mask rule. */
static lac_status measure_weight(const laci_pruning *p, const laci_weight_view *view,
                                 laci_pool *pool, laci_weight_measurement *found, lac_error *err) {
  return laci_weight_measure(view, &p->rule, pool, found, err);
}

/* Layer l's weight has been masked; bytes are the new weight. Records this for every layer that
 * reads the same stored tensor. Each layer is measured with its own zero points, scales and rows,
 * as when the file is read. */
static lac_status record_masked_layer(laci_pruning *p, int l, const laci_weight_measurement *found,
                                      const uint8_t *bytes, laci_pool *pool, lac_error *err) {
  const int stored = p->analysis->layers[l].stored;
  lac_status st = record_layer_measurement(p, l, found, err);
  for (int other = 0; other < p->analysis->n_layers && !st; other++) {
    const laci_layer *layer = &p->analysis->layers[other];
    if (layer->stored != stored || other == l) continue;
    laci_weight_measurement seen;
    double *scales;
    laci_weight_view view = layer->view;
    if (!laci_reorder_scales(p->plan, layer, &view, &scales))
      return laci_fail_memory(err, view.name);
    view.bytes = bytes;
    view.bytes_from = NULL;
    st = measure_weight(p, &view, pool, &seen, err);
    if (!st) st = record_layer_measurement(p, other, &seen, err);
    laci_free(scales);
  }
  return st;
}

lac_status laci_rescale_gain(const laci_stored *v, int axis, const uint8_t *before,
                             const uint8_t *after, double *gain, lac_error *err) {
  int64_t n = v->shape.dims[axis];
  double *norms = laci_alloc(2 * (size_t)n, sizeof *norms);
  if (!norms) return laci_fail_memory(err, v->name);
  laci_compute_norms_along_axis(v, before, axis, norms);
  laci_compute_norms_along_axis(v, after, axis, norms + n);
  for (int64_t k = 0; k < n; k++) gain[k] *= norms[n + k] / norms[k];
  laci_free(norms);
  return LAC_OK;
}

/* A weight g * v / |v| has a gain g, and v has been masked. Scales g by the change of the norm, so
 * that kept elements keep their values up to rounding. */
static lac_status rescale_gain_of_layer(laci_pruning *p, const laci_layer *layer, lac_error *err) {
  if (layer->gain < 0) return LAC_OK;
  const laci_stored *v = &p->analysis->graph->stored[layer->stored];
  const laci_stored *g = &p->analysis->graph->stored[layer->gain];
  int64_t n = v->shape.dims[layer->gain_axis];
  uint8_t *old_v = NULL, *new_g = NULL;
  double *gain = laci_alloc((size_t)n, sizeof *gain);
  lac_status st = gain ? LAC_OK : laci_fail_memory(err, g->name);
  if (!st) st = copy_bytes_in_order(p->plan, layer->stored, &old_v, err);
  if (!st) st = copy_bytes_in_order(p->plan, layer->gain, &new_g, err);
  if (!st) {
    laci_read_f64(g->dtype, new_g, 0, n, gain);
    st = laci_rescale_gain(v, layer->gain_axis, old_v, p->weights[layer->stored], gain, err);
  }
  if (!st) {
    laci_write_f64(g->dtype, gain, n, new_g);
    st = laci_pruning_replace_tensor(p, layer->gain, new_g, err);
    new_g = NULL;
  }
  laci_free(gain);
  laci_free(old_v);
  laci_free(new_g);
  return st;
}

/* A copy of a layer's weight, reordered as the plan says, and masked. */
typedef struct masked_weight {
  laci_weight_view view; /* a view of `bytes` as the layer's weight */
  uint8_t *bytes, *mask; /* bytes: the masked weight. mask: [elements] 1 = kept */
  double *scales;        /* scales that the view points to; NULL: the view has the layer's own */
} masked_weight;

static void masked_weight_clear(masked_weight *w) {
  laci_free(w->scales);
  laci_free(w->mask);
  laci_free(w->bytes);
  *w = (masked_weight){.bytes = NULL};
}

/* Copies a layer's weight in the plan's order, and masks the copy. keeps: the zeros that it has are
 * its mask; otherwise a mask is chosen. */
static lac_status make_masked_weight(const laci_pruning *p, int l, bool keeps, laci_pool *pool,
                                     masked_weight *made, lac_error *err) {
  const laci_layer *layer = &p->analysis->layers[l];
  const laci_stored *stored = &p->analysis->graph->stored[layer->stored];
  float *scores = NULL;
  *made = (masked_weight){.view = layer->view};
  lac_status st = copy_bytes_in_order(p->plan, layer->stored, &made->bytes, err);
  if (!st) made->mask = laci_alloc((size_t)laci_shape_count(&stored->shape), 1);
  if (!st && (!made->mask || !laci_reorder_scales(p->plan, layer, &made->view, &made->scales)))
    st = laci_fail_memory(err, stored->name);
  made->view.bytes = made->bytes;
  made->view.bytes_from = NULL;
  if (!st) st = laci_reorder_scores(p, layer->stored, &made->view, &scores, err);
  if (!st && keeps) laci_mask_from_zeros(&made->view, made->mask);
  else if (!st) st = laci_mask_choose_by_rule(&made->view, &p->rule, pool, made->mask, err);
  if (!st) laci_mask_apply(&made->view, made->mask, made->bytes);
  made->view.score = NULL;
  laci_free(scores);
  if (st) masked_weight_clear(made);
  return st;
}

lac_status laci_pruning_copy_masked(const laci_pruning *p, int l, laci_pool *pool, uint8_t **bytes,
                                    lac_error *err) {
  masked_weight made;
  lac_status st = make_masked_weight(p, l, false, pool, &made, err);
  *bytes = made.bytes;
  made.bytes = NULL;
  masked_weight_clear(&made);
  return st;
}

/* Makes the new weight of layer l, which is masked. keeps: the zeros that it has are its mask. */
static lac_status mask_layer(laci_pruning *p, int l, bool keeps, laci_pool *pool, lac_error *err) {
  const laci_layer *layer = &p->analysis->layers[l];
  const laci_stored *stored = &p->analysis->graph->stored[layer->stored];
  masked_weight made;
  laci_weight_measurement found;
  lac_status st = make_masked_weight(p, l, keeps, pool, &made, err);
  if (st) return st;
  st = measure_weight(p, &made.view, pool, &found, err);
  if (!st) st = record_masked_layer(p, l, &found, made.bytes, pool, err);
  if (!st) {
    st = store_new_weight(p, layer->stored, made.bytes, err);
    made.bytes = NULL;
  }
  if (!st) st = store_mask(p, layer->stored, made.mask, laci_shape_count(&stored->shape), err);
  if (!st) st = rescale_gain_of_layer(p, layer, err);
  masked_weight_clear(&made);
  return st;
}

lac_status laci_pruning_set_masked_weight(laci_pruning *p, int l, const uint8_t *mask,
                                          uint8_t *take, laci_pool *pool, lac_error *err) {
  const laci_layer *layer = &p->analysis->layers[l];
  const laci_stored *stored = &p->analysis->graph->stored[layer->stored];
  uint8_t **bytes = &p->weights[layer->stored];
  laci_weight_view view = layer->view;
  laci_mask_stats kept;
  laci_weight_measurement found;
  double *scales = NULL;
  uint8_t *masked = laci_alloc(stored->size_bytes, 1);
  lac_status st = masked && laci_reorder_scales(p->plan, layer, &view, &scales)
                      ? LAC_OK
                      : laci_fail_memory(err, stored->name);
  if (!st) {
    memcpy(masked, *bytes ? *bytes : stored->bytes, stored->size_bytes);
    laci_mask_apply(&view, mask, masked);
    view.bytes = masked;
    st = laci_mask_measure(&view, p->pattern, pool, &kept, err);
  }
  view.bytes = take;
  if (!st) st = measure_weight(p, &view, pool, &found, err);
  if (!st) st = store_mask(p, layer->stored, mask, laci_shape_count(&stored->shape), err);
  laci_free(scales);
  laci_free(masked);
  if (st) return st;
  found.stats.total = kept.total;
  st = record_masked_layer(p, l, &found, take, pool, err);
  if (st) return st;
  laci_free(*bytes);
  *bytes = take;
  return LAC_OK;
}

bool laci_pruning_keeps_mask_of_layer(const laci_pruning *p, const laci_prune_options *options,
                                      int l) {
  const bool optional = options->calibration && options->calibration->must_gain;
  return (options->keep_pruned || optional) && p->layers[l].was_pruned;
}

/* Is the layer masked in this step? Masks that are chosen by samples are made later, after the
 * other weights. */
static bool is_masked_now(const laci_pruning *p, const laci_prune_options *options, int l) {
  const laci_pruned_layer *layer = &p->layers[l];
  if (!options->mask || !p->analysis->layers[l].eligible || laci_pruned_layer_is_zero(layer))
    return false;
  if (p->left_dense && p->left_dense[l]) return false;
  return !options->calibration || laci_pruning_keeps_mask_of_layer(p, options, l);
}

/* Reorders the stored tensors that get no mask. */
static lac_status reorder_unmasked_tensors(laci_pruning *p, const laci_prune_options *options,
                                           lac_error *err) {
  const laci_analysis *a = p->analysis;
  bool *masked = laci_alloc((size_t)a->graph->n_stored, sizeof *masked);
  lac_status st = masked ? LAC_OK : laci_fail_memory(err, "the new weights");
  for (int l = 0; l < a->n_layers && !st; l++) {
    masked[a->layers[l].stored] |= is_masked_now(p, options, l);
  }
  for (int s = 0; s < a->graph->n_stored && !st; s++) {
    uint8_t *bytes = NULL;
    if (masked[s]) continue;
    st = laci_copy_reordered_bytes(p->plan, s, &bytes, err);
    if (!st && bytes) st = store_new_weight(p, s, bytes, err);
  }
  laci_free(masked);
  return st;
}

lac_status laci_pruning_make_weights(laci_pruning *p, const laci_prune_options *options,
                                     laci_pool *pool, lac_error *err) {
  const laci_analysis *a = p->analysis;
  lac_status st = LAC_OK;
  p->weights = laci_alloc((size_t)a->graph->n_stored, sizeof *p->weights);
  if (!p->weights) return laci_fail_memory(err, "the new weights");
  if (options->spill) st = laci_spill_create(NULL, &p->weights_spill, err);
  if (!st && options->spill) st = laci_spill_create(NULL, &p->masks_spill, err);
  if (!st) st = reorder_unmasked_tensors(p, options, err);
  for (int l = 0; l < a->n_layers && !st; l++) {
    if (!is_masked_now(p, options, l) || p->layers[l].pruned) continue;
    st = mask_layer(p, l, laci_pruning_keeps_mask_of_layer(p, options, l), pool, err);
    if (!st && laci_interrupted()) st = laci_fail(err, LAC_INTERRUPTED, "interrupted");
  }
  return st;
}

lac_status laci_pruning_measure_unmasked(laci_pruning *p, laci_pool *pool, lac_error *err) {
  for (int l = 0; l < p->analysis->n_layers; l++) {
    const laci_layer *layer = &p->analysis->layers[l];
    laci_pruned_layer *out = &p->layers[l];
    const uint8_t *fresh = p->weights[layer->stored];
    laci_weight_view view = layer->view;
    double *scales = NULL;
    out->is_pruned |= out->was_pruned && !fresh;
    if (out->pruned || !out->measured || !fresh)
      continue; /* the layer is masked already, or its
                                                              weight is unchanged */
    if (!laci_reorder_scales(p->plan, layer, &view, &scales))
      return laci_fail_memory(err, view.name);
    view.bytes = fresh;
    view.bytes_from = NULL;
    laci_weight_measurement found;
    lac_status st = measure_weight(p, &view, pool, &found, err);
    laci_free(scales);
    if (st) return st;
    out->n_zeros = found.stats.n_zeros;
    out->holds_pattern = found.stats.holds_pattern;
    out->is_pruned = found.is_pruned;
    out->holds_rows = found.is_pruned && found.holds_rows;
  }
  return LAC_OK;
}

void laci_pruning_commit(laci_pruning *p, laci_graph *graph) {
  for (int s = 0; s < graph->n_stored; s++) {
    if (!p->weights[s]) continue;
    laci_stored_replace_bytes(&graph->stored[s], p->weights[s], p->weights_spill != NULL);
    p->weights[s] = NULL;
  }
  laci_spill_add_to_list(&graph->spills, p->weights_spill);
  p->weights_spill = NULL;
}
