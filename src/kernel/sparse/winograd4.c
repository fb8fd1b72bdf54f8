/* SPDX-License-Identifier: Apache-2.0
 * Computes the sizes, blocks and transformed weights of winograd4.h, and chooses the kernel
 * variant. */
#include "kernel/sparse/winograd4.h"

#include "base/divide.h"
#include "base/error.h"
#include "base/min.h"
#include "base/memory.h"
#include "cpu/cpu.h"
#include "kernel/variants.h"

enum {
  LANES = LACI_SPARSE_LANES,
  SIDE = LACI_WINOGRAD4_SIDE,
  READ = LACI_WINOGRAD4_READ,
  TAPS = LACI_WINOGRAD4_TAPS,
};

static const laci_winograd4_kernel of_level[] = {
#define VARIANT(name, level)                                                  \
  [level] = {laci_winograd4_transform_##name, laci_winograd4_multiply_##name, \
             laci_winograd4_finish_##name},
    LACI_KERNEL_VARIANTS(VARIANT)
#undef VARIANT
};

/* Returns the kernel. Rows of at most eight tiles fill only half a vector of AVX-512, and so use
 * the transforms of AVX2. */
laci_winograd4_kernel laci_winograd4_variant(const laci_winograd4 *w) {
  enum { HALF = 8 };
  laci_winograd4_kernel k = of_level[laci_cpu_level_in_force()];
  if (laci_cpu_level_in_force() == LACI_CPU_AVX512 && w->in.format != LACI_FORMAT_HWC16N &&
      w->tiles_w <= HALF) {
    k.transform = of_level[LACI_CPU_AVX2].transform;
    k.finish = of_level[LACI_CPU_AVX2].finish;
  }
  return k;
}

/* Returns the number of output channels whose weights are stored together: as many as registers can
 * hold sums for (16 lanes wide, or 32 with AVX-512). It is 13 rather than 12, since numbers of
 * channels that are powers of two are nearly multiples of 13. */
static int64_t channels_per_group(void) {
  static const int8_t rows[] = {
      [LACI_CPU_ANY] = 6, [LACI_CPU_AVX2] = 6, [LACI_CPU_AVX512] = 13, [LACI_CPU_NEON] = 6};
  return rows[laci_cpu_level_in_force()];
}

/* ---- Sizes ---- */

bool laci_winograd4_can_compute(const laci_sparse_window *g) {
  enum { LEAST = 3, FURTHEST = 2 };
  const bool alike = g->stride_h == g->stride_w && g->stride_h <= FURTHEST &&
                     laci_ceil_div(g->kernel_h, g->stride_h) == laci_winograd4_taps_per_side(g);
  return g->values == LACI_SPARSE_F32 && g->groups == 1 && g->dilation_h == 1 &&
         g->dilation_w == 1 && alike && laci_winograd4_taps_per_side(g) >= LEAST &&
         laci_winograd4_taps_per_side(g) <= TAPS && g->out_w <= LACI_WINOGRAD4_WIDTH;
}

int64_t laci_winograd4_n_sources(const laci_sparse_window *g) {
  return g->channels_in * g->stride_h * g->stride_w;
}

int64_t laci_winograd4_taps_per_side(const laci_sparse_window *g) {
  return laci_ceil_div(g->kernel_w, g->stride_w);
}

int64_t laci_winograd4_n_points(const laci_sparse_window *g) {
  const int64_t read = laci_winograd4_tile_side(laci_winograd4_taps_per_side(g));
  return read * read;
}

/* The product does not overflow, since the dense weights are in memory. */
size_t laci_winograd4_weight_bytes(const laci_sparse_window *g) {
  const int64_t rows = channels_per_group(), groups = laci_ceil_div(g->channels_out, rows);
  return (size_t)(laci_winograd4_n_points(g) * groups * rows * laci_winograd4_n_sources(g)) *
         sizeof(float);
}

/* Is a row of results too wide for the buffer of a line? The buffer holds four rows, each with the
 * surplus results of its last tile, and one more tile. */
static bool is_row_too_wide(const laci_winograd4 *w) {
  return SIDE * (w->out.row_stride + 2 * SIDE * LANES) > LACI_WINOGRAD4_LINE;
}

lac_status laci_winograd4_init(const laci_sparse_window *g, const laci_sparse_layouts *layouts,
                               laci_winograd4 *w, lac_error *err) {
  *w = (laci_winograd4){.window = *g,
                        .in = layouts->in,
                        .out = layouts->out,
                        .n_image_blocks = layouts->n_images,
                        .stride = g->stride_h,
                        .sources = laci_winograd4_n_sources(g),
                        .taps = laci_winograd4_taps_per_side(g),
                        .points = laci_winograd4_n_points(g),
                        .tiles_h = laci_ceil_div(g->out_h, SIDE),
                        .tiles_w = laci_ceil_div(g->out_w, SIDE),
                        .rows = channels_per_group()};
  const bool images = w->out.format == LACI_FORMAT_HWC16N;
  if (!images && is_row_too_wide(w)) {
    const long long width = g->out_w;
    *w = (laci_winograd4){.results_per_block = 0};
    return laci_fail(err, LAC_UNSUPPORTED, "a window in tiles, over rows of %lld pixels", width);
  }
  w->n_units = w->n_image_blocks * w->tiles_h * (images ? w->tiles_w : 1);
  w->unit = images ? LANES : w->tiles_w;
  w->results = laci_sparse_result_tiles(g, layouts, &w->results_per_block);
  return w->results ? LAC_OK : laci_fail_memory(err, "a window in tiles");
}

void laci_winograd4_clear(laci_winograd4 *w) {
  laci_free(w->results);
  *w = (laci_winograd4){.results_per_block = 0};
}

/* Returns the block of units [first_unit, end_unit); a unit is a row of tiles of an image, or one
 * tile of 16 images. The block's lanes are followed by padding for a vector. Channels are an odd
 * number of cache lines apart, so that they use all sets of a cache. */
laci_winograd4_block laci_winograd4_block_of_units(const laci_winograd4 *w, int64_t first_unit,
                                                   int64_t end_unit) {
  laci_winograd4_block b = {first_unit, end_unit, (end_unit - first_unit) * w->unit, 0};
  const bool images = w->out.format == LACI_FORMAT_HWC16N;
  b.stride = laci_ceil_div(b.n_lanes + (images ? 0 : LANES), LANES) * LANES;
  if (b.stride / LANES % 2 == 0) b.stride += LANES;
  return b;
}

int64_t laci_winograd4_block_floats(const laci_winograd4 *w, const laci_winograd4_block *b,
                                    int64_t channels) {
  return w->points * laci_winograd4_point_stride(b, channels);
}

/* Returns the number of units (rows of tiles of an image, or tiles of 16 images) in a block.
 * together: all threads compute one block at a time. They then read the weights once for it, but
 * wait for each other. */
int64_t laci_winograd4_units_per_block(const laci_winograd4 *w, bool together) {
  const int64_t held = together ? 1 << 19 : 1 << 18; /* number of floats that fit in the caches */
  const int64_t least = together ? 64 : 48;          /* least number of lanes for which it is worth
                                                        reading the weights */
  const int64_t channels = w->sources + w->window.channels_out;
  const int64_t holds = held / (w->points * channels), lanes = holds > least ? holds : least;
  const int64_t units = (2 * lanes + w->unit - 1) / (2 * w->unit); /* rounded to the nearest */
  return units > 1 ? laci_min(units, w->n_units) : 1;
}

/* ---- Weights ---- */

/* Transforms three weights g of a row or column to six points, G g. Row p of G is scaled such that
 * the polynomial which is zero at all other points is 1 at point p. */
static void transform_weights_to_six_points(const double g[TAPS], double to[READ]) {
  static const double a = LACI_WINOGRAD4_A, b = LACI_WINOGRAD4_B;
  const double at_a = 1 / (2 * a * a * (a * a - b * b)), at_b = 1 / (2 * b * b * (b * b - a * a));
  const double even_a = g[0] + a * a * g[2], even_b = g[0] + b * b * g[2];
  to[0] = g[0] / (a * a * b * b);
  to[1] = at_a * (even_a + a * g[1]);
  to[2] = at_a * (even_a - a * g[1]);
  to[3] = at_b * (even_b + b * g[1]);
  to[4] = at_b * (even_b - b * g[1]);
  to[5] = g[2];
}

/* Transforms four weights g of a row or column to seven points, G g. */
static void transform_weights_to_seven_points(const double g[TAPS], double to[READ]) {
  static const double at[] = {LACI_WINOGRAD4_P, LACI_WINOGRAD4_Q, LACI_WINOGRAD4_R};
  enum { N = sizeof at / sizeof *at };
  for (int k = 0; k < N; k++) {
    const double x = at[k], next = at[(k + 1) % N], last = at[(k + 2) % N];
    const double all = 2 * x * (x * x - next * next) * (x * x - last * last);
    const double even = g[0] + x * x * g[2], odd = x * (g[1] + x * x * g[3]);
    to[2 * k] = (odd + even) / all;
    to[2 * k + 1] = (odd - even) / all;
  }
  to[2 * N] = g[TAPS - 1];
}

static void transform_weights_to_points(const double g[TAPS], int64_t taps, double to[READ]) {
  if (taps == TAPS) transform_weights_to_seven_points(g, to);
  else transform_weights_to_six_points(g, to);
}

/* Computes G g G', the transformed weights of the taps g of a source. apart: number of floats in
 * `to` from one value to the next. */
static void transform_source_taps(double g[TAPS][TAPS], int64_t taps, int64_t apart, float *to) {
  const int64_t read = laci_winograd4_tile_side(taps);
  double columns[READ][TAPS], of[READ]; /* columns: result of the vertical transform */
  for (int64_t x = 0; x < taps; x++) {
    double column[TAPS];
    for (int64_t y = 0; y < taps; y++) column[y] = g[y][x];
    transform_weights_to_points(column, taps, of);
    for (int64_t y = 0; y < read; y++) columns[y][x] = of[y];
  }
  for (int64_t y = 0; y < read; y++) {
    transform_weights_to_points(columns[y], taps, of);
    for (int64_t x = 0; x < read; x++) to[(y * read + x) * apart] = (float)of[x];
  }
}

/* Copies the taps of a source (an input channel that is read without a stride): all taps of the
 * window, or every second one of its rows and columns. */
static void copy_source_taps(const laci_winograd4 *w, const float *window, int64_t part,
                             double to[TAPS][TAPS]) {
  const laci_sparse_window *g = &w->window;
  for (int64_t y = 0; y < w->taps; y++) {
    for (int64_t x = 0; x < w->taps; x++) {
      const int64_t row = y * w->stride + part / w->stride,
                    column = x * w->stride + part % w->stride;
      const bool there = row < g->kernel_h && column < g->kernel_w;
      to[y][x] = there ? (double)window[row * g->kernel_w + column] : 0;
    }
  }
}

void laci_winograd4_transform_weights(const laci_winograd4 *w, const float *dense,
                                      const int64_t first_last[2], float *weights) {
  const laci_sparse_window *g = &w->window;
  const int64_t n = w->sources, each = w->rows, parts = w->stride * w->stride;
  const int64_t apart = laci_winograd4_n_groups(w) * n * each;
  for (int64_t row = first_last[0] * each; row < first_last[1] * each; row++) {
    float *to = weights + row / each * n * each + row % each;
    for (int64_t s = 0; s < n; s++, to += each) {
      double taps[TAPS][TAPS] = {{0}};
      const int64_t channel = row * g->channels_in + s / parts;
      if (row < g->channels_out) {
        copy_source_taps(w, dense + channel * g->kernel_h * g->kernel_w, s % parts, taps);
      }
      transform_source_taps(taps, w->taps, apart, to);
    }
  }
}
