/* SPDX-License-Identifier: Apache-2.0
 * Prepares the depthwise convolution of depthwise.h, and chooses the kernel variant. */
#include "kernel/sparse/depthwise.h"

#include "base/divide.h"
#include "base/error.h"
#include "base/memory.h"
#include "cpu/cpu.h"
#include "kernel/variants.h"

static laci_depthwise_multiply *const of_level[] = {
#define VARIANT(name, level) [level] = laci_depthwise_multiply_##name,
    LACI_KERNEL_VARIANTS(VARIANT)
#undef VARIANT
};

laci_depthwise_multiply *laci_depthwise_multiply_variant(void) {
  return of_level[laci_cpu_level_in_force()];
}

bool laci_depthwise_can_compute(const laci_sparse_window *g) {
  const int64_t taps = g->kernel_h * g->kernel_w;
  return g->values == LACI_SPARSE_F32 && g->groups == g->channels_in &&
         g->channels_out == g->groups && taps > 1 && taps <= LACI_DEPTHWISE_MOST_TAPS &&
         g->stride_w <= 2;
}

/* Returns the number of floats in all phases of the input that any n_tiles consecutive tiles
 * read. */
static int64_t max_phase_floats(const laci_depthwise *d, int64_t n_tiles) {
  const int64_t rows = laci_ceil_div(n_tiles * LACI_SPARSE_LANES, d->out.row_stride) + 1;
  return 2 * d->window.stride_h * laci_depthwise_phase_floats(d, rows);
}

lac_status laci_depthwise_init(const laci_sparse_window *g, const laci_sparse_layouts *layouts,
                               laci_depthwise *d, lac_error *err) {
  *d = (laci_depthwise){
      .window = *g, .in = layouts->in, .out = layouts->out, .n_images = layouts->n_images};
  d->tiles_at_once =
      d->out.format == LACI_FORMAT_HWC16N ? LACI_DEPTHWISE_TILES / 2 : LACI_DEPTHWISE_TILES;
  if (g->stride_w > 1 && d->out.format != LACI_FORMAT_HWC16N) {
    while (d->tiles_at_once > 0 && max_phase_floats(d, d->tiles_at_once) > LACI_DEPTHWISE_PHASES)
      d->tiles_at_once--;
  }
  if (d->tiles_at_once == 0) {
    *d = (laci_depthwise){.tiles_per_block = 0};
    return laci_fail(err, LAC_UNSUPPORTED,
                     "a depthwise window that strides over rows of %lld pixels", (long long)g->w);
  }
  d->tiles = laci_sparse_result_tiles(g, layouts, &d->tiles_per_block);
  return d->tiles ? LAC_OK : laci_fail_memory(err, "a depthwise convolution");
}

void laci_depthwise_clear(laci_depthwise *d) {
  laci_free(d->tiles);
  *d = (laci_depthwise){.tiles_per_block = 0};
}
