/* SPDX-License-Identifier: Apache-2.0
 * Marks values that the file names outside of its nodes: in quantization annotations and in
 * training graphs. No operator describes the channels of these other uses, so the values must not
 * be reordered. */
#include "onnx/import_in.h"

#include <string.h>

#include "graph/graph.h"

/* Marks the value `name`, if the network has one. by: what names it, for messages. */
static void mark_value_as_named(laci_importer *im, const char *name, const char *by) {
  const int value = laci_graph_find_value(im->graph, laci_onnx_text_or_empty(name));
  if (value >= 0 && !im->graph->values[value].tied_by) im->graph->values[value].tied_by = by;
}

/* Is the value a stored tensor of one element? Then it has no channel order. A value that is not
 * stored counts as a list. */
static bool is_stored_scalar(const laci_importer *im, const char *name) {
  const int value = laci_graph_find_value(im->graph, laci_onnx_text_or_empty(name));
  const int stored = value >= 0 ? im->graph->values[value].stored : -1;
  return stored >= 0 && laci_shape_count(&im->graph->stored[stored].shape) == 1;
}

static void mark_values_of_annotation(laci_importer *im, const Onnx__TensorAnnotation *annotation) {
  static const char by[] = "quantization_annotation";
  bool per_tensor = true;
  for (size_t at = 0; at < annotation->n_quant_parameter_tensor_names; at++) {
    per_tensor =
        per_tensor && is_stored_scalar(im, annotation->quant_parameter_tensor_names[at]->value);
  }
  if (per_tensor) return;
  mark_value_as_named(im, annotation->tensor_name, by);
  for (size_t at = 0; at < annotation->n_quant_parameter_tensor_names; at++) {
    mark_value_as_named(im, annotation->quant_parameter_tensor_names[at]->value, by);
  }
}

enum { MOST_DEPTH = 100 };
static const char by_training[] = "training_info";

/* Marks the network's values that another graph (a training graph) reads, computes or stores by
 * name. */
static void mark_values_of_graph(laci_importer *im, const Onnx__GraphProto *graph, int depth) {
  if (!graph || depth > MOST_DEPTH) return;
  for (size_t at = 0; at < graph->n_node; at++) {
    const Onnx__NodeProto *node = graph->node[at];
    for (size_t k = 0; k < node->n_input; k++) mark_value_as_named(im, node->input[k], by_training);
    for (size_t k = 0; k < node->n_attribute; k++) {
      const Onnx__AttributeProto *attr = node->attribute[k];
      mark_values_of_graph(im, attr->g, depth + 1);
      for (size_t body = 0; body < attr->n_graphs; body++)
        mark_values_of_graph(im, attr->graphs[body], depth + 1);
    }
  }
  for (size_t at = 0; at < graph->n_output; at++)
    mark_value_as_named(im, graph->output[at]->name, by_training);
}

static void mark_values_of_bindings(laci_importer *im,
                                    Onnx__StringStringEntryProto *const *bindings, size_t n) {
  for (size_t at = 0; at < n; at++) {
    mark_value_as_named(im, bindings[at]->key, by_training);
    mark_value_as_named(im, bindings[at]->value, by_training);
  }
}

void laci_import_mark_externally_named_values(laci_importer *im) {
  const Onnx__ModelProto *model = im->file->model;
  for (size_t at = 0; at < model->graph->n_quantization_annotation; at++) {
    mark_values_of_annotation(im, model->graph->quantization_annotation[at]);
  }
  for (size_t at = 0; at < model->n_training_info; at++) {
    const Onnx__TrainingInfoProto *info = model->training_info[at];
    mark_values_of_graph(im, info->initialization, 0);
    mark_values_of_graph(im, info->algorithm, 0);
    mark_values_of_bindings(im, info->initialization_binding, info->n_initialization_binding);
    mark_values_of_bindings(im, info->update_binding, info->n_update_binding);
  }
}
