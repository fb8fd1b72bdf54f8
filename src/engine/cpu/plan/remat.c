/* SPDX-License-Identifier: Apache-2.0
 * The schedule: the order in which fused nodes are computed, and which of them are recomputed, so
 * that a training step takes less memory.
 *
 * The forward part is cut where few values cross (remat_cuts.c). Values that cross a cut are kept,
 * and so are small ones. All other values between two cuts are dropped, and recomputed just before
 * the gradients of that segment read them. A recomputation is the same fused node over the same
 * values, lowered alike, so that gradients have the same bits. A recomputed batch norm reads the
 * statistics of its first computation, and does not update the running ones. Next: remat.h,
 * lower/lower.c. */
#include "base/memory.h"
#include "engine/cpu/plan/remat.h"

#include <string.h>

#include "base/error.h"

/* ---- Steps and values ---- */

/** Appends the values that the step reads and writes to `places`, and returns their number. */
static int list_values_of_step(laci_remat *r, laci_remat_step *step, int *places) {
  const laci_cpu_plan *plan = r->plan;
  const laci_fused *fused = &plan->fused[step->fused];
  bool by_workspace = !fused->pattern && laci_plan_workspace_producer(plan, fused->node) >= 0;
  step->reads = places;
  for (int at = 0; at < laci_fused_n_reads(plan, fused, false); at++) {
    int value = laci_fused_nth_read(plan, fused, at);
    if (value >= 0 && !(at == 1 && by_workspace)) step->reads[step->n_reads++] = value;
  }
  step->writes = places + step->n_reads;
  for (int at = 0; at < laci_fused_n_writes(plan, fused); at++) {
    int value = laci_fused_nth_write(plan, fused, at);
    if (value >= 0) step->writes[step->n_writes++] = value;
  }
  return step->n_reads + step->n_writes;
}

/** Fills the steps in the order of the plan. first_after: the first node after the forward part. */
static void list_steps(laci_remat *r, int first_after) {
  const laci_cpu_plan *plan = r->plan;
  int *places = r->places;
  for (int n = 0; n < plan->graph->n_nodes; n++) {
    if (plan->fused_at[n] < 0) continue;
    laci_remat_step *step = &r->steps[r->n_steps++];
    *step = (laci_remat_step){.fused = plan->fused_at[n]};
    places += list_values_of_step(r, step, places);
    if (n < first_after) r->n_forward = r->n_steps;
  }
}

static void find_value_bytes_and_readers(laci_remat *r) {
  const laci_cpu_plan *plan = r->plan;
  int64_t of_float = plan->bf16 ? 2 : 4;
  for (int v = 0; v < plan->graph->n_values; v++) r->producer[v] = r->last[v] = -1;
  for (int s = 0; s < r->n_steps; s++) {
    const laci_remat_step *step = &r->steps[s];
    for (int at = 0; at < step->n_writes; at++) {
      int v = step->writes[at];
      int64_t size = laci_plan_is_float(plan, v) ? of_float : (int64_t)sizeof(int64_t);
      r->producer[v] = s;
      r->bytes[v] = size * laci_shape_count(laci_plan_shape(plan, v));
    }
    for (int at = 0; at < step->n_reads; at++) {
      if (s < r->n_forward) r->last[step->reads[at]] = s;
      else r->needed[step->reads[at]] = true;
    }
  }
}

/* ---- Recomputations ---- */

/** Counts reads after a value's recomputation as reads of the second copy. twice: [values] the
 * value was recomputed already. */
