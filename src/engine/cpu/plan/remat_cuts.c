/* SPDX-License-Identifier: Apache-2.0
 * Chooses where the forward part is cut, so that a training step needs little memory.
 *
 * While the gradients of the segment between cuts i and j are computed, memory holds the values
 * that cross the cuts up to i, and the values that the gradients read inside the segment. So for a
 * limit on the sum of both, the cheapest cuts follow from left to right:
 *
 *   kept(j) = min over i < j of kept(i) + crossing(j), made after i
 *             where kept(i) + inside(i, j) <= limit
 *
 * Limits are tried from "all" downwards as long as cuts exist, and the peak of each plan is
 * computed (remat_peak.c). Of the plans near the least peak, the one with the least recomputation
 * wins.
 */
#include "engine/cpu/plan/remat.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/to_int.h"
#include "graph/ops.h"
#include "graph/op.h"

enum {
  SMALL_SHARE = 256, /* values smaller than 1/SMALL_SHARE of the largest value are always kept */
  MOST_CUTS = 400,   /* maximum number of cuts to choose from: of neighboring cuts, the one that the
                        fewest bytes cross is taken */
  MOST_LIMITS = 96,  /* maximum number of memory limits that are tried; each is 1/STEP smaller than
                        the one before */
  STEP = 12,
  PRODUCTS_A_BYTE = 8, /* multiplications that a core does in the time in which it moves one byte */
  NEAR_BEST = 16,      /* a peak counts as equal to the least if it is larger by at most
                          1/NEAR_BEST */
  LEAST_GAIN = 50,     /* a plan must save at least 1/LEAST_GAIN of the memory */
};

typedef struct cut {
  int after; /* the forward step after which the cut is; -1: it is before all steps */
  int n;     /* number of values that cross the cut and are not always kept */
  int *values;
  int64_t bytes;
} cut;

typedef struct planner {
  laci_remat *r;
  bool *always_kept; /* [n_values] the value is kept, whatever the cuts are */
  int n_cuts;
  cut *cuts;               /* [n_cuts]; the last one is the end of the forward part, which no value
                              crosses */
  int64_t *added, *inside; /* [n_cuts, n_cuts] for the segment from cut i to cut j: bytes that are
                              kept in addition, and memory while its gradients are computed */
  int64_t *kept;           /* [n_cuts] bytes that are kept up to each cut, if the cuts before it are
                              chosen to keep the fewest bytes */
  /* from: [n_cuts] index of the cut before cut j, in the cheapest choice of cuts that ends with j;
   * best: [n_best] indices of the cuts of the best plan */
  int *from, *best;
  int n_best;
} planner;

/* ---- Places to cut */

/** Is the value always kept? */
static bool is_always_kept(const laci_remat *r, int value) {
  const laci_fused *fused = &r->plan->fused[r->steps[r->producer[value]].fused];
  bool statistic = laci_fused_has_statistics(r->plan, fused) && value != fused->output;
  return statistic || r->plan->graph->values[value].is_output;
}

static void mark_always_kept(planner *p) {
  const laci_remat *r = p->r;
  int n_values = r->plan->graph->n_values;
  int64_t largest = 0;
  for (int v = 0; v < n_values; v++)
    if (r->needed[v] && laci_remat_is_forward(r, v) && r->bytes[v] > largest) largest = r->bytes[v];
  for (int v = 0; v < n_values; v++) {
    if (!laci_remat_is_forward(r, v)) continue;
    p->always_kept[v] = r->bytes[v] <= largest / SMALL_SHARE || is_always_kept(r, v);
  }
}

static lac_status store_crossing_values(cut *c, const int *alive, int n_alive, lac_error *err) {
  c->values = laci_alloc((size_t)n_alive + 1, sizeof *c->values);
  if (!c->values) return laci_fail_memory(err, "what is computed once more");
  memcpy(c->values, alive, (size_t)n_alive * sizeof *alive);
  c->n = n_alive;
  return LAC_OK;
}

