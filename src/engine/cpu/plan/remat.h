/* SPDX-License-Identifier: Apache-2.0
 * What remat.c knows of the fused nodes, and what remat_cuts.c decides: laci_remat.keep.
 *
 *     forward   a -> b -> c -> d | e -> f -> g | h ...         kept: d and g, which cross cuts
 *     backward  ... dh  e' f'  dg df de  a' b' c'  dd dc db da     ': computed once more
 */
#ifndef LACI_ENGINE_CPU_PLAN_REMAT_H
#define LACI_ENGINE_CPU_PLAN_REMAT_H

#include "engine/cpu/plan/plan.h"

/** A fused node in the order of the plan. */
typedef struct laci_remat_step {
  int fused; /* of plan->fused */
  int n_reads, n_writes;
  int *reads, *writes; /* values; a value of which only a workspace is read is not among them */
} laci_remat_step;

typedef struct laci_remat {
  const laci_cpu_plan *plan;
  int n_steps, n_forward; /* the first n_forward steps are the forward part */
  laci_remat_step *steps;
  int *places;      /* where reads and writes are */
  int *producer;    /* [values] the step that makes it; -1: none does */
  int64_t *bytes;   /* [values] made by steps; 0 for all others */
  int *last;        /* [values] last forward step that reads it; -1: none */
  bool *needed;     /* [values] a step after the forward part reads it */
  bool *keep;       /* [values] the forward part's value stays */
  bool *recomputed; /* [steps] is recomputed: follows from keep */
} laci_remat;

static inline bool laci_remat_is_forward(const laci_remat *r, int value) {
  return r->producer[value] >= 0 && r->producer[value] < r->n_forward;
}

/** Does a step after the forward part, or a recomputation, read a value that was computed once
 * more? */
static inline bool laci_remat_is_recomputed(const laci_remat *r, int value) {
  return laci_remat_is_forward(r, value) && !r->keep[value] && r->recomputed[r->producer[value]];
}

/** Writes all steps in their order, with the recomputation of step s as ~s before the first step
 * that needs it. order: capacity n_steps + n_forward. Returns how many there are; -1: no memory.
 * remat_peak.c */
int laci_remat_order(const laci_remat *r, int *order);
/** Bytes of values at the fullest moment of a run under keep and recomputed, as one arena and
 * lifetimes have them: to compare plans by. -1: no memory. remat_peak.c */
int64_t laci_remat_peak(const laci_remat *r);

/** Decides keep and recomputed. *gains false: nothing is to be gained. remat_cuts.c */
LAC_MUST_CHECK lac_status laci_remat_cut(laci_remat *r, bool *gains, lac_error *err);

#endif
