/* SPDX-License-Identifier: Apache-2.0
 * byte_moves.h for every instruction set. Loops over words are plain, so that the compiler
 * vectorizes them.
 *
 * An int8x4 of the result is made of pieces: the bytes that one int8x4 of an operand gives to it,
 * shifted together. Mostly there is one piece, all four bytes. Columns are moved in runs, in which
 * operand and result are stepped over evenly. Where nothing but rows of zero points is between
 * them, several rows are one run. */
#include "kernel/sparse/byte_moves.h"

#include <string.h>

enum { INT8X4 = 4, BYTE = 8, LANES = LACI_SPARSE_LANES, BUFFER = 128 };

static const uint32_t all_bytes = UINT32_MAX;

/* The bytes of an int8x4 of y that come from one int8x4 of x. */
typedef struct piece {
  const laci_byte_move *m;
  const laci_byte_part *part;
  const uint32_t *x; /* x at its image block and channel; y likewise */
  uint32_t *y;
  int shift;     /* number of bits by which x is shifted to the left; negative: to the right */
  uint32_t mask; /* the bits of y that are written */
} piece;

/* Columns of y that are written from columns of x: repeat times x[from], then the next. */
typedef struct run {
  int64_t to, from, n, to_step, from_step, repeat;
} run;

/* ---- Words ---- */

static void store_whole_words(const uint32_t *x, int64_t n, uint32_t *y, const run *r) {
  if (r->repeat == 1 && r->to_step == 1) {
    memcpy(y, x, (size_t)n * sizeof *x);
  } else if (r->repeat == 2 && r->to_step == 2) {
    for (int64_t at = 0; at < n; at++) {
      const uint64_t both = x[at] | (uint64_t)x[at] << 32;
      memcpy(y + 2 * at, &both, sizeof both);
    }
  } else {
    for (int64_t at = 0; at < n; at++) {
      for (int64_t k = 0; k < r->repeat; k++) y[at * r->to_step + k] = x[at];
    }
  }
}

static void store_words(const piece *p, const uint32_t *x, int64_t n, uint32_t *y, const run *r) {
  const uint32_t mask = p->mask;
  const int left = p->shift > 0 ? p->shift : 0, right = p->shift < 0 ? -p->shift : 0;
  if (mask == all_bytes) {
    store_whole_words(x, n, y, r);
  } else if (r->repeat == 1 && r->to_step == 1) {
    for (int64_t at = 0; at < n; at++) y[at] = (y[at] & ~mask) | (x[at] << left >> right & mask);
  } else {
    for (int64_t at = 0; at < n; at++) {
      for (int64_t k = 0; k < r->repeat; k++) {
        uint32_t *to = &y[at * r->to_step + k];
        *to = (*to & ~mask) | (x[at] << left >> right & mask);
      }
    }
  }
}

/* Moves n words of x, r->from_step apart, to y. */
static void move_words(const piece *p, const uint32_t *x, int64_t n, uint32_t *y, const run *r) {
  const uint8_t *table = p->part->table;
  uint32_t buffer[BUFFER];
  if (!table && r->from_step == 1) {
    store_words(p, x, n, y, r);
    return;
  }
  if (r->from_step == 1 && r->to_step == 1 && r->repeat == 1 && p->mask == all_bytes) {
    p->m->look_up(table, (const uint8_t *)x, n * INT8X4, (uint8_t *)y);
    return;
  }
  for (int64_t at = 0; at < n; at += BUFFER) {
    const int64_t some = n - at < BUFFER ? n - at : BUFFER;
    const uint32_t *from = x + at * r->from_step;
    for (int64_t k = 0; k < some; k++) buffer[k] = from[k * r->from_step];
    if (table) p->m->look_up(table, (uint8_t *)buffer, some * INT8X4, (uint8_t *)buffer);
    store_words(p, buffer, some, y + at * r->to_step, r);
  }
}

/* ---- Runs of columns ---- */

