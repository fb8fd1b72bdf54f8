/* SPDX-License-Identifier: Apache-2.0
 * Reads arrays that a caller passes (lacuna/array.h) as rows of samples or of scores. */
#ifndef LACI_API_MODEL_ARRAYS_H
#define LACI_API_MODEL_ARRAYS_H

#include "data/rows.h"
#include "lacuna/array.h"

/** Checks rank and sizes of a caller's array, called `name` in messages, and sets *shape. Fails
 * LAC_BAD_SHAPE. */
LAC_MUST_CHECK lac_status laci_array_read_shape(const lac_array *array, const char *name,
                                                laci_shape *shape, lac_error *err);
/** Checks that array->size_bytes is what the elements of the shape take; shape: the one that
 * laci_array_read_shape returned. Fails LAC_BAD_ARGUMENT. */
LAC_MUST_CHECK lac_status laci_array_check_bytes(const lac_array *array, const char *name,
                                                 const laci_shape *shape, lac_error *err);

/** Describes n arrays as rows; *rows is freed with laci_free. read: reads the elements of arrays
 * that have none in memory; NULL: every array has its elements. Fails LAC_BAD_ARGUMENT (no name, no
 * elements, another number of bytes than the shape takes), LAC_BAD_SHAPE (rank or sizes),
 * LAC_UNSUPPORTED (another element type), LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_arrays_as_rows(const lac_array *arrays, int n, laci_rows_fetch *read,
                                              void *context, laci_rows_memory **rows,
                                              lac_error *err);

#endif
