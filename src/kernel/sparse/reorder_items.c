/* SPDX-License-Identifier: Apache-2.0
 * Divides the work of reorder.h into items, and finds the offsets of an item's pixels
 * (reorder_in.h). */
#include <stddef.h>

#include "base/divide.h"
#include "kernel/sparse/reorder_in.h"

enum { LANES = LACI_SPARSE_LANES, CHUNK = LACI_SPARSE_CHUNK };

/* How the places of an item (reorder_in.h) map to rows of pixels: [phase][row][column]. Not all of
 * them are pixels of the image. */
typedef struct grid {
  bool is_target;
  int64_t n_places, phase_stride, row_stride;
  int64_t n_phases, phases_h, phases_w, top, left;
} grid;

static grid choose_place_grid(const laci_sparse_reorder *r) {
  const bool is_target =
      laci_sparse_lanes_are_pixels(&r->to) || !laci_sparse_lanes_are_pixels(&r->from);
  const laci_sparse_layout *l = is_target ? &r->to : &r->from;
  grid g = {is_target, 0, 0, l->row_stride, 1, 1, 1, 0, 0};
  if (l->format == LACI_FORMAT_CHW) {
    g = (grid){
        is_target,   l->channel_stride, l->phase_stride, l->row_stride, l->phases_h * l->phases_w,
        l->phases_h, l->phases_w,       l->top,          l->left};
  } else if (l->format == LACI_FORMAT_PC16P) {
    g.n_places = g.phase_stride = l->n_floats / r->size.channels;
  } else {
    g.row_stride = r->size.w;
    g.n_places = g.phase_stride = r->size.h * r->size.w;
  }
  return g;
}

/* A run of n pixels in row y, `step` apart, beginning at column x. list_pixel_offsets writes their
 * offsets to every hop-th element of an array. Without a layout it writes zeros. */
typedef struct run {
  int64_t y, x, step, n, hop;
} run;

static void list_pixel_offsets(const laci_sparse_layout *l, const run *r, int64_t *to) {
  if (!l) {
    for (int64_t at = 0; at < r->n; at++) to[at * r->hop] = 0;
  } else if (l->format == LACI_FORMAT_PC16P) {
    uint64_t place = (uint64_t)((r->y + l->top) * l->row_stride + r->x + l->left);
    for (int64_t at = 0; at < r->n; at++, place += (uint64_t)r->step) {
      const uint64_t lane = place % LANES;
      to[at * r->hop] = (int64_t)(place - lane) * l->pixel_stride + (int64_t)lane;
    }
  } else if (l->phases_w > 1) {
    for (int64_t at = 0; at < r->n; at++) {
      to[at * r->hop] = laci_sparse_offset(l, 0, r->y, r->x + at * r->step);
    }
  } else {
    const int64_t first = laci_sparse_offset(l, 0, r->y, r->x), step = r->step * l->pixel_stride;
    for (int64_t at = 0; at < r->n; at++) to[at * r->hop] = first + at * step;
  }
}

/* Returns a / b, rounded up. Most divisors are 1, and a division takes as long as several
 * pixels. */
static int64_t ceil_divide(int64_t a, int64_t b) { return b == 1 ? a : laci_ceil_div(a, b); }

/* Lists the offsets in source and target of p->n pixels, which are neighbours in a row of the grid.
 * They are written to the item's arrays from position `at` on. p gives the first pixel: in
 * coordinates of the target if in_target_grid, else of the source. */
static void list_pixel_pairs(const laci_sparse_reorder *r, bool in_target_grid, const run *p,
                             int64_t at, laci_sparse_item *item) {
  const int64_t each_h = in_target_grid ? 1 : r->stride_h,
                each_w = in_target_grid ? 1 : r->stride_w;
  int64_t skip = p->x < 0 ? ceil_divide(-p->x, p->step) : 0, hop = 1;
  if (p->y < 0 || (each_h > 1 && p->y % each_h) || p->y >= r->size.h * each_h) return;
  while (each_w > 1 && skip < p->n && (p->x + skip * p->step) % each_w) skip++;
  while (each_w > 1 && hop * p->step % each_w) hop++;
  const int64_t x = p->x + skip * p->step;
  int64_t n = ceil_divide(r->size.w * each_w - x, hop * p->step);
  if (n > ceil_divide(p->n - skip, hop)) n = ceil_divide(p->n - skip, hop);
  if (n <= 0) return;
  const run to = {ceil_divide(p->y, each_h), ceil_divide(x, each_w),
                  ceil_divide(hop * p->step, each_w), n, hop};
  const run from = {to.y * r->stride_h, to.x * r->stride_w, to.step * r->stride_w, n, hop};
  /* in layouts whose vectors are pixels, offsets follow from the place, and need no array */
  const bool own = laci_sparse_lanes_are_pixels(in_target_grid ? &r->to : &r->from);
  list_pixel_offsets(own && !in_target_grid ? NULL : &r->from, &from, item->from + at + skip);
  list_pixel_offsets(own && in_target_grid ? NULL : &r->to, &to, item->to + at + skip);
}

static void list_all_pixel_pairs(const laci_sparse_reorder *r, const grid *g,
                                 laci_sparse_item *item) {
  for (int64_t at = 0; at < item->n_places;) {
    const int64_t place = item->place + at, phase = place / g->phase_stride;
    const int64_t in_phase = place % g->phase_stride;
    const int64_t in_row = in_phase % g->row_stride;
    int64_t n = g->row_stride - in_row;
    if (n > g->phase_stride - in_phase) n = g->phase_stride - in_phase;
    if (n > item->n_places - at) n = item->n_places - at;
    run p = {.y = -1, .step = g->phases_w, .n = n};
    if (phase < g->n_phases) {
      p.y = in_phase / g->row_stride * g->phases_h + phase / g->phases_w - g->top;
      p.x = in_row * g->phases_w + phase % g->phases_w - g->left;
    }
    list_pixel_pairs(r, g->is_target, &p, at, item);
    at += n;
  }
}

static int64_t images_per_item(const laci_sparse_reorder *r) {
  return r->from.format == LACI_FORMAT_HWC16N || r->to.format == LACI_FORMAT_HWC16N ? LANES : 1;
}

int64_t laci_sparse_reorder_n_items(const laci_sparse_reorder *r) {
  return laci_ceil_div(r->size.n_images, images_per_item(r)) *
         laci_ceil_div(r->size.channels, CHUNK) *
         laci_ceil_div(choose_place_grid(r).n_places, CHUNK);
}

static int64_t length_of_chunk(int64_t first, int64_t n, int64_t most) {
  return n - first < most ? n - first : most;
}

void laci_sparse_describe_item(const laci_sparse_reorder *r, int64_t index,
                               laci_sparse_item *item) {
  const grid g = choose_place_grid(r);
  const int64_t images = images_per_item(r), n_chunks = laci_ceil_div(g.n_places, CHUNK);
  const int64_t n_slices = laci_ceil_div(r->size.channels, CHUNK);
  item->place = index % n_chunks * CHUNK;
  item->channel = index / n_chunks % n_slices * CHUNK;
  item->image = index / n_chunks / n_slices * images;
  item->n_places = length_of_chunk(item->place, g.n_places, CHUNK);
  item->n_channels = length_of_chunk(item->channel, r->size.channels, CHUNK);
  item->n_images = length_of_chunk(item->image, r->size.n_images, images);
  for (int64_t at = 0; at < CHUNK; at++) item->from[at] = item->to[at] = -1;
  list_all_pixel_pairs(r, &g, item);
}
