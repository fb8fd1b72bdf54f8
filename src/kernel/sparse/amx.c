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

/* ---- Registers of x ---- */

/* The order of a group's int8x4: each has the same distance `stride` from the one n_taps before it.
 * Then a register holds int8x4 of one tap. */
typedef struct tap_order {
  int64_t n_taps, stride;
} tap_order;

static int64_t int8x4_offset(const laci_sparse_product *p, int64_t at) {
  return p->column_at[at * INT8X4];
}

static bool has_constant_stride(const laci_sparse_product *p, int64_t each, const tap_order *o) {
  const int64_t n = p->n_columns / INT8X4;
  for (int64_t at = 0; at < n; at++) {
    const bool is_first = at % each < o->n_taps;
    if (!is_first && int8x4_offset(p, at) - int8x4_offset(p, at - o->n_taps) != o->stride)
      return false;
  }
  return true;
}

/* Finds the fewest taps for which the groups, of `each` int8x4, have such an order, and a tap fills
 * at least half of a register. All int8x4 of one tap may be fewer. stride 0: there are none. */
static tap_order find_tap_order(const laci_sparse_product *p, int64_t each) {
  if (each == 1) return (tap_order){.n_taps = 1, .stride = LANES};
  for (tap_order o = {.n_taps = 1}; o.n_taps == 1 || o.n_taps * DEEP / 2 <= each; o.n_taps++) {
    if (each % o.n_taps != 0) continue;
    o.stride = int8x4_offset(p, o.n_taps) - int8x4_offset(p, 0);
    if (o.stride > 0 && has_constant_stride(p, each, &o)) return o;
  }
  return (tap_order){.n_taps = each};
}

/* Returns the first int8x4, among those of a tap, that a register holds. A tap's last register is
 * full, too: it begins with int8x4 that the one before has as well, where it has no weights. */
static int64_t first_int8x4_of_register(const laci_amx_weights *w, int64_t deep) {
  const int64_t of_tap = w->int8x4_each / w->n_taps, first = deep * w->deep;
  return first + w->deep <= of_tap ? first : of_tap - w->deep;
}

/* Stores where the int8x4 of all groups, and the first of each register, are in x. */
static void store_offsets(const laci_sparse_product *p, const laci_amx_weights *w,
                          int64_t *int8x4_at, int64_t *register_at) {
  const int64_t deep_each = w->n_deep / w->n_taps;
  for (int64_t at = 0; at < w->n_groups * w->int8x4_each; at++)
    int8x4_at[at] = int8x4_offset(p, at);
  for (int64_t at = 0; at < w->n_groups * w->n_deep; at++) {
    const int64_t deep = at % w->n_deep, tap = deep / deep_each;
    if (w->int8x4_stride == 0) {
      register_at[at] = deep * (LACI_AMX_BYTES / (int64_t)sizeof(float)); /* in the copy */
      continue;
    }
    const int64_t first = first_int8x4_of_register(w, deep % deep_each) * w->n_taps + tap;
    register_at[at] = int8x4_at[at / w->n_deep * w->int8x4_each + first];
  }
}

/* ---- Weights ---- */

/* Returns the place, in the registers of 16 rows, of the first row's weights for an int8x4. */
static int64_t find_weight_position(const laci_amx_weights *w, int64_t int8x4) {
  if (w->int8x4_stride == 0) return int8x4 / DEEP * LACI_AMX_BYTES + int8x4 % DEEP * INT8X4;
  const int64_t tap = int8x4 % w->n_taps, of_tap = int8x4 / w->n_taps, deep = of_tap / w->deep;
  const int64_t in_register = of_tap - first_int8x4_of_register(w, deep);
  return (tap * (w->n_deep / w->n_taps) + deep) * LACI_AMX_BYTES + in_register * INT8X4;
}

