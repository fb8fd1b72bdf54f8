/* SPDX-License-Identifier: Apache-2.0
 * Reads the header of a safetensors file as JSON. Checks each tensor by itself, then all tensors,
 * sorted by offset, for overlaps. */
#include "safetensors/safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/reader.h"
#include "tensor/buf.h"

static const uint64_t MOST_HEADER = 100000000; /* limit of the header's length, in bytes */
enum { LENGTH_BYTES = 8, PART = 1 << 16 };

struct laci_safetensors {
  const char *path;
  laci_reader *reader;
  json_t *root; /* the header as JSON, which owns the names of tensors */
  laci_safetensor *tensors;
  int n;
  size_t data;      /* offset in the file at which the tensors' bytes begin */
  laci_arena names; /* memory of the names and types that laci_safetensors_wrap_tensors copies */
};

/* ---- The header ---- */

static uint64_t decode_header_length(const uint8_t *bytes) {
  uint64_t length = 0;
  for (int k = LENGTH_BYTES - 1; k >= 0; k--) length = length << 8 | bytes[k];
  return length;
}

bool laci_safetensors_has_signature(const uint8_t *bytes, size_t n) {
  return n > LENGTH_BYTES && bytes[LENGTH_BYTES] == '{' &&
         decode_header_length(bytes) <= MOST_HEADER;
}

/** Reads the text of the header to *text, and adds a zero byte at its end. */
static lac_status read_header(laci_safetensors *f, char **text, lac_error *err) {
  uint8_t bytes[LENGTH_BYTES];
  const size_t size = laci_reader_size(f->reader);
  *text = NULL;
  if (size < LENGTH_BYTES) {
    return laci_fail(err, LAC_BAD_FILE, "%s: %zu bytes, too few for a safetensors file", f->path,
                     size);
  }
  lac_status st = laci_reader_copy_range(f->reader, 0, LENGTH_BYTES, bytes, err);
  if (st) return st;
  const uint64_t length = decode_header_length(bytes), most = size - LENGTH_BYTES;
  if (length > MOST_HEADER || length > most) {
    return laci_fail(err, LAC_BAD_FILE,
                     "%s: its header claims %" PRIu64 " bytes, wanted at most %" PRIu64, f->path,
                     length, most < MOST_HEADER ? most : MOST_HEADER);
  }
  f->data = LENGTH_BYTES + (size_t)length;
  *text = laci_alloc((size_t)length + 1, 1);
  if (!*text) return laci_fail_memory(err, f->path);
  st = laci_reader_copy_range(f->reader, LENGTH_BYTES, (size_t)length, *text, err);
  if (!st && strlen(*text) != length) {
    st = laci_fail(err, LAC_BAD_FILE, "%s: its header is no JSON: a zero byte", f->path);
  }
  return st;
}

/* ---- A tensor ---- */

static lac_status fail_bad_tensor(const laci_safetensors *f, const char *name, const char *what,
                                  lac_error *err) {
  return laci_fail(err, LAC_BAD_FILE, "%s: %.200s: %s", f->path, name, what);
}

/** Looks up a type of the format. Returns the number of bytes of an element; 0: the type is
 * unknown. */
static size_t find_element_bytes(const char *type, lac_dtype *dtype, bool *is_float) {
  static const struct {
    const char *name;
    size_t bytes;
    bool is_float;
    lac_dtype dtype;
  } types[] = {{"F64", 8, true, LAC_DTYPE_F64},     {"F32", 4, true, LAC_DTYPE_F32},
               {"F16", 2, true, LAC_DTYPE_F16},     {"BF16", 2, true, LAC_DTYPE_BF16},
               {"I64", 8, false, LAC_DTYPE_F32},    {"I32", 4, false, LAC_DTYPE_F32},
               {"I16", 2, false, LAC_DTYPE_F32},    {"I8", 1, false, LAC_DTYPE_F32},
               {"U64", 8, false, LAC_DTYPE_F32},    {"U32", 4, false, LAC_DTYPE_F32},
               {"U16", 2, false, LAC_DTYPE_F32},    {"U8", 1, false, LAC_DTYPE_F32},
               {"BOOL", 1, false, LAC_DTYPE_F32},   {"F8_E4M3", 1, false, LAC_DTYPE_F32},
               {"F8_E5M2", 1, false, LAC_DTYPE_F32}};
  for (size_t k = 0; k < sizeof types / sizeof types[0]; k++) {
    if (strcmp(types[k].name, type) != 0) continue;
    *dtype = types[k].dtype;
    *is_float = types[k].is_float;
    return types[k].bytes;
  }
  return 0;
}

