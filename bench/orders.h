/* SPDX-License-Identifier: Apache-2.0
 * The loop of a worker that a script controls: an order a line on stdin, its answer on
 * stdout. Include it in one file of a program. */
#ifndef BENCH_ORDERS_H
#define BENCH_ORDERS_H

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "lacuna/status.h"

enum { ORDER_BYTES = 4096 };

/** One order; false where the program should end, *st then tells whether by a failure. */
typedef bool obey_order(void *worker, const char *order, lac_status *st, lac_error *err);

/** A waiting worker is stopped by a signal and would not see its parent's end. */
static inline void end_with_parent(void) { (void)prctl(PR_SET_PDEATHSIG, SIGKILL); }

/** Until stdin ends or an order is none; st: of what went before, nothing is done after a failure.
 */
static inline lac_status take_orders(void *worker, obey_order *obey, lac_status st,
                                     lac_error *err) {
  char line[ORDER_BYTES];
  (void)fflush(stdout);
  while (!st && fgets(line, sizeof line, stdin)) {
    line[strcspn(line, "\n")] = 0;
    if (!obey(worker, line, &st, err)) break;
    (void)fflush(stdout);
  }
  if (st) (void)fprintf(stderr, "%s\n", err->text);
  return st;
}

#endif
