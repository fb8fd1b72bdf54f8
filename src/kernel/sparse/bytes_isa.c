/* SPDX-License-Identifier: Apache-2.0
 * bytes.h for every instruction set. Loops over sixteen lanes are plain, so that the compiler
 * vectorizes them. */
#include "kernel/sparse/bytes.h"
#include "kernel/sparse/bytes_in.h"
#include "kernel/variants.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

enum { LANES = LACI_SPARSE_LANES, INT8X4 = 4, BYTE = 8 };

/* Loads four bytes as a word. Loops over lanes that use this read and write whole vectors of words;
 * copying arrays first would use half vectors, whose reload stalls. */
static inline uint32_t load_word(const float *at) {
  uint32_t word;
  memcpy(&word, at, sizeof word);
  return word;
}

static inline void store_word(float *at, uint32_t word) { memcpy(at, &word, sizeof word); }

/* ---- Sixteen places ---- */

static void dequantize_lanes(const laci_fake_quantized *q, const float *int8x4, int shift,
                             float *restrict x) {
  const float scale = q->scale, low = q->low;
  for (int lane = 0; lane < LANES; lane++) {
    const int32_t byte = (int32_t)(load_word(int8x4 + lane) >> shift & UINT8_MAX);
    x[lane] = ((float)byte + low) * scale + 0.0F; /* -0 becomes +0 */
  }
}

/* ---- Runs of places with up to four channels ---- */

typedef struct run {
  const laci_fake_quantized *q;
  int n_channels;
  int64_t stride; /* distance, in floats, from a channel to the next */
  int64_t n;      /* number of pixels, a multiple of sixteen */
} run;

static void quantize_pixel_run(const run *r, const float *floats, float *to) {
  const uint32_t zero = (uint32_t)laci_bytes_zero_point(r->q);
  for (int64_t at = 0; at < r->n; at += LANES) {
    uint32_t int8x4[LANES] = {0};
    for (int c = 0; c < r->n_channels; c++) {
      laci_quantize_lanes(r->q, floats + c * r->stride + at, BYTE * c, int8x4);
    }
    for (int c = r->n_channels; c < INT8X4; c++) {
      for (int lane = 0; lane < LANES; lane++) int8x4[lane] |= zero << BYTE * c;
    }
    memcpy(to + at, int8x4, sizeof int8x4);
  }
}

static void dequantize_pixel_run(const run *r, const float *from, float *floats) {
  for (int64_t at = 0; at < r->n; at += LANES) {
    for (int c = 0; c < r->n_channels; c++) {
      dequantize_lanes(r->q, from + at, BYTE * c, floats + c * r->stride + at);
    }
  }
}

/* ---- Items ---- */

/* An item: its channels, and where its floats and int8x4 begin. */
typedef struct item {
  run run;
  int64_t channel_first, channel_last;
  int64_t floats, int8x4; /* offset of channel_first in the floats, and in the int8x4 */
  int64_t apart;          /* distance, in int8x4, from a vector of int8x4 to that of the next
                             channels */
} item;

static item locate_item(const laci_bytes_form *f, int64_t at) {
  const laci_sparse_layout *from = &f->floats, *to = &f->int8x4;
  const int64_t each = laci_bytes_n_items(f) / f->n_image_blocks, image_block = at / each,
                in = at % each;
  item i = {.run = {f->q, 0, from->channel_stride, LANES}, .apart = LANES};
  i.floats = image_block * from->n_floats;
  i.int8x4 = image_block * to->n_floats;
  i.channel_last = f->channels;
  if (to->format == LACI_FORMAT_CHW) {
    i.run.n = to->channel_stride;
    i.channel_first = in * INT8X4;
    if (i.channel_last > i.channel_first + INT8X4) i.channel_last = i.channel_first + INT8X4;
    i.floats += i.channel_first * from->channel_stride;
    i.int8x4 += in * to->channel_stride;
  } else {
    const int64_t places = to->format == LACI_FORMAT_PC16P ? LANES : 1;
    i.floats += in * places * from->pixel_stride;
    i.int8x4 += in * places * to->pixel_stride;
  }
  return i;
}

/* Returns how many channels exist of the int8x4 that begins with this channel. */
static int channels_in_int8x4(const item *i, int64_t channel) {
  const int64_t left = i->channel_last - channel;
  return left < INT8X4 ? (int)left : INT8X4;
}

