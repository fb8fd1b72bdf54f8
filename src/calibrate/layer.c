/* SPDX-License-Identifier: Apache-2.0
 * Decides which layers can be calibrated, and describes them as matrix products. */
#include <string.h>

#include "analyze/analyze.h"
#include "base/error.h"
#include "base/budget.h"
#include "calibrate/layer_in.h"
#include "calibrate/recurrent_in.h"
#include "graph/op.h"
#include "graph/ops.h"
#include "tensor/buf.h"

/* ---- Windows ---- */

static int64_t find_int_attribute(const laci_node *node, const char *name, int at,
                                  int64_t otherwise) {
  size_t n = 0;
  const int64_t *values = laci_node_ints(node, name, &n);
  return values && (size_t)at < n ? values[at] : otherwise;
}

static bool has_int_attribute(const laci_node *node, const char *name) {
  size_t n = 0;
  return laci_node_ints(node, name, &n) != NULL;
}

/* Returns the padding before the first element of the axis. Inference has checked the attributes.
 * Pads that follow from the sizes (auto_pad) are computed as in inference: an odd element is at the
 * end for SAME_UPPER, else at the beginning. */
static int64_t padding_before(const laci_node *node, const laci_unfold_axis *axis, bool transposed,
                              int at) {
  const char *mode = laci_node_text(node, "auto_pad", "NOTSET");
  bool upper = strcmp(mode, "SAME_UPPER") == 0, lower = strcmp(mode, "SAME_LOWER") == 0;
  bool follows = upper || lower || (transposed && has_int_attribute(node, "output_shape"));
  if (!follows) return strcmp(mode, "VALID") == 0 ? 0 : find_int_attribute(node, "pads", at, 0);
  int64_t reach = (axis->kernel - 1) * axis->dilation + 1;
  int64_t total = transposed
                      ? axis->stride * (axis->in - 1) +
                            find_int_attribute(node, "output_padding", at, 0) + reach - axis->out
                      : (axis->out - 1) * axis->stride + reach - axis->in;
  if (total < 0) total = 0;
  return upper ? total / 2 : total - total / 2;
}

const char *laci_describe_windows(const laci_node *node, const laci_shape *x, const laci_shape *y,
                                  const laci_shape *weight, laci_unfold *u) {
  const bool transposed = node->op == &laci_op_conv_transpose;
  int n_spatial = x->rank - 2;
  if (n_spatial < 1 || n_spatial > LACI_UNFOLD_AXES || y->rank != x->rank)
    return "windows of more than three axes are not calibrated";
  u->images = x->dims[0];
  u->transposed = transposed;
  for (int i = 0; i < n_spatial; i++) {
    laci_unfold_axis *axis = &u->axis[LACI_UNFOLD_AXES - n_spatial + i];
    axis->in = x->dims[i + 2];
    axis->out = y->dims[i + 2];
    axis->kernel = weight->dims[i + 2];
    axis->stride = find_int_attribute(node, "strides", i, 1);
    axis->dilation = find_int_attribute(node, "dilations", i, 1);
    axis->pad = padding_before(node, axis, transposed, i);
  }
  return NULL;
}

/* Describes a value [outer, channels, inner] as the input of a matrix product with one tap (kernel
 * position). */
static void describe_matrix_input(const laci_shape *x, int c_axis, laci_unfold *u) {
  u->images = laci_shape_count_range(x, 0, c_axis);
  u->channels = x->dims[c_axis];
  u->axis[2].in = u->axis[2].out = laci_shape_count_range(x, c_axis + 1, x->rank);
}

/* ---- Layers ---- */

static int find_weight_port(const laci_network *n, const laci_layer *from) {
  const laci_node *node = &n->graph.nodes[from->node];
  laci_weight_axes axes[2];
  int candidates = node->op && node->op->weights ? node->op->weights(&n->graph, node, axes) : 0;
  for (int i = 0; i < candidates; i++) {
    int value = node->inputs[axes[i].port];
    if (value >= 0 && n->constant[value]) return axes[i].port;
  }
  return -1;
}

