/* SPDX-License-Identifier: Apache-2.0
 * Converts the caller's masks, which have names, to the optimizer's buffer and to the engine's list
 * of weights. */
#include <string.h>

#include "api/model/model_in.h"
#include "api/train/train_in.h"
#include "base/error.h"
#include "base/memory.h"
#include "engine/engine.h"
#include "graph/graph.h"
#include "graph/training_graph.h"
#include "lacuna/mask.h"
#include "train/optimizer.h"
#include "train/trainer.h"

/** Returns the index of the trained parameter of this name; -1: there is none. */
static int find_parameter(const laci_training *t, const char *name) {
  const laci_parameter *parameters = laci_trainer_parameters(t->trainer);
  for (int p = 0; p < laci_trainer_graph(t->trainer)->n_params; p++) {
    if (strcmp(parameters[p].name, name) == 0) return p;
  }
  return -1;
}

/** Does the model store a tensor of this name that is not trained? Such a tensor, for example of an
 * output other than the first, keeps its zeros without a mask. */
static bool is_untrained_tensor(const laci_training *t, const char *name) {
  const laci_graph *graph = t->model->graph;
  const laci_training_graph *g = laci_trainer_graph(t->trainer);
  for (int s = 0; s < g->n_stats; s++) {
    if (strcmp(g->stats[s].name, name) == 0) return false;
  }
  int value = laci_graph_find_value(graph, name);
  return value >= 0 && graph->values[value].stored >= 0;
}

lac_status laci_training_fill_masks(laci_training *t, const lac_mask *mask, lac_error *err) {
  const laci_parameter *parameters = laci_trainer_parameters(t->trainer);
  laci_optimizer *optimizer = laci_trainer_optimizer(t->trainer);
  if (!mask || lac_mask_count(mask) == 0) return LAC_OK;
  size_t size = (size_t)laci_optimizer_count_floats(optimizer);
  t->masks = laci_alloc(size, 1);
  if (!t->masks) return laci_fail_memory(err, "masks");
  memset(t->masks, 1, size);
  for (int k = 0; k < lac_mask_count(mask); k++) {
    const char *name = lac_mask_name(mask, k);
    const uint8_t *bytes;
    size_t count;
    lac_status st = lac_mask_bytes(mask, name, &bytes, &count, err);
    if (st) return st;
    int p = find_parameter(t, name);
    if (p < 0 && is_untrained_tensor(t, name)) continue;
    if (p < 0) {
      return laci_fail(err, LAC_NOT_FOUND, "%s: it has a mask, but no such weight is trained",
                       name);
    }
    if (count != (size_t)parameters[p].count) {
      return laci_fail(err, LAC_BAD_SHAPE, "%s: %lld elements, but its mask has %zu",
                       parameters[p].name, (long long)parameters[p].count, count);
    }
    uint8_t *place = t->masks + parameters[p].offset;
    memcpy(place, bytes, count);
    laci_optimizer_set_mask(optimizer, p, place, laci_trainer_weights(t->trainer));
  }
  return LAC_OK;
}

lac_status laci_training_list_engine_masks(const laci_training *t, const lac_mask *mask,
                                           laci_engine_weight **weights, int *n_weights,
                                           lac_error *err) {
  int n = lac_mask_count(mask);
  *n_weights = 0;
  *weights = laci_alloc((size_t)n, sizeof **weights);
  if (!*weights) return laci_fail_memory(err, "masks");
  for (int k = 0; k < n; k++) {
    const char *name = lac_mask_name(mask, k);
    int value = laci_graph_find_value(t->model->graph, name);
    int stored = value >= 0 ? t->model->graph->values[value].stored : -1;
    const uint8_t *bytes;
    size_t count;
    if (stored < 0) continue; /* laci_training_fill_masks reports this failure */
    lac_status st = lac_mask_bytes(mask, name, &bytes, &count, err);
    if (st) return st;
    if (count != (size_t)laci_shape_count(&t->model->graph->stored[stored].shape)) continue;
    (*weights)[(*n_weights)++] = (laci_engine_weight){.value = value, .mask = bytes};
  }
  return LAC_OK;
}
