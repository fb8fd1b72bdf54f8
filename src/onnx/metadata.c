/* SPDX-License-Identifier: Apache-2.0
 * Reads and writes the names of a model's classes, which are an entry of its metadata. Other
 * entries are not changed. */
#include "onnx/metadata_in.h"

#include <string.h>

#include "base/error.h"
#include "graph/graph.h"

static char key[] = "lacuna.class_names";

static bool is_class_names_entry(const Onnx__StringStringEntryProto *entry) {
  return entry->key && strcmp(entry->key, key) == 0;
}

static size_t find_class_names_entry(const Onnx__ModelProto *model) {
  size_t at = 0;
  while (at < model->n_metadata_props && !is_class_names_entry(model->metadata_props[at])) at++;
  return at;
}

lac_status laci_import_read_class_names(const Onnx__ModelProto *model, laci_graph *graph,
                                        lac_error *err) {
  const size_t at = find_class_names_entry(model);
  if (at == model->n_metadata_props || !model->metadata_props[at]->value) return LAC_OK;
  graph->class_names = laci_arena_text(graph->arena, model->metadata_props[at]->value);
  return graph->class_names ? LAC_OK : laci_fail_memory(err, "metadata");
}

bool laci_metadata_has_other_class_names(const Onnx__ModelProto *model, const laci_graph *graph) {
  const size_t at = find_class_names_entry(model);
  const bool there = at < model->n_metadata_props && model->metadata_props[at]->value;
  if (!graph->class_names) return there;
  return !there || strcmp(model->metadata_props[at]->value, graph->class_names) != 0;
}

/* Copies all metadata entries but those for class names; a file may have several of them. */
static lac_status copy_other_entries(laci_arena *arena, const Onnx__ModelProto *model,
                                     Onnx__StringStringEntryProto ***entries, size_t *n,
                                     lac_error *err) {
  Onnx__StringStringEntryProto **list =
      laci_arena_alloc(arena, model->n_metadata_props + 1, sizeof *list);
  if (!list) return laci_fail_memory(err, "metadata");
  *n = 0;
  for (size_t k = 0; k < model->n_metadata_props; k++)
    if (!is_class_names_entry(model->metadata_props[k])) list[(*n)++] = model->metadata_props[k];
  *entries = list;
  return LAC_OK;
}

lac_status laci_metadata_build_with_class_names(laci_arena *arena, const Onnx__ModelProto *model,
                                                const laci_graph *graph,
                                                Onnx__StringStringEntryProto ***entries, size_t *n,
                                                lac_error *err) {
  if (!graph->class_names) return copy_other_entries(arena, model, entries, n, err);
  const size_t at = find_class_names_entry(model);
  const size_t count = at < model->n_metadata_props ? model->n_metadata_props : at + 1;
  Onnx__StringStringEntryProto **list = laci_arena_alloc(arena, count, sizeof *list);
  Onnx__StringStringEntryProto *entry = laci_arena_alloc(arena, 1, sizeof *entry);
  char *value = laci_arena_text(arena, graph->class_names);
  if (!list || !entry || !value) return laci_fail_memory(err, "metadata");
  for (size_t k = 0; k < model->n_metadata_props; k++) list[k] = model->metadata_props[k];
  onnx__string_string_entry_proto__init(entry);
  entry->key = key;
  entry->value = value;
  list[at] = entry;
  *entries = list;
  *n = count;
  return LAC_OK;
}
