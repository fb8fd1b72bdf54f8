/* SPDX-License-Identifier: Apache-2.0
 * Recovering the orders between two networks of the same structure from their contents.
 *
 * A channel is known by what stands in its slices of the tensors that were not masked (as a
 * multiset, for the other axes may be reordered too); where that leaves several, by the masked
 * tensors: what is not zero in the new slice must be in the old one. Every element is compared at
 * the end, so a wrong guess cannot pass. */
#include "prune/prune.h"

#include <math.h>
#include <string.h>

#include "analyze/analyze.h"
#include "base/error.h"
#include "graph/graph.h"
#include "permute/orders.h"
#include "permute/plan.h"
#include "prune/prune_in.h"
#include "tensor/buf.h"
#include "tensor/narrow.h"
#include "tensor/shape.h"

typedef struct pair {
  const laci_stored *old, *fresh;
  const laci_weight_view *view; /* of a layer's weight, which may be masked; NULL: it is none */
  bool masked;                  /* its contents are not a rearrangement of the old ones */
  const laci_layer *gain_of;    /* it follows the norm of this layer's weight; NULL: it does not */
} pair;

typedef struct matcher {
  laci_plan *plan;
  pair *pairs;                     /* [n_stored] */
  uint64_t *old_print, *new_print; /* [n_channels] of the current group */
  int n;
  const int32_t *position; /* of the current slot */
  bool masked_pass, no_memory;
  uint8_t *possible; /* [new * n + old], masked pass */
} matcher;

static uint64_t element(const laci_stored *stored, int64_t at) {
  size_t size = lac_dtype_size(stored->dtype);
  uint64_t bits = 0;
  memcpy(&bits, stored->bytes + (size_t)at * size, size);
  return bits;
}

