/* SPDX-License-Identifier: Apache-2.0
 * Stored weights into the small integers of number.h, straight from the file's elements:
 *
 *     out[i] = trunc(min(|w[i]| * scale, largest) + 1/2)
 *
 * in float32, each operation rounded once, so that every variant gives the same integers. Elements
 * of other types, and scales that float32 cannot hold, are for the caller to do in float64.
 * quantize_isa.c is the one text of all variants; quantize.c chooses. Next:
 * permute/search_matrix.c, the reader. */
#ifndef LACI_KERNEL_SEARCH_QUANTIZE_H
#define LACI_KERNEL_SEARCH_QUANTIZE_H

#include <stdbool.h>

#include "kernel/search/number.h"
#include "kernel/variants.h"
#include "lacuna/dtype.h"

typedef struct laci_search_quantizer {
  lac_dtype dtype; /* f32, f16 or bf16 */
  laci_number number;
  float scale, largest; /* largest: an integer that the integers hold */
} laci_search_quantizer;

typedef void laci_search_quantize_elements(const laci_search_quantizer *q, const void *elements,
                                           size_t n, void *out);

#define LACI_SEARCH_QUANTIZE_DECLARE(name, level) \
  laci_search_quantize_elements laci_search_quantize_##name;
LACI_KERNEL_VARIANTS(LACI_SEARCH_QUANTIZE_DECLARE)
#undef LACI_SEARCH_QUANTIZE_DECLARE

/** Are elements of this type, times this scale, float32's business? */
bool laci_search_quantize_fits(lac_dtype dtype, double scale);

/** n finite elements (any alignment) into out, which they may not overlap. By the variant in force
 * (cpu/cpu.h). */
void laci_search_quantize(const laci_search_quantizer *q, const void *elements, size_t n,
                          void *out);

#endif
