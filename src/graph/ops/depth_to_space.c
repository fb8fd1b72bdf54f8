/* SPDX-License-Identifier: Apache-2.0
 * DepthToSpace (pixel shuffle): b * b channels become b x b blocks of one channel: out channel c
 * reads, at offset k of each block, channel k * C + c (mode DCR) or c * b * b + k (mode CRD, opset
 * 11). There is one map for each offset k, so the b * b in channels of an out channel move with it.
 * Spatial axes are FIXED: their order must stay (coupling.h). */
#include "graph/coupling.h"
#include "graph/gradient.h"
#include "graph/ops/shared/block_in.h"
#include "graph/ops/shared/walk_in.h"
#include "tensor/buf.h"

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_depth_space_check_mode(infer->node, infer->err);
  return st ? st : laci_depth_space_infer(infer, true);
}

static lac_status eval(laci_eval *eval) {
  int64_t b;
  const laci_buf *x = eval->in[0];
  const laci_shape *out = &eval->out[0]->shape;
  lac_status st = laci_depth_space_block_size(eval->node, &b, eval->err);
  if (st) return st;
  int64_t height = x->shape.dims[2], width = x->shape.dims[3], spatial = height * width;
  /* the output seen as [N, C, H, row, W, column] */
  laci_shape space = {.rank = 6, .dims = {out->dims[0], out->dims[1], height, b, width, b}};
  int64_t channel = laci_depth_space_is_crd_mode(eval->node) ? b * b * spatial : spatial;
  int64_t offset = laci_depth_space_is_crd_mode(eval->node) ? spatial : out->dims[1] * spatial;
  int64_t strides[6] = {x->shape.dims[1] * spatial, channel, width, b * offset, 1, offset};
  laci_copy_strided_to_rows(eval, x, &space, strides, 0, eval->out[0]);
  return LAC_OK;
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph;
  int64_t b;
  const laci_shape *x = laci_port_shape(c, 0), *y = laci_port_shape(c, LACI_OUT(0));
  c->why = "DepthToSpace moves places along height and width";
  if (!x || !y || x->rank != 4 || y->rank != 4 || laci_depth_space_block_size(node, &b, NULL))
    return laci_coupling_status(c);
  int batch = laci_coupling_new_label(c);
  laci_coupling_set_label(c, 0, 0, batch);
  laci_coupling_set_label(c, LACI_OUT(0), 0, batch);
  if (!laci_is_axis_mappable(c, 0, 1) || !laci_is_axis_mappable(c, LACI_OUT(0), 1))
    return laci_coupling_status(c);
  if (y->dims[1] * b * b != x->dims[1]) return laci_coupling_status(c);
  for (int64_t offset = 0; offset < b * b; offset++) {
    laci_axis_map *map = laci_coupling_add_map(c, LACI_OUT(0), 1, 0, 1, y->dims[1]);
    for (int64_t o = 0; map && o < y->dims[1]; o++) {
      map->from[o] = (int32_t)(laci_depth_space_is_crd_mode(node) ? o * b * b + offset
                                                                  : offset * y->dims[1] + o);
    }
  }
  return laci_coupling_status(c);
}

/** dX is dY with the inverse reshape and transpose. */
static lac_status gradient(laci_gradient_builder *b, const laci_node *node) {
  laci_shape x = laci_gradient_shape_of_input(b, node, 0);
  int64_t block = laci_node_int(node, "blocksize", 0), n = x.dims[0];
  int64_t channels = x.dims[1] / (block * block), height = x.dims[2], width = x.dims[3];
  bool depth_first = !laci_depth_space_is_crd_mode(node);
  laci_shape cut = {.rank = 6, .dims = {n, channels, height, block, width, block}};
  int back = laci_gradient_add_reshape(b, laci_gradient_of(b, node, 0), &cut);
  const int64_t dcr[] = {0, 3, 5, 1, 2, 4}, crd[] = {0, 1, 3, 5, 2, 4};
  back = laci_gradient_add_transpose(b, back, 6, depth_first ? dcr : crd);
  laci_gradient_contribute(b, node, 0, laci_gradient_add_reshape(b, back, &x));
  return laci_gradient_status(b);
}

const laci_op laci_op_depth_to_space = {
    .name = "DepthToSpace",
    .role = LACI_ROLE_PASS_THROUGH,
    .attributes = LACI_ATTRIBUTES({"blocksize", LACI_ATTR_INT}, {"mode", LACI_ATTR_TEXT}),
    .infer = infer,
    .eval = eval,
    .couple = couple_channel_orders,
    .gradient = gradient};
