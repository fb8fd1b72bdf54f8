/* SPDX-License-Identifier: Apache-2.0
 * Into how many items the work of bytes.h falls. */
#include "kernel/sparse/bytes.h"

int64_t laci_bytes_items(const laci_bytes_form *f) {
  const laci_sparse_layout *l = &f->quads;
  const int64_t channels = laci_sparse_channels(f->channels, LACI_SPARSE_S8);
  switch (l->lanes) {
    case LACI_SPARSE_PLANES: return f->n_pictures * channels;
    case LACI_SPARSE_PANELS: return f->n_pictures * (l->n_floats / (channels * LACI_SPARSE_LANES));
    default: return f->n_pictures * (l->n_floats / l->pixel_stride);
  }
}
