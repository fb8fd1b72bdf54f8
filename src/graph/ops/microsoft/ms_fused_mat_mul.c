/* SPDX-License-Identifier: Apache-2.0
 * com.microsoft.FusedMatMul: y = alpha * A' B', a product as in MatMul. A' is A with its first axis
 * moved before the last one (transBatchA), then with its last two axes exchanged (transA); B' is
 * made from B likewise.
 *
 * Channels: the contracted axes of A and B share a label, and so one channel order (coupling.h);
 * rows, columns and batch axes keep their labels in y. */
#include "graph/coupling.h"
#include "graph/ops.h"
#include "graph/ops/shared/microsoft_in.h"
#include "graph/ops/shared/walk_in.h"
#include "tensor/buf.h"

/** An operand as MatMul would read it, after the transpositions. */
typedef struct operand {
  laci_shape shape;
  int axis[LACI_MAX_RANK]; /* for each axis, the axis of the stored operand */
  bool transposed;
} operand;

static operand make_transposed_operand(const laci_node *node, int port, const laci_shape *shape) {
  static const char *const names[2][2] = {{"transA", "transBatchA"}, {"transB", "transBatchB"}};
  operand o = {.shape = *shape};
  int rank = shape->rank;
  for (int axis = 0; axis < rank; axis++) o.axis[axis] = axis;
  if (rank > 2 && laci_node_int(node, names[port][1], 0)) {
    for (int axis = 0; axis < rank - 2; axis++) o.axis[axis] = axis + 1;
    o.axis[rank - 2] = 0;
    o.transposed = true;
  }
  if (rank > 1 && laci_node_int(node, names[port][0], 0)) {
    int last = o.axis[rank - 1];
    o.axis[rank - 1] = o.axis[rank - 2];
    o.axis[rank - 2] = last;
    o.transposed = true;
  }
  for (int axis = 0; axis < rank; axis++) o.shape.dims[axis] = shape->dims[o.axis[axis]];
  return o;
}

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 2, 2);
  if (st) return st;
  laci_type types[2];
  const laci_type *in[2] = {&types[0], &types[1]};
  for (int port = 0; port < 2; port++) {
    types[port] = *infer->in[port];
    types[port].shape = make_transposed_operand(infer->node, port, &infer->in[port]->shape).shape;
  }
  laci_infer moved = *infer;
  moved.in = in;
  return laci_op_mat_mul.infer(&moved);
}

/** Makes *out the operand transposed for the product; NULL where it has that layout already. */
static lac_status transpose_operand(const laci_eval *eval, int port, laci_buf **out) {
  const laci_buf *in = eval->in[port];
  operand o = make_transposed_operand(eval->node, port, &in->shape);
  int64_t strides[LACI_MAX_RANK], moved[LACI_MAX_RANK];
  *out = NULL;
  if (!o.transposed) return LAC_OK;
  lac_status st = laci_buf_create(in->dtype, &o.shape, out, eval->err);
  if (st) return st;
  laci_shape_strides(&in->shape, strides);
  for (int axis = 0; axis < o.shape.rank; axis++) moved[axis] = strides[o.axis[axis]];
  laci_copy_strided_to_rows(eval, in, &o.shape, moved, 0, *out);
  return LAC_OK;
}

static lac_status eval(laci_eval *eval) {
  laci_buf *moved[2] = {NULL, NULL};
  const laci_buf *in[2] = {eval->in[0], eval->in[1]};
  lac_status st = laci_check_floats(eval);
  for (int port = 0; port < 2 && !st; port++) {
    st = transpose_operand(eval, port, &moved[port]);
    if (moved[port]) in[port] = moved[port];
  }
  laci_eval product = *eval;
  product.in = in;
  if (!st) st = laci_op_mat_mul.eval(&product);
  double alpha = laci_node_float(eval->node, "alpha", 1);
  for (int64_t at = 0; !st && at < eval->out[0]->count; at++) eval->out[0]->f[at] *= alpha;
  for (int port = 0; port < 2; port++) laci_buf_destroy(moved[port]);
  return st;
}

/** Ties the operands and the result to each other (by labels, coupling.h) along the batch axis that
 * is `back` from the last one, along which operands may be broadcast. */
