/* SPDX-License-Identifier: Apache-2.0
 * Chooses the variant of image_bytes.h, and counts the items of its work. */
#include "kernel/sparse/image_bytes.h"

#include "cpu/cpu.h"

static laci_image_bytes_pack *const of_level[] = {
#define VARIANT(name, level) [level] = laci_image_bytes_pack_##name,
    LACI_KERNEL_VARIANTS(VARIANT)
#undef VARIANT
};

laci_image_bytes_pack *laci_image_bytes_variant(void) {
  return of_level[laci_cpu_level_in_force()];
}

bool laci_image_bytes_can_pack(const laci_sparse_layout *floats, const laci_sparse_layout *int8x4) {
  return floats->format == LACI_FORMAT_CHW && floats->phases_h == 1 && floats->phases_w == 1 &&
         (int8x4->format == LACI_FORMAT_CHW || int8x4->format == LACI_FORMAT_PC16P);
}

int64_t laci_image_bytes_n_items(const laci_image_bytes *b) {
  return b->size.n_images * laci_sparse_layout_channels(b->size.channels, LACI_SPARSE_S8) *
         b->size.h;
}
