/* SPDX-License-Identifier: Apache-2.0
 * Sets how long waiting OpenMP threads spin, by executing the program again with another setting.
 *
 * GNU's OpenMP run time, on whose threads oneDNN works, lets a waiting thread spin for some
 * milliseconds before it sleeps. If other programs use the cores, too, a network then takes several
 * times as long; otherwise a short spin costs almost nothing (docs/explain/speed.md). The run time
 * reads its setting before main begins, so a program has to be executed again to change it. */
#include "spin_count.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

void spin_count_set_by_restart(char **argv) {
  char self[PATH_MAX];
  if (getenv("GOMP_SPINCOUNT") || getenv("OMP_WAIT_POLICY")) return;
  ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  if (length <= 0 || setenv("GOMP_SPINCOUNT", "1000", 1)) return;
  self[length] = 0; /* path of this program's file, so that the process keeps its name after exec */
  (void)execv(self, argv);
}
