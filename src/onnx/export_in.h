/* SPDX-License-Identifier: Apache-2.0
 * What saving needs to change in the decoded file, and to change back: export.c writes the model's
 * file, export_data.c the data files in its folder. */
#ifndef LACI_ONNX_EXPORT_IN_H
#define LACI_ONNX_EXPORT_IN_H

#include "base/file.h"
#include "onnx/onnx_in.h"

/** A few bytes of the message that were replaced. */
typedef struct laci_patch {
  void *place;
  size_t size_bytes;
  uint8_t old[8];
} laci_patch;

/** A save in progress. */
typedef struct laci_export {
  laci_onnx *file;
  const char *path; /* of the model's file to be */
  bool force;
  laci_arena arena;
  laci_patch *patches; /* undone from the last to the first */
  size_t n_patches, patch_capacity;
  laci_file_id *inputs; /* never to be replaced: the model that was read and its data files */
  size_t n_inputs;
  char **names;                             /* [n_data_files] new locations */
  Onnx__StringStringEntryProto **locations; /* [n_data_files] what all tensors of a file refer to */
  laci_writer **writers;                    /* [n_data_files] */
} laci_export;

/** Replaces up to 8 bytes of the message until the save is over. */
LAC_MUST_CHECK lac_status laci_export_patch(laci_export *x, void *place, const void *bytes,
                                            size_t size_bytes, lac_error *err);
/** Puts all back. */
void laci_export_undo(laci_export *x);

/** Writes the message as it is now, and finishes the writer. */
LAC_MUST_CHECK lac_status laci_export_message(const laci_export *x, laci_writer *writer,
                                              lac_error *err);

/** Writes all data files under temporary names, and makes the model refer to them. */
LAC_MUST_CHECK lac_status laci_export_data(laci_export *x, lac_error *err);

/** Where the model and data files of the new names exist: commits a first version of the model,
 * which refers to the new data by second names (base/file_set.h), so that in no moment a model is
 * there whose data are another's. */
LAC_MUST_CHECK lac_status laci_export_first_version(laci_export *x, lac_error *err);

#endif