static lac_status read_shape(const laci_safetensors *f, const json_t *shape, laci_safetensor *t,
                             lac_error *err) {
  if (!json_is_array(shape)) return fail_bad_tensor(f, t->name, "it has no shape", err);
  if (json_array_size(shape) > LACI_SAFETENSORS_MOST_RANK) {
    return fail_bad_tensor(f, t->name, "more than 8 axes", err);
  }
  t->rank = (int)json_array_size(shape);
  t->count = 1;
  for (int axis = 0; axis < t->rank; axis++) {
    const json_t *size = json_array_get(shape, (size_t)axis);
    json_int_t n = json_is_integer(size) ? json_integer_value(size) : -1;
    if (n < 0 || __builtin_mul_overflow(t->count, n, &t->count)) {
      return fail_bad_tensor(f, t->name, "its shape is none", err);
    }
    t->shape[axis] = n;
  }
  return LAC_OK;
}

static lac_status read_byte_range(const laci_safetensors *f, const json_t *offsets, size_t element,
                                  laci_safetensor *t, lac_error *err) {
  const json_t *begin = json_array_get(offsets, 0), *end = json_array_get(offsets, 1);
  const size_t size = laci_reader_size(f->reader) - f->data;
  bool pair = json_array_size(offsets) == 2 && json_is_integer(begin) && json_is_integer(end);
  if (!pair) return fail_bad_tensor(f, t->name, "it has no pair of data_offsets", err);
  json_int_t from = json_integer_value(begin), to = json_integer_value(end), wanted;
  if (from < 0 || to < from || (uint64_t)to > size) {
    return laci_fail(err, LAC_BAD_FILE,
                     "%s: %.200s: bytes %" PRId64 " to %" PRId64
                     ", but the file has %zu of tensors",
                     f->path, t->name, (int64_t)from, (int64_t)to, size);
  }
  bool fits =
      !__builtin_mul_overflow(t->count, (json_int_t)element, &wanted) && wanted == to - from;
  if (!fits) {
    return laci_fail(err, LAC_BAD_FILE,
                     "%s: %.200s: %" PRId64 " elements of %s in %" PRId64 " bytes", f->path,
                     t->name, t->count, t->type, (int64_t)(to - from));
  }
  t->first = f->data + (size_t)from;
  t->size_bytes = (size_t)(to - from);
  return LAC_OK;
}

static lac_status read_tensor(const laci_safetensors *f, const char *name, const json_t *of,
                              laci_safetensor *t, lac_error *err) {
  *t = (laci_safetensor){.name = name, .type = json_string_value(json_object_get(of, "dtype"))};
  if (!t->type) return fail_bad_tensor(f, name, "it has no dtype", err);
  size_t element = find_element_bytes(t->type, &t->dtype, &t->is_float);
  if (!element) {
    return laci_fail(err, LAC_BAD_FILE, "%s: %.200s: unknown dtype %.40s", f->path, name, t->type);
  }
  lac_status st = read_shape(f, json_object_get(of, "shape"), t, err);
  return st ? st : read_byte_range(f, json_object_get(of, "data_offsets"), element, t, err);
}

/* ---- All tensors ---- */

static int compare_offsets(const void *a, const void *b) {
  const laci_safetensor *x = a, *y = b;
  if (x->first != y->first) return x->first < y->first ? -1 : 1;
  return x->size_bytes < y->size_bytes ? -1 : x->size_bytes > y->size_bytes;
}

static int compare_names(const void *a, const void *b) {
  const laci_safetensor *x = a, *y = b;
  return strcmp(x->name, y->name);
}

static lac_status check_no_overlap(const laci_safetensors *f, lac_error *err) {
  qsort(f->tensors, (size_t)f->n, sizeof *f->tensors, compare_offsets);
  for (int k = 1; k < f->n; k++) {
    const laci_safetensor *before = &f->tensors[k - 1], *t = &f->tensors[k];
    if (before->first + before->size_bytes <= t->first) continue;
    return laci_fail(err, LAC_BAD_FILE, "%s: %.200s and %.200s overlap", f->path, before->name,
                     t->name);
  }
  qsort(f->tensors, (size_t)f->n, sizeof *f->tensors, compare_names);
  return LAC_OK;
}