/* Copies a row's kept weights into its row of the registers. */
static void store_weights_of_row(const laci_sparse_product *p, const float *weight,
                                 const laci_amx_weights *w, int64_t row, int8_t *registers) {
  const int64_t group = row / w->rows_each, in_group = row % w->rows_each;
  const int64_t blocks = laci_ceil_div(w->rows_each, ROWS);
  int8_t *to = registers + ((group * blocks + in_group / ROWS) * w->n_deep) * LACI_AMX_BYTES +
               in_group % ROWS * ROW_BYTES;
  for (int64_t k = p->row_begin[row]; k < p->row_begin[row + 1]; k++) {
    const int64_t column = p->column[k] - group * w->int8x4_each * INT8X4;
    to[find_weight_position(w, column / INT8X4) + column % INT8X4] =
        laci_sparse_weight_to_s8(weight[k]);
  }
}

static laci_amx_weights describe_weights(const laci_sparse_product *p) {
  const int64_t each = laci_sparse_columns_per_group(p) / INT8X4;
  const tap_order o = find_tap_order(p, each);
  const int64_t n_parts = o.stride != 0 ? o.n_taps : 1, of_tap = each / n_parts;
  const int64_t deep = o.stride != 0 && of_tap < DEEP ? of_tap : DEEP;
  return (laci_amx_weights){.row_stride = p->row_stride,
                            .n_groups = p->n_rows / p->rows_together,
                            .rows_each = p->rows_together,
                            .int8x4_each = each,
                            .n_taps = n_parts,
                            .int8x4_stride = o.stride,
                            .deep = deep,
                            .n_deep = n_parts * laci_ceil_div(of_tap, deep)};
}

lac_status laci_amx_weights_init(const laci_sparse_product *p, const float *weight,
                                 laci_amx_weights *w, lac_error *err) {
  *w = describe_weights(p);
  const int64_t blocks = laci_ceil_div(w->rows_each, ROWS);
  const size_t n_registers = (size_t)(w->n_groups * blocks * w->n_deep);
  const size_t n_int8x4 = (size_t)(w->n_groups * w->int8x4_each);
  const size_t n_offsets = n_int8x4 + (size_t)(w->n_groups * w->n_deep);
  w->bytes = n_registers * LACI_AMX_BYTES + n_offsets * sizeof *w->int8x4_at;
  char *memory = laci_alloc(w->bytes, 1);
  if (!memory) return laci_fail_memory(err, "a product by AMX");
  int8_t *registers = (int8_t *)memory;
  int64_t *int8x4_at = (int64_t *)(void *)(memory + n_registers * LACI_AMX_BYTES);
  store_offsets(p, w, int8x4_at, int8x4_at + n_int8x4);
  w->memory = memory;
  w->weight = registers;
  w->int8x4_at = int8x4_at;
  w->register_at = int8x4_at + n_int8x4;
  for (int64_t row = 0; row < p->n_rows; row++) store_weights_of_row(p, weight, w, row, registers);
  return LAC_OK;
}

void laci_amx_weights_clear(laci_amx_weights *w) {
  laci_free(w->memory);
  *w = (laci_amx_weights){.memory = NULL};
}

int64_t laci_amx_tiles_per_part(const laci_amx_weights *w) {
  enum { MOST_BYTES = 1 << 19, MOST = 32 };
  const int64_t n_registers = w->int8x4_stride != 0 ? w->n_deep / w->n_taps : w->n_deep;
  const int64_t n = MOST_BYTES / LACI_AMX_BYTES / n_registers / 2 * 2;
  return n < 2 ? 2 : n > MOST ? MOST : n;
}

size_t laci_amx_scratch_bytes(const laci_amx_weights *w, int64_t n_tiles) {
  return w->int8x4_stride != 0 ? 0 : (size_t)(n_tiles * w->n_deep) * LACI_AMX_BYTES;
}

#if !defined(__x86_64__)
/* Never called: laci_cpu_has_int8_tiles() is false. */
void laci_amx_multiply(const laci_amx_weights *w, const laci_sparse_operands *o,
                       const laci_sparse_part *part, void *scratch) {
  (void)w, (void)o, (void)part, (void)scratch;
}
#endif
