/* SPDX-License-Identifier: Apache-2.0
 * An array of samples, whose first axis counts the samples. If the file's format allows it (C
 * order, little-endian, not deflated), only requested rows are read into memory. Other arrays are
 * read as a whole. Next: npz.h, samples.h. */
#ifndef LACI_DATA_ROWS_H
#define LACI_DATA_ROWS_H

#include "tensor/shape.h"

typedef struct laci_budget laci_budget;
typedef struct laci_rows laci_rows;

/** Opens a .npy file to read rows of its array. An array that must be read as a whole is counted in
 * the budget (NULL: the default limit of memory) and has to fit. Fails as laci_npy_read,
 * LAC_MEMORY_LIMIT. */
LAC_MUST_CHECK lac_status laci_rows_open(const char *path, laci_budget *budget, laci_rows **rows,
                                         lac_error *err);
/** A caller's function that copies row `row` of an array to `to`, with all its elements in the
 * array's type. */
typedef lac_status laci_rows_fetch(void *context, const char *name, int64_t row, void *to,
                                   lac_error *err);

/** A caller's array: in memory, or delivered row by row by a function. */
typedef struct laci_rows_memory {
  const char *name;
  laci_type type;         /* floats or integers; all sizes are known, and their product fits */
  const void *bytes;      /* the elements in C order without gaps, borrowed; NULL: `fetch` reads the
                             rows */
  laci_rows_fetch *fetch; /* reads a row; laci_rows_read calls it from one thread at a time */
  void *context;
} laci_rows_memory;

/** Opens a caller's array, whose type the caller has checked. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_rows_open_memory(const laci_rows_memory *memory, laci_rows **rows,
                                                lac_error *err);
void laci_rows_close(laci_rows *rows); /* NULL is fine */

/** Returns the array's source, for messages: "x.npy", "data.npz: x". */
const char *laci_rows_name(const laci_rows *rows);
/** Returns the array's type; all sizes are known, rank 0 to 8. */
const laci_type *laci_rows_type(const laci_rows *rows);
/** Returns the number of elements of a row; an array of rank 0 has one row of one element. */
int64_t laci_rows_elements_per_row(const laci_rows *rows);

/** Reads row `row`, 0 <= row < dims[0], of an array of floats (laci_rows_read_f32) or of integers
 * (laci_rows_read_i64); the wrong function fails LAC_BAD_ARGUMENT. out: [elements of a row]. Fails
 * LAC_IO, LAC_NO_MEMORY. Any thread. */
LAC_MUST_CHECK lac_status laci_rows_read_f32(const laci_rows *rows, int64_t row, float *out,
                                             lac_error *err);
LAC_MUST_CHECK lac_status laci_rows_read_i64(const laci_rows *rows, int64_t row, int64_t *out,
                                             lac_error *err);
/** Can parts of the array other than its rows be read? A caller's function delivers only rows. */
bool laci_rows_have_parts(const laci_rows *rows);
/** Reads n elements from the array's element with index `first` on, in C order: floats as float,
 * integers as int64. Fails LAC_IO, LAC_NO_MEMORY. Any thread. */
LAC_MUST_CHECK lac_status laci_rows_read_part(const laci_rows *rows, int64_t first, int64_t n,
                                              void *out, lac_error *err);
/** Reads a row of an array of U8. Fails as the functions above. */
LAC_MUST_CHECK lac_status laci_rows_read_u8(const laci_rows *rows, int64_t row, uint8_t *out,
                                            lac_error *err);
/** Checks that the n floats of the sample with index `at` are finite, since others would make sums
 * over all samples useless. Fails LAC_BAD_VALUE. */
LAC_MUST_CHECK lac_status laci_rows_check_finite(const laci_rows *rows, int64_t at,
                                                 const float *sample, int64_t n, lac_error *err);

#endif
