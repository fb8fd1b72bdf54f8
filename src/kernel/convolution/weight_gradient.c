/* SPDX-License-Identifier: Apache-2.0
 * Chooses the variant of weight_gradient.h. Read next: weight_gradient_bands.c, which variants
 * call. */
#include "kernel/convolution/weight_gradient.h"

#include "cpu/cpu.h"

laci_weight_sums *laci_weight_sums_variant(void) {
#if defined(__x86_64__)
  if (laci_cpu_level_in_force() == LACI_CPU_AVX512 && __builtin_cpu_supports("avx512bf16")) {
    return laci_weight_sums_avx512bf16;
  }
#endif
  return NULL;
}
