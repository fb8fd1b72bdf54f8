/* SPDX-License-Identifier: Apache-2.0
 * kernel/sparse/byte_moves: every variant against the byte that each place names, in all formats of
 * both sides, with tables and without, however the work is cut, with nothing written between
 * pixels but zero points where they are. */
#include "kernel/sparse/byte_moves.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "cpu/cpu.h"

#define LEVEL(name, level) level,
static const laci_cpu_level levels[] = {LACI_KERNEL_VARIANTS(LEVEL)};
#undef LEVEL
enum { N_LEVELS = sizeof levels / sizeof *levels, LANES = LACI_SPARSE_LANES, INT8X4 = 4 };
enum { GUARD = 64, UNTOUCHED = 0x5A, MOST = 64, MOST_PARTS = 4, ZERO = 9, SIDE = 2, TRIES = 400 };

/* A move, its lists and the bytes that it moves. */
typedef struct trial {
  laci_byte_move m;
  laci_byte_move_part parts[MOST_PARTS];
  int32_t lists[MOST_PARTS][3][MOST];
  laci_byte_run runs[MOST_PARTS][MOST];
  uint8_t tables[MOST_PARTS][LACI_N_BYTES];
  int64_t h[MOST_PARTS], channels[MOST_PARTS]; /* sizes of the operands */
  uint32_t *x[MOST_PARTS];
} trial;

typedef struct dice {
  uint64_t at;
} dice;

static int64_t below(dice *d, int64_t n) {
  return (int64_t)laci_rng_integer_below(31, 1, d->at++, (uint64_t)n);
}

static laci_sparse_layout layout_of(dice *d, laci_memory_format format, int64_t channels, int64_t h,
                                    int64_t w, int64_t stride) {
  laci_sparse_border border = {.right = stride - w, .stride_h = 1, .stride_w = 1};
  if (format == LACI_FORMAT_CHW) {
    border.top = below(d, SIDE);
    border.bottom = below(d, SIDE);
    border.left = below(d, SIDE);
  }
  return laci_sparse_padded_layout(format, laci_sparse_layout_channels(channels, LACI_SPARSE_S8), h,
                                   w, border);
}

/* ---- Lists of a part ---- */

/* What a list is: all in order, every second, the reverse, each twice, any. */
static void fill_list(dice *d, int32_t *list, int64_t n, int64_t n_from, int64_t kind) {
  for (int64_t at = 0; at < n; at++) {
    const int64_t straight = at < n_from ? at : n_from - 1;
    const int64_t each[] = {straight, straight * 2 % n_from, n_from - 1 - straight, at / 2 % n_from,
                            below(d, n_from)};
    list[at] = (int32_t)each[kind];
  }
}

/* Gives each channel, row or column to one part, or to none. */
static void share_list(dice *d, trial *t, int axis, int64_t n) {
  const int64_t kind = below(d, 4);
  t->m.is_filled = kind < 3;
  for (int64_t at = 0; at < n; at++) {
    const int64_t choices[] = {at * t->m.n_parts / n, at % t->m.n_parts, at / 3 % t->m.n_parts,
                               below(d, t->m.n_parts + 1)};
    for (int part = 0; part < t->m.n_parts; part++) {
      if (choices[kind] != part) t->lists[part][axis][at] = -1;
    }
  }
}

