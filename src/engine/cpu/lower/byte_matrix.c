/* SPDX-License-Identifier: Apache-2.0
 * Stores constant matrices of integers as kernel/linear/byte_product.h reads them.
 *
 * Integers are bytes minus a zero point, from -255 to 255. Those of a column differ by 255 at most.
 * So they are signed bytes plus one offset, which is 0 where they are signed bytes. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "cpu/cpu.h"
#include "cpu/pool.h"
#include "engine/cpu/lower/integer_product.h"
#include "kernel/sparse/byte_pairs.h"

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

enum { LISTS = 4 };

/** Returns how many columns the blocks of a matrix have. */
static size_t padded_columns(const laci_integer_matrix *source) {
  return (size_t)laci_byte_blocks(source->columns) * LACI_BYTE_COLUMNS;
}

static size_t bytes_of_lists(const laci_integer_matrix *source) {
  return LISTS * padded_columns(source) * sizeof(float);
}

/** Returns the matrix whose bytes are at w, and whose lists are at `lists`. */
static laci_byte_matrix place_matrix(const laci_integer_matrix *source, int8_t *w, void *lists) {
  const size_t n = padded_columns(source);
  float *scale = lists;
  return (laci_byte_matrix){.depth = source->depth,
                            .columns = source->columns,
                            .w = w,
                            .sums = (int32_t *)lists + 2 * n,
                            .offsets = (int32_t *)lists + 3 * n,
                            .scale = scale,
                            .bias = scale + n};
}

/** Fills the bytes of a matrix, at w, and its lists. All are zeros before. */
static void fill_matrix(laci_net *net, const laci_integer_matrix *source, int8_t *w, void *lists) {
  const size_t n = padded_columns(source);
  float *scale = lists;
  packing p = {source, w, (int32_t *)lists + 2 * n, (int32_t *)lists + 3 * n};
  fill_scales(source, scale, scale + n);
  laci_pool_for(net->pool, laci_byte_blocks(source->columns), 1, pack_column_blocks, &p);
}

static int store_matrix(laci_net *net, const laci_integer_matrix *source, int value,
                        laci_byte_matrix *matrix) {
  const size_t bytes = laci_byte_matrix_bytes(source->depth, source->columns);
  const int tensor = laci_net_weight_new(net, bytes + bytes_of_lists(source), value);
  if (tensor < 0) return -1;
  int8_t *memory = net->buffers[net->tensors[tensor].buffer].data;
  fill_matrix(net, source, memory, memory + bytes);
  *matrix = place_matrix(source, memory, memory + bytes);
  return tensor;
}

/** Stores the arranged bytes of the matrix at `passing`, and its lists, which follow these. */
static int store_arranged_bytes(laci_net *net, const laci_integer_matrix *source, int value,
                                int8_t *passing, laci_byte_matrix *matrix) {
  int8_t *lists = passing + laci_byte_matrix_bytes(source->depth, source->columns);
  laci_byte_pairs_weights *pairs = laci_plan_alloc(&net->plan, 1, sizeof *pairs);
  lac_error err = {0};
  fill_matrix(net, source, passing, lists);
  *matrix = place_matrix(source, passing, lists);
  if (!pairs) return -1;
  const lac_status st = laci_byte_matrix_arrange(matrix, pairs, &err);
  if (st) {
    laci_plan_fail(&net->plan, st, "%s", err.text);
    return -1;
  }
  const int tensor = laci_net_weight_new(net, pairs->bytes + bytes_of_lists(source), value);
  int8_t *memory = tensor < 0 ? NULL : net->buffers[net->tensors[tensor].buffer].data;
  if (!memory) {
    laci_byte_pairs_clear(pairs);
    return -1;
  }
  memcpy(memory + pairs->bytes, lists, bytes_of_lists(source));
  *matrix = place_matrix(source, NULL, memory + pairs->bytes);
  laci_byte_pairs_move(pairs, memory);
  matrix->pairs = pairs;
  return tensor;
}

/** Stores the matrix arranged for AVX2. */
static int store_arranged_matrix(laci_net *net, const laci_integer_matrix *source, int value,
                                 laci_byte_matrix *matrix) {
  const size_t bytes = laci_byte_matrix_bytes(source->depth, source->columns);
  int8_t *passing = laci_alloc(bytes + bytes_of_lists(source), 1);
  if (!passing) laci_plan_fail_no_memory(&net->plan);
  const int tensor = passing ? store_arranged_bytes(net, source, value, passing, matrix) : -1;
  laci_free(passing);
  return tensor;
}

int laci_net_store_byte_matrix(laci_net *net, const laci_integer_matrix *source, int value,
                               laci_byte_matrix *matrix) {
  const int tensor = laci_cpu_level_in_force() == LACI_CPU_AVX2
                         ? store_arranged_matrix(net, source, value, matrix)
                         : store_matrix(net, source, value, matrix);
  if (tensor >= 0 && !has_nonzero_offset(matrix->offsets, source->columns)) matrix->offsets = NULL;
  return tensor;
}
