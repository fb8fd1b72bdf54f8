/* SPDX-License-Identifier: Apache-2.0
 * Chooses which values are quantized. These are the input data of layers, and the results of
 * convolutions after their activation. Runtimes compute some nodes between layers in integers, if
 * all their inputs are integers. The inputs and results of such nodes are quantized, too.
 *
 * A value that only rearranges another value's elements shares its scale, so that a runtime only
 * moves bytes. */
#include <string.h>

#include "graph/op.h"
#include "onnx/edit.h"
#include "quantize/quantize_in.h"
#include "tensor/shape.h"

static const char *const products[] = {"Conv", "ConvTranspose", "Gemm", "MatMul", NULL};
static const char *const ends[] = {"Relu", "Clip", NULL}; /* activations that only clip. The
                                                             quantizer clips, too */
static const char *const moves[] = {"MaxPool", "Reshape",   "Flatten", "Transpose",
                                    "Squeeze", "Unsqueeze", "Slice",   NULL};
static const char *const sums[] = {"Add",    "Mul", "AveragePool", "GlobalAveragePool",
                                   "Concat", NULL};

static bool is_type_in_list(const laci_node *node, const char *const *names) {
  for (; *names; names++) {
    if (laci_node_is(node, *names)) return true;
  }
  return false;
}

static int find_first_output(const laci_node *node) {
  for (int i = 0; i < node->n_outputs; i++) {
    if (node->outputs[i] >= 0) return node->outputs[i];
  }
  return -1;
}

const char *laci_quantize_edit_name_of_node(const laci_quantizing *q, int node) {
  for (int l = 0; l < q->n_layers; l++) {
    const laci_quantize_layer *layer = &q->layers[l];
    if (layer->node == node && layer->norm >= 0 && !layer->reason) node = layer->norm;
  }
  return q->graph->values[find_first_output(&q->graph->nodes[node])].name;
}

int laci_quantize_find_scale_owner(const laci_quantizing *q, int value) {
  while (q->like[value] >= 0) value = q->like[value];
  return value;
}

/* ---- Which nodes and values may be changed ---- */

static bool is_node_in_file(const laci_quantizing *q, int node) {
  const laci_node *n = &q->graph->nodes[node];
  int value = find_first_output(n);
  return value >= 0 &&
         laci_edit_is_output_of(q->edit, q->graph->values[value].name, n->type, n->n_inputs);
}

/* Does the value consist of floats, and is it computed or a network input? Then nodes can be added
 * after it. */
static bool is_quantizable(const laci_quantizing *q, int value) {
  if (value < 0) return false;
  const laci_value *v = &q->graph->values[value];
  if (v->stored >= 0 || v->type.dtype != LAC_DTYPE_F32) return false;
  return laci_edit_is_computed(q->edit, v->name) || laci_edit_is_stored_or_input(q->edit, v->name);
}

/* Is the value a stored tensor of floats, which no network input replaces? */
static bool is_stored_constant(const laci_quantizing *q, int value) {
  if (value < 0 || q->graph->values[value].stored < 0) return false;
  const laci_stored *stored = &q->graph->stored[q->graph->values[value].stored];
  return stored->dtype == LAC_DTYPE_F32 && !stored->overridable &&
         laci_edit_is_stored_or_input(q->edit, q->graph->values[value].name);
}

/* Returns the only node that reads a value. -1: no node or several nodes read it, or it is a
 * network output. */
static int find_only_reader(const laci_quantizing *q, int value) {
  const laci_value *v = &q->graph->values[value];
  if (v->is_output || v->n_readers != 1) return -1;
  const laci_node *node = &q->graph->nodes[v->readers[0]];
  int n = 0;
  for (int i = 0; i < node->n_inputs; i++) n += node->inputs[i] == value;
  return n == 1 && is_node_in_file(q, v->readers[0]) ? v->readers[0] : -1;
}

/* ---- Layers ---- */

static int find_norm_after(const laci_quantizing *q, const laci_node *node) {
  int reader = find_only_reader(q, node->outputs[0]);
  if (reader < 0 || !laci_node_is(node, "Conv")) return -1;
  const laci_node *norm = &q->graph->nodes[reader];
  bool ok = laci_node_is(norm, "BatchNormalization") && norm->n_inputs == 5 &&
            norm->inputs[0] == node->outputs[0] && laci_node_int(norm, "training_mode", 0) == 0;
  for (int i = 1; ok && i < norm->n_inputs; i++) ok = is_stored_constant(q, norm->inputs[i]);
  for (int i = 1; ok && i < norm->n_outputs; i++) ok = norm->outputs[i] < 0;
  return ok && norm->outputs[0] >= 0 ? reader : -1;
}

