/* SPDX-License-Identifier: Apache-2.0
 * Sizes, weights and the variant of winograd4.h. */
#include "kernel/sparse/winograd4.h"

#include "base/divide.h"
#include "base/error.h"
#include "base/least.h"
#include "base/memory.h"
#include "cpu/cpu.h"

enum {
  LANES = LACI_SPARSE_LANES,
  SIDE = LACI_WINOGRAD4_SIDE,
  READ = LACI_WINOGRAD4_READ,
  POINTS = LACI_WINOGRAD4_POINTS,
  TAPS = LACI_WINOGRAD4_TAPS,
  WINDOW = 3,
};

static const laci_winograd4_kernel of_level[] = {
#define VARIANT(name, level)                                                  \
  [level] = {laci_winograd4_transform_##name, laci_winograd4_multiply_##name, \
             laci_winograd4_finish_##name},
    LACI_KERNEL_VARIANTS(VARIANT)
#undef VARIANT
};

/* Half a vector of AVX-512 is one of AVX2, and what does not move takes half as long. */
laci_winograd4_kernel laci_winograd4_now(const laci_winograd4 *w) {
  enum { HALF = 8 };
  laci_winograd4_kernel k = of_level[laci_cpu()];
  if (laci_cpu() == LACI_CPU_AVX512 && w->in.lanes != LACI_SPARSE_IMAGES && w->tiles_w <= HALF) {
    k.transform = of_level[LACI_CPU_AVX2].transform;
    k.finish = of_level[LACI_CPU_AVX2].finish;
  }
  return k;
}

/* As many rows of sums, 16 lanes wide or 32 with AVX-512, as registers hold; of these 13 rather
 * than 12, of which powers of two are nearly multiples. */
static int64_t group_rows(void) {
  static const int8_t rows[] = {
      [LACI_CPU_ANY] = 6, [LACI_CPU_AVX2] = 6, [LACI_CPU_AVX512] = 13, [LACI_CPU_NEON] = 6};
  return rows[laci_cpu()];
}

/* ---- Sizes ---- */

bool laci_winograd4_fits(const laci_sparse_window *g) {
  return g->values == LACI_SPARSE_F32 && g->groups == 1 && g->kernel_h == WINDOW &&
         g->kernel_w == WINDOW && g->stride_h == 1 && g->stride_w == 1 && g->dilation_h == 1 &&
         g->dilation_w == 1 && g->out_w <= LACI_WINOGRAD4_WIDTH;
}

/* Fits in 64 bits since the dense ones are there. */
size_t laci_winograd4_bytes(const laci_sparse_window *g) {
  const int64_t rows = group_rows(), groups = laci_ceil_div(g->channels_out, rows);
  return (size_t)(POINTS * groups * rows * g->channels_in) * sizeof(float);
}

/* Room for rows of a line, each longer by what its last tile has too much, and for a tile more. */
static bool is_too_wide(const laci_winograd4 *w) {
  return SIDE * (w->out.row_stride + 2 * SIDE * LANES) > LACI_WINOGRAD4_LINE;
}

lac_status laci_winograd4_init(const laci_sparse_window *g, const laci_sparse_pictures *pictures,
                               laci_winograd4 *w, lac_error *err) {
  *w = (laci_winograd4){.window = *g,
                        .in = pictures->in,
                        .out = pictures->out,
                        .n_pictures = pictures->n_images,
                        .tiles_h = laci_ceil_div(g->out_h, SIDE),
                        .tiles_w = laci_ceil_div(g->out_w, SIDE),
                        .rows = group_rows()};
  const bool images = w->out.lanes == LACI_SPARSE_IMAGES;
  if (!images && is_too_wide(w)) {
    const long long width = g->out_w;
    *w = (laci_winograd4){.n_each = 0};
    return laci_fail(err, LAC_UNSUPPORTED, "a window in tiles, over rows of %lld pixels", width);
  }
  w->n_units = w->n_pictures * w->tiles_h * (images ? w->tiles_w : 1);
  w->unit = images ? LANES : w->tiles_w;
  w->results = laci_sparse_result_tiles(g, pictures, &w->n_each);
  return w->results ? LAC_OK : laci_fail_memory(err, "a window in tiles");
}

void laci_winograd4_clear(laci_winograd4 *w) {
  laci_free(w->results);
  *w = (laci_winograd4){.n_each = 0};
}

/* Behind the lanes of a block there is room for a vector. An odd number of lines from a channel to
 * the next one, so that channels of a lane fall into all sets of a cache. */
laci_winograd4_block laci_winograd4_block_of(const laci_winograd4 *w, int64_t first, int64_t last) {
  laci_winograd4_block b = {first, last, (last - first) * w->unit, 0};
  const bool images = w->out.lanes == LACI_SPARSE_IMAGES;
  b.stride = laci_ceil_div(b.n_lanes + (images ? 0 : LANES), LANES) * LANES;
  if (b.stride / LANES % 2 == 0) b.stride += LANES;
  return b;
}

int64_t laci_winograd4_floats(const laci_winograd4_block *b, int64_t channels) {
  return POINTS * laci_winograd4_apart(b, channels);
}

/* What all threads do together they wait for, and read weights for once. */
int64_t laci_winograd4_cut(const laci_winograd4 *w, bool together) {
  const int64_t held = together ? 1 << 19 : 1 << 18; /* floats */
  const int64_t least = together ? 64 : 48;          /* lanes, for which weights are read once */
  const int64_t channels = w->window.channels_in + w->window.channels_out;
  const int64_t holds = held / (POINTS * channels), lanes = holds > least ? holds : least;
  const int64_t units = (2 * lanes + w->unit - 1) / (2 * w->unit); /* the nearest */
  return units > 1 ? laci_least(units, w->n_units) : 1;
}

/* ---- Weights ---- */

/* G g of three weights: each point's polynomial without that point is 1 there. */
static void six_of(const double g[WINDOW], double to[READ]) {
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

/* G g G' of a channel's window, its points `apart`. */
static void fill_window(const float *g, int64_t apart, float *to) {
  double columns[READ][WINDOW], row[READ]; /* the vertical transform */
  for (int x = 0; x < WINDOW; x++) {
    const double column[WINDOW] = {g[x], g[WINDOW + x], g[2 * WINDOW + x]};
    six_of(column, row);
    for (int y = 0; y < READ; y++) columns[y][x] = row[y];
  }
  for (int y = 0; y < READ; y++) {
    six_of(columns[y], row);
    for (int x = 0; x < READ; x++) to[(y * READ + x) * apart] = (float)row[x];
  }
}

void laci_winograd4_fill(const laci_winograd4 *w, const float *dense, const int64_t first_last[2],
                         float *weights) {
  static const float none[TAPS];
  const int64_t in = w->window.channels_in, each = w->rows;
  const int64_t apart = laci_winograd4_groups(w) * in * each;
  for (int64_t row = first_last[0] * each; row < first_last[1] * each; row++) {
    float *to = weights + row / each * in * each + row % each;
    for (int64_t c = 0; c < in; c++, to += each) {
      const bool there = row < w->window.channels_out;
      fill_window(there ? dense + (row * in + c) * TAPS : none, apart, to);
    }
  }
}
