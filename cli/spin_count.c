/* SPDX-License-Identifier: Apache-2.0
 * GNU's OpenMP run time, on whose threads oneDNN works, lets a thread that waits spin for some
 * milliseconds before it sleeps. While other programs want the cores, too, that makes a network run
 * several times as long; a short spin costs next to nothing where they do not (docs/speed.md). The
 * run time reads its setting before main begins, so a program has to start again to change it. */
#include "spin_count.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

void spin_count_set(char **argv) {
  char self[PATH_MAX];
  if (getenv("GOMP_SPINCOUNT") || getenv("OMP_WAIT_POLICY")) return;
  ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  if (length <= 0 || setenv("GOMP_SPINCOUNT", "1000", 1)) return;
  self[length] = 0; /* by its own name, which the process then bears */
  (void)execv(self, argv);
}