/** Counts the values that cross a cut after each forward step but the last; with `fill`, lists the
 * values of the cuts that are left. alive: [n_values] scratch memory. */
static lac_status find_crossing_values(planner *p, int *alive, bool fill, lac_error *err) {
  const laci_remat *r = p->r;
  int n_alive = 0, next = 1;
  lac_status st = LAC_OK;
  for (int s = 0; s < r->n_forward - 1 && !st; s++) {
    const laci_remat_step *step = &r->steps[s];
    for (int at = 0; at < step->n_writes; at++)
      if (!p->always_kept[step->writes[at]]) alive[n_alive++] = step->writes[at];
    cut here = {.after = s};
    int left = 0;
    for (int at = 0; at < n_alive; at++) {
      if (r->last[alive[at]] <= s) continue;
      here.bytes += r->bytes[alive[at]];
      alive[left++] = alive[at];
    }
    n_alive = left;
    if (!fill) p->cuts[p->n_cuts++] = here;
    if (fill && p->cuts[next].after == s)
      st = store_crossing_values(&p->cuts[next++], alive, n_alive, err);
  }
  return st;
}

/** Reduces the cuts to about MOST_CUTS: of each run of neighboring cuts, the one that the fewest
 * bytes cross is kept. The first cut always stays. */
static void drop_neighbouring_cuts(planner *p) {
  int run = (p->n_cuts - 1 + MOST_CUTS - 1) / MOST_CUTS, n = 1;
  for (int first = 1; run > 1 && first < p->n_cuts; first += run) {
    int narrowest = first;
    for (int at = first; at < first + run && at < p->n_cuts; at++)
      if (p->cuts[at].bytes < p->cuts[narrowest].bytes) narrowest = at;
    p->cuts[n++] = p->cuts[narrowest];
  }
  if (run > 1) p->n_cuts = n;
}

/** Makes the list of cuts, from before the first forward step to after the last one. */
static lac_status list_possible_cuts(planner *p, lac_error *err) {
  int *alive = laci_alloc((size_t)p->r->plan->graph->n_values + 1, sizeof *alive);
  if (!alive) return laci_fail_memory(err, "what is computed once more");
  p->cuts[p->n_cuts++] = (cut){.after = -1};
  lac_status st = find_crossing_values(p, alive, false, err);
  drop_neighbouring_cuts(p);
  p->cuts[p->n_cuts++] = (cut){.after = p->r->n_forward - 1};
  if (!st) st = find_crossing_values(p, alive, true, err);
  laci_free(alive);
  return st;
}

/* ---- What a segment costs */

/** Returns the bytes of values that cross cut j and are computed after cut i; with `needed`, only
 * of those that gradients read. */
static int64_t bytes_crossing_cut(const planner *p, int i, int j, bool needed) {
  const cut *c = &p->cuts[j];
  int64_t sum = 0;
  for (int at = 0; at < c->n; at++) {
    int value = c->values[at];
    if (p->r->producer[value] > p->cuts[i].after && (!needed || p->r->needed[value]))
      sum += p->r->bytes[value];
  }
  return sum;
}

/** Computes the memory inside each segment, with two more values as large as its largest, for the
 * gradients that pass through it. */
static void compute_segment_memory(planner *p) {
  const laci_remat *r = p->r;
  for (int i = 0; i < p->n_cuts; i++) {
    int64_t needed = 0, largest = 0;
    for (int j = i + 1; j < p->n_cuts; j++) {
      for (int s = p->cuts[j - 1].after + 1; s <= p->cuts[j].after; s++) {
        const laci_remat_step *step = &r->steps[s];
        for (int at = 0; at < step->n_writes; at++) {
          int value = step->writes[at];
          if (p->always_kept[value]) continue;
          if (r->needed[value]) needed += r->bytes[value];
          if (r->bytes[value] > largest) largest = r->bytes[value];
        }
      }
      p->added[i * p->n_cuts + j] = bytes_crossing_cut(p, i, j, false);
      p->inside[i * p->n_cuts + j] = needed - bytes_crossing_cut(p, i, j, true) + 2 * largest;
    }
  }
}

