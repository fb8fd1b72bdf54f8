/* SPDX-License-Identifier: Apache-2.0
 * Divides images into bands for weight_gradient.h, and computes weights from a window's sums. */
#include "kernel/convolution/weight_gradient.h"

enum {
  ENTRY = 2 * LACI_GRADIENT_BLOCK * sizeof(uint16_t), /* bytes: two pixels of a block */
  NEAR = 20 << 10, /* limit of the bytes of paired input: they stay in the first-level cache while
                      all windows read them one after the other */
};

void laci_weight_gradient_from_sums(const laci_weight_gradient *g, const float *sums,
                                    float *weights) {
  const int64_t next = LACI_GRADIENT_TILE;
  int64_t n = g->kernel_h * g->kernel_w;
  if (!g->winograd) {
    for (int64_t at = 0; at < n; at++) weights[at] = sums[at * next];
    return;
  }
  for (int64_t at = 0; at < n; at += LACI_WINOGRAD_WINDOW) {
    float half = (sums[next] + sums[2 * next]) * 0.5F;
    weights[at] = sums[0] + half;
    weights[at + 1] = (sums[next] - sums[2 * next]) * 0.5F;
    weights[at + 2] = half + sums[3 * next];
    sums += LACI_WINOGRAD_POINTS * next;
  }
}

laci_gradient_band laci_weight_gradient_choose_band(const laci_weight_gradient *g) {
  laci_gradient_band b = {.rows = 1, .images = 1, .pairs = (g->out_w + 1) / 2};
  if (g->winograd) {
    b.pairs = (b.pairs + 1) / 2; /* with Winograd's algorithm, an entry holds two tiles */
    b.input_step = 1;
    b.entries = LACI_WINOGRAD_POINTS * b.pairs;
  } else {
    b.input_step = 2 * g->stride_w;
    b.entries = (b.pairs - 1) * b.input_step + g->kernel_w;
  }
  int64_t row = b.entries * ENTRY;
  while (b.rows < g->out_h && (b.rows * g->stride_h + g->kernel_h) * row <= NEAR) b.rows++;
  b.in_rows = (b.rows - 1) * g->stride_h + g->kernel_h;
  if (b.rows == g->out_h && NEAR / (b.in_rows * row) > 1) b.images = NEAR / (b.in_rows * row);
  return b;
}

size_t laci_weight_gradient_scratch_bytes(const laci_weight_gradient *g, int64_t k_blocks) {
  const int64_t window = 64, pixels = (int64_t)1 << 20, blocks = (int64_t)1 << 15;
  if (g->kernel_h > window || g->kernel_w > window || g->stride_h > window ||
      g->stride_w > window || g->w > pixels || g->out_w > pixels || k_blocks > blocks) {
    return 0;
  }
  laci_gradient_band b = laci_weight_gradient_choose_band(g);
  int64_t in = b.images * b.in_rows * b.entries;
  int64_t out = b.images * b.rows * b.pairs * k_blocks * (g->winograd ? LACI_WINOGRAD_POINTS : 1);
  return (size_t)(in + out) * ENTRY;
}