static int find_port_of_stored(const laci_node *node, const laci_stored *stored) {
  for (int port = 0; port < node->n_inputs; port++)
    if (node->inputs[port] == stored->value) return port;
  return -1;
}

/* Returns the value that a layer reads as data; -1: there is none. */
static int find_data_value(const laci_network *n, int at, int port) {
  const laci_node *node = &n->graph.nodes[at];
  const bool window = node->op == &laci_op_conv || node->op == &laci_op_conv_transpose;
  if (laci_node_is_recurrent(node))
    return port == 1 ? node->inputs[0] : laci_network_states_of(n, at);
  return node->inputs[window ? 0 : 1 - port];
}

/* Returns the axis of the data input over which a Gemm or MatMul sums. */
static int find_reduced_axis(const laci_node *node, int weight, int rank) {
  if (node->op == &laci_op_gemm) {
    bool transposed = laci_node_int(node, weight == 1 ? "transA" : "transB", 0) != 0;
    return (weight == 1) != transposed ? 1 : 0;
  }
  if (weight == 1 || rank == 1) return rank - 1;
  return rank - 2;
}

const char *laci_matrix_layer_describe_input(const laci_node *node, const laci_shape *x,
                                             const laci_shape *y, const laci_shape *w,
                                             laci_matrix_layer *l) {
  l->unfold.channels = l->channels;
  for (int i = 0; i < LACI_UNFOLD_AXES; i++)
    l->unfold.axis[i] = (laci_unfold_axis){1, 1, 1, 1, 1, 0};
  if (node->op == &laci_op_conv || node->op == &laci_op_conv_transpose)
    return laci_describe_windows(node, x, y, w, &l->unfold);
  if (x->rank < 1) return "it reads a single number";
  describe_matrix_input(x, find_reduced_axis(node, l->port, x->rank), &l->unfold);
  return l->unfold.channels == l->channels ? NULL : "its weight is not a plain matrix";
}

static const char *explain_unusable_weight(const laci_analysis *analysis, const laci_layer *from) {
  const laci_stored *stored = &analysis->graph->stored[from->stored];
  int n_same = 0;
  for (int l = 0; l < analysis->n_layers; l++) n_same += analysis->layers[l].stored == from->stored;
  if (!laci_dtype_is_float(stored->dtype)) return "quantized weights are not calibrated";
  if (from->view.n_scales > 0) return "its weight is multiplied before it is read";
  if (n_same > 1) return "several layers read its weight";
  return NULL;
}

