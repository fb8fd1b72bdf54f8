/* SPDX-License-Identifier: Apache-2.0
 * Replaces archive.c if Lacuna is built without libarchive (-DLAC_ARCHIVE=OFF): reading any archive
 * fails. */
#include "base/error.h"
#include "data/archive.h"

lac_status laci_archive_visit_files(const laci_archive *archive, laci_archive_visit *visit,
                                    void *context, lac_error *err) {
  (void)visit, (void)context;
  return laci_fail(err, LAC_UNSUPPORTED,
                   "%s: this Lacuna was built without libarchive; unpacked folders need none",
                   archive->name);
}
