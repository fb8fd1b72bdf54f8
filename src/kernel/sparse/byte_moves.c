/* SPDX-License-Identifier: Apache-2.0
 * Chooses the variant of byte_moves.h for the SIMD level in force. */
#include "kernel/sparse/byte_moves.h"

#include "cpu/cpu.h"
#include "kernel/variants.h"

static laci_byte_move_run *const of_level[] = {
#define VARIANT(name, level) [level] = laci_byte_move_##name,
    LACI_KERNEL_VARIANTS(VARIANT)
#undef VARIANT
};

laci_byte_move_run *laci_byte_move_variant(void) { return of_level[laci_cpu_level_in_force()]; }

int64_t laci_byte_move_n_items(const laci_byte_move *m) {
  return m->n_image_blocks * laci_sparse_layout_channels(m->channels, LACI_SPARSE_S8);
}
