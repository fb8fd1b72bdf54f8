/* SPDX-License-Identifier: Apache-2.0
 * Arranges a matrix of bytes as the weights of a sparse product (sparse/byte_pairs.h): its columns
 * are the product's rows. */
#include "base/error.h"
#include "base/memory.h"
#include "kernel/linear/byte_product.h"
#include "kernel/sparse/byte_pairs.h"

/* The nonzero bytes of all columns, and where column k of the product is in a row of x. */
typedef struct kept_bytes {
  int64_t *row_begin, *column_at;
  int32_t *column;
  float *weight;
} kept_bytes;

static int8_t byte_of(const laci_byte_matrix *m, int64_t k, int64_t column) {
  return m->w[column / LACI_BYTE_COLUMNS * laci_byte_block_bytes(m->depth) +
              laci_byte_index(k, column)];
}

/* Collects the bytes of all columns; those of columns that fill up the last block are zeros. */
static void collect_bytes(const laci_byte_matrix *m, int64_t n_columns, const kept_bytes *kept) {
  int64_t n = 0;
  for (int64_t column = 0; column < n_columns; column++) {
    kept->row_begin[column] = n;
    for (int64_t k = 0; k < m->depth; k++) {
      const int8_t byte = byte_of(m, k, column);
      if (byte == 0) continue;
      kept->column[n] = (int32_t)k;
      kept->weight[n++] = byte;
    }
  }
  kept->row_begin[n_columns] = n;
}

lac_status laci_byte_matrix_arrange(const laci_byte_matrix *matrix, laci_byte_pairs_weights *pairs,
                                    lac_error *err) {
  const int64_t n_columns = laci_byte_blocks(matrix->columns) * LACI_BYTE_COLUMNS;
  const int64_t depth = (matrix->depth + LACI_BYTE_GROUP - 1) / LACI_BYTE_GROUP * LACI_BYTE_GROUP;
  const size_t n = (size_t)(n_columns * depth);
  const kept_bytes kept = {.row_begin = laci_alloc((size_t)n_columns + 1, sizeof *kept.row_begin),
                           .column_at = laci_alloc((size_t)depth, sizeof *kept.column_at),
                           .column = laci_alloc(n, sizeof *kept.column),
                           .weight = laci_alloc(n, sizeof *kept.weight)};
  const laci_sparse_product product = {.n_rows = n_columns,
                                       .n_columns = depth,
                                       .rows_together = n_columns,
                                       .row_begin = kept.row_begin,
                                       .column = kept.column,
                                       .column_at = kept.column_at,
                                       .values = LACI_SPARSE_S8};
  const bool has_memory = kept.row_begin && kept.column_at && kept.column && kept.weight;
  for (int64_t k = 0; has_memory && k < depth; k++) kept.column_at[k] = k / LACI_BYTE_GROUP;
  if (has_memory) collect_bytes(matrix, n_columns, &kept);
  const lac_status st = has_memory ? laci_byte_pairs_init(&product, kept.weight, false, pairs, err)
                                   : laci_fail_memory(err, "a matrix of bytes");
  laci_free(kept.row_begin);
  laci_free(kept.column_at);
  laci_free(kept.column);
  laci_free(kept.weight);
  return st;
}

#if !defined(__x86_64__)
/* Never called: laci_byte_pairs_can_run() is false. */
void laci_multiply_bytes_arranged(const laci_byte_product *p, const laci_byte_part *part) {
  (void)p, (void)part;
}
#endif
