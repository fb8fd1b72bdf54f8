/* SPDX-License-Identifier: Apache-2.0
 * The reference of reorder.h: it copies one value at a time. */
#include "kernel/sparse/reorder.h"

enum { LANES = LACI_SPARSE_LANES };

/* The position of one value of a tensor. */
typedef struct place {
  int64_t image, channel, y, x;
} place;

static int64_t offset_of_place(const laci_sparse_layout *l, place p) {
  const int64_t at = laci_sparse_offset(l, p.channel, p.y, p.x);
  if (l->format != LACI_FORMAT_HWC16N) return p.image * l->n_floats + at;
  return p.image / LANES * l->n_floats + at + p.image % LANES;
}

static float normalize(const laci_sparse_norm *n, int64_t channel, float x) {
  if (!n->scale) return x;
  const float product = n->scale[channel] * x, y = product + n->shift[channel];
  return y < n->low ? n->low : y;
}

void laci_sparse_reorder_scalar(const laci_sparse_reorder *r, const float *from, float *to,
                                int64_t first, int64_t last) {
  const laci_sparse_size *s = &r->size;
  const int64_t n_items = laci_sparse_reorder_n_items(r);
  const int64_t n_border = laci_sparse_border_n_items(&r->to, s);
  const int64_t n_lanes = r->to.format == LACI_FORMAT_HWC16N ? LANES : 1;
  const int64_t n_images = (s->n_images + n_lanes - 1) / n_lanes * n_lanes;
  const int64_t n_rows = n_images * s->channels * s->h;
  for (int64_t at = n_rows * first / n_items; at < n_rows * last / n_items; at++) {
    place p = {
        .image = at / s->h / s->channels, .channel = at / s->h % s->channels, .y = at % s->h};
    for (; p.x < s->w; p.x++) {
      const place source = {p.image, p.channel, p.y * r->stride_h, p.x * r->stride_w};
      to[offset_of_place(&r->to, p)] =
          p.image < s->n_images
              ? normalize(&r->norm, p.channel, from[offset_of_place(&r->from, source)])
              : 0;
    }
  }
  laci_sparse_fill_border(&r->to, s, 0, to, n_border * first / n_items, n_border * last / n_items);
}
