/* SPDX-License-Identifier: Apache-2.0
 * The worker pool: threads that take a loop's parts one after the other from atomic counters.
 *
 * Each thread has a counter of its own for a stretch of the parts, the same stretch in every loop
 * over the same indices. So what a thread has written in one loop is in its cache when the next one
 * reads it. A thread whose stretch is done takes parts of the other stretches.
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

enum { MAX_THREADS = 1024, MAX_STRETCHES = 64, CACHE_LINE = 64 };

/* The parts that one thread takes first, those of indices from `next` to before `end`. */
typedef struct stretch {
  _Alignas(CACHE_LINE) _Atomic int64_t next;
  int64_t end;
} stretch;

typedef struct loop {
  int64_t grain;
  laci_pool_body *body;
  void *context;
  /* context of the thread that posted the loop: workers use its log and its interrupt flag */
  lac_context *job;
  bool flushes; /* denormals are flushed to 0 in the posting thread, and so in its workers */
  int n_stretches;
  stretch stretches[MAX_STRETCHES];
} loop;

struct laci_pool {
  pthread_mutex_t lock;
  pthread_cond_t posted; /* signalled when a loop was posted, or the pool is closed */
  pthread_cond_t left;   /* signalled when the last worker has left the loop */
  loop *current;         /* the loop that runs; NULL: none does */
  uint64_t n_posted;     /* number of loops posted so far; a worker joins each loop only once */
  int n_inside;          /* number of workers inside the current loop */
  int n_running;         /* number of workers of its own that have begun to run */
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
static _Thread_local int own_index; /* index of this thread among those of the loop that it is in */

static int count_cores_allowed(void) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set)) return 1;
  int n = CPU_COUNT(&set);
  return n > 0 ? n : 1;
}

/* Divides n indices into at most n_stretches stretches, of whole parts of l->grain. */
static void divide_into_stretches(loop *l, int64_t n, int n_stretches) {
  const int64_t n_parts = (n - 1) / l->grain + 1;
  int64_t most = n_stretches < MAX_STRETCHES ? n_stretches : MAX_STRETCHES;
  if (most > n_parts) most = n_parts;
  l->n_stretches = (int)most;
  int64_t part = 0;
  for (int at = 0; at < l->n_stretches; at++) {
    l->stretches[at].next = part * l->grain;
    part += n_parts / most + (at < n_parts % most);
    l->stretches[at].end = part < n_parts ? part * l->grain : n;
  }
}

static void run_stretch(const loop *l, stretch *s) {
  for (;;) {
    const int64_t begin = atomic_fetch_add_explicit(&s->next, l->grain, memory_order_relaxed);
    if (begin >= s->end) break;
    l->body(begin, s->end - begin > l->grain ? begin + l->grain : s->end, l->context);
  }
}

/* Computes parts of a loop, as thread `index` of its threads, until none is left. */
static void run_parts(loop *l, int index) {
  lac_context *before = laci_context_enter(l->job);
  const bool flushed = laci_denormals_set_flushed(l->flushes);
  inside_body = true;
  own_index = index;
  for (int at = 0; at < l->n_stretches; at++) {
    run_stretch(l, &l->stretches[(index + at) % l->n_stretches]);
  }
  own_index = 0;
  inside_body = false;
  (void)laci_denormals_set_flushed(flushed);
  (void)laci_context_enter(before);
}

static void run_parts_on_openmp(void *context) { run_parts(context, laci_openmp_thread_index()); }

int laci_pool_thread_index(void) { return own_index; }

static void *run_worker(void *context) {
  laci_pool *pool = context;
  uint64_t seen = 0;
  pthread_mutex_lock(&pool->lock);
  const int index = ++pool->n_running; /* 0 is the thread that posts loops */
  for (;;) {
    while (!pool->closing && (!pool->current || pool->n_posted == seen)) {
      pthread_cond_wait(&pool->posted, &pool->lock);
    }
    if (pool->closing) break;
    seen = pool->n_posted;
    loop *l = pool->current;
    pool->n_inside++;
    pthread_mutex_unlock(&pool->lock);
    run_parts(l, index);
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

/* Computes all parts on the calling thread, which may be inside a body of another loop. */
static void run_serially(int64_t n, int64_t grain, laci_pool_body *body, void *context) {
  const int index = own_index;
  own_index = 0;
  for (int64_t begin = 0; begin < n; begin += grain) {
    body(begin, n - begin > grain ? begin + grain : n, context);
    if (n - begin <= grain) break; /* begin + grain could overflow */
  }
  own_index = index;
}

/* Each call takes the parts that are left. */
static void run_part(void *arg, int index) { run_parts(arg, index); }

static void run_on_callers_threads(const laci_pool *pool, loop *l, int n_threads) {
  pool->parallel.run(pool->parallel.context, run_part, l, n_threads);
  run_parts(l, 0); /* normally no part is left; the caller's function may have omitted some */
}

/* Runs a loop whose parts are divided into at most n_stretches stretches. */
static void run_loop(laci_pool *pool, int64_t n, int64_t grain, int n_stretches,
                     laci_pool_body *body, void *context) {
  if (n <= 0) return;
  if (grain < 1) grain = 1;
  if (!pool || pool->n_workers == 0 || inside_body || n <= grain || pool->owner != getpid() ||
      (pool->borrows && !laci_openmp_can_use_threads(laci_pool_threads(pool)))) {
    run_serially(n, grain, body, context);
    return;
  }
  loop l = {.grain = grain,
            .body = body,
            .context = context,
            .job = laci_context_current(),
            .flushes = laci_denormals_are_flushed()};
  divide_into_stretches(&l, n, n_stretches);
  const int64_t n_parts = (n - 1) / grain + 1;
  const int n_threads = n_parts < laci_pool_threads(pool) ? (int)n_parts : laci_pool_threads(pool);
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
    laci_openmp_run(laci_openmp_available_threads(laci_pool_threads(pool)), run_parts_on_openmp,
                    &l);
  else if (pool->parallel.run) run_on_callers_threads(pool, &l, n_threads);
  else run_parts(&l, 0);
  pthread_mutex_lock(&pool->lock);
  pool->current = NULL;
  while (pool->n_inside > 0) pthread_cond_wait(&pool->left, &pool->lock);
  pthread_mutex_unlock(&pool->lock);
}

void laci_pool_for(laci_pool *pool, int64_t n, int64_t grain, laci_pool_body *body, void *context) {
  run_loop(pool, n, grain, laci_pool_threads(pool), body, context);
}

void laci_pool_for_in_order(laci_pool *pool, int64_t n, int64_t grain, laci_pool_body *body,
                            void *context) {
  run_loop(pool, n, grain, 1, body, context);
}