const char *laci_matrix_layer_init(const laci_analysis *analysis, int layer, laci_network *n,
                                   laci_matrix_layer *out) {
  const laci_layer *from = &analysis->layers[layer];
  const laci_node *node = &n->graph.nodes[from->node];
  const laci_stored *stored = &n->graph.stored[from->stored];
  const char *reason = explain_unusable_weight(analysis, from);
  if (reason) return reason;
  bool matrix = node->op == &laci_op_gemm || node->op == &laci_op_mat_mul;
  bool window = node->op == &laci_op_conv || node->op == &laci_op_conv_transpose;
  bool recurrent = laci_node_is_recurrent(node);
  if (!matrix && !window && !recurrent) return "its operator is not calibrated";
  int port = recurrent ? find_port_of_stored(node, stored) : find_weight_port(n, from);
  if (port < 0) return "its weight is computed";
  bool direct = node->inputs[port] == stored->value;
  if (!direct && (window || stored->shape.rank != 2))
    return "its weight is computed from a stored one";
  if (matrix && stored->shape.rank != 2) return "its weight is more than one matrix";
  int value = find_data_value(n, from->node, port);
  if (value < 0 || n->constant[value]) return "its input does not depend on the network's inputs";
  if (n->refusal[value]) return n->refusal[value];
  if (!laci_dtype_is_float(n->graph.values[value].type.dtype) ||
      laci_network_value_bytes(n, value) == 0)
    return "it reads nothing, or no floats";
  if (recurrent) {
    *out = (laci_matrix_layer){
        .layer = layer, .node = from->node, .stored = from->stored, .port = port, .value = value};
    return laci_recurrent_layer_init(n, out);
  }
  if (node->outputs[0] < 0 || !laci_shape_is_known(&n->graph.values[node->outputs[0]].type.shape))
    return "the shape of its output depends on data";
  *out = (laci_matrix_layer){.layer = layer,
                             .node = from->node,
                             .stored = from->stored,
                             .port = port,
                             .value = value,
                             .rows = from->channels_out,
                             .channels = from->channels_in};
  const laci_shape *shape = &stored->shape;
  out->k_stride = laci_shape_count_range(shape, from->k_axis + 1, shape->rank);
  out->c_stride = laci_shape_count_range(shape, from->c_axis + 1, shape->rank);
  out->groups_along_c = window && node->op == &laci_op_conv_transpose;
  out->taps = laci_shape_count(shape) / (shape->dims[from->k_axis] * shape->dims[from->c_axis]);
  out->columns = out->taps * out->channels;
  if (out->columns > INT32_MAX || out->rows > INT32_MAX) return "it is too large";
  out->unfold.groups = from->groups;
  return laci_matrix_layer_describe_input(node, &n->graph.values[value].type.shape,
                                          &n->graph.values[node->outputs[0]].type.shape, shape,
                                          out);
}

uint64_t laci_matrix_layer_output_bytes(const laci_matrix_layer *l, const laci_network *n,
                                        const laci_unfold *unfold) {
  if (l->is_recurrent)
    return laci_count_bytes_saturated(unfold->images * unfold->groups * l->rows, sizeof(float));
  return laci_network_value_bytes(n, n->graph.nodes[l->node].outputs[0]);
}

/* ---- The stored weight ---- */

int64_t laci_matrix_layer_element(const laci_matrix_layer *l, int64_t group, int64_t row,
                                  int64_t column) {
  int64_t tap = column / l->channels, channel = column % l->channels;
  int64_t k = l->groups_along_c ? row : group * l->rows + row;
  int64_t c = l->groups_along_c ? group * l->channels + channel : channel;
  return k * l->k_stride + c * l->c_stride + tap;
}

lac_status laci_matrix_layer_gather(const laci_matrix_layer *l, const laci_network *n,
                                    const uint8_t *bytes, const laci_group_matrix *to,
                                    lac_error *err) {
  const laci_stored *stored = &n->graph.stored[l->stored];
  int64_t count = laci_shape_count(&stored->shape);
  double *all = laci_alloc((size_t)count, sizeof *all);
  if (!all) return laci_fail_memory(err, stored->name);
  laci_read_f64(stored->dtype, bytes, 0, count, all);
  for (int64_t row = 0; row < l->rows; row++)
    for (int64_t j = 0; j < l->columns; j++)
      to->elements[row * l->columns + j] = all[laci_matrix_layer_element(l, to->group, row, j)];
  laci_free(all);
  return LAC_OK;
}

void laci_matrix_layer_scatter(const laci_matrix_layer *l, const laci_network *n,
                               const laci_group_matrix *from, uint8_t *bytes, uint8_t *mask) {
  lac_dtype dtype = n->graph.stored[l->stored].dtype;
  size_t size = lac_dtype_size(dtype);
  for (int64_t row = 0; row < l->rows; row++) {
    for (int64_t j = 0; j < l->columns; j++) {
      int64_t at = laci_matrix_layer_element(l, from->group, row, j),
              element = row * l->columns + j;
      double kept = from->mask[element] ? from->elements[element] : 0;
      laci_write_f64(dtype, &kept, 1, bytes + (size_t)at * size);
      mask[at] = from->mask[element];
    }
  }
}
