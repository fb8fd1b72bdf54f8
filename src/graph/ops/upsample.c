/* SPDX-License-Identifier: Apache-2.0
 * Upsample, the predecessor of Resize: scales are an attribute (opset 7) or an input (9);
 * coordinates are asymmetric, rounded down. */
#include <math.h>

#include "base/to_int.h"
#include "graph/coupling.h"
#include "graph/gradient.h"
#include "graph/ops/shared/grad_in.h"
#include "graph/ops/shared/op_in.h"
#include "graph/ops/shared/resample_in.h"
#include "tensor/buf.h"

/** Reads scales[axis]; *known is false where they come from an input of unknown content. */
static lac_status read_scales(const laci_node *node, const laci_buf *input, int rank,
                              double *scales, bool *known, lac_error *err) {
  const laci_attr *attr = laci_node_attr(node, "scales");
  bool listed = attr && attr->kind == LACI_ATTR_FLOATS;
  int64_t n = listed ? (int64_t)attr->n : input ? input->count : -1;
  *known = n >= 0;
  if (!*known) return LAC_OK;
  if (n != rank) {
    return laci_node_fail(node, err, LAC_BAD_SHAPE, "%lld scales for rank %d", (long long)n, rank);
  }
  for (int axis = 0; axis < rank; axis++) {
    scales[axis] = listed ? attr->floats[axis] : laci_buf_get_f(input, axis);
    if (!(scales[axis] > 0 && scales[axis] < 1e6)) {
      return laci_node_fail(node, err, LAC_BAD_VALUE, "scale %d is %g", axis, scales[axis]);
    }
  }
  return LAC_OK;
}

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 1, 2);
  if (st) return st;
  infer->out[0].dtype = infer->in[0]->dtype;
  const laci_shape *x = laci_in_shape(infer, 0);
  if (!x) return LAC_OK;
  double scales[LACI_MAX_RANK];
  bool known;
  st = read_scales(infer->node, laci_in_known_content(infer, 1), x->rank, scales, &known,
                   infer->err);
  if (st) return st;
  laci_shape *y = &infer->out[0].shape;
  y->rank = x->rank;
  for (int axis = 0; axis < x->rank; axis++) {
    int64_t in = x->dims[axis];
    if (known && scales[axis] == 1) y->dims[axis] = in;
    else if (known && in >= 0 && in < INT32_MAX)
      y->dims[axis] = laci_clamp_to_int64(floor((double)in * scales[axis]));
    else y->dims[axis] = infer->new_symbol(infer);
  }
  return LAC_OK;
}

lac_status laci_upsample_describe(const laci_node *node, const laci_shape *x,
                                  const laci_buf *const *operands, laci_resampling *how,
                                  laci_resample_axis *axes, lac_error *err) {
  const char *mode = laci_node_text(node, "mode", "nearest");
  bool nearest = strcmp(mode, "nearest") == 0;
  bool linear = strcmp(mode, "linear") == 0 || strcmp(mode, "bilinear") == 0;
  if (!nearest && !linear) { return laci_node_fail(node, err, LAC_UNSUPPORTED, "mode %s", mode); }
  double scales[LACI_MAX_RANK];
  bool known;
  const laci_buf *input = node->n_inputs > 1 ? operands[1] : NULL;
  lac_status st = read_scales(node, input, x->rank, scales, &known, err);
  if (st) return st;
  if (!known) return laci_node_fail(node, err, LAC_BAD_FILE, "there are no scales");
  for (int axis = 0; axis < x->rank; axis++) {
    axes[axis] = (laci_resample_axis){.scale = scales[axis]};
  }
  *how = (laci_resampling){.mode = nearest ? LACI_NEAREST : LACI_LINEAR,
                           .place = LACI_ASYMMETRIC,
                           .round = LACI_ROUND_OLD};
  return LAC_OK;
}

static lac_status eval(laci_eval *eval) {
  laci_resampling how;
  laci_resample_axis axes[LACI_MAX_RANK];
  lac_status st =
      laci_upsample_describe(eval->node, &eval->in[0]->shape, eval->in, &how, axes, eval->err);
  return st ? st : laci_resample_all_axes(eval, &how, axes);
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  const laci_shape *x = laci_port_shape(c, 0), *y = laci_port_shape(c, LACI_OUT(0));
  double scales[LACI_MAX_RANK];
  bool known;
  c->why = "order matters along an axis that Upsample stretches";
  if (!x || !y || x->rank != y->rank) return laci_coupling_status(c);
  const laci_buf *input = laci_known_content(graph, node, 1);
  if (read_scales(node, input, x->rank, scales, &known, NULL) || !known)
    return laci_coupling_status(c);
  for (int axis = 0; axis < x->rank; axis++) {
    if (scales[axis] != 1) continue;
    int label = laci_coupling_new_label(c);
    laci_coupling_set_label(c, 0, axis, label);
    laci_coupling_set_label(c, LACI_OUT(0), axis, label);
  }
  return laci_coupling_status(c);
}

/** The gradient of Resize, with the coordinates that Upsample uses. */
static lac_status gradient(laci_gradient_builder *b, const laci_node *node) {
  laci_shape x = laci_gradient_shape_of_input(b, node, 0);
  bool nearest = strcmp(laci_node_text(node, "mode", "nearest"), "nearest") == 0, known = false;
  int dx = laci_gradient_of(b, node, 0);
  laci_shape y = laci_gradient_shape_of_value(b, dx);
  double scales[LACI_MAX_RANK];
  const laci_buf *input = laci_gradient_known_content(b, node, 1);
  if (read_scales(node, input, x.rank, scales, &known, NULL) || !known)
    return laci_gradient_fail_unsupported(b, node, "its scales are not known");
  for (int axis = 0; axis < x.rank; axis++) {
    if (scales[axis] == 1) continue;
    if ((float)(scales[axis] * (double)x.dims[axis]) != (float)y.dims[axis])
      return laci_gradient_fail_unsupported(b, node, "only scales that are quotients of sizes");
    const laci_attr attrs[] = {
        {.name = "mode", .kind = LACI_ATTR_TEXT, .text = nearest ? "nearest" : "linear"},
        {.name = "coordinate_transformation_mode", .kind = LACI_ATTR_TEXT, .text = "asymmetric"},
        {.name = "nearest_mode",
         .kind = LACI_ATTR_TEXT,
         .text = y.dims[axis] < x.dims[axis] ? "ceil" : "floor"}};
    dx = laci_gradient_add_resize_gradient(b, dx, axis, x.dims[axis], attrs, 3);
  }
  laci_gradient_contribute(b, node, 0, dx);
  return laci_gradient_status(b);
}

const laci_op laci_op_upsample = {
    .name = "Upsample",
    .role = LACI_ROLE_PASS_THROUGH,
    .attributes = LACI_ATTRIBUTES({"mode", LACI_ATTR_TEXT}, {"scales", LACI_ATTR_FLOATS}),
    .inputs_without_channels = 1u << 1,
    .sizes_from_data = true,
    .infer = infer,
    .eval = eval,
    .couple = couple_channel_orders,
    .gradient = gradient};
