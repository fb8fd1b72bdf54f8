/* SPDX-License-Identifier: Apache-2.0
 * The engines' exact tensors from and to NumPy's array files, through data/npy.h. Floats are
 * written as float64, whatever their type in the network; integers in their own type; bool as bool.
 */
#ifndef TESTS_TOOLS_NPY_H
#define TESTS_TOOLS_NPY_H

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/npy.h"
#include "tensor/buf.h"

static inline lac_status npy_read(const char *path, laci_buf **buf, lac_error *err) {
  laci_npy array = {0};
  *buf = NULL;
  lac_status st = laci_npy_read(path, &array, err);
  if (!st) st = laci_buf_from_bytes(&array.type, array.bytes, array.size_bytes, buf, err);
  laci_npy_clear(&array);
  return st;
}

static inline lac_status npy_write(const char *path, const laci_buf *buf, lac_error *err) {
  const laci_type type = {.dtype = buf->f ? LAC_DTYPE_F64 : buf->dtype, .shape = buf->shape};
  if (buf->f) return laci_npy_write(path, &type, buf->f, true, err);
  const size_t size = lac_dtype_size(type.dtype);
  char *bytes = laci_alloc((size_t)buf->count, size);
  if (!bytes) return laci_fail_memory(err, path);
  for (int64_t at = 0; at < buf->count;
       at++) { /* little-endian: the first bytes are the low ones */
    memcpy(bytes + (size_t)at * size, &buf->i[at], size);
  }
  lac_status st = laci_npy_write(path, &type, bytes, true, err);
  laci_free(bytes);
  return st;
}

#endif
