/* SPDX-License-Identifier: Apache-2.0
 * Saves a loaded network, and gives access to its tensors. Next: load.c. */
#include "lacuna/model.h"

#include <string.h>

#include "api/model/model_in.h"
#include "api/model/structs.h"
#include "base/budget.h"
#include "base/error.h"
#include "base/memory.h"
#include "engine/engine.h"
#include "graph/graph.h"
#include "onnx/onnx.h"

static char *copy_text(const char *text) {
  size_t n = strlen(text) + 1;
  char *copy = laci_alloc(n, 1);
  if (copy) memcpy(copy, text, n);
  return copy;
}

static laci_inferred *create_inference_state(void) {
  laci_inferred *made = laci_alloc(1, sizeof *made);
  if (made && pthread_mutex_init(&made->lock, NULL) == 0) return made;
  laci_free(made);
  return NULL;
}

static void destroy_inference_state(laci_inferred *inferred) {
  if (!inferred) return;
  (void)pthread_mutex_destroy(&inferred->lock);
  laci_free(inferred->assumed);
  laci_free(inferred);
}

lac_status laci_model_create_empty(const char *path, lac_model **model, lac_error *err) {
  *model = laci_alloc(1, sizeof **model);
  if (*model) {
    (*model)->path = copy_text(path);
    (*model)->inferred = create_inference_state();
  }
  if (*model && (*model)->path && (*model)->inferred) return LAC_OK;
  lac_model_destroy(*model);
  *model = NULL;
  return laci_fail_memory(err, "the model");
}

lac_status lac_model_save(lac_model *model, const char *path, bool force, lac_error *err) {
  lac_status st = LACI_CHECK_GIVEN(err, {"model", model}, {"path", path});
  if (st) return st;
  if (!model->file) return laci_onnx_write(model->graph, path, force, err); /* it has no file */
  return laci_onnx_save(model->file, model->graph, path, force, err);
}

lac_status lac_model_stream(lac_model *model, lac_write_bytes *write, void *context,
                            lac_error *err) {
  lac_status st = LACI_CHECK_GIVEN(err, {"model", model}, {"write", write ? "" : NULL});
  if (st) return st;
  if (!model->file) return laci_onnx_write_stream(model->graph, write, context, err);
  return laci_onnx_save_stream(model->file, model->graph, write, context, err);
}

bool lac_model_reads(const lac_model *model, const char *path) {
  return model && model->file && path && laci_onnx_is_source_file(model->file, path);
}

const char *lac_model_data_file(const lac_model *model, int at) {
  return model && model->file ? laci_onnx_data_file_location(model->file, at) : NULL;
}

/* Moves changed bytes of stored tensors that are in both graphs. */
static void move_changed_bytes(laci_graph *from, laci_graph *to) {
  for (int s = 0; s < to->n_stored; s++) {
    int value = laci_graph_find_value(from, to->stored[s].name);
    int old = value < 0 ? -1 : from->values[value].stored;
    if (old < 0 || !from->stored[old].owned) continue;
    to->stored[s].owned = from->stored[old].owned;
    to->stored[s].bytes = to->stored[s].owned;
    to->stored[s].spilled = from->stored[old].spilled;
    from->stored[old].owned = NULL;
    from->stored[old].spilled = false;
  }
  to->spills = from->spills; /* temporary files with contents of stored tensors; a new graph has
                                none */
  from->spills = NULL;
}

void laci_model_replace_graph(lac_model *model, laci_graph *take, bool is_inferred) {
  move_changed_bytes(model->graph, take);
  laci_graph_destroy(model->graph);
  model->graph = take;
  if (is_inferred) return;
  laci_free(model->inferred->assumed); /* shapes must be inferred again */
  model->inferred->assumed = NULL;
}

bool laci_model_is_tensor_folded(const lac_model *model, const char *name) {
  for (int k = 0; k < model->n_folded; k++) {
    if (strcmp(model->folded[k], name) == 0) return true;
  }
  return false;
}

void lac_model_destroy(lac_model *model) {
  if (!model) return;
  laci_graph_destroy(model->graph);
  laci_onnx_destroy(model->file);
  laci_free(model->path);
  destroy_inference_state(model->inferred);
  laci_free(model->weights);
  laci_free(model->packings);
  laci_free(model->rows);
  for (int k = 0; k < model->n_folded; k++) laci_free(model->folded[k]);
  laci_free(model->folded);
  laci_free(model);
}

lac_status laci_model_list_unchanged_weights(const lac_model *model, laci_engine_weight **weights,
                                             int *n_weights, lac_error *err) {
  *n_weights = 0;
  *weights = laci_alloc((size_t)model->n_weights, sizeof **weights);
  if (!*weights) return laci_fail_memory(err, "the weights' patterns");
  for (int at = 0; at < model->n_weights; at++) {
    int stored = model->graph->values[model->weights[at].value].stored;
    if (model->graph->stored[stored].owned) continue; /* the tensor was changed */
    (*weights)[(*n_weights)++] = model->weights[at];
  }
  return LAC_OK;
}

