/* SPDX-License-Identifier: Apache-2.0
 * Chooses the variant of average_pool.h for the SIMD level in force, and decides which windows it
 * supports. */
#include "kernel/sparse/average_pool.h"

#include "cpu/cpu.h"
#include "kernel/variants.h"

static laci_average_pool_run *const of_level[] = {
#define VARIANT(name, level) [level] = laci_average_pool_##name,
    LACI_KERNEL_VARIANTS(VARIANT)
#undef VARIANT
};

laci_average_pool_run *laci_average_pool_variant(void) {
  return of_level[laci_cpu_level_in_force()];
}

int64_t laci_average_pool_n_items(const laci_average_pool *p) {
  return p->n_image_blocks * laci_sparse_layout_channels(p->window.channels_in, p->window.values);
}

/* Does every window along this axis contain a pixel? The first window must reach pixel 0, and the
 * last one must begin before the end of the image. */
static bool has_pixel_in_every_window(int64_t size, int64_t out, int64_t kernel, int64_t stride,
                                      int64_t pad) {
  return pad < kernel && (out - 1) * stride - pad < size;
}

bool laci_average_pool_can_compute(const laci_sparse_window *g) {
  const int64_t most = (int64_t)1 << 22; /* sums of so many bytes fit in 32 bits */
  return g->values == LACI_SPARSE_S8 && g->dilation_h == 1 && g->dilation_w == 1 &&
         g->groups == 1 && g->kernel_h <= most && g->kernel_w <= most / g->kernel_h &&
         has_pixel_in_every_window(g->h, g->out_h, g->kernel_h, g->stride_h, g->pad_top) &&
         has_pixel_in_every_window(g->w, g->out_w, g->kernel_w, g->stride_w, g->pad_left);
}