static void quantize_item_range(const laci_bytes_form *f, const float *floats, float *int8x4,
                                int64_t first, int64_t last) {
  for (int64_t at = first; at < last; at++) {
    item i = locate_item(f, at);
    for (int64_t c = i.channel_first; c < i.channel_last; c += INT8X4, i.int8x4 += i.apart) {
      i.run.n_channels = channels_in_int8x4(&i, c);
      quantize_pixel_run(&i.run, floats + i.floats, int8x4 + i.int8x4);
      i.floats += INT8X4 * i.run.stride;
    }
  }
}

static void dequantize_item_range(const laci_bytes_form *f, const float *int8x4, float *floats,
                                  int64_t first, int64_t last) {
  for (int64_t at = first; at < last; at++) {
    item i = locate_item(f, at);
    for (int64_t c = i.channel_first; c < i.channel_last; c += INT8X4, i.int8x4 += i.apart) {
      i.run.n_channels = channels_in_int8x4(&i, c);
      dequantize_pixel_run(&i.run, int8x4 + i.int8x4, floats + i.floats);
      i.floats += INT8X4 * i.run.stride;
    }
  }
}

/* ---- Sums ---- */

/* Returns the sum of one byte of a and b, shifted to its position. */
static inline uint32_t sum_byte_at_shift(const laci_bytes_sum *s, uint32_t a, uint32_t b,
                                         int shift) {
  const float first = (float)(int32_t)(a >> shift & UINT8_MAX) - s->a_zero;
  const float second = (float)(int32_t)(b >> shift & UINT8_MAX) - s->b_zero;
  const float whole = rintf(fmaf(second, s->b_scale, first * s->a_scale)) + s->zero;
  return (uint32_t)(int32_t)laci_quantize_clip(whole, s->low, s->high) << shift;
}

static void add_sixteen_words(const laci_bytes_sum *s, const float *a, const float *b, float *y) {
  float int8x4[LANES];
  for (int lane = 0; lane < LANES; lane++) {
    const uint32_t first = load_word(a + lane), second = load_word(b + lane);
    store_word(int8x4 + lane, sum_byte_at_shift(s, first, second, 0) |
                                  sum_byte_at_shift(s, first, second, BYTE) |
                                  sum_byte_at_shift(s, first, second, 2 * BYTE) |
                                  sum_byte_at_shift(s, first, second, 3 * BYTE));
  }
  memcpy(y, int8x4, sizeof int8x4);
}

static void add_bytes(const laci_bytes_sum *s, const float *a, const float *b, int64_t n,
                      float *y) {
  const laci_bytes_sum sum = *s;
  int64_t at = 0;
  for (; at + LANES <= n; at += LANES) add_sixteen_words(&sum, a + at, b + at, y + at);
  if (at < n) {
    const size_t bytes = (size_t)(n - at) * sizeof *a;
    float rest[3][LANES] = {{0}};
    memcpy(rest[0], a + at, bytes);
    memcpy(rest[1], b + at, bytes);
    add_sixteen_words(&sum, rest[0], rest[1], rest[2]);
    memcpy(y + at, rest[2], bytes);
  }
}

/* ---- A constant for each channel ---- */

/* Returns the byte of x at bit `shift`, to which the constant `by` is added, as a byte at that
 * bit. */
static inline uint32_t add_constant_to_byte(const laci_fake_quantized *from,
                                            const laci_fake_quantized *to, float by, uint32_t x,
                                            int shift) {
  const float byte = (float)(int32_t)(x >> shift & UINT8_MAX);
  const float sum = ((byte + from->low) * from->scale + 0.0F) + by;
  const float whole = laci_quantize_clip(rintf(sum / to->scale), to->low, to->high) - to->low;
  return (uint32_t)(int32_t)whole << shift;
}

static void add_constants_to_pixel_run(const laci_fake_quantized *q, const laci_bytes_shift *s,
                                       const float *by, const float *x, float *y) {
  const laci_fake_quantized from = *q, to = *s->to;
  const float of[INT8X4] = {by[0], by[1], by[2], by[3]};
  float int8x4[LANES];
  for (int lane = 0; lane < LANES; lane++) {
    const uint32_t word = load_word(x + lane);
    store_word(int8x4 + lane, add_constant_to_byte(&from, &to, of[0], word, 0) |
                                  add_constant_to_byte(&from, &to, of[1], word, BYTE) |
                                  add_constant_to_byte(&from, &to, of[2], word, 2 * BYTE) |
                                  add_constant_to_byte(&from, &to, of[3], word, 3 * BYTE));
  }
  memcpy(y, int8x4, sizeof int8x4);
}

