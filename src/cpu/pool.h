/* SPDX-License-Identifier: Apache-2.0
 * A pool of worker threads and parallel-for over a range.
 *
 * Which thread computes which index never changes a result: callers write disjoint outputs, and
 * reductions are done by the caller in index order. A forked process has no workers; there, the
 * caller computes everything. */
#ifndef LACI_CPU_POOL_H
#define LACI_CPU_POOL_H

#include <stdint.h>

#include "lacuna/status.h"

typedef struct laci_pool laci_pool;

/** Creates a pool. n_threads <= 0: as many as the context says (lacuna/context.h), or else as the
 * process may use cores (sched_getaffinity). 1: no thread is started. If the system does not let
 * all threads start, the pool has fewer, and a warning is logged. */
LAC_MUST_CHECK lac_status laci_pool_create(int n_threads, laci_pool **pool, lac_error *err);
/** Returns how many threads laci_pool_create tries to have for this n_threads. */
int laci_pool_threads_wanted(int n_threads);
/** The caller's threads: `run` calls part(arg, 0 .. n - 1), each once, in any order and on any
 * threads, and returns when all have returned. Several threads may call it at the same time. */
typedef struct laci_parallel {
  void (*run)(void *context, void (*part)(void *arg, int index), void *arg, int n);
  void *context;
} laci_parallel;

/** Creates a pool like laci_pool_create, but its loops run on the caller's threads, n_threads parts
 * at a time, and no thread is started. parallel NULL: the pool has its own threads. The struct is
 * copied. */
LAC_MUST_CHECK lac_status laci_pool_create_on(const laci_parallel *parallel, int n_threads,
                                              laci_pool **pool, lac_error *err);
void laci_pool_destroy(laci_pool *pool);
int laci_pool_threads(const laci_pool *pool); /* pool NULL: returns 1 */

typedef void laci_pool_body(int64_t begin, int64_t end, void *context);

/** Cuts [0, n) into parts of at most `grain` (>= 1) indices, which idle threads take in order;
 * returns when all are done. The threads run in the caller's context (lacuna/context.h). pool NULL:
 * the caller computes all. Calls from inside a body run on the calling thread alone. */
void laci_pool_for(laci_pool *pool, int64_t n, int64_t grain, laci_pool_body *body, void *context);

#endif
