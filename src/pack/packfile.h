/* SPDX-License-Identifier: Apache-2.0
 * A pack: one or more files (a model and its data files), stored with their N:M weights packed.
 *
 * This folder knows nothing of ONNX. To it, a file is a sequence of parts, which are plain bytes or
 * packed weights. Restoring a file unpacks its weights and concatenates all parts: the result is
 * the file, byte for byte. A pack is read through base/reader.h, which detects whether the file has
 * changed since its checksums were computed. docs/reference/pack.md describes the format. Next:
 * format_in.h, write.c, open.c, restore.c. */
#ifndef LACI_PACK_PACKFILE_H
#define LACI_PACK_PACKFILE_H

#include "base/reader.h"
#include "base/writer.h"
#include "sparse/pack.h"

/* ---- Writing ---- */

/** A file that is stored in a pack. name: "" for the first file, whose name is chosen when it is
 * restored. The other files are data files; name is their name without a folder, and names
 * ascend. */
typedef struct laci_packfile_part {
  const char *name;
  const uint8_t *bytes;
  size_t size_bytes;
} laci_packfile_part;

/** A weight to be packed: the packing.dense_bytes bytes at files[file].bytes + offset.
 * laci_pack_check_weight must be true for it. */
typedef struct laci_packfile_weight {
  laci_packing packing; /* how the weight is packed; its name is stored in the pack as well */
  bool needs_signs;
  size_t file, offset;
} laci_packfile_weight;

typedef struct laci_packfile_input {
  const laci_packfile_part *files;
  size_t n_files; /* number of files, at least 1 */
  const laci_packfile_weight *weights;
  size_t n_weights; /* number of weights; they ascend by file and offset, and none overlaps
                       another */
} laci_packfile_input;

/** Writes the pack to path, atomically, and sets *size_bytes to its size. Each weight is packed,
 * unpacked and compared before it is written. The same input gives the same bytes. Memory: twice
 * the largest weight. Fails as the functions of laci_writer do, or with LAC_NO_MEMORY or
 * LAC_INTERRUPTED. */
LAC_MUST_CHECK lac_status laci_packfile_write(const laci_packfile_input *input, const char *path,
                                              const laci_write_options *options,
                                              uint64_t *size_bytes, lac_error *err);

/* ---- Reading ---- */

typedef struct laci_packfile laci_packfile;

/** Opens a pack and checks all of it: sizes, offsets, counts and checksums, so that no later read
 * can be out of bounds. Fails with LAC_BAD_FILE and a text that starts with path, or with
 * LAC_UNSUPPORTED for another version of the format. Only small tables stay in memory; other
 * contents are read again when needed. */
LAC_MUST_CHECK lac_status laci_packfile_open(const char *path, laci_packfile **pack,
                                             lac_error *err);
/** Opens a pack as laci_packfile_open, but keeps all of it in memory. */
LAC_MUST_CHECK lac_status laci_packfile_open_whole(const char *path, laci_packfile **pack,
                                                   lac_error *err);
/** Opens a pack from `bytes`, which are copied. Fails as laci_packfile_open. */
LAC_MUST_CHECK lac_status laci_packfile_open_memory(const void *bytes, size_t size_bytes,
                                                    laci_packfile **pack, lac_error *err);
/** Opens a pack as laci_packfile_open, but from a reader, of which it takes ownership even if it
 * fails. name: texts of failures begin with it. */
LAC_MUST_CHECK lac_status laci_packfile_open_reader(laci_reader *reader, const char *name,
                                                    laci_packfile **pack, lac_error *err);
/** Are the first n bytes of a file those of a pack? */
bool laci_packfile_has_signature(const void *first, size_t n);
/** Closes a pack; pack may be NULL. */
void laci_packfile_close(laci_packfile *pack);

laci_file_id laci_packfile_id(const laci_packfile *pack);
/** Returns the size of the pack in bytes. */
uint64_t laci_packfile_size(const laci_packfile *pack);

/** laci_packfile_n_files: returns the number of files. The others return the name and the size of
 * file number `file`, counted from 0. Names are those of laci_packfile_part. */
size_t laci_packfile_n_files(const laci_packfile *pack);
const char *laci_packfile_file_name(const laci_packfile *pack, size_t file);
uint64_t laci_packfile_file_size(const laci_packfile *pack, size_t file);

/** A packed weight of an open pack. Its arrays are addresses, multiples of 64, that can be
 * dereferenced only if the whole pack is in memory. */
typedef struct laci_packfile_tensor {
  laci_packing packing;
  laci_packed_view packed;
} laci_packfile_tensor;
size_t laci_packfile_n_tensors(const laci_packfile *pack);
const laci_packfile_tensor *laci_packfile_tensor_at(const laci_packfile *pack, size_t at);

/* ---- Restoring ---- */

/** Copies the parts of a file that are not packed weights to their positions in `to`, which has the
 * file's size. */
LAC_MUST_CHECK lac_status laci_packfile_copy_unpacked_parts(const laci_packfile *pack, size_t file,
                                                            uint8_t *to, lac_error *err);

/** Copies any range of a file to `to`. Of a packed weight, only the rows that the range touches are
 * unpacked; all rows if its columns are the slowest axis. Keeps no memory. Fails with LAC_IO if the
 * pack was truncated or changed since it was opened. Any thread may call it. */
LAC_MUST_CHECK lac_status laci_packfile_read_file_range(const laci_packfile *pack, size_t file,
                                                        size_t offset, size_t size_bytes, void *to,
                                                        lac_error *err);

/** Copies the values and index words of rows [first, first + n) of a packed weight to arrays of the
 * caller. Fails as laci_packfile_read_file_range. Any thread may call it. */
LAC_MUST_CHECK lac_status laci_packfile_read_rows(const laci_packfile *pack, size_t tensor,
                                                  int64_t first, int64_t n, const laci_packed *to,
                                                  lac_error *err);

typedef lac_status laci_packfile_sink(const void *bytes, size_t size_bytes, void *context,
                                      lac_error *err);
/** Restores a file: passes its bytes to the sink, part by part. Fails with LAC_BAD_FILE at the end
 * if they are not the bytes that were packed. So the bytes are valid only after LAC_OK. Memory: the
 * largest weight, dense and packed. */
LAC_MUST_CHECK lac_status laci_packfile_restore_file(const laci_packfile *pack, size_t file,
                                                     laci_packfile_sink *sink, void *context,
                                                     lac_error *err);

#endif
