/* SPDX-License-Identifier: Apache-2.0
 * The monotonic clock of POSIX. */
#include "base/clock.h"

#include <time.h>

double laci_clock_seconds(void) {
  struct timespec now = {0, 0};
  (void)clock_gettime(CLOCK_MONOTONIC, &now); /* fails only for clocks that do not exist */
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
