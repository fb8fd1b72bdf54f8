/* SPDX-License-Identifier: Apache-2.0
 * NumPy's array files, version 1, as far as tests need them: little-endian numbers in C order.
 * Floats are written as float64, whatever their type in the network; integers in their own type;
 * bool as bool. */
#ifndef TESTS_TOOLS_NPY_H
#define TESTS_TOOLS_NPY_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "tensor/buf.h"

enum {
  NPY_START = 10,
  NPY_HEADER = 118
}; /* magic, version, length; the text behind it: 128 bytes together */

typedef struct npy_kind {
  const char *text; /* NumPy's name, without the byte order */
  lac_dtype dtype;
} npy_kind;

static const npy_kind npy_kinds[] = {
    {"f2", LAC_DTYPE_F16}, {"f4", LAC_DTYPE_F32}, {"f8", LAC_DTYPE_F64}, {"b1", LAC_DTYPE_BOOL},
    {"u1", LAC_DTYPE_U8},  {"i1", LAC_DTYPE_I8},  {"u2", LAC_DTYPE_U16}, {"i2", LAC_DTYPE_I16},
    {"u4", LAC_DTYPE_U32}, {"i4", LAC_DTYPE_I32}, {"u8", LAC_DTYPE_U64}, {"i8", LAC_DTYPE_I64},
};
enum { NPY_KINDS = sizeof npy_kinds / sizeof npy_kinds[0] };

/** Type and shape from the header's text. */
static inline bool npy_parse(const char *text, laci_type *type) {
  const char *descr = strstr(text, "'descr': '"), *shape = strstr(text, "'shape': (");
  if (!descr || !shape || !strstr(text, "'fortran_order': False")) return false;
  descr += strlen("'descr': '");
  if (*descr != '<' && *descr != '|') return false;
  type->dtype = LAC_DTYPE_NONE;
  for (int at = 0; at < NPY_KINDS; at++) {
    if (strncmp(descr + 1, npy_kinds[at].text, 2) == 0) type->dtype = npy_kinds[at].dtype;
  }
  type->shape = (laci_shape){0};
  for (shape += strlen("'shape': ("); *shape && *shape != ')';) {
    char *end;
    int64_t size = strtoll(shape, &end, 10);
    if (end == shape || size < 0 || type->shape.rank == LACI_MAX_RANK) return false;
    type->shape.dims[type->shape.rank++] = size;
    for (shape = end; *shape == ',' || *shape == ' '; shape++) continue;
  }
  return type->dtype != LAC_DTYPE_NONE;
}

static inline lac_status npy_read(const char *path, laci_buf **buf, lac_error *err) {
  unsigned char start[NPY_START];
  char *text = NULL, *bytes = NULL;
  laci_type type;
  lac_status st = LAC_OK;
  *buf = NULL;
  FILE *file = fopen(path, "rb");
  if (!file) return laci_fail(err, LAC_IO, "%s: cannot be opened", path);
  bool ok =
      fread(start, 1, sizeof start, file) == sizeof start && memcmp(start, "\x93NUMPY\x01", 7) == 0;
  size_t length = ok ? (size_t)start[8] | (size_t)start[9] << 8 : 0;
  text = laci_alloc(length + 1, 1);
  ok = ok && text && fread(text, 1, length, file) == length && npy_parse(text, &type);
  int64_t count = ok ? laci_shape_count(&type.shape) : -1;
  size_t size = count >= 0 ? (size_t)count * lac_dtype_size(type.dtype) : 0;
  bytes = count >= 0 ? laci_alloc(size, 1) : NULL;
  ok = bytes && fread(bytes, 1, size, file) == size;
  if (ok) st = laci_buf_from_bytes(&type, bytes, size, buf, err);
  else st = laci_fail(err, LAC_BAD_FILE, "%s: not an array that this tool reads", path);
  laci_free(text);
  laci_free(bytes);
  (void)fclose(file);
  return st;
}

static inline bool npy_put(FILE *file, const laci_buf *buf) {
  if (buf->f) return fwrite(buf->f, sizeof *buf->f, (size_t)buf->count, file) == (size_t)buf->count;
  size_t size = lac_dtype_size(buf->dtype);
  for (int64_t at = 0; at < buf->count;
       at++) { /* little-endian: an element's first bytes are its low ones */
    if (fwrite(&buf->i[at], 1, size, file) != size) return false;
  }
  return true;
}

static inline lac_status npy_write(const char *path, const laci_buf *buf, lac_error *err) {
  char shape[160] = "", text[NPY_HEADER + 1];
  const char *kind = "f8";
  size_t used = 0;
  for (int at = 0; at < NPY_KINDS && !buf->f; at++) {
    if (npy_kinds[at].dtype == buf->dtype) kind = npy_kinds[at].text;
  }
  for (int axis = 0; axis < buf->shape.rank; axis++) {
    used += (size_t)snprintf(shape + used, sizeof shape - used, "%lld,",
                             (long long)buf->shape.dims[axis]);
  }
  bool single = kind[1] == '1';
  int n = snprintf(text, sizeof text, "{'descr': '%c%s', 'fortran_order': False, 'shape': (%s), }",
                   single ? '|' : '<', kind, shape);
  if (n < 0 || n >= NPY_HEADER)
    return laci_fail(err, LAC_UNSUPPORTED, "%s: a shape too long to write", path);
  memset(text + n, ' ', (size_t)(NPY_HEADER - n));
  text[NPY_HEADER - 1] = '\n';
  unsigned char start[NPY_START] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, NPY_HEADER, 0};
  FILE *file = fopen(path, "wb");
  if (!file) return laci_fail(err, LAC_IO, "%s: cannot be written", path);
  bool ok = fwrite(start, 1, sizeof start, file) == sizeof start &&
            fwrite(text, 1, NPY_HEADER, file) == NPY_HEADER;
  ok = npy_put(file, buf) && ok;
  ok = fclose(file) == 0 && ok;
  return ok ? LAC_OK : laci_fail(err, LAC_IO, "%s: writing failed", path);
}

#endif
