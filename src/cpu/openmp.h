/* SPDX-License-Identifier: Apache-2.0
 * The OpenMP run time of this process, if it has one: oneDNN runs on its threads, and so do our own
 * loops (pool.h), so that two teams of threads do not compete for the cores.
 *
 * It is the run time that oneDNN was linked with (GNU's or LLVM's). Its functions are therefore
 * looked up by name; we link no run time ourselves. */
#ifndef LACI_CPU_OPENMP_H
#define LACI_CPU_OPENMP_H

#include <stdbool.h>

/** Does the process have an OpenMP run time that can run a function on its threads? Always false in
 * a build with the thread sanitizer, which does not see the run time's barriers. */
bool laci_openmp_has_team(void);
/** Returns how many threads, up to n, the OpenMP run time can have for the calling thread. The run
 * time ends the process if a thread cannot be started, because of a limit on processes or memory.
 * So on a thread's first call for that many, this function starts and ends them itself, as a trial.
 * Later calls are fast. Without a run time it returns n. */
int laci_openmp_available_threads(int n);
/** Runs body(context) on up to n threads, including the caller's; returns when all have
 * finished. */
void laci_openmp_run(int n, void (*body)(void *context), void *context);
/** Returns the calling thread's index, from 0 to n - 1, among the threads of laci_openmp_run.
 * Called by its body. */
int laci_openmp_thread_index(void);
/** Can the OpenMP run time use n threads for the calling thread? Ask this before oneDNN or
 * laci_openmp_run uses them. False in a process that was forked after this thread had a team: the
 * team's threads stayed in the other process, and the run time would wait for them forever. Always
 * true for n = 1. */
bool laci_openmp_can_use_threads(int n);
/** Sets how many threads oneDNN's primitives use on the calling thread; returns the previous
 * number. Without an OpenMP run time it does nothing and returns n. */
int laci_openmp_set_threads(int n);

#endif
