/* SPDX-License-Identifier: Apache-2.0
 * NumPy's array files (.npy): the form in which users hand over inputs and get outputs back.
 *
 * An array in memory is always the same thing: little-endian elements in C order, whatever the file
 * held. laci_buf_from_bytes (tensor/buf.h) and laci_read_f take exactly that. Next: npy_header.c,
 * the grammar of the header. */
#ifndef LACI_DATA_NPY_H
#define LACI_DATA_NPY_H

#include "tensor/shape.h"

typedef struct laci_writer laci_writer;

/** An array of its own memory. Zero-initialised is empty. */
typedef struct laci_npy {
  laci_type type; /* the shape is wholly known */
  size_t size_bytes;
  uint8_t *bytes; /* little-endian, C order; a bool is 0 or 1 */
} laci_npy;

/** Reads versions 1 to 3, either byte order, C or Fortran order; f8e5m2 f16 bf16 f32 f64, integers
 * of 8 bits and more, bool, rank 0 to 8. Fails LAC_BAD_FILE for a header that NumPy would not have
 * written and for data that are fewer or more than the shape wants (one array a file),
 * LAC_UNSUPPORTED for other element types (text, records, objects, complex) and higher ranks,
 * LAC_NOT_FOUND, LAC_IO, LAC_NO_MEMORY; *array is then empty. Allocates no more than the file
 * holds. */
LAC_MUST_CHECK lac_status laci_npy_read(const char *path, laci_npy *array, lac_error *err);

/** The same for a network's input of type dtype, which NumPy may not know: it stores ml_dtypes'
 * int4 and float8_e4m3fn as a byte of anything ('V1'), and these are then of that type. The other
 * two fail LAC_UNSUPPORTED for such a file. */
LAC_MUST_CHECK lac_status laci_npy_read_as(const char *path, lac_dtype dtype, laci_npy *array,
                                           lac_error *err);

/** The same from bytes at hand; `name` is put in the error texts. */
LAC_MUST_CHECK lac_status laci_npy_parse(const char *name, const uint8_t *bytes, size_t size_bytes,
                                         laci_npy *array, lac_error *err);

/** Makes *array empty again; an empty one is fine. */
void laci_npy_clear(laci_npy *array);

/** Writes elements that are in C order, in one step (base/file.h); the bytes are those that
 * numpy.save writes. All types that the reader knows; NumPy has no bf16 of its own, and stores that
 * of the package ml_dtypes as two bytes of anything, '<V2', and types of 8 bits and fewer as one,
 * '<V1' (also f8e5m2: what numpy.save calls it, numpy.load does not read). Fails LAC_UNSUPPORTED
 * for other types, LAC_BAD_SHAPE for a shape that is not wholly known, and as a writer does. */
LAC_MUST_CHECK lac_status laci_npy_write(const char *path, const laci_type *type, const void *bytes,
                                         bool force, lac_error *err);

/** Only the header, for arrays that come part by part: the caller appends the elements, which are
 * as many as the shape says. */
LAC_MUST_CHECK lac_status laci_npy_append_header(laci_writer *writer, const laci_type *type,
                                                 lac_error *err);

#endif
