/* SPDX-License-Identifier: Apache-2.0
 * Reads the kept weights of a layer from their packed rows. A row of the product is made of one
 * packed row for each tap of the window, whose columns are merged into the product's order.
 *
 * Each thread reads and merges some rows of the product. These have places for as many elements as
 * are packed. Where some of the packed elements are zeros, the gaps are closed at the end. */
#include <stdatomic.h>

#include "base/memory.h"
#include "engine/cpu/lower/product.h"
#include "sparse/pack.h"
#include "engine/cpu/native/layer.h"
#include "engine/cpu/native/algorithms/algorithms.h"
#include "cpu/pool.h"

/* Number of channels in a block, whose taps are neighbours in the product's columns (window.h,
 * "Columns"). */
enum { BLOCK = 4 };

typedef struct merging {
  const laci_engine_weight *known;
  const laci_net_weight *weight; /* the factors by which the weight's rows are multiplied */
  int64_t taps, rows_together, length;
  laci_sparse_kept_weights *kept;
  int64_t *n; /* [rows] number of weights of each row that are kept */
  atomic_int failed;
} merging;

/** A thread's memory for some rows of the product while their packed rows are merged. */
typedef struct packed_rows {
  float *values;
  uint32_t *index;
  int32_t *column; /* [taps][row_values] columns of the packed rows for one row of the product */
  int64_t *next;   /* [taps] index of the next element of each packed row */
} packed_rows;

static void free_packed_rows(packed_rows *rows) {
  laci_free(rows->values);
  laci_free(rows->index);
  laci_free(rows->column);
  laci_free(rows->next);
}

static lac_status read_packed_rows(const merging *m, int64_t first, int64_t n, packed_rows *rows) {
  const laci_packing *p = m->known->packing;
  const size_t values = (size_t)p->row_values, taps = (size_t)m->taps, some = (size_t)n * taps;
  lac_error ignored;
  *rows = (packed_rows){.values = laci_alloc(some * values, sizeof *rows->values),
                        .index = laci_alloc(some * (size_t)p->index_words, sizeof *rows->index),
                        .column = laci_alloc(taps * values, sizeof *rows->column),
                        .next = laci_alloc(taps, sizeof *rows->next)};
  if (!rows->values || !rows->index || !rows->column || !rows->next) return LAC_NO_MEMORY;
  const laci_packed to = {.values = (uint8_t *)rows->values, .index = rows->index};
  return m->known->rows(m->known->rows_context, first * m->taps, n * m->taps, &to, &ignored);
}

/** Merges the packed rows of all taps into one row of the product. `values` and rows->column begin
 * at the first of these packed rows. */
static void merge_taps_of_row(const merging *m, int64_t row, const float *values,
                              packed_rows *rows) {
  const laci_packing *p = m->known->packing;
  const float factor = m->weight->factor, *scale = m->weight->scale;
  const int64_t first_column = row / m->rows_together * m->length, each = p->row_values;
  const int64_t begin = row * m->taps * each;
  int64_t k = begin;
  for (int64_t tap = 0; tap < m->taps; tap++) rows->next[tap] = tap * each;
  for (int64_t first = 0; first < p->columns; first += BLOCK) {
    const int64_t left = p->columns - first, width = left < BLOCK ? left : BLOCK;
    for (int64_t tap = 0; tap < m->taps; tap++) {
      const int64_t place = first_column + first * m->taps + tap * width - first;
      int64_t at = rows->next[tap];
      for (; at < (tap + 1) * each && rows->column[at] < first + width; at++) {
        const float x = values[at] * factor, weight = scale ? x * scale[row] : x;
        if (weight == 0) continue;
        m->kept->column[k] = (int32_t)(place + rows->column[at]);
        m->kept->weight[k++] = weight;
      }
      rows->next[tap] = at;
    }
  }
  m->n[row] = k - begin;
}

