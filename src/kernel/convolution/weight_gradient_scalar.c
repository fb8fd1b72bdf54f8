/* SPDX-License-Identifier: Apache-2.0
 * The reference of weight_gradient.h: sums in double, one after the other. Points are rounded to
 * bf16 before they are multiplied. */
#include "kernel/convolution/weight_gradient.h"
#include "tensor/bf16.h"

enum { BLOCK = LACI_GRADIENT_BLOCK };

static double round_to_bf16(float x) { return (double)laci_bf16_value(laci_bf16_round(x)); }

/** A row of one channel; reads outside of the row give zeros. */
typedef struct line {
  const uint16_t *pixels; /* the channel's first element in its block */
  int64_t width;
} line;

static float pixel_at(const line *l, int64_t column) {
  return column < 0 || column >= l->width ? 0 : laci_bf16_value(l->pixels[column * BLOCK]);
}

static double sum_row_products_of_tap(const laci_weight_gradient *g, const line *x, const line *dy,
                                      int64_t place) {
  double sum = 0;
  for (int64_t column = 0; column < dy->width; column++) {
    int64_t from = column * g->stride_w + place - g->pad_left;
    sum += (double)pixel_at(x, from) * (double)pixel_at(dy, column);
  }
  return sum;
}

static double sum_row_products_of_point(const laci_weight_gradient *g, const line *x,
                                        const line *dy, int64_t point) {
  double sum = 0;
  for (int64_t column = 0; column < dy->width; column += LACI_WINOGRAD_OUT) {
    int64_t from = column - g->pad_left;
    float d0 = pixel_at(x, from), d1 = pixel_at(x, from + 1), d2 = pixel_at(x, from + 2),
          d3 = pixel_at(x, from + 3);
    float y0 = pixel_at(dy, column), y1 = pixel_at(dy, column + 1);
    const float in[LACI_WINOGRAD_POINTS] = {d0 - d2, d1 + d2, d2 - d1, d1 - d3};
    const float out[LACI_WINOGRAD_POINTS] = {y0, y0 + y1, y0 - y1, -y1};
    sum += round_to_bf16(in[point]) * round_to_bf16(out[point]);
  }
  return sum;
}

typedef struct channels {
  int64_t k, c;
} channels;

static double sum_image_products(const laci_weight_gradient *g, const channels *ch, int64_t which,
                                 const uint16_t *x, const uint16_t *dy) {
  int64_t places = laci_weight_gradient_n_sums(g) / g->kernel_h;
  double sum = 0;
  for (int64_t row = 0; row < g->out_h; row++) {
    int64_t in_row = row * g->stride_h + which / places - g->pad_top;
    if (in_row < 0 || in_row >= g->h) continue;
    const line in = {x + (ch->c / BLOCK * g->h + in_row) * g->w * BLOCK + ch->c % BLOCK, g->w};
    const line out = {dy + (ch->k / BLOCK * g->out_h + row) * g->out_w * BLOCK + ch->k % BLOCK,
                      g->out_w};
    if (g->winograd) sum += sum_row_products_of_point(g, &in, &out, which % places);
    else sum += sum_row_products_of_tap(g, &in, &out, which % places);
  }
  return sum;
}

void laci_weight_sums_scalar(const laci_weight_gradient *g, const laci_weight_gradient_part *part) {
  int64_t x_image = g->c_blocks * BLOCK * g->h * g->w;
  int64_t dy_image = g->k_blocks * BLOCK * g->out_h * g->out_w;
  int64_t n_sums = laci_weight_gradient_n_sums(g);
  for (int64_t k = part->k_first * BLOCK; k < part->k_last * BLOCK; k++) {
    for (int64_t c = part->c_first * BLOCK; c < part->c_last * BLOCK; c++) {
      for (int64_t which = 0; which < n_sums; which++) {
        const channels ch = {k, c};
        double sum = 0;
        for (int64_t n = part->n_first; n < part->n_last; n++) {
          sum += sum_image_products(g, &ch, which, part->x + n * x_image, part->dy + n * dy_image);
        }
        int64_t tile = (k / BLOCK * g->c_blocks + c / BLOCK) * n_sums + which;
        part->sums[tile * LACI_GRADIENT_TILE + c % BLOCK * BLOCK + k % BLOCK] = (float)sum;
      }
    }
  }
}