static uint64_t scatter(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

static uint64_t multiset(const laci_stored *stored) {
  uint64_t sum = 0;
  int64_t n = laci_shape_count(&stored->shape);
  for (int64_t e = 0; e < n; e++) sum += scatter(element(stored, e) + 0x9E37u);
  return sum;
}

static bool is_value(lac_dtype dtype, uint64_t bits, double value) {
  if (laci_dtype_is_float(dtype)) return bits == 0 || bits == laci_negative_zero(dtype);
  return laci_int_value(dtype, laci_int_wrap(dtype, (int64_t)bits)) == value;
}

/* May a masked element hold this? Which channel's zero point it has to be is known only with the
 * order. */
static bool may_be_masked(const pair *p, uint64_t bits) {
  const laci_weight_view *view = p->view;
  if (!view->zero || !view->n_scales) return is_value(view->dtype, bits, 0);
  for (int64_t k = 0; k < view->n_scales; k++) {
    if (is_value(view->dtype, bits, view->zero[k])) return true;
  }
  return false;
}

/* The elements of index `at` along axis (of rows of a convolution group only, where conv_groups >
 * 0). */
typedef struct slice {
  int64_t outer, size, inner; /* of the axis */
  int64_t at;
  int64_t first_row, n_rows; /* of the outer index */
} slice;

static slice slice_of(const laci_stored *stored, int axis, int conv_groups, int64_t position) {
  slice s = {.outer = laci_shape_count_range(&stored->shape, 0, axis),
             .size = stored->shape.dims[axis],
             .inner = laci_shape_count_range(&stored->shape, axis + 1, stored->shape.rank)};
  s.at = position % s.size;
  s.n_rows = s.outer;
  if (conv_groups > 0) {
    s.n_rows = s.outer / conv_groups;
    s.first_row = position / s.size * s.n_rows;
  }
  return s;
}

static int64_t slice_count(const slice *s) { return s->n_rows * s->inner; }
static int64_t slice_element(const slice *s, int64_t k) {
  return ((s->first_row + k / s->inner) * s->size + s->at) * s->inner + k % s->inner;
}

/* sums[position] += what stands in the slice of every position, in one walk through the tensor. */
static void sum_slices(const laci_stored *stored, int axis, int conv_groups, uint64_t *sums) {
  slice s = slice_of(stored, axis, conv_groups, 0);
  int64_t at = 0, n_rows = s.n_rows * (conv_groups > 0 ? conv_groups : 1);
  for (int64_t row = 0; row < n_rows; row++) {
    uint64_t *to = sums + row / s.n_rows * s.size;
    for (int64_t position = 0; position < s.size; position++) {
      uint64_t sum = 0;
      for (int64_t k = 0; k < s.inner; k++, at++) sum += scatter(element(stored, at) + 0x9E37u);
      to[position] += sum;
    }
  }
}

static void add_prints(matcher *m, const pair *p, int stored_id, int axis, int conv_groups) {
  int64_t n = p->old->shape.dims[axis] * (conv_groups > 0 ? conv_groups : 1);
  uint64_t *sums = laci_alloc(2 * (size_t)n, sizeof *sums);
  m->no_memory = m->no_memory || !sums;
  if (!sums) return;
  sum_slices(p->old, axis, conv_groups, sums);
  sum_slices(p->fresh, axis, conv_groups, sums + n);
  uint64_t salt = scatter((uint64_t)stored_id * 64 + (uint64_t)axis);
  for (int c = 0; c < m->n; c++) {
    int64_t at = m->position[c] % n;
    m->old_print[c] = scatter(m->old_print[c] ^ (sums[at] + salt));
    m->new_print[c] = scatter(m->new_print[c] ^ (sums[n + at] + salt));
  }
  laci_free(sums);
}

/* A set of elements: places are found by their scattered bits, which are stored; 0 is a free place,
 * and the one element that scatters to it counts as present. */
typedef struct element_set {
  uint64_t *places, mask;
} element_set;

static bool set_create(element_set *set, int64_t n) {
  uint64_t size = 16;
  while (size < 2 * (uint64_t)n) size *= 2;
  *set = (element_set){.places = laci_alloc(size, sizeof *set->places), .mask = size - 1};
  return set->places != NULL;
}

static uint64_t *set_place(const element_set *set, uint64_t scattered) {
  uint64_t at = scattered & set->mask;
  while (set->places[at] && set->places[at] != scattered) at = (at + 1) & set->mask;
  return &set->places[at];
}

static void set_fill(element_set *set, const laci_stored *from, const slice *s) {
  memset(set->places, 0, (set->mask + 1) * sizeof *set->places);
  for (int64_t k = 0; k < slice_count(s); k++) {
    uint64_t scattered = scatter(element(from, slice_element(s, k)));
    *set_place(set, scattered) = scattered;
  }
}

static bool set_has(const element_set *set, uint64_t bits) {
  uint64_t scattered = scatter(bits);
  return *set_place(set, scattered) == scattered;
}

/* Does the set hold the first elements of a new slice that are not masked out? */
static bool set_fits(const element_set *set, const pair *p, const slice *s) {
  enum { ENOUGH = 16 };
  int n_tried = 0;
  for (int64_t k = 0; k < slice_count(s) && n_tried < ENOUGH; k++) {
    uint64_t bits = element(p->fresh, slice_element(s, k));
    if (may_be_masked(p, bits)) continue;
    if (!set_has(set, bits)) return false;
    n_tried++;
  }
  return true;
}

/* Rules out old channels whose slice lacks something that stands in the new one. */
static void rule_out(matcher *m, const pair *p, int axis, int conv_groups) {
  slice s = slice_of(p->old, axis, conv_groups, m->position[0]);
  element_set set;
  if (!set_create(&set, slice_count(&s))) {
    m->no_memory = true;
    return;
  }
  for (int old = 0; old < m->n; old++) {
    s = slice_of(p->old, axis, conv_groups, m->position[old]);
    set_fill(&set, p->old, &s);
    for (int fresh = 0; fresh < m->n; fresh++) {
      uint8_t *possible = &m->possible[(int64_t)fresh * m->n + old];
      slice t = slice_of(p->old, axis, conv_groups, m->position[fresh]);
      if (*possible) *possible = set_fits(&set, p, &t);
    }
  }
  laci_free(set.places);
}

static void visit_place(int stored_id, int axis, int conv_groups, void *context) {
  matcher *m = context;
  const pair *p = &m->pairs[stored_id];
  if (p->masked != m->masked_pass || !m->n || p->gain_of) return;
  if (m->masked_pass) rule_out(m, p, axis, conv_groups);
  else add_prints(m, p, stored_id, axis, conv_groups);
}

static void visit_slots(matcher *m, int g, bool masked_pass) {
  m->masked_pass = masked_pass;
  for (int s = 0; s < laci_group_slots(m->plan->analysis, g); s++) {
    laci_slot slot = laci_group_slot(m->plan->analysis, g, s);
    m->position = slot.position;
    laci_track_stored_axes(m->plan->analysis, slot.track, visit_place, m);
  }
}

/* The old channel for every new place; the same place is preferred where several would do. */
static lac_status match_group(matcher *m, int g, lac_error *err) {
  int n = m->n = m->plan->analysis->groups[g].n_channels;
  m->old_print = laci_alloc((size_t)n, sizeof *m->old_print);
  m->new_print = laci_alloc((size_t)n, sizeof *m->new_print);
  m->possible = laci_alloc((size_t)n * (size_t)n, 1);
  uint8_t *used = laci_alloc((size_t)n, 1);
  lac_status st = m->old_print && m->new_print && m->possible && used
                      ? LAC_OK
                      : laci_fail_memory(err, "the match");
  if (!st) {
    visit_slots(m, g, false);
    bool several = false;
    for (int c = 0; c < n; c++) {
      int count = 0;
      for (int old = 0; old < n; old++) {
        m->possible[(int64_t)c * n + old] = m->new_print[c] == m->old_print[old];
        count += m->possible[(int64_t)c * n + old];
      }
      several |= count > 1;
    }
    if (several) visit_slots(m, g, true);
    if (m->no_memory) st = laci_fail_memory(err, "the match");
  }
  for (int c = 0; c < n && !st; c++) {
    int best = m->possible[(int64_t)c * n + c] && !used[c] ? c : -1;
    for (int old = 0; best < 0 && old < n; old++) {
      if (m->possible[(int64_t)c * n + old] && !used[old]) best = old;
    }
    if (best < 0) {
      st = laci_fail(err, LAC_PROOF_FAILED,
                     "group %d: channel %d is none of the original's channels", g + 1, c);
      break;
    }
    used[best] = 1;
    m->plan->found[g].order[c] = best;
  }
  laci_free(used);
  laci_free(m->old_print);
  laci_free(m->new_print);
  laci_free(m->possible);
  return st;
}

/* The zero point of every element, reordered as the elements are; *zeros NULL: 0 for all. */
static lac_status place_zeros(const laci_plan *plan, const pair *p, double **zeros,
                              lac_error *err) {
  const laci_weight_view *view = p->view;
  *zeros = NULL;
  if (!view || !view->zero || !view->n_scales) return LAC_OK;
  size_t n = (size_t)laci_shape_count(&p->old->shape);
  double *old = laci_alloc(n, sizeof *old);
  *zeros = laci_alloc(n, sizeof **zeros);
  for (size_t e = 0; old && e < n; e++) old[e] = view->zero[laci_scale_of(view, (int64_t)e)];
  lac_status st = old && *zeros
                      ? laci_reorder(&p->old->shape, sizeof *old,
                                     &plan->orders.values[p->old->value], old, *zeros, err)
                      : laci_fail_memory(err, p->old->name);
  laci_free(old);
  return st;
}

static lac_status compare_tensor(const laci_plan *plan, const pair *p, lac_error *err) {
  const laci_value_orders *orders = &plan->orders.values[p->old->value];
  double *zeros = NULL;
  uint8_t *moved = laci_alloc(p->old->size_bytes, 1);
  if (!moved) return laci_fail_memory(err, p->old->name);
  lac_status st = laci_reorder(&p->old->shape, lac_dtype_size(p->old->dtype), orders, p->old->bytes,
                               moved, err);
  if (!st) st = place_zeros(plan, p, &zeros, err);
  laci_stored view = *p->old;
  view.bytes = moved;
  int64_t n = laci_shape_count(&p->old->shape);
  for (int64_t e = 0; e < n && !st; e++) {
    uint64_t wanted = element(&view, e), found = element(p->fresh, e);
    if (wanted == found || (p->view && is_value(p->old->dtype, found, zeros ? zeros[e] : 0)))
      continue;
    st = laci_fail(err, LAC_PROOF_FAILED,
                   "%s: element %lld is neither the original's, reordered, nor masked out",
                   p->old->name, (long long)e);
  }
  laci_free(zeros);
  laci_free(moved);
  return st;
}

static bool is_near(lac_dtype dtype, double found, double wanted) {
  bool wide = dtype == LAC_DTYPE_F32 || dtype == LAC_DTYPE_F64;
  return fabs(found - wanted) <= (wide ? 1e-6 : 1e-2) * fabs(wanted);
}

/* g of a weight g * v / |v|: as the original's, times what the mask did to the norm. */
static lac_status compare_gain(const laci_plan *plan, const pair *g, const pair *v,
                               lac_error *err) {
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
    laci_read_f(g->old->dtype, old_g, 0, n, wanted);
    laci_read_f(g->fresh->dtype, g->fresh->bytes, 0, n, wanted + n);
    st = laci_follow_norm(v->old, g->gain_of->gain_axis, old_v, v->fresh->bytes, wanted, err);
  }
  for (int64_t k = 0; k < n && !st; k++) {
    if (is_near(g->old->dtype, wanted[n + k], wanted[k])) continue;
    st = laci_fail(err, LAC_PROOF_FAILED, "%s: element %lld does not follow the norm of %s",
                   g->old->name, (long long)k, v->old->name);
  }
  laci_free(old_v);
  laci_free(old_g);
  laci_free(wanted);
  return st;
}

