/* SPDX-License-Identifier: Apache-2.0
 * Marks values that the file names outside of its nodes: in quantization annotations and training
 * graphs. No operator describes their channels, so these values must not be reordered. */
#include "onnx/import_in.h"

#include <string.h>

#include "graph/graph.h"

/* Marks the value of that name, if the network has one. */
static void tie_value(laci_importer *im, const char *name, const char *by) {
  const int value = laci_graph_find_value(im->graph, laci_onnx_text_or_empty(name));
  if (value >= 0 && !im->graph->values[value].tied_by) im->graph->values[value].tied_by = by;
}

/* Is the value a stored tensor of one element, which has no channel order? A value that is not
 * stored counts as a list. */
static bool is_scalar(const laci_importer *im, const char *name) {
  const int value = laci_graph_find_value(im->graph, laci_onnx_text_or_empty(name));
  const int stored = value >= 0 ? im->graph->values[value].stored : -1;
  return stored >= 0 && laci_shape_count(&im->graph->stored[stored].shape) == 1;
}

static void tie_annotation(laci_importer *im, const Onnx__TensorAnnotation *annotation) {
  static const char by[] = "quantization_annotation";
  bool per_tensor = true;
  for (size_t at = 0; at < annotation->n_quant_parameter_tensor_names; at++) {
    per_tensor = per_tensor && is_scalar(im, annotation->quant_parameter_tensor_names[at]->value);
  }
  if (per_tensor) return;
  tie_value(im, annotation->tensor_name, by);
  for (size_t at = 0; at < annotation->n_quant_parameter_tensor_names; at++) {
    tie_value(im, annotation->quant_parameter_tensor_names[at]->value, by);
  }
}

enum { MOST_DEPTH = 100 };
static const char by_training[] = "training_info";

/* Marks the network's values whose names the graph reads, computes or stores. */
static void tie_graph(laci_importer *im, const Onnx__GraphProto *graph, int depth) {
  if (!graph || depth > MOST_DEPTH) return;
  for (size_t at = 0; at < graph->n_node; at++) {
    const Onnx__NodeProto *node = graph->node[at];
    for (size_t k = 0; k < node->n_input; k++) tie_value(im, node->input[k], by_training);
    for (size_t k = 0; k < node->n_attribute; k++) {
      const Onnx__AttributeProto *attr = node->attribute[k];
      tie_graph(im, attr->g, depth + 1);
      for (size_t body = 0; body < attr->n_graphs; body++)
        tie_graph(im, attr->graphs[body], depth + 1);
    }
  }
  for (size_t at = 0; at < graph->n_output; at++)
    tie_value(im, graph->output[at]->name, by_training);
}

static void tie_bindings(laci_importer *im, Onnx__StringStringEntryProto *const *bindings,
                         size_t n) {
  for (size_t at = 0; at < n; at++) {
    tie_value(im, bindings[at]->key, by_training);
    tie_value(im, bindings[at]->value, by_training);
  }
}

void laci_import_mark_ties(laci_importer *im) {
  const Onnx__ModelProto *model = im->file->model;
  for (size_t at = 0; at < model->graph->n_quantization_annotation; at++) {
    tie_annotation(im, model->graph->quantization_annotation[at]);
  }
  for (size_t at = 0; at < model->n_training_info; at++) {
    const Onnx__TrainingInfoProto *info = model->training_info[at];
    tie_graph(im, info->initialization, 0);
    tie_graph(im, info->algorithm, 0);
    tie_bindings(im, info->initialization_binding, info->n_initialization_binding);
    tie_bindings(im, info->update_binding, info->n_update_binding);
  }
}
