/* SPDX-License-Identifier: Apache-2.0
 * Comparisons, logic, choices and conversions of integers, truth values and floats, a row at a
 * time:
 *
 *     to[i] = f(a[i], b[i], c[i])
 *
 * where an operand is an array, or one element that all results read. Truth values are int64, 0 or
 * 1. rows_isa.c is the common source of all variants; the scalar variant is the reference, and all
 * give the same bits. Caller: engine/cpu/lower/rows.c. */
#ifndef LACI_KERNEL_POINTWISE_ROWS_H
#define LACI_KERNEL_POINTWISE_ROWS_H

#include <stdint.h>

#include "kernel/variants.h"

enum { LACI_ROW_OPERANDS = 3 };

/** What a row computes, by the name that rows.def has. */
typedef enum laci_row_kind {
#define LACI_ROW(NAME, N, TYPE, VALUE) LACI_ROW_##NAME,
#include "kernel/pointwise/rows.def"
#undef LACI_ROW
  LACI_N_ROW_KINDS
} laci_row_kind;

/** Computes n results `to`. Operand from[k] has n elements where steps[k] is 1, and one where it is
 * 0. Operands that the kind does not have are not read, and their steps are 0. `to` overlaps no
 * operand. Callable from any thread. */
typedef void laci_row_function(int64_t n, void *to, const void *const from[LACI_ROW_OPERANDS],
                               const int64_t steps[LACI_ROW_OPERANDS]);

#define LACI_ROWS_DECLARE(name, level) \
  extern laci_row_function *const laci_rows_##name[LACI_N_ROW_KINDS];
LACI_KERNEL_VARIANTS(LACI_ROWS_DECLARE)
#undef LACI_ROWS_DECLARE

/** Returns the function of this kind for the SIMD level in force (cpu/cpu.h). */
laci_row_function *laci_row_variant(laci_row_kind kind);

#endif
