/* SPDX-License-Identifier: Apache-2.0
 * Chooses the variant of strips.h, and packs matrices. */
#include "kernel/linear/strips.h"

#include "cpu/cpu.h"

static laci_multiply_strips *const of_level[] = {
#define VARIANT(name, level) [level] = laci_multiply_strips_##name,
    LACI_KERNEL_VARIANTS(VARIANT)
#undef VARIANT
};

laci_multiply_strips *laci_multiply_strips_variant(void) {
  return of_level[laci_cpu_level_in_force()];
}

void laci_strips_set_column(float *strips, int64_t depth, int64_t column, const float *w) {
  float *to = strips + column / LACI_STRIP * depth * LACI_STRIP + column % LACI_STRIP;
  for (int64_t k = 0; k < depth; k++) to[k * LACI_STRIP] = w[k];
}
