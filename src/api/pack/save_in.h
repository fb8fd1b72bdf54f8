/* SPDX-License-Identifier: Apache-2.0
 * A model being packed, as the files of lac_pack_save share it: files.c knows where bytes are,
 * layers.c chooses what is packed, pack.c does it. */
#ifndef LACI_API_PACK_SAVE_IN_H
#define LACI_API_PACK_SAVE_IN_H

#include "api/prune/job_in.h"
#include "sparse/weight_view.h"

typedef struct laci_onnx_span laci_onnx_span;
typedef struct laci_pack_report laci_pack_report;
typedef struct laci_packfile_part laci_packfile_part;
typedef struct laci_packfile_weight laci_packfile_weight;
typedef struct laci_stored laci_stored;

/** Packing one model. Files: the model's, then its data files by name. */
typedef struct laci_packer {
  const lac_model *model;
  laci_pattern pattern;
  laci_pack_report *report;
  laci_job job;
  const uint8_t *bytes; /* of the model's file */
  laci_packfile_part *files;
  size_t n_files;
  size_t *file_of_data; /* [n_files - 1] data file as the model counts -> its place in files */
  laci_onnx_span *spans;
  size_t n_spans;
  bool *claimed;                 /* [n_spans] */
  int *layer_of;                 /* [n_stored] layer whose weight it is packed as, + 1 */
  laci_packfile_weight *weights; /* space for one per layer */
  size_t n_weights;
} laci_packer;

/* ---- files.c ---- */

/** Whether the files that the model was read from hold it as it is. */
bool laci_pack_is_as_in_files(const lac_model *model);
/** Fills the files, the model's first, and where tensors are in it. */
LAC_MUST_CHECK lac_status laci_pack_list_files(laci_packer *k, lac_error *err);
/** The place of a stored tensor's bytes; false: they are not stored there as they are in memory. */
bool laci_pack_find_place(laci_packer *k, const laci_stored *stored, laci_packfile_weight *weight);

/* ---- layers.c ---- */

/** Which weights are packed, a row of the report for each layer. */
LAC_MUST_CHECK lac_status laci_pack_choose_weights(laci_packer *k, lac_error *err);

#endif
