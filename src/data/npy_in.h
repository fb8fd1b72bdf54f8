/* SPDX-License-Identifier: Apache-2.0
 * Parsing and writing the header of a .npy file. */
#ifndef LACI_DATA_NPY_IN_H
#define LACI_DATA_NPY_IN_H

#include "data/npy.h"

/** The parsed header of a .npy file. */
typedef struct laci_npy_header {
  laci_type type;
  bool big_endian;
  bool fortran_order;  /* elements are in Fortran order: the first axis is contiguous */
  bool opaque;         /* the elements are untyped bytes ('V1'): `type` is u8 until the caller gives
                          another one */
  size_t offset_bytes; /* offset of the first element in the file */
} laci_npy_header;

/** Parses the header of a .npy file: magic, version, length and text. Fails LAC_BAD_FILE,
 * LAC_UNSUPPORTED. */
LAC_MUST_CHECK lac_status laci_npy_header_parse(const char *name, const uint8_t *bytes,
                                                size_t size_bytes, laci_npy_header *header,
                                                lac_error *err);

/** Does NumPy store this type as untyped bytes ('V1')? */
bool laci_npy_is_untyped(lac_dtype dtype);
/** Fails LAC_UNSUPPORTED with the text that the file has untyped bytes whose type is not known. */
LAC_MUST_CHECK lac_status laci_npy_fail_untyped(const char *name, lac_error *err);

enum { LACI_NPY_HEADER_BYTES = 512 }; /* more bytes than any header for rank 8 has */

/** Writes the header of a .npy file, from the magic to the final newline, as numpy.save does;
 * *size_bytes is a multiple of 64. Fails LAC_UNSUPPORTED, LAC_BAD_SHAPE. */
LAC_MUST_CHECK lac_status laci_npy_header_write(const laci_type *type,
                                                char text[LACI_NPY_HEADER_BYTES],
                                                size_t *size_bytes, lac_error *err);

#endif