static void count_reads_of_copies(laci_cpu_plan *plan, const laci_remat *r, bool *twice) {
  for (int t = 0; t < plan->n_scheduled; t++) {
    const laci_scheduled *scheduled = &plan->schedule[t];
    const laci_fused *fused = &plan->fused[scheduled->fused];
    for (int at = 0; at < laci_fused_n_reads(plan, fused, scheduled->recomputed); at++) {
      int value = laci_fused_nth_read(plan, fused, at);
      if (value < 0) continue;
      laci_plan_value *v = &plan->values[value];
      if (twice[value]) v->n_copy_uses++;
      v->n_uses += scheduled->recomputed - twice[value];
    }
    for (int at = 0; at < laci_fused_n_writes(plan, fused) && scheduled->recomputed; at++) {
      int value = laci_fused_nth_write(plan, fused, at);
      if (value >= 0) twice[value] = laci_remat_is_recomputed(r, value);
    }
  }
}

static lac_status make_schedule(laci_cpu_plan *plan, const laci_remat *r, lac_error *err) {
  size_t n = (size_t)(r->n_steps + r->n_forward);
  int *order = laci_alloc(n + 1, sizeof *order);
  bool *twice = laci_alloc((size_t)plan->graph->n_values + 1, sizeof *twice);
  plan->n_scheduled = order && twice ? laci_remat_write_order(r, order) : -1;
  plan->schedule =
      plan->n_scheduled < 0 ? NULL : laci_plan_alloc(plan, n + 1, sizeof *plan->schedule);
  for (int t = 0; plan->schedule && t < plan->n_scheduled; t++) {
    bool again = order[t] < 0;
    laci_fused *fused = &plan->fused[r->steps[again ? ~order[t] : order[t]].fused];
    plan->schedule[t] = (laci_scheduled){.fused = fused->node, .recomputed = again};
    if (again) plan->n_recomputed += fused->n_nodes;
    if (again) fused->recomputed = true;
  }
  if (plan->schedule) count_reads_of_copies(plan, r, twice);
  laci_free(order);
  laci_free(twice);
  return plan->schedule ? LAC_OK : laci_fail_memory(err, "the order of the fused nodes");
}

/* ---- The schedule ---- */

static bool allocate_arrays(laci_remat *r) {
  const laci_cpu_plan *plan = r->plan;
  size_t n_values = (size_t)plan->graph->n_values + 1, n_steps = 1, n_places = 1;
  for (int n = 0; n < plan->graph->n_nodes; n++) {
    if (plan->fused_at[n] < 0) continue;
    const laci_fused *fused = &plan->fused[plan->fused_at[n]];
    n_steps++;
    n_places += (size_t)(laci_fused_n_reads(plan, fused, false) + laci_fused_n_writes(plan, fused));
  }
  r->steps = laci_alloc(n_steps, sizeof *r->steps);
  r->recomputed = laci_alloc(n_steps, sizeof *r->recomputed);
  r->places = laci_alloc(n_places, sizeof *r->places);
  r->producer = laci_alloc(n_values, sizeof *r->producer);
  r->bytes = laci_alloc(n_values, sizeof *r->bytes);
  r->last = laci_alloc(n_values, sizeof *r->last);
  r->needed = laci_alloc(n_values, sizeof *r->needed);
  r->keep = laci_alloc(n_values, sizeof *r->keep);
  return r->steps && r->recomputed && r->places && r->producer && r->bytes && r->last &&
         r->needed && r->keep;
}

lac_status laci_plan_make_schedule(laci_cpu_plan *plan, int n_forward, lac_error *err) {
  laci_remat r = {.plan = plan};
  bool gains = false;
  lac_status st =
      allocate_arrays(&r) ? LAC_OK : laci_fail_memory(err, "the order of the fused nodes");
  if (!st) {
    list_steps(&r, n_forward);
    find_value_bytes_and_readers(&r);
    if (n_forward > 0) st = laci_remat_choose_cuts(&r, &gains, err);
  }
  if (!st && !gains) memset(r.recomputed, 0, (size_t)r.n_steps * sizeof *r.recomputed);
  if (!st) st = make_schedule(plan, &r, err);
  laci_free(r.steps);
  laci_free(r.recomputed);
  laci_free(r.places);
  laci_free(r.producer);
  laci_free(r.bytes);
  laci_free(r.last);
  laci_free(r.needed);
  laci_free(r.keep);
  return st;
}