/* ---- The cheapest cuts for a limit */

/** Finds the cheapest cuts under the limit; false: there are none. */
static bool choose_cheapest_cuts(planner *p, int64_t limit) {
  p->kept[0] = 0;
  for (int j = 1; j < p->n_cuts; j++) {
    p->kept[j] = -1;
    for (int i = 0; i < j; i++) {
      size_t at = (size_t)i * (size_t)p->n_cuts + (size_t)j;
      if (p->kept[i] < 0 || p->kept[i] + p->inside[at] > limit) continue;
      int64_t kept = p->kept[i] + p->added[at];
      if (p->kept[j] >= 0 && p->kept[j] <= kept) continue;
      p->kept[j] = kept;
      p->from[j] = i;
    }
  }
  return p->kept[p->n_cuts - 1] >= 0;
}

/** Sets `recomputed` for the steps that run again: those whose results gradients need but are not
 * kept, and all steps that these need. */
static void mark_recomputed(laci_remat *r) {
  memset(r->recomputed, 0, (size_t)r->n_steps * sizeof *r->recomputed);
  for (int v = 0; v < r->plan->graph->n_values; v++) {
    if (r->needed[v] && laci_remat_is_forward(r, v) && !r->keep[v])
      r->recomputed[r->producer[v]] = true;
  }
  for (int s = r->n_forward - 1; s >= 0; s--) {
    const laci_remat_step *step = &r->steps[s];
    for (int at = 0; at < step->n_reads && r->recomputed[s]; at++) {
      int value = step->reads[at];
      if (laci_remat_is_forward(r, value) && !r->keep[value])
        r->recomputed[r->producer[value]] = true;
    }
  }
}

/** Sets r->keep and r->recomputed for n cuts: indices in p->cuts, in descending order. */
static void mark_kept_and_recomputed(planner *p, const int *cuts, int n) {
  laci_remat *r = p->r;
  int last = n > 0 ? p->cuts[cuts[0]].after : -1;
  for (int v = 0; v < r->plan->graph->n_values; v++)
    r->keep[v] = laci_remat_is_forward(r, v) && (p->always_kept[v] || r->producer[v] > last);
  for (int k = 0; k < n; k++)
    for (int at = 0; at < p->cuts[cuts[k]].n; at++) r->keep[p->cuts[cuts[k]].values[at]] = true;
  mark_recomputed(r);
}

/** Returns how many products are summed for each element of a fused node's result; 0: it is no sum
 * of products. */
static int64_t count_products_per_element(const laci_cpu_plan *plan, const laci_fused *fused) {
  const laci_node *node = &plan->graph->nodes[fused->node];
  if (!node->op || node->op->role != LACI_ROLE_ALLOW || node->n_inputs < 2) return 0;
  if (node->inputs[0] < 0 || node->inputs[1] < 0) return 0;
  const laci_shape *x = laci_plan_shape(plan, node->inputs[0]);
  const laci_shape *w = laci_plan_shape(plan, node->inputs[1]);
  if (node->op == &laci_op_conv && w->rank > 0 && w->dims[0] > 0)
    return laci_shape_count(w) / w->dims[0];
  return x->rank > 0 ? x->dims[x->rank - 1] : 1;
}

/** Estimates the time of all recomputations, in multiplications, to compare plans by. */
static int64_t recomputation_work(const laci_remat *r) {
  int64_t work = 0;
  for (int s = 0; s < r->n_forward; s++) {
    const laci_remat_step *step = &r->steps[s];
    int64_t depth =
        r->recomputed[s] ? count_products_per_element(r->plan, &r->plan->fused[step->fused]) : 0;
    for (int at = 0; at < step->n_writes && r->recomputed[s]; at++) {
      int64_t bytes = r->bytes[step->writes[at]];
      work += bytes * PRODUCTS_A_BYTE + bytes / 4 * depth;
    }
  }
  return work;
}

typedef struct trial {
  /* among plans whose peak is at most this, the least work wins; < 0: the least peak wins */
  int64_t most;
  int64_t least; /* the least peak or work so far; < 0: none */
} trial;

