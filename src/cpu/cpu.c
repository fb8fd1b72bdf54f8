/* SPDX-License-Identifier: Apache-2.0
 * The processor's level: asked of the compiler's run-time support, capped by LAC_CPU. A word that
 * LAC_CPU does not know caps nothing: a typing error must not make a run slow in silence, and the
 * command reports the level it runs at. */
#include "cpu/cpu.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {"scalar", "avx2", "avx512"};
enum { N_LEVELS = sizeof names / sizeof *names };

static atomic_int level_now = -1; /* -1: not asked yet; finding out twice gives the same answer */

static laci_cpu_level level_of_processor(void) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return LACI_CPU_ANY;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni")) {
    return LACI_CPU_AVX512;
  }
  return LACI_CPU_AVX2;
#else
  return LACI_CPU_ANY;
#endif
}

static laci_cpu_level level_allowed(void) {
  const char *cap = getenv("LAC_CPU");
  for (int i = 0; cap && i < N_LEVELS; i++) {
    if (!strcmp(cap, names[i])) return (laci_cpu_level)i;
  }
  return (laci_cpu_level)(N_LEVELS - 1);
}

static laci_cpu_level lower_of(laci_cpu_level a, laci_cpu_level b) { return a < b ? a : b; }

laci_cpu_level laci_cpu(void) {
  int level = atomic_load_explicit(&level_now, memory_order_relaxed);
  if (level >= 0) return (laci_cpu_level)level;
  laci_cpu_level found = lower_of(level_of_processor(), level_allowed());
  atomic_store_explicit(&level_now, (int)found, memory_order_relaxed);
  return found;
}

const char *laci_cpu_name(laci_cpu_level level) {
  return (int)level >= 0 && (int)level < N_LEVELS ? names[level] : "unknown";
}

laci_cpu_level laci_cpu_cap(laci_cpu_level level) {
  laci_cpu_level found = lower_of(level_of_processor(), level);
  atomic_store_explicit(&level_now, (int)found, memory_order_relaxed);
  return found;
}
