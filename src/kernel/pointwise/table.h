/* SPDX-License-Identifier: Apache-2.0
 * A function of a quantized number, as a table of its 256 results.
 *
 *     y = values[clip(round(x / scale), low, high) - low]
 *
 * The index is computed as in fake_quantize.h. So x may be the quantized number, or the number
 * before it is quantized: the result is the same. For numbers that are stored as bytes, y =
 * bytes[x]. Results are elements of the table, so that every variant gives the same bits. */
#ifndef LACI_KERNEL_POINTWISE_TABLE_H
#define LACI_KERNEL_POINTWISE_TABLE_H

#include "kernel/pointwise/fake_quantize.h"

enum { LACI_N_BYTES = 256 };

typedef struct laci_byte_table {
  laci_fake_quantized from; /* scale and bounds of x */
  float values[LACI_N_BYTES];
} laci_byte_table;

/** Looks up the results of n floats of x, and writes them to y, which may be x. Needs only the
 * alignment of floats. Callable from any thread. */
typedef void laci_table_look_up_floats(const laci_byte_table *table, const float *x, int64_t n,
                                       float *y);
/** Looks up the results of n bytes of x, and writes them to y, which may be x. */
typedef void laci_table_look_up_bytes(const uint8_t bytes[LACI_N_BYTES], const uint8_t *x,
                                      int64_t n, uint8_t *y);

#define LACI_TABLE_DECLARE(name, level)                       \
  laci_table_look_up_floats laci_table_look_up_floats_##name; \
  laci_table_look_up_bytes laci_table_look_up_bytes_##name;
LACI_KERNEL_VARIANTS(LACI_TABLE_DECLARE)
#undef LACI_TABLE_DECLARE
#if defined(__x86_64__)
laci_table_look_up_bytes laci_table_look_up_bytes_avx512vbmi2;
#endif

/** Return the variants for the SIMD level in force (cpu/cpu.h). */
laci_table_look_up_floats *laci_table_look_up_floats_variant(void);
laci_table_look_up_bytes *laci_table_look_up_bytes_variant(void);

#endif
