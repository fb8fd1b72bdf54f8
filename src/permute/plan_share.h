/* SPDX-License-Identifier: Apache-2.0
 * Divides a search among processes: which process searches which problem, and how they exchange the
 * results. All processes have the same problems in the same order. */
#ifndef LACI_PERMUTE_PLAN_SHARE_H
#define LACI_PERMUTE_PLAN_SHARE_H

#include "lacuna/status.h"

typedef struct laci_comm laci_comm;
typedef struct laci_search_result laci_search_result;

/** Sets owner[k] to the process that is to search problem k, for n problems. They are dealt out
 * from the most to the least expensive, each to the process with the least cost so far; among
 * equals, to the one with the lowest number. Fails with LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_plan_assign_owners(const double *cost, int n, int n_processes,
                                                  int *owner, lac_error *err);

/** n problems: the result of each, its number of channels, and the process that searches it
 * (owner). The arrays are borrowed. */
typedef struct laci_owned_problems {
  int n;
  laci_search_result *found; /* [n], as are all arrays below: the results */
  const int *n_channels, *owner;
} laci_owned_problems;

/** Exchanges results after the search: in all processes, found[k] becomes that of process owner[k].
 * st: status of this process's search. Waits until all processes have searched. All return the same
 * status: the first failure of any of them, or LAC_PEER. */
LAC_MUST_CHECK lac_status laci_plan_exchange_results(laci_comm *comm, lac_status st,
                                                     const laci_owned_problems *dealt,
                                                     lac_error *err);

#endif