static lac_status read_and_merge_few_rows(const merging *m, int64_t first, int64_t n,
                                          packed_rows *rows) {
  const laci_packing *p = m->known->packing;
  lac_status st = read_packed_rows(m, first, n, rows);
  for (int64_t row = 0; row < n && !st; row++) {
    const uint32_t *index = rows->index + row * m->taps * p->index_words;
    for (int64_t tap = 0; tap < m->taps && !st; tap++, index += p->index_words) {
      if (!laci_packed_decode_columns(p, index, rows->column + tap * p->row_values))
        st = LAC_BAD_FILE;
    }
    if (!st) merge_taps_of_row(m, first + row, rows->values + row * m->taps * p->row_values, rows);
  }
  return st;
}

static void read_and_merge_row_range(int64_t begin, int64_t end, void *context) {
  merging *m = context;
  packed_rows rows;
  const lac_status st = read_and_merge_few_rows(m, begin, end - begin, &rows);
  free_packed_rows(&rows);
  if (st) atomic_store(&m->failed, (int)st);
}

/** Moves the rows together, so that places that were not needed are dropped. */
static void close_gaps_between_rows(const merging *m, int64_t n_rows) {
  const int64_t each = m->taps * m->known->packing->row_values;
  laci_sparse_kept_weights *kept = m->kept;
  for (int64_t row = 0; row < n_rows; row++) {
    const int64_t from = row * each, to = kept->row_begin[row];
    const size_t n = (size_t)m->n[row];
    kept->row_begin[row + 1] = to + m->n[row];
    if (from == to) continue;
    memmove(kept->column + to, kept->column + from, n * sizeof *kept->column);
    memmove(kept->weight + to, kept->weight + from, n * sizeof *kept->weight);
  }
}

/** Are the packed rows those of the layer's product, in f32, with only zeros left out? They are not
 * if the matrix was packed for another layer, which reads it transposed. */
static bool are_packed_rows_of_layer(const laci_net *net, const laci_native_layer *layer,
                                     const laci_engine_weight *known) {
  const laci_sparse_window *g = &layer->window;
  const laci_packing *p = known ? known->packing : NULL;
  if (!p || !known->rows || p->dtype != LAC_DTYPE_F32 || p->fill != 0) return false;
  const bool outer = !layer->rows || laci_right_operand_read(net, layer->fused).transposed;
  return p->outer == (outer ? g->channels_out : 1) && p->columns == g->channels_in / g->groups &&
         p->n_rows == g->channels_out * g->kernel_h * g->kernel_w;
}

bool laci_native_read_packed_weights(laci_net *net, const laci_native_layer *layer,
                                     const laci_net_weight *weight,
                                     laci_sparse_kept_weights *kept) {
  enum { GRAIN = 1 << 14 }; /* number of elements that a thread merges at a time */
  const laci_sparse_window *g = &layer->window;
  const laci_engine_weight *known = laci_net_find_weight_facts(net, weight->value);
  if (!are_packed_rows_of_layer(net, layer, known)) return false;
  const int64_t rows = g->channels_out, taps = g->kernel_h * g->kernel_w;
  const int64_t each = taps * known->packing->row_values;
  const size_t n = (size_t)(rows * each);
  merging m = {.known = known,
               .weight = weight,
               .taps = taps,
               .rows_together = rows / g->groups,
               .length = laci_sparse_row_length(g),
               .kept = kept,
               .n = laci_alloc((size_t)rows, sizeof *m.n)};
  *kept =
      (laci_sparse_kept_weights){.row_begin = laci_alloc((size_t)rows + 1, sizeof *kept->row_begin),
                                 .column = laci_alloc(n, sizeof *kept->column),
                                 .weight = laci_alloc(n, sizeof *kept->weight)};
  if (m.n && kept->row_begin && kept->column && kept->weight) {
    laci_pool_for(net->pool, rows, each < GRAIN ? GRAIN / each : 1, read_and_merge_row_range, &m);
  } else {
    m.failed = LAC_NO_MEMORY;
  }
  const int failed = m.failed;
  if (failed) {
    laci_plan_fail(&net->plan, (lac_status)failed, "%s: its packed rows cannot be read",
                   net->plan.graph->values[weight->value].name);
  } else {
    close_gaps_between_rows(&m, rows);
  }
  laci_free(m.n);
  return !failed;
}
