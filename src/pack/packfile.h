/* SPDX-License-Identifier: Apache-2.0
 * Packed weights in a file: one or more files (a model, its data files) without their N:M weights,
 * and the packed form of these.
 *
 * This folder knows nothing of ONNX. A file is a sequence of parts, plain bytes or packed weights;
 * the unpacked parts in order are the file, byte for byte. A pack is read as all files are
 * (base/reader.h), and what is read after its checksums were computed has to be what they were
 * computed from. The format is described in docs/pack.md; next: format_in.h, write.c, open.c,
 * restore.c. */
#ifndef LACI_PACK_PACKFILE_H
#define LACI_PACK_PACKFILE_H

#include "base/reader.h"
#include "base/writer.h"
#include "sparse/pack.h"

/* ---- Writing ---- */

/** A file to be kept. name: of a data file, without a folder; "" for the first file, which whoever
 * unpacks it names; the others' names ascend. */
typedef struct laci_packfile_part {
  const char *name;
  const uint8_t *bytes;
  size_t size_bytes;
} laci_packfile_part;

/** A weight at files[file].bytes + offset, dense_bytes long; its survey holds. */
typedef struct laci_packfile_weight {
  laci_packing packing; /* its name is kept */
  bool needs_signs;
  size_t file, offset;
} laci_packfile_weight;

typedef struct laci_packfile_input {
  const laci_packfile_part *files;
  size_t n_files; /* >= 1 */
  const laci_packfile_weight *weights;
  size_t n_weights; /* ascending by file and offset; none overlaps another */
} laci_packfile_input;

/** Writes the pack to path, atomically; *size_bytes is its size. Each packed weight is unpacked
 * again and compared before anything of it is written. The same input gives the same bytes.
 * Memory: twice the largest weight. Fails as laci_writer_open and so on, LAC_NO_MEMORY,
 * LAC_INTERRUPTED. */
LAC_MUST_CHECK lac_status laci_packfile_write(const laci_packfile_input *input, const char *path,
                                              const laci_write_options *options,
                                              uint64_t *size_bytes, lac_error *err);

/* ---- Reading ---- */

typedef struct laci_packfile laci_packfile;

/** Reads path and checks all of it: sizes, places, counts and checksums, so that nothing that is
 * read later can be out of bounds. Fails LAC_BAD_FILE with a text that starts with path,
 * LAC_UNSUPPORTED for another version of the format. Memory: little; whatever is wanted later is
 * read again. */
LAC_MUST_CHECK lac_status laci_packfile_open(const char *path, laci_packfile **pack,
                                             lac_error *err);
/** The same, and all of it stays in memory. */
LAC_MUST_CHECK lac_status laci_packfile_open_whole(const char *path, laci_packfile **pack,
                                                   lac_error *err);
/** The same from memory, which is copied. */
LAC_MUST_CHECK lac_status laci_packfile_open_memory(const void *bytes, size_t size_bytes,
                                                    laci_packfile **pack, lac_error *err);
/** Whether a file starts as packs do; false where it cannot be read. */
bool laci_packfile_is(const char *path);
/** NULL is fine. */
void laci_packfile_close(laci_packfile *pack);

laci_file_id laci_packfile_id(const laci_packfile *pack);
/** Size of the pack itself. */
uint64_t laci_packfile_size(const laci_packfile *pack);

/** Files are numbered from 0; names as in laci_packfile_part, unique and without a folder. */
size_t laci_packfile_n_files(const laci_packfile *pack);
const char *laci_packfile_file_name(const laci_packfile *pack, size_t file);
uint64_t laci_packfile_file_size(const laci_packfile *pack, size_t file);

/** A packed weight. Its values and words, at multiples of 64 bytes, are views; they can be read
 * where the whole pack is in memory. */
typedef struct laci_packfile_tensor {
  laci_packing packing;
  laci_packed_view packed;
} laci_packfile_tensor;
size_t laci_packfile_n_tensors(const laci_packfile *pack);
const laci_packfile_tensor *laci_packfile_tensor_at(const laci_packfile *pack, size_t at);

/* ---- Restoring ---- */

/** What of the file is not packed, to its places in `to`, which has the file's size. */
LAC_MUST_CHECK lac_status laci_packfile_fill(const laci_packfile *pack, size_t file, uint8_t *to,
                                             lac_error *err);

/** Copies any range of the file. Of a packed weight, only rows that the range touches are unpacked;
 * all rows, where its columns are the slowest axis. No memory is kept. Fails LAC_IO where the pack
 * was cut short or changed since it was opened. Any thread. */
LAC_MUST_CHECK lac_status laci_packfile_fetch(const laci_packfile *pack, size_t file, size_t offset,
                                              size_t size_bytes, void *to, lac_error *err);

/** Rows [first, first + n) of a packed weight: values and index words to arrays of the caller.
 * Fails as laci_packfile_fetch. Any thread. */
LAC_MUST_CHECK lac_status laci_packfile_rows(const laci_packfile *pack, size_t tensor,
                                             int64_t first, int64_t n, const laci_packed *to,
                                             lac_error *err);

typedef lac_status laci_packfile_sink(const void *bytes, size_t size_bytes, void *context,
                                      lac_error *err);
/** Gives the file's bytes to the sink, part by part, and fails LAC_BAD_FILE at the end where they
 * are not those that were packed: they count after LAC_OK. Memory: the largest weight, dense and
 * packed. */
LAC_MUST_CHECK lac_status laci_packfile_restore(const laci_packfile *pack, size_t file,
                                                laci_packfile_sink *sink, void *context,
                                                lac_error *err);

#endif
