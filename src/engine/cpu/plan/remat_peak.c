/* SPDX-License-Identifier: Apache-2.0
 * Computes how much memory a plan would need for a choice of kept values. The fused nodes are
 * visited in their order, recomputations before their first reader, and the sizes of live values
 * are added up. Weights and scratch memory are the same for every plan and are not counted. Outputs
 * are freed as soon as no node reads them. */
#include "base/memory.h"
#include "engine/cpu/plan/remat.h"
#include "graph/ops.h"
#include "graph/op.h"

/* ---- The order ---- */

typedef struct ordering {
  const laci_remat *r;
  int n, *order; /* order: [n] a step, or ~step for its recomputation */
  bool *placed;  /* [forward steps] the recomputation is in the order already */
  bool *wanted;  /* [forward steps] the recomputation must be added to the order next */
} ordering;

/** Adds the recomputation of a step to the order, after the recomputations that it needs. */
static void add_recomputation(ordering *o, int step) {
  if (o->placed[step]) return;
  int first = step, n_open = 1;
  o->wanted[step] = true;
  for (int s = step; n_open > 0; s--) {
    if (!o->wanted[s]) continue;
    n_open--;
    first = s;
    const laci_remat_step *at = &o->r->steps[s];
    for (int i = 0; i < at->n_reads; i++) {
      if (!laci_remat_is_recomputed(o->r, at->reads[i])) continue;
      int from = o->r->producer[at->reads[i]];
      n_open += !o->wanted[from] && !o->placed[from];
      if (!o->placed[from]) o->wanted[from] = true;
    }
  }
  for (int s = first; s <= step; s++) {
    if (!o->wanted[s]) continue;
    o->wanted[s] = false;
    o->placed[s] = true;
    o->order[o->n++] = ~s;
  }
}

int laci_remat_write_order(const laci_remat *r, int *order) {
  size_t n_forward = (size_t)r->n_forward + 1;
  ordering o = {.r = r,
                .order = order,
                .placed = laci_alloc(n_forward, sizeof *o.placed),
                .wanted = laci_alloc(n_forward, sizeof *o.wanted)};
  bool whole = o.placed && o.wanted;
  for (int s = 0; s < r->n_steps && whole; s++) {
    const laci_remat_step *step = &r->steps[s];
    for (int at = 0; at < step->n_reads && s >= r->n_forward; at++) {
      if (laci_remat_is_recomputed(r, step->reads[at]))
        add_recomputation(&o, r->producer[step->reads[at]]);
    }
    order[o.n++] = s;
  }
  laci_free(o.placed);
  laci_free(o.wanted);
  return whole ? o.n : -1;
}

/* ---- What is alive ---- */

typedef struct peak_search {
  const laci_remat *r;
  int n_order, *order;
  int *last_use; /* [2 * values: first copies, then recomputed copies] place of the last use in the
                    order; -1: none, or freed */
} peak_search;

static const laci_remat_step *step_at_place(const peak_search *w, int at) {
  int step = w->order[at];
  return &w->r->steps[step < 0 ? ~step : step];
}

/** Returns a value that a step reads, as an index of last_use; -1: it takes no memory. */
static int copy_index_of_read(const peak_search *w, int at, int i) {
  const laci_remat *r = w->r;
  int value = step_at_place(w, at)->reads[i];
  bool first_time = w->order[at] >= 0 && w->order[at] < r->n_forward;
  if (r->bytes[value] == 0) return -1;
  bool again = !first_time && laci_remat_is_recomputed(r, value);
  return again ? r->plan->graph->n_values + value : value;
}

static int copy_index_of_write(const peak_search *w, int at, int i) {
  int value = step_at_place(w, at)->writes[i];
  return w->order[at] < 0 ? w->r->plan->graph->n_values + value : value;
}

