/* SPDX-License-Identifier: Apache-2.0
 * Packs the weights of depthwise_int8x4.h, divides its work, and chooses the variant. */
#include "kernel/sparse/depthwise_int8x4.h"

#include <string.h>

#include "base/divide.h"
#include "base/min.h"
#include "cpu/cpu.h"

enum { SIDE = LACI_INT8X4_CHANNELS };

laci_depthwise_int8x4_run *laci_depthwise_int8x4_variant(void) {
#if defined(__x86_64__)
  if (laci_cpu_level_in_force() == LACI_CPU_AVX512) return laci_depthwise_int8x4_avx512;
  if (laci_cpu_level_in_force() == LACI_CPU_AVX2) return laci_depthwise_int8x4_avx2;
#endif
  return laci_depthwise_int8x4_scalar;
}

bool laci_depthwise_int8x4_can_compute(const laci_sparse_window *g) {
  const int64_t taps = g->kernel_h * g->kernel_w;
  return g->values == LACI_SPARSE_S8 && g->groups == g->channels_in &&
         g->channels_out == g->groups && taps <= LACI_DEPTHWISE_INT8X4_MOST_TAPS &&
         g->stride_w <= 2;
}

int64_t laci_depthwise_int8x4_weight_bytes(const laci_sparse_window *g) {
  return laci_ceil_div(g->channels_out, SIDE) * laci_ceil_div(g->kernel_h, SIDE) * g->kernel_w *
         SIDE * SIDE;
}

void laci_depthwise_int8x4_pack(const laci_sparse_window *g, const float *weight, int8_t *packed) {
  memset(packed, 0, (size_t)laci_depthwise_int8x4_weight_bytes(g));
  for (int64_t channel = 0; channel < g->channels_out; channel++) {
    for (int64_t row = 0; row < g->kernel_h; row++) {
      for (int64_t column = 0; column < g->kernel_w; column++, weight++) {
        packed[laci_depthwise_int8x4_weight_at(g, channel, row, column)] =
            laci_sparse_weight_to_s8(*weight);
      }
    }
  }
}

/* Returns the number of bands into which the rows of an image are divided. Tall images are divided
 * as the other kernels divide them, so that a thread mostly reads what it has written itself. */
static int64_t count_bands(const laci_depthwise_int8x4 *d) {
  enum { TALL = 16, BANDS = 4 };
  return d->window.out_h >= TALL ? BANDS : 1;
}

static int64_t count_channel_groups(const laci_depthwise_int8x4 *d) {
  return laci_ceil_div(d->window.channels_out, SIDE);
}

int64_t laci_depthwise_int8x4_n_items(const laci_depthwise_int8x4 *d) {
  return d->n_image_blocks * count_bands(d) * count_channel_groups(d);
}

laci_depthwise_int8x4_item laci_depthwise_int8x4_find_item(const laci_depthwise_int8x4 *d,
                                                           int64_t item) {
  const int64_t n_bands = count_bands(d), groups = count_channel_groups(d);
  const int64_t band = item / groups % n_bands, channel = item % groups * SIDE;
  return (laci_depthwise_int8x4_item){
      .image_block = item / groups / n_bands,
      .channel = channel,
      .n_channels = laci_min(SIDE, d->window.channels_out - channel),
      .row_first = band * d->window.out_h / n_bands,
      .row_last = (band + 1) * d->window.out_h / n_bands};
}
