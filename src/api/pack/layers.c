/* SPDX-License-Identifier: Apache-2.0
 * Decides which layers' weights are packed, and why the others stay dense. */
#include <stdio.h>
#include <string.h>

#include "analyze/analyze.h"
#include "api/pack/pack_in.h"
#include "api/pack/save_in.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/to_int.h"
#include "graph/graph.h"
#include "lacuna/pack.h"
#include "pack/packfile.h"
#include "tensor/buf.h"

/* Finds the zero point, which a quantized weight has instead of 0. Returns false if it differs
 * between channels. */
static bool find_zero_point(const laci_weight_view *view, uint64_t *fill) {
  *fill = 0;
  if (!view->n_scales || !view->zero) return true;
  for (int64_t k = 1; k < view->n_scales; k++) {
    if (view->zero[k] != view->zero[0]) return false;
  }
  if (!laci_dtype_is_float(view->dtype)) *fill = (uint64_t)laci_clamp_to_int64(view->zero[0]);
  return true;
}

static bool overlaps_packed_weight(const laci_packer *k, const laci_packfile_weight *weight) {
  size_t begin = weight->offset, end = begin + weight->packing.dense_bytes;
  for (size_t at = 0; at < k->n_weights; at++) {
    const laci_packfile_weight *other = &k->weights[at];
    if (other->file == weight->file && begin < other->offset + other->packing.dense_bytes &&
        other->offset < end) {
      return true;
    }
  }
  return false;
}

/** Adds the layer's weight to the list of weights to pack. Returns why it stays dense; NULL: it was
 * added. */
static const char *try_to_pack_layer(laci_packer *k, const laci_layer *layer, lac_pack_layer *row) {
  static const char *const unlike = "its elements are not stored as they are in memory";
  const laci_stored *stored = &k->job.analysis->graph->stored[layer->stored];
  laci_packfile_weight weight = {0};
  uint64_t fill;
  if (!find_zero_point(&layer->view, &fill))
    return "its zero points differ from channel to channel";
  if (laci_packing_init(&weight.packing, &layer->view, k->pattern, fill, NULL) ||
      weight.packing.dense_bytes != stored->size_bytes) {
    return "elements of this type are not packed";
  }
  const laci_packing *p = &weight.packing;
  laci_pack_check check = laci_pack_check_weight(p, stored->bytes);
  if (!check.holds) return "";
  uint64_t packed = p->values_bytes + p->index_bytes + (check.needs_signs ? p->signs_bytes : 0);
  if (packed >= p->dense_bytes) return "packed, it would take more";
  weight.needs_signs = check.needs_signs;
  if (!laci_pack_find_tensor_bytes(k, stored, &weight)) return unlike;
  if (overlaps_packed_weight(k, &weight)) return "its bytes are another weight's, too";
  k->weights[k->n_weights++] = weight;
  row->packed = true;
  row->packed_bytes = packed;
  return NULL;
}

static lac_status format_row_remark(laci_packer *k, lac_pack_layer *row, const char *text,
                                    const char *name, lac_error *err) {
  size_t n = strlen(text) + strlen(name) + 1;
  char *joined = laci_arena_alloc(&k->report->arena, n, 1);
  if (!joined) return laci_fail_memory(err, "the report");
  (void)snprintf(joined, n, "%s%s", text, name);
  row->reason = joined;
  return LAC_OK;
}

/* Returns the number of the tensor's bytes in the file, where elements of 4 and 2 bits are packed.
 * In memory each takes one byte. */
static uint64_t size_of_tensor_in_file(const laci_stored *stored) {
  const int bits = laci_dtype_bits(stored->dtype);
  if (bits <= 0 || bits >= 8) return stored->size_bytes;
  return (stored->size_bytes * (uint64_t)bits + 7) / 8;
}

static lac_status fill_layer_names(laci_packer *k, const laci_layer *layer, lac_pack_layer *row,
                                   lac_error *err) {
  const laci_graph *graph = k->job.analysis->graph;
  const laci_stored *stored = layer->stored < 0 ? NULL : &graph->stored[layer->stored];
  const laci_value *value = &graph->values[layer->weight];
  const laci_shape *shape = stored ? &stored->shape : &value->type.shape;
  laci_arena *arena = &k->report->arena;
  *row = (lac_pack_layer){.name = laci_arena_text(arena, graph->nodes[layer->node].name),
                          .op = laci_arena_text(arena, graph->nodes[layer->node].type),
                          .weight = laci_arena_text(arena, stored ? stored->name : value->name),
                          .dtype = stored ? stored->dtype : value->type.dtype,
                          .rank = laci_shape_is_known(shape) ? shape->rank : 0,
                          .dense_bytes = stored ? size_of_tensor_in_file(stored) : 0,
                          .packed_bytes = stored ? size_of_tensor_in_file(stored) : 0};
  for (int axis = 0; axis < row->rank; axis++) row->shape[axis] = shape->dims[axis];
  return row->name && row->op && row->weight ? LAC_OK : laci_fail_memory(err, "the report");
}

lac_status laci_pack_choose_weights(laci_packer *k, lac_error *err) {
  const laci_analysis *a = k->job.analysis;
  laci_pack_report *report = k->report;
  report->layers = laci_arena_alloc(&report->arena, (size_t)a->n_rows, sizeof *report->layers);
  k->weights = laci_alloc((size_t)a->n_layers, sizeof *k->weights);
  k->layer_of = laci_alloc((size_t)a->graph->n_stored, sizeof *k->layer_of);
  k->claimed = laci_alloc(k->n_spans, sizeof *k->claimed);
  if (!report->layers || !k->weights || !k->layer_of || !k->claimed) {
    return laci_fail_memory(err, "the weights");
  }
  report->pub.layers = report->layers;
  report->pub.n_layers = a->n_rows;
  lac_status st = LAC_OK;
  for (int l = 0; l < a->n_layers && !st; l++) {
    const laci_layer *layer = &a->layers[l];
    lac_pack_layer *row = &report->layers[l];
    int *first = &k->layer_of[layer->stored];
    st = fill_layer_names(k, layer, row, err);
    if (!st && *first) {
      row->packed = true;
      row->packed_bytes = report->layers[*first - 1].packed_bytes;
      st = format_row_remark(k, row, "the weight of ", report->layers[*first - 1].name, err);
      continue;
    }
    const char *why = st ? NULL : try_to_pack_layer(k, layer, row);
    if (!st && why && why[0]) st = format_row_remark(k, row, why, "", err);
    if (row->packed) *first = l + 1;
    if (!st && laci_interrupted()) st = laci_fail(err, LAC_INTERRUPTED, "interrupted");
  }
  /* computed weights: the tensors that they are computed from are stored as they are */
  for (int l = a->n_layers; l < a->n_rows && !st; l++) {
    st = fill_layer_names(k, &a->layers[l], &report->layers[l], err);
    if (!st) st = format_row_remark(k, &report->layers[l], a->layers[l].reason, "", err);
  }
  return st;
}
