/* SPDX-License-Identifier: Apache-2.0
 * Resize: an image (or any axes) resampled to other sizes, given as scales or as sizes.
 *
 * Opset 10 has scales as its second input, and asymmetric coordinates. From opset 11 on the inputs
 * are roi, scales, sizes; opset 18 adds the attributes axes, antialias and
 * keep_aspect_ratio_policy. Axes that keep their size keep their labels, others are FIXED: their
 * order must stay (coupling.h). */
#include <math.h>

#include "base/to_int.h"
#include "graph/coupling.h"
#include "graph/gradient.h"
#include "graph/ops/shared/grad_in.h"
#include "graph/ops/shared/op_in.h"
#include "graph/ops/shared/resample_in.h"
#include "tensor/buf.h"

/** The scale and output size of every axis of x, as given by the inputs. */
typedef struct plan {
  bool known;                  /* whether the sizes are known */
  int64_t size[LACI_MAX_RANK]; /* size of every axis of y; -1 or a symbol: unknown */
  laci_resample_axis axis[LACI_MAX_RANK];
} plan;

typedef struct contents {
  const laci_buf *roi, *scales, *sizes; /* NULL: absent, unknown or empty */
} contents;

/** Returns the operand if its content is known and not empty, else NULL. */
static const laci_buf *operand_or_null_if_empty(const laci_buf *buf) {
  return buf && buf->count > 0 ? buf : NULL;
}

static int scales_port(const laci_node *node) { return node->version < 11 ? 1 : 2; }
static int sizes_port(const laci_node *node) { return node->version < 11 ? -1 : 3; }

/** A list of axes of x: scale or size number i applies to the i-th axis of the list. */
typedef struct axis_list {
  int n, axis[LACI_MAX_RANK];
} axis_list;

static lac_status list_resized_axes(const laci_node *node, int rank, axis_list *axes,
                                    lac_error *err) {
  size_t given = 0;
  const int64_t *list = laci_node_ints(node, "axes", &given);
  axes->n = list ? (int)given : rank;
  if (given > LACI_MAX_RANK) {
    return laci_node_fail(node, err, LAC_BAD_SHAPE, "%zu axes for rank %d", given, rank);
  }
  for (int at = 0; at < axes->n; at++) {
    int64_t axis = list ? list[at] : at;
    lac_status st = laci_check_axis(node, rank, &axis, err);
    if (st) return st;
    axes->axis[at] = (int)axis;
  }
  return LAC_OK;
}

static lac_status compute_sizes_from_scales(const laci_node *node, const laci_shape *x,
                                            const axis_list *axes, const laci_buf *scales, plan *p,
                                            lac_error *err) {
  for (int at = 0; at < axes->n; at++) {
    double scale = laci_buf_get_f(scales, at);
    int64_t in = x->dims[axes->axis[at]];
    if (!(scale > 0) || !(fabs(scale * (double)in) < 9e15)) {
      return laci_node_fail(node, err, LAC_BAD_VALUE, "scale %d is %g", at, scale);
    }
    p->axis[axes->axis[at]].scale = scale;
    if (in >= 0) p->size[axes->axis[at]] = laci_clamp_to_int64(floor((double)in * scale));
    else if (scale != 1) p->size[axes->axis[at]] = LACI_SIZE_UNKNOWN;
  }
  return LAC_OK;
}

/** Computes the scales of the listed axes from the wanted sizes. With a policy that keeps the
 * aspect ratio, all of them get one scale. */
