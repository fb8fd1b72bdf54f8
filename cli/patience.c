/* SPDX-License-Identifier: Apache-2.0
 * GNU's OpenMP run time, on whose threads oneDNN works, lets a thread that waits spin for some
 * milliseconds before it sleeps. While other programs want the cores, too, that makes a network run
 * several times as long; a short spin costs next to nothing where they do not (docs/speed.md). The
 * run time reads its setting before main begins, so a program has to start again to change it. */
#include "patience.h"

#include <stdlib.h>
#include <unistd.h>

void patience_settle(char **argv) {
  if (getenv("GOMP_SPINCOUNT") || getenv("OMP_WAIT_POLICY")) return;
  if (setenv("GOMP_SPINCOUNT", "1000", 1)) return;
  (void)execv("/proc/self/exe", argv);
}
