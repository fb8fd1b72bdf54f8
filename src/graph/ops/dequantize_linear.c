/* SPDX-License-Identifier: Apache-2.0
 * DequantizeLinear: y = (x - zero) * scale, with one scale for the tensor, one for each index along
 * `axis` (opset 13), or one for each block of indices along it (opset 21). Every axis passes
 * channel orders through (coupling.h), except one with blocks; scales and zero points along an axis
 * share its label. quantize_linear.c shares the checks. */
#include "graph/coupling.h"
#include "graph/ops/shared/quant_in.h"
#include "tensor/buf.h"

/** Returns the size of blocks along the axis; 0: there are none. */
static int64_t read_block_size(const laci_node *node) {
  return laci_node_int(node, "block_size", 0);
}

/** Checks the shape of scales with blocks: that of the data, with one index for each block along
 * `axis`. */
static lac_status check_shape_of_block_scales(laci_infer *infer) {
  const laci_node *node = infer->node;
  const laci_shape *x = laci_in_shape(infer, 0);
  int64_t block = read_block_size(node), axis = laci_node_int(node, "axis", 1);
  if (block < 0)
    return laci_node_fail(node, infer->err, LAC_BAD_SHAPE, "blocks of %lld", (long long)block);
  lac_status st = x ? laci_check_axis(node, x->rank, &axis, infer->err) : LAC_OK;
  for (int port = 1; !st && x && port < 3; port++) {
    const laci_shape *scale = laci_in_shape(infer, port);
    if (!scale) continue;
    bool fits = scale->rank == x->rank;
    for (int at = 0; fits && at < x->rank; at++) {
      int64_t size = x->dims[at], found = scale->dims[at];
      if (size < 0 || found < 0) continue;
      fits = found == (at == axis ? size / block + (size % block > 0) : size);
    }
    if (!fits) {
      st = laci_node_fail(node, infer->err, LAC_BAD_SHAPE,
                          "input %d has no place for each block of %lld along axis %lld", port,
                          (long long)block, (long long)axis);
    }
  }
  return st;
}

lac_status laci_quant_check_shapes(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 2, 3);
  if (!st && read_block_size(infer->node) != 0) return check_shape_of_block_scales(infer);
  const laci_shape *x = laci_in_shape(infer, 0), *scale = laci_in_shape(infer, 1),
                   *zero = laci_in_shape(infer, 2);
  if (st || !x || !scale) return st;
  if (scale->rank > 1) {
    return laci_node_fail(infer->node, infer->err, LAC_UNSUPPORTED, "a scale of %d axes",
                          scale->rank);
  }
  if (zero && scale->rank == zero->rank && laci_shape_is_known(scale) &&
      laci_shape_is_known(zero) && !laci_shape_equal(scale, zero)) {
    return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE,
                          "scale and zero point differ in shape");
  }
  if (scale->rank == 0 || scale->dims[0] == 1 || scale->dims[0] < 0) return LAC_OK;
  int64_t axis = laci_node_int(infer->node, "axis", 1);
  st = laci_check_axis(infer->node, x->rank, &axis, infer->err);
  if (st || x->dims[axis] < 0 || x->dims[axis] == scale->dims[0]) return st;
  return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE,
                        "%lld scales for an axis of size %lld", (long long)scale->dims[0],
                        (long long)x->dims[axis]);
}

lac_status laci_quant_read_parameters(const laci_eval *eval, laci_quant *quant) {
  const laci_shape *x = &eval->in[0]->shape;
  *quant = (laci_quant){.inner = 1, .n = 1, .scale = eval->in[1], .zero = laci_operand(eval, 2)};
  bool fits = quant->scale->f && (quant->scale->count > 0 || eval->in[0]->count == 0) &&
              (!quant->zero || quant->zero->count == quant->scale->count);
  if (!fits)
    return laci_node_fail(eval->node, eval->err, LAC_BAD_SHAPE, "scale and zero point do not fit");
  quant->block = read_block_size(eval->node);
  if (quant->scale->count == 1 && quant->block == 0) return LAC_OK;
  int64_t axis = laci_node_int(eval->node, "axis", 1);
  lac_status st = laci_check_axis(eval->node, x->rank, &axis, eval->err);
  if (st) return st;
  quant->size = x->dims[axis];
  quant->n = quant->block > 0 ? eval->in[1]->shape.dims[axis] : quant->scale->count;
  quant->inner = laci_shape_count_range(x, (int)axis + 1, x->rank);
  return LAC_OK;
}

/** Ties a list of scales or zero points to the data's axis, so that both are reordered together, if
 * their sizes are the same. */
static void couple_scale_or_zero_point(laci_coupling *c, int port, int axis) {
  const laci_shape *x = laci_port_shape(c, 0), *parameter = laci_port_shape(c, port);
  if (!parameter || parameter->rank != 1) return;
  if (axis >= 0 && parameter->dims[0] == x->dims[axis])
    laci_coupling_set_label(c, port, 0, laci_coupling_get_label(c, 0, axis));
  else if (parameter->dims[0] == 1) laci_coupling_set_label(c, port, 0, laci_coupling_new_label(c));
  else if (axis >= 0) { /* the sizes may differ: the axis is FIXED */
    laci_coupling_set_label(c, 0, axis, LACI_FIXED);
    laci_coupling_set_label(c, LACI_OUT(0), axis, LACI_FIXED);
  }
}

