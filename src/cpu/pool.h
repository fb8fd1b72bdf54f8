/* SPDX-License-Identifier: Apache-2.0
 * A pool of worker threads and parallel-for over a range.
 *
 * Which thread computes which index never changes a result: callers write disjoint outputs, and
 * reductions are done by the caller in index order. A process that is forked has none of the
 * workers: there, the caller does all. */
#ifndef LACI_CPU_POOL_H
#define LACI_CPU_POOL_H

#include <stdint.h>

#include "lacuna/status.h"

typedef struct laci_pool laci_pool;

/** n_threads <= 0: as many as the context says (lacuna/context.h), else as the cores this process
 * may use (sched_getaffinity). 1: no thread is started. Where the system lets fewer start, the pool
 * has fewer, with a warning. */
LAC_MUST_CHECK lac_status laci_pool_create(int n_threads, laci_pool **pool, lac_error *err);
void laci_pool_destroy(laci_pool *pool);
int laci_pool_threads(const laci_pool *pool); /* NULL: 1 */

typedef void laci_pool_body(int64_t begin, int64_t end, void *context);

/** Cuts [0, n) into parts of at most `grain` (>= 1) indices, handed out in order to idle threads;
 * returns when all are done. They work in the caller's context. pool NULL: all in the caller. Not
 * to be called from inside a body (runs serially there). */
void laci_pool_for(laci_pool *pool, int64_t n, int64_t grain, laci_pool_body *body, void *context);

#endif
