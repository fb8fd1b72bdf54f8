/* SPDX-License-Identifier: Apache-2.0
 * NumPy's array files (.npy), in which users give inputs and get outputs.
 *
 * An array in memory always has little-endian elements in C order, whatever the file had.
 * laci_buf_from_bytes (tensor/buf.h) and laci_read_f64 read this form. Next: npy_header.c, the
 * grammar of the header. */
#ifndef LACI_DATA_NPY_H
#define LACI_DATA_NPY_H

#include "tensor/shape.h"

typedef struct laci_writer laci_writer;

/** An array that owns its memory. Zero-initialized is empty. */
typedef struct laci_npy {
  laci_type type; /* element type and shape, all of whose sizes are known */
  size_t size_bytes;
  uint8_t *bytes; /* the elements, little-endian, in C order; a bool is 0 or 1 */
} laci_npy;

/** Reads a .npy file of version 1 to 3, in either byte order, in C or Fortran order, of rank 0 to
 * 8. Element types: f8e5m2 f16 bf16 f32 f64, integers of 8 bits and more, bool. Fails LAC_BAD_FILE
 * for a header that NumPy would not have written, and if the data are fewer or more than the shape
 * wants. Fails LAC_UNSUPPORTED for other element types (text, records, objects, complex) and higher
 * ranks. Fails LAC_NOT_FOUND, LAC_IO, LAC_NO_MEMORY. *array is empty after a failure. Allocates no
 * more than the file holds. */
LAC_MUST_CHECK lac_status laci_npy_read(const char *path, laci_npy *array, lac_error *err);

/** Reads like laci_npy_read, for a network's input of type dtype. NumPy stores types that it does
 * not know, int4 and float8_e4m3fn of the package ml_dtypes, as untyped bytes ('V1'); these are
 * then read as dtype. laci_npy_read and laci_npy_parse fail LAC_UNSUPPORTED for such a file. */
LAC_MUST_CHECK lac_status laci_npy_read_as(const char *path, lac_dtype dtype, laci_npy *array,
                                           lac_error *err);

/** Reads like laci_npy_read, from bytes in memory; `name` is used in error texts. */
LAC_MUST_CHECK lac_status laci_npy_parse(const char *name, const uint8_t *bytes, size_t size_bytes,
                                         laci_npy *array, lac_error *err);

/** Makes *array empty again; an empty one is fine. */
void laci_npy_clear(laci_npy *array);

/** Writes an array in C order as a .npy file, atomically (base/file.h), with the bytes that
 * numpy.save writes. It supports all types that the reader does. NumPy has no bf16 and no types of
 * fewer than 8 bits; it stores those of ml_dtypes untyped, bf16 as '<V2', the others as '<V1' (also
 * f8e5m2: numpy.load cannot read the name that numpy.save gives it). Fails LAC_UNSUPPORTED for
 * other types, LAC_BAD_SHAPE for a shape with unknown sizes, and as a writer does. */
LAC_MUST_CHECK lac_status laci_npy_write(const char *path, const laci_type *type, const void *bytes,
                                         bool force, lac_error *err);

/** Writes only the header of a .npy file; the caller then appends all elements of the shape. */
LAC_MUST_CHECK lac_status laci_npy_append_header(laci_writer *writer, const laci_type *type,
                                                 lac_error *err);

#endif