/* Returns the number of output channels of a layer, those of all convolution groups together. */
static int64_t count_output_channels(const laci_quantizing *q, const laci_quantize_layer *layer) {
  const laci_node *node = &q->graph->nodes[layer->node];
  const laci_shape *shape = &q->graph->values[node->inputs[layer->port]].type.shape;
  int64_t groups = laci_node_is(node, "ConvTranspose") ? laci_node_int(node, "group", 1) : 1;
  return shape->dims[layer->k_axis] * groups;
}

static const char *find_quantizable_bias(const laci_quantizing *q, laci_quantize_layer *layer) {
  const laci_node *node = &q->graph->nodes[layer->node];
  int value = node->n_inputs > 2 ? node->inputs[2] : -1;
  bool is_gemm = laci_node_is(node, "Gemm");
  layer->bias = -1;
  if (value < 0) return NULL;
  const laci_shape *shape = &q->graph->values[value].type.shape;
  bool fits = is_stored_constant(q, value) && shape->rank == 1 &&
              shape->dims[0] == count_output_channels(q, layer);
  if (is_gemm && (laci_node_float(node, "alpha", 1) != 1 || laci_node_float(node, "beta", 1) != 1))
    fits = false; /* the bias is multiplied by a factor, so its integers would not have the scale of
                     the products */
  if (!fits) return is_gemm ? NULL : "its bias is no stored f32 tensor";
  layer->bias = value;
  return NULL;
}

/* Returns why the weight cannot be quantized; NULL: it can be. */
static const char *explain_unquantizable_weight(const laci_quantizing *q, const laci_node *node,
                                                const laci_weight_axes *axes) {
  int value = node->inputs[axes->port];
  if (value < 0 || q->graph->values[value].stored < 0)
    return "its weight is computed, no stored tensor";
  const laci_stored *stored = &q->graph->stored[q->graph->values[value].stored];
  if (stored->dtype != LAC_DTYPE_F32) return "its weight is not f32";
  if (stored->overridable) return "its weight is an input that may be replaced";
  if (!is_stored_constant(q, value)) return "its weight is stored outside of the main graph";
  if (stored->shape.rank < 2 || laci_shape_count(&stored->shape) <= 0)
    return "its weight has fewer than two axes, or no elements";
  return NULL;
}

static const char *check_layer_quantizable(laci_quantizing *q, laci_quantize_layer *layer) {
  const laci_node *node = &q->graph->nodes[layer->node];
  laci_weight_axes axes[2];
  int n = node->op->weights(q->graph, node, axes);
  const char *reason = "it has no stored weight";
  if (!is_node_in_file(q, layer->node)) return "it is in a function of the file";
  for (int i = 0; i < n; i++) {
    const char *why = explain_unquantizable_weight(q, node, &axes[i]);
    if (i == 0 || !why) reason = why;
    if (why) continue;
    layer->port = axes[i].port;
    layer->other = 1 - axes[i].port;
    layer->k_axis = axes[i].k_axis;
    break;
  }
  if (reason) return reason;
  if (!is_quantizable(q, node->inputs[layer->other]))
    return "its data are no f32 values of the main graph";
  return find_quantizable_bias(q, layer);
}

void laci_quantize_find_layers(laci_quantizing *q) {
  for (int n = 0; n < q->graph->n_nodes; n++) {
    const laci_node *node = &q->graph->nodes[n];
    if (!is_type_in_list(node, products) || !node->op || !node->op->weights || node->n_inputs < 2)
      continue;
    bool has_stored = false;
    for (int i = 0; i < 2; i++) has_stored |= !is_quantizable(q, node->inputs[i]);
    laci_quantize_layer layer = {.node = n, .norm = -1, .bias = -1};
    if (!has_stored) continue; /* a product of two computed values has no weight */
    layer.reason = check_layer_quantizable(q, &layer);
    if (!layer.reason) layer.norm = find_norm_after(q, node);
    q->layers[q->n_layers++] = layer;
  }
}

/* ---- Values ---- */

/* Returns the result of the activation that follows `value`, if a runtime fuses it into the node
   that computes `value`; else `value`. */
static int find_value_after_activation(const laci_quantizing *q, int value) {
  int reader = find_only_reader(q, value);
  if (reader < 0) return value;
  const laci_node *node = &q->graph->nodes[reader];
  bool ends_it = is_type_in_list(node, ends) && node->inputs[0] == value &&
                 is_quantizable(q, node->outputs[0]);
  return ends_it ? node->outputs[0] : value;
}

