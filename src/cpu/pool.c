/* SPDX-License-Identifier: Apache-2.0
 * The worker pool: threads that take a loop's parts one after the other from an atomic counter.
 *
 * They are the threads of the OpenMP run time, which oneDNN uses, too, if there is one and each
 * thread has a core. Otherwise they are our own threads, which sleep until a loop is posted. A pool
 * may also be made on the caller's threads (laci_parallel).
 *
 * A loop is a stack variable of the thread that posts it. That thread may return only when no
 * worker uses the loop any more, so each worker counts itself in and out (n_inside) under the lock.
 * A worker that wakes too late finds no loop and sleeps on. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* declares sched_getaffinity, dladdr */
#endif
#include "cpu/pool.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <threads.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "cpu/denormals.h"
#include "cpu/openmp.h"

enum { MAX_THREADS = 1024 };

typedef struct loop {
  int64_t n, grain;
  laci_pool_body *body;
  void *context;
  /* context of the thread that posted the loop: workers use its log and its interrupt flag */
  lac_context *job;
  bool flushes; /* denormals are flushed to 0 in the posting thread, and so in its workers */
  _Atomic int64_t next;
} loop;

struct laci_pool {
  pthread_mutex_t lock;
  pthread_cond_t posted; /* signalled when a loop was posted, or the pool is closed */
  pthread_cond_t left;   /* signalled when the last worker has left the loop */
  loop *current;         /* the loop that runs; NULL: none does */
  uint64_t n_posted;     /* number of loops posted so far; a worker joins each loop only once */
  int n_inside;          /* number of workers inside the current loop */
  bool closing;
  bool borrows;           /* the workers are threads of the OpenMP run time */
  laci_parallel parallel; /* the caller's threads, on which loops run; run NULL: the pool has its
                             own threads */
  pid_t owner;            /* id of the process that has the workers */
  int n_workers;
  pthread_t workers[];
};

static _Thread_local bool inside_body; /* this thread is inside a loop's body; a loop posted from
                                          there runs on this thread alone */

static int count_cores_allowed(void) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set)) return 1;
  int n = CPU_COUNT(&set);
  return n > 0 ? n : 1;
}

static void run_parts(void *context) {
  loop *l = context;
  lac_context *before = laci_context_enter(l->job);
  const bool flushed = laci_denormals_set_flushed(l->flushes);
  inside_body = true;
  for (;;) {
    int64_t begin = atomic_fetch_add_explicit(&l->next, l->grain, memory_order_relaxed);
    if (begin >= l->n) break;
    int64_t end = l->n - begin > l->grain ? begin + l->grain : l->n;
    l->body(begin, end, l->context);
  }
  inside_body = false;
  (void)laci_denormals_set_flushed(flushed);
  (void)laci_context_enter(before);
}

static void *run_worker(void *context) {
  laci_pool *pool = context;
  uint64_t seen = 0;
  pthread_mutex_lock(&pool->lock);
  for (;;) {
    while (!pool->closing && (!pool->current || pool->n_posted == seen)) {
      pthread_cond_wait(&pool->posted, &pool->lock);
    }
    if (pool->closing) break;
    seen = pool->n_posted;
    loop *l = pool->current;
    pool->n_inside++;
    pthread_mutex_unlock(&pool->lock);
    run_parts(l);
    pthread_mutex_lock(&pool->lock);
    if (--pool->n_inside == 0) pthread_cond_signal(&pool->left);
  }
  pthread_mutex_unlock(&pool->lock);
  return NULL;
}

/* Starts up to n workers. They block all signals, so that these are delivered to the caller's
 * threads, which handle Ctrl-C. */