/* Tensors go together by name; structure and shapes must be the same. */
static lac_status pair_up(const laci_analysis *a, const laci_graph *changed, pair *pairs,
                          lac_error *err) {
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
    pairs[s] = (pair){.old = old, .fresh = fresh};
  }
  for (int l = 0; l < a->n_layers; l++) {
    pair *p = &pairs[a->layers[l].stored];
    p->view = &a->layers[l].view;
    p->masked = multiset(p->old) != multiset(p->fresh);
    if (a->layers[l].gain >= 0) pairs[a->layers[l].gain].gain_of = &a->layers[l];
  }
  return LAC_OK;
}

lac_status laci_pruning_explain(laci_pruning *pruning, const laci_graph *changed, lac_error *err) {
  const laci_analysis *a = pruning->analysis;
  laci_plan *plan = pruning->plan;
  matcher m = {.plan = plan};
  m.pairs = laci_alloc((size_t)a->graph->n_stored, sizeof *m.pairs);
  lac_status st = m.pairs ? pair_up(a, changed, m.pairs, err) : laci_fail_memory(err, "the match");
  for (int g = 0; g < a->n_groups && !st; g++) {
    if (!a->groups[g].frozen) st = match_group(&m, g, err);
  }
  if (!st) st = laci_plan_complete(plan, err);
  for (int s = 0; s < a->graph->n_stored && !st; s++) {
    const pair *p = &m.pairs[s];
    if (p->gain_of) st = compare_gain(plan, p, &m.pairs[p->gain_of->stored], err);
    else if (lac_dtype_size(p->old->dtype) && p->old->shape.rank >= 0)
      st = compare_tensor(plan, p, err);
    else if (memcmp(p->old->bytes, p->fresh->bytes, p->old->size_bytes) != 0) {
      st = laci_fail(err, LAC_PROOF_FAILED, "%s: differs from the original's", p->old->name);
    }
  }
  laci_free(m.pairs);
  return st;
}
