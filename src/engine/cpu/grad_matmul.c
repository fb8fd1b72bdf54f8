/* SPDX-License-Identifier: Apache-2.0
 * Gemm of two values, as training has it: the weights change with every step, and the gradients of
 * a Gemm are Gemms. Transposed operands are read as they lie, by their strides. */
#include "engine/cpu/net_in.h"

/** The operand as [rows, columns]: turned where `turned` says that it lies as [columns, rows]. */
static int operand(laci_net *net, int value, bool turned) {
  dnnl_data_type_t dt = laci_net_dt(net);
  int dense = laci_net_as_dense(net, laci_net_read(net, value), dt);
  if (dense < 0 || !turned) return dense;
  laci_shape lies = net->tensors[dense].shape;
  laci_shape shape = laci_shape_of(2, (int64_t[]){lies.dims[1], lies.dims[0]});
  dnnl_dims_t strides = {1, lies.dims[1]};
  laci_md md = NULL;
  if (!laci_md_strided(&md, 2, shape.dims, dt, strides)) laci_net_no_memory(net);
  return laci_net_view(net, dense, &shape, md, false);
}

/** C as a row of f32, or -1; false: C of another form. */
static bool bias_row(laci_net *net, const laci_node *node, int64_t columns, int *row) {
  *row = -1;
  if (!laci_net_has(node, 2)) return true;
  const laci_shape *c = laci_net_shape(net, node->inputs[2]);
  laci_shape shape = laci_shape_of(2, (int64_t[]){1, columns});
  if (c->rank < 1 || laci_shape_count(c) != columns || c->dims[c->rank - 1] != columns)
    return false;
  if (laci_node_float(node, "beta", 1) != 1) return false;
  int dense = laci_net_as_dense(net, laci_net_read(net, node->inputs[2]), dnnl_f32);
  *row = laci_net_view(net, dense, &shape, laci_net_dense(net, &shape, dnnl_f32), false);
  return true;
}

void laci_build_gemm_of_values(laci_net *net, const laci_net_layer *layer) {
  const laci_node *node = &net->graph->nodes[layer->node];
  const laci_shape *y = laci_net_shape(net, layer->output);
  dnnl_data_type_t dt = laci_net_result_dt(net, layer->output);
  dnnl_primitive_desc_t pd = NULL;
  int c;
  if (laci_node_float(node, "alpha", 1) != 1 || !laci_net_is_float(net, layer->output) ||
      !bias_row(net, node, y->dims[1], &c)) {
    laci_net_fail(net, LAC_UNSUPPORTED, "factors or a sum that oneDNN lacks");
    return;
  }
  int a = operand(net, node->inputs[0], laci_node_int(node, "transA", 0) != 0);
  int b = operand(net, node->inputs[1], laci_node_int(node, "transB", 0) != 0);
  laci_md md = laci_net_dense(net, y, dt);
  if (!net->status) {
    const laci_md_view mds[] = {net->tensors[a].md, net->tensors[b].md,
                                c >= 0 ? net->tensors[c].md : NULL, md};
    dnnl_status_t st = laci_pd_matmul(&pd, net->engine, mds, net->attr);
    if (laci_net_did(net, st, "matrix product")) {
      int to = laci_net_result(net, y, dt, md);
      laci_net_step_add(
          net, layer, pd, c >= 0 ? 4 : 3,
          (const int[][2]){
              {DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, to}, {DNNL_ARG_BIAS, c}});
      laci_net_bind(net, layer->output, to);
    }
  }
  laci_md_drop(md);
}
