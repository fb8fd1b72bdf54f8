/* SPDX-License-Identifier: Apache-2.0
 * Lists tar archives: the names of their files, and where these are in the archive. So an archive
 * of archives is read without unpacking, and each file in it can be read at any time, by any
 * thread. */
#ifndef LACI_DATA_ARCHIVE_H
#define LACI_DATA_ARCHIVE_H

#include <stddef.h>

#include "lacuna/status.h"

typedef struct laci_reader laci_reader;

/** A tar archive: the bytes [offset, offset + n) of the file that `reader` reads. */
typedef struct laci_archive {
  const char *name; /* for messages */
  laci_reader *reader;
  size_t offset, n;
} laci_archive;

/** A regular file in an archive, at bytes [offset, offset + n) of the file that holds the archive.
 * The name is valid until visit returns. */
typedef struct laci_archive_member {
  const char *name;
  size_t offset, n;
} laci_archive_member;

typedef lac_status laci_archive_visit(void *context, const laci_archive_member *member,
                                      lac_error *err);

/** Calls visit for each regular file, in the archive's order, until visit fails. Reads only
 * headers. Fails LAC_BAD_FILE if this is no complete tar archive, or if files are not stored in it
 * as they are (compressed, sparse); LAC_UNSUPPORTED if Lacuna was built without libarchive; LAC_IO,
 * LAC_NO_MEMORY; and as visit does. */
LAC_MUST_CHECK lac_status laci_archive_visit_files(const laci_archive *archive,
                                                   laci_archive_visit *visit, void *context,
                                                   lac_error *err);

#endif
