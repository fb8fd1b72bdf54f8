/* SPDX-License-Identifier: Apache-2.0
 * Rows of an array: its header is read once, and row r begins r * width elements after it. */
#include "data/rows.h"

#include <math.h>
#include <string.h>

#include "base/budget.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/reader.h"
#include "data/npy_in.h"
#include "data/rows_in.h"
#include "tensor/buf.h"

struct laci_rows {
  laci_arena arena;
  const char *name;
  laci_type type;
  int64_t width;       /* number of elements of a row */
  size_t row_bytes;    /* number of bytes of a row in the file */
  laci_npy array;      /* the array in memory; empty: rows are read by the reader */
  laci_reader *reader; /* reads the rows; borrowed, or the same as `own` */
  laci_reader *own;
  size_t offset;           /* offset of the first row in the file */
  laci_rows_memory memory; /* the caller's array; empty: the rows are in `array` or in the file */
};

static lac_status rows_create(const char *name, const laci_type *type, laci_rows **rows,
                              lac_error *err) {
  laci_rows *made = laci_alloc(1, sizeof *made);
  *rows = NULL;
  if (!made) return laci_fail_memory(err, name);
  made->name = laci_arena_text(&made->arena, name);
  made->type = *type;
  made->width = laci_shape_count_range(&type->shape, 1, type->shape.rank);
  if (made->width < 0) made->width = 0; /* the array has no rows */
  made->row_bytes = (size_t)made->width * lac_dtype_size(type->dtype);
  if (!made->name) {
    laci_rows_close(made);
    return laci_fail_memory(err, name);
  }
  *rows = made;
  return LAC_OK;
}

/* Checks that the .npy file has exactly the bytes that the array's shape needs. */
static lac_status check_size(const laci_rows_source *source, const laci_npy_header *header,
                             lac_error *err) {
  char text[256];
  int64_t count = laci_shape_count(&header->type.shape);
  size_t found = source->size_bytes - header->offset_bytes, wanted = 0;
  if (count >= 0 &&
      !__builtin_mul_overflow((size_t)count, lac_dtype_size(header->type.dtype), &wanted) &&
      wanted == found)
    return LAC_OK;
  return laci_fail(err, LAC_BAD_FILE, "%s: %zu bytes of data, not what %s %s takes", source->name,
                   found, lac_dtype_name(header->type.dtype),
                   laci_shape_text(&header->type.shape, text, sizeof text));
}

lac_status laci_rows_open_in_file(const laci_rows_source *source, laci_rows **rows,
                                  lac_error *err) {
  laci_npy_header header;
  *rows = NULL;
  lac_status st = laci_npy_header_parse(source->name, source->first, source->n_first, &header, err);
  if (!st && header.opaque) st = laci_npy_fail_untyped(source->name, err);
  if (!st) st = check_size(source, &header, err);
  if (st || header.big_endian || (header.fortran_order && header.type.shape.rank > 1)) return st;
  st = rows_create(source->name, &header.type, rows, err);
  if (st) return st;
  (*rows)->reader = source->reader;
  (*rows)->offset = source->offset + header.offset_bytes;
  return LAC_OK;
}

lac_status laci_rows_from_array(const char *name, laci_npy *take, laci_rows **rows,
                                lac_error *err) {
  lac_status st = rows_create(name, &take->type, rows, err);
  if (st) return st;
  (*rows)->array = *take;
  *take = (laci_npy){0};
  return LAC_OK;
}

lac_status laci_rows_open_memory(const laci_rows_memory *memory, laci_rows **rows, lac_error *err) {
  lac_status st = rows_create(memory->name, &memory->type, rows, err);
  if (!st) (*rows)->memory = *memory;
  return st;
}

/* Reads the whole array into memory; needs twice its size while elements are reordered. */
static lac_status open_rows_of_whole_array(const char *path, const laci_reader *reader,
                                           laci_budget *budget, laci_rows **rows, lac_error *err) {
  laci_npy array = {0};
  laci_budget own = laci_budget_with_limit(0), *counted = budget ? budget : &own;
  laci_budget_add(counted, 2 * (uint64_t)laci_reader_size(reader), "%.200s", path);
  lac_status st = laci_budget_check(counted, "reading the samples", err);
  if (!st) st = laci_npy_read(path, &array, err);
  if (!st) st = laci_rows_from_array(path, &array, rows, err);
  laci_npy_clear(&array);
  return st;
}

lac_status laci_rows_open(const char *path, laci_budget *budget, laci_rows **rows, lac_error *err) {
  laci_reader *reader = NULL;
  *rows = NULL;
  lac_status st = laci_reader_open(path, &reader, err);
  if (st) return st;
  size_t size = laci_reader_size(reader);
  laci_rows_source source = {
      .name = path,
      .reader = reader,
      .size_bytes = size,
      .n_first = size < LACI_ROWS_HEADER_BYTES ? size : LACI_ROWS_HEADER_BYTES};
  uint8_t *first = laci_alloc(source.n_first, 1);
  source.first = first;
  st = first ? laci_reader_copy_range(reader, 0, source.n_first, first, err)
             : laci_fail_memory(err, path);
  if (!st) st = laci_rows_open_in_file(&source, rows, err);
  laci_free(first);
  if (!st && !*rows) st = open_rows_of_whole_array(path, reader, budget, rows, err);
  if (!st && (*rows)->reader) (*rows)->own = reader;
  else laci_reader_close(reader);
  return st;
}

