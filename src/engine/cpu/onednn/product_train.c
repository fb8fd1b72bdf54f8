/* SPDX-License-Identifier: Apache-2.0
 * Gemm of two computed values, as in training: the weights change with every step, and the
 * gradients of a Gemm are Gemms. Transposed operands are read as they are stored, by their
 * strides. */
#include "engine/cpu/lower/product.h"
#include "engine/cpu/onednn/onednn.h"

/** Returns a tensor of the operand as [rows, columns]. `transposed`: it is stored as [columns,
 * rows]. */
static int read_matrix_operand(laci_net *net, int value, bool transposed) {
  laci_element dt = laci_net_float_element(net);
  int dense = laci_net_convert_to_dense(net, laci_net_read_value(net, value), dt);
  if (dense < 0 || !transposed) return dense;
  laci_shape stored = net->tensors[dense].shape;
  laci_shape shape = laci_shape_of(2, (int64_t[]){stored.dims[1], stored.dims[0]});
  int64_t strides[LACI_MOST_AXES] = {1, stored.dims[1]};
  laci_layout *md = NULL;
  if (!laci_layout_create_strided(&md, 2, shape.dims, dt, strides))
    laci_plan_fail_no_memory(&net->plan);
  return laci_net_view_new(net, dense, &shape, md, false);
}

/** Is C absent, or a row with one number for each column? */
static bool is_bias_row_or_absent(const laci_net *net, const laci_node *node, int64_t columns) {
  if (!laci_plan_has_input(node, 2)) return true;
  const laci_shape *c = laci_plan_shape(&net->plan, node->inputs[2]);
  return c->rank >= 1 && laci_shape_count(c) == columns && c->dims[c->rank - 1] == columns &&
         laci_node_float(node, "beta", 1) == 1;
}

/** Returns a tensor of C as a row of f32; -1: there is no C. */
static int read_bias_row(laci_net *net, const laci_node *node, int64_t columns) {
  if (!laci_plan_has_input(node, 2)) return -1;
  laci_shape shape = laci_shape_of(2, (int64_t[]){1, columns});
  int dense =
      laci_net_convert_to_dense(net, laci_net_read_value(net, node->inputs[2]), LACI_ELEMENT_F32);
  return laci_net_view_new(net, dense, &shape, laci_net_dense_layout(net, &shape, LACI_ELEMENT_F32),
                           false);
}

bool laci_can_lower_gemm_values(laci_net *net, const laci_fused *fused, const char **why) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  *why = "factors or a sum that oneDNN lacks";
  return laci_node_float(node, "alpha", 1) == 1 && laci_plan_is_float(&net->plan, fused->output) &&
         is_bias_row_or_absent(net, node, laci_plan_shape(&net->plan, fused->output)->dims[1]);
}

void laci_lower_gemm_values(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const laci_shape *y = laci_plan_shape(&net->plan, fused->output);
  laci_element dt = laci_net_result_element(net, fused->output);
  laci_primitive *pd = NULL;
  int c = read_bias_row(net, node, y->dims[1]);
  int a = read_matrix_operand(net, node->inputs[0], laci_node_int(node, "transA", 0) != 0);
  int b = read_matrix_operand(net, node->inputs[1], laci_node_int(node, "transB", 0) != 0);
  laci_layout *md = laci_net_dense_layout(net, y, dt);
  if (!net->plan.status) {
    const laci_layout *const mds[] = {net->tensors[a].md, net->tensors[b].md,
                                      c >= 0 ? net->tensors[c].md : NULL, md};
    lac_status st = laci_primitive_describe_matmul(&pd, net->onednn, mds, NULL);
    if (laci_net_check_status(net, st, "matrix product")) {
      int to = laci_net_new_result(net, y, dt, md);
      laci_net_step_add(
          net, fused, pd, c >= 0 ? 4 : 3,
          (const int[][2]){
              {LACI_ARG_SRC, a}, {LACI_ARG_WEIGHTS, b}, {LACI_ARG_DST, to}, {LACI_ARG_BIAS, c}});
      laci_net_bind_value(net, fused->output, to);
    }
  }
  laci_layout_destroy(md);
}
