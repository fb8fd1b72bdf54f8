/* SPDX-License-Identifier: Apache-2.0
 * Reads files of users: models, external data, packs, images, checkpoints.
 *
 * No file is mapped: another program may truncate a file at any moment, and access to a mapping
 * would then end this process (SIGBUS). A reader reserves an address for every byte of the file,
 * but no memory at first. Parts are copied to the caller (fetch), or read into memory at their
 * addresses (load, materialise). Access to other addresses crashes at once, so a mistake is found
 * early. So a large tensor has an address long before its bytes are read, if they ever are.
 *
 * After each read the file is checked again: if it was truncated, or is newer than when it was
 * opened, that is LAC_IO, "FILE: was 100 bytes long, and was cut to 7 meanwhile". Bytes that were
 * read before stay in memory. A file that another one replaces by a rename can be read to its end.
 *
 * Fetching and materialising: any thread, and several at once. Everything else: one thread. */
#ifndef LACI_BASE_READER_H
#define LACI_BASE_READER_H

#include "base/file.h"

typedef struct laci_reader laci_reader;

/** Opens a regular file. Fails LAC_NOT_FOUND, LAC_BAD_FILE for anything else, LAC_IO,
 * LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_reader_open(const char *path, laci_reader **reader, lac_error *err);

/** Opens a reader over a copy of the bytes, all of which are in memory. name: for messages. */
LAC_MUST_CHECK lac_status laci_reader_open_memory(const char *name, const void *bytes,
                                                  size_t size_bytes, laci_reader **reader,
                                                  lac_error *err);

/** A file whose bytes are delivered by functions. It is either a virtual file, which is computed
 * from another file, or a file of the caller's (outline and write_all are NULL), which is read part
 * by part like a real file. */
typedef struct laci_origin {
  const char *name; /* for messages */
  size_t size_bytes;
  laci_file_id id; /* identity of the file from which the content is computed, or of which it is a
                      part; zero: no such file */
  /** Copies size_bytes bytes of the file, from offset on, to `to`. Several threads may call it at
   * once. */
  lac_status (*fetch)(void *context, size_t offset, size_t size_bytes, void *to, lac_error *err);
  /** Writes the parts that need no computation to their places in `to`, which has the file's size
   * and holds zeros.
   */
  lac_status (*outline)(void *context, uint8_t *to, lac_error *err);
  /** Writes the complete content of the file to `to`. */
  lac_status (*write_all)(void *context, uint8_t *to, lac_error *err);
  void (*close)(void *context); /* NULL: nothing to close */
  void *context;
} laci_origin;

/** Opens a reader over a file whose bytes are delivered by functions; takes ownership of the origin
 * on success. Fails LAC_UNSUPPORTED for a size of more than 1 TiB. */
LAC_MUST_CHECK lac_status laci_reader_open_callbacks(const laci_origin *origin,
                                                     laci_reader **reader, lac_error *err);
/** Closes the reader; the addresses of its bytes become invalid. NULL is fine. */
void laci_reader_close(laci_reader *reader);

size_t laci_reader_size(const laci_reader *reader);
/** Returns the file's identity; NULL: it was opened from memory. */
const laci_file_id *laci_reader_id(const laci_reader *reader);
/** Returns the address of the first byte, even if it was not read yet; NULL for an empty file. */
const uint8_t *laci_reader_bytes(const laci_reader *reader);
/** Is it the address of a byte of the reader's file? */
bool laci_reader_contains(const laci_reader *reader, const void *address);

/** Closes the file's descriptor, since a process may have only a limited number. Each later read
 * opens the file again, and fails unless it is the same file. */
void laci_reader_close_descriptor(laci_reader *reader);

/** Makes each later read of a part fail LAC_IO if its bytes differ from those of the first read:
 * for a file whose checksums are computed once. Memory: 8 bytes for each 64 KiB, at most 8 MiB. */
LAC_MUST_CHECK lac_status laci_reader_watch_for_changes(laci_reader *reader, lac_error *err);

/** Is a part, which must be inside the file, in memory at its address, and will it stay there? Any
 * thread. */
bool laci_reader_is_loaded(laci_reader *reader, size_t offset, size_t size_bytes);

/** Copies a part, which must be inside the file: from memory if it is there, else from the file. */
LAC_MUST_CHECK lac_status laci_reader_copy_range(laci_reader *reader, size_t offset,
                                                 size_t size_bytes, void *to, lac_error *err);

/** Reads a part, which must be inside the file, into memory at its address; it stays there until
 * laci_reader_release_loaded. For a virtual file, only the outline is written. */
LAC_MUST_CHECK lac_status laci_reader_load_range(laci_reader *reader, size_t offset,
                                                 size_t size_bytes, lac_error *err);
/** Frees the memory of laci_reader_load_range, but not that of laci_reader_materialise_range. */
void laci_reader_release_loaded(laci_reader *reader);

/** Reads a part into memory at its address permanently; for a virtual file, reads the whole file.
 * Other threads may fetch meanwhile. */
LAC_MUST_CHECK lac_status laci_reader_materialise_range(laci_reader *reader, size_t offset,
                                                        size_t size_bytes, lac_error *err);

/* ---- Whole files ---- */

/** The bytes of a regular file in memory. An empty file has bytes == NULL. */
typedef struct laci_file_bytes {
  const uint8_t *bytes;
  size_t size_bytes;
  laci_file_id id;
  laci_reader *reader; /* owns the bytes */
} laci_file_bytes;

/** Reads the whole file. Fails as laci_reader_open does; *file is empty then. */
LAC_MUST_CHECK lac_status laci_file_bytes_read(const char *path, laci_file_bytes *file,
                                               lac_error *err);
/** Makes *file empty again; an empty one is fine. */
void laci_file_bytes_clear(laci_file_bytes *file);

#endif
