/* SPDX-License-Identifier: Apache-2.0
 * Recovers the orders of channels that map one network to another of the same structure, from the
 * contents of their stored tensors.
 *
 * match_in.h explains the method. Every element is compared at the end, so a wrong guess is
 * found. */
#include "prune/prune.h"

#include <math.h>
#include <string.h>

#include "analyze/analyze.h"
#include "base/error.h"
#include "graph/graph.h"
#include "permute/orders.h"
#include "permute/plan.h"
#include "prune/match_in.h"
#include "prune/prune_in.h"
#include "tensor/buf.h"
#include "tensor/shape.h"

static uint64_t hash_elements_unordered(const laci_stored *stored) {
  uint64_t sum = 0;
  int64_t n = laci_shape_count(&stored->shape);
  for (int64_t e = 0; e < n; e++) sum += laci_hash_bits(laci_element_bits(stored, e) + 0x9E37u);
  return sum;
}

/* Computes the zero point of every element of a weight, reordered like the elements. *zeros is NULL
 * if all are 0. */
static lac_status reorder_zero_points(const laci_plan *plan, const laci_pair *p, double **zeros,
                                      lac_error *err) {
  const laci_weight_view *view = p->view;
  *zeros = NULL;
  if (!view || !view->zero || !view->n_scales) return LAC_OK;
  size_t n = (size_t)laci_shape_count(&p->old->shape);
  double *old = laci_alloc(n, sizeof *old);
  *zeros = laci_alloc(n, sizeof **zeros);
  for (size_t e = 0; old && e < n; e++) old[e] = view->zero[laci_scale_index_of(view, (int64_t)e)];
  lac_status st = old && *zeros
                      ? laci_reorder(&p->old->shape, sizeof *old,
                                     &plan->orders.values[p->old->value], old, *zeros, err)
                      : laci_fail_memory(err, p->old->name);
  laci_free(old);
  return st;
}

static lac_status compare_reordered_tensor(const laci_plan *plan, const laci_pair *p,
                                           lac_error *err) {
  const laci_value_orders *orders = &plan->orders.values[p->old->value];
  double *zeros = NULL;
  uint8_t *moved = laci_alloc(p->old->size_bytes, 1);
  if (!moved) return laci_fail_memory(err, p->old->name);
  lac_status st = laci_reorder(&p->old->shape, lac_dtype_size(p->old->dtype), orders, p->old->bytes,
                               moved, err);
  if (!st) st = reorder_zero_points(plan, p, &zeros, err);
  laci_stored view = *p->old;
  view.bytes = moved;
  int64_t n = laci_shape_count(&p->old->shape);
  for (int64_t e = 0; e < n && !st; e++) {
    uint64_t wanted = laci_element_bits(&view, e), found = laci_element_bits(p->fresh, e);
    if (wanted == found ||
        (p->view && laci_is_masked_value(p->old->dtype, found, zeros ? zeros[e] : 0)))
      continue;
    st = laci_fail(err, LAC_PROOF_FAILED,
                   "%s: element %lld is neither the original's, reordered, nor masked out",
                   p->old->name, (long long)e);
  }
  laci_free(zeros);
  laci_free(moved);
  return st;
}

static bool are_nearly_equal(lac_dtype dtype, double found, double wanted) {
  bool wide = dtype == LAC_DTYPE_F32 || dtype == LAC_DTYPE_F64;
  return fabs(found - wanted) <= (wide ? 1e-6 : 1e-2) * fabs(wanted);
}

/* A weight g * v / |v| has a gain g. If v was masked, the new g must be the original g times the
 * factor by which the mask changed the norm of v. Compares both. */
static lac_status compare_rescaled_gain(const laci_plan *plan, const laci_pair *g,
                                        const laci_pair *v, lac_error *err) {
  int64_t n = laci_shape_count(&g->old->shape);
  uint8_t *old_v = laci_alloc(v->old->size_bytes, 1), *old_g = laci_alloc(g->old->size_bytes, 1);
  double *wanted = laci_alloc(2 * (size_t)n, sizeof *wanted);
  lac_status st = old_v && old_g && wanted ? LAC_OK : laci_fail_memory(err, g->old->name);
  if (!st)
    st = laci_reorder(&v->old->shape, lac_dtype_size(v->old->dtype),
                      &plan->orders.values[v->old->value], v->old->bytes, old_v, err);
  if (!st)
    st = laci_reorder(&g->old->shape, lac_dtype_size(g->old->dtype),
                      &plan->orders.values[g->old->value], g->old->bytes, old_g, err);
  if (!st) {
    laci_read_f64(g->old->dtype, old_g, 0, n, wanted);
    laci_read_f64(g->fresh->dtype, g->fresh->bytes, 0, n, wanted + n);
    st = laci_rescale_gain(v->old, g->gain_of->gain_axis, old_v, v->fresh->bytes, wanted, err);
  }
  for (int64_t k = 0; k < n && !st; k++) {
    if (are_nearly_equal(g->old->dtype, wanted[n + k], wanted[k])) continue;
    st = laci_fail(err, LAC_PROOF_FAILED, "%s: element %lld does not follow the norm of %s",
                   g->old->name, (long long)k, v->old->name);
  }
  laci_free(old_v);
  laci_free(old_g);
  laci_free(wanted);
  return st;
}

