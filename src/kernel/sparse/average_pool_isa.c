/* SPDX-License-Identifier: Apache-2.0
 * Average pooling of average_pool.h, compiled for every instruction set. Loops over neighbouring
 * words are plain, so that the compiler vectorizes them. A word is four bytes of neighbouring
 * channels. Bytes of two channels are added at a time, in halves of 32 bits, as long as they
 * fit. */
#include "kernel/sparse/average_pool.h"

#include <math.h>
#include <string.h>

#include "base/min.h"
#include "kernel/pointwise/fake_quantize.h"
#include "kernel/variants.h"

enum {
  LANES = LACI_SPARSE_LANES,
  SIDE = 4,
  BYTE_BITS = 8,
  HALF_BITS = 16,
  SOME = 64,       /* maximum number of results of a row that are computed at once */
  MOST_HALF = 256, /* maximum number of bytes whose sum fits in 16 bits */
};

/* Sums of bytes, [channel][result], and how many pixels each has. */
typedef struct sums {
  uint32_t of[SIDE][SOME];
  int32_t n_inside[SOME];
} sums;

/* Sums of at most MOST_HALF words for each result. Those of two channels share 32 bits: channels 0
 * and 2 in `even`, 1 and 3 in `odd`. */
typedef struct half_sums {
  uint32_t even[SOME], odd[SOME];
} half_sums;

static inline uint32_t load_word(const float *at) {
  uint32_t word;
  memcpy(&word, at, sizeof word);
  return word;
}

/* Adds the four bytes of the word from[i * stride] to the sums of result i, for n results. stride
 * is a constant where this is inlined. */
static inline __attribute__((always_inline)) void add_words(const float *from, int64_t n,
                                                            const int64_t stride,
                                                            uint32_t *restrict even,
                                                            uint32_t *restrict odd) {
  const uint32_t halves = 0x00FF00FF;
  for (int64_t at = 0; at < n; at++) {
    const uint32_t word = load_word(from + at * stride);
    even[at] += word & halves;
    odd[at] += word >> BYTE_BITS & halves;
  }
}

static void add_strided_words(const float *from, int64_t n, int64_t stride, int64_t first,
                              half_sums *to) {
  uint32_t *even = to->even + first, *odd = to->odd + first;
  if (stride == 1) add_words(from, n, 1, even, odd);
  else if (stride == 2) add_words(from, n, 2, even, odd);
  else add_words(from, n, stride, even, odd);
}

/* Adds the sums of 16 bits of n results to their sums of 32 bits. */
static void add_half_sums(const half_sums *h, int64_t n, sums *to) {
  for (int64_t at = 0; at < n; at++) {
    to->of[0][at] += h->even[at] & UINT16_MAX;
    to->of[1][at] += h->odd[at] & UINT16_MAX;
    to->of[2][at] += h->even[at] >> HALF_BITS;
    to->of[3][at] += h->odd[at] >> HALF_BITS;
  }
}

static void clear_half_sums(half_sums *h, int64_t n) {
  memset(h->even, 0, (size_t)n * sizeof *h->even);
  memset(h->odd, 0, (size_t)n * sizeof *h->odd);
}

/* Sixteen words, which stay in registers while they are added to. */
typedef uint32_t word_vector __attribute__((vector_size(LANES * sizeof(uint32_t))));

/* Adds the halves of sixteen words, each the sum of bytes of one channel, to the sums of two
 * channels of one result. */
static void add_halves(const word_vector *halves, uint32_t *low, uint32_t *high) {
  for (int lane = 0; lane < LANES; lane++) {
    *low += (*halves)[lane] & UINT16_MAX;
    *high += (*halves)[lane] >> HALF_BITS;
  }
}

/* Adds the bytes of at most MOST_HALF times 16 neighbouring words (pixels) to the sums of one
 * result. */
static void add_neighbouring_vectors(const float *from, int64_t n_vectors, int64_t to_result,
                                     sums *to) {
  const uint32_t halves = 0x00FF00FF;
  word_vector even = {0}, odd = {0}, words;
  for (int64_t at = 0; at < n_vectors; at++) {
    memcpy(&words, from + at * LANES, sizeof words);
    even += words & halves;
    odd += words >> BYTE_BITS & halves;
  }
  add_halves(&even, &to->of[0][to_result], &to->of[2][to_result]);
  add_halves(&odd, &to->of[1][to_result], &to->of[3][to_result]);
}

/* Adds the bytes of n neighbouring words (pixels) to the sums of one result. */
static void sum_neighbouring_words(const float *from, int64_t n, int64_t to_result, sums *to) {
  for (int64_t left = n / LANES; left > 0;) {
    const int64_t n_vectors = laci_min(left, MOST_HALF);
    add_neighbouring_vectors(from, n_vectors, to_result, to);
    from += n_vectors * LANES;
    left -= n_vectors;
  }
  float rest[LANES] = {0};
  memcpy(rest, from, (size_t)(n % LANES) * sizeof *rest);
  if (n % LANES > 0) add_neighbouring_vectors(rest, 1, to_result, to);
}

