/* SPDX-License-Identifier: Apache-2.0
 * byte_moves.h for every instruction set. Loops over words are plain, so that the compiler
 * vectorizes them.
 *
 * An int8x4 of the result is made of shares: the bytes that one int8x4 of an operand gives to it,
 * shifted together. Mostly there is one share, all four bytes, and neighbouring int8x4 come from
 * neighbours: they are one share, too. Columns are moved in runs, in which operand and result are
 * stepped over evenly. Where nothing but rows of zero points is between them, several rows are one
 * run. */
#include "kernel/sparse/byte_moves.h"

#include <string.h>

enum { INT8X4 = 4, BYTE = 8, LANES = LACI_SPARSE_LANES, BUFFER = 128 };

static const uint32_t all_bytes = UINT32_MAX;

/* The bytes of an int8x4 of y that come from one int8x4 of x; or several neighbouring int8x4, all
 * of whose bytes do. */
typedef struct share {
  const laci_byte_move *m;
  const laci_byte_move_part *part;
  const uint32_t *x; /* x at its image block and channel; y likewise */
  uint32_t *y;
  int shift;     /* number of bits by which x is shifted to the left; negative: to the right */
  uint32_t mask; /* the bits of y that are written */
  int64_t n;     /* number of int8x4 */
} share;

/* ---- Words ---- */