void laci_rows_close(laci_rows *rows) {
  if (!rows) return;
  laci_npy_clear(&rows->array);
  laci_reader_close(rows->own);
  laci_arena_clear(&rows->arena);
  laci_free(rows);
}

const char *laci_rows_name(const laci_rows *rows) { return rows->name; }
const laci_type *laci_rows_type(const laci_rows *rows) { return &rows->type; }
int64_t laci_rows_elements_per_row(const laci_rows *rows) { return rows->width; }

/* Sets *bytes to n bytes of the array from `begin` on: a view of them, or a copy in *memory, which
 * the caller frees. The array is not delivered row by row. */
static lac_status find_bytes(const laci_rows *rows, size_t begin, size_t n, const uint8_t **bytes,
                             uint8_t **memory, lac_error *err) {
  *memory = NULL;
  if (!rows->reader) {
    const uint8_t *all = rows->memory.bytes ? rows->memory.bytes : rows->array.bytes;
    *bytes = all + begin;
    return LAC_OK;
  }
  *bytes = *memory = laci_alloc(n, 1);
  if (!*memory) return laci_fail_memory(err, rows->name);
  return laci_reader_copy_range(rows->reader, rows->offset + begin, n, *memory, err);
}

static lac_status find_row(const laci_rows *rows, int64_t row, const uint8_t **bytes,
                           uint8_t **memory, lac_error *err) {
  if (!rows->memory.fetch || rows->memory.bytes)
    return find_bytes(rows, (size_t)row * rows->row_bytes, rows->row_bytes, bytes, memory, err);
  *bytes = *memory = laci_alloc(rows->row_bytes, 1);
  if (!*memory) return laci_fail_memory(err, rows->name);
  return rows->memory.fetch(rows->memory.context, rows->name, row, *memory, err);
}

static lac_status fail_element_kind(const laci_rows *rows, const char *wanted, lac_error *err) {
  return laci_fail(err, LAC_BAD_ARGUMENT, "%s: elements are %s, wanted %s", rows->name,
                   lac_dtype_name(rows->type.dtype), wanted);
}

lac_status laci_rows_read_f32(const laci_rows *rows, int64_t row, float *out, lac_error *err) {
  const uint8_t *bytes;
  uint8_t *memory;
  if (!laci_dtype_is_float(rows->type.dtype)) return fail_element_kind(rows, "floats", err);
  lac_status st = find_row(rows, row, &bytes, &memory, err);
  if (!st) laci_read_f32(rows->type.dtype, bytes, 0, rows->width, out);
  laci_free(memory);
  return st;
}

static void read_integers(const laci_rows *rows, const uint8_t *bytes, int64_t n, int64_t *out) {
  laci_read_i64(rows->type.dtype, bytes, 0, n, out);
  for (int64_t k = 0; rows->type.dtype == LAC_DTYPE_BOOL && k < n; k++) out[k] = out[k] != 0;
}

lac_status laci_rows_read_i64(const laci_rows *rows, int64_t row, int64_t *out, lac_error *err) {
  const uint8_t *bytes;
  uint8_t *memory;
  if (!laci_dtype_is_integer(rows->type.dtype)) return fail_element_kind(rows, "integers", err);
  lac_status st = find_row(rows, row, &bytes, &memory, err);
  if (!st) read_integers(rows, bytes, rows->width, out);
  laci_free(memory);
  return st;
}

bool laci_rows_have_parts(const laci_rows *rows) {
  return !rows->memory.fetch || rows->memory.bytes;
}

lac_status laci_rows_read_part(const laci_rows *rows, int64_t first, int64_t n, void *out,
                               lac_error *err) {
  const size_t element = lac_dtype_size(rows->type.dtype);
  const uint8_t *bytes;
  uint8_t *memory;
  lac_status st =
      find_bytes(rows, (size_t)first * element, (size_t)n * element, &bytes, &memory, err);
  if (!st && laci_dtype_is_float(rows->type.dtype))
    laci_read_f32(rows->type.dtype, bytes, 0, n, out);
  else if (!st) read_integers(rows, bytes, n, out);
  laci_free(memory);
  return st;
}

lac_status laci_rows_read_u8(const laci_rows *rows, int64_t row, uint8_t *out, lac_error *err) {
  const uint8_t *bytes;
  uint8_t *memory;
  if (rows->type.dtype != LAC_DTYPE_U8) return fail_element_kind(rows, "u8", err);
  lac_status st = find_row(rows, row, &bytes, &memory, err);
  if (!st && rows->row_bytes) memcpy(out, bytes, rows->row_bytes);
  laci_free(memory);
  return st;
}

/** Are all n numbers finite? x * 0 is NaN if x is NaN or infinite, else 0. */
static bool are_finite(const float *x, int64_t n) {
  float sum = 0;
  for (int64_t e = 0; e < n; e++) sum += x[e] * 0.0f;
  return sum == 0;
}

lac_status laci_rows_check_finite(const laci_rows *rows, int64_t at, const float *sample, int64_t n,
                                  lac_error *err) {
  int64_t e = 0;
  if (are_finite(sample, n)) return LAC_OK;
  while (isfinite(sample[e])) e++;
  return laci_fail(
      err, LAC_BAD_VALUE, "%s: element %lld of sample %lld is %s; wanted finite numbers",
      laci_rows_name(rows), (long long)e, (long long)at, isnan(sample[e]) ? "NaN" : "infinite");
}
