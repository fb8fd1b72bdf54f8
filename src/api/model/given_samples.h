/* SPDX-License-Identifier: Apache-2.0
 * A caller's samples in memory (lac_samples), as src/data reads them. */
#ifndef LACI_API_MODEL_GIVEN_SAMPLES_H
#define LACI_API_MODEL_GIVEN_SAMPLES_H

#include "lacuna/status.h"

typedef struct lac_samples lac_samples;
typedef struct laci_given_samples laci_given_samples;
typedef struct laci_rows_memory laci_rows_memory;

/** Describes a caller's samples; they may be read by several threads. Fails as
 * laci_arrays_as_rows, LAC_UNSUPPORTED (a field that this library does not know). */
LAC_MUST_CHECK lac_status laci_given_samples_open(const lac_samples *samples,
                                                  laci_given_samples **own, lac_error *err);
void laci_given_samples_close(laci_given_samples *own); /* NULL is fine */
/** Returns the arrays of the samples, *n of them; NULL and 0 where own is NULL. */
const laci_rows_memory *laci_given_samples_rows(const laci_given_samples *own, int *n);

/** What messages call samples in memory. */
extern const char laci_memory_name[];
/** Checks that a public function has either a path or samples in memory. Fails LAC_BAD_ARGUMENT. */
LAC_MUST_CHECK lac_status laci_check_data_source(const char *function, const char *data,
                                                 const lac_samples *memory, lac_error *err);

#endif
