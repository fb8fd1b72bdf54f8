/* SPDX-License-Identifier: Apache-2.0
 * The reference of vector.h: it goes row by row, column by column. */
#include <math.h>
#include <string.h>

#include "kernel/sparse/vector.h"
#include "tensor/bf16.h"

/* How far a row of the packed matrix has been read. */
typedef struct reader {
  const laci_sparse_rows *w;
  const uint8_t *mask, *value;
  int64_t row;
} reader;

static int64_t count_columns(const laci_sparse_rows *w) {
  return (w->n_columns + LACI_SPARSE_MASK - 1) / LACI_SPARSE_MASK * LACI_SPARSE_MASK;
}

static void start_chunk(reader *r, int64_t column) {
  const int64_t each = (r->w->n_columns + LACI_SPARSE_ROWS_CHUNK - 1) / LACI_SPARSE_ROWS_CHUNK;
  const int64_t left = count_columns(r->w) - column;
  r->mask = r->w->bytes + r->w->chunk_at[r->row * each + column / LACI_SPARSE_ROWS_CHUNK];
  r->value = r->mask + (left < LACI_SPARSE_ROWS_CHUNK ? left : LACI_SPARSE_ROWS_CHUNK) / 8;
}

/* Returns the weight of the next column; +0 if it is not kept. */
static float next_weight(reader *r, int64_t column) {
  if (column % LACI_SPARSE_ROWS_CHUNK == 0) start_chunk(r, column);
  const int64_t at = column % LACI_SPARSE_ROWS_CHUNK;
  float weight = 0;
  uint16_t half;
  if (!(r->mask[at / 8] >> at % 8 & 1)) return 0;
  switch (r->w->values) {
    case LACI_SPARSE_F32:
      memcpy(&weight, r->value, sizeof weight);
      r->value += sizeof weight;
      break;
    case LACI_SPARSE_BF16:
      memcpy(&half, r->value, sizeof half);
      r->value += sizeof half;
      weight = laci_bf16_value(half);
      break;
    case LACI_SPARSE_S8: weight = (float)(int8_t)*r->value++; break;
  }
  return weight;
}

static float sum_row_of_floats(reader r, const float *x) {
  float sum[LACI_SPARSE_ROWS_SUMS] = {0};
  for (int64_t k = 0; k < count_columns(r.w); k++) {
    const float weight = next_weight(&r, k), value = k < r.w->n_columns ? x[k] : 0;
    sum[k % LACI_SPARSE_ROWS_SUMS] = fmaf(weight, value, sum[k % LACI_SPARSE_ROWS_SUMS]);
  }
  for (int half = LACI_SPARSE_ROWS_SUMS / 2; half > 0; half /= 2) {
    for (int lane = 0; lane < half; lane++) sum[lane] += sum[lane + half];
  }
  return sum[0];
}

static int32_t sum_row_of_bytes(reader r, const uint8_t *x) {
  int32_t sum = 0;
  for (int64_t k = 0; k < r.w->n_columns; k++) sum += (int32_t)next_weight(&r, k) * x[k];
  return sum;
}

static float compute_row_sum(const laci_sparse_rows *w, const laci_sparse_vectors *v, int64_t row,
                             int vector) {
  const reader r = {.w = w, .row = row};
  const int64_t at = vector * v->x_stride;
  if (w->values != LACI_SPARSE_S8) return sum_row_of_floats(r, (const float *)v->x + at);
  const int32_t sum = sum_row_of_bytes(r, (const uint8_t *)v->x + at);
  return v->scale[row] * (float)(sum - v->x_zero * w->row_sum[row]);
}

void laci_sparse_rows_multiply_scalar(const laci_sparse_rows *w, const laci_sparse_vectors *v,
                                      int64_t first, int64_t last) {
  const int64_t places = laci_sparse_rows_n_places(w);
  for (int64_t place = first; place < last; place++) {
    for (int64_t row = place; row < w->n_rows; row += places) {
      for (int vector = 0; vector < v->n_x; vector++) {
        const float bias = v->bias ? v->bias[row] : 0;
        v->y[vector * v->y_stride + row] = bias + compute_row_sum(w, v, row, vector);
      }
    }
  }
}
