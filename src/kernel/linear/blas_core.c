/* SPDX-License-Identifier: Apache-2.0
 * Loads OpenBLAS with kernels for this processor's instructions.
 *
 * OpenBLAS chooses its kernels by the processor's model when it is loaded. A release older than the
 * processor does not know it, and takes kernels without AVX: products then take several times as
 * long. So we name a processor with the same instructions, in the environment, the only place where
 * OpenBLAS looks for it. Another thread may read the environment at that moment. Therefore nothing
 * of it is changed; the process has another list of the same texts while OpenBLAS is loaded. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "kernel/linear/linear_in.h"

extern char **environ;

#define VARIABLE "OPENBLAS_CORETYPE"

/* The list that extend_environment has made; checkers of leaks find it here. */
extern char **laci_linear_environment;
char **laci_linear_environment;

/* Returns the setting; NULL: OpenBLAS chooses by itself. */
static const char *choose_core(void) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return VARIABLE "=SkylakeX";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return __builtin_cpu_is("amd") ? VARIABLE "=Zen" : VARIABLE "=Haswell";
#endif
  return NULL;
}

/* Returns a list of the environment's texts with one more, or NULL if memory is short. It is never
 * freed, since another thread may still read it. */
static char **extend_environment(const char *setting) {
  size_t n = 0;
  while (environ && environ[n]) n++;
  char **list = laci_alloc(n + 2, sizeof *list);
  if (!list) return NULL;
  laci_linear_environment = list;
  if (n > 0) memcpy(list, environ, n * sizeof *list);
  list[n] = (char *)(uintptr_t)setting;
  return list;
}

void *laci_linear_open_openblas(const char *path) {
  const char *setting = getenv(VARIABLE) ? NULL : choose_core();
  char **const before = environ, **const with = setting ? extend_environment(setting) : NULL;
  if (with) environ = with;
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (with) environ = before;
  return library;
}