static void couple_batch_axis(laci_coupling *c, const operand o[2], int back, int y_axis) {
  int64_t full = laci_port_shape(c, LACI_OUT(0))->dims[y_axis];
  int label = laci_coupling_new_label(c), axis[2];
  bool certain = true;
  for (int port = 0; port < 2; port++) {
    int at = o[port].shape.rank - 2 - back;
    axis[port] = at < 0 ? -1 : o[port].axis[at];
    if (at < 0) continue;
    int64_t size = o[port].shape.dims[at];
    if (size == full) laci_coupling_set_label(c, port, axis[port], label);
    else if (size == 1) laci_coupling_set_label(c, port, axis[port], laci_coupling_new_label(c));
    else certain = false; /* the axis is FIXED, and so must be the axes that correspond to it */
  }
  if (certain) laci_coupling_set_label(c, LACI_OUT(0), y_axis, label);
  for (int port = 0; port < 2 && !certain; port++) {
    if (axis[port] >= 0) laci_coupling_set_label(c, port, axis[port], LACI_FIXED);
  }
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph;
  const laci_shape *a = laci_port_shape(c, 0), *b = laci_port_shape(c, 1);
  const laci_shape *y = laci_port_shape(c, LACI_OUT(0));
  if (!a || !b || !y || a->rank < 1 || b->rank < 1) return laci_coupling_status(c);
  const operand o[2] = {make_transposed_operand(node, 0, a), make_transposed_operand(node, 1, b)};
  int tail = (a->rank > 1) + (b->rank > 1), batches = y->rank - tail;
  int widest = (a->rank > b->rank ? a->rank : b->rank) - 2;
  if (batches != (widest > 0 ? widest : 0)) return laci_coupling_status(c);
  for (int port = 0; port < 2; port++) laci_coupling_mark_described(c, port);
  laci_coupling_mark_described(c, LACI_OUT(0));
  int k = laci_coupling_new_label(c);
  laci_coupling_set_label(c, 0, o[0].axis[a->rank - 1], k);
  laci_coupling_set_label(c, 1, o[1].axis[b->rank > 1 ? b->rank - 2 : 0], k);
  if (a->rank > 1) {
    int row = laci_coupling_new_label(c);
    laci_coupling_set_label(c, 0, o[0].axis[a->rank - 2], row);
    laci_coupling_set_label(c, LACI_OUT(0), batches, row);
  }
  if (b->rank > 1) {
    int col = laci_coupling_new_label(c);
    laci_coupling_set_label(c, 1, o[1].axis[b->rank - 1], col);
    laci_coupling_set_label(c, LACI_OUT(0), y->rank - 1, col);
  }
  for (int back = 1; back <= batches; back++) couple_batch_axis(c, o, back, batches - back);
  return laci_coupling_status(c);
}

/** Describes operands of two axes as weights; a batch of matrices is no weight. */
static int find_weight_axes(const laci_graph *graph, const laci_node *node,
                            laci_weight_axes axes[2]) {
  int n = 0;
  for (int port = 1; port >= 0; port--) {
    if (!laci_has_input(node, port)) continue;
    const laci_shape *shape = &graph->values[node->inputs[port]].type.shape;
    if (shape->rank != 2) continue;
    operand o = make_transposed_operand(node, port, shape);
    axes[n++] = (laci_weight_axes){
        .port = port, .k_axis = o.axis[port], .c_axis = o.axis[!port], .groups = 1};
  }
  return n;
}

const laci_op laci_op_ms_fused_mat_mul = {
    .name = "FusedMatMul",
    .domain = LACI_MICROSOFT,
    .role = LACI_ROLE_ALLOW,
    .attributes = LACI_ATTRIBUTES({"alpha", LACI_ATTR_FLOAT}, {"transA", LACI_ATTR_INT},
                                  {"transB", LACI_ATTR_INT}, {"transBatchA", LACI_ATTR_INT},
                                  {"transBatchB", LACI_ATTR_INT}),
    .weights = find_weight_axes,
    .infer = infer,
    .eval = eval,
    .couple = couple_channel_orders};
