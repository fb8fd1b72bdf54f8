/* SPDX-License-Identifier: Apache-2.0
 * The value table of the permutation search: a matrix product with max in the place of times.
 *
 *     out[i][j] = sum over r of max(t[i][r], x[j][r])
 *
 * t[i] is what a slot's siblings leave open in every row, x[j] a column that could go there. All
 * sums are integers, so every variant gives the same result. One scalar file defines it
 * (maxsum_scalar.c), one file per instruction set is faster; maxsum.c chooses. Next:
 * permute/strategy_assign.c, the reader. */
#ifndef LACI_KERNEL_MAXSUM_H
#define LACI_KERNEL_MAXSUM_H

#include <stddef.h>
#include <stdint.h>

#include "kernel/number.h"

enum {
  LACI_MAXSUM_ROWS = 64, /* columns are padded with zeros to a multiple of this many elements */
  LACI_MAXSUM_LIMIT = 1 << 27 /* of rows * largest element: sums fit, and so do differences */
};

/** nt x nx sums over columns of `rows` elements (rows % LACI_MAXSUM_ROWS == 0; aligned to the
 * element, no more), which the variants add to out[i * out_stride + j]. */
typedef struct laci_maxsum_job {
  const void *const *t, *const *x; /* [nt], [nx] columns */
  int nt, nx;
  size_t rows;
  int32_t *out;
  size_t out_stride;
} laci_maxsum_job;

typedef void laci_maxsum(const laci_maxsum_job *job);

/* Every variant, slowest first: the last that the processor has wins. */
#if defined(__x86_64__)
#define LACI_MAXSUM_VARIANTS(X) \
  X(scalar, LACI_CPU_ANY) X(avx2, LACI_CPU_AVX2) X(avx512, LACI_CPU_AVX512)
#else
#define LACI_MAXSUM_VARIANTS(X) X(scalar, LACI_CPU_ANY)
#endif

#define LACI_MAXSUM_DECLARE(name, level) laci_maxsum laci_maxsum_u8_##name, laci_maxsum_i16_##name;
LACI_MAXSUM_VARIANTS(LACI_MAXSUM_DECLARE)
#undef LACI_MAXSUM_DECLARE

/** The table by the variant in force (cpu/cpu.h), out set rather than added to. Rows are taken in
 * pieces that stay in the first cache. Any thread. */
void laci_maxsum_table(laci_number number, const laci_maxsum_job *job);

#endif
