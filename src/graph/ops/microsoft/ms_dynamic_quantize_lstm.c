/* SPDX-License-Identifier: Apache-2.0
 * com.microsoft.DynamicQuantizeLSTM: an LSTM (lstm.c) whose weights are integers, and whose data
 * and hidden states are quantized as DynamicQuantizeLinear does: the data of all time steps
 * together, and the hidden states of all sequences before each time step.
 *
 *   x [T, B, I], w [D, I, 4 * H], r [D, H, 4 * H]; b, lengths and states as an LSTM's
 *   scales and zero points of w and r: [D], or [D, 4 * H] for each row of gates
 *
 * Channels: axis I of x and of w have the same channels. Hidden channels are FIXED: their order
 * must stay (coupling.h). */
#include "base/error.h"
#include "graph/coupling.h"
#include "graph/ops/shared/integer_in.h"
#include "graph/ops/shared/microsoft_in.h"
#include "graph/ops/shared/recurrent_in.h"
#include "tensor/buf.h"

enum { X, W, R, BIAS, LENGTHS, PEEPHOLE = 7, W_SCALE, W_ZERO, R_SCALE, R_ZERO, N_INPUTS };
enum { N_FLOAT_INPUTS = PEEPHOLE + 1 };

static const laci_recurrent frame = {.n_gates = 4,
                                     .n_activations = 3,
                                     .activations = {"Sigmoid", "Tanh", "Tanh"},
                                     .flag = "input_forget",
                                     .has_cell = true,
                                     .dynamic = true,
                                     .step = laci_lstm_compute_step};

/** Swaps the last two axes of a weight, so that rows come first, as an LSTM has them. */
static laci_shape shape_of_rows(const laci_shape *shape) {
  laci_shape rows = *shape;
  if (shape->rank != 3) return rows;
  rows.dims[1] = shape->dims[2];
  rows.dims[2] = shape->dims[1];
  return rows;
}

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, R + 1, N_INPUTS);
  for (int port = W_SCALE; !st && port < N_INPUTS; port++) {
    if (!laci_has_input(infer->node, port))
      st = laci_node_fail(infer->node, infer->err, LAC_BAD_FILE, "input %d is missing", port);
  }
  if (st) return st;
  const laci_type *in[N_FLOAT_INPUTS];
  laci_type weights[2];
  for (int port = 0; port < N_FLOAT_INPUTS; port++) in[port] = infer->in[port];
  for (int at = 0; at < 2; at++) {
    weights[at] =
        (laci_type){.dtype = LAC_DTYPE_F32, .shape = shape_of_rows(&infer->in[W + at]->shape)};
    in[W + at] = &weights[at];
  }
  laci_infer inner = *infer;
  inner.in = in;
  inner.n_in = N_FLOAT_INPUTS;
  return laci_recurrent_infer(&inner, &frame);
}

/** Returns element `row` of a direction's scales or zero points. */
static double list_element(const laci_buf *list, int64_t n_directions, int64_t direction,
                           int64_t row) {
  const int64_t each = list->count / n_directions;
  return laci_buf_get_f(list, direction * each + row % each);
}

/** Makes *rows, a weight as floats, with rows first. */
static lac_status dequantize_weight(const laci_eval *eval, int port, int scale_port,
                                    laci_buf **rows) {
  const laci_buf *w = eval->in[port], *scale = eval->in[scale_port];
  const laci_buf *zero = eval->in[scale_port + 1];
  const bool fits = w->i && w->shape.rank == 3 && w->shape.dims[0] > 0;
  const int64_t n = fits ? w->shape.dims[0] : 1, each = fits ? w->shape.dims[2] : 1;
  const bool listed = scale->f && (scale->count == n || scale->count == n * each);
  if (!fits || !listed || !zero->i || (zero->count != n && zero->count != n * each))
    return laci_node_fail(eval->node, eval->err, LAC_BAD_SHAPE,
                          "scales or zero points do not fit input %d", port);
  const laci_shape shape = shape_of_rows(&w->shape);
  lac_status st = laci_buf_create(LAC_DTYPE_F64, &shape, rows, eval->err);
  const int64_t depth = w->shape.dims[1];
  for (int64_t at = 0; !st && at < w->count; at++) {
    const int64_t direction = at / (depth * each), k = at / each % depth, row = at % each;
    const double steps = (double)w->i[at] - list_element(zero, n, direction, row);
    (*rows)->f[(direction * each + row) * depth + k] =
        steps * list_element(scale, n, direction, row);
  }
  return st;
}

