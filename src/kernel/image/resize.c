/* SPDX-License-Identifier: Apache-2.0
 * Chooses the variant of resize.h. */
#include "kernel/image/resize.h"

#include "cpu/cpu.h"

static const laci_image_resize *const of_level[] = {
#define VARIANT(name, level) [level] = &laci_image_resize_##name,
    LACI_KERNEL_VARIANTS(VARIANT)
#undef VARIANT
};

const laci_image_resize *laci_image_resize_variant(void) {
  return of_level[laci_cpu_level_in_force()];
}