void laci_model_add_stored_to_budget(const lac_model *model, laci_budget *budget) {
  for (int s = 0; s < model->graph->n_stored; s++) {
    const laci_stored *stored = &model->graph->stored[s];
    laci_budget_add(budget, stored->size_bytes, "%.200s (stored)", stored->name);
  }
}

bool laci_model_stays_in_files(const lac_model *model, const laci_budget *budget) {
  const uint64_t most = (uint64_t)512 << 20;
  uint64_t bytes = 0;
  for (int s = 0; s < model->graph->n_stored; s++) bytes += model->graph->stored[s].size_bytes;
  return model->file && (bytes > most || bytes > budget->limit / 4);
}

void laci_model_add_streamed_to_budget(const lac_model *model, laci_budget *budget) {
  const laci_stored *largest = NULL;
  for (int s = 0; s < model->graph->n_stored; s++) {
    const laci_stored *stored = &model->graph->stored[s];
    if (!largest || stored->size_bytes > largest->size_bytes) largest = stored;
    if (stored->size_bytes <= LACI_LARGE_TENSOR)
      laci_budget_add_unnamed(budget, stored->size_bytes);
  }
  if (!largest || largest->size_bytes <= LACI_LARGE_TENSOR) return;
  laci_budget_add(budget, largest->size_bytes, "%.200s (stored)", largest->name);
}

lac_status laci_model_materialise_small(const lac_model *model, lac_error *err) {
  lac_status st = LAC_OK;
  for (int s = 0; model->file && s < model->graph->n_stored && !st; s++) {
    const laci_stored *stored = &model->graph->stored[s];
    if (stored->size_bytes > LACI_LARGE_TENSOR) continue;
    st = laci_onnx_materialise_bytes(model->file, stored->bytes, stored->size_bytes, err);
  }
  return st ? laci_fail_with_prefix(err, st, "%s", model->path) : st;
}

bool laci_model_has_inferred_shapes(const lac_model *model) {
  pthread_mutex_lock(&model->inferred->lock);
  bool is_inferred = model->inferred->assumed != NULL;
  pthread_mutex_unlock(&model->inferred->lock);
  return is_inferred;
}

lac_status laci_model_materialise(const lac_model *model, lac_error *err) {
  if (!model->file)
    return LAC_OK; /* the model was made by lac_network_create and has all bytes in memory */
  lac_status st = laci_onnx_materialise(model->file, err);
  return st ? laci_fail_with_prefix(err, st, "%s", model->path) : st;
}

/* Loads the bytes of this tensor alone, since a caller may need one of many. */
static lac_status materialise_tensor(const lac_model *model, const laci_stored *stored,
                                     lac_error *err) {
  if (!model->file) return LAC_OK;
  lac_status st = laci_onnx_materialise_bytes(model->file, stored->bytes, stored->size_bytes, err);
  return st ? laci_fail_with_prefix(err, st, "%s", model->path) : st;
}

int lac_model_tensor_count(const lac_model *model) { return model ? model->graph->n_stored : 0; }

/* Loads the tensor's bytes, and describes it. */
static lac_status describe_tensor(const lac_model *model, const laci_stored *stored,
                                  lac_tensor *tensor, lac_error *err) {
  lac_status st = laci_check_struct_tensor(tensor, err);
  if (!st) st = materialise_tensor(model, stored, err);
  if (st) return st;
  lac_tensor own = {.size = sizeof own,
                    .name = stored->name,
                    .dtype = stored->dtype,
                    .rank = stored->shape.rank,
                    .bytes = stored->bytes,
                    .size_bytes = stored->size_bytes};
  for (int a = 0; a < stored->shape.rank; a++) own.shape[a] = stored->shape.dims[a];
  laci_give_tensor(&own, tensor);
  return LAC_OK;
}

lac_status lac_model_tensor(const lac_model *model, int index, lac_tensor *tensor, lac_error *err) {
  lac_status st = LACI_CHECK_GIVEN(err, {"model", model}, {"tensor", tensor});
  if (st) return st;
  if (index < 0 || index >= model->graph->n_stored) {
    return laci_fail(err, LAC_NOT_FOUND, "%s: stored tensor %d, and there are %d", model->path,
                     index, model->graph->n_stored);
  }
  return describe_tensor(model, &model->graph->stored[index], tensor, err);
}

lac_status lac_model_find_tensor(const lac_model *model, const char *name, lac_tensor *tensor,
                                 lac_error *err) {
  lac_status st = LACI_CHECK_GIVEN(err, {"model", model}, {"name", name}, {"tensor", tensor});
  if (st) return st;
  int value = laci_graph_find_value(model->graph, name);
  int stored = value < 0 ? -1 : model->graph->values[value].stored;
  if (stored >= 0) return describe_tensor(model, &model->graph->stored[stored], tensor, err);
  return laci_fail(err, LAC_NOT_FOUND, "%s: no stored tensor has this name", name);
}