static void compute_scales_from_sizes(const laci_node *node, const laci_shape *x,
                                      const axis_list *axes, const laci_buf *sizes, plan *p) {
  const char *policy = laci_node_text(node, "keep_aspect_ratio_policy", "stretch");
  bool larger = strcmp(policy, "not_smaller") == 0;
  bool common = larger || strcmp(policy, "not_larger") == 0;
  double scale = larger ? 0 : INFINITY;
  for (int at = 0; at < axes->n; at++) {
    int64_t size = laci_size_from_element(laci_buf_get_i(sizes, at)), in = x->dims[axes->axis[at]];
    p->size[axes->axis[at]] = size;
    double own = size >= 0 && in > 0 ? (double)size / (double)in : NAN;
    p->axis[axes->axis[at]].scale = size == in ? 1 : own;
    scale = isnan(own) || (larger ? own > scale : own < scale) ? own : scale;
    if (isnan(own)) break;
  }
  for (int at = 0; common && at < axes->n; at++) {
    int64_t in = x->dims[axes->axis[at]];
    p->axis[axes->axis[at]].scale = scale;
    p->size[axes->axis[at]] = isnan(scale) || in < 0
                                  ? LACI_SIZE_UNKNOWN
                                  : laci_clamp_to_int64(floor((double)in * scale + 0.5));
  }
}

static lac_status compute_scales_and_sizes(const laci_node *node, const laci_shape *x,
                                           const contents *c, plan *p, lac_error *err) {
  axis_list axes;
  *p = (plan){.known = c->scales || c->sizes};
  lac_status st = list_resized_axes(node, x->rank, &axes, err);
  if (st) return st;
  for (int axis = 0; axis < x->rank; axis++) {
    p->size[axis] = x->dims[axis];
    p->axis[axis] = (laci_resample_axis){.scale = 1, .crop_begin = 0, .crop_end = 1};
  }
  const laci_buf *list = c->sizes ? c->sizes : c->scales;
  if ((list && list->count != axes.n) || (c->roi && c->roi->count != 2 * axes.n)) {
    return laci_node_fail(node, err, LAC_BAD_SHAPE, "%lld sizes or scales and %lld roi for %d axes",
                          (long long)(list ? list->count : 0),
                          (long long)(c->roi ? c->roi->count : 0), axes.n);
  }
  for (int at = 0; c->roi && at < axes.n; at++) {
    p->axis[axes.axis[at]].crop_begin = laci_buf_get_f(c->roi, at);
    p->axis[axes.axis[at]].crop_end = laci_buf_get_f(c->roi, at + axes.n);
  }
  if (c->sizes) compute_scales_from_sizes(node, x, &axes, c->sizes, p);
  else if (c->scales) st = compute_sizes_from_scales(node, x, &axes, c->scales, p, err);
  return st;
}

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 1, 4);
  if (st) return st;
  infer->out[0].dtype = infer->in[0]->dtype;
  const laci_shape *x = laci_in_shape(infer, 0);
  if (!x) return LAC_OK;
  int sizes = sizes_port(infer->node);
  contents c = {
      .scales = operand_or_null_if_empty(laci_in_known_content(infer, scales_port(infer->node))),
      .sizes = sizes < 0 ? NULL : operand_or_null_if_empty(laci_in_known_content(infer, sizes))};
  plan p;
  st = compute_scales_and_sizes(infer->node, x, &c, &p, infer->err);
  if (st) return st;
  laci_shape *y = &infer->out[0].shape;
  y->rank = x->rank;
  for (int axis = 0; axis < x->rank; axis++) {
    bool sure = p.known && (p.size[axis] >= 0 || p.size[axis] == x->dims[axis]);
    y->dims[axis] = sure ? p.size[axis] : infer->new_symbol(infer);
  }
  return LAC_OK;
}

/** Returns the index of `text` among n names, or -1. */
static int index_of_name(const char *text, const char *const *names, int n) {
  for (int at = 0; at < n; at++) {
    if (names[at] && strcmp(text, names[at]) == 0) return at;
  }
  return -1;
}

