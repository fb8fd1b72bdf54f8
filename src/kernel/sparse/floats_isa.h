/* SPDX-License-Identifier: Apache-2.0
 * Vectors of floats, for the instruction set that a kernel's source is compiled for
 * (kernel/variants.h). A vector has WIDTH lanes, and is loaded from any alignment. Only sources of
 * kernels include this. */
#ifndef LACI_KERNEL_SPARSE_FLOATS_ISA_H
#define LACI_KERNEL_SPARSE_FLOATS_ISA_H

#if defined(__AVX512F__)
#include <immintrin.h>
enum { WIDTH = 16 };
typedef __m512 vector;
#define ALL(x) _mm512_set1_ps(x)
#define LOAD(at) _mm512_loadu_ps(at)
#define STORE(at, x) _mm512_storeu_ps(at, x)
#define FMA(a, b, sum) _mm512_fmadd_ps(a, b, sum)
#define ADD(a, b) _mm512_add_ps(a, b)
#define SUB(a, b) _mm512_sub_ps(a, b)
#define MUL(a, b) _mm512_mul_ps(a, b)
#define LARGER(a, b) _mm512_max_ps(a, b) /* a > b ? a : b */
#define SMALLER(a, b) _mm512_min_ps(a, b)
#define BOTH(a, b) /* bitwise and of two vectors */ \
  _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(a), _mm512_castps_si512(b)))
static inline vector laci_every_second_lane(vector a, vector b, int32_t first) {
  int32_t lanes[WIDTH];
  for (int32_t lane = 0; lane < WIDTH; lane++) lanes[lane] = 2 * lane + first;
  return _mm512_permutex2var_ps(a, _mm512_loadu_si512(lanes), b);
}
#define EVEN(a, b) \
  laci_every_second_lane(a, b, 0) /* every second lane of a, then of b, from lane 0 on */
#define ODD(a, b) laci_every_second_lane(a, b, 1)
#elif defined(__AVX2__)
#include <immintrin.h>
enum { WIDTH = 8 };
typedef __m256 vector;
#define ALL(x) _mm256_set1_ps(x)
#define LOAD(at) _mm256_loadu_ps(at)
#define STORE(at, x) _mm256_storeu_ps(at, x)
#define FMA(a, b, sum) _mm256_fmadd_ps(a, b, sum)
#define ADD(a, b) _mm256_add_ps(a, b)
#define SUB(a, b) _mm256_sub_ps(a, b)
#define MUL(a, b) _mm256_mul_ps(a, b)
#define LARGER(a, b) _mm256_max_ps(a, b)
#define SMALLER(a, b) _mm256_min_ps(a, b)
#define BOTH(a, b) _mm256_and_ps(a, b)
/* On AVX2, EVEN and ODD give quarters of a vector in the order: first of a, first of b, second of
 * a, second of b. This moves them to the order of a's, then b's. */
static inline vector laci_interleave_quarters(vector v) {
  return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(v), 0xD8));
}
#define EVEN(a, b) laci_interleave_quarters(_mm256_shuffle_ps(a, b, 0x88))
#define ODD(a, b) laci_interleave_quarters(_mm256_shuffle_ps(a, b, 0xDD))
#elif defined(__ARM_NEON)
#include <arm_neon.h>
enum { WIDTH = 4 };
typedef float32x4_t vector;
#define ALL(x) vdupq_n_f32(x)
#define LOAD(at) vld1q_f32(at)
#define STORE(at, x) vst1q_f32(at, x)
#define FMA(a, b, sum) vfmaq_f32(sum, a, b)
#define ADD(a, b) vaddq_f32(a, b)
#define SUB(a, b) vsubq_f32(a, b)
#define MUL(a, b) vmulq_f32(a, b)
#define LARGER(a, b) vbslq_f32(vcgtq_f32(a, b), a, b)
#define SMALLER(a, b) vbslq_f32(vcltq_f32(a, b), a, b)
#define BOTH(a, b) \
  vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(a), vreinterpretq_u32_f32(b)))
#define EVEN(a, b) vuzp1q_f32(a, b)
#define ODD(a, b) vuzp2q_f32(a, b)
#endif

#endif
