/* SPDX-License-Identifier: Apache-2.0
 * An OpenMP run time in place of GNU's: the few functions that oneDNN calls.
 *
 * GNU's run time fixes at the start of a process how long its threads wait in a busy loop. That
 * takes milliseconds from other threads, and a forked process cannot use the run time at all. The
 * loader searches this library first, so that the oneDNN that is loaded with it finds these
 * functions. Each thread that computes has its own team, whose threads wait shortly between loops
 * and then sleep. Nothing here ends the process. */
#ifndef LAC_ORT_OPENMP_H
#define LAC_ORT_OPENMP_H

#include <stdbool.h>

/** Sets whether threads that wait for the next loop spin for some microseconds before they sleep
 * (default true). It holds for regions that the calling thread begins from now on. */
void laci_ort_set_team_spin(bool spin);

#endif
