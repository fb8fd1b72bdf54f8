/* SPDX-License-Identifier: Apache-2.0
 * Gemm: y = alpha * op(A) * op(B) + beta * C, where op transposes if transA or transB is set; C is
 * broadcast.
 *
 * Channels: the contracted axes of A and B share a label, and so one channel order (coupling.h),
 * the other axis of B has the label of y's columns, and so does C. */
#include "graph/coupling.h"
#include "graph/gradient.h"
#include "graph/ops/shared/expect_in.h"
#include "graph/ops/shared/gemm_f64.h"
#include "graph/ops/shared/op_in.h"
#include "graph/ops/shared/walk_in.h"
#include "tensor/buf.h"

/** The roles of the axes; port 0 is A, port 1 is B. */
typedef struct roles {
  int a_row, a_k, b_k, b_col;
} roles;

static roles axis_roles_of_node(const laci_node *node) {
  int trans_a = laci_node_int(node, "transA", 0) != 0,
      trans_b = laci_node_int(node, "transB", 0) != 0;
  return (roles){.a_row = trans_a, .a_k = !trans_a, .b_k = trans_b, .b_col = !trans_b};
}

static lac_status check_shapes(laci_infer *infer, const roles *r) {
  const laci_shape *a = &infer->in[0]->shape, *b = &infer->in[1]->shape;
  char a_text[128], b_text[128];
  bool fits = (a->rank < 0 || a->rank == 2) && (b->rank < 0 || b->rank == 2);
  if (fits && a->rank == 2 && b->rank == 2) {
    int64_t left = a->dims[r->a_k], right = b->dims[r->b_k];
    fits = left < 0 || right < 0 || left == right;
  }
  if (fits) return LAC_OK;
  return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE,
                        "%s and %s cannot be multiplied (axis %d by axis %d)",
                        laci_shape_text(a, a_text, sizeof a_text),
                        laci_shape_text(b, b_text, sizeof b_text), r->a_k, r->b_k);
}

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 2, 3);
  if (st) return st;
  roles r = axis_roles_of_node(infer->node);
  st = check_shapes(infer, &r);
  if (st) return st;
  const laci_shape *a = &infer->in[0]->shape, *b = &infer->in[1]->shape;
  laci_shape *y = &infer->out[0].shape;
  infer->out[0].dtype = infer->in[0]->dtype;
  y->rank = 2;
  y->dims[0] = a->rank == 2 ? a->dims[r.a_row] : infer->new_symbol(infer);
  y->dims[1] = b->rank == 2 ? b->dims[r.b_col] : infer->new_symbol(infer);
  const laci_shape *c = laci_in_shape(infer, 2);
  for (int back = 1; c && back <= c->rank; back++) {
    int64_t have = c->dims[c->rank - back], want = back <= 2 ? y->dims[2 - back] : 1;
    if (have < 0 || want < 0 || have == want || have == 1) continue;
    char text[128];
    return laci_node_fail(
        infer->node, infer->err, LAC_BAD_SHAPE, "C is %s, which does not fit [%lld, %lld]",
        laci_shape_text(c, text, sizeof text), (long long)y->dims[0], (long long)y->dims[1]);
  }
  return LAC_OK;
}

static bool expect_input_shape(const laci_infer *infer, laci_shape *shape) {
  const laci_shape *b = laci_expect_known_shape_of_input(infer, 1);
  roles r = axis_roles_of_node(infer->node);
  return b && b->rank == 2 && laci_expect_size(infer, 2, r.a_k, b->dims[r.b_k], shape);
}