static void find_last_uses(peak_search *w) {
  for (int at = 0; at < w->n_order; at++) {
    const laci_remat_step *step = step_at_place(w, at);
    for (int i = 0; i < step->n_writes; i++) w->last_use[copy_index_of_write(w, at, i)] = at;
    for (int i = 0; i < step->n_reads; i++) {
      int read = copy_index_of_read(w, at, i);
      if (read >= 0) w->last_use[read] = at;
    }
  }
}

static int64_t bytes_of_copy_index(const peak_search *w, int id) {
  int n_values = w->r->plan->graph->n_values;
  return w->r->bytes[id < n_values ? id : id - n_values];
}

/** Does the operator need its whole input until it has finished? Products and windows do; others
 * may write the result over it. */
static bool needs_whole_operands(const laci_op *op) {
  static const laci_op *const windows[] = {
      &laci_op_conv_grad_input, &laci_op_conv_grad_weight,    &laci_op_max_pool,
      &laci_op_average_pool,    &laci_op_global_average_pool, &laci_op_global_max_pool,
      &laci_op_max_pool_grad,   &laci_op_average_pool_grad};
  bool is_window = !op || op->role == LACI_ROLE_ALLOW;
  for (size_t at = 0; at < sizeof windows / sizeof *windows; at++)
    is_window = is_window || op == windows[at];
  return is_window;
}

/** May the step write its result over this value, because it is the summand that is added to the
 * result? */
static bool may_overwrite_summand(const peak_search *w, int at, int value) {
  const laci_cpu_plan *plan = w->r->plan;
  const laci_fused *fused = &plan->fused[step_at_place(w, at)->fused];
  for (int post = 0; post < fused->n_posts; post++)
    if (fused->posts[post].value == value) return true;
  return !needs_whole_operands(plan->graph->nodes[fused->node].op);
}

static int64_t release_after_last_use(peak_search *w, int id, int at) {
  if (id < 0 || w->last_use[id] != at) return 0;
  w->last_use[id] = -1;
  return bytes_of_copy_index(w, id);
}

static int64_t find_peak_bytes(peak_search *w) {
  int64_t live = 0, peak = 0;
  for (int at = 0; at < w->n_order; at++) {
    const laci_remat_step *step = step_at_place(w, at);
    int64_t first = step->n_writes > 0 ? bytes_of_copy_index(w, copy_index_of_write(w, at, 0)) : 0,
            saved = 0;
    for (int i = 0; i < step->n_writes; i++)
      live += bytes_of_copy_index(w, copy_index_of_write(w, at, i));
    for (int i = 0; i < step->n_reads; i++) {
      int read = copy_index_of_read(w, at, i);
      bool dies = read >= 0 && w->last_use[read] == at && bytes_of_copy_index(w, read) == first;
      if (dies && may_overwrite_summand(w, at, step->reads[i])) saved = first;
    }
    if (live - saved > peak) peak = live - saved;
    for (int i = 0; i < step->n_reads; i++)
      live -= release_after_last_use(w, copy_index_of_read(w, at, i), at);
    for (int i = 0; i < step->n_writes; i++)
      live -= release_after_last_use(w, copy_index_of_write(w, at, i), at);
  }
  return peak;
}

int64_t laci_remat_peak_bytes(const laci_remat *r) {
  size_t n_values = (size_t)r->plan->graph->n_values;
  peak_search w = {.r = r,
                   .order = laci_alloc((size_t)(r->n_steps + r->n_forward) + 1, sizeof *w.order),
                   .last_use = laci_alloc(2 * n_values + 1, sizeof *w.last_use)};
  int64_t peak = -1;
  if (w.order && w.last_use) w.n_order = laci_remat_write_order(r, w.order);
  if (w.order && w.last_use && w.n_order >= 0) {
    for (size_t at = 0; at < 2 * n_values; at++) w.last_use[at] = -1;
    find_last_uses(&w);
    peak = find_peak_bytes(&w);
  }
  laci_free(w.order);
  laci_free(w.last_use);
  return peak;
}
