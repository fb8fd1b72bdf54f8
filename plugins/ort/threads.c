/* SPDX-License-Identifier: Apache-2.0
 * Runs loops on the threads of a session of ONNX Runtime. They are reached through a kernel's
 * context, which is valid for one run; each thread stores the context of its own run. */
#define _GNU_SOURCE
#include "threads.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

enum { MOST_THREADS = 256 };
static const long wait_ns = 20000000; /* how long to wait for one more thread; a busy machine wakes
                                         threads late */

static _Thread_local struct {
  const laci_ort *ort;
  ort_kernel *kernel;
} current;

/** n_running: number of runs that compute now, of all sessions; each has a thread of the program.
 * of_process: the process in which they run; a forked process begins with none. */
static atomic_int n_running, of_process;

typedef struct loop {
  lac_part *part;
  void *arg;
} loop;

int laci_ort_count_cores(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  int n = CPU_COUNT(&set);
  return n < 1 ? 1 : n > MOST_THREADS ? MOST_THREADS : n;
}

static void count_running(int more) {
  int process = (int)getpid();
  if (atomic_exchange(&of_process, process) != process) atomic_store(&n_running, 0);
  atomic_fetch_add(&n_running, more);
}

void laci_ort_use_kernel_threads(const laci_ort *ort, ort_kernel *kernel) {
  if (!current.kernel != !kernel) count_running(kernel ? 1 : -1);
  current.ort = ort;
  current.kernel = kernel;
}

/** Is a core idle that this run could use for a second thread? If there is a run for every core,
 * more threads would only displace each other, which costs time. */
static bool has_idle_core(void) {
  int n = atomic_load(&n_running);
  return n <= 1 || n < laci_ort_count_cores();
}

static void run_part(void *context, size_t index) {
  const loop *l = context;
  l->part(l->arg, (int)index);
}

void laci_ort_run_parallel(void *context, lac_part *part, void *arg, int n) {
  loop l = {part, arg};
  (void)context;
  if (current.kernel && n > 1 && has_idle_core()) {
    ort_status *failed = current.ort->parallel_for(current.kernel, run_part, (size_t)n, 0, &l);
    if (!failed) return;
    current.ort->release_status(failed); /* it failed before any part was run */
  }
  for (int k = 0; k < n; k++) part(arg, k);
}

/* ---- Counting ---- */

typedef struct count {
  atomic_int arrived;
  atomic_int wanted;
} count;

static long now_ns(void) {
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (long)t.tv_sec * 1000000000L + t.tv_nsec;
}

/** Blocks its thread until all threads have arrived, or no further thread has arrived for wait_ns.
 */
static void wait_for_other_threads(void *context, size_t index) {
  count *c = context;
  (void)index;
  int seen = atomic_fetch_add(&c->arrived, 1) + 1;
  long since = now_ns();
  while (seen < atomic_load(&c->wanted)) {
    int found = atomic_load(&c->arrived);
    long now = now_ns();
    if (found != seen) since = now;
    seen = found;
    if (now - since > wait_ns) {
      atomic_store(&c->wanted, seen);
      return;
    }
    (void)sched_yield();
  }
}

int laci_ort_count_threads(const laci_ort *ort, ort_kernel *kernel) {
  count c;
  int most = laci_ort_count_cores();
  if (most == 1) return 1;
  atomic_init(&c.arrived, 0);
  atomic_init(&c.wanted, most);
  ort_status *failed = ort->parallel_for(kernel, wait_for_other_threads, (size_t)most, 0, &c);
  if (failed) {
    ort->release_status(failed);
    return 1;
  }
  return atomic_load(&c.wanted);
}
