/* SPDX-License-Identifier: Apache-2.0
 * Gram matrices of convolutions with stride 1, without patches.
 *
 * Columns are taps t, t' and channels c, c'. With u = o - pad + t * dilation,
 *
 *     H[(t, c), (t', c')] = sum over o of x_c(u) x_c'(u + d),    d = (t' - t) * dilation
 *
 * This is R_d[c, c'], the same sum over the whole image, minus the terms of positions u that no
 * output o reads by tap t: some rows and columns at the border. All pairs of taps with the same
 * displacement d share R_d. For 3x3 taps, H needs 13 of them, since R_-d is the transpose of R_d,
 * and K needs 25, instead of 81 products. With rows Y(t) and columns X(t) of the image that tap t
 * does not read,
 *
 *     H[t, t'] = R_d - sum over Y of its part in a row - sum over X of its part in a column
 *                    + sum over both of its part in a corner
 *
 * These sums, too, are shared by several pairs of taps.
 *
 * A channel's images are stored with zeros after every row, as many as taps reach. So a shifted
 * image is the same memory at another offset, and pixels outside of the image are zeros. After the
 * images follow the rows, columns and corners at the border, of all images together, again with
 * zeros in between. */
#include <string.h>

#include "base/divide.h"
#include "cpu/pool.h"
#include "kernel/gram/gram_in.h"

enum { TILE = LACI_GRAM_TILE, POSITIONS = 8192 };

/* ---- The layout of a channel ---- */

/** One axis: each tap reads all positions except some within `reach` of either end. */
typedef struct side {
  int64_t in, reach, slots; /* slots: number of positions at the border, 2 * reach: those at the low
                               end come first */
  const laci_unfold_axis *axis;
} side;

typedef struct layout {
  side y, x;
  int64_t images;                            /* number of images in a block */
  int64_t wide, high;                        /* number of floats in a row, and in a column, zeros
                                                included */
  int64_t image_stride, row, column, corner; /* distance, in floats, from an image, row, column or
                                                corner to the next one */
  /* where images, rows, columns and corners begin in a channel; `channel`: number of floats in a
   * channel */
  int64_t first_image, rows, columns, corners, channel;
} layout;

static side make_axis_of_layout(const laci_unfold_axis *axis) {
  const int64_t reach = (axis->kernel - 1) * axis->dilation;
  return (side){axis->in, reach, 2 * reach, axis};
}

static layout make_padded_layout(const laci_unfold *u) {
  layout l = {.y = make_axis_of_layout(&u->axis[1]), .x = make_axis_of_layout(&u->axis[2])};
  l.wide = l.x.in + l.x.reach;
  l.high = l.y.in + l.y.reach;
  l.images = laci_min(laci_ceil_div(POSITIONS, l.y.in * l.wide), u->images);
  /* Zeros at the end: for the largest displacement and for the rest of a vector. */
  const int64_t more = (l.x.reach > l.y.reach ? l.x.reach : l.y.reach) + LACI_DOTS_LANES;
  l.image_stride = laci_gram_round_up_to_vectors(l.y.in * l.wide + more);
  l.row = laci_gram_round_up_to_vectors(l.images * l.wide + more);
  l.column = laci_gram_round_up_to_vectors(l.images * l.high + more);
  l.corner = laci_gram_round_up_to_vectors(l.images + more);
  l.first_image = laci_gram_round_up_to_vectors(more);
  l.rows = l.first_image + l.images * l.image_stride;
  l.columns = l.rows + l.y.slots * l.row;
  l.corners = l.columns + l.x.slots * l.column;
  l.channel = laci_gram_round_up_to_odd_vectors(l.corners + l.y.slots * l.x.slots * l.corner);
  return l;
}

static int64_t position_of_slot(const side *s, int64_t slot) {
  return slot < s->reach ? slot : s->in - s->slots + slot;
}

static int64_t slot_of_position(const side *s, int64_t place) {
  return place < s->reach ? place : place - s->in + s->slots;
}

static bool does_tap_skip_position(const side *s, int64_t tap, int64_t place) {
  const int64_t o = place + s->axis->pad - tap * s->axis->dilation;
  return o < 0 || o >= s->axis->out;
}

