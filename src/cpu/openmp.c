/* SPDX-License-Identifier: Apache-2.0
 * Finds the OpenMP run time's functions by name.
 *
 * GOMP_parallel is what GNU's compiler calls for a parallel region; LLVM's run time has it, too.
 * Our library may have been opened for its own use only (as Python opens libraries): then the names
 * are not global symbols of the process, but symbols of our library and its dependencies.
 *
 * A process may have several run times: PyTorch brings its own, and makes its names global. oneDNN
 * calls the one that the loader found when it loaded oneDNN with us. The names are therefore looked
 * up at that moment, too: later, the same look-up may find another run time.
 *
 * A library that has a run time of its own, which a forked process may use, says so by a function
 * laci_team_survives_fork (plugins/ort/openmp.c). */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* declares RTLD_DEFAULT, dladdr */
#endif
#include "cpu/openmp.h"

#include <ctype.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

enum {
  STACK_RESERVE = 8 << 20
}; /* bytes that the OpenMP run time may need in addition to the stacks of its threads */

static void (*set_threads)(int n);
static int (*max_threads)(void);
static void (*run_region)(void (*body)(void *), void *context, unsigned n, unsigned flags);
static int (*thread_index)(void);   /* set if run_region is */
static _Thread_local pid_t team_of; /* process id in which this thread had a team of OpenMP threads;
                                       0: it has had none */
static bool survives_fork;          /* a forked process may use this OpenMP run time */

static void *find_function(void *library, const char *name) {
  void *found = dlsym(RTLD_DEFAULT, name);
  return found || !library ? found : dlsym(library, name);
}

/** Are both functions in the same shared object? */
static bool is_same_object(const void *one, const void *other) {
  Dl_info a, b;
  return one && other && dladdr(one, &a) && dladdr(other, &b) && a.dli_fbase == b.dli_fbase;
}

__attribute__((constructor)) static void find_openmp_runtime(void) {
  Dl_info self;
  void *library = NULL;
  if (dladdr(&set_threads, &self) && self.dli_fname)
    library = dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  void *set = find_function(library, "omp_set_num_threads"),
       *max = find_function(library, "omp_get_max_threads");
  void *run = find_function(library, "GOMP_parallel"),
       *index = find_function(library, "omp_get_thread_num");
  if (set && max) {
    memcpy(&set_threads, &set, sizeof set);
    memcpy(&max_threads, &max, sizeof max);
  }
#if !defined(__SANITIZE_THREAD__)
  if (set && max && is_same_object(run, index)) {
    memcpy(&run_region, &run, sizeof run);
    memcpy(&thread_index, &index, sizeof index);
  }
#endif
  survives_fork = is_same_object(run, find_function(library, "laci_team_survives_fork"));
  if (library) (void)dlclose(library);
}

bool laci_openmp_has_team(void) { return run_region != NULL; }

/* ---- Can the run time start its threads? ---- */

typedef struct trial {
  pthread_mutex_t lock;
  pthread_cond_t ended;
  bool over;
} trial;

static void *wait_for_end(void *context) {
  trial *t = context;
  pthread_mutex_lock(&t->lock);
  while (!t->over) pthread_cond_wait(&t->ended, &t->lock);
  pthread_mutex_unlock(&t->lock);
  return NULL;
}

/* Sets the stack size that the run time uses for its threads, if the environment sets one: a number
 * with B, K (the default), M or G. */
static void set_stack_size(pthread_attr_t *attr) {
  const char *text = getenv("OMP_STACKSIZE");
  if (!text) text = getenv("GOMP_STACKSIZE");
  if (!text) return;
  char *end;
  unsigned long long size = strtoull(text, &end, 10);
  while (*end == ' ') end++;
  const char *unit = *end ? strchr("BKMG", toupper((unsigned char)*end)) : NULL;
  int shift = unit ? (int)(unit - "BKMG") * 10 : 10;
  if (size > 0 && size <= SIZE_MAX >> shift) {
    (void)pthread_attr_setstacksize(attr, (size_t)size << shift);
  }
}

/* Starts n threads that all wait until the last one is started, and returns how many could start.
 * They block all signals. */
static int count_startable_threads(int n) {
  sigset_t all, old;
  trial t = {.over = false};
  pthread_attr_t attr;
  int started = 0;
  pthread_t *threads = laci_alloc((size_t)n, sizeof *threads);
  if (!threads || !laci_memory_is_available(STACK_RESERVE)) n = 0;
  pthread_mutex_init(&t.lock, NULL); /* these never fail with default attributes */
  pthread_cond_init(&t.ended, NULL);
  (void)pthread_attr_init(&attr);
  set_stack_size(&attr);
  sigfillset(&all);
  bool masked = !pthread_sigmask(SIG_SETMASK, &all, &old);
  while (started < n && !pthread_create(&threads[started], &attr, wait_for_end, &t)) started++;
  if (masked) (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
  pthread_mutex_lock(&t.lock);
  t.over = true;
  pthread_cond_broadcast(&t.ended);
  pthread_mutex_unlock(&t.lock);
  for (int at = 0; at < started; at++) (void)pthread_join(threads[at], NULL);
  (void)pthread_attr_destroy(&attr);
  pthread_cond_destroy(&t.ended);
  pthread_mutex_destroy(&t.lock);
  laci_free(threads);
  return started;
}

static void do_nothing(void *context) { (void)context; }

int laci_openmp_available_threads(int n) {
  static _Thread_local int seen = 1; /* number of threads that are known to start; for each calling
                                        thread, since a team belongs to the thread that runs it */
  if (!set_threads || n <= seen) return n;
  seen += count_startable_threads(n - seen);
  if (run_region && seen > 1) run_region(do_nothing, NULL, (unsigned)seen, 0);
  return seen < n ? seen : n;
}

void laci_openmp_run(int n, void (*body)(void *context), void *context) {
  run_region(body, context, (unsigned)n, 0);
}

int laci_openmp_thread_index(void) { return thread_index(); }

bool laci_openmp_can_use_threads(int n) {
  if (n <= 1 || survives_fork) return true;
  pid_t self = getpid();
  if (!team_of) team_of = self;
  return team_of == self;
}

int laci_openmp_set_threads(int n) {
  if (!set_threads) return n;
  int before = max_threads();
  if (before != n) set_threads(n);
  return before;
}
