/* SPDX-License-Identifier: Apache-2.0
 * peak.h for every instruction set: the build compiles this once for each (variants.h). Instruction
 * sets differ in the vector, the number of chains that hides the latency, and the step half * x +
 * one. Chains begin at different values, or the compiler would merge them into one. */
#include "kernel/peak/peak.h"

#if defined(__AVX512F__) /* two multipliers of four cycles need eight chains; twelve leave no gap */
#include <immintrin.h>
enum { LANES = 16, CHAINS = 12 };
typedef __m512 lanes;
#define NEXT(x, half, one) _mm512_fmadd_ps(x, half, one)
#elif defined(__AVX2__) /* as many chains as AVX-512 */
#include <immintrin.h>
enum { LANES = 8, CHAINS = 12 };
typedef __m256 lanes;
#define NEXT(x, half, one) _mm256_fmadd_ps(x, half, one)
#elif defined(LACI_ISA_NEON) /* large cores have four multipliers with a latency of four cycles */
#include <arm_neon.h>
enum { LANES = 4, CHAINS = 24 };
typedef float32x4_t lanes;
#define NEXT(x, half, one) vfmaq_f32(one, x, half)
#else /* four floats, which the vectors of all common processors hold */
enum { LANES = 4, CHAINS = 12 };
typedef float lanes __attribute__((vector_size(16)));
#define NEXT(x, half, one) ((x) * (half) + (one))
#endif

double LACI_VARIANT(laci_peak_f32)(int64_t iterations, float *value) {
  lanes x[CHAINS], half, one;
  for (int lane = 0; lane < LANES; lane++) {
    half[lane] = 0.5F;
    one[lane] = 1.0F;
    for (int chain = 0; chain < CHAINS; chain++) x[chain][lane] = (float)-(chain + CHAINS * lane);
  }
  for (int64_t iteration = 0; iteration < iterations; iteration++) {
#pragma GCC unroll 32
    for (int chain = 0; chain < CHAINS; chain++) x[chain] = NEXT(x[chain], half, one);
  }
  float most = x[0][0];
  for (int chain = 0; chain < CHAINS; chain++) {
    for (int lane = 0; lane < LANES; lane++) most = x[chain][lane] > most ? x[chain][lane] : most;
  }
  *value = most;
  return 2.0 * CHAINS * LANES * (double)iterations;
}
