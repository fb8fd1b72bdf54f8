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
#elif defined(__AVX2__)
#include <immintrin.h>
enum { WIDTH = 8 };
typedef __m256 vector;
#define ALL(x) _mm256_set1_ps(x)
#define LOAD(at) _mm256_loadu_ps(at)
#define STORE(at, x) _mm256_storeu_ps(at, x)
#define FMA(a, b, sum) _mm256_fmadd_ps(a, b, sum)
#elif defined(__ARM_NEON)
#include <arm_neon.h>
enum { WIDTH = 4 };
typedef float32x4_t vector;
#define ALL(x) vdupq_n_f32(x)
#define LOAD(at) vld1q_f32(at)
#define STORE(at, x) vst1q_f32(at, x)
#define FMA(a, b, sum) vfmaq_f32(sum, a, b)
#endif

#endif
