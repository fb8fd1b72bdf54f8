/* SPDX-License-Identifier: Apache-2.0
 * Quantizes weights, as they are stored in a file, to the small integers of number.h:
 *
 *     out[i] = trunc(min(|w[i]| * scale, largest) + 1/2)
 *
 * in float32, each operation rounded once, so that every variant gives the same integers. For
 * elements of other types and scales that float32 cannot hold, the caller must compute in float64.
 * quantize_isa.c is the common source of all variants; quantize.c chooses. Caller:
 * permute/search_matrix.c. */
#ifndef LACI_KERNEL_SEARCH_QUANTIZE_H
#define LACI_KERNEL_SEARCH_QUANTIZE_H

#include <stdbool.h>

#include "kernel/search/number.h"
#include "kernel/variants.h"
#include "lacuna/dtype.h"

typedef struct laci_search_quantizer {
  lac_dtype dtype; /* f32, f16 or bf16 */
  laci_number number;
  float scale, largest; /* largest: an integer that `number` can hold */
} laci_search_quantizer;

typedef void laci_search_quantize_elements(const laci_search_quantizer *q, const void *elements,
                                           size_t n, void *out);

#define LACI_SEARCH_QUANTIZE_DECLARE(name, level) \
  laci_search_quantize_elements laci_search_quantize_##name;
LACI_KERNEL_VARIANTS(LACI_SEARCH_QUANTIZE_DECLARE)
#undef LACI_SEARCH_QUANTIZE_DECLARE

/** Can float32 quantize elements of this type with this scale (see above)? */
bool laci_search_can_quantize_in_float(lac_dtype dtype, double scale);

/** Quantizes n finite elements (of any alignment) to `out`, which may not overlap them, with the
 * variant in force (cpu/cpu.h). */
void laci_search_quantize(const laci_search_quantizer *q, const void *elements, size_t n,
                          void *out);

#endif
