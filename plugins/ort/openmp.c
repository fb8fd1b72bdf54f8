/* SPDX-License-Identifier: Apache-2.0
 * The functions of OpenMP that oneDNN was compiled to call, on teams of threads of our own.
 *
 * A parallel region starts when `posted` is incremented. Every thread of the team sees every
 * region, even if the region has fewer threads and gives it nothing to do. So no thread can mistake
 * one region for the next. A team belongs to the thread that started it, and ends with that
 * thread. After a fork the new process does not touch its parent's teams, and starts new ones. */
#define _GNU_SOURCE
#include "openmp.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "threads.h"

enum { BUSY_ROUNDS = 1000, MOST_TEAM = 1024 };

#define EXPORTED __attribute__((visibility("default")))

/* Functions of OpenMP's run time that code compiled by GCC calls; GCC sets their names and
 * arguments. */
EXPORTED void GOMP_parallel(void (*body)(void *), void *data, unsigned n, unsigned flags);
EXPORTED void GOMP_barrier(void);
EXPORTED int omp_get_max_threads(void);
EXPORTED int omp_get_num_threads(void);
EXPORTED int omp_get_thread_num(void);
EXPORTED int omp_in_parallel(void);
EXPORTED void omp_set_num_threads(int n);
/* Says that a forked process may use these threads: src/cpu/openmp.c looks for it. */
EXPORTED void laci_team_survives_fork(void);

typedef struct team team;

typedef struct member {
  team *of;
  int number; /* number of the thread in its team, from 1 on; 0 is the thread that owns the team */
  int seen;   /* value of `posted` when the thread was started */
  pthread_t thread;
} member;

struct team {
  pid_t owner; /* the process that started the threads */
  atomic_int posted, left, sleepers;
  atomic_int arrived, passed; /* number of threads that wait at the barrier; number of barriers that
                                 all threads have passed */
  void (*body)(void *);
  void *data;
  int n; /* number of threads of the region */
  bool spins, closing;
  int n_members;
  member *members[MOST_TEAM];
};

static _Thread_local struct {
  team *own; /* the team that this thread started; NULL: none yet */
  team *inside;
  int number, n, wanted;
  bool alone; /* this thread runs a region on its own, where barriers do not wait */
  bool never_spins;
} self;

static pthread_key_t team_key; /* key of each thread's team, which team_key with the thread */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ---- Waiting ---- */

static void pause_shortly(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  __asm__ volatile("" ::: "memory");
#endif
}