/** Computes y = alpha * y + beta * C, where C is broadcast. */
static void scale_and_add(const laci_eval *eval, double alpha, double beta) {
  laci_buf *y = eval->out[0];
  const laci_buf *c = laci_operand(eval, 2);
  for (int64_t at = 0; at < y->count; at++) y->f[at] *= alpha;
  if (!c || y->count == 0) return;
  laci_walk walk;
  laci_walk_begin(&walk, &y->shape);
  laci_walk_add_broadcast(&walk, &c->shape);
  laci_walk_merge_axes(&walk);
  laci_walk_seek_run(&walk, 0);
  for (int64_t run = 0; run < walk.n_runs; run++, laci_walk_next(&walk)) {
    double *to = y->f + run * walk.run;
    for (int64_t i = 0; i < walk.run; i++) to[i] += beta * c->f[walk.at[0] + i * walk.inner[0]];
  }
}

static lac_status eval(laci_eval *eval) {
  lac_status st = laci_check_floats(eval);
  if (st) return st;
  const laci_buf *a = eval->in[0], *b = eval->in[1];
  roles r = axis_roles_of_node(eval->node);
  int64_t a_stride[2] = {a->shape.dims[1], 1}, b_stride[2] = {b->shape.dims[1], 1}, zero = 0;
  laci_gemm_matrix right = {.data = b->f,
                            .row_stride = b_stride[r.b_k],
                            .col_stride = b_stride[r.b_col],
                            .offset = &zero};
  laci_gemm product = {.n_batch = 1,
                       .m = a->shape.dims[r.a_row],
                       .n = b->shape.dims[r.b_col],
                       .k = a->shape.dims[r.a_k],
                       .a = a->f,
                       .a_row_stride = a_stride[r.a_row],
                       .a_col_stride = a_stride[r.a_k],
                       .a_offset = &zero,
                       .a_period = 1,
                       .pack_b = laci_gemm_pack_matrix,
                       .pack_context = &right,
                       .c = eval->out[0]->f,
                       .c_row_stride = b->shape.dims[r.b_col],
                       .c_offset = &zero};
  st = laci_gemm_run(eval, &product);
  if (st) return st;
  scale_and_add(eval, laci_node_float(eval->node, "alpha", 1),
                laci_node_float(eval->node, "beta", 1));
  return LAC_OK;
}

/** Forbids reordering along the axes of A, B and y that have this label: makes them FIXED
 * (coupling.h). */
static void fix_axes_with_label(laci_coupling *c, int label) {
  const int ports[] = {0, 1, LACI_OUT(0)};
  for (int at = 0; at < 3; at++) {
    for (int axis = 0; axis < 2; axis++) {
      if (laci_coupling_get_label(c, ports[at], axis) == label)
        laci_coupling_set_label(c, ports[at], axis, LACI_FIXED);
    }
  }
}

/** Ties the channels of C to those of y (coupling.h); C is aligned with the last axes of y. An axis
 * of size 1 that is broadcast gets a label of its own. */
static void couple_bias(laci_coupling *c) {
  const laci_shape *bias = laci_port_shape(c, 2), *y = laci_port_shape(c, LACI_OUT(0));
  /* C is absent, or has more axes than this function handles: laci_couple_node then forbids
   * reordering along all axes */
  if (!bias || bias->rank > 2) return;
  laci_coupling_mark_described(c, 2);
  for (int back = 1; back <= bias->rank; back++) {
    int64_t have = bias->dims[bias->rank - back], full = y->dims[2 - back];
    if (have == full) {
      laci_coupling_set_label(c, 2, bias->rank - back,
                              laci_coupling_get_label(c, LACI_OUT(0), 2 - back));
    } else if (have == 1) {
      laci_coupling_set_label(c, 2, bias->rank - back, laci_coupling_new_label(c));
    } else { /* the sizes are unknown, so that the axis may or may not be broadcast */
      fix_axes_with_label(c, laci_coupling_get_label(c, LACI_OUT(0), 2 - back));
    }
  }
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph;
  const laci_shape *a = laci_port_shape(c, 0), *b = laci_port_shape(c, 1);
  const laci_shape *y = laci_port_shape(c, LACI_OUT(0));
  if (!a || !b || !y || a->rank != 2 || b->rank != 2 || y->rank != 2)
    return laci_coupling_status(c);
  roles r = axis_roles_of_node(node);
  int row = laci_coupling_new_label(c), k = laci_coupling_new_label(c),
      col = laci_coupling_new_label(c);
  laci_coupling_set_label(c, 0, r.a_row, row);
  laci_coupling_set_label(c, 0, r.a_k, k);
  laci_coupling_set_label(c, 1, r.b_k, k);
  laci_coupling_set_label(c, 1, r.b_col, col);
  laci_coupling_set_label(c, LACI_OUT(0), 0, row);
  laci_coupling_set_label(c, LACI_OUT(0), 1, col);
  couple_bias(c);
  return laci_coupling_status(c);
}

