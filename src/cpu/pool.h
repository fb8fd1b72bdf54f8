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

/** Creates a pool. n_threads <= 0: the number that the context sets (lacuna/context.h), or else the
 * number of cores that the process may use (sched_getaffinity). 1: no thread is started. If the
 * system does not let all threads start, the pool has fewer, and a warning is logged. */
LAC_MUST_CHECK lac_status laci_pool_create(int n_threads, laci_pool **pool, lac_error *err);
/** Returns how many threads laci_pool_create tries to have, for its parameter n_threads. */
int laci_pool_threads_wanted(int n_threads);
/** Threads of the caller. `run` calls part(arg, index) for index 0 to n - 1, each once, in any
 * order and on any threads, and returns when all calls have returned. Several threads may call it
 * at the same time. */
typedef struct laci_parallel {
  void (*run)(void *context, void (*part)(void *arg, int index), void *arg, int n);
  void *context;
} laci_parallel;

/** Creates a pool like laci_pool_create, but its loops run on the caller's threads: no thread is
 * started, and a loop is n_threads calls of `part`. parallel NULL: the pool has its own threads.
 * The struct is copied. */
LAC_MUST_CHECK lac_status laci_pool_create_on(const laci_parallel *parallel, int n_threads,
                                              laci_pool **pool, lac_error *err);
void laci_pool_destroy(laci_pool *pool);
int laci_pool_threads(const laci_pool *pool); /* returns the number of threads; 1 for pool NULL */

typedef void laci_pool_body(int64_t begin, int64_t end, void *context);

/** Divides the indices [0, n) into parts of at most `grain` (>= 1), and these into one stretch for
 * each thread. A thread takes the parts of its own stretch in order, then those that are left of
 * others; the call returns when all are done. The threads run in the caller's context
 * (lacuna/context.h). pool NULL: the caller's thread does everything. Calls from inside a body run
 * on the calling thread alone. */
void laci_pool_for(laci_pool *pool, int64_t n, int64_t grain, laci_pool_body *body, void *context);
/** Runs a loop like laci_pool_for, but idle threads take the parts in order: for a loop whose first
 * parts take longest. */
void laci_pool_for_in_order(laci_pool *pool, int64_t n, int64_t grain, laci_pool_body *body,
                            void *context);
/** Returns the index of the calling thread, 0 to laci_pool_threads() - 1, among the threads of the
 * loop whose body calls it, for memory that each thread has of its own. 0 outside of a body, and
 * where a loop runs on its caller alone. */
int laci_pool_thread_index(void);

#endif
