/* SPDX-License-Identifier: Apache-2.0
 * Chooses the variant of quantize.h, and decides what float32 can quantize. */
#include "kernel/search/quantize.h"

#include <float.h>

#include "cpu/cpu.h"

static laci_search_quantize_elements *const of_level[] = {
#define VARIANT(name, level) [level] = laci_search_quantize_##name,
    LACI_KERNEL_VARIANTS(VARIANT)
#undef VARIANT
};

bool laci_search_can_quantize_in_float(lac_dtype dtype, double scale) {
  bool is_stored_so = dtype == LAC_DTYPE_F32 || dtype == LAC_DTYPE_F16 || dtype == LAC_DTYPE_BF16;
  return is_stored_so && (scale == 0 || (scale >= FLT_MIN && scale <= FLT_MAX));
}

void laci_search_quantize(const laci_search_quantizer *q, const void *elements, size_t n,
                          void *out) {
  of_level[laci_cpu_level_in_force()](q, elements, n, out);
}
