/* SPDX-License-Identifier: Apache-2.0
 * Chooses the variant of bytes.h. */
#include "kernel/sparse/bytes.h"

#include "cpu/cpu.h"
#include "kernel/variants.h"

static const laci_bytes_kernel *const of_level[] = {
#define VARIANT(name, level) [level] = &laci_bytes_##name,
    LACI_KERNEL_VARIANTS(VARIANT)
#undef VARIANT
};

const laci_bytes_kernel *laci_bytes_now(void) { return of_level[laci_cpu()]; }