static lac_status read_attributes(const laci_node *node, laci_resampling *r, lac_error *err) {
  static const char *const modes[] = {"nearest", "linear", "cubic"};
  static const char *const places[] = {[LACI_HALF_PIXEL] = "half_pixel",
                                       [LACI_HALF_PIXEL_SYMMETRIC] = "half_pixel_symmetric",
                                       [LACI_PYTORCH_HALF_PIXEL] = "pytorch_half_pixel",
                                       [LACI_ALIGN_CORNERS] = "align_corners",
                                       [LACI_ASYMMETRIC] = "asymmetric",
                                       [LACI_CROP_AND_RESIZE] = "tf_crop_and_resize",
                                       [LACI_HALF_PIXEL_FOR_NEAREST] = "tf_half_pixel_for_nn"};
  static const char *const rounds[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
  bool old = node->version < 11;
  const char *mode = laci_node_text(node, "mode", "nearest");
  const char *place =
      laci_node_text(node, "coordinate_transformation_mode", old ? "asymmetric" : "half_pixel");
  const char *round = laci_node_text(node, "nearest_mode", "round_prefer_floor");
  int m = index_of_name(mode, modes, 3), q = index_of_name(place, places, 7),
      n = index_of_name(round, rounds, 4);
  if (m < 0 || q < 0 || n < 0) {
    return laci_node_fail(node, err, LAC_UNSUPPORTED, "mode %s, %s, %s", mode, place, round);
  }
  *r = (laci_resampling){.mode = (laci_resample_mode)m,
                         .place = (laci_resample_place)q,
                         .round = old ? LACI_ROUND_OLD : (laci_resample_round)n,
                         .cubic_a = laci_node_float(node, "cubic_coeff_a", -0.75f),
                         .outside_value = laci_node_float(node, "extrapolation_value", 0),
                         .antialias = laci_node_int(node, "antialias", 0) != 0,
                         .exclude_outside = laci_node_int(node, "exclude_outside", 0) != 0};
  return LAC_OK;
}

/** Returns input number `port` if it is there and not empty; else NULL. */
static const laci_buf *operand_or_null(const laci_node *node, const laci_buf *const *operands,
                                       int port) {
  return port >= 0 && port < node->n_inputs ? operand_or_null_if_empty(operands[port]) : NULL;
}

lac_status laci_resize_describe(const laci_node *node, const laci_shape *x,
                                const laci_buf *const *operands, laci_resampling *how,
                                laci_resample_axis *axes, lac_error *err) {
  contents c = {.scales = operand_or_null(node, operands, scales_port(node)),
                .sizes = operand_or_null(node, operands, sizes_port(node))};
  plan p;
  lac_status st = read_attributes(node, how, err);
  if (st) return st;
  if (how->place == LACI_CROP_AND_RESIZE) c.roi = operand_or_null(node, operands, 1);
  if (!c.scales && !c.sizes) {
    return laci_node_fail(node, err, LAC_BAD_FILE, "neither scales nor sizes are given");
  }
  st = compute_scales_and_sizes(node, x, &c, &p, err);
  for (int axis = 0; axis < x->rank && !st; axis++) axes[axis] = p.axis[axis];
  return st;
}

static lac_status eval(laci_eval *eval) {
  laci_resampling how;
  laci_resample_axis axes[LACI_MAX_RANK];
  lac_status st =
      laci_resize_describe(eval->node, &eval->in[0]->shape, eval->in, &how, axes, eval->err);
  return st ? st : laci_resample_all_axes(eval, &how, axes);
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  const laci_shape *x = laci_port_shape(c, 0), *y = laci_port_shape(c, LACI_OUT(0));
  int sizes = sizes_port(node);
  c->why = "order matters along an axis that Resize resamples";
  if (!x || !y || x->rank != y->rank) return laci_coupling_status(c);
  contents known = {
      .scales = operand_or_null_if_empty(laci_known_content(graph, node, scales_port(node))),
      .sizes = sizes < 0 ? NULL : operand_or_null_if_empty(laci_known_content(graph, node, sizes))};
  const char *place = laci_node_text(node, "coordinate_transformation_mode", "half_pixel");
  plan p;
  if (compute_scales_and_sizes(node, x, &known, &p, NULL) || !p.known)
    return laci_coupling_status(c);
  if (strcmp(place, "tf_crop_and_resize") == 0) return laci_coupling_status(c);
  laci_coupling_mark_described(c, 0);
  laci_coupling_mark_described(c, LACI_OUT(0));
  for (int axis = 0; axis < x->rank; axis++) {
    if (p.axis[axis].scale != 1 || x->dims[axis] != y->dims[axis]) continue;
    int label = laci_coupling_new_label(c);
    laci_coupling_set_label(c, 0, axis, label);
    laci_coupling_set_label(c, LACI_OUT(0), axis, label);
  }
  return laci_coupling_status(c);
}

/** Copies the attributes that define how elements are read, converted to the newest version. */
static int copy_attributes(const laci_node *node, bool shrinks, laci_attr attrs[8]) {
  static const char *const names[] = {"antialias",     "coordinate_transformation_mode",
                                      "cubic_coeff_a", "exclude_outside",
                                      "mode",          "nearest_mode"};
  int n = 0;
  for (size_t at = 0; at < sizeof names / sizeof *names; at++) {
    const laci_attr *attr = laci_node_attr(node, names[at]);
    if (attr && (node->version >= 11 || strcmp(names[at], "mode") == 0)) attrs[n++] = *attr;
  }
  if (node->version >= 11) return n;
  attrs[n++] = (laci_attr){
      .name = "coordinate_transformation_mode", .kind = LACI_ATTR_TEXT, .text = "asymmetric"};
  attrs[n++] = (laci_attr){
      .name = "nearest_mode", .kind = LACI_ATTR_TEXT, .text = shrinks ? "ceil" : "floor"};
  return n;
}

/** The forward pass multiplies each resampled axis by a matrix, so dX is dY multiplied by the
 * transposes. */
static lac_status gradient(laci_gradient_builder *b, const laci_node *node) {
  laci_shape x = laci_gradient_shape_of_input(b, node, 0);
  int sizes = sizes_port(node), dx = laci_gradient_of(b, node, 0);
  laci_shape y = laci_gradient_shape_of_value(b, dx);
  contents known = {
      .scales = operand_or_null_if_empty(laci_gradient_known_content(b, node, scales_port(node))),
      .sizes =
          sizes < 0 ? NULL : operand_or_null_if_empty(laci_gradient_known_content(b, node, sizes))};
  const char *place = laci_node_text(node, "coordinate_transformation_mode", "half_pixel");
  plan p;
  if (compute_scales_and_sizes(node, &x, &known, &p, NULL) || !p.known)
    return laci_gradient_fail_unsupported(b, node, "its sizes are not known");
  if (strcmp(place, "tf_crop_and_resize") == 0)
    return laci_gradient_fail_unsupported(b, node, "a crop has no gradient");
  for (int axis = 0; axis < x.rank; axis++) {
    laci_attr attrs[8];
    double scale = p.axis[axis].scale;
    if (scale == 1 && x.dims[axis] == y.dims[axis]) continue;
    if ((float)(scale * (double)x.dims[axis]) != (float)y.dims[axis])
      return laci_gradient_fail_unsupported(b, node, "only scales that are quotients of sizes");
    int n = copy_attributes(node, y.dims[axis] < x.dims[axis], attrs);
    dx = laci_gradient_add_resize_gradient(b, dx, axis, x.dims[axis], attrs, n);
  }
  laci_gradient_contribute(b, node, 0, dx);
  return laci_gradient_status(b);
}

const laci_op laci_op_resize = {
    .name = "Resize",
    .role = LACI_ROLE_PASS_THROUGH,
    .attributes = LACI_ATTRIBUTES(
        {"antialias", LACI_ATTR_INT}, {"axes", LACI_ATTR_INTS},
        {"coordinate_transformation_mode", LACI_ATTR_TEXT}, {"cubic_coeff_a", LACI_ATTR_FLOAT},
        {"exclude_outside", LACI_ATTR_INT}, {"extrapolation_value", LACI_ATTR_FLOAT},
        {"keep_aspect_ratio_policy", LACI_ATTR_TEXT}, {"mode", LACI_ATTR_TEXT},
        {"nearest_mode", LACI_ATTR_TEXT}),
    .inputs_without_channels = 1u << 1 | 1u << 2 | 1u << 3,
    .sizes_from_data = true,
    .infer = infer,
    .eval = eval,
    .couple = couple_channel_orders,
    .gradient = gradient};