/* Returns the offset of a pixel in a channel, in words. */
static int64_t place_of(const laci_sparse_layout *l, int64_t row, int64_t column) {
  return laci_sparse_offset(l, 0, row, column);
}

/* Returns how many pixels from this one on are next to each other in memory, at most n. */
static int64_t count_neighbours(const laci_sparse_layout *l, int64_t row, int64_t column,
                                int64_t n) {
  if (l->format != LACI_FORMAT_PC16P) return n;
  const int64_t left = LANES - ((row + l->top) * l->row_stride + column + l->left) % LANES;
  return left < n ? left : n;
}

/* Moves a run whose pixels are neighbours in the long rows of both layouts. */
static void move_neighbours(const piece *p, const run *r, int64_t row_from, int64_t row_to,
                            int64_t n) {
  const laci_sparse_layout *in = &p->part->in, *out = &p->m->out;
  for (int64_t at = 0; at < n;) {
    int64_t some = count_neighbours(in, row_from, r->from + at, n - at);
    some = count_neighbours(out, row_to, r->to + at, some);
    move_words(p, p->x + place_of(in, row_from, r->from + at), some,
               p->y + place_of(out, row_to, r->to + at), r);
    at += some;
  }
}

/* Moves the 16 images of each pixel, or in PC16P single pixels. */
static void move_each(const piece *p, const run *r, int64_t row_from, int64_t row_to) {
  const run one = {.to_step = 1, .from_step = 1, .repeat = 1};
  const int64_t words = p->m->out.format == LACI_FORMAT_HWC16N ? LANES : 1;
  for (int64_t at = 0; at < r->n; at++) {
    const uint32_t *x = p->x + place_of(&p->part->in, row_from, r->from + at * r->from_step);
    for (int64_t k = 0; k < r->repeat; k++)
      move_words(p, x, words, p->y + place_of(&p->m->out, row_to, r->to + at * r->to_step + k),
                 &one);
  }
}

static void move_row_of_run(const piece *p, const run *r, int64_t row_from, int64_t row_to) {
  const laci_sparse_layout *in = &p->part->in, *out = &p->m->out;
  const bool pixels = in->format == LACI_FORMAT_PC16P || out->format == LACI_FORMAT_PC16P;
  const bool each = r->to_step != 1 || r->from_step != 1 || r->repeat != 1;
  if (out->format == LACI_FORMAT_HWC16N || (pixels && each)) {
    move_each(p, r, row_from, row_to);
  } else if (pixels) {
    move_neighbours(p, r, row_from, row_to, r->n);
  } else {
    move_words(p, p->x + place_of(in, row_from, r->from), r->n, p->y + place_of(out, row_to, r->to),
               r);
  }
}

/* May several rows be one run? All columns are moved in order, rows are equally far apart, and what
 * is between them may be moved, too. */
static bool are_rows_one_run(const piece *p, const run *r) {
  const laci_sparse_layout *in = &p->part->in, *out = &p->m->out;
  return r->from == 0 && r->to == 0 && r->n == p->m->w && r->n == p->part->width &&
         r->from_step == 1 && r->to_step == 1 && r->repeat == 1 &&
         in->row_stride == out->row_stride && in->format != LACI_FORMAT_HWC16N &&
         (in->format == LACI_FORMAT_CHW || out->format == LACI_FORMAT_PC16P);
}

static void move_rows_of_run(const piece *p, const run *r) {
  const int32_t *rows = p->part->rows;
  const bool one_run = are_rows_one_run(p, r);
  for (int64_t row = 0; row < p->m->h;) {
    int64_t n = 1;
    if (rows[row] >= 0 && one_run) {
      while (row + n < p->m->h && rows[row + n] == rows[row] + n) n++;
      move_neighbours(p, r, rows[row], row, (n - 1) * p->m->out.row_stride + r->n);
    } else if (rows[row] >= 0) {
      move_row_of_run(p, r, rows[row], row);
    }
    row += n;
  }
}

/* ---- Finding runs ---- */

static int64_t count_equal(const int32_t *list, int64_t at, int64_t n) {
  int64_t same = 1;
  while (at + same < n && list[at + same] == list[at]) same++;
  return same;
}

