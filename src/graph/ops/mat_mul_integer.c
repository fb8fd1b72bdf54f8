/* SPDX-License-Identifier: Apache-2.0
 * MatMulInteger: the product of integers minus their zero points, and the code that all integer
 * products share (shared/integer_in.h). */
#include <math.h>

#include "base/to_int.h"
#include "graph/coupling.h"
#include "graph/ops/shared/integer_in.h"
#include "graph/ops/shared/walk_in.h"
#include "tensor/buf.h"

enum { A, B, BIAS, N_OPERANDS };

static int port_of(const laci_integer_ports *ports, int operand) {
  return operand == A ? ports->a : operand == B ? ports->b : ports->bias;
}

lac_status laci_integer_infer(laci_infer *infer, const laci_op *like,
                              const laci_integer_ports *ports) {
  lac_status st = laci_check_n_inputs(infer, ports->y_zero >= 0 ? ports->y_zero + 1 : 2, -1);
  if (st) return st;
  const laci_type *in[N_OPERANDS] = {0};
  const laci_buf *known[N_OPERANDS] = {0};
  int n = 0;
  for (int k = 0; k < N_OPERANDS; k++) {
    int port = port_of(ports, k);
    if (port >= 0 && port < infer->n_in && infer->in[port]) in[n++] = infer->in[port];
  }
  laci_infer inner = *infer;
  inner.n_in = n;
  inner.in = in;
  inner.known = known;
  st = like->infer(&inner);
  if (st) return st;
  lac_dtype wanted = LAC_DTYPE_I32;
  if (ports->y_zero >= 0) {
    wanted = infer->in[ports->y_zero] ? infer->in[ports->y_zero]->dtype : LAC_DTYPE_NONE;
  }
  infer->out[0].dtype = wanted;
  return LAC_OK;
}

/** Returns the element of a list along an axis of x (or of a scalar) that applies to element `at`
 * of x. */
static double element_along_axis(const laci_buf *list, const laci_shape *x, int axis, int64_t at) {
  if (list->count == 1) return laci_buf_get_f(list, 0);
  if (axis < 0) axis += x->rank;
  if (axis < 0) axis = 0;
  /* a list with all axes of x, one of them of size 1: one element for each row of a batch of
   * matrices */
  if (list->shape.rank == x->rank) {
    laci_walk walk;
    laci_walk_begin(&walk, x);
    laci_walk_broadcast(&walk, &list->shape);
    int64_t place = 0;
    for (int a = x->rank - 1; a >= 0; a--) {
      place += at % x->dims[a] * walk.stride[0][a];
      at /= x->dims[a];
    }
    return laci_buf_get_f(list, place);
  }
  return laci_buf_get_f(list, at / laci_shape_count_range(x, axis + 1, x->rank) % x->dims[axis]);
}

/** Does a list have one element, or one for each index along the axis? */
static bool fits_axis(const laci_buf *list, const laci_shape *x, int axis) {
  if (!list || list->count == 1) return true;
  if (axis < 0) axis += x->rank;
  if (axis < 0 || axis >= x->rank) return false;
  if (list->shape.rank != x->rank) return list->count == x->dims[axis];
  for (int a = 0; a < x->rank; a++) {
    if (list->shape.dims[a] != 1 && list->shape.dims[a] != x->dims[a]) return false;
  }
  return true;
}

/** Makes *out = x minus its zero point, in double. */
static lac_status subtract_zero_point(const laci_eval *eval, int port, int zero_port, int axis,
                                      laci_buf **out) {
  const laci_buf *x = eval->in[port], *zero = zero_port >= 0 ? laci_operand(eval, zero_port) : NULL;
  if (!fits_axis(zero, &x->shape, axis)) {
    return laci_node_fail(eval->node, eval->err, LAC_BAD_SHAPE,
                          "the zero points of input %d do not fit it", port);
  }
  lac_status st = laci_buf_create(LAC_DTYPE_F64, &x->shape, out, eval->err);
  for (int64_t at = 0; !st && at < x->count; at++) {
    (*out)->f[at] =
        laci_buf_get_f(x, at) - (zero ? element_along_axis(zero, &x->shape, axis, at) : 0);
  }
  return st;
}

