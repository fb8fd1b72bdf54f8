/* SPDX-License-Identifier: Apache-2.0
 * Changes that saving makes in the decoded file, and undoes afterwards. export.c writes the model's
 * file, export_data.c its data files. */
#ifndef LACI_ONNX_EXPORT_IN_H
#define LACI_ONNX_EXPORT_IN_H

#include "base/file.h"
#include "onnx/onnx_in.h"

/** A few bytes of the decoded file that are replaced while it is saved, with the old bytes. */
typedef struct laci_patch {
  void *place;
  size_t size_bytes;
  uint8_t old[8];
} laci_patch;

/** The state of saving a model. */
typedef struct laci_export {
  laci_onnx *file;
  const char *path; /* path of the model's new file */
  bool force;
  laci_arena arena;
  laci_patch *patches; /* replaced bytes, restored in reverse order */
  size_t n_patches, patch_capacity;
  /* files that must not be replaced: the model's file that was read, and its data files */
  laci_file_id *inputs;
  size_t n_inputs;
  char **names; /* [n_data_files] new location of each data file, as the model refers to it */
  /* [n_data_files] the entry "location" that all tensors in a data file share */
  Onnx__StringStringEntryProto **locations;
  laci_writer **writers; /* [n_data_files] writer of each data file; NULL: the file is not
                            written */
} laci_export;

/** Replaces up to 8 bytes of the decoded file until the save is over. */
LAC_MUST_CHECK lac_status laci_export_patch_bytes(laci_export *x, void *place, const void *bytes,
                                                  size_t size_bytes, lac_error *err);
/** Restores all bytes that laci_export_patch_bytes replaced. */
void laci_export_undo_patches(laci_export *x);

/** Writes the decoded file as it is now, and finishes the writer. */
LAC_MUST_CHECK lac_status laci_export_write_message(const laci_export *x, laci_writer *writer,
                                                    lac_error *err);

/** Writes all data files under temporary names, and makes the model refer to their new names. */
LAC_MUST_CHECK lac_status laci_export_write_data(laci_export *x, lac_error *err);

/** A model and data files may exist already under the new names. Then first commits a version of
 * the model that refers to the new data under second names (base/file_set.h). So at no moment is a
 * model on disk together with data of another model. */
LAC_MUST_CHECK lac_status laci_export_commit_first_version(laci_export *x, lac_error *err);

#endif
