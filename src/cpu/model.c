/* SPDX-License-Identifier: Apache-2.0
 * Reads the processor's name from /proc/cpuinfo, and its vendor by CPUID. */
#include "cpu/model.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

void laci_cpu_read_model(char name[LACI_CPU_MODEL]) {
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

void laci_cpu_read_vendor(char *vendor, size_t size, int *family) {
  (void)snprintf(vendor, size, "%s", "");
  *family = 0;
#if defined(__x86_64__)
  enum { SHIFT = 8, MORE_SHIFT = 20, MASK = 0xf, MORE_MASK = 0xff };
  unsigned eax, ebx, ecx, edx;
  unsigned letters[4] = {0};
  if (!__get_cpuid(0, &eax, &letters[0], &letters[2], &letters[1])) return;
  (void)snprintf(vendor, size, "%s", (const char *)letters);
  if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx)) return;
  const unsigned of = eax >> SHIFT & MASK, more = eax >> MORE_SHIFT & MORE_MASK;
  *family = (int)(of == MASK ? of + more : of);
#endif
}
