/* SPDX-License-Identifier: Apache-2.0
 * Chooses the variant of the rounding function of bf16_pairs.h. */
#include "kernel/sparse/bf16_pairs.h"

#include "cpu/cpu.h"
#include "kernel/variants.h"

static laci_sparse_round *const of_level[] = {
#define VARIANT(name, level) [level] = laci_sparse_round_##name,
    LACI_KERNEL_VARIANTS(VARIANT)
#undef VARIANT
};

laci_sparse_round *laci_sparse_round_variant(void) { return of_level[laci_cpu_level_in_force()]; }
