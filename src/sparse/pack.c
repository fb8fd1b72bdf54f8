/* SPDX-License-Identifier: Apache-2.0
 * Packs a weight (pack.h), one block of columns of a range of rows at a time, and unpacks it row by
 * row.
 *
 * Neighbouring packed rows are also neighbours in the dense weight, but the columns of a block are
 * `inner` apart there. So a tile is one block of columns by many rows. The dense and the packed
 * weight are then accessed in short contiguous ranges. The kept columns of a block are a bit mask
 * of at most 64 bits. */
#include "sparse/pack.h"

#include <string.h>

#include "base/error.h"
#include "base/divide.h"
#include "base/memory.h"
#include "sparse/score.h"
#include "tensor/buf.h"
#include "tensor/narrow.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "words of the index are little-endian");

enum { TILE_ROWS = 32, WORD_BITS = 32 };

/* A tile: one block of columns, in rows [row, row + n_rows) of one outer index. */
typedef struct tile {
  int64_t first;       /* flat index in the dense weight of the first row's first column */
  int64_t row, n_rows; /* range of packed rows: the first, and their number */
  int columns, kept;   /* number of columns in the block, and number of these that are kept */
  /* value: index of the block's first value in a packed row. left: index of its first sign bit */
  int64_t value, left;
} tile;

/** A function that processes a tile. It returns false to end the loop over tiles. */
typedef bool tile_job(const laci_packing *p, const tile *t, void *context);

/* ---- Geometry ---- */

static lac_status check_weight_shape(const laci_weight_view *w, int64_t *count, lac_error *err) {
  bool is_weight =
      w->outer > 0 && w->columns > 0 && w->inner > 0 && w->run > 0 && w->columns % w->run == 0;
  if (is_weight && !__builtin_mul_overflow(w->outer, w->columns, count) &&
      !__builtin_mul_overflow(*count, w->inner, count) && *count <= INT64_MAX / 64) {
    return LAC_OK;
  }
  return laci_fail(err, LAC_BAD_SHAPE, "%s: %lld x %lld x %lld elements in runs of %lld: no weight",
                   w->name, (long long)w->outer, (long long)w->columns, (long long)w->inner,
                   (long long)w->run);
}

lac_status laci_packing_init(laci_packing *packing, const laci_weight_view *shape,
                             laci_pattern pattern, uint64_t fill, lac_error *err) {
  int64_t count = 0;
  *packing = (laci_packing){0};
  lac_status st = laci_pattern_check(pattern, err);
  if (st) return laci_fail_with_prefix(err, st, "%s", shape->name);
  if (!laci_dtype_is_float(shape->dtype) && !laci_dtype_is_integer(shape->dtype)) {
    return laci_fail(err, LAC_UNSUPPORTED, "%s: elements of type %s cannot be packed", shape->name,
                     lac_dtype_name(shape->dtype));
  }
  st = check_weight_shape(shape, &count, err);
  if (st) return st;
  size_t size = lac_dtype_size(shape->dtype);
  int last = (int)(shape->run % pattern.m), bits = 1;
  while (1 << bits < pattern.m) bits++;
  laci_packing p = {.name = shape->name,
                    .dtype = shape->dtype,
                    .pattern = pattern,
                    .outer = shape->outer,
                    .columns = shape->columns,
                    .inner = shape->inner,
                    .run = shape->run,
                    .element_bytes = size,
                    .index_bits = bits};
  p.fill = fill & (UINT64_MAX >> (64 - 8 * size));
  p.negative = p.fill;
  if (laci_dtype_is_float(p.dtype) && p.fill == 0) p.negative = laci_negative_zero(p.dtype);
  p.n_rows = p.outer * p.inner;
  p.row_values =
      p.columns / p.run * (p.run / pattern.m * pattern.n + (last < pattern.n ? last : pattern.n));
  p.index_words = laci_ceil_div(p.row_values * bits, WORD_BITS);
  p.sign_words = laci_ceil_div(p.columns - p.row_values, WORD_BITS);
  p.dense_bytes = (size_t)count * size;
  p.values_bytes = (size_t)(p.n_rows * p.row_values) * size;
  p.index_bytes = (size_t)(p.n_rows * p.index_words) * sizeof(uint32_t);
  p.signs_bytes = (size_t)(p.n_rows * p.sign_words) * sizeof(uint32_t);
  *packing = p;
  return LAC_OK;
}

/* ---- Walking ---- */

/* Runs the job on each block of columns of rows [t->row, t->row + n_rows). start: flat index of
   their first element. */
static bool for_each_tile_of_rows(const laci_packing *p, tile *t, int64_t start, tile_job *job,
                                  void *context) {
  t->value = t->left = 0;
  for (int64_t column = 0; column < p->columns; column += t->columns) {
    int64_t rest = p->run - column % p->run;
    t->columns = rest < p->pattern.m ? (int)rest : p->pattern.m;
    t->kept = t->columns < p->pattern.n ? t->columns : p->pattern.n;
    t->first = start + column * p->inner;
    if (!job(p, t, context)) return false;
    t->value += t->kept;
    t->left += t->columns - t->kept;
  }
  return true;
}

