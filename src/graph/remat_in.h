/* SPDX-License-Identifier: Apache-2.0
 * What remat.c knows of a training graph, and what remat_plan.c decides: laci_remat.keep.
 *
 *     forward   a -> b -> c -> d | e -> f -> g | h ...         kept: d and g, which cross cuts
 *     backward  ... dh  e' f'  dg df de  a' b' c'  dd dc db da     ': clones
 */
#ifndef LACI_GRAPH_REMAT_IN_H
#define LACI_GRAPH_REMAT_IN_H

#include "graph/remat.h"

typedef struct laci_remat {
  laci_graph *graph;
  int n_forward;
  bool *live;     /* [nodes] leads to an output, and is no constant */
  bool *soft;     /* [nodes] a gradient whose input 1 only names what the forward node leaves */
  int64_t *bytes; /* [values] made by live nodes; 0 for all others */
  int *n_uses;    /* [values] by live nodes, and as outputs */
  int *last;      /* [values] last forward node that reads it; -1: none */
  bool *needed;   /* [values] a gradient reads what it holds */
  bool *keep;     /* [values] the forward part's value stays */
  bool *again;    /* [nodes] has a clone: follows from keep */
} laci_remat;

/** Fills `again`: what gradients need and is not kept, and what that needs in its turn. */
void laci_remat_close(laci_remat *r);
/** Does input `port` of a gradient, or of the clone of a forward node, come from a clone? */
bool laci_remat_reads_clone(const laci_remat *r, int node, int port);
/** Must the value be kept in any case? */
bool laci_remat_always_kept(const laci_remat *r, int value);
/** A value with one use may melt into its reader, and must be free to do so again. */
static inline bool laci_remat_may_keep(const laci_remat *r, int value) {
  return r->n_uses[value] > 1;
}
static inline bool laci_remat_is_forward(const laci_remat *r, int value) {
  int producer = r->graph->values[value].producer;
  return producer >= 0 && producer < r->n_forward && r->live[producer];
}

/** Bytes of values at the fullest moment of a step under keep and again, as an engine with one
 * arena and lifetimes would have them: to compare plans by. -1: no memory. remat_peak.c */
int64_t laci_remat_peak(const laci_remat *r);

/** Decides keep and again. *gains false: nothing is to be gained. remat_plan.c */
LAC_MUST_CHECK lac_status laci_remat_plan(laci_remat *r, bool *gains, lac_error *err);

#endif