/* Does the weight have different zero points? If they are all equal, masked elements have one
 * value, so slices with equal contents were not masked. */
static bool has_differing_zero_points(const laci_weight_view *view) {
  for (int64_t k = 1; view->zero && k < view->n_scales; k++) {
    if (view->zero[k] != view->zero[0]) return true;
  }
  return false;
}

/* Matches the tensors of both networks by name; structure and shapes must agree. */
static lac_status pair_tensors_by_name(const laci_analysis *a, const laci_graph *changed,
                                       laci_pair *pairs, lac_error *err) {
  if (a->graph->n_nodes != changed->n_nodes || a->graph->n_stored != changed->n_stored) {
    return laci_fail(err, LAC_PROOF_FAILED,
                     "%d nodes and %d stored tensors, the original has %d and %d", changed->n_nodes,
                     changed->n_stored, a->graph->n_nodes, a->graph->n_stored);
  }
  for (int n = 0; n < changed->n_nodes; n++) {
    if (strcmp(changed->nodes[n].type, a->graph->nodes[n].type) == 0) continue;
    return laci_fail(err, LAC_PROOF_FAILED, "%s: a %s, the original has a %s there",
                     changed->nodes[n].name, changed->nodes[n].type, a->graph->nodes[n].type);
  }
  for (int s = 0; s < changed->n_stored; s++) {
    const laci_stored *old = &a->graph->stored[s];
    int value = laci_graph_find_value(changed, old->name);
    int other = value < 0 ? -1 : changed->values[value].stored;
    if (other < 0)
      return laci_fail(err, LAC_PROOF_FAILED, "%s: the original's tensor is missing", old->name);
    const laci_stored *fresh = &changed->stored[other];
    if (fresh->dtype != old->dtype || fresh->size_bytes != old->size_bytes ||
        !laci_shape_equal(&fresh->shape, &old->shape)) {
      char here[96], there[96];
      return laci_fail(
          err, LAC_PROOF_FAILED, "%s: %s %s, the original's is %s %s", old->name,
          lac_dtype_name(fresh->dtype), laci_shape_text(&fresh->shape, here, sizeof here),
          lac_dtype_name(old->dtype), laci_shape_text(&old->shape, there, sizeof there));
    }
    pairs[s] = (laci_pair){.old = old, .fresh = fresh};
  }
  for (int l = 0; l < a->n_layers; l++) {
    laci_pair *p = &pairs[a->layers[l].stored];
    p->view = &a->layers[l].view;
    p->masked = has_differing_zero_points(p->view) ||
                hash_elements_unordered(p->old) != hash_elements_unordered(p->fresh);
    if (a->layers[l].gain >= 0) pairs[a->layers[l].gain].gain_of = &a->layers[l];
  }
  return LAC_OK;
}

lac_status laci_pruning_find_orders(laci_pruning *pruning, const laci_graph *changed,
                                    lac_error *err) {
  const laci_analysis *a = pruning->analysis;
  laci_plan *plan = pruning->plan;
  laci_pair *pairs = laci_alloc((size_t)a->graph->n_stored, sizeof *pairs);
  lac_status st =
      pairs ? pair_tensors_by_name(a, changed, pairs, err) : laci_fail_memory(err, "the match");
  if (!st) st = laci_match_orders(plan, pairs, err);
  if (!st) st = laci_plan_make_value_orders(plan, err);
  for (int s = 0; s < a->graph->n_stored && !st; s++) {
    const laci_pair *p = &pairs[s];
    if (p->gain_of) st = compare_rescaled_gain(plan, p, &pairs[p->gain_of->stored], err);
    else if (lac_dtype_size(p->old->dtype) && p->old->shape.rank >= 0)
      st = compare_reordered_tensor(plan, p, err);
    else if (memcmp(p->old->bytes, p->fresh->bytes, p->old->size_bytes) != 0) {
      st = laci_fail(err, LAC_PROOF_FAILED, "%s: differs from the original's", p->old->name);
    }
  }
  laci_free(pairs);
  return st;
}