static bool for_each_tile(const laci_packing *p, tile_job *job, void *context) {
  for (int64_t o = 0; o < p->outer; o++) {
    for (int64_t i = 0; i < p->inner; i += TILE_ROWS) {
      tile t = {.row = o * p->inner + i, .n_rows = p->inner - i};
      if (t.n_rows > TILE_ROWS) t.n_rows = TILE_ROWS;
      if (!for_each_tile_of_rows(p, &t, o * p->columns * p->inner + i, job, context)) return false;
    }
  }
  return true;
}

/* ---- Elements and bits ---- */

static uint64_t load_element(const uint8_t *elements, int64_t at, size_t size) {
  uint64_t bits = 0;
  switch (size) {
    case 1: memcpy(&bits, elements + at, 1); break;
    case 2: memcpy(&bits, elements + 2 * at, 2); break;
    case 4: memcpy(&bits, elements + 4 * at, 4); break;
    default: memcpy(&bits, elements + 8 * at, 8); break;
  }
  return bits;
}

static void store_element(uint8_t *elements, int64_t at, size_t size, uint64_t bits) {
  switch (size) {
    case 1: memcpy(elements + at, &bits, 1); break;
    case 2: memcpy(elements + 2 * at, &bits, 2); break;
    case 4: memcpy(elements + 4 * at, &bits, 4); break;
    default: memcpy(elements + 8 * at, &bits, 8); break;
  }
}

static void store_bits(uint32_t *words, int64_t at, int n_bits, uint32_t bits) {
  int shift = (int)(at % WORD_BITS);
  words[at / WORD_BITS] |= bits << shift;
  if (shift + n_bits > WORD_BITS) words[at / WORD_BITS + 1] |= bits >> (WORD_BITS - shift);
}

static uint32_t load_bits(const uint32_t *words, int64_t at, int n_bits) {
  int shift = (int)(at % WORD_BITS);
  uint32_t bits = words[at / WORD_BITS] >> shift;
  if (shift + n_bits > WORD_BITS) bits |= words[at / WORD_BITS + 1] << (WORD_BITS - shift);
  return bits & ((UINT32_C(1) << n_bits) - 1);
}

/* The elements of a block in one row, and which of its columns must be stored. */
typedef struct block {
  uint64_t bits[LACI_MOST_PATTERN_M];
  /* filled: bit c is set if the element of column c is neither the fill value nor -0.0. negative:
   * it is -0.0 */
  uint64_t filled, negative;
} block;

static void read_block_of_row(const laci_packing *p, const tile *t, int64_t row,
                              const uint8_t *dense, block *b) {
  b->filled = b->negative = 0;
  for (int c = 0; c < t->columns; c++) {
    uint64_t bits = load_element(dense, t->first + row + c * p->inner, p->element_bytes);
    bool is_fill = bits == p->fill, is_negative = !is_fill && bits == p->negative;
    b->bits[c] = bits;
    b->negative |= (uint64_t)is_negative << c;
    b->filled |= (uint64_t)(!is_fill && !is_negative) << c;
  }
}

/* Returns the mask of the columns to store: `kept` of them. They are all filled columns, then
 * columns with -0.0 (which saves the most signs), then the lowest of the others. */
static uint64_t choose_stored_columns(const block *b, int kept) {
  uint64_t mask = b->filled, negative = b->negative;
  int n = __builtin_popcountll(mask);
  for (; n < kept && negative; n++, negative &= negative - 1) mask |= negative & -negative;
  for (; n < kept; n++) mask |= ~mask & (mask + 1);
  return mask;
}

/* ---- Checking ---- */

typedef struct check_job {
  const uint8_t *dense;
  laci_pack_check check;
} check_job;

static bool check_tile_fits_packing(const laci_packing *p, const tile *t, void *context) {
  check_job *j = context;
  block b;
  for (int64_t row = 0; row < t->n_rows; row++) {
    read_block_of_row(p, t, row, j->dense, &b);
    if (__builtin_popcountll(b.filled) > t->kept) {
      j->check.holds = false;
      return false;
    }
    j->check.needs_signs |= (b.negative & ~choose_stored_columns(&b, t->kept)) != 0;
  }
  return true;
}

laci_pack_check laci_pack_check_weight(const laci_packing *packing, const uint8_t *dense) {
  check_job j = {.dense = dense, .check.holds = true};
  (void)for_each_tile(packing, check_tile_fits_packing, &j);
  return j.check;
}

/* ---- Packing ---- */

typedef struct pack_job {
  const uint8_t *dense;
  const laci_packed *packed;
} pack_job;

