/* SPDX-License-Identifier: Apache-2.0
 * The data of recomputation: remat.c describes the fused nodes, and remat_cuts.c decides which
 * values are kept (laci_remat.keep).
 *
 *     forward   a -> b -> c -> d | e -> f -> g | h ...         kept: d and g, which cross cuts
 *     backward  ... dh  e' f'  dg df de  a' b' c'  dd dc db da     ': computed once more
 */
#ifndef LACI_ENGINE_CPU_PLAN_REMAT_H
#define LACI_ENGINE_CPU_PLAN_REMAT_H

#include "engine/cpu/plan/plan.h"

/** A fused node in the order of the plan. */
typedef struct laci_remat_step {
  int fused; /* index of the fused node in plan->fused */
  int n_reads, n_writes;
  /* [n_reads], [n_writes] values that the step reads and writes. A forward step's workspace is no
   * value: a gradient that reads it does not list the value that it stands for */
  int *reads, *writes;
} laci_remat_step;

typedef struct laci_remat {
  const laci_cpu_plan *plan;
  int n_steps, n_forward; /* the first n_forward steps are the forward part */
  laci_remat_step *steps;
  int *places;      /* memory of all steps' `reads` and `writes` */
  int *producer;    /* [values] the step that computes the value; -1: none */
  int64_t *bytes;   /* [values] size of values that steps compute; 0 for all others */
  int *last;        /* [values] last forward step that reads the value; -1: none */
  bool *needed;     /* [values] a step after the forward part reads the value */
  bool *keep;       /* [values] a value of the forward part stays in memory */
  bool *recomputed; /* [steps] the step runs again; follows from `keep` */
} laci_remat;

static inline bool laci_remat_is_forward(const laci_remat *r, int value) {
  return r->producer[value] >= 0 && r->producer[value] < r->n_forward;
}

/** Is the value computed a second time, so that steps after the forward part (and recomputations)
 * read that copy? */
static inline bool laci_remat_is_recomputed(const laci_remat *r, int value) {
  return laci_remat_is_forward(r, value) && !r->keep[value] && r->recomputed[r->producer[value]];
}

/** Writes the numbers of all steps into `order`, in their order, and ~s for the recomputation of
 * step s, before the first step that needs it. order: capacity n_steps + n_forward. Returns how
 * many numbers were written; -1: no memory. remat_peak.c */
int laci_remat_write_order(const laci_remat *r, int *order);
/** Returns the maximum number of bytes of values that exist at the same time in a run, with r->keep
 * and r->recomputed as they are. It is an estimate to compare plans by. -1: no memory.
 * remat_peak.c */
int64_t laci_remat_peak_bytes(const laci_remat *r);

/** Sets r->keep and r->recomputed. *gains is false where recomputation saves no memory.
 * remat_cuts.c */
LAC_MUST_CHECK lac_status laci_remat_choose_cuts(laci_remat *r, bool *gains, lac_error *err);

#endif
