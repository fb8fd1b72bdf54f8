/* SPDX-License-Identifier: Apache-2.0
 * Chooses the variant of product.h. */
#include "kernel/sparse/product.h"

#include "cpu/cpu.h"

static laci_sparse_multiply *const of_level[] = {
#define VARIANT(name, level) [level] = laci_sparse_multiply_##name,
    LACI_KERNEL_VARIANTS(VARIANT)
#undef VARIANT
};

laci_sparse_multiply *laci_sparse_multiply_now(void) { return of_level[laci_cpu()]; }
