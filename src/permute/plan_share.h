/* SPDX-License-Identifier: Apache-2.0
 * A search divided among processes: which process searches which problem, and the exchange of the
 * results. All processes have the same problems in the same order. */
#ifndef LACI_PERMUTE_PLAN_SHARE_H
#define LACI_PERMUTE_PLAN_SHARE_H

#include "lacuna/status.h"

typedef struct laci_comm laci_comm;
typedef struct laci_found laci_found;

/** Fills owner [n] with the number of the process that is to search each problem. Problems are
 * dealt out from the most to the least expensive, each to the process with the least cost so far;
 * among equals, to the one with the lowest number. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_plan_assign_owners(const double *cost, int n, int n_processes,
                                                  int *owner, lac_error *err);

/** n problems, and for each its result, its number of channels, and the process that searches it
 * (owner). The arrays are views. */
typedef struct laci_owned_problems {
  int n;
  laci_found *found; /* [n], like all arrays below */
  const int *n_channels, *owner;
} laci_owned_problems;

/** Exchanges results after the search: found[k] of all processes becomes that of process owner[k].
 * st: the status of this process's search. Waits as long as others are still searching. All
 * processes return the same status, the first failure of any, or LAC_PEER. */
LAC_MUST_CHECK lac_status laci_plan_exchange_results(laci_comm *comm, lac_status st,
                                                     const laci_owned_problems *dealt,
                                                     lac_error *err);

#endif