/** Returns how many elements of the data are before the end of the longest sequence. */
static int64_t count_data_elements(const laci_eval *eval) {
  const laci_buf *x = eval->in[X], *lengths = laci_operand(eval, LENGTHS);
  int64_t longest = lengths ? 0 : x->shape.dims[0];
  for (int64_t at = 0; lengths && at < lengths->count; at++) {
    const int64_t length = laci_buf_get_i(lengths, at);
    if (length > longest) longest = length;
  }
  if (longest > x->shape.dims[0]) longest = x->shape.dims[0];
  return longest * x->shape.dims[1] * x->shape.dims[2];
}

/** Makes *quantized, what is left of the data once they were quantized. */
static lac_status quantize_data(const laci_eval *eval, laci_buf **quantized) {
  const laci_buf *x = eval->in[X];
  if (!x->f || x->shape.rank != 3)
    return laci_node_fail(eval->node, eval->err, LAC_BAD_SHAPE, "wanted floats of three axes");
  lac_status st = laci_buf_create(LAC_DTYPE_F64, &x->shape, quantized, eval->err);
  const laci_dynamic_range range = laci_dynamic_find_range(x->f, count_data_elements(eval));
  for (int64_t at = 0; !st && at < x->count; at++)
    (*quantized)->f[at] = laci_dynamic_quantize_to_steps(range, x->f[at]) * (double)range.scale;
  return st;
}

static lac_status eval(laci_eval *eval) {
  laci_buf *made[3] = {NULL, NULL, NULL};
  const laci_buf *in[N_FLOAT_INPUTS];
  lac_status st = quantize_data(eval, &made[X]);
  if (!st) st = dequantize_weight(eval, W, W_SCALE, &made[W]);
  if (!st) st = dequantize_weight(eval, R, R_SCALE, &made[R]);
  if (!st) {
    for (int port = 0; port < N_FLOAT_INPUTS; port++)
      in[port] = port <= R ? made[port] : eval->in[port];
    laci_eval inner = *eval;
    inner.in = in;
    inner.n_in = N_FLOAT_INPUTS;
    st = laci_recurrent_eval(&inner, &frame);
  }
  for (int at = 0; at < 3; at++) laci_buf_destroy(made[at]);
  return st;
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  const laci_shape *x = laci_port_shape(c, X), *w = laci_port_shape(c, W);
  (void)graph, (void)node;
  c->why = "hidden channels of a quantized LSTM stay in place";
  if (!x || !w || x->rank != 3 || w->rank != 3) return laci_coupling_status(c);
  const int inputs = laci_coupling_new_label(c);
  laci_coupling_set_label(c, X, 2, inputs);
  laci_coupling_set_label(c, W, 1, inputs);
  laci_coupling_mark_label_normalized(c, inputs);
  return laci_coupling_status(c);
}

static int find_weight_axes(const laci_graph *graph, const laci_node *node,
                            laci_weight_axes axes[2]) {
  (void)graph;
  if (node->n_inputs < N_INPUTS) return 0;
  for (int at = 0; at < 2; at++) {
    if (node->inputs[W + at] < 0) return 0;
    axes[at] = (laci_weight_axes){.port = W + at,
                                  .k_axis = 2,
                                  .c_axis = 1,
                                  .groups = 1,
                                  .scale_port = W_SCALE + 2 * at,
                                  .zero_port = W_ZERO + 2 * at};
  }
  return 2;
}

const laci_op laci_op_ms_dynamic_quantize_lstm = {
    .name = "DynamicQuantizeLSTM",
    .domain = LACI_MICROSOFT,
    .role = LACI_ROLE_ALLOW,
    .discontinuous = true,
    .byte_weights = true,
    .attributes = LACI_ATTRIBUTES(
        {"activation_alpha", LACI_ATTR_FLOATS}, {"activation_beta", LACI_ATTR_FLOATS},
        {"activations", LACI_ATTR_TEXTS}, {"clip", LACI_ATTR_FLOAT}, {"direction", LACI_ATTR_TEXT},
        {"hidden_size", LACI_ATTR_INT}, {"input_forget", LACI_ATTR_INT}),
    .weights = find_weight_axes,
    .each_weight = true,
    .infer = infer,
    .eval = eval,
    .couple = couple_channel_orders};
