/* SPDX-License-Identifier: Apache-2.0
 * Chooses the variants of dynamic_steps.h, and the scale. */
#include "kernel/pointwise/dynamic_steps.h"

#include <math.h>

#include "cpu/cpu.h"

laci_dynamic_scale laci_dynamic_scale_from_extremes(laci_extremes e) {
  const float scale = (e.high - e.low) / UINT8_MAX;
  if (!(scale > 0)) return (laci_dynamic_scale){scale, 0};
  const float zero = rintf(-e.low / scale);
  return (laci_dynamic_scale){scale, zero < UINT8_MAX ? zero : UINT8_MAX};
}

static laci_find_extremes *const find_of_level[] = {
#define VARIANT(name, level) [level] = laci_find_extremes_##name,
    LACI_KERNEL_VARIANTS(VARIANT)
#undef VARIANT
};

static laci_quantize_dynamic_floats *const write_of_level[] = {
#define VARIANT(name, level) [level] = laci_quantize_dynamic_floats_##name,
    LACI_KERNEL_VARIANTS(VARIANT)
#undef VARIANT
};

static laci_quantize_dynamic_bytes *const write_bytes_of_level[] = {
#define VARIANT(name, level) [level] = laci_quantize_dynamic_bytes_##name,
    LACI_KERNEL_VARIANTS(VARIANT)
#undef VARIANT
};

laci_find_extremes *laci_find_extremes_variant(void) {
  return find_of_level[laci_cpu_level_in_force()];
}
laci_quantize_dynamic_floats *laci_quantize_dynamic_floats_variant(void) {
  return write_of_level[laci_cpu_level_in_force()];
}
laci_quantize_dynamic_bytes *laci_quantize_dynamic_bytes_variant(void) {
  return write_bytes_of_level[laci_cpu_level_in_force()];
}