static void make_parts(dice *d, trial *t, laci_memory_format format, int64_t stride) {
  const bool alike = below(d, 2); /* parts keep rows and columns: layouts are of one size */
  const laci_memory_format formats[] = {format, format == LACI_FORMAT_HWC16N ? format
                                                : below(d, 2)                ? LACI_FORMAT_CHW
                                                                             : LACI_FORMAT_PC16P};
  for (int at = 0; at < t->m.n_parts; at++) {
    laci_byte_move_part *part = &t->parts[at];
    t->channels[at] = 1 + below(d, 20);
    t->h[at] = alike ? t->m.h : 1 + below(d, 5);
    const int64_t w = alike ? t->m.w : 1 + below(d, 20);
    *part = (laci_byte_move_part){.x = at, .width = w};
    part->in = layout_of(d, formats[at % 2], t->channels[at], t->h[at], w, alike ? stride : w + 1);
    fill_list(d, t->lists[at][0], t->m.channels, t->channels[at], below(d, 3) ? 0 : below(d, 5));
    fill_list(d, t->lists[at][1], t->m.h, t->h[at], alike ? 0 : below(d, 5));
    fill_list(d, t->lists[at][2], t->m.w, w, alike ? 0 : below(d, 5));
    part->channels = t->lists[at][0];
    part->rows = t->lists[at][1];
    for (int byte = 0; byte < LACI_N_BYTES; byte++)
      t->tables[at][byte] = (uint8_t)(byte == ZERO ? ZERO : byte * 7 + 3);
    part->table = below(d, 2) ? t->tables[at] : NULL;
  }
}

static void make_trial(dice *d, trial *t) {
  static const laci_memory_format kinds[] = {LACI_FORMAT_CHW, LACI_FORMAT_PC16P,
                                             LACI_FORMAT_HWC16N};
  const laci_memory_format format = kinds[below(d, 3)];
  *t = (trial){.m = {.channels = 1 + below(d, 20),
                     .h = 1 + below(d, 6),
                     .w = 1 + below(d, 20),
                     .n_image_blocks = 1 + below(d, 2),
                     .n_parts = 1 + (int)below(d, MOST_PARTS),
                     .is_filled = true,
                     .fill = (uint8_t)below(d, 256),
                     .zero = ZERO,
                     .look_up = laci_table_look_up_bytes_variant()}};
  const int64_t stride = t->m.w + below(d, 3);
  t->m.out = layout_of(d, format, t->m.channels, t->m.h, t->m.w, stride);
  make_parts(d, t, format, stride);
  if (t->m.n_parts > 1) {
    const int axis = (int)below(d, 3);
    share_list(d, t, axis, axis == 0 ? t->m.channels : axis == 1 ? t->m.h : t->m.w);
  }
  t->m.parts = t->parts;
  for (int at = 0; at < t->m.n_parts; at++) {
    t->parts[at].runs = t->runs[at];
    t->parts[at].n_runs = laci_byte_move_find_runs(t->lists[at][2], t->m.w, t->runs[at]);
  }
}

/* ---- Places ---- */

static uint8_t *place_at(const laci_sparse_layout *l, uint32_t *words, int64_t image_block,
                         int64_t channel, const int64_t pixel[2], int64_t lane) {
  const int64_t at = image_block * l->n_floats +
                     laci_sparse_offset(l, channel / INT8X4, pixel[0], pixel[1]) + lane;
  return (uint8_t *)(words + at) + channel % INT8X4;
}

static int64_t count_lanes(const laci_sparse_layout *l) {
  return l->format == LACI_FORMAT_HWC16N ? LANES : 1;
}

/* Operands are zero points where they are no pixels, and any bytes elsewhere. */
static void make_operand(dice *d, trial *t, int part) {
  const laci_sparse_layout *l = &t->parts[part].in;
  const int64_t n = l->n_floats * t->m.n_image_blocks;
  t->x[part] = malloc((size_t)n * sizeof *t->x[part]);
  assert_non_null(t->x[part]);
  memset(t->x[part], ZERO, (size_t)n * sizeof *t->x[part]);
  const int64_t n_pixels = t->h[part] * t->parts[part].width;
  for (int64_t b = 0; b < t->m.n_image_blocks; b++) {
    for (int64_t at = 0; at < t->channels[part] * n_pixels * count_lanes(l); at++) {
      const int64_t pixel = at / count_lanes(l) % n_pixels;
      const int64_t place[] = {pixel / t->parts[part].width, pixel % t->parts[part].width};
      *place_at(l, t->x[part], b, at / count_lanes(l) / n_pixels, place, at % count_lanes(l)) =
          (uint8_t)below(d, 256);
    }
  }
}

