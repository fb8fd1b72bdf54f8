/* SPDX-License-Identifier: Apache-2.0
 * Reads and writes .npy files. The header says how the elements are stored; they are converted to
 * little-endian elements in C order. The data's size is checked against the shape before any
 * allocation. */
#include "data/npy.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/reader.h"
#include "base/writer.h"
#include "data/npy_in.h"

/* ---- Reading ---- */

/** Copies elements from Fortran order into C order, one line along the last axis at a time.
 * element: bytes of an element. */
static void copy_from_fortran(const laci_shape *shape, size_t element, const uint8_t *from,
                              uint8_t *to) {
  int64_t stride[LACI_MAX_RANK], at[LACI_MAX_RANK] = {0}, offset = 0;
  int last = shape->rank - 1;
  for (int axis = 0; axis <= last; axis++) {
    stride[axis] = axis ? stride[axis - 1] * shape->dims[axis - 1] : 1;
  }
  for (;;) {
    for (int64_t k = 0; k < shape->dims[last]; k++, to += element) {
      memcpy(to, from + (size_t)(offset + k * stride[last]) * element, element);
    }
    int axis = last - 1;
    for (; axis >= 0 && at[axis] == shape->dims[axis] - 1; axis--) {
      offset -= at[axis] * stride[axis];
      at[axis] = 0;
    }
    if (axis < 0) return;
    at[axis]++;
    offset += stride[axis];
  }
}

static void swap_bytes(uint8_t *bytes, size_t size_bytes, size_t element) {
  for (size_t begin = 0; begin < size_bytes; begin += element) {
    for (size_t low = begin, high = begin + element - 1; low < high; low++, high--) {
      uint8_t byte = bytes[low];
      bytes[low] = bytes[high];
      bytes[high] = byte;
    }
  }
}

/** Converts the elements of a file to C order and little-endian; their total size was checked
 * before. */
static void convert_elements(const laci_npy_header *header, const uint8_t *from, laci_npy *array) {
  size_t element = lac_dtype_size(header->type.dtype);
  if (array->size_bytes == 0) return;
  if (header->fortran_order && header->type.shape.rank > 1) {
    copy_from_fortran(&header->type.shape, element, from, array->bytes);
  } else {
    memcpy(array->bytes, from, array->size_bytes);
  }
  if (header->big_endian) swap_bytes(array->bytes, array->size_bytes, element);
  if (header->type.dtype != LAC_DTYPE_BOOL) return;
  for (size_t at = 0; at < array->size_bytes; at++) array->bytes[at] = array->bytes[at] != 0;
}

/** Parses a .npy file. opaque: the element type to give to untyped bytes ('V1'); NONE: not
 * known. */
static lac_status parse_npy_bytes(const char *name, const laci_file_bytes *file, lac_dtype opaque,
                                  laci_npy *array, lac_error *err) {
  const uint8_t *bytes = file->bytes;
  const size_t size_bytes = file->size_bytes;
  laci_npy_header header;
  char text[256];
  *array = (laci_npy){0};
  lac_status st = laci_npy_header_parse(name, bytes, size_bytes, &header, err);
  if (st) return st;
  if (header.opaque && !laci_npy_is_untyped(opaque)) return laci_npy_fail_untyped(name, err);
  if (header.opaque) header.type.dtype = opaque;
  int64_t count = laci_shape_count(&header.type.shape);
  size_t found = size_bytes - header.offset_bytes, wanted = 0;
  if (count < 0 ||
      __builtin_mul_overflow((size_t)count, lac_dtype_size(header.type.dtype), &wanted) ||
      wanted != found) {
    return laci_fail(err, LAC_BAD_FILE, "%s: %zu bytes of data, not what %s %s takes", name, found,
                     lac_dtype_name(header.type.dtype),
                     laci_shape_text(&header.type.shape, text, sizeof text));
  }
  uint8_t *buffer = laci_alloc(wanted, 1);
  if (!buffer) return laci_fail_memory(err, name);
  *array = (laci_npy){.type = header.type, .size_bytes = wanted, .bytes = buffer};
  convert_elements(&header, bytes + header.offset_bytes, array);
  return LAC_OK;
}

lac_status laci_npy_parse(const char *name, const uint8_t *bytes, size_t size_bytes,
                          laci_npy *array, lac_error *err) {
  const laci_file_bytes file = {.bytes = (uint8_t *)(uintptr_t)bytes, .size_bytes = size_bytes};
  return parse_npy_bytes(name, &file, LAC_DTYPE_NONE, array, err);
}

lac_status laci_npy_read_as(const char *path, lac_dtype dtype, laci_npy *array, lac_error *err) {
  laci_file_bytes file;
  *array = (laci_npy){0};
  lac_status st = laci_file_bytes_read(path, &file, err);
  if (!st) st = parse_npy_bytes(path, &file, dtype, array, err);
  laci_file_bytes_clear(&file);
  return st;
}

lac_status laci_npy_read(const char *path, laci_npy *array, lac_error *err) {
  return laci_npy_read_as(path, LAC_DTYPE_NONE, array, err);
}

void laci_npy_clear(laci_npy *array) {
  laci_free(array->bytes);
  *array = (laci_npy){0};
}

/* ---- Writing ---- */

lac_status laci_npy_append_header(laci_writer *writer, const laci_type *type, lac_error *err) {
  char text[LACI_NPY_HEADER_BYTES];
  size_t n = 0;
  lac_status st = laci_npy_header_write(type, text, &n, err);
  return st ? st : laci_writer_append(writer, text, n, err);
}

static lac_status append_header_and_elements(laci_writer *writer, const laci_type *type,
                                             const void *bytes, lac_error *err) {
  lac_status st = laci_npy_append_header(writer, type, err);
  if (st) return st;
  int64_t count = laci_shape_count(&type->shape);
  if (count < 0) return laci_fail(err, LAC_BAD_SHAPE, "more elements than can be counted");
  return laci_writer_append(writer, bytes, (size_t)count * lac_dtype_size(type->dtype), err);
}

lac_status laci_npy_write(const char *path, const laci_type *type, const void *bytes, bool force,
                          lac_error *err) {
  laci_write_options options = {.force = force};
  laci_writer *writer = NULL;
  lac_status st = laci_writer_open(path, &options, &writer, err);
  if (st) return st;
  st = append_header_and_elements(writer, type, bytes, err);
  if (st == LAC_UNSUPPORTED || st == LAC_BAD_SHAPE) st = laci_fail_with_prefix(err, st, "%s", path);
  if (!st) st = laci_writer_finish(writer, err);
  if (!st) st = laci_writer_commit(writer, err);
  laci_writer_destroy(writer);
  return st;
}
