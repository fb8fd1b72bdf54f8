/* SPDX-License-Identifier: Apache-2.0
 * Finds the layers that can be quantized, and says why the others cannot. values.c chooses the
 * values that are quantized with them. */
#include "graph/copies.h"
#include "graph/op.h"
#include "onnx/edit.h"
#include "quantize/quantize_in.h"
#include "tensor/shape.h"

static const char *const products[] = {"Conv", "ConvTranspose", "Gemm", "MatMul", NULL};

bool laci_quantize_is_type_in_list(const laci_node *node, const char *const *names) {
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

bool laci_quantize_is_node_in_file(const laci_quantizing *q, int node) {
  const laci_node *n = &q->graph->nodes[node];
  int value = find_first_output(n);
  return value >= 0 &&
         laci_edit_is_output_of(q->edit, q->graph->values[value].name, n->type, n->n_inputs);
}

bool laci_quantize_is_quantizable(const laci_quantizing *q, int value) {
  if (value < 0) return false;
  const laci_value *v = &q->graph->values[value];
  if (v->stored >= 0 || v->type.dtype != LAC_DTYPE_F32) return false;
  return laci_edit_is_computed(q->edit, v->name) || laci_edit_is_stored_or_input(q->edit, v->name);
}

bool laci_quantize_is_stored_constant(const laci_quantizing *q, int value) {
  if (value < 0 || q->graph->values[value].stored < 0) return false;
  const laci_stored *stored = &q->graph->stored[q->graph->values[value].stored];
  return stored->dtype == LAC_DTYPE_F32 && !stored->overridable &&
         laci_edit_is_stored_or_input(q->edit, q->graph->values[value].name);
}

int laci_quantize_find_only_reader(const laci_quantizing *q, int value) {
  const laci_value *v = &q->graph->values[value];
  if (v->is_output || v->n_readers != 1) return -1;
  const laci_node *node = &q->graph->nodes[v->readers[0]];
  int n = 0;
  for (int i = 0; i < node->n_inputs; i++) n += node->inputs[i] == value;
  return n == 1 && laci_quantize_is_node_in_file(q, v->readers[0]) ? v->readers[0] : -1;
}

/* ---- Layers ---- */

static int find_norm_after(const laci_quantizing *q, const laci_node *node) {
  int reader = laci_quantize_find_only_reader(q, node->outputs[0]);
  if (reader < 0 || !laci_node_is(node, "Conv")) return -1;
  const laci_node *norm = &q->graph->nodes[reader];
  bool ok = laci_node_is(norm, "BatchNormalization") && norm->n_inputs == 5 &&
            norm->inputs[0] == node->outputs[0] && laci_node_int(norm, "training_mode", 0) == 0;
  for (int i = 1; ok && i < norm->n_inputs; i++)
    ok = laci_quantize_is_stored_constant(q, laci_graph_skip_copies(q->graph, norm->inputs[i]));
  for (int i = 1; ok && i < norm->n_outputs; i++) ok = norm->outputs[i] < 0;
  return ok && norm->outputs[0] >= 0 ? reader : -1;
}

int64_t laci_quantize_count_channels(const laci_quantizing *q, const laci_quantize_layer *layer) {
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
  value = laci_graph_skip_copies(q->graph, value); /* PyTorch stores equal biases once */
  const laci_shape *shape = &q->graph->values[value].type.shape;
  bool fits = laci_quantize_is_stored_constant(q, value) && shape->rank == 1 &&
              shape->dims[0] == laci_quantize_count_channels(q, layer);
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
  if (!laci_quantize_is_stored_constant(q, value))
    return "its weight is stored outside of the main graph";
  if (stored->shape.rank < 2 || laci_shape_count(&stored->shape) <= 0)
    return "its weight has fewer than two axes, or no elements";
  return NULL;
}

static const char *check_layer_quantizable(laci_quantizing *q, laci_quantize_layer *layer) {
  const laci_node *node = &q->graph->nodes[layer->node];
  laci_weight_axes axes[2];
  int n = node->op->weights(q->graph, node, axes);
  const char *reason = "it has no stored weight";
  if (!laci_quantize_is_node_in_file(q, layer->node)) return "it is in a function of the file";
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
  if (!laci_quantize_is_quantizable(q, node->inputs[layer->other]))
    return "its data are no f32 values of the main graph";
  return q->form == LACI_QUANTIZE_DYNAMIC ? laci_quantize_explain_no_dynamic(q, layer)
                                          : find_quantizable_bias(q, layer);
}

/* Finds the Add node that alone reads a MatMul and adds a stored vector, which no other node
 * reads, to its channels. */
static void find_add_after(const laci_quantizing *q, laci_quantize_layer *layer) {
  const laci_node *node = &q->graph->nodes[layer->node];
  int reader = laci_quantize_find_only_reader(q, node->outputs[0]);
  if (reader < 0 || !laci_node_is(node, "MatMul") || layer->port != 1) return;
  const laci_node *add = &q->graph->nodes[reader];
  if (!laci_node_is(add, "Add") || add->n_inputs != 2) return;
  const int port = add->inputs[0] == node->outputs[0], value = add->inputs[port];
  if (!laci_quantize_is_stored_constant(q, value) || q->graph->values[value].n_readers != 1 ||
      q->graph->values[value].is_output)
    return;
  const laci_shape *shape = &q->graph->values[value].type.shape;
  const int64_t n = laci_quantize_count_channels(q, layer);
  if (shape->rank < 1 || shape->dims[shape->rank - 1] != n || laci_shape_count(shape) != n) return;
  layer->add = reader;
  layer->add_port = port;
}

void laci_quantize_find_layers(laci_quantizing *q) {
  for (int n = 0; n < q->graph->n_nodes; n++) {
    const laci_node *node = &q->graph->nodes[n];
    if (!laci_quantize_is_type_in_list(node, products) || !node->op || !node->op->weights ||
        node->n_inputs < 2)
      continue;
    bool has_stored = false;
    for (int i = 0; i < 2; i++) has_stored |= !laci_quantize_is_quantizable(q, node->inputs[i]);
    laci_quantize_layer layer = {.node = n, .norm = -1, .bias = -1, .add = -1};
    if (!has_stored) continue; /* a product of two computed values has no weight */
    layer.reason = check_layer_quantizable(q, &layer);
    if (!layer.reason) layer.norm = find_norm_after(q, node);
    if (!layer.reason) find_add_after(q, &layer);
    q->layers[q->n_layers++] = layer;
  }
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
