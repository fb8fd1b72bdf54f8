/* SPDX-License-Identifier: Apache-2.0
 * SpaceToDepth: blocks of b x b positions become channels: out channel (row * b + column) * C + c
 * reads channel c (mode DCR), or out channel c * b * b + row * b + column does (mode CRD, opset
 * 28). Maps describe this; height and width are FIXED: their order must stay (coupling.h). The
 * shape rules shared with depth_to_space.c are here too. */
#include "graph/coupling.h"
#include "graph/gradient.h"
#include "graph/ops/shared/block_in.h"
#include "graph/ops/shared/walk_in.h"
#include "tensor/buf.h"

lac_status laci_depth_space_block_size(const laci_node *node, int64_t *block, lac_error *err) {
  *block = laci_node_int(node, "blocksize", 0);
  if (*block >= 1 && *block <= 1 << 15) return LAC_OK;
  return laci_node_fail(node, err, LAC_BAD_SHAPE, "blocksize %lld", (long long)*block);
}

/** Computes size * factor, or size / factor if not grow; a symbol gives a fresh one. Returns false
 * where the division has a remainder. */
static bool scale_size(laci_infer *infer, int64_t size, int64_t factor, bool grow, int64_t *out) {
  if (factor == 1) *out = size;
  else if (size < 0) *out = infer->new_symbol(infer);
  else if (grow) return !__builtin_mul_overflow(size, factor, out);
  else *out = size / factor;
  return grow || size < 0 || size % factor == 0;
}

lac_status laci_depth_space_infer(laci_infer *infer, bool to_wide) {
  int64_t b;
  char text[128];
  lac_status st = laci_check_n_inputs(infer, 1, 1);
  if (!st) st = laci_depth_space_block_size(infer->node, &b, infer->err);
  if (st) return st;
  infer->out[0].dtype = infer->in[0]->dtype;
  const laci_shape *x = laci_in_shape(infer, 0);
  if (!x) return LAC_OK;
  laci_shape out = {.rank = 4};
  out.dims[0] = x->dims[0];
  bool fits = x->rank == 4 && scale_size(infer, x->dims[1], b * b, !to_wide, &out.dims[1]);
  for (int axis = 2; fits && axis < 4; axis++)
    fits = scale_size(infer, x->dims[axis], b, to_wide, &out.dims[axis]);
  infer->out[0].shape = fits ? out : laci_shape_unknown();
  if (fits) return LAC_OK;
  return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE,
                        "%s cannot be cut into blocks of %lld",
                        laci_shape_text(x, text, sizeof text), (long long)b);
}

bool laci_depth_space_is_crd_mode(const laci_node *node) {
  return strcmp(laci_node_text(node, "mode", "DCR"), "CRD") == 0;
}

lac_status laci_depth_space_check_mode(const laci_node *node, lac_error *err) {
  const char *mode = laci_node_text(node, "mode", "DCR");
  if (strcmp(mode, "DCR") == 0 || strcmp(mode, "CRD") == 0) return LAC_OK;
  return laci_node_fail(node, err, LAC_UNSUPPORTED, "mode '%s'", mode);
}

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_depth_space_check_mode(infer->node, infer->err);
  return st ? st : laci_depth_space_infer(infer, false);
}

static lac_status eval(laci_eval *eval) {
  int64_t b;
  const laci_buf *x = eval->in[0];
  lac_status st = laci_depth_space_block_size(eval->node, &b, eval->err);
  if (st) return st;
  int64_t channels = x->shape.dims[1], height = x->shape.dims[2], width = x->shape.dims[3];
  /* the output seen as [N, row, column, C, H / b, W / b], or with C before row and column */
  laci_shape space = {.rank = 6, .dims = {x->shape.dims[0], b, b, channels, height / b, width / b}};
  int64_t spatial = height * width;
  int64_t strides[6] = {channels * spatial, width, 1, spatial, b * width, b};
  if (laci_depth_space_is_crd_mode(eval->node)) {
    space.dims[1] = channels, space.dims[3] = b;
    strides[1] = spatial, strides[2] = width, strides[3] = 1;
  }
  laci_copy_strided_to_rows(eval, x, &space, strides, 0, eval->out[0]);
  return LAC_OK;
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph;
  int64_t b;
  const laci_shape *x = laci_port_shape(c, 0), *y = laci_port_shape(c, LACI_OUT(0));
  c->why = "SpaceToDepth moves places along height and width";
  if (!x || !y || x->rank != 4 || y->rank != 4 || laci_depth_space_block_size(node, &b, NULL))
    return laci_coupling_status(c);
  int batch = laci_coupling_new_label(c);
  laci_coupling_set_label(c, 0, 0, batch);
  laci_coupling_set_label(c, LACI_OUT(0), 0, batch);
  if (!laci_is_axis_mappable(c, 0, 1) || !laci_is_axis_mappable(c, LACI_OUT(0), 1) ||
      x->dims[1] == 0)
    return laci_coupling_status(c);
  laci_axis_map *map = laci_coupling_add_map(c, LACI_OUT(0), 1, 0, 1, y->dims[1]);
  for (int64_t o = 0; map && o < y->dims[1]; o++)
    map->from[o] = (int32_t)(laci_depth_space_is_crd_mode(node) ? o / (b * b) : o % x->dims[1]);
  return laci_coupling_status(c);
}

static lac_status gradient(laci_gradient_builder *b, const laci_node *node) {
  const laci_attr attrs[] = {laci_attr_int("blocksize", laci_node_int(node, "blocksize", 0)),
                             laci_attr_text("mode", laci_node_text(node, "mode", "DCR"))};
  int dy = laci_gradient_of(b, node, 0);
  laci_gradient_node made = {
      .type = "DepthToSpace", .n_inputs = 1, .inputs = &dy, .n_attrs = 2, .attrs = attrs};
  laci_gradient_contribute(b, node, 0, laci_gradient_add_node(b, &made, NULL));
  return laci_gradient_status(b);
}

const laci_op laci_op_space_to_depth = {
    .name = "SpaceToDepth",
    .role = LACI_ROLE_PASS_THROUGH,
    .attributes = LACI_ATTRIBUTES({"blocksize", LACI_ATTR_INT}, {"mode", LACI_ATTR_TEXT}),
    .infer = infer,
    .eval = eval,
    .couple = couple_channel_orders,
    .gradient = gradient};
