/* SPDX-License-Identifier: Apache-2.0
 * Chooses the variant of max_pool.h for the SIMD level in force, and decides which windows it
 * supports. */
#include "kernel/sparse/max_pool.h"

#include "cpu/cpu.h"
#include "kernel/sparse/max_pool_in.h"
#include "kernel/variants.h"

static laci_max_pool_run *const of_level[] = {
#define VARIANT(name, level) [level] = laci_max_pool_##name,
    LACI_KERNEL_VARIANTS(VARIANT)
#undef VARIANT
};

laci_max_pool_run *laci_max_pool_variant(void) { return of_level[laci_cpu_level_in_force()]; }

/* Does every window along this axis contain a pixel? The first window must reach pixel 0, and the
 * last one must begin before the end of the image. */
static bool has_pixel_in_every_window(int64_t size, int64_t out, int64_t kernel, int64_t stride,
                                      int64_t pad) {
  return pad < kernel && (out - 1) * stride - pad < size;
}

int64_t laci_max_pool_n_items(const laci_max_pool *p) {
  return p->n_image_blocks * laci_max_pool_items_per_block(p);
}

bool laci_max_pool_can_compute(const laci_sparse_window *g) {
  return g->values != LACI_SPARSE_BF16 && g->dilation_h == 1 && g->dilation_w == 1 &&
         g->groups == 1 && g->stride_w <= LACI_MAX_POOL_STRIDE &&
         g->kernel_w <= LACI_MAX_POOL_KERNEL &&
         has_pixel_in_every_window(g->h, g->out_h, g->kernel_h, g->stride_h, g->pad_top) &&
         has_pixel_in_every_window(g->w, g->out_w, g->kernel_w, g->stride_w, g->pad_left);
}
