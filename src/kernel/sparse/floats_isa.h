/* SPDX-License-Identifier: Apache-2.0
 * Vectors of floats of the instruction set that a text is compiled for (kernel/variants.h): WIDTH
 * lanes, at any alignment. For texts of kernels alone. */
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
#define BOTH(a, b) /* of their bits */ \
  _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(a), _mm512_castps_si512(b)))
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
#endif

#endif