/** Quantizes the sums with the scales of both operands and of the output. */
static lac_status quantize(const laci_eval *eval, const laci_integer_ports *ports,
                           const laci_buf *sums) {
  laci_buf *y = eval->out[0];
  const laci_buf *a = eval->in[ports->a_scale], *b = eval->in[ports->b_scale];
  const laci_buf *scale = eval->in[ports->y_scale], *zero = eval->in[ports->y_zero];
  bool sure = (a->count == 1 || fits_axis(a, &sums->shape, ports->a_axis)) && scale->count == 1 &&
              zero->count == 1 && fits_axis(b, &sums->shape, ports->y_axis) && y->i;
  if (!sure)
    return laci_node_fail(eval->node, eval->err, LAC_BAD_SHAPE,
                          "the scales do not fit the product");
  for (int64_t at = 0; at < y->count; at++) {
    double factor = element_along_axis(a, &sums->shape, ports->a_axis, at) *
                    element_along_axis(b, &sums->shape, ports->y_axis, at) /
                    laci_buf_get_f(scale, 0);
    double value = rint(sums->f[at] * factor) + laci_buf_get_f(zero, 0);
    y->i[at] = laci_int_nearest(y->dtype, value);
  }
  return LAC_OK;
}

lac_status laci_integer_eval(const laci_eval *eval, const laci_op *like,
                             const laci_integer_ports *ports) {
  laci_buf *lifted[N_OPERANDS] = {0}, *sums = NULL, *out[1];
  const laci_buf *in[N_OPERANDS] = {0};
  int n = 2;
  lac_status st = subtract_zero_point(eval, ports->a, ports->a_zero, ports->a_axis, &lifted[A]);
  if (!st) st = subtract_zero_point(eval, ports->b, ports->b_zero, ports->b_axis, &lifted[B]);
  if (!st && ports->bias >= 0 && laci_operand(eval, ports->bias)) {
    st = subtract_zero_point(eval, ports->bias, -1, 0, &lifted[BIAS]);
    n = N_OPERANDS;
  }
  if (!st) st = laci_buf_create(LAC_DTYPE_F64, &eval->out[0]->shape, &sums, eval->err);
  if (!st) {
    laci_eval inner = *eval;
    for (int k = 0; k < n; k++) in[k] = lifted[k];
    out[0] = sums;
    inner.n_in = n;
    inner.n_out = 1;
    inner.in = in;
    inner.out = out;
    st = like->eval(&inner);
  }
  if (!st && ports->y_scale >= 0) st = quantize(eval, ports, sums);
  for (int64_t at = 0; !st && ports->y_scale < 0 && at < sums->count; at++) {
    eval->out[0]->i[at] = laci_int_wrap(eval->out[0]->dtype, laci_int_from_f(sums->f[at]));
  }
  for (int k = 0; k < N_OPERANDS; k++) laci_buf_destroy(lifted[k]);
  laci_buf_destroy(sums);
  return st;
}

/* ---- Channels ---- */

/** Is the input absent, a scalar, or a list of one element? */
static bool is_scalar(const laci_coupling *c, int port) {
  if (port < 0 || !laci_has_input(c->node, port)) return true;
  const laci_shape *shape = laci_port_shape(c, port);
  return shape && (shape->rank == 0 || (shape->rank == 1 && shape->dims[0] == 1));
}

/** Does the input have one element, or one for each output channel of b? */
static bool is_scalar_or_per_channel(const laci_coupling *c, int port, int64_t n_channels) {
  if (is_scalar(c, port)) return true;
  const laci_shape *shape = laci_port_shape(c, port);
  return shape && shape->rank == 1 && shape->dims[0] == n_channels;
}

static void couple_channel_list(laci_coupling *c, int port, int label) {
  if (port < 0 || !laci_has_input(c->node, port)) return;
  laci_coupling_describe_port(c, port);
  if (laci_port_shape(c, port)->rank == 0) return;
  laci_coupling_set_label(c, port, 0, is_scalar(c, port) ? laci_coupling_new_label(c) : label);
}

static void rename_port(int *port, const int to[N_OPERANDS]) {
  if (*port >= 0) *port = to[*port];
}

/** Couples a, b, bias and y as the float operator does; port[] are the inputs that stand for its
 * inputs. */
static lac_status couple_operands(laci_coupling *c, const laci_op *like,
                                  const int port[N_OPERANDS]) {
  laci_port_labels in[N_OPERANDS] = {{0}};
  int inputs[N_OPERANDS] = {-1, -1, -1};
  laci_node node = *c->node;
  laci_coupling inner = *c;
  size_t n_maps = c->n_maps, n_parts = c->n_parts, n_grouped = c->n_grouped;
  for (int k = 0; k < N_OPERANDS; k++) {
    if (port[k] >= 0 && laci_has_input(c->node, port[k])) inputs[k] = c->node->inputs[port[k]];
  }
  node.inputs = inputs;
  node.n_inputs = inputs[BIAS] >= 0 ? N_OPERANDS : BIAS;
  inner.node = &node;
  inner.in = in;
  lac_status st = like->couple(c->graph, &node, &inner);
  const laci_node *own_node = c->node;
  laci_port_labels *own_in = c->in;
  *c = inner;
  c->node = own_node;
  c->in = own_in;
  for (int k = 0; k < node.n_inputs; k++) c->in[port[k]] = in[k];
  for (; n_maps < c->n_maps; n_maps++) rename_port(&c->maps[n_maps].in_port, port);
  for (; n_parts < c->n_parts; n_parts++) rename_port(&c->parts[n_parts].port, port);
  for (; n_grouped < c->n_grouped; n_grouped++) {
    rename_port(&c->grouped[n_grouped].port, port);
    rename_port(&c->grouped[n_grouped].data_port, port);
  }
  return st;
}

