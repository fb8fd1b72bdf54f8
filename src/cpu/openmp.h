/* SPDX-License-Identifier: Apache-2.0
 * The OpenMP run time of this process, if it has one: oneDNN works on its threads, and so do our
 * own loops (pool.h), lest two teams of threads fight over the cores.
 *
 * It is whichever oneDNN was linked with (GNU's or LLVM's), so it is asked for by name instead of
 * adding one of our own. */
#ifndef LACI_CPU_OPENMP_H
#define LACI_CPU_OPENMP_H

#include <stdbool.h>

/** Is there one, and can it run a function on its threads? Never in a build with the thread
 * sanitizer, which does not see its barriers. */
bool laci_openmp_has_team(void);
/** How many threads, up to n, the run time can have for the calling thread. It would end the
 * process where one does not start (a limit on processes, or on memory); so those that it has not
 * been seen to start yet are started by us first, all at a time, and it is made to start its own at
 * once. Cheap once a thread has asked for as many. Without a run time: n. */
int laci_openmp_ready(int n);
/** Runs body(context) on up to n threads, the caller's being one; returns when all have. */
void laci_openmp_run(int n, void (*body)(void *context), void *context);
/** To be asked before oneDNN, or laci_openmp_run, works on n threads for the calling thread. False
 * in a process that was forked after this thread had a team: its threads stayed in the other
 * process, and the run time would wait for them for ever. One thread is no team: true. */
bool laci_openmp_reaches(int n);
/** How many threads oneDNN's primitives get on the calling thread from now on; returns how many
 * they had. Without a run time: n, and nothing happens. */
int laci_openmp_use(int n);

#endif