static void mark_layer_values(laci_quantizing *q) {
  for (int l = 0; l < q->n_layers; l++) {
    const laci_quantize_layer *layer = &q->layers[l];
    const laci_node *node = &q->graph->nodes[layer->node];
    if (layer->reason) continue;
    q->wanted[node->inputs[layer->other]] = true;
    q->reads[layer->node] = true;
    if (!laci_node_is(node, "Conv") && !laci_node_is(node, "ConvTranspose")) continue;
    int made = layer->norm >= 0 ? q->graph->nodes[layer->norm].outputs[0] : node->outputs[0];
    int end = find_value_after_activation(q, made);
    if (q->graph->values[end].is_output) continue;
    q->wanted[end] = q->for_all[end] = true;
  }
}

/* Does the node pad with zeros? It can then run on integers, since every scale represents 0
 * exactly. */
static bool is_padding_with_zeros(const laci_quantizing *q, const laci_node *node) {
  if (!laci_node_is(node, "Pad") ||
      strcmp(laci_node_text(node, "mode", "constant"), "constant") != 0)
    return false;
  int fill = node->n_inputs > 2 ? node->inputs[2] : -1;
  if (fill < 0) return true;
  if (!is_stored_constant(q, fill)) return false;
  const laci_stored *stored = &q->graph->stored[q->graph->values[fill].stored];
  static const uint8_t zero[4];
  return stored->size_bytes == sizeof zero && memcmp(stored->bytes, zero, sizeof zero) == 0;
}

/* Does the node only move elements, so that it can run on integers? */
static bool is_only_moving_elements(const laci_quantizing *q, const laci_node *node) {
  return (is_type_in_list(node, moves) || is_padding_with_zeros(q, node)) &&
         is_quantizable(q, node->inputs[0]) && is_quantizable(q, node->outputs[0]);
}

static bool are_inputs_quantizable(const laci_quantizing *q, const laci_node *node,
                                   const bool *can) {
  for (int i = 0; i < node->n_inputs; i++) {
    if (node->inputs[i] < 0 || !is_quantizable(q, node->inputs[i]) || !can[node->inputs[i]])
      return false;
  }
  return node->n_inputs > 0;
}

/* Marks values between the layers in q->wanted, which has those of the layers. Forward: if all
 * inputs of a sum can be quantized, they are, and so is its result. Backward: if the result of a
 * node that only moves elements is quantized, its input is, too, and both share one scale. So the
 * node runs on integers. can: scratch, [n_values]; can[v]: value v could be quantized. */
static void mark_values_between(laci_quantizing *q, bool *can) {
  const laci_graph *graph = q->graph;
  memcpy(can, q->wanted, (size_t)graph->n_values);
  for (int n = 0; n < graph->n_nodes; n++) {
    const laci_node *node = &graph->nodes[n];
    if (!is_node_in_file(q, n)) continue;
    if (is_only_moving_elements(q, node)) can[node->outputs[0]] |= can[node->inputs[0]];
    if (!is_type_in_list(node, sums) || !are_inputs_quantizable(q, node, can)) continue;
    for (int i = 0; i < node->n_inputs; i++) q->wanted[node->inputs[i]] = true;
    q->reads[n] = true;
    int end = find_value_after_activation(q, node->outputs[0]);
    if (!is_quantizable(q, end) || graph->values[end].is_output) continue;
    q->wanted[end] = can[end] = q->for_all[end] = true;
  }
  for (int n = graph->n_nodes - 1; n >= 0; n--) {
    const laci_node *node = &graph->nodes[n];
    if (!is_node_in_file(q, n) || !is_only_moving_elements(q, node)) continue;
    int from = node->inputs[0], to = node->outputs[0];
    if (!q->wanted[to] || !can[from]) continue;
    q->wanted[from] = q->reads[n] = true;
    q->like[to] = from;
  }
}

void laci_quantize_mark_values(laci_quantizing *q, bool *scratch) {
  for (int v = 0; v < q->graph->n_values; v++) q->like[v] = -1;
  mark_layer_values(q);
  mark_values_between(q, scratch);
}

const char *laci_quantize_explain_no_layer(const laci_quantizing *q) {
  const char *first = "it has no Conv, ConvTranspose, Gemm or MatMul with a stored weight";
  for (int l = 0; l < q->n_layers; l++) {
    if (!q->layers[l].reason) return NULL;
    if (l == 0) first = q->layers[l].reason;
  }
  return first;
}

void laci_quantize_exclude_layers_without_scale(laci_quantizing *q) {
  for (int v = 0; v < q->graph->n_values; v++) {
    if (q->wanted[v] && !(q->quantizers[laci_quantize_find_scale_owner(q, v)].scale > 0))
      q->wanted[v] = false;
  }
  for (int l = 0; l < q->n_layers; l++) {
    laci_quantize_layer *layer = &q->layers[l];
    const laci_node *node = &q->graph->nodes[layer->node];
    if (layer->reason || q->wanted[node->inputs[layer->other]]) continue;
    layer->reason = "its data are 0 on all calibration samples";
    q->reads[layer->node] = false;
  }
}
