/* SPDX-License-Identifier: Apache-2.0
 * Implements crew.h. A loop has a number. A thread takes a part by setting the part's mark from the
 * number before to the loop's number; a thread that comes late for a loop finds all marks set, and
 * so never reads what belongs to the next one. */
#include "cpu/crew.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum { MOST = 64, SPINS = 2000 /* number of polls before a waiting thread lets others run */ };

typedef struct mark {
  _Alignas(64) _Atomic uint32_t loop; /* number of the last loop of which this part was taken by a
                                         thread */
} mark;

struct laci_crew {
  laci_crew_lead *lead;
  void *lead_context;
  int n;
  laci_crew_body *body; /* function that computes a part of the current loop */
  void *context;
  _Alignas(64) _Atomic uint32_t loop; /* number of the current loop; 0: none yet */
  _Alignas(64) _Atomic int n_done;    /* number of the current loop's parts that are computed */
  atomic_bool ended;
  mark marks[MOST];
};

static void pause_or_yield(int *n_spins) {
  if (++*n_spins >= SPINS) {
    *n_spins = 0;
    (void)sched_yield();
    return;
  }
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/** Computes those parts of a loop that no thread has taken, from part `first` on, cyclically. */
static void compute_free_parts(laci_crew *crew, uint32_t loop, int first) {
  for (int at = 0; at < crew->n; at++) {
    const int part = (first + at) % crew->n;
    uint32_t before = loop - 1;
    if (!atomic_compare_exchange_strong_explicit(&crew->marks[part].loop, &before, loop,
                                                 memory_order_acq_rel, memory_order_relaxed))
      continue;
    crew->body(part, crew->n, crew->context);
    atomic_fetch_add_explicit(&crew->n_done, 1, memory_order_release);
  }
}

static void run_as_follower(laci_crew *crew, int first) {
  uint32_t seen = 0;
  int n_spins = 0;
  while (!atomic_load_explicit(&crew->ended, memory_order_acquire)) {
    const uint32_t loop = atomic_load_explicit(&crew->loop, memory_order_acquire);
    if (loop == seen) {
      pause_or_yield(&n_spins);
      continue;
    }
    compute_free_parts(crew, loop, first);
    seen = loop;
    n_spins = 0;
  }
}

/** A thread's share of the pool's loop: index 0, which some thread takes before any other index,
 * leads; the other indices follow. */
static void join_crew(int64_t begin, int64_t end, void *context) {
  laci_crew *crew = context;
  for (int64_t at = begin; at < end; at++) {
    if (at > 0) {
      run_as_follower(crew, (int)at);
      continue;
    }
    crew->lead(crew, crew->lead_context);
    atomic_store_explicit(&crew->ended, true, memory_order_release);
  }
}

void laci_crew_run_leader(laci_pool *pool, laci_crew_lead *lead, void *context) {
  const int threads = laci_pool_threads(pool);
  laci_crew crew = {.lead = lead, .lead_context = context, .n = threads < MOST ? threads : MOST};
  laci_pool_for_in_order(pool, crew.n, 1, join_crew, &crew);
}

void laci_crew_for(laci_crew *crew, laci_crew_body *body, void *context) {
  const uint32_t loop = atomic_load_explicit(&crew->loop, memory_order_relaxed) + 1;
  int n_spins = 0;
  crew->body = body;
  crew->context = context;
  atomic_store_explicit(&crew->n_done, 0, memory_order_relaxed);
  atomic_store_explicit(&crew->loop, loop, memory_order_release);
  compute_free_parts(crew, loop, 0);
  while (atomic_load_explicit(&crew->n_done, memory_order_acquire) < crew->n)
    pause_or_yield(&n_spins);
}