static void clear_sums(sums *s, int64_t n) {
  for (int channel = 0; channel < SIDE; channel++)
    memset(s->of[channel], 0, (size_t)n * sizeof *s->of[channel]);
  memset(s->n_inside, 0, (size_t)n * sizeof *s->n_inside);
}

/* ---- Results ---- */

/* Converts the sums of one channel of 16 results to bytes, and adds each byte to the word of its
 * result. */
static void add_channel_bytes_to_words(const laci_average_pool *p, const uint32_t *sum,
                                       const int32_t *n_inside, int shift,
                                       uint32_t *restrict words) {
  const float scale = p->scale, zero = (float)p->zero, low = (float)p->low, high = (float)p->high;
  const float size = p->counts_padding ? (float)(p->window.kernel_h * p->window.kernel_w) : 0;
  const int32_t x_zero = p->x_zero;
  for (int lane = 0; lane < LANES; lane++) {
    const float n = size > 0 ? size : (float)n_inside[lane];
    const float v = (float)((int32_t)sum[lane] - n_inside[lane] * x_zero) * (scale / n);
    const float byte = laci_quantize_clip(rintf(v) + zero, low, high);
    words[lane] |= (uint32_t)(int32_t)byte << shift;
  }
}

/* Converts the sums of n results to words of four bytes. Writes 16 words at a time, up to 15 after
 * the n-th. */
static void convert_sums_to_words(const laci_average_pool *p, const sums *s, int64_t n,
                                  uint32_t *words) {
  for (int64_t at = 0; at < n; at += LANES) {
    memset(words + at, 0, LANES * sizeof *words);
    for (int channel = 0; channel < SIDE; channel++) {
      add_channel_bytes_to_words(p, s->of[channel] + at, s->n_inside + at, channel * BYTE_BITS,
                                 words + at);
    }
  }
}

/* Stores n words in a row of results. In PC16P they are in blocks of 16 pixels. */
static void store_result_words(const laci_sparse_layout *out, const int64_t pixel[2], int64_t n,
                               const uint32_t *words, float *y) {
  if (out->format != LACI_FORMAT_PC16P) {
    memcpy(y + laci_sparse_offset(out, 0, pixel[0], pixel[1]), words, (size_t)n * sizeof *words);
    return;
  }
  int64_t place = (pixel[0] + out->top) * out->row_stride + out->left + pixel[1];
  for (int64_t at = 0, some; at < n; at += some, place += some) {
    const int64_t lane = place % LANES;
    some = laci_min(LANES - lane, n - at);
    memcpy(y + (place - lane) * out->pixel_stride + lane, words + at, (size_t)some * sizeof *words);
  }
}

/* ---- Lanes are pixels ---- */

/* The results [first, last) of a row. */
typedef struct range {
  int64_t first, last;
} range;

static int64_t ceil_divide(int64_t a, int64_t b) { return a <= 0 ? 0 : (a + b - 1) / b; }

static range find_results_with_pixel(const laci_sparse_window *g, int64_t tap, range all) {
  const int64_t first = ceil_divide(g->pad_left - tap, g->stride_w);
  const int64_t last = ceil_divide(g->w + g->pad_left - tap, g->stride_w);
  return (range){first > all.first ? first : all.first, laci_min(last, all.last)};
}

/* Adds one row of pixels of the windows of some results to their sums. x: the first pixel of that
 * row of the image. */
static void add_window_row(const laci_average_pool *p, const float *x, range results, half_sums *h,
                           sums *s) {
  const laci_sparse_window *g = &p->window;
  for (int64_t tap = 0; tap < g->kernel_w; tap++) {
    const range in = find_results_with_pixel(g, tap, results);
    if (in.first >= in.last) continue;
    add_strided_words(x + in.first * g->stride_w - g->pad_left + tap, in.last - in.first,
                      g->stride_w, in.first - results.first, h);
    for (int64_t at = in.first; at < in.last; at++) s->n_inside[at - results.first]++;
  }
}

/* Adds one row of pixels of wide windows, of which a row has few: one result after the other. */
static void add_row_of_wide_windows(const laci_average_pool *p, const float *x, range results,
                                    sums *s) {
  const laci_sparse_window *g = &p->window;
  for (int64_t at = results.first; at < results.last; at++) {
    const int64_t left = at * g->stride_w - g->pad_left, begin = left > 0 ? left : 0;
    const int64_t n = laci_min(left + g->kernel_w, g->w) - begin;
    sum_neighbouring_words(x + begin, n, at - results.first, s);
    s->n_inside[at - results.first] += (int32_t)n;
  }
}