static void start_workers(laci_pool *pool, int n) {
  sigset_t all, old;
  sigfillset(&all);
  bool masked = !pthread_sigmask(SIG_SETMASK, &all, &old);
  while (pool->n_workers < n &&
         !pthread_create(&pool->workers[pool->n_workers], NULL, run_worker, pool)) {
    pool->n_workers++; /* if a thread cannot be started, the pool has fewer */
  }
  if (masked) (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* Keeps the shared object with this code, and its dependencies, loaded until the process ends;
 * called when the first pool is created. The OpenMP run time and oneDNN keep threads and their
 * memory until then, and run code at exit, but a host program may unload this library. Does nothing
 * in a program that links this code statically. */
static void keep_library_loaded(void) {
  Dl_info here;
  if (!dladdr((void *)(uintptr_t)&keep_library_loaded, &here) || !here.dli_fname) return;
  (void)dlopen(here.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

int laci_pool_threads_wanted(int n_threads) {
  int n = n_threads > 0 ? n_threads : laci_context_threads();
  if (n == 0) n = count_cores_allowed();
  return n < MAX_THREADS ? n : MAX_THREADS;
}

lac_status laci_pool_create(int n_threads, laci_pool **pool, lac_error *err) {
  return laci_pool_create_on(NULL, n_threads, pool, err);
}

lac_status laci_pool_create_on(const laci_parallel *parallel, int n_threads, laci_pool **pool,
                               lac_error *err) {
  static once_flag once = ONCE_FLAG_INIT;
  *pool = NULL;
  call_once(&once, keep_library_loaded);
  const int n = laci_pool_threads_wanted(n_threads);
  laci_pool *p = laci_alloc(1, sizeof *p + (size_t)(n - 1) * sizeof(pthread_t));
  if (!p) return laci_fail_memory(err, "the worker pool");
  pthread_mutex_init(&p->lock, NULL); /* these three never fail with default attributes */
  pthread_cond_init(&p->posted, NULL);
  pthread_cond_init(&p->left, NULL);
  if (parallel) p->parallel = *parallel;
  p->borrows = !p->parallel.run && n > 1 && n <= count_cores_allowed() && laci_openmp_has_team() &&
               laci_openmp_can_use_threads(n);
  p->owner = getpid();
  if (p->parallel.run) p->n_workers = n - 1;
  else if (p->borrows) p->n_workers = laci_openmp_available_threads(n) - 1;
  else start_workers(p, n - 1);
  if (p->n_workers < n - 1) {
    laci_log(LAC_LOG_WARNING,
             "only %d of %d threads could be started (a limit on processes or memory): going on "
             "with %d",
             p->n_workers + 1, n, p->n_workers + 1);
  }
  *pool = p;
  return LAC_OK;
}

void laci_pool_destroy(laci_pool *pool) {
  if (!pool) return;
  if (pool->owner != getpid()) { /* after a fork: the workers are in the other process and cannot be
                                    joined */
    laci_free(pool);
    return;
  }
  pthread_mutex_lock(&pool->lock);
  pool->closing = true;
  pthread_cond_broadcast(&pool->posted);
  pthread_mutex_unlock(&pool->lock);
  const int n_started = pool->borrows || pool->parallel.run ? 0 : pool->n_workers;
  for (int i = 0; i < n_started; i++) pthread_join(pool->workers[i], NULL);
  pthread_cond_destroy(&pool->left);
  pthread_cond_destroy(&pool->posted);
  pthread_mutex_destroy(&pool->lock);
  laci_free(pool);
}

int laci_pool_threads(const laci_pool *pool) { return pool ? pool->n_workers + 1 : 1; }

static void run_serially(int64_t n, int64_t grain, laci_pool_body *body, void *context) {
  for (int64_t begin = 0; begin < n; begin += grain) {
    body(begin, n - begin > grain ? begin + grain : n, context);
    if (n - begin <= grain) break; /* begin + grain could overflow */
  }
}

static void run_part(void *arg, int index) {
  (void)index; /* each call takes the parts that are left */
  run_parts(arg);
}

static void run_on_callers_threads(const laci_pool *pool, loop *l) {
  const int64_t n_parts = (l->n - 1) / l->grain + 1;
  const int n = n_parts < laci_pool_threads(pool) ? (int)n_parts : laci_pool_threads(pool);
  pool->parallel.run(pool->parallel.context, run_part, l, n);
  run_parts(l); /* normally no part is left; the caller's function may have omitted some */
}

void laci_pool_for(laci_pool *pool, int64_t n, int64_t grain, laci_pool_body *body, void *context) {
  if (n <= 0) return;
  if (grain < 1) grain = 1;
  if (!pool || pool->n_workers == 0 || inside_body || n <= grain || pool->owner != getpid() ||
      (pool->borrows && !laci_openmp_can_use_threads(laci_pool_threads(pool)))) {
    run_serially(n, grain, body, context);
    return;
  }
  loop l = {.n = n,
            .grain = grain,
            .body = body,
            .context = context,
            .job = laci_context_current(),
            .flushes = laci_denormals_are_flushed()};
  pthread_mutex_lock(&pool->lock);
  bool busy = pool->current != NULL; /* true: another thread's loop is running; this one then runs
                                        on its caller alone */
  if (!busy) {
    pool->current = &l;
    pool->n_posted++;
    if (!pool->borrows) pthread_cond_broadcast(&pool->posted);
  }
  pthread_mutex_unlock(&pool->lock);
  if (busy) {
    run_serially(n, grain, body, context);
    return;
  }
  if (pool->borrows)
    laci_openmp_run(laci_openmp_available_threads(laci_pool_threads(pool)), run_parts, &l);
  else if (pool->parallel.run) run_on_callers_threads(pool, &l);
  else run_parts(&l);
  pthread_mutex_lock(&pool->lock);
  pool->current = NULL;
  while (pool->n_inside > 0) pthread_cond_wait(&pool->left, &pool->lock);
  pthread_mutex_unlock(&pool->lock);
}