static uint8_t want_at(const trial *t, int64_t b, int64_t channel, const int64_t pixel[2],
                       int64_t lane) {
  for (int at = 0; at < t->m.n_parts && channel < t->m.channels; at++) {
    const laci_byte_move_part *p = &t->parts[at];
    const int64_t from[] = {p->rows[pixel[0]], t->lists[at][2][pixel[1]]};
    if (p->channels[channel] < 0 || from[0] < 0 || from[1] < 0) continue;
    const uint8_t x = *place_at(&p->in, t->x[at], b, p->channels[channel], from, lane);
    return p->table ? p->table[x] : x;
  }
  return channel < t->m.channels ? t->m.fill : t->m.zero;
}

/* Bytes that were compared become zero points, as all others were before. */
static void expect_bytes(const trial *t, uint32_t *y) {
  const laci_byte_move *m = &t->m;
  const int64_t lanes = count_lanes(&m->out);
  const int64_t channels = laci_sparse_layout_channels(m->channels, LACI_SPARSE_S8) * INT8X4;
  for (int64_t at = 0; at < m->n_image_blocks * channels * m->h * m->w * lanes; at++) {
    const int64_t pixel = at / lanes % (m->h * m->w), channel = at / lanes / (m->h * m->w);
    const int64_t place[] = {pixel / m->w, pixel % m->w}, b = channel / channels;
    uint8_t *got = place_at(&m->out, y, b, channel % channels, place, at % lanes);
    assert_int_equal(*got, want_at(t, b, channel % channels, place, at % lanes));
  }
  for (int64_t at = 0; at < m->n_image_blocks * channels * m->h * m->w * lanes; at++) {
    const int64_t pixel = at / lanes % (m->h * m->w), channel = at / lanes / (m->h * m->w);
    const int64_t place[] = {pixel / m->w, pixel % m->w}, b = channel / channels;
    *place_at(&m->out, y, b, channel % channels, place, at % lanes) = ZERO;
  }
}

static void check(dice *d, trial *t) {
  const int64_t n_y = t->m.out.n_floats * t->m.n_image_blocks;
  uint32_t *memory = malloc((size_t)(n_y + 2 * GUARD) * sizeof *memory), *y = memory + GUARD;
  const uint32_t *x[MOST_PARTS];
  assert_non_null(memory);
  for (int at = 0; at < t->m.n_parts; at++) {
    make_operand(d, t, at);
    x[at] = t->x[at];
  }
  memset(memory, UNTOUCHED, (size_t)(n_y + 2 * GUARD) * sizeof *memory);
  memset(y, ZERO, (size_t)n_y * sizeof *y);
  const int64_t items = laci_byte_move_n_items(&t->m), half = items / 2;
  laci_byte_move_variant()(&t->m, x, y, half, items);
  laci_byte_move_variant()(&t->m, x, y, 0, half);
  expect_bytes(t, y);
  for (int64_t at = 0; at < n_y * INT8X4; at++) assert_int_equal(((uint8_t *)y)[at], ZERO);
  for (int64_t at = 0; at < GUARD * INT8X4; at++) {
    assert_int_equal(((uint8_t *)memory)[at], UNTOUCHED);
    assert_int_equal(((uint8_t *)(y + n_y))[at], UNTOUCHED);
  }
  for (int at = 0; at < t->m.n_parts; at++) free(t->x[at]);
  free(memory);
}

static void moves_each_byte_where_its_part_says(void **state) {
  const laci_cpu_level start = laci_cpu_level_in_force();
  (void)state;
  for (int level = 0; level < N_LEVELS; level++) {
    if (laci_cpu_limit_level(levels[level]) != levels[level]) continue;
    dice d = {0};
    for (int at = 0; at < TRIES; at++) {
      trial t;
      make_trial(&d, &t);
      check(&d, &t);
    }
  }
  (void)laci_cpu_limit_level(start);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(moves_each_byte_where_its_part_says)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