uint64_t laci_gram_correlate_scratch_bytes(const laci_unfold *u, bool with_dense) {
  const layout l = make_padded_layout(u);
  return (uint64_t)(u->channels * l.channel) * (with_dense ? 2 : 1) * sizeof(float);
}

/* ---- Copying images into the layout ---- */

typedef struct filling {
  const laci_unfold *unfold;
  const layout *l;
  const float *value; /* the value, from the block's first image on */
  int64_t group, n;   /* n: number of images */
  float *to;
} filling;

static void copy_image_with_zeros(const layout *l, const float *from, int64_t image, float *to) {
  float *copy = to + l->first_image + image * l->image_stride;
  const int64_t h = l->y.in, w = l->x.in;
  for (int64_t r = 0; r < h; r++) memcpy(copy + r * l->wide, from + r * w, sizeof *to * (size_t)w);
  for (int64_t slot = 0; slot < l->y.slots; slot++) {
    const float *row = from + position_of_slot(&l->y, slot) * w;
    memcpy(to + l->rows + slot * l->row + image * l->wide, row, sizeof *to * (size_t)w);
    for (int64_t q = 0; q < l->x.slots; q++) {
      to[l->corners + (slot * l->x.slots + q) * l->corner + image] =
          row[position_of_slot(&l->x, q)];
    }
  }
  for (int64_t q = 0; q < l->x.slots; q++) {
    float *column = to + l->columns + q * l->column + image * l->high;
    for (int64_t r = 0; r < h; r++) column[r] = from[r * w + position_of_slot(&l->x, q)];
  }
}

static void copy_channels_with_zeros(int64_t begin, int64_t end, void *context) {
  const filling *f = context;
  const laci_unfold *u = f->unfold;
  const int64_t pixels = u->axis[1].in * u->axis[2].in;
  for (int64_t c = begin; c < end; c++) {
    float *to = f->to + c * f->l->channel;
    memset(to, 0, sizeof *to * (size_t)f->l->channel);
    for (int64_t image = 0; image < f->n; image++) {
      const int64_t at = (image * u->groups + f->group) * u->channels + c;
      copy_image_with_zeros(f->l, f->value + at * pixels, image, to);
    }
  }
}

/* ---- The sums ---- */

/** A tile of the matrix R_d: the sums for some pairs of channels at one displacement d. */
typedef struct displaced_tile {
  int64_t ey, ex; /* displacement t' - t, in taps */
  int64_t dy, dx; /* displacement t' - t, in positions of the image */
  int64_t i, j;   /* the first channels of the tile */
  int m, n;       /* numbers of channels of the tile */
  double sum[TILE * TILE];
} displaced_tile;

typedef struct correlation {
  const laci_unfold *unfold;
  const layout *l;
  const float *left, *right; /* values in the layout above: the channels of the matrix's rows, and
                                of its columns */
  double *out;               /* the group's matrix */
  int64_t n;                 /* number of images */
  int64_t tiles;             /* number of tiles of channels */
  bool half;
  laci_dots_kernel *kernel;
} correlation;

/** A part of a channel whose products are summed: its offsets in the left and in the right operand,
 * and n_runs runs of `length` floats each, `stride` floats apart. */
typedef struct part {
  int64_t left, right, n_runs, stride, length;
} part;

static void sum_displaced_products(const correlation *c, displaced_tile *p, const part *at) {
  const int64_t channel = c->l->channel;
  const laci_dots dots = {.m = p->m,
                          .n = p->n,
                          .a = c->left + p->i * channel + at->left,
                          .b = c->right + p->j * channel + at->right,
                          .lda = channel,
                          .ldb = channel,
                          .ldo = TILE,
                          .n_runs = at->n_runs,
                          .stride = at->stride,
                          .length = laci_gram_round_up_to_vectors(at->length),
                          .out = p->sum};
  memset(p->sum, 0, sizeof *p->sum * (size_t)p->m * TILE);
  if (c->half && !p->ey && !p->ex && p->i == p->j) laci_gram_add_upper_half(c->kernel, &dots);
  else c->kernel(&dots);
}