static int find_weight_axes(const laci_graph *graph, const laci_node *node,
                            laci_weight_axes axes[2]) {
  (void)graph;
  roles r = axis_roles_of_node(node);
  int n = 0;
  if (laci_has_input(node, 1)) {
    axes[n++] = (laci_weight_axes){.port = 1, .k_axis = r.b_col, .c_axis = r.b_k, .groups = 1};
  }
  if (laci_has_input(node, 0)) {
    axes[n++] = (laci_weight_axes){.port = 0, .k_axis = r.a_row, .c_axis = r.a_k, .groups = 1};
  }
  return n;
}

/** Adds a Gemm node factor * op(x) * op(y). */
static int add_gemm_node(laci_gradient_builder *b, const int inputs[2], bool trans_x, bool trans_y,
                         float factor) {
  const laci_attr attrs[] = {laci_attr_float("alpha", factor), laci_attr_int("transA", trans_x),
                             laci_attr_int("transB", trans_y)};
  return laci_gradient_add_node(
      b,
      &(laci_gradient_node){
          .type = "Gemm", .n_inputs = 2, .inputs = inputs, .n_attrs = 3, .attrs = attrs},
      NULL);
}

/** For Y = alpha * A' * B' with A' = op(A), B' = op(B): dA' = alpha * dY * B'^T, dB' = alpha * A'^T
 * * dY. dA is dA' transposed if A was, and dB likewise. */
static lac_status gradient(laci_gradient_builder *b, const laci_node *node) {
  roles r = axis_roles_of_node(node);
  bool trans_a = r.a_row == 1, trans_b = r.b_k == 1;
  float alpha = laci_node_float(node, "alpha", 1), beta = laci_node_float(node, "beta", 1);
  int dy = laci_gradient_of(b, node, 0), a = node->inputs[0], bb = node->inputs[1];
  if (laci_gradient_is_needed(b, node, 0))
    laci_gradient_contribute(b, node, 0,
                             trans_a
                                 ? add_gemm_node(b, (const int[]){bb, dy}, trans_b, true, alpha)
                                 : add_gemm_node(b, (const int[]){dy, bb}, false, !trans_b, alpha));
  if (laci_gradient_is_needed(b, node, 1))
    laci_gradient_contribute(b, node, 1,
                             trans_b
                                 ? add_gemm_node(b, (const int[]){dy, a}, true, trans_a, alpha)
                                 : add_gemm_node(b, (const int[]){a, dy}, !trans_a, false, alpha));
  if (laci_gradient_is_needed(b, node, 2))
    laci_gradient_contribute_broadcast(b, node, 2, laci_gradient_add_scale(b, dy, beta));
  return laci_gradient_status(b);
}

const laci_op laci_op_gemm = {
    .name = "Gemm",
    .role = LACI_ROLE_ALLOW,
    .integer_weights = true,
    .attributes = LACI_ATTRIBUTES({"alpha", LACI_ATTR_FLOAT}, {"beta", LACI_ATTR_FLOAT},
                                  {"transA", LACI_ATTR_INT}, {"transB", LACI_ATTR_INT}),
    .weights = find_weight_axes,
    .infer = infer,
    .expect = expect_input_shape,
    .eval = eval,
    .couple = couple_channel_orders,
    .gradient = gradient};
