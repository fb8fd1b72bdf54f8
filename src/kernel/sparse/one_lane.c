/* SPDX-License-Identifier: Apache-2.0
 * Chooses the variant of one_lane.h (sums for tiles with one result) for the SIMD level in
 * force. */
#include "kernel/sparse/one_lane.h"

#include "cpu/cpu.h"
#include "kernel/variants.h"

static laci_one_lane_add *const of_level[] = {
#define VARIANT(name, level) [level] = laci_one_lane_add_##name,
    LACI_KERNEL_VARIANTS(VARIANT)
#undef VARIANT
};

laci_one_lane_add *laci_one_lane_add_variant(void) { return of_level[laci_cpu_level_in_force()]; }
