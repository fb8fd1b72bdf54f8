/* SPDX-License-Identifier: Apache-2.0
 * Slice: x[start:end:step] along some axes (attributes before opset 10, then inputs); steps may be
 * negative.
 *
 * Along a sliced axis, a map tells which position of x each output position reads; axes that are
 * not cut pass channel orders through (coupling.h). */
#include "graph/coupling.h"
#include "graph/gradient.h"
#include "graph/ops/shared/op_in.h"
#include "graph/ops/shared/walk_in.h"
#include "tensor/buf.h"

/** The part of one axis that Slice keeps. whole: all of the axis is kept; unsure: the start is not
 * known. */
typedef struct cut {
  int64_t start, step, n; /* n: size of the result, a symbol where unknown */
  bool whole, unsure;
} cut;

typedef struct slice_args {
  laci_ints starts, ends, axes, steps;
} slice_args;

static slice_args read_slice_inputs(const laci_node *node, const laci_buf *const content[4]) {
  bool inputs = node->version >= 10 || node->version == 0;
  return (slice_args){
      .starts = laci_read_int_list(node, inputs ? NULL : "starts", inputs ? 1 : -1, content[0]),
      .ends = laci_read_int_list(node, inputs ? NULL : "ends", inputs ? 2 : -1, content[1]),
      .axes = laci_read_int_list(node, inputs ? NULL : "axes", inputs ? 3 : -1, content[2]),
      .steps = laci_read_int_list(node, NULL, inputs ? 4 : -1, content[3])};
}

static int64_t clamp(int64_t x, int64_t low, int64_t high) {
  return x < low ? low : x > high ? high : x;
}

/** Computes the cut of one axis of known size by known numbers, with NumPy's rules. */
static cut cut_axis_of_known_size(int64_t size, int64_t start, int64_t end, int64_t step) {
  bool back = step < 0;
  if (start < 0) start += size;
  if (end < 0) end += size;
  start = back ? clamp(start, -1, size - 1) : clamp(start, 0, size);
  end = back ? clamp(end, -1, size - 1) : clamp(end, 0, size);
  int64_t span = back ? start - end : end - start;
  int64_t stride = back ? (step == INT64_MIN ? INT64_MAX : -step) : step;
  int64_t n = span <= 0 ? 0 : (span - 1) / stride + 1;
  return (cut){.start = start, .step = step, .n = n, .whole = step == 1 && n == size};
}

/** Computes the cut of an axis whose size is a symbol, such as x[0:end] or x[s:INT_MAX]. The result
 * is known if it is the whole axis or has a known number of elements; else its size is `fresh`. */
static cut cut_axis_of_symbolic_size(int64_t size, int64_t start, int64_t end, int64_t step,
                                     int64_t fresh) {
  cut result = {.start = start, .step = step, .n = fresh, .unsure = true};
  if (step != 1 || laci_is_symbol(start) || start != 0) return result;
  bool all = laci_is_symbol(end) ? laci_size_from_element(end) == size : end >= INT32_MAX;
  if (all) result = (cut){.step = 1, .n = size, .whole = true};
  return result;
}

/** Fills cuts[axis] for every axis of x; infer makes fresh symbols, and may be NULL. The list of
 * cut axes must be known. */
