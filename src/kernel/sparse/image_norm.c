/* SPDX-License-Identifier: Apache-2.0
 * Chooses the variant of image_norm.h (batch normalization) for the SIMD level in force. */
#include "kernel/sparse/image_norm.h"

#include "cpu/cpu.h"
#include "kernel/variants.h"

static const laci_image_norm *const of_level[] = {
#define VARIANT(name, level) [level] = &laci_image_norm_##name,
    LACI_KERNEL_VARIANTS(VARIANT)
#undef VARIANT
};

static const laci_image_norm *const pairs_of_level[] = {
#define VARIANT(name, level) [level] = &laci_image_norm_bf16_##name,
    LACI_KERNEL_VARIANTS(VARIANT)
#undef VARIANT
};

const laci_image_norm *laci_image_norm_variant(void) { return of_level[laci_cpu_level_in_force()]; }
const laci_image_norm *laci_image_norm_bf16_variant(void) {
  return pairs_of_level[laci_cpu_level_in_force()];
}
