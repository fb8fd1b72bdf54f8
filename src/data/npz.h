/* SPDX-License-Identifier: Apache-2.0
 * NumPy's archives of arrays (.npz): a zip archive of .npy files, stored (numpy.savez) or deflated
 * (numpy.savez_compressed). What a small file claims to hold is checked before it is believed:
 * zip.h says how, and an array has exactly the bytes that its shape wants. */
#ifndef LACI_DATA_NPZ_H
#define LACI_DATA_NPZ_H

#include "data/rows.h"

typedef struct laci_npz laci_npz;

/** Opens a .npz archive and lists its arrays. Fails LAC_BAD_FILE for anything but a complete
 * archive of .npy files, LAC_UNSUPPORTED, LAC_NOT_FOUND, LAC_IO, LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_npz_open(const char *path, laci_npz **npz, lac_error *err);
/** Opens an archive like laci_npz_open, from bytes in memory, which are copied; `name` is used in
 * error texts. */
LAC_MUST_CHECK lac_status laci_npz_open_memory(const char *name, const void *bytes,
                                               size_t size_bytes, laci_npz **npz, lac_error *err);
void laci_npz_close(laci_npz *npz); /* NULL is fine */

int laci_npz_count(const laci_npz *npz);
/** Returns the name, without ".npy", of the array with index `at`; it lives as long as the
 * archive. */
const char *laci_npz_name(const laci_npz *npz, int at);
/** Opens the array with index `at`; the archive must outlive the rows. A small deflated array is
 * read as a whole and counted in the budget; a larger one (with a budget more than 128 MiB of an
 * archive, without one more than a quarter of the memory) is decompressed in parts, when its rows
 * are read. A stored one is read once to check its checksum. Fails as laci_npy_parse,
 * LAC_MEMORY_LIMIT, LAC_IO. */
LAC_MUST_CHECK lac_status laci_npz_open_rows(laci_npz *npz, int at, laci_budget *budget,
                                             laci_rows **rows, lac_error *err);

#endif