static void store_whole_words(const uint32_t *x, int64_t n, uint32_t *y, const laci_byte_run *r) {
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

static void store_words(const share *p, const uint32_t *x, int64_t n, uint32_t *y,
                        const laci_byte_run *r) {
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
static void move_words(const share *p, const uint32_t *x, int64_t n, uint32_t *y,
                       const laci_byte_run *r) {
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

/* Moves n words of each int8x4 of the share. Where vectors of 16 words of all of them follow each
 * other in memory, one call looks them up. */
static void move_words_of_all(const share *p, const uint32_t *x, int64_t n, uint32_t *y,
                              const laci_byte_run *r) {
  const int64_t from = p->part->in.channel_stride, to = p->m->out.channel_stride;
  const uint8_t *table = p->part->table;
  if (p->n > 1 && n == LANES && from == LANES && to == LANES) {
    move_words(p, x, p->n * LANES, y, r);
  } else if (p->n > 1 && n == LANES && to == LANES && table) {
    for (int64_t at = 0; at < p->n; at++) memcpy(y + at * LANES, x + at * from, LANES * sizeof *x);
    p->m->look_up(table, (uint8_t *)y, p->n * LANES * INT8X4, (uint8_t *)y);
  } else {
    for (int64_t at = 0; at < p->n; at++) move_words(p, x + at * from, n, y + at * to, r);
  }
}

/* ---- Runs of columns ---- */

/* Returns the offset of a pixel in a channel, in words. */
static int64_t offset_of_pixel(const laci_sparse_layout *l, int64_t row, int64_t column) {
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
static void move_neighbours(const share *p, const laci_byte_run *r, int64_t row_from,
                            int64_t row_to, int64_t n) {
  const laci_sparse_layout *in = &p->part->in, *out = &p->m->out;
  for (int64_t at = 0; at < n;) {
    int64_t some = count_neighbours(in, row_from, r->from + at, n - at);
    some = count_neighbours(out, row_to, r->to + at, some);
    move_words_of_all(p, p->x + offset_of_pixel(in, row_from, r->from + at), some,
                      p->y + offset_of_pixel(out, row_to, r->to + at), r);
    at += some;
  }
}

/* Moves the 16 images of each pixel, or in PC16P single pixels. */
static void move_pixels_one_by_one(const share *p, const laci_byte_run *r, int64_t row_from,
                                   int64_t row_to) {
  const laci_byte_run one = {.to_step = 1, .from_step = 1, .repeat = 1};
  const int64_t words = p->m->out.format == LACI_FORMAT_HWC16N ? LANES : 1;
  for (int64_t at = 0; at < r->n; at++) {
    const uint32_t *x = p->x + offset_of_pixel(&p->part->in, row_from, r->from + at * r->from_step);
    for (int64_t k = 0; k < r->repeat; k++)
      move_words_of_all(p, x, words,
                        p->y + offset_of_pixel(&p->m->out, row_to, r->to + at * r->to_step + k),
                        &one);
  }
}

static void move_row_of_run(const share *p, const laci_byte_run *r, int64_t row_from,
                            int64_t row_to) {
  const laci_sparse_layout *in = &p->part->in, *out = &p->m->out;
  const bool pixels = in->format == LACI_FORMAT_PC16P || out->format == LACI_FORMAT_PC16P;
  const bool each = r->to_step != 1 || r->from_step != 1 || r->repeat != 1;
  if (out->format == LACI_FORMAT_HWC16N || (pixels && each)) {
    move_pixels_one_by_one(p, r, row_from, row_to);
  } else if (pixels) {
    move_neighbours(p, r, row_from, row_to, r->n);
  } else {
    move_words_of_all(p, p->x + offset_of_pixel(in, row_from, r->from), r->n,
                      p->y + offset_of_pixel(out, row_to, r->to), r);
  }
}

/* May several rows be one run? All columns are moved in order, rows are equally far apart, and what
 * is between them may be moved, too. */
static bool are_rows_one_run(const share *p, const laci_byte_run *r) {
  const laci_sparse_layout *in = &p->part->in, *out = &p->m->out;
  return r->from == 0 && r->to == 0 && r->n == p->m->w && r->n == p->part->width &&
         r->from_step == 1 && r->to_step == 1 && r->repeat == 1 &&
         in->row_stride == out->row_stride && in->format != LACI_FORMAT_HWC16N &&
         (in->format == LACI_FORMAT_CHW || out->format == LACI_FORMAT_PC16P);
}

static void move_rows_of_run(const share *p, const laci_byte_run *r) {
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

static void move_runs_of_share(const share *p) {
  for (int64_t at = 0; at < p->part->n_runs; at++) move_rows_of_run(p, &p->part->runs[at]);
}

/* ---- Items ---- */

/* Returns how many int8x4 of y, from channel `first` on and at most n, are neighbouring int8x4 of
 * the part's operand. */
static int64_t count_whole_int8x4(const laci_byte_move *m, const laci_byte_move_part *part,
                                  int64_t first, int64_t n) {
  const int32_t *channels = part->channels + first;
  const int64_t most = m->channels - first < n * INT8X4 ? m->channels - first : n * INT8X4;
  int64_t same = 0;
  if (channels[0] < 0 || channels[0] % INT8X4 != 0) return 0;
  while (same < most && channels[same] == channels[0] + same) same++;
  return same / INT8X4;
}

/* Moves the bytes of one int8x4 channel that the part gives to it. first: its first channel. */
static void move_int8x4_by_lanes(const laci_byte_move *m, const laci_byte_move_part *part,
                                 const uint32_t *x, int64_t first, uint32_t *y) {
  const int n = m->channels - first < INT8X4 ? (int)(m->channels - first) : INT8X4;
  unsigned done = 0;
  for (int lane = 0; lane < n; lane++) {
    const int32_t from = part->channels[first + lane];
    if (from < 0 || done >> lane & 1) continue;
    share p = {.m = m,
               .part = part,
               .x = x + from / INT8X4 * part->in.channel_stride,
               .y = y,
               .shift = (lane - from % INT8X4) * BYTE,
               .n = 1};
    for (int other = lane; other < n; other++) {
      const int32_t its = part->channels[first + other];
      if (its < 0 || its / INT8X4 != from / INT8X4) continue;
      if ((other - its % INT8X4) * BYTE != p.shift) continue;
      done |= 1U << other;
      p.mask |= (uint32_t)UINT8_MAX << other * BYTE;
    }
    move_runs_of_share(&p);
  }
}

/* Moves what the part gives to n int8x4 channels. first: their first channel. */
static void move_channels_of_part(const laci_byte_move *m, const laci_byte_move_part *part,
                                  const uint32_t *x, int64_t first, int64_t n, uint32_t *y) {
  for (int64_t at = 0; at < n;) {
    const int64_t channel = first + at * INT8X4,
                  whole = count_whole_int8x4(m, part, channel, n - at);
    uint32_t *to = y + at * m->out.channel_stride;
    if (whole > 0) {
      const uint32_t *from = x + part->channels[channel] / INT8X4 * part->in.channel_stride;
      move_runs_of_share(&(share){m, part, from, to, 0, all_bytes, whole});
    } else {
      move_int8x4_by_lanes(m, part, x, channel, to);
    }
    at += whole > 0 ? whole : 1;
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
      uint32_t *to = y + offset_of_pixel(&m->out, row, column);
      for (int64_t k = 0; k < words; k++) to[k] = word;
    }
  }
}

void LACI_VARIANT(laci_byte_move)(const laci_byte_move *m, const uint32_t *const *x, uint32_t *y,
                                  int64_t first, int64_t last) {
  const int64_t n_words = laci_sparse_layout_channels(m->channels, LACI_SPARSE_S8);
  for (int64_t at = first; at < last;) {
    const int64_t image_block = at / n_words, word = at % n_words, channel = word * INT8X4;
    const int64_t n = last - at < n_words - word ? last - at : n_words - word;
    uint32_t *to = y + image_block * m->out.n_floats + word * m->out.channel_stride;
    for (int64_t k = 0; k < n; k++) {
      const int64_t its = channel + k * INT8X4;
      if (!m->is_filled || m->channels - its < INT8X4)
        fill_pixels(m, its, to + k * m->out.channel_stride);
    }
    for (int part = 0; part < m->n_parts; part++) {
      const laci_byte_move_part *p = &m->parts[part];
      move_channels_of_part(m, p, x[p->x] + image_block * p->in.n_floats, channel, n, to);
    }
    at += n;
  }
}