lac_status laci_integer_couple(const laci_graph *graph, const laci_node *node, laci_coupling *c,
                               const laci_op *like, const laci_integer_ports *ports) {
  (void)graph, (void)node;
  const laci_shape *b = laci_port_shape(c, ports->b);
  c->why =
      "scales or zero points of a product of integers are no numbers, or not one for each "
      "output channel of its weight";
  if (!b || b->rank < 2) return laci_coupling_status(c);
  int k_axis = ports->y_axis < 0 ? b->rank - 1 : 0;
  int64_t n = b->dims[k_axis];
  bool lists = is_scalar(c, ports->b_scale) && is_scalar(c, ports->b_zero);
  bool sure = n > 0 && is_scalar(c, ports->a_scale) && is_scalar(c, ports->a_zero) &&
              is_scalar(c, ports->y_scale) && is_scalar(c, ports->y_zero) &&
              is_scalar_or_per_channel(c, ports->b_scale, n) &&
              is_scalar_or_per_channel(c, ports->b_zero, n);
  /* a depthwise Conv with several outputs for each input channel has maps; the lists of scales have
   * none */
  bool copies = like == &laci_op_conv && b->dims[1] == 1 && laci_node_int(c->node, "group", 1) != n;
  if (!sure || (copies && !lists)) return laci_coupling_status(c);
  c->why = NULL;
  const int port[N_OPERANDS] = {ports->a, ports->b, ports->bias};
  lac_status st = couple_operands(c, like, port);
  int label = laci_coupling_get_label(c, ports->b, k_axis);
  const int numbers[] = {ports->a_scale, ports->a_zero,  ports->b_scale,
                         ports->b_zero,  ports->y_scale, ports->y_zero};
  for (size_t k = 0; k < sizeof numbers / sizeof *numbers && !st; k++)
    couple_channel_list(c, numbers[k], label);
  return st ? st : laci_coupling_status(c);
}

int laci_integer_weights(const laci_node *node, const laci_integer_ports *ports, int k_axis,
                         laci_weight_axes axes[2]) {
  if (!laci_has_input(node, ports->b)) return 0;
  bool conv = k_axis == 0;
  axes[0] = (laci_weight_axes){.port = ports->b,
                               .k_axis = k_axis,
                               .c_axis = !k_axis,
                               .groups = conv ? laci_node_int(node, "group", 1) : 1};
  if (ports->b_scale >= 0) axes[0].scale_port = ports->b_scale;
  if (ports->b_zero >= 0 && laci_has_input(node, ports->b_zero)) axes[0].zero_port = ports->b_zero;
  return 1;
}

static const laci_integer_ports ports = {.a = 0,
                                         .b = 1,
                                         .a_zero = 2,
                                         .b_zero = 3,
                                         .a_axis = -2,
                                         .b_axis = -1,
                                         .y_axis = -1,
                                         .bias = -1,
                                         .a_scale = -1,
                                         .b_scale = -1,
                                         .y_scale = -1,
                                         .y_zero = -1};

static lac_status infer(laci_infer *infer) {
  return laci_integer_infer(infer, &laci_op_mat_mul, &ports);
}

static lac_status eval(laci_eval *eval) {
  return laci_integer_eval(eval, &laci_op_mat_mul, &ports);
}

static lac_status couple_axes(const laci_graph *graph, const laci_node *node, laci_coupling *c) {
  return laci_integer_couple(graph, node, c, &laci_op_mat_mul, &ports);
}

static int find_weight_axes(const laci_graph *graph, const laci_node *node,
                            laci_weight_axes axes[2]) {
  if (graph->values[node->inputs[ports.b]].type.shape.rank != 2) return 0;
  return laci_integer_weights(node, &ports, 1, axes);
}

const laci_op laci_op_mat_mul_integer = {.name = "MatMulInteger",
                                         .role = LACI_ROLE_ALLOW,
                                         .byte_weights = true,
                                         .weights = find_weight_axes,
                                         .infer = infer,
                                         .eval = eval,
                                         .couple = couple_axes};