static lac_status find_cuts_of_axes(const laci_node *node, const slice_args *args,
                                    const laci_shape *x, cut cuts[LACI_MAX_RANK], laci_infer *infer,
                                    lac_error *err) {
  for (int axis = 0; axis < x->rank; axis++) {
    cuts[axis] = (cut){.step = 1, .n = x->dims[axis], .whole = true};
  }
  int n = args->starts.known ? args->starts.n : args->ends.known ? args->ends.n : args->axes.n;
  if (args->axes.present && args->axes.n != n) {
    return laci_node_fail(node, err, LAC_BAD_SHAPE, "%d starts for %d axes", n, args->axes.n);
  }
  if ((args->ends.known && args->ends.n != n) || (args->steps.known && args->steps.n != n)) {
    return laci_node_fail(node, err, LAC_BAD_SHAPE, "starts, ends and steps differ in number");
  }
  for (int at = 0; at < n; at++) {
    int64_t axis = args->axes.present ? args->axes.v[at] : at;
    lac_status st = laci_check_axis(node, x->rank, &axis, err);
    if (st) return st;
    int64_t step = args->steps.known ? args->steps.v[at] : 1, size = x->dims[axis];
    if (step == 0)
      return laci_node_fail(node, err, LAC_BAD_SHAPE, "a step of 0 along axis %lld",
                            (long long)axis);
    bool steps = !args->steps.present || (args->steps.known && !laci_is_symbol(step));
    bool known = args->starts.known && args->ends.known && steps;
    int64_t start = args->starts.v[at], end = args->ends.v[at];
    if (known && size >= 0 && !laci_is_symbol(start) && !laci_is_symbol(end)) {
      cuts[axis] = cut_axis_of_known_size(size, start, end, step);
    } else {
      int64_t fresh = infer ? infer->new_symbol(infer) : -1;
      cuts[axis] = known ? cut_axis_of_symbolic_size(size, start, end, step, fresh)
                         : (cut){.step = 1, .n = fresh, .unsure = true};
    }
  }
  return LAC_OK;
}

/** Is it known which axes Slice cuts, from its attributes or from inputs of known content? */
static bool has_known_axes(const slice_args *args) {
  if (args->axes.present) return args->axes.known && !args->axes.has_symbols;
  return args->starts.known || args->ends.known;
}

static lac_status infer(laci_infer *infer) {
  cut cuts[LACI_MAX_RANK];
  lac_status st = laci_check_n_inputs(infer, 1, 5);
  if (st) return st;
  infer->out[0].dtype = infer->in[0]->dtype;
  const laci_shape *x = laci_in_shape(infer, 0);
  if (!x) return LAC_OK;
  const laci_buf *content[4] = {laci_in_known_content(infer, 1), laci_in_known_content(infer, 2),
                                laci_in_known_content(infer, 3), laci_in_known_content(infer, 4)};
  slice_args args = read_slice_inputs(infer->node, content);
  if (!args.starts.present || !args.ends.present) {
    return laci_node_fail(infer->node, infer->err, LAC_BAD_FILE, "starts or ends are missing");
  }
  laci_shape *out = &infer->out[0].shape;
  out->rank = x->rank;
  if (!has_known_axes(&args)) {
    for (int axis = 0; axis < x->rank; axis++) out->dims[axis] = infer->new_symbol(infer);
    return LAC_OK;
  }
  st = find_cuts_of_axes(infer->node, &args, x, cuts, infer, infer->err);
  for (int axis = 0; axis < x->rank && !st; axis++) out->dims[axis] = cuts[axis].n;
  return st;
}

static lac_status eval(laci_eval *eval) {
  cut cuts[LACI_MAX_RANK];
  int64_t strides[LACI_MAX_RANK], offset = 0;
  const laci_buf *x = eval->in[0];
  const laci_buf *content[4] = {laci_operand(eval, 1), laci_operand(eval, 2), laci_operand(eval, 3),
                                laci_operand(eval, 4)};
  slice_args args = read_slice_inputs(eval->node, content);
  if (!has_known_axes(&args) || !args.starts.known || !args.ends.known || args.starts.has_symbols ||
      args.ends.has_symbols) {
    return laci_node_fail(eval->node, eval->err, LAC_UNSUPPORTED,
                          "starts, ends or axes are not known");
  }
  lac_status st = find_cuts_of_axes(eval->node, &args, &x->shape, cuts, NULL, eval->err);
  if (st) return st;
  laci_shape_strides(&x->shape, strides);
  for (int axis = 0; axis < x->shape.rank; axis++) {
    offset += cuts[axis].start * strides[axis];
    strides[axis] *= cuts[axis].n > 1 ? cuts[axis].step : 1;
  }
  if (eval->out[0]->count)
    laci_copy_strided_to_rows(eval, x, &eval->out[0]->shape, strides, offset, eval->out[0]);
  return LAC_OK;
}