static void add_sum_to_tap_pairs(const correlation *c, const displaced_tile *p, const int64_t t[2],
                                 double sign) {
  const laci_unfold *u = c->unfold;
  const int64_t across = u->axis[2].kernel, columns = laci_unfold_n_columns(u);
  const int64_t row = (t[0] * across + t[1]) * u->channels + p->i;
  const int64_t column = ((t[0] + p->ey) * across + t[1] + p->ex) * u->channels + p->j;
  for (int i = 0; i < p->m; i++) {
    double *to = c->out + (row + i) * columns + column;
    for (int j = 0; j < p->n; j++) to[j] += sign * p->sum[i * TILE + j];
  }
}

/* Adds the part's sum, times `sign`, to the elements of all pairs of taps that do not read position
 * `row`, or `column`, of the image (-1: of all pairs). Returns whether there is such a pair; with
 * `sign` 0 nothing is added. */
static bool add_products_to_tap_pairs(const correlation *c, const displaced_tile *p, int64_t row,
                                      int64_t column, double sign) {
  const side *y = &c->l->y, *x = &c->l->x;
  bool any = false;
  for (int64_t ty = 0; ty < y->axis->kernel; ty++) {
    if (ty + p->ey < 0 || ty + p->ey >= y->axis->kernel) continue;
    if (row >= 0 && !does_tap_skip_position(y, ty, row)) continue;
    for (int64_t tx = 0; tx < x->axis->kernel; tx++) {
      if (tx + p->ex < 0 || tx + p->ex >= x->axis->kernel) continue;
      if (column >= 0 && !does_tap_skip_position(x, tx, column)) continue;
      any = true;
      if (sign != 0) add_sum_to_tap_pairs(c, p, (const int64_t[]){ty, tx}, sign);
    }
  }
  return any;
}

/* Returns the position at the tile's displacement from position `place`; -1: it is outside of the
 * image, where the layout has zeros. */
static int64_t displaced_position(const side *s, int64_t place, int64_t d) {
  return place + d >= 0 && place + d < s->in ? place + d : -1;
}

static void sum_whole_images(const correlation *c, displaced_tile *p) {
  const layout *l = c->l;
  const int64_t up = p->dy < 0 ? -p->dy : 0, down = p->dy > 0 ? p->dy : 0;
  const part whole = {.left = l->first_image + up * l->wide,
                      .right = l->first_image + down * l->wide + p->dx,
                      .n_runs = c->n,
                      .stride = l->image_stride,
                      .length = (l->y.in - up - down) * l->wide};
  sum_displaced_products(c, p, &whole);
  (void)add_products_to_tap_pairs(c, p, -1, -1, 1);
}

static void subtract_border_rows(const correlation *c, displaced_tile *p) {
  const layout *l = c->l;
  for (int64_t slot = 0; slot < l->y.slots; slot++) {
    const int64_t row = position_of_slot(&l->y, slot),
                  other = displaced_position(&l->y, row, p->dy);
    if (other < 0 || !add_products_to_tap_pairs(c, p, row, -1, 0)) continue;
    const part border = {.left = l->rows + slot * l->row,
                         .right = l->rows + slot_of_position(&l->y, other) * l->row + p->dx,
                         .n_runs = 1,
                         .length = c->n * l->wide};
    sum_displaced_products(c, p, &border);
    (void)add_products_to_tap_pairs(c, p, row, -1, -1);
  }
}

static void subtract_border_columns(const correlation *c, displaced_tile *p) {
  const layout *l = c->l;
  for (int64_t slot = 0; slot < l->x.slots; slot++) {
    const int64_t column = position_of_slot(&l->x, slot),
                  other = displaced_position(&l->x, column, p->dx);
    if (other < 0 || !add_products_to_tap_pairs(c, p, -1, column, 0)) continue;
    const part border = {.left = l->columns + slot * l->column,
                         .right = l->columns + slot_of_position(&l->x, other) * l->column + p->dy,
                         .n_runs = 1,
                         .length = c->n * l->high};
    sum_displaced_products(c, p, &border);
    (void)add_products_to_tap_pairs(c, p, -1, column, -1);
  }
}

