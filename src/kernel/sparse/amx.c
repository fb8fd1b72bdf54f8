/* SPDX-License-Identifier: Apache-2.0
 * The weights of amx.h, and how much of the work a part has. */
#include "kernel/sparse/amx.h"

#include "base/divide.h"
#include "base/error.h"
#include "base/memory.h"
#include "kernel/sparse/int8x4.h"

enum {
  LANES = LACI_SPARSE_LANES,
  INT8X4 = LACI_INT8X4_CHANNELS,
  ROWS = LACI_AMX_ROWS,
  DEEP = LACI_AMX_INT8X4,
  ROW_BYTES = DEEP * INT8X4,
};

/* Stores the int8x4 of all groups, and finds out whether those of each register follow each other
 * in x. */
static void find_int8x4(const laci_sparse_product *p, laci_amx_weights *w, int64_t *int8x4_at) {
  const int64_t n = w->n_groups * w->int8x4_each;
  w->as_stored = w->int8x4_each % DEEP == 0;
  for (int64_t at = 0; at < n; at++) {
    int8x4_at[at] = p->column_at[at * INT8X4];
    if (at % DEEP != 0 && int8x4_at[at] != int8x4_at[at - 1] + LANES) w->as_stored = false;
  }
}

/* Copies a row's kept weights into its row of the registers. */
static void store_row(const laci_sparse_product *p, const float *weight, const laci_amx_weights *w,
                      int64_t row, int8_t *registers) {
  const int64_t group = row / w->rows_each, in_group = row % w->rows_each;
  const int64_t blocks = laci_ceil_div(w->rows_each, ROWS);
  int8_t *to = registers + ((group * blocks + in_group / ROWS) * w->n_deep) * LACI_AMX_BYTES +
               in_group % ROWS * ROW_BYTES;
  for (int64_t k = p->row_begin[row]; k < p->row_begin[row + 1]; k++) {
    const int64_t column = p->column[k] - group * w->int8x4_each * INT8X4;
    to[column / ROW_BYTES * LACI_AMX_BYTES + column % ROW_BYTES] =
        laci_sparse_weight_to_s8(weight[k]);
  }
}

lac_status laci_amx_weights_init(const laci_sparse_product *p, const float *weight,
                                 laci_amx_weights *w, lac_error *err) {
  const int64_t n_groups = p->n_rows / p->rows_together;
  const int64_t int8x4_each = laci_sparse_columns_per_group(p) / INT8X4;
  *w = (laci_amx_weights){.row_stride = p->row_stride,
                          .n_groups = n_groups,
                          .rows_each = p->rows_together,
                          .int8x4_each = int8x4_each,
                          .n_deep = laci_ceil_div(int8x4_each, DEEP)};
  const size_t n_registers = (size_t)(n_groups * laci_ceil_div(p->rows_together, ROWS) * w->n_deep);
  const size_t n_int8x4 = (size_t)(n_groups * int8x4_each);
  w->bytes = n_registers * LACI_AMX_BYTES + n_int8x4 * sizeof *w->int8x4_at;
  char *memory = laci_alloc(w->bytes, 1);
  if (!memory) return laci_fail_memory(err, "a product by AMX");
  int8_t *registers = (int8_t *)memory;
  int64_t *int8x4_at = (int64_t *)(void *)(memory + n_registers * LACI_AMX_BYTES);
  find_int8x4(p, w, int8x4_at);
  for (int64_t row = 0; row < p->n_rows; row++) store_row(p, weight, w, row, registers);
  w->memory = memory;
  w->weight = registers;
  w->int8x4_at = int8x4_at;
  return LAC_OK;
}

void laci_amx_weights_clear(laci_amx_weights *w) {
  laci_free(w->memory);
  *w = (laci_amx_weights){.memory = NULL};
}

int64_t laci_amx_tiles_per_part(const laci_amx_weights *w) {
  enum { MOST_BYTES = 1 << 19, MOST = 32 };
  const int64_t n = MOST_BYTES / LACI_AMX_BYTES / w->n_deep / 2 * 2;
  return n < 2 ? 2 : n > MOST ? MOST : n;
}

size_t laci_amx_scratch_bytes(const laci_amx_weights *w, int64_t n_tiles) {
  return w->as_stored ? 0 : (size_t)(n_tiles * w->n_deep) * LACI_AMX_BYTES;
}

#if !defined(__x86_64__)
/* Never called: laci_cpu_has_int8_tiles() is false. */
void laci_amx_multiply(const laci_amx_weights *w, const laci_sparse_operands *o,
                       const laci_sparse_part *part, void *scratch) {
  (void)w, (void)o, (void)part, (void)scratch;
}
#endif