static void couple_cut_axis(laci_coupling *c, int axis, const cut *own) {
  int label = own->whole ? laci_coupling_new_label(c) : LACI_FIXED;
  laci_coupling_set_label(c, 0, axis, label);
  laci_coupling_set_label(c, LACI_OUT(0), axis, label);
  if (own->whole || own->unsure || !laci_is_axis_mappable(c, 0, axis)) return;
  if (laci_port_shape(c, LACI_OUT(0))->dims[axis] != own->n) return;
  laci_axis_map *map = laci_coupling_add_map(c, LACI_OUT(0), axis, 0, axis, own->n);
  for (int64_t at = 0; map && at < own->n; at++)
    map->from[at] = (int32_t)(own->start + at * own->step);
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  cut cuts[LACI_MAX_RANK];
  const laci_shape *x = laci_port_shape(c, 0), *y = laci_port_shape(c, LACI_OUT(0));
  const laci_buf *content[4] = {NULL};
  for (int port = 1; port <= 4; port++) {
    if (laci_has_input(node, port)) content[port - 1] = graph->values[node->inputs[port]].known;
  }
  slice_args args = read_slice_inputs(node, content);
  if (!x || !y || x->rank != y->rank || !has_known_axes(&args)) return laci_coupling_status(c);
  if (find_cuts_of_axes(node, &args, x, cuts, NULL, NULL)) return laci_coupling_status(c);
  for (int axis = 0; axis < x->rank; axis++) couple_cut_axis(c, axis, &cuts[axis]);
  return laci_coupling_status(c);
}

static lac_status gradient(laci_gradient_builder *b, const laci_node *node) {
  cut cuts[LACI_MAX_RANK];
  int64_t starts[LACI_MAX_RANK], steps[LACI_MAX_RANK];
  const laci_buf *content[4] = {NULL};
  for (int port = 1; port <= 4; port++)
    content[port - 1] = laci_gradient_known_content(b, node, port);
  laci_shape x = laci_gradient_shape_of_input(b, node, 0);
  slice_args args = read_slice_inputs(node, content);
  bool known = has_known_axes(&args) && !find_cuts_of_axes(node, &args, &x, cuts, NULL, NULL);
  for (int axis = 0; axis < x.rank && known; axis++) {
    known = !cuts[axis].unsure;
    starts[axis] = cuts[axis].start;
    steps[axis] = cuts[axis].step;
  }
  if (!known) return laci_gradient_fail_unsupported(b, node, "it is not known where it cuts");
  const laci_attr attrs[] = {laci_attr_ints("input_shape", x.rank, x.dims),
                             laci_attr_ints("starts", x.rank, starts),
                             laci_attr_ints("steps", x.rank, steps)};
  int dy = laci_gradient_of(b, node, 0);
  laci_gradient_node made = {.type = "SliceGrad",
                             .domain = "lacuna",
                             .n_inputs = 1,
                             .inputs = &dy,
                             .n_attrs = 3,
                             .attrs = attrs};
  laci_gradient_contribute(b, node, 0, laci_gradient_add_node(b, &made, NULL));
  return laci_gradient_status(b);
}

const laci_op laci_op_slice = {
    .name = "Slice",
    .role = LACI_ROLE_PASS_THROUGH,
    .attributes = LACI_ATTRIBUTES({"axes", LACI_ATTR_INTS}, {"ends", LACI_ATTR_INTS},
                                  {"starts", LACI_ATTR_INTS}),
    .moves_data = true,
    .is_fold = true,
    .inputs_without_channels = 1u << 1 | 1u << 2 | 1u << 3 | 1u << 4,
    .infer = infer,
    .eval = eval,
    .couple = couple_channel_orders,
    .gradient = gradient};