static bool pack_tile(const laci_packing *p, const tile *t, void *context) {
  const pack_job *j = context;
  block b;
  for (int64_t row = 0; row < t->n_rows; row++) {
    read_block_of_row(p, t, row, j->dense, &b);
    uint64_t kept = choose_stored_columns(&b, t->kept);
    int64_t at = t->row + row, value = t->value, left = t->left;
    uint32_t *index = j->packed->index + at * p->index_words;
    uint32_t *signs = j->packed->signs ? j->packed->signs + at * p->sign_words : NULL;
    for (int c = 0; c < t->columns; c++) {
      if (kept >> c & 1) {
        store_element(j->packed->values, at * p->row_values + value, p->element_bytes, b.bits[c]);
        store_bits(index, value * p->index_bits, p->index_bits, (uint32_t)c);
        value++;
      } else {
        if (signs) store_bits(signs, left, 1, b.bits[c] != p->fill);
        left++;
      }
    }
  }
  return true;
}

void laci_pack_weight(const laci_packing *packing, const uint8_t *dense,
                      const laci_packed *packed) {
  pack_job j = {.dense = dense, .packed = packed};
  (void)for_each_tile(packing, pack_tile, &j);
}

/* ---- Unpacking ---- */

bool laci_packed_decode_columns(const laci_packing *p, const uint32_t *index, int32_t *column) {
  int64_t value = 0, rest = p->run; /* rest: columns of the run that are left */
  for (int64_t first = 0, width; first < p->columns; first += width) {
    width = rest < p->pattern.m ? rest : p->pattern.m;
    rest = rest > width ? rest - width : p->run;
    const int64_t kept = width < p->pattern.n ? width : p->pattern.n;
    for (int64_t last = -1, n = 0; n < kept; n++, value++) {
      const int64_t c = load_bits(index, value * p->index_bits, p->index_bits);
      if (c >= width || c <= last) return false;
      column[value] = (int32_t)(first + c);
      last = c;
    }
  }
  return true;
}

/* Stores the n elements of a packed row at their columns: column c of the row is element c * inner
 * of `row`. Inlined for each size of an element, so that it is a constant. */
static inline void scatter_elements(uint8_t *row, int64_t inner, const uint8_t *values,
                                    const int32_t *column, int64_t n, size_t size) {
  for (int64_t v = 0; v < n; v++)
    memcpy(row + (size_t)(column[v] * inner) * size, values + (size_t)v * size, size);
}

static void scatter_row(const laci_packing *p, const uint8_t *values, const int32_t *column,
                        uint8_t *row) {
  switch (p->element_bytes) {
    case 1: scatter_elements(row, p->inner, values, column, p->row_values, 1); break;
    case 2: scatter_elements(row, p->inner, values, column, p->row_values, 2); break;
    case 4: scatter_elements(row, p->inner, values, column, p->row_values, 4); break;
    default: scatter_elements(row, p->inner, values, column, p->row_values, 8); break;
  }
}

/* Stores -0.0 at the columns that are not stored and whose sign bit is set. */
static void restore_signs(const laci_packing *p, const uint32_t *signs, const int32_t *column,
                          uint8_t *row) {
  int64_t left = 0, value = 0;
  for (int64_t c = 0; c < p->columns; c++) {
    if (value < p->row_values && column[value] == c) value++;
    else if (load_bits(signs, left++, 1))
      store_element(row, c * p->inner, p->element_bytes, p->negative);
  }
}

static void fill_weight_with_zero_point(const laci_packing *p, uint8_t *dense) {
  if (p->fill == 0) {
    memset(dense, 0, p->dense_bytes);
    return;
  }
  const int64_t n = (int64_t)(p->dense_bytes / p->element_bytes);
  for (int64_t at = 0; at < n; at++) store_element(dense, at, p->element_bytes, p->fill);
}

lac_status laci_unpack_weight(const laci_packing *packing, const laci_packed_view *packed,
                              uint8_t *dense, lac_error *err) {
  const laci_packing *p = packing;
  int32_t *column = laci_alloc((size_t)p->row_values + 1, sizeof *column);
  if (!column) return laci_fail_memory(err, p->name);
  fill_weight_with_zero_point(p, dense);
  lac_status st = LAC_OK;
  for (int64_t at = 0; at < p->n_rows; at++) {
    const int64_t first = at / p->inner * p->columns * p->inner + at % p->inner;
    uint8_t *row = dense + (size_t)first * p->element_bytes;
    if (!laci_packed_decode_columns(p, packed->index + at * p->index_words, column)) {
      st = laci_fail(err, LAC_BAD_FILE,
                     "%s: row %lld: the columns of a block do not ascend inside it", p->name,
                     (long long)at);
      break;
    }
    scatter_row(p, packed->values + (size_t)(at * p->row_values) * p->element_bytes, column, row);
    if (packed->signs) restore_signs(p, packed->signs + at * p->sign_words, column, row);
  }
  laci_free(column);
  return st;
}
