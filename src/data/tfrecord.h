/* SPDX-License-Identifier: Apache-2.0
 * TFRecords: files of byte strings, one after the other, each with two checksums:
 *
 *     length u64   masked crc32c of the length u32   bytes   masked crc32c of the bytes u32
 *
 * all little-endian. Next: example.h, the content of such a string; records.c, the set of them. */
#ifndef LACI_DATA_TFRECORD_H
#define LACI_DATA_TFRECORD_H

#include <stddef.h>
#include <stdint.h>

#include "lacuna/status.h"

typedef struct laci_reader laci_reader;
typedef struct laci_writer laci_writer;

/** Appends a record of n bytes to the file. Fails as a writer does. */
LAC_MUST_CHECK lac_status laci_tfrecord_append(laci_writer *writer, const void *bytes, size_t n,
                                               lac_error *err);

/** The position of a record in its file. */
typedef struct laci_tfrecord {
  size_t at;   /* offset of the record in its file; the record begins with its length */
  size_t data; /* offset of the record's data */
  size_t n;    /* number of bytes of the record's data */
  size_t next; /* offset of the next record; equal to the file's size if there is none */
} laci_tfrecord;

/** Finds the record at offset `at`, which is inside the file; only the record's length is read and
 * checked. Fails LAC_BAD_FILE for a record that is cut off or whose length is damaged,
 * LAC_UNSUPPORTED for a compressed file, LAC_IO; the text has the file's name and the offset. Any
 * thread. */
LAC_MUST_CHECK lac_status laci_tfrecord_find(const char *path, laci_reader *reader, size_t at,
                                             laci_tfrecord *record, lac_error *err);
/** Reads the data of a record and checks its checksum. The caller frees *bytes with laci_free.
 * Fails LAC_BAD_FILE, LAC_IO, LAC_NO_MEMORY. Any thread. */
LAC_MUST_CHECK lac_status laci_tfrecord_read(const char *path, laci_reader *reader,
                                             const laci_tfrecord *record, uint8_t **bytes,
                                             lac_error *err);

#endif
