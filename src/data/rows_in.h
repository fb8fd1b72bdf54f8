/* SPDX-License-Identifier: Apache-2.0
 * Where the rows of an array are: in memory, or in an open file. */
#ifndef LACI_DATA_ROWS_IN_H
#define LACI_DATA_ROWS_IN_H

#include "data/npy.h"
#include "data/rows.h"

typedef struct laci_reader laci_reader;

/* More bytes than any .npy header that NumPy writes has. */
enum { LACI_ROWS_HEADER_BYTES = 1 << 16 };

/** Where a .npy file is: bytes [offset, offset + size_bytes) of the file that `reader` reads.
 * `first` holds its first n_first bytes. The reader must outlive the rows; `first` need not. */
typedef struct laci_rows_source {
  const char *name;
  laci_reader *reader;
  size_t offset, size_bytes;
  const uint8_t *first;
  size_t n_first;
} laci_rows_source;

/** Opens the array of a .npy file so that single rows are read from the file. *rows is NULL, with
 * LAC_OK, if the file's format does not allow that. */
LAC_MUST_CHECK lac_status laci_rows_open_in_file(const laci_rows_source *source, laci_rows **rows,
                                                 lac_error *err);
/** Opens an array in memory to read its rows; takes ownership of the array on success. */
LAC_MUST_CHECK lac_status laci_rows_from_array(const char *name, laci_npy *take, laci_rows **rows,
                                               lac_error *err);

#endif
