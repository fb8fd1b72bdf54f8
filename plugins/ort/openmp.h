/* SPDX-License-Identifier: Apache-2.0
 * An OpenMP run time for what this library links, instead of GNU's: as much of it as oneDNN calls.
 *
 * GNU's run time cannot be told, once a process is up, how long its threads wait in a busy manner;
 * their milliseconds are the neighbours' loss, and a forked process cannot use it any more. The
 * loader looks into this library first, so that oneDNN, loaded for it, finds the functions here.
 * Each thread that computes has a team of its own, whose threads sleep between loops, after a short
 * wait. Nothing here ends the process. */
#ifndef LAC_ORT_OPENMP_H
#define LAC_ORT_OPENMP_H

#include <stdbool.h>

/** Sets whether threads wait for the next loop in a busy manner, for some microseconds, before they
 * sleep: for regions that the calling thread begins from now on. Default: they do. */
void laci_ort_team_spin(bool spin);

#endif