/** Waits until *at differs from `seen`: first in a busy loop if `spins`, then asleep. */
static void wait_for_change(atomic_int *at, int seen, bool spins, atomic_int *sleepers) {
  for (int k = 0; spins && k < BUSY_ROUNDS; k++) {
    if (atomic_load_explicit(at, memory_order_acquire) != seen) return;
    pause_shortly();
  }
  atomic_fetch_add(sleepers, 1);
  while (atomic_load(at) == seen)
    (void)syscall(SYS_futex, at, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
  atomic_fetch_sub(sleepers, 1);
}

static void wake_sleepers(atomic_int *at, atomic_int *sleepers) {
  if (atomic_load(sleepers) > 0)
    (void)syscall(SYS_futex, at, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* ---- Teams ---- */

static void run_member_part(team *t, int number) {
  if (number >= t->n) return;
  self.inside = t;
  self.number = number;
  self.n = t->n;
  t->body(t->data);
  self.inside = NULL;
  self.number = 0;
  self.n = 1;
}

static void *run_member(void *context) {
  member *m = context;
  team *t = m->of;
  int seen = m->seen;
  for (;;) {
    wait_for_change(&t->posted, seen, t->spins, &t->sleepers);
    seen = atomic_load(&t->posted);
    if (t->closing) return NULL;
    run_member_part(t, m->number);
    if (atomic_fetch_sub(&t->left, 1) == 1) wake_sleepers(&t->left, &t->sleepers);
  }
}

static void post_region(team *t) {
  atomic_fetch_add(&t->posted, 1);
  wake_sleepers(&t->posted, &t->sleepers);
}

static void end_team(void *context) {
  team *t = context;
  if (!t || t->owner != getpid())
    return; /* after a fork, the team's threads exist in the parent
                                             process only */
  t->closing = true;
  post_region(t);
  for (int k = 0; k < t->n_members; k++) {
    (void)pthread_join(t->members[k]->thread, NULL);
    free(t->members[k]);
  }
  free(t);
}

static void create_team_key(void) { (void)pthread_key_create(&team_key, end_team); }

/** Returns a team of this thread with n threads, or of fewer if the system has no more. */
static team *get_or_start_team(int n) {
  team *t = self.own;
  (void)pthread_once(&once, create_team_key);
  if (!t || t->owner != getpid()) {
    t = calloc(1, sizeof *t);
    if (!t) return NULL;
    t->owner = getpid();
    self.own = t;
    (void)pthread_setspecific(team_key, t);
  }
  sigset_t all, old;
  (void)sigfillset(&all); /* blocked in the new threads, so that other threads of the program handle
                             signals */
  bool masked = t->n_members + 1 < n && !pthread_sigmask(SIG_SETMASK, &all, &old);
  while (t->n_members + 1 < n) {
    member *m = calloc(1, sizeof *m);
    if (!m) break;
    m->of = t;
    m->number = t->n_members + 1;
    m->seen = atomic_load(&t->posted);
    if (pthread_create(&m->thread, NULL, run_member, m) != 0) {
      free(m);
      break;
    }
    t->members[t->n_members++] = m;
  }
  if (masked) (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
  return t;
}

/* ---- OpenMP ---- */

/** Runs all parts of a region on this thread, one after the other, if no thread can be started. */
static void run_region_serially(void (*body)(void *), void *data, int n) {
  int number = self.number, before = self.n;
  bool alone = self.alone;
  self.alone = true;
  for (int k = 0; k < n; k++) {
    self.number = k;
    self.n = n;
    body(data);
  }
  self.alone = alone;
  self.number = number;
  self.n = before;
}

void GOMP_parallel(void (*body)(void *), void *data, unsigned n, unsigned flags) {
  int wanted = n ? (int)n : omp_get_max_threads();
  (void)flags;
  if (wanted > MOST_TEAM) wanted = MOST_TEAM;
  if (wanted == 1 || self.inside || self.alone) {
    run_region_serially(body, data, 1);
    return;
  }
  team *t = get_or_start_team(wanted);
  if (!t || t->n_members + 1 < wanted) {
    run_region_serially(body, data, wanted);
    return;
  }
  t->body = body;
  t->data = data;
  t->n = wanted;
  t->spins = !self.never_spins;
  atomic_store(&t->arrived, 0);
  atomic_store(&t->left, t->n_members);
  post_region(t);
  run_member_part(t, 0);
  for (int left = atomic_load(&t->left); left; left = atomic_load(&t->left))
    wait_for_change(&t->left, left, t->spins, &t->sleepers);
}

void GOMP_barrier(void) {
  team *t = self.inside;
  if (!t || self.alone) return;
  int seen = atomic_load(&t->passed);
  if (atomic_fetch_add(&t->arrived, 1) + 1 < t->n) {
    wait_for_change(&t->passed, seen, true, &t->sleepers);
    return;
  }
  atomic_store(&t->arrived, 0);
  atomic_fetch_add(&t->passed, 1);
  wake_sleepers(&t->passed, &t->sleepers);
}

int omp_get_max_threads(void) {
  if (!self.wanted) self.wanted = laci_ort_count_cores();
  return self.wanted;
}

int omp_get_num_threads(void) { return self.n ? self.n : 1; }
int omp_get_thread_num(void) { return self.number; }
int omp_in_parallel(void) { return self.inside != NULL && self.n > 1; }

void omp_set_num_threads(int n) {
  if (n > 0) self.wanted = n;
}

void laci_team_survives_fork(void) {}

void laci_ort_set_team_spin(bool spin) { self.never_spins = !spin; }
