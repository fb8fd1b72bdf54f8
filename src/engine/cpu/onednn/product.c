/* SPDX-License-Identifier: Apache-2.0
 * Matrix products: Gemm and MatMul.
 *
 * If the right operand is one constant matrix, all rows on the left form one matrix, and the weight
 * is scaled, reordered and kept. A product of two computed values is oneDNN's batched product. It
 * reads the operands as they are stored, if it has a kernel for that. */
#include "engine/cpu/lower/product.h"

#include "engine/cpu/native/native.h"
#include "engine/cpu/onednn/onednn.h"

/* ---- A constant matrix on the right ---- */

static void add_product_step(laci_net *net, const laci_fused *fused, laci_primitive *pd,
                             const laci_right_operand *r, const int operands[3]) {
  const laci_shape *y = laci_plan_shape(&net->plan, fused->output);
  laci_element dt = laci_net_result_element(net, fused->output);
  laci_shape flat = laci_shape_of(2, (int64_t[]){r->rows, r->columns});
  const laci_layout *dst = laci_primitive_layout(pd, LACI_ARG_DST);
  laci_net_weight weight = laci_right_operand_weight(net, fused, r);
  int w = laci_net_weight_in_layout(net, &weight, laci_primitive_layout(pd, LACI_ARG_WEIGHTS));
  int bias = operands[1], to, sum = operands[2];
  if (sum >= 0) {
    to = laci_net_make_sum_target(
        net, laci_product_read_matrix(net, sum, r->rows, r->columns, false), dst, dt);
  } else {
    to = laci_net_tensor_new(net, &flat, dt, laci_net_dense_layout(net, &flat, dt),
                             laci_net_buffer_new(net, LACI_PLACE_ARENA, laci_layout_bytes(dst)));
  }
  laci_net_step_add(net, fused, pd, bias >= 0 ? 4 : 3,
                    (const int[][2]){{LACI_ARG_SRC, operands[0]},
                                     {LACI_ARG_WEIGHTS, w},
                                     {LACI_ARG_DST, to},
                                     {LACI_ARG_BIAS, bias}});
  laci_net_bind_value(net, fused->output,
                      laci_net_view_new(net, to, y, laci_net_dense_layout(net, y, dt), false));
}

static void lower_product(laci_net *net, const laci_fused *fused, const laci_right_operand *r) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  laci_element dt = laci_net_float_element(net);
  laci_shape weight = laci_shape_of(2, (int64_t[]){r->depth, r->columns});
  laci_shape flat = laci_shape_of(2, (int64_t[]){r->rows, r->columns});
  laci_primitive *pd = NULL;
  int sum, bias = laci_right_operand_bias(net, fused, r);
  int a = laci_product_read_matrix(net, node->inputs[0], r->rows, r->depth, r->left_transposed);
  laci_posts *attr = laci_net_create_posts(net, fused, &sum);
  laci_layout *w = laci_net_any_layout(net, &weight, dt),
              *dst = laci_net_dense_layout(net, &flat, laci_net_result_element(net, fused->output));
  if (!net->plan.status) {
    const laci_layout *b = bias >= 0 ? net->tensors[bias].md : NULL;
    lac_status st = laci_primitive_describe_matmul(
        &pd, net->onednn, (const laci_layout *const[]){net->tensors[a].md, w, b, dst}, attr);
    if (laci_net_check_status(net, st, "matrix product")) {
      add_product_step(net, fused, pd, r, (const int[]){a, bias, sum});
    }
  }
  laci_layout_destroy(w);
  laci_layout_destroy(dst);
  laci_posts_destroy(attr);
}

static void lower_product_with_constant(laci_net *net, const laci_fused *fused) {
  const laci_right_operand r = laci_right_operand_read(net, fused);
  lower_product(net, fused, &r);
}

/* ---- Two values ---- */

/** Returns a view of the tensor with leading axes of size 1, so that both operands have `rank`
 * axes. */
static int view_with_leading_axes(laci_net *net, int tensor, int rank) {
  if (net->plan.status || tensor < 0) return -1;
  laci_shape shape = net->tensors[tensor].shape, wide = {.rank = rank};
  if (shape.rank == rank) return tensor;
  for (int axis = 0; axis < rank; axis++) {
    int from = axis - (rank - shape.rank);
    wide.dims[axis] = from < 0 ? 1 : shape.dims[from];
  }
  int dense = laci_net_convert_to_dense(net, tensor, laci_net_float_element(net));
  return laci_net_view_new(net, dense, &wide,
                           laci_net_dense_layout(net, &wide, laci_net_float_element(net)), false);
}

/** Describes a batched product of the operands as they are stored (maybe transposed), or of
 * row-major copies where oneDNN has no kernel for that. */
