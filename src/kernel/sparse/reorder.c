/* SPDX-License-Identifier: Apache-2.0
 * Chooses the variant of reorder.h, and divides the work (reorder_in.h). */
#include <stddef.h>

#include "base/divide.h"
#include "cpu/cpu.h"
#include "kernel/sparse/reorder_in.h"

enum { LANES = LACI_SPARSE_LANES, CHUNK = LACI_SPARSE_CHUNK };

static laci_sparse_reorder_run *const of_level[] = {
#define VARIANT(name, level) [level] = laci_sparse_reorder_##name,
    LACI_KERNEL_VARIANTS(VARIANT)
#undef VARIANT
};

laci_sparse_reorder_run *laci_sparse_reorder_now(void) { return of_level[laci_cpu()]; }

/* Places as rows of pixels: [phase][row][column], of which not all are of the picture. */
typedef struct grid {
  bool is_target;
  int64_t n_places, phase_stride, row_stride;
  int64_t n_phases, phases_h, phases_w, top, left;
} grid;

static grid grid_of(const laci_sparse_reorder *r) {
  const bool is_target = laci_sparse_has_pixels(&r->to) || !laci_sparse_has_pixels(&r->from);
  const laci_sparse_layout *l = is_target ? &r->to : &r->from;
  grid g = {is_target, 0, 0, l->row_stride, 1, 1, 1, 0, 0};
  if (l->lanes == LACI_SPARSE_PLANES) {
    g = (grid){
        is_target,   l->channel_stride, l->phase_stride, l->row_stride, l->phases_h * l->phases_w,
        l->phases_h, l->phases_w,       l->top,          l->left};
  } else if (l->lanes == LACI_SPARSE_PANELS) {
    g.n_places = g.phase_stride = l->n_floats / r->size.channels;
  } else {
    g.row_stride = r->size.w;
    g.n_places = g.phase_stride = r->size.h * r->size.w;
  }
  return g;
}

/* A row of a layout, for many pixels of it. */
typedef struct row {
  const laci_sparse_layout *layout;
  int64_t y, at; /* of pixel 0; in panels its place */
} row;

static row row_of(const laci_sparse_layout *l, int64_t y) {
  const bool panels = l->lanes == LACI_SPARSE_PANELS;
  return (row){l, y, panels ? (y + l->top) * l->row_stride + l->left : laci_sparse_at(l, 0, y, 0)};
}

static int64_t pixel_of(const row *r, int64_t x) {
  if (r->layout->lanes == LACI_SPARSE_PANELS) {
    const uint64_t place = (uint64_t)(r->at + x), lane = place % LANES;
    return (int64_t)(place - lane) * r->layout->pixel_stride + (int64_t)lane;
  }
  if (r->layout->phases_w > 1) return laci_sparse_at(r->layout, 0, r->y, x);
  return r->at + x * r->layout->pixel_stride;
}

/* Places [first, last) of the item, neighbours in a row of the grid; the first one's pixel is at
 * y, x, the next is `step` further. */
typedef struct piece {
  int64_t first, last, y, x, step;
} piece;

static void look_up(const laci_sparse_reorder *r, bool is_target, const piece *p,
                    laci_sparse_item *item) {
  /* Of the target, y and x, and how far apart in `x` its pixels are. */
  const int64_t each_h = is_target ? 1 : r->stride_h, each_w = is_target ? 1 : r->stride_w;
  const int64_t y = p->y / each_h;
  int64_t x = p->x;
  if (p->y < 0 || p->y % each_h || y >= r->size.h) return;
  row from = row_of(&r->from, y * r->stride_h), to = row_of(&r->to, y);
  row *own = is_target ? &to : &from;
  if (laci_sparse_has_pixels(own->layout)) own->layout = NULL; /* its vectors need no looking up */
  for (int64_t at = p->first; at < p->last; at++, x += p->step) {
    if (x < 0 || x >= r->size.w * each_w || (each_w > 1 && x % each_w)) continue;
    const int64_t of_target = each_w > 1 ? x / each_w : x;
    item->from[at] = from.layout ? pixel_of(&from, of_target * r->stride_w) : 0;
    item->to[at] = to.layout ? pixel_of(&to, of_target) : 0;
  }
}

static void look_up_all(const laci_sparse_reorder *r, const grid *g, laci_sparse_item *item) {
  for (int64_t at = 0; at < item->n_places;) {
    const int64_t place = item->place + at, phase = place / g->phase_stride;
    const int64_t in_phase = place % g->phase_stride;
    const int64_t in_row = in_phase % g->row_stride;
    int64_t n = g->row_stride - in_row;
    if (n > g->phase_stride - in_phase) n = g->phase_stride - in_phase;
    if (n > item->n_places - at) n = item->n_places - at;
    piece p = {.first = at, .last = at + n, .y = -1, .step = g->phases_w};
    if (phase < g->n_phases) {
      p.y = in_phase / g->row_stride * g->phases_h + phase / g->phases_w - g->top;
      p.x = in_row * g->phases_w + phase % g->phases_w - g->left;
    }
    look_up(r, g->is_target, &p, item);
    at += n;
  }
}

static int64_t images_each(const laci_sparse_reorder *r) {
  return r->from.lanes == LACI_SPARSE_IMAGES || r->to.lanes == LACI_SPARSE_IMAGES ? LANES : 1;
}

int64_t laci_sparse_reorder_items(const laci_sparse_reorder *r) {
  return laci_ceil_div(r->size.n_images, images_each(r)) * laci_ceil_div(r->size.channels, CHUNK) *
         laci_ceil_div(grid_of(r).n_places, CHUNK);
}

static int64_t chunk_of(int64_t first, int64_t n, int64_t most) {
  return n - first < most ? n - first : most;
}

void laci_sparse_item_of(const laci_sparse_reorder *r, int64_t index, laci_sparse_item *item) {
  const grid g = grid_of(r);
  const int64_t images = images_each(r), n_chunks = laci_ceil_div(g.n_places, CHUNK);
  const int64_t n_slices = laci_ceil_div(r->size.channels, CHUNK);
  item->place = index % n_chunks * CHUNK;
  item->channel = index / n_chunks % n_slices * CHUNK;
  item->image = index / n_chunks / n_slices * images;
  item->n_places = chunk_of(item->place, g.n_places, CHUNK);
  item->n_channels = chunk_of(item->channel, r->size.channels, CHUNK);
  item->n_images = chunk_of(item->image, r->size.n_images, images);
  for (int64_t at = 0; at < CHUNK; at++) item->from[at] = item->to[at] = -1;
  look_up_all(r, &g, item);
}
