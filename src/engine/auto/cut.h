/* SPDX-License-Identifier: Apache-2.0
 * Which nodes of a network run fast and which exactly, and in which order.
 *
 * The fast engine runs nodes whose shapes follow from those of the inputs; the exact one runs the
 * others: shapes that come from data, bodies of If, Loop and Scan. Nodes are grouped into phases:
 * all fast nodes that need no exact one are phase 0, all exact nodes that need nothing else than
 * those are phase 1, fast nodes after these phase 2, and so on. A node's phase is never before
 * those of the nodes that it reads, so that phases run one after the other. */
#ifndef LACI_ENGINE_AUTO_CUT_H
#define LACI_ENGINE_AUTO_CUT_H

#include "engine/engine.h"

typedef struct laci_auto_cut {
  const laci_graph *graph;
  laci_type *types; /* [n_values] as far as shapes follow from the inputs' */
  bool *fast;       /* [n_nodes] the fast engine runs it */
  bool *constant;   /* [n_nodes] its results are the same in every run, and the fast engine knows */
  int *phase;       /* [n_nodes] even: fast nodes, odd: exact ones */
  int n_phases;
  int n_exact;      /* nodes */
  lac_error reason; /* why the first of these is not fast */
} laci_auto_cut;

/** A cut that knows the types alone. *doubles: the network computes with elements of type f64,
 * which the fast engine holds as f32. Clear it in any case. */
LAC_MUST_CHECK lac_status laci_auto_cut_init(laci_auto_cut *cut, const laci_graph *graph,
                                             const laci_engine_options *options, bool *doubles,
                                             lac_error *err);
/** What the fast engine reaches. Fails as laci_engine_row.reach. */
LAC_MUST_CHECK lac_status laci_auto_cut_reach(laci_auto_cut *cut,
                                              const laci_engine_options *options, lac_error *err);
void laci_auto_cut_clear(laci_auto_cut *cut);

/** Phases of the nodes; fast ones with less work than a phase costs become exact. */
void laci_auto_cut_order(laci_auto_cut *cut);
/** The fast nodes of a phase become exact, and why. */
void laci_auto_cut_drop(laci_auto_cut *cut, int phase, const lac_error *why);

#endif