/** Tries the cuts of every limit; the best ones are left in p->best. */
static lac_status try_memory_limits(planner *p, trial *t, lac_error *err) {
  int *cuts = laci_alloc((size_t)p->n_cuts, sizeof *cuts);
  double limit = (double)p->inside[p->n_cuts - 1];
  int64_t before = -1;
  lac_status st = cuts ? LAC_OK : laci_fail_memory(err, "what is computed once more");
  for (int k = 0; k < MOST_LIMITS && !st && choose_cheapest_cuts(p, laci_clamp_to_int64(limit));
       k++) {
    int n = 0;
    limit -= limit / STEP;
    if (p->kept[p->n_cuts - 1] == before)
      continue; /* the limit gives the same cuts as the one before */
    before = p->kept[p->n_cuts - 1];
    for (int at = p->from[p->n_cuts - 1]; at > 0; at = p->from[at]) cuts[n++] = at;
    mark_kept_and_recomputed(p, cuts, n);
    int64_t peak = laci_remat_peak_bytes(p->r),
            rank = t->most < 0 ? peak : recomputation_work(p->r);
    if (peak < 0) st = laci_fail_memory(err, "what is computed once more");
    if ((t->most >= 0 && peak > t->most) || (t->least >= 0 && rank >= t->least)) continue;
    t->least = rank;
    p->n_best = n;
    memcpy(p->best, cuts, (size_t)n * sizeof *cuts);
  }
  laci_free(cuts);
  return st;
}

static lac_status choose_cuts_by_peak(planner *p, bool *gains, lac_error *err) {
  trial peak = {-1, -1}, work = {.least = -1};
  mark_kept_and_recomputed(p, NULL, 0);
  int64_t all = laci_remat_peak_bytes(p->r);
  if (all < 0) return laci_fail_memory(err, "what is computed once more");
  lac_status st = try_memory_limits(p, &peak, err);
  *gains = !st && peak.least >= 0 && all - peak.least > all / LEAST_GAIN;
  if (!*gains) return st;
  int64_t near = peak.least + peak.least / NEAR_BEST, gain = all - all / LEAST_GAIN - 1;
  work.most = near < gain ? near : gain;
  st = try_memory_limits(p, &work, err);
  if (!st) mark_kept_and_recomputed(p, p->best, p->n_best);
  return st;
}

/* ---- All limits */

static lac_status search_best_cuts(planner *p, bool *gains, lac_error *err) {
  mark_always_kept(p);
  lac_status st = list_possible_cuts(p, err);
  if (st) return st;
  size_t n = (size_t)p->n_cuts;
  p->added = laci_alloc(n * n, sizeof *p->added);
  p->inside = laci_alloc(n * n, sizeof *p->inside);
  p->kept = laci_alloc(n, sizeof *p->kept);
  p->from = laci_alloc(n, sizeof *p->from);
  p->best = laci_alloc(n, sizeof *p->best);
  if (!p->added || !p->inside || !p->kept || !p->from || !p->best)
    return laci_fail_memory(err, "what is computed once more");
  compute_segment_memory(p);
  return choose_cuts_by_peak(p, gains, err);
}

lac_status laci_remat_choose_cuts(laci_remat *r, bool *gains, lac_error *err) {
  planner p = {
      .r = r,
      .always_kept = laci_alloc((size_t)r->plan->graph->n_values + 1, sizeof *p.always_kept),
      .cuts = laci_alloc((size_t)r->n_forward + 2, sizeof *p.cuts)};
  *gains = false;
  lac_status st = p.always_kept && p.cuts ? search_best_cuts(&p, gains, err)
                                          : laci_fail_memory(err, "what is computed once more");
  for (int at = 0; at < p.n_cuts; at++) laci_free(p.cuts[at].values);
  laci_free(p.always_kept);
  laci_free(p.cuts);
  laci_free(p.added);
  laci_free(p.inside);
  laci_free(p.kept);
  laci_free(p.from);
  laci_free(p.best);
  return st;
}