static void add_border_corners(const correlation *c, displaced_tile *p) {
  const layout *l = c->l;
  for (int64_t at = 0; at < l->y.slots * l->x.slots; at++) {
    const int64_t row = position_of_slot(&l->y, at / l->x.slots),
                  column = position_of_slot(&l->x, at % l->x.slots);
    const int64_t other_row = displaced_position(&l->y, row, p->dy),
                  other_column = displaced_position(&l->x, column, p->dx);
    if (other_row < 0 || other_column < 0 || !add_products_to_tap_pairs(c, p, row, column, 0))
      continue;
    const int64_t other =
        slot_of_position(&l->y, other_row) * l->x.slots + slot_of_position(&l->x, other_column);
    const part border = {.left = l->corners + at * l->corner,
                         .right = l->corners + other * l->corner,
                         .n_runs = 1,
                         .length = c->n};
    sum_displaced_products(c, p, &border);
    (void)add_products_to_tap_pairs(c, p, row, column, 1);
  }
}

static void sum_displaced_tiles(int64_t begin, int64_t end, void *context) {
  const correlation *c = context;
  const laci_unfold *u = c->unfold;
  const laci_unfold_axis *y = &u->axis[1], *x = &u->axis[2];
  const int64_t across = 2 * x->kernel - 1, of_one = c->tiles * c->tiles;
  const int64_t first = c->half ? 0 : 1 - y->kernel;
  displaced_tile p;
  for (int64_t at = begin; at < end; at++) {
    const int64_t d = at / of_one, tile = at % of_one;
    p.ey = first + d / across;
    p.ex = 1 - x->kernel + d % across;
    p.dy = p.ey * y->dilation;
    p.dx = p.ex * x->dilation;
    p.i = tile / c->tiles * TILE;
    p.j = tile % c->tiles * TILE;
    if (c->half && p.ey == 0 && (p.ex < 0 || (p.ex == 0 && p.j < p.i))) continue;
    p.m = (int)laci_min(TILE, u->channels - p.i);
    p.n = (int)laci_min(TILE, u->channels - p.j);
    sum_whole_images(c, &p);
    subtract_border_rows(c, &p);
    subtract_border_columns(c, &p);
    add_border_corners(c, &p);
  }
}

/* ---- Blocks of images ---- */

static void sum_image_block(correlation *c, laci_pool *pool) {
  const laci_unfold_axis *y = &c->unfold->axis[1], *x = &c->unfold->axis[2];
  const int64_t rows = c->half ? y->kernel : 2 * y->kernel - 1;
  laci_pool_for(pool, rows * (2 * x->kernel - 1) * c->tiles * c->tiles, 1, sum_displaced_tiles, c);
}

static void copy_images_to_layout(const correlation *c, filling *f, const float *value, float *to,
                                  laci_pool *pool) {
  f->value = value;
  f->to = to;
  f->n = c->n;
  laci_pool_for(pool, c->unfold->channels, 1, copy_channels_with_zeros, f);
}

void laci_gram_correlate(const laci_gram *gram, laci_pool *pool) {
  const laci_unfold *u = gram->unfold;
  const layout l = make_padded_layout(u);
  const int64_t columns = laci_unfold_n_columns(u);
  const int64_t image = u->groups * u->channels * u->axis[1].in * u->axis[2].in;
  float *pruned = gram->scratch, *dense = pruned + u->channels * l.channel;
  correlation c = {.unfold = u, .l = &l, .right = pruned, .kernel = laci_dots_variant()};
  filling f = {.unfold = u, .l = &l};
  c.tiles = laci_ceil_div(u->channels, TILE);
  for (f.group = 0; f.group < u->groups; f.group++) {
    for (int64_t first = 0; first < u->images; first += l.images) {
      c.n = laci_min(l.images, u->images - first);
      copy_images_to_layout(&c, &f, gram->pruned + first * image, pruned, pool);
      c.left = pruned;
      c.out = gram->h + f.group * columns * columns;
      c.half = true;
      sum_image_block(&c, pool);
      if (!gram->dense) continue;
      copy_images_to_layout(&c, &f, gram->dense + first * image, dense, pool);
      c.left = dense;
      c.out = gram->k + f.group * columns * columns;
      c.half = false;
      sum_image_block(&c, pool);
    }
  }
}