static void add_constants_to_items(const laci_bytes_form *f, const laci_bytes_shift *s,
                                   const float *x, float *y, int64_t first, int64_t last) {
  for (int64_t at = first; at < last; at++) {
    item i = locate_item(f, at);
    for (int64_t c = i.channel_first; c < i.channel_last; c += INT8X4, i.int8x4 += i.apart) {
      for (int64_t pixel = 0; pixel < i.run.n; pixel += LANES) {
        const int64_t place = i.int8x4 + pixel;
        add_constants_to_pixel_run(f->q, s, s->by + c, x + place, y + place);
      }
    }
  }
}

/* ---- A gate for each channel ---- */

/* Returns the byte of x at bit `shift`, multiplied by a factor, as a byte at that bit. */
static inline uint32_t multiply_byte(const laci_bytes_gate *g, float factor, uint32_t x,
                                     int shift) {
  const float value = (float)(int32_t)(x >> shift & UINT8_MAX) - g->x_zero;
  const float whole = rintf(value * factor) + g->zero;
  return (uint32_t)(int32_t)laci_quantize_clip(whole, g->low, g->high) << shift;
}

/* Returns the factor of a gate's byte at bit `shift`. */
static inline float find_factor(const laci_bytes_gate *g, uint32_t gates, int shift) {
  return ((float)(int32_t)(gates >> shift & UINT8_MAX) - g->gate_zero) * g->scale;
}

/* Sets the factors of four channels, [channel][lane], from the gates of an int8x4 channel. They are
 * those of 16 images, or the same for all lanes. */
static void find_factors(const laci_bytes_gate *g, bool images, const float *gates,
                         float factor[INT8X4][LANES]) {
  for (int channel = 0; channel < INT8X4; channel++) {
    const float first = find_factor(g, load_word(gates), channel * BYTE);
    for (int lane = 0; lane < LANES; lane++) {
      factor[channel][lane] =
          images ? find_factor(g, load_word(gates + lane), channel * BYTE) : first;
    }
  }
}

static void multiply_sixteen_words(const laci_bytes_gate *g, const float factor[INT8X4][LANES],
                                   const float *x, float *y) {
  float int8x4[LANES];
  for (int lane = 0; lane < LANES; lane++) {
    const uint32_t word = load_word(x + lane);
    store_word(int8x4 + lane, multiply_byte(g, factor[0][lane], word, 0) |
                                  multiply_byte(g, factor[1][lane], word, BYTE) |
                                  multiply_byte(g, factor[2][lane], word, 2 * BYTE) |
                                  multiply_byte(g, factor[3][lane], word, 3 * BYTE));
  }
  memcpy(y, int8x4, sizeof int8x4);
}

static void multiply_items(const laci_bytes_form *f, const laci_bytes_gate *gate, const float *x,
                           float *y, int64_t first, int64_t last) {
  const laci_bytes_gate g = *gate;
  const bool images = f->int8x4.format == LACI_FORMAT_HWC16N;
  const int64_t each = laci_bytes_n_items(f) / f->n_image_blocks;
  for (int64_t at = first; at < last; at++) {
    item i = locate_item(f, at);
    const float *of_image = g.factors + at / each * g.layout.n_floats;
    for (int64_t c = i.channel_first; c < i.channel_last; c += INT8X4, i.int8x4 += i.apart) {
      float factor[INT8X4][LANES];
      find_factors(&g, images, of_image + laci_sparse_offset(&g.layout, c / INT8X4, 0, 0), factor);
      for (int64_t pixel = 0; pixel < i.run.n; pixel += LANES) {
        const int64_t place = i.int8x4 + pixel;
        multiply_sixteen_words(&g, (const float(*)[LANES])factor, x + place, y + place);
      }
    }
  }
}

const laci_bytes_kernel LACI_VARIANT(laci_bytes) = {
    quantize_item_range, dequantize_item_range, add_bytes, add_constants_to_items, multiply_items};
