/* SPDX-License-Identifier: Apache-2.0
 * Gemm and MatMul with a constant matrix as right operand: code that both implementations share
 * (onednn/product.c, native/algorithms/vector.c). */
#include "base/memory.h"
#include "engine/cpu/lower/product.h"
#include "graph/ops.h"
#include "engine/cpu/onednn/onednn.h"

/** Can Gemm's C be a bias? It can if it is absent, one number, or a row with one number for each
 * column. */
static bool is_c_a_bias(const laci_net *net, const laci_node *node, int64_t columns) {
  if (!laci_plan_has_input(node, 2)) return true;
  const laci_shape *c = laci_plan_shape(&net->plan, node->inputs[2]);
  int64_t count = laci_shape_count(c);
  bool row = count == 1 || (count == columns && c->rank > 0 && c->dims[c->rank - 1] == columns);
  return laci_plan_is_constant(&net->plan, node->inputs[2]) &&
         laci_plan_is_float(&net->plan, node->inputs[2]) && row;
}

bool laci_product_has_supported_operands(const laci_net *net, const laci_node *node) {
  if (!laci_plan_has_input(node, 0) || !laci_plan_has_input(node, 1) || node->outputs[0] < 0)
    return false;
  const laci_shape *a = laci_plan_shape(&net->plan, node->inputs[0]);
  const laci_shape *b = laci_plan_shape(&net->plan, node->inputs[1]);
  return laci_plan_is_float(&net->plan, node->inputs[0]) &&
         laci_plan_is_float(&net->plan, node->inputs[1]) && a->rank >= 1 && a->rank <= 5 &&
         b->rank >= 2 && b->rank <= 5 && laci_plan_shape(&net->plan, node->outputs[0])->rank >= 1;
}

bool laci_is_product_with_constant_matrix(laci_net *net, const laci_fused *fused,
                                          const char **why) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  *why = "a matrix or a sum that changes";
  if (!laci_product_has_supported_operands(net, node)) return false;
  if (!laci_plan_is_constant(&net->plan, node->inputs[1])) return false;
  if (node->op != &laci_op_gemm) return laci_plan_shape(&net->plan, node->inputs[1])->rank == 2;
  return is_c_a_bias(net, node, laci_plan_shape(&net->plan, node->outputs[0])->dims[1]);
}

laci_right_operand laci_right_operand_read(const laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const laci_shape *a = laci_plan_shape(&net->plan, node->inputs[0]);
  const laci_shape *b = laci_plan_shape(&net->plan, node->inputs[1]);
  if (node->op != &laci_op_gemm) {
    return (laci_right_operand){.rows = laci_shape_count_range(a, 0, a->rank - 1),
                                .depth = b->dims[0],
                                .columns = b->dims[1],
                                .alpha = 1};
  }
  const laci_shape *y = laci_plan_shape(&net->plan, node->outputs[0]);
  const bool transposed = laci_node_int(node, "transB", 0) != 0;
  return (laci_right_operand){.rows = y->dims[0],
                              .depth = b->dims[transposed],
                              .columns = y->dims[1],
                              .left_transposed = laci_node_int(node, "transA", 0) != 0,
                              .transposed = transposed,
                              .alpha = laci_node_float(node, "alpha", 1),
                              .beta = laci_node_float(node, "beta", 1)};
}

laci_net_weight laci_right_operand_weight(const laci_net *net, const laci_fused *fused,
                                          const laci_right_operand *r) {
  return (laci_net_weight){
      .value = net->plan.graph->nodes[fused->node].inputs[1],
      .shape = laci_shape_of(2, (int64_t[]){r->depth, r->columns}),
      .strides = {r->transposed ? 1 : r->columns, r->transposed ? r->depth : 1},
      .scale = fused->scale,
      .n_scale = r->columns,
      .run = r->transposed ? r->depth : 1,
      .factor = r->alpha};
}

int laci_right_operand_bias(laci_net *net, const laci_fused *fused, const laci_right_operand *r) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  bool given = node->op == &laci_op_gemm && laci_plan_has_input(node, 2);
  const float *c = given ? laci_plan_constant_floats(&net->plan, node->inputs[2]) : NULL;
  laci_shape shape = laci_shape_of(2, (int64_t[]){1, r->columns});
  if (net->plan.status || (!c && !fused->shift)) return -1;
  int64_t count = c ? laci_shape_count(laci_plan_shape(&net->plan, node->inputs[2])) : 0;
  float *sum = laci_alloc((size_t)r->columns, sizeof *sum);
  if (!sum) laci_plan_fail_no_memory(&net->plan);
  for (int64_t at = 0; sum && at < r->columns; at++) {
    sum[at] = c ? c[count == 1 ? 0 : at] * r->beta * (fused->scale ? fused->scale[at] : 1) : 0;
    if (fused->shift) sum[at] += fused->shift[at];
  }
  int vector = sum ? laci_net_weight_from_floats(net, sum, r->columns) : -1;
  laci_free(sum);
  return laci_net_view_new(net, vector, &shape,
                           laci_net_dense_layout(net, &shape, LACI_ELEMENT_F32), false);
}

int laci_product_read_matrix(laci_net *net, int value, int64_t rows, int64_t columns,
                             bool transposed) {
  laci_element dt = laci_net_float_element(net);
  int dense = laci_net_convert_to_dense(net, laci_net_read_value(net, value), dt);
  laci_shape shape = laci_shape_of(2, (int64_t[]){rows, columns});
  laci_layout *md = NULL;
  int64_t strides[LACI_MOST_AXES] = {transposed ? 1 : columns, transposed ? rows : 1};
  if (!net->plan.status && !laci_layout_create_strided(&md, 2, shape.dims, dt, strides))
    laci_plan_fail_no_memory(&net->plan);
  return laci_net_view_new(net, dense, &shape, md, false);
}
