/* SPDX-License-Identifier: Apache-2.0
 * Chooses the f32 baseline, and reads memory. */
#include "kernel/peak/peak.h"

#include "cpu/cpu.h"

enum { STRANDS = 8 };

static const laci_peak_kernel of_level[] = {
#define VARIANT(name, level) [level] = {#name " f32", laci_peak_f32_##name},
    LACI_KERNEL_VARIANTS(VARIANT)
#undef VARIANT
};

laci_peak_kernel laci_peak_f32_variant(void) {
#if defined(__x86_64__)
  if (laci_cpu_level_in_force() == LACI_CPU_AVX2 && laci_cpu_has_avx512f())
    return (laci_peak_kernel){"avx512 f32", laci_peak_f32_avx512f};
#endif
  return of_level[laci_cpu_level_in_force()];
}

uint64_t laci_peak_read_memory(const uint64_t *words, size_t n) {
  uint64_t strands[STRANDS] = {0}, all = 0;
  size_t at = 0;
  for (; at + STRANDS <= n; at += STRANDS) {
    for (int s = 0; s < STRANDS; s++) strands[s] ^= words[at + (size_t)s];
  }
  for (; at < n; at++) all ^= words[at];
  for (int s = 0; s < STRANDS; s++) all ^= strands[s];
  return all;
}
