/* SPDX-License-Identifier: Apache-2.0
 * Chooses the variant of bytes.h, and counts the items of its work. */
#include "kernel/sparse/bytes.h"

#include "cpu/cpu.h"
#include "kernel/variants.h"

static const laci_bytes_kernel *const of_level[] = {
#define VARIANT(name, level) [level] = &laci_bytes_##name,
    LACI_KERNEL_VARIANTS(VARIANT)
#undef VARIANT
};

const laci_bytes_kernel *laci_bytes_variant(void) { return of_level[laci_cpu_level_in_force()]; }

int64_t laci_bytes_n_items(const laci_bytes_form *f) {
  const laci_sparse_layout *l = &f->int8x4;
  const int64_t channels = laci_sparse_layout_channels(f->channels, LACI_SPARSE_S8);
  switch (l->format) {
    case LACI_FORMAT_CHW: return f->n_image_blocks * channels;
    case LACI_FORMAT_PC16P:
      return f->n_image_blocks * (l->n_floats / (channels * LACI_SPARSE_LANES));
    default: return f->n_image_blocks * (l->n_floats / l->pixel_stride);
  }
}