static lac_status read_all_tensors(laci_safetensors *f, lac_error *err) {
  const char *name;
  json_t *of;
  if (!json_is_object(f->root)) {
    return laci_fail(err, LAC_BAD_FILE, "%s: its header is no JSON object", f->path);
  }
  f->tensors = laci_alloc(json_object_size(f->root), sizeof *f->tensors);
  if (!f->tensors) return laci_fail_memory(err, f->path);
  json_object_foreach(f->root, name, of) {
    if (strcmp(name, "__metadata__") == 0) continue;
    lac_status st = read_tensor(f, name, of, &f->tensors[f->n], err);
    if (st) return st;
    f->n++;
  }
  return check_no_overlap(f, err);
}

lac_status laci_safetensors_open(const char *path, laci_safetensors **file, lac_error *err) {
  char *text = NULL;
  *file = NULL;
  laci_safetensors *f = laci_alloc(1, sizeof *f);
  if (!f) return laci_fail_memory(err, path);
  f->path = path;
  lac_status st = laci_reader_open(path, &f->reader, err);
  if (!st) st = read_header(f, &text, err);
  if (!st) st = laci_json_read(path, "the header of a safetensors file", text, &f->root, err);
  laci_free(text);
  if (!st) st = read_all_tensors(f, err);
  if (st) laci_safetensors_close(f);
  else *file = f;
  return st;
}

static lac_status copy_tensor_list(laci_safetensors *f, const laci_safetensor *tensors, int n,
                                   lac_error *err) {
  f->tensors = laci_alloc((size_t)n, sizeof *f->tensors);
  if (!f->tensors) return laci_fail_memory(err, f->path);
  for (; f->n < n; f->n++) {
    laci_safetensor *t = &f->tensors[f->n];
    *t = tensors[f->n];
    t->name = laci_arena_text(&f->names, t->name);
    t->type = laci_arena_text(&f->names, t->type);
    if (!t->name || !t->type) return laci_fail_memory(err, f->path);
  }
  qsort(f->tensors, (size_t)n, sizeof *f->tensors, compare_names);
  for (int k = 1; k < n; k++) {
    if (strcmp(f->tensors[k - 1].name, f->tensors[k].name) == 0)
      return fail_bad_tensor(f, f->tensors[k].name, "two tensors of this name", err);
  }
  return LAC_OK;
}

lac_status laci_safetensors_wrap_tensors(const char *path, laci_reader *reader,
                                         const laci_safetensor *tensors, int n,
                                         laci_safetensors **file, lac_error *err) {
  *file = NULL;
  laci_safetensors *f = laci_alloc(1, sizeof *f);
  if (!f) return laci_fail_memory(err, path);
  f->path = path;
  lac_status st = copy_tensor_list(f, tensors, n, err);
  if (!st) f->reader = reader;
  if (st) laci_safetensors_close(f);
  else *file = f;
  return st;
}

void laci_safetensors_close(laci_safetensors *f) {
  if (!f) return;
  laci_arena_clear(&f->names);
  laci_free(f->tensors);
  json_decref(f->root);
  laci_reader_close(f->reader);
  laci_free(f);
}

const laci_safetensor *laci_safetensors_list_tensors(const laci_safetensors *f, int *n) {
  *n = f->n;
  return f->tensors;
}

const laci_safetensor *laci_safetensors_find_tensor(const laci_safetensors *f, const char *name) {
  const laci_safetensor wanted = {.name = name};
  return bsearch(&wanted, f->tensors, (size_t)f->n, sizeof wanted, compare_names);
}

lac_status laci_safetensors_read_floats(const laci_safetensors *f, const laci_safetensor *t,
                                        float *to, lac_error *err) {
  uint8_t bytes[PART];
  const size_t element = t->count > 0 ? t->size_bytes / (size_t)t->count : 1;
  const int64_t most = (int64_t)(PART / element);
  for (int64_t first = 0; first < t->count; first += most) {
    int64_t n = t->count - first < most ? t->count - first : most;
    lac_status st = laci_reader_copy_range(f->reader, t->first + (size_t)first * element,
                                           (size_t)n * element, bytes, err);
    if (st) return st;
    laci_read_f32(t->dtype, bytes, 0, n, to + first);
  }
  return LAC_OK;
}
