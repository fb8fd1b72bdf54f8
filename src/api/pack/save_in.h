/* SPDX-License-Identifier: Apache-2.0
 * The state of packing a model, shared by the files of lac_pack_save: files.c finds tensors' bytes
 * in the files, layers.c chooses the weights to pack, pack.c writes the pack. */
#ifndef LACI_API_PACK_SAVE_IN_H
#define LACI_API_PACK_SAVE_IN_H

#include "api/prune/job_in.h"
#include "sparse/weight_view.h"

typedef struct laci_file_id laci_file_id;
typedef struct laci_onnx_span laci_onnx_span;
typedef struct laci_pack_report laci_pack_report;
typedef struct laci_packfile_part laci_packfile_part;
typedef struct laci_packfile_weight laci_packfile_weight;
typedef struct laci_stored laci_stored;

/** The state of packing one model. files: the model's file, then its data files sorted by name. */
typedef struct laci_packer {
  const lac_model *model;
  laci_pattern pattern;
  laci_pack_report *report;
  laci_job job;
  const uint8_t *bytes;   /* bytes of the model's file */
  const laci_file_id *id; /* identity of the model's file */
  laci_packfile_part *files;
  size_t n_files;
  size_t *file_of_data; /* [n_files - 1] index in `files` of each data file, which the model numbers
                           differently */
  laci_onnx_span *spans;
  size_t n_spans;
  bool *claimed;                 /* [n_spans] true: a weight that is packed takes this span of the
                                    files */
  int *layer_of;                 /* [n_stored] 1 + index of the layer whose weight the tensor is, if
                                    it is packed; 0: not packed */
  laci_packfile_weight *weights; /* [n_weights] weights that are packed; there is space for one per
                                    layer */
  size_t n_weights;
} laci_packer;

/* ---- files.c ---- */

/** Do the files that the model was read from contain the model as it is now? */
bool laci_pack_is_model_unchanged(const lac_model *model);
/** Fills the list of files, the model's first, and the offsets of tensors in it. */
LAC_MUST_CHECK lac_status laci_pack_list_files(laci_packer *k, lac_error *err);
/** Finds a stored tensor's bytes in the files; false: the files do not store them as they are in
 * memory. */
bool laci_pack_find_tensor_bytes(laci_packer *k, const laci_stored *stored,
                                 laci_packfile_weight *weight);

/* ---- layers.c ---- */

/** Chooses the weights to pack, and adds a row to the report for each layer. */
LAC_MUST_CHECK lac_status laci_pack_choose_weights(laci_packer *k, lac_error *err);

#endif
