/* SPDX-License-Identifier: Apache-2.0
 * A search shared by processes: who searches which problem, and what each found, at all. The same
 * problems in the same order everywhere. */
#ifndef LACI_PERMUTE_PLAN_SHARE_H
#define LACI_PERMUTE_PLAN_SHARE_H

#include "lacuna/status.h"

typedef struct laci_comm laci_comm;
typedef struct laci_found laci_found;

/** owner [n]: the process that searches each problem. Problems are dealt out from the most to the
 * least expensive, each to the process with the least cost so far; among equals, to the one with
 * the lowest number. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_plan_deal(const double *cost, int n, int n_processes, int *owner,
                                         lac_error *err);

/** Problems that were dealt out; views. */
typedef struct laci_dealt {
  int n;
  laci_found *found; /* [n], as all that follow */
  const int *n_channels, *owner;
} laci_dealt;

/** After the search: st is how it went here. found[k] becomes what process owner[k] has there.
 * Waits for as long as the others search. All end with the same status, the first failure of any,
 * or LAC_PEER. */
LAC_MUST_CHECK lac_status laci_plan_gather(laci_comm *comm, lac_status st, const laci_dealt *dealt,
                                           lac_error *err);

#endif
