/* SPDX-License-Identifier: Apache-2.0
 * NumPy's archives of arrays (.npz): a zip archive of .npy files, stored (numpy.savez) or deflated
 * (numpy.savez_compressed). What a small file claims to hold is checked before it is believed:
 * zip.h says how, and an array has exactly the bytes that its shape wants. */
#ifndef LACI_DATA_NPZ_H
#define LACI_DATA_NPZ_H

#include "data/rows.h"

typedef struct laci_npz laci_npz;

/** Lists what is in it. Fails LAC_BAD_FILE for what is no whole archive of .npy files,
 * LAC_UNSUPPORTED, LAC_NOT_FOUND, LAC_IO, LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_npz_open(const char *path, laci_npz **npz, lac_error *err);
/** The same of a copy of bytes at hand; `name` is put in the texts. */
LAC_MUST_CHECK lac_status laci_npz_open_memory(const char *name, const void *bytes,
                                               size_t size_bytes, laci_npz **npz, lac_error *err);
void laci_npz_close(laci_npz *npz); /* NULL is fine */

int laci_npz_count(const laci_npz *npz);
/** Of array `at`, without ".npy". Lives as long as the archive. */
const char *laci_npz_name(const laci_npz *npz, int at);
/** Array `at`; the archive must outlive the rows. A deflated one is added to the budget (NULL: no
 * limit) and read as a whole; a stored one is read once, for its checksum. Fails as laci_npy_parse,
 * LAC_MEMORY_LIMIT, LAC_IO. */
LAC_MUST_CHECK lac_status laci_npz_rows(const laci_npz *npz, int at, laci_budget *budget,
                                        laci_rows **rows, lac_error *err);

#endif