/* Computes the sums of the windows of some results of a row. x: pixels of the four channels. */
static void sum_windows_of_row(const laci_average_pool *p, const float *x, int64_t row,
                               range results, sums *s) {
  const laci_sparse_window *g = &p->window;
  const int64_t n = results.last - results.first, top = row * g->stride_h - g->pad_top;
  const bool wide = g->kernel_w > n || g->kernel_w > MOST_HALF;
  half_sums h;
  int64_t held = 0; /* number of words in each of the halves, at most */
  clear_sums(s, (n + LANES - 1) / LANES * LANES);
  clear_half_sums(&h, n);
  for (int64_t at = top > 0 ? top : 0; at < laci_min(top + g->kernel_h, g->h); at++) {
    const float *from = x + at * p->in.row_stride;
    if (wide) {
      add_row_of_wide_windows(p, from, results, s);
      continue;
    }
    if (held + g->kernel_w > MOST_HALF) {
      add_half_sums(&h, n, s);
      clear_half_sums(&h, n);
      held = 0;
    }
    add_window_row(p, from, results, &h, s);
    held += g->kernel_w;
  }
  if (!wide) add_half_sums(&h, n, s);
}

/* Is the window the whole image? */
static bool covers_whole_image(const laci_sparse_window *g) {
  return g->out_h == 1 && g->out_w == 1 && g->kernel_h == g->h && g->kernel_w == g->w &&
         g->pad_top == 0 && g->pad_left == 0;
}

/* Computes the sums of all pixels of an image. The memory between rows of pixels holds zero points:
 * they are added, too, and subtracted at the end. */
static void sum_whole_image(const laci_average_pool *p, const float *x, sums *s) {
  const laci_sparse_window *g = &p->window;
  const int64_t n = (g->h - 1) * p->in.row_stride + g->w, n_pixels = g->h * g->w;
  clear_sums(s, LANES);
  sum_neighbouring_words(x, n, 0, s);
  for (int channel = 0; channel < SIDE; channel++)
    s->of[channel][0] -= (uint32_t)(n - n_pixels) * (uint32_t)p->x_zero;
  s->n_inside[0] = (int32_t)n_pixels;
}

static void pool_channel_of_pixels(const laci_average_pool *p, int64_t channel, const float *x,
                                   float *y) {
  const laci_sparse_window *g = &p->window;
  uint32_t words[SOME];
  sums s;
  x += laci_sparse_offset(&p->in, channel, 0, 0);
  y += channel * p->out.channel_stride;
  for (int64_t row = 0; row < g->out_h; row++) {
    for (int64_t at = 0; at < g->out_w; at += SOME) {
      const range results = {at, laci_min(at + SOME, g->out_w)};
      if (covers_whole_image(g)) sum_whole_image(p, x, &s);
      else sum_windows_of_row(p, x, row, results, &s);
      convert_sums_to_words(p, &s, results.last - at, words);
      store_result_words(&p->out, (const int64_t[]){row, at}, results.last - at, words, y);
    }
  }
}

/* ---- HWC16N ---- */

/* Computes the window sums of a result pixel of 16 images, and returns the number of pixels in its
 * window. */
static int32_t sum_window_of_images(const laci_average_pool *p, const float *x,
                                    const int64_t pixel[2], sums *s) {
  const laci_sparse_window *g = &p->window;
  const int64_t top = pixel[0] * g->stride_h - g->pad_top;
  const int64_t left = pixel[1] * g->stride_w - g->pad_left;
  half_sums h;
  int32_t n = 0;
  clear_sums(s, LANES);
  clear_half_sums(&h, LANES);
  for (int64_t at = top > 0 ? top : 0; at < laci_min(top + g->kernel_h, g->h); at++) {
    for (int64_t tap = left > 0 ? left : 0; tap < laci_min(left + g->kernel_w, g->w); tap++) {
      add_words(x + at * p->in.row_stride + tap * p->in.pixel_stride, LANES, 1, h.even, h.odd);
      if (++n % MOST_HALF != 0) continue;
      add_half_sums(&h, LANES, s);
      clear_half_sums(&h, LANES);
    }
  }
  add_half_sums(&h, LANES, s);
  return n;
}

static void pool_channel_of_images(const laci_average_pool *p, int64_t channel, const float *x,
                                   float *y) {
  const laci_sparse_window *g = &p->window;
  uint32_t words[SOME];
  sums s;
  x += laci_sparse_offset(&p->in, channel, 0, 0);
  for (int64_t at = 0; at < g->out_h * g->out_w; at++) {
    const int64_t pixel[2] = {at / g->out_w, at % g->out_w};
    const int32_t n = sum_window_of_images(p, x, pixel, &s);
    for (int lane = 0; lane < LANES; lane++) s.n_inside[lane] = n;
    convert_sums_to_words(p, &s, LANES, words);
    memcpy(y + laci_sparse_offset(&p->out, channel, pixel[0], pixel[1]), words,
           LANES * sizeof *words);
  }
}

void LACI_VARIANT(laci_average_pool)(const laci_average_pool *p, const float *x, float *y,
                                     int64_t first, int64_t last) {
  const int64_t channels = laci_average_pool_n_items(p) / p->n_image_blocks;
  for (int64_t item = first; item < last; item++) {
    const float *from = x + item / channels * p->in.n_floats;
    float *to = y + item / channels * p->out.n_floats;
    if (p->in.format == LACI_FORMAT_HWC16N) pool_channel_of_images(p, item % channels, from, to);
    else pool_channel_of_pixels(p, item % channels, from, to);
  }
}
