/* SPDX-License-Identifier: Apache-2.0
 * Reads /proc/cpuinfo. */
#include "cpu/model.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

void laci_cpu_model(char name[LACI_CPU_MODEL]) {
  char line[2 * LACI_CPU_MODEL];
  struct utsname system;
  FILE *file = fopen("/proc/cpuinfo", "re");
  (void)snprintf(name, LACI_CPU_MODEL, "%s", uname(&system) == 0 ? system.machine : "unknown");
  while (file && fgets(line, sizeof line, file)) {
    const char *colon = strstr(line, ": ");
    if (strncmp(line, "model name", strlen("model name")) != 0 || !colon) continue;
    (void)snprintf(name, LACI_CPU_MODEL, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
    break;
  }
  if (file) (void)fclose(file);
}