/** Ties data, scales and zero points to each other along all axes except the one with blocks. */
static lac_status couple_block_scales(const laci_node *node, laci_coupling *c) {
  const laci_shape *x = laci_port_shape(c, 0);
  int axis = laci_axis_counted_from_first(laci_node_int(node, "axis", 1), x->rank);
  for (int port = 1; port < node->n_inputs; port++) {
    const laci_shape *scale = laci_port_shape(c, port);
    if (laci_has_input(node, port) && (!scale || scale->rank != x->rank))
      return laci_coupling_status(c);
  }
  c->why = "blocks along an axis have scales of their own";
  for (int at = 0; at < x->rank; at++) {
    if (at == axis) continue;
    int label = laci_coupling_new_label(c);
    for (int port = 0; port < node->n_inputs; port++) {
      if (laci_has_input(node, port)) laci_coupling_set_label(c, port, at, label);
    }
    laci_coupling_set_label(c, LACI_OUT(0), at, label);
  }
  return laci_coupling_status(c);
}

lac_status laci_quant_couple_orders(const laci_graph *graph, const laci_node *node,
                                    laci_coupling *c) {
  (void)graph;
  const laci_shape *x = laci_port_shape(c, 0), *scale = laci_port_shape(c, 1);
  if (!x || !scale) return laci_coupling_status(c);
  if (read_block_size(node) != 0) return couple_block_scales(node, c);
  if (scale->rank > 1) return laci_coupling_status(c);
  laci_couple_broadcast_ports(c, (const int[]){0}, 1);
  int axis = laci_axis_counted_from_first(laci_node_int(node, "axis", 1), x->rank);
  couple_scale_or_zero_point(c, 2, axis);
  couple_scale_or_zero_point(c, 1, axis);
  /* one of the parameters has an uncertain size: all are FIXED */
  if (axis >= 0 && laci_coupling_get_label(c, 0, axis) == LACI_FIXED) {
    laci_coupling_set_label(c, 1, 0, LACI_FIXED);
    laci_coupling_set_label(c, 2, 0, LACI_FIXED);
  }
  return laci_coupling_status(c);
}

/* Checks that the zero point has the data's type. A pruned weight has to hold the zero point, and
 * another type may have numbers that the data's type lacks. */
static lac_status check_zero_point_type(const laci_infer *infer) {
  lac_dtype x = infer->in[0]->dtype;
  lac_dtype zero = infer->n_in > 2 && infer->in[2] ? infer->in[2]->dtype : LAC_DTYPE_NONE;
  if (x == LAC_DTYPE_NONE || zero == LAC_DTYPE_NONE || x == zero) return LAC_OK;
  return laci_node_fail(infer->node, infer->err, LAC_BAD_FILE, "the zero point is %s, the data %s",
                        lac_dtype_name(zero), lac_dtype_name(x));
}

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_quant_check_shapes(infer);
  if (!st) st = check_zero_point_type(infer);
  if (st) return st;
  infer->out[0].shape = infer->in[0]->shape;
  infer->out[0].dtype = (lac_dtype)laci_node_int(infer->node, "output_dtype", 0);
  if (infer->out[0].dtype == LAC_DTYPE_NONE) infer->out[0].dtype = infer->in[1]->dtype;
  lac_dtype to = infer->out[0].dtype;
  if (to == LAC_DTYPE_NONE || (laci_dtype_is_float(to) && laci_dtype_bits(to) > 8)) return LAC_OK;
  return laci_node_fail(infer->node, infer->err, LAC_UNSUPPORTED, "dequantizing to %s",
                        lac_dtype_name(infer->out[0].dtype));
}

static lac_status eval(laci_eval *eval) {
  laci_quant quant;
  const laci_buf *x = eval->in[0];
  lac_status st = laci_quant_read_parameters(eval, &quant);
  if (st) return st;
  for (int64_t at = 0; at < x->count; at++) {
    int64_t k = laci_quant_index_of_scale(&quant, at);
    double zero = quant.zero ? laci_buf_get_f(quant.zero, k) : 0;
    eval->out[0]->f[at] = (laci_buf_get_f(x, at) - zero) * quant.scale->f[k];
  }
  return LAC_OK;
}

const laci_op laci_op_dequantize_linear = {
    .name = "DequantizeLinear",
    .role = LACI_ROLE_INFER,
    .attributes = LACI_ATTRIBUTES({"axis", LACI_ATTR_INT}, {"block_size", LACI_ATTR_INT},
                                  {"output_dtype", LACI_ATTR_INT}),
    .infer = infer,
    .eval = eval,
    .couple = laci_quant_couple_orders};
