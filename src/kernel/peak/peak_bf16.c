/* SPDX-License-Identifier: Apache-2.0
 * peak.h's baseline of bf16: products of bf16 pairs, summed in f32, by the instructions that the
 * engine's dense kernels use. AVX512-BF16 is not a level of cpu/cpu.h, so this function has its own
 * target attribute, and tests for the instructions here. */
#include "kernel/peak/peak.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <stdbool.h>

#include "cpu/cpu.h"

enum { LANES = 16, CHAINS = 12, PAIR = 2 };
static const short half_bits = 0x3F00; /* 0.5 as bf16: a pair of products 0.5 * 1 adds 1 */
static const short one_bits = 0x3F80;

__attribute__((target("avx512f,avx512bf16"))) static double pairs(int64_t iterations,
                                                                  float *value) {
  __m512 x[CHAINS];
  __m512bh half = (__m512bh)_mm512_set1_epi16(half_bits);
  __m512bh one = (__m512bh)_mm512_set1_epi16(one_bits);
  for (int chain = 0; chain < CHAINS; chain++) x[chain] = _mm512_set1_ps((float)-chain);
  for (int64_t iteration = 0; iteration < iterations; iteration++) {
#pragma GCC unroll 32
    for (int chain = 0; chain < CHAINS; chain++) {
      x[chain] = _mm512_dpbf16_ps(x[chain], half, one);
    }
  }
  float most = x[0][0];
  for (int chain = 0; chain < CHAINS; chain++) most = x[chain][0] > most ? x[chain][0] : most;
  *value = most;
  return 2.0 * PAIR * CHAINS * LANES * (double)iterations;
}

laci_peak_kernel laci_peak_bf16_variant(void) {
  bool has = laci_cpu_level_in_force() == LACI_CPU_AVX512 && __builtin_cpu_supports("avx512bf16");
  return has ? (laci_peak_kernel){"avx512 bf16", pairs} : (laci_peak_kernel){"none", NULL};
}

#else

laci_peak_kernel laci_peak_bf16_variant(void) { return (laci_peak_kernel){"none", NULL}; }

#endif
