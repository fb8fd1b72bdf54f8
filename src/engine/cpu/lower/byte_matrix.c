/* SPDX-License-Identifier: Apache-2.0
 * Stores constant matrices of integers as kernel/linear/byte_product.h reads them.
 *
 * Integers are bytes minus a zero point, from -255 to 255. Those of a column differ by 255 at most.
 * So they are signed bytes plus one offset, which is 0 where they are signed bytes. */
#include <math.h>

#include "cpu/pool.h"
#include "engine/cpu/lower/integer_product.h"

typedef struct packing {
  const laci_integer_matrix *source;
  int8_t *w;
  int32_t *sums, *offsets;
} packing;

enum { COLUMNS = LACI_BYTE_COLUMNS };

/** Reads the 16 integers of row k from column `first` on; 0 where there is no column. */
static void read_integers_of_row(const laci_integer_matrix *s, int64_t k, int64_t first,
                                 float integers[COLUMNS]) {
  const float *w = s->w + k * s->k_stride + first * s->column_stride;
  const int64_t n = s->columns - first < COLUMNS ? s->columns - first : COLUMNS;
  for (int64_t c = 0; c < COLUMNS; c++) integers[c] = c < n ? w[c * s->column_stride] : 0;
  for (int64_t c = 0; c < n && s->w_scale; c++)
    integers[c] = rintf(integers[c] / s->w_scale[s->n_w_scales == 1 ? 0 : first + c]);
}

/** Writes the offset of each column: 0 where its integers are signed bytes. */
static void find_column_offsets(const laci_integer_matrix *s, int64_t first,
                                int32_t offsets[COLUMNS]) {
  float low[COLUMNS] = {0}, high[COLUMNS] = {0}, row[COLUMNS];
  for (int64_t k = 0; k < s->depth; k++) {
    read_integers_of_row(s, k, first, row);
    for (int c = 0; c < COLUMNS; c++) {
      low[c] = row[c] < low[c] ? row[c] : low[c];
      high[c] = row[c] > high[c] ? row[c] : high[c];
    }
  }
  for (int c = 0; c < COLUMNS; c++) {
    const int32_t least = (int32_t)low[c], most = (int32_t)high[c];
    offsets[c] = least < INT8_MIN ? least - INT8_MIN : most > INT8_MAX ? most - INT8_MAX : 0;
  }
}

static void pack_column_block(const packing *p, int64_t block) {
  const laci_integer_matrix *s = p->source;
  const int64_t first = block * COLUMNS;
  int8_t *to = p->w + block * laci_byte_block_bytes(s->depth);
  int32_t *sums = p->sums + first, *offsets = p->offsets + first;
  float row[COLUMNS];
  find_column_offsets(s, first, offsets);
  for (int64_t k = 0; k < s->depth; k++) {
    read_integers_of_row(s, k, first, row);
    for (int c = 0; c < COLUMNS; c++) {
      const int32_t byte = (int32_t)row[c] - offsets[c];
      to[laci_byte_index(k, c)] = (int8_t)byte;
      sums[c] += byte;
    }
  }
}

static void pack_column_blocks(int64_t begin, int64_t end, void *context) {
  for (int64_t block = begin; block < end; block++) pack_column_block(context, block);
}

static float element_or_one(const float *list, int64_t n, int64_t at) {
  return list ? list[n == 1 ? 0 : at] : 1;
}

static void fill_scales(const laci_integer_matrix *s, float *scale, float *bias) {
  for (int64_t column = 0; column < s->columns; column++) {
    scale[column] = element_or_one(s->w_scale, s->n_w_scales, column) *
                    element_or_one(s->scale, s->n_scales, column) *
                    element_or_one(s->factor, s->columns, column);
    bias[column] = s->shift ? s->shift[column] : 0;
  }
}

static bool has_nonzero_offset(const int32_t *offsets, int64_t n) {
  for (int64_t at = 0; at < n; at++) {
    if (offsets[at] != 0) return true;
  }
  return false;
}

int laci_net_store_byte_matrix(laci_net *net, const laci_integer_matrix *source, int value,
                               laci_byte_matrix *matrix) {
  enum { LISTS = 4 };
  const size_t n = (size_t)laci_byte_blocks(source->columns) * LACI_BYTE_COLUMNS;
  const size_t bytes = laci_byte_matrix_bytes(source->depth, source->columns);
  const int tensor = laci_net_weight_new(net, bytes + LISTS * n * sizeof(float), value);
  if (tensor < 0) return -1;
  int8_t *memory = net->buffers[net->tensors[tensor].buffer].data;
  float *scale = (float *)(void *)(memory + bytes);
  packing p = {.source = source,
               .w = memory,
               .sums = (int32_t *)(void *)(scale + 2 * n),
               .offsets = (int32_t *)(void *)(scale + 3 * n)};
  fill_scales(source, scale, scale + n);
  laci_pool_for(net->pool, laci_byte_blocks(source->columns), 1, pack_column_blocks, &p);
  *matrix = (laci_byte_matrix){
      .depth = source->depth,
      .columns = source->columns,
      .w = memory,
      .sums = p.sums,
      .offsets = has_nonzero_offset(p.offsets, source->columns) ? p.offsets : NULL,
      .scale = scale,
      .bias = scale + n};
  return tensor;
}
