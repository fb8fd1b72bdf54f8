/* SPDX-License-Identifier: Apache-2.0
 * Reading files that are not ours: a model, its external data, packs, images, checkpoints.
 *
 * No file is mapped: another program may cut a file short at any moment, and a mapping would then
 * be the end of this process (SIGBUS). A reader has addresses, as many as the file has bytes, but
 * no memory at them at first: parts are copied to the caller (fetch), or brought to their
 * addresses in memory of our own (look, materialise). Addresses without bytes cannot be read;
 * a caller that does so by mistake learns it at once. So a large tensor can be known by where it
 * would be, long before anybody needs it, and if ever.
 *
 * After each read the file is looked at again: where it was cut, or is newer than when it was
 * opened, that is LAC_IO, "FILE: was 100 bytes long, and was cut to 7 meanwhile". What has been
 * brought stays as it was read. A file that another one replaces by a rename is read to its end.
 *
 * Fetching and materialising: any thread, and several at once. Everything else: one thread. */
#ifndef LACI_BASE_READER_H
#define LACI_BASE_READER_H

#include "base/file.h"

typedef struct laci_reader laci_reader;

/** Fails LAC_NOT_FOUND, LAC_BAD_FILE for what is no regular file, LAC_IO, LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_reader_open(const char *path, laci_reader **reader, lac_error *err);

/** A copy of the bytes; all are there. name: for messages. */
LAC_MUST_CHECK lac_status laci_reader_open_memory(const char *name, const void *bytes,
                                                  size_t size_bytes, laci_reader **reader,
                                                  lac_error *err);

/** A file that is made from another one. */
typedef struct laci_origin {
  const char *name; /* for messages */
  size_t size_bytes;
  laci_file_id id; /* of the file that it is made from */
  /** Copies a part. Any thread, and several at once. */
  lac_status (*fetch)(void *context, size_t offset, size_t size_bytes, void *to, lac_error *err);
  /** What can be had at no cost to its places in `to`, which has the file's size and holds zeros.
   */
  lac_status (*outline)(void *context, uint8_t *to, lac_error *err);
  /** All bytes. */
  lac_status (*whole)(void *context, uint8_t *to, lac_error *err);
  void (*close)(void *context); /* NULL: nothing to close */
  void *context;
} laci_origin;

/** Takes the origin, on success. */
LAC_MUST_CHECK lac_status laci_reader_open_origin(const laci_origin *origin, laci_reader **reader,
                                                  lac_error *err);
/** NULL is fine. */
void laci_reader_close(laci_reader *reader);

size_t laci_reader_size(const laci_reader *reader);
/** NULL: it came from memory. */
const laci_file_id *laci_reader_id(const laci_reader *reader);
/** Where the bytes are, or would be; NULL for an empty file. */
const uint8_t *laci_reader_bytes(const laci_reader *reader);
/** Whether an address is one of the reader's. */
bool laci_reader_has(const laci_reader *reader, const void *address);

/** Gives the descriptor back: a process has few. Each read opens the file again, which has to be
 * the same one. */
void laci_reader_park(laci_reader *reader);

/** From now on, what is fetched has to be what was there when it was fetched first, else it is
 * LAC_IO: for a file whose checksums are computed once. Memory: 8 bytes for each 64 KiB. */
LAC_MUST_CHECK lac_status laci_reader_watch(laci_reader *reader, lac_error *err);

/** Is a part, which must be inside the file, at its address, and will it stay? Any thread. */
bool laci_reader_is_there(laci_reader *reader, size_t offset, size_t size_bytes);

/** Copies a part, which must be inside the file: from memory if it is there, else from the file. */
LAC_MUST_CHECK lac_status laci_reader_fetch(laci_reader *reader, size_t offset, size_t size_bytes,
                                            void *to, lac_error *err);

/** Brings a part, which must be inside the file, to its address, until laci_reader_release. Of an
 * origin: its outline. */
LAC_MUST_CHECK lac_status laci_reader_look(laci_reader *reader, size_t offset, size_t size_bytes,
                                           lac_error *err);
/** What was looked at goes. What was materialised stays. */
void laci_reader_release(laci_reader *reader);

/** Brings a part to its address for good; an origin's: all of it. Others may be fetching. */
LAC_MUST_CHECK lac_status laci_reader_materialise(laci_reader *reader, size_t offset,
                                                  size_t size_bytes, lac_error *err);

/* ---- Whole files ---- */

/** A regular file's bytes, in memory of our own. An empty file has bytes == NULL. */
typedef struct laci_file_bytes {
  const uint8_t *bytes;
  size_t size_bytes;
  laci_file_id id;
  laci_reader *reader; /* owns the bytes */
} laci_file_bytes;

/** Fails as laci_reader_open does; *file is empty then. */
LAC_MUST_CHECK lac_status laci_file_bytes_read(const char *path, laci_file_bytes *file,
                                               lac_error *err);
/** Makes *file empty again; an empty one is fine. */
void laci_file_bytes_clear(laci_file_bytes *file);

#endif