/* Returns the run that begins at column `at` of y, which the part has. */
static run find_run(const int32_t *columns, int64_t at, int64_t n) {
  run r = {at, columns[at], 1, 1, 1, count_equal(columns, at, n)};
  int64_t next = at + r.repeat;
  while (next < n && columns[next] < 0) next++;
  if (next == n || (r.repeat > 1 && next != at + r.repeat)) return r;
  r.to_step = next - at;
  r.from_step = columns[next] - columns[at];
  for (; next < n; next += r.to_step, r.n++) {
    if (columns[next] != r.from + r.n * r.from_step || columns[next] < 0) break;
    if (count_equal(columns, next, n) != r.repeat) break;
    int64_t between = next - r.to_step + r.repeat;
    while (between < next && columns[between] < 0) between++;
    if (between < next) break;
  }
  return r;
}

static void move_piece(const piece *p) {
  const int32_t *columns = p->part->columns;
  for (int64_t at = 0; at < p->m->w;) {
    if (columns[at] < 0) {
      at++;
      continue;
    }
    const run r = find_run(columns, at, p->m->w);
    move_rows_of_run(p, &r);
    at += (r.n - 1) * r.to_step + r.repeat;
  }
}

/* ---- Items ---- */

/* Moves the bytes of one int8x4 channel that the part gives to it. first: its first channel. */
static void move_part(const laci_byte_move *m, const laci_byte_part *part, const uint32_t *x,
                      int64_t first, uint32_t *y) {
  const int n = m->channels - first < INT8X4 ? (int)(m->channels - first) : INT8X4;
  unsigned done = 0;
  for (int lane = 0; lane < n; lane++) {
    const int32_t from = part->channels[first + lane];
    if (from < 0 || done >> lane & 1) continue;
    piece p = {.m = m,
               .part = part,
               .x = x + from / INT8X4 * part->in.channel_stride,
               .y = y,
               .shift = (lane - from % INT8X4) * BYTE};
    for (int other = lane; other < n; other++) {
      const int32_t its = part->channels[first + other];
      if (its < 0 || its / INT8X4 != from / INT8X4) continue;
      if ((other - its % INT8X4) * BYTE != p.shift) continue;
      done |= 1U << other;
      p.mask |= (uint32_t)UINT8_MAX << other * BYTE;
    }
    move_piece(&p);
  }
}

/* Fills the pixels of an int8x4 channel, and the bytes after the last channel. */
static void fill_pixels(const laci_byte_move *m, int64_t first, uint32_t *y) {
  const int64_t words = m->out.format == LACI_FORMAT_HWC16N ? LANES : 1;
  uint32_t word = 0;
  for (int lane = 0; lane < INT8X4; lane++) {
    const uint32_t byte = first + lane < m->channels ? m->fill : m->zero;
    word |= byte << lane * BYTE;
  }
  for (int64_t row = 0; row < m->h; row++) {
    for (int64_t column = 0; column < m->w; column++) {
      uint32_t *to = y + place_of(&m->out, row, column);
      for (int64_t k = 0; k < words; k++) to[k] = word;
    }
  }
}

void LACI_VARIANT(laci_byte_move)(const laci_byte_move *m, const uint32_t *const *x, uint32_t *y,
                                  int64_t first, int64_t last) {
  const int64_t n_words = laci_sparse_layout_channels(m->channels, LACI_SPARSE_S8);
  for (int64_t at = first; at < last; at++) {
    const int64_t image_block = at / n_words, word = at % n_words, channel = word * INT8X4;
    uint32_t *to = y + image_block * m->out.n_floats + word * m->out.channel_stride;
    if (!m->is_filled || m->channels - channel < INT8X4) fill_pixels(m, channel, to);
    for (int part = 0; part < m->n_parts; part++) {
      const laci_byte_part *p = &m->parts[part];
      move_part(m, p, x[p->x] + image_block * p->in.n_floats, channel, to);
    }
  }
}
