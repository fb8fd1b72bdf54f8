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

#include "base/memory.h"
#include "engine/engine.h"

/** Minimum number of multiply-adds and results of a fast phase. A smaller one is not worth a plan,
 * and copies to its buffers and back. */
enum { LACI_AUTO_LEAST_WORK = 10000 };

typedef struct laci_auto_cut {
  const laci_graph *graph;
  laci_type *types; /* [n_values] type of each value, its shape known as far as it follows from the
                       shapes of the inputs */
  bool *fast;       /* [n_nodes] the fast engine runs the node */
  /* [n_nodes] the fast engine knows that the node's results are the same in every run */
  bool *constant;
  int *phase; /* [n_nodes] number of each node's phase; even: a phase of fast nodes, odd: of exact
                 ones */
  int n_phases;
  lac_error reason;     /* why the first exact node is not fast */
  const char **reasons; /* [n_nodes] why the fast engine does not run the node; NULL: it does */
  laci_arena memory;    /* memory of the reasons */
} laci_auto_cut;

/** Initializes a cut with the types of all values only. *doubles: set to whether the network
 * computes with elements of type f64, which the fast engine would hold as f32. Clear the cut in any
 * case. */
LAC_MUST_CHECK lac_status laci_auto_cut_init(laci_auto_cut *cut, const laci_graph *graph,
                                             const laci_engine_options *options, bool *doubles,
                                             lac_error *err);
/** Finds which nodes the fast engine can run (cut->fast). Fails as laci_engine_row.reach. */
LAC_MUST_CHECK lac_status laci_auto_cut_find_fast_nodes(laci_auto_cut *cut,
                                                        const laci_engine_options *options,
                                                        lac_error *err);
void laci_auto_cut_clear(laci_auto_cut *cut);

/** Counts the results of a node, and the multiplications and additions of products. */
int64_t laci_auto_cut_count_operations(const laci_auto_cut *cut, int node);
/** Assigns the nodes to phases. Fast nodes of a phase with fewer multiply-adds and results than
 * least_work become exact. */
void laci_auto_cut_assign_phases(laci_auto_cut *cut, int64_t least_work);
/** Makes the fast nodes of a phase exact, and records why. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_auto_cut_make_phase_exact(laci_auto_cut *cut, int phase,
                                                         const lac_error *why, lac_error *err);

#endif