static laci_primitive *describe_batched_product(laci_net *net, int operands[2],
                                                const laci_layout *dst, const laci_posts *attr) {
  laci_primitive *pd = NULL;
  for (int dense = 0; dense < 2 && !net->plan.status; dense++) {
    for (int at = 0; at < 2; at++) {
      /* A view of a part of a tensor is copied first: oneDNN 2.6's kernels ignore its offset. */
      operands[at] = dense
                         ? laci_net_convert_to_dense(net, operands[at], laci_net_float_element(net))
                         : laci_net_make_whole_tensor(net, operands[at]);
    }
    if (net->plan.status) break;
    const laci_layout *const mds[] = {net->tensors[operands[0]].md, net->tensors[operands[1]].md,
                                      NULL, dst};
    lac_status st = laci_primitive_describe_matmul(&pd, net->onednn, mds, attr);
    if (!st && (dense || !laci_primitive_is_reference(pd))) break;
    if (!st) laci_primitive_destroy(pd);
    pd = NULL;
    if (dense) (void)laci_net_check_status(net, st, "matrix product");
  }
  return pd;
}

static bool can_lower_product_of_values(laci_net *net, const laci_fused *fused, const char **why) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  *why = "operands of this kind";
  return laci_product_has_supported_operands(net, node) &&
         laci_plan_shape(&net->plan, node->inputs[0])->rank > 1;
}

static void lower_product_of_values(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const laci_shape *y = laci_plan_shape(&net->plan, fused->output);
  laci_element dt = laci_net_result_element(net, fused->output);
  int sum, to = -1;
  int operands[2] = {
      view_with_leading_axes(net, laci_net_read_value(net, node->inputs[0]), y->rank),
      view_with_leading_axes(net, laci_net_read_value(net, node->inputs[1]), y->rank)};
  laci_posts *attr = laci_net_create_posts(net, fused, &sum);
  laci_layout *dst = laci_net_dense_layout(net, y, dt);
  laci_primitive *pd = net->plan.status ? NULL : describe_batched_product(net, operands, dst, attr);
  if (pd && sum >= 0) {
    to = laci_net_make_sum_target(net, laci_net_read_value(net, sum), dst, dt);
  } else if (pd) {
    to = laci_net_tensor_new(net, y, dt, laci_net_dense_layout(net, y, dt),
                             laci_net_buffer_new(net, LACI_PLACE_ARENA, laci_layout_bytes(dst)));
  }
  if (pd) {
    laci_net_step_add(
        net, fused, pd, 3,
        (const int[][2]){
            {LACI_ARG_SRC, operands[0]}, {LACI_ARG_WEIGHTS, operands[1]}, {LACI_ARG_DST, to}});
  }
  laci_net_bind_value(net, fused->output, to);
  laci_layout_destroy(dst);
  laci_posts_destroy(attr);
}

/* ---- The lists of implementations ---- */

const laci_implementation laci_implementations_gemm[] = {
    {"zeros left out, by our kernels",
     LACI_FUSIBLE_SCALE | LACI_FUSIBLE_FUNCTIONS | LACI_FUSIBLE_SUM, laci_can_lower_native,
     laci_lower_native},
    {"few rows, zeros left out", LACI_FUSIBLE_SCALE | LACI_FUSIBLE_FUNCTIONS | LACI_FUSIBLE_SUM,
     laci_can_lower_product_sparse, laci_lower_product_sparse},
    {"constant matrix, in strips", LACI_FUSIBLE_SCALE | LACI_FUSIBLE_FUNCTIONS | LACI_FUSIBLE_SUM,
     laci_can_lower_product_strips, laci_lower_product_strips},
    {"constant matrix, by oneDNN", LACI_FUSIBLE_SCALE | LACI_FUSIBLE_FUNCTIONS | LACI_FUSIBLE_SUM,
     laci_is_product_with_constant_matrix, lower_product_with_constant},
    {"matrix that changes, by oneDNN", LACI_FUSIBLE_NOTHING, laci_can_lower_gemm_values,
     laci_lower_gemm_values},
    {.name = NULL},
};
const laci_implementation laci_implementations_matmul[] = {
    {"zeros left out, by our kernels",
     LACI_FUSIBLE_SCALE | LACI_FUSIBLE_FUNCTIONS | LACI_FUSIBLE_SUM, laci_can_lower_native,
     laci_lower_native},
    {"few rows, zeros left out", LACI_FUSIBLE_SCALE | LACI_FUSIBLE_FUNCTIONS | LACI_FUSIBLE_SUM,
     laci_can_lower_product_sparse, laci_lower_product_sparse},
    {"constant matrix, in strips", LACI_FUSIBLE_SCALE | LACI_FUSIBLE_FUNCTIONS | LACI_FUSIBLE_SUM,
     laci_can_lower_product_strips, laci_lower_product_strips},
    {"constant matrix, by oneDNN", LACI_FUSIBLE_SCALE | LACI_FUSIBLE_FUNCTIONS | LACI_FUSIBLE_SUM,
     laci_is_product_with_constant_matrix, lower_product_with_constant},
    {"two values, by oneDNN", LACI_FUSIBLE_FUNCTIONS | LACI_FUSIBLE_SUM,
     can_lower_product_of_values, lower_product_of_values},
    {.name = NULL},
};
