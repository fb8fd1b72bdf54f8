/* SPDX-License-Identifier: Apache-2.0
 * Operators on quantized operands, computed and coupled as the operators on floats that they stand
 * for: integer_in.h. */
#include <math.h>

#include "base/error.h"
#include "base/memory.h"
#include "graph/coupling.h"
#include "graph/ops/shared/integer_in.h"
#include "tensor/buf.h"

/* ---- DynamicQuantizeLinear ---- */

/** Clamps to the range of u8; NaN gives 0. */
static float clamp_to_u8(float x) { return !(x > 0) ? 0 : x < UINT8_MAX ? x : UINT8_MAX; }

laci_dynamic_range laci_dynamic_range_between(float low, float high) {
  low = fminf(low, 0);
  high = fmaxf(high, 0);
  const float scale = (high - low) / UINT8_MAX;
  return (laci_dynamic_range){scale, scale > 0 ? rintf(clamp_to_u8(-low / scale)) : 0};
}

laci_dynamic_range laci_dynamic_find_range(const double *x, int64_t n) {
  float low = 0, high = 0;
  for (int64_t at = 0; at < n; at++) {
    low = fminf(low, (float)x[at]);
    high = fmaxf(high, (float)x[at]);
  }
  return laci_dynamic_range_between(low, high);
}

double laci_dynamic_quantize_to_steps(laci_dynamic_range range, double x) {
  if (!(range.scale > 0)) return 0;
  const float y = rintf((float)x / range.scale) + range.zero;
  return (double)(laci_int_truncate(LAC_DTYPE_U8, (double)y)) - (double)range.zero;
}

/* ---- The operands as floats ---- */

/** The node and its operands as the operator on floats sees them. */
typedef struct operands {
  int n;
  laci_node node;
  int *inputs;             /* [n] the value of each operand */
  const laci_buf **in;     /* [n] the contents of the operands */
  laci_buf **lifted;       /* [n] operands that were converted to floats; NULL: the node's own
                              operand is used */
  const laci_type **types; /* [n] the types that the operator on floats sees */
  laci_type *own_types;    /* [n] memory for those types that differ from the node's */
  const laci_buf **known;  /* [n] contents that inference knows; NULL: unknown */
} operands;

static void free_operands(operands *o) {
  for (int k = 0; o->lifted && k < o->n; k++) laci_buf_destroy(o->lifted[k]);
  laci_free(o->inputs);
  laci_free((void *)o->in);
  laci_free((void *)o->lifted);
  laci_free((void *)o->types);
  laci_free(o->own_types);
  laci_free((void *)o->known);
}

/** Allocates the lists; free_operands frees them, also after a failure. */
static lac_status list_operands(const laci_node *node, operands *o, lac_error *err) {
  const laci_quantized_form *form = node->op->quantized;
  const int n = laci_quantized_count_operands(form, node);
  *o = (operands){.node = laci_quantized_float_node(form, node)};
  o->inputs = laci_alloc((size_t)n, sizeof *o->inputs);
  o->in = laci_alloc((size_t)n, sizeof *o->in);
  o->lifted = laci_alloc((size_t)n, sizeof *o->lifted);
  o->types = laci_alloc((size_t)n, sizeof *o->types);
  o->own_types = laci_alloc((size_t)n, sizeof *o->own_types);
  o->known = laci_alloc((size_t)n, sizeof *o->known);
  if (!o->inputs || !o->in || !o->lifted || !o->types || !o->own_types || !o->known)
    return laci_fail_memory(err, "the operands of a quantized operator");
  o->n = n;
  o->node.n_inputs = 0;
  for (int k = 0; k < n; k++) {
    const int data = laci_quantized_operand_ports(form, node, k).data;
    o->inputs[k] = data < 0 ? -1 : node->inputs[data];
    if (data >= 0) o->node.n_inputs = k + 1;
  }
  o->node.inputs = o->inputs;
  return LAC_OK;
}

/** Is operand k converted to floats before the operator computes with it? */
static bool is_dequantized_operand(const laci_quantized_form *form, laci_quantized_operand operand,
                                   int k) {
  return operand.scale >= 0 || operand.zero >= 0 || (form->dynamic && k == 0) ||
         (form->bias && k == form->bias);
}

/** Does operand k have a scale, so that its integers stand for floats? */
static bool has_operand_scale(const laci_quantized_form *form, int k) {
  return form->n_operands == 0 || form->operands[k].scale >= 0;
}

/* ---- Shapes ---- */

static lac_dtype find_output_type(const laci_infer *infer, const laci_quantized_form *form) {
  const int port = form->y_zero;
  if (port < 0 || port >= infer->n_in || !infer->in[port]) return LAC_DTYPE_U8;
  return infer->in[port]->dtype;
}

lac_status laci_quantized_infer(laci_infer *infer) {
  const laci_quantized_form *form = infer->node->op->quantized;
  operands o;
  lac_status st = list_operands(infer->node, &o, infer->err);
  for (int k = 0; !st && k < o.n; k++) {
    const laci_quantized_operand operand = laci_quantized_operand_ports(form, infer->node, k);
    if (operand.data < 0 || operand.data >= infer->n_in || !infer->in[operand.data]) continue;
    if (operand.scale < 0 && has_operand_scale(form, k)) {
      st = laci_node_fail(infer->node, infer->err, LAC_BAD_FILE, "input %d has no scale",
                          operand.data);
      continue;
    }
    o.own_types[k] = *infer->in[operand.data];
    o.types[k] = &o.own_types[k];
    if (is_dequantized_operand(form, operand, k)) o.own_types[k].dtype = LAC_DTYPE_F32;
    else o.known[k] = infer->known ? infer->known[operand.data] : NULL;
  }
  if (!st) {
    laci_infer inner = *infer;
    inner.node = &o.node;
    inner.n_in = o.node.n_inputs;
    inner.in = o.types;
    inner.known = o.known;
    st = form->like->infer(&inner);
  }
  if (!st && laci_quantized_has_result_scale(form, infer->node))
    infer->out[0].dtype = find_output_type(infer, form);
  free_operands(&o);
  return st;
}

/* ---- Values ---- */

static lac_status fail_scales(const laci_eval *eval, int port) {
  return laci_node_fail(eval->node, eval->err, LAC_BAD_SHAPE,
                        "scales or zero points do not fit input %d", port);
}

/** Returns the scale of element `at` of operand k: the bias is in units of both scales. */
static double scale_of_element(const laci_eval *eval, int k, const laci_shape *x, int64_t at) {
  const laci_quantized_form *form = eval->node->op->quantized;
  double product = 1;
  const bool is_bias = form->bias && k == form->bias;
  for (int from = is_bias ? 0 : k; from <= (is_bias ? 1 : k); from++) {
    const laci_quantized_operand operand = laci_quantized_operand_ports(form, eval->node, from);
    if (operand.scale < 0) continue;
    /* a bias lies along the output channels, its last axis, as the weight's scales do */
    const int axis = is_bias ? -1 : operand.axis;
    product *= laci_quantized_list_element(eval->in[operand.scale], x, axis, at);
  }
  return is_bias ? product * (double)laci_node_float(eval->node, "alpha", 1) : product;
}

/** Makes *out = (x - zero) * scale in double. */
static lac_status dequantize_operand(const laci_eval *eval, int k, laci_buf **out) {
  const laci_quantized_form *form = eval->node->op->quantized;
  const laci_quantized_operand operand = laci_quantized_operand_ports(form, eval->node, k);
  const laci_buf *x = eval->in[operand.data];
  const laci_buf *zero = operand.zero < 0 ? NULL : eval->in[operand.zero];
  const laci_buf *scale = operand.scale < 0 ? NULL : eval->in[operand.scale];
  const bool dynamic = form->dynamic && k == 0;
  if ((zero && zero->count == 0) || (scale && scale->count == 0) ||
      !laci_quantized_list_has_fitting_length(zero, &x->shape, operand.axis) ||
      !laci_quantized_list_has_fitting_length(scale, &x->shape, operand.axis))
    return fail_scales(eval, operand.data);
  lac_status st = laci_buf_create(LAC_DTYPE_F64, &x->shape, out, eval->err);
  const laci_dynamic_range range =
      dynamic && x->f ? laci_dynamic_find_range(x->f, x->count) : (laci_dynamic_range){0};
  for (int64_t at = 0; !st && at < x->count; at++) {
    double steps = laci_buf_get_f(x, at);
    if (dynamic) steps = laci_dynamic_quantize_to_steps(range, steps) * (double)range.scale;
    if (zero) steps -= laci_quantized_list_element(zero, &x->shape, operand.axis, at);
    (*out)->f[at] = steps * scale_of_element(eval, k, &x->shape, at);
  }
  return st;
}

static lac_status add_along_last_axis(const laci_eval *eval, int port, laci_buf *y) {
  const laci_buf *x = laci_operand(eval, port);
  if (!x) return LAC_OK;
  const int64_t last = y->shape.rank > 0 ? y->shape.dims[y->shape.rank - 1] : 1;
  if (!x->f || !y->f || x->count != last) return fail_scales(eval, port);
  for (int64_t at = 0; at < y->count; at++) y->f[at] += x->f[at % last];
  return LAC_OK;
}

static lac_status quantize_result(const laci_eval *eval, const laci_buf *sums) {
  const laci_quantized_form *form = eval->node->op->quantized;
  const laci_buf *scale = eval->in[form->y_scale], *zero = laci_operand(eval, form->y_zero);
  laci_buf *y = eval->out[0];
  if (scale->count != 1 || (zero && zero->count != 1) || !y->i)
    return laci_node_fail(eval->node, eval->err, LAC_BAD_SHAPE,
                          "the result's scale or zero point is no number");
  const float one = (float)laci_buf_get_f(scale, 0);
  const double whole = (double)floorf(1 / one);
  for (int64_t at = 0; at < y->count; at++) {
    const double steps = rint(form->floors_steps ? sums->f[at] * whole : sums->f[at] / (double)one);
    y->i[at] = laci_int_truncate(y->dtype, steps + (zero ? laci_buf_get_f(zero, 0) : 0));
  }
  return LAC_OK;
}

/** Computes the outputs by the operator on floats. sums: gets output 0 before it is quantized;
 * NULL: output 0 is not quantized. */
static lac_status compute_on_floats(const laci_eval *eval, operands *o, laci_buf *sums) {
  laci_buf **out = laci_alloc((size_t)eval->n_out, sizeof(laci_buf *));
  if (!out) return laci_fail_memory(eval->err, "the results of a quantized operator");
  for (int at = 0; at < eval->n_out; at++) out[at] = eval->out[at];
  if (sums) out[0] = sums;
  laci_eval inner = *eval;
  inner.node = &o->node;
  inner.n_in = o->node.n_inputs;
  inner.in = o->in;
  inner.out = out;
  lac_status st = eval->node->op->quantized->like->eval(&inner);
  if (!st && eval->node->op->quantized->sum)
    st = add_along_last_axis(eval, eval->node->op->quantized->sum, out[0]);
  laci_free((void *)out);
  return st;
}

lac_status laci_quantized_eval(laci_eval *eval) {
  const laci_quantized_form *form = eval->node->op->quantized;
  operands o;
  laci_buf *sums = NULL;
  lac_status st = list_operands(eval->node, &o, eval->err);
  for (int k = 0; !st && k < o.n; k++) {
    const laci_quantized_operand operand = laci_quantized_operand_ports(form, eval->node, k);
    if (operand.data < 0) continue;
    if (is_dequantized_operand(form, operand, k)) st = dequantize_operand(eval, k, &o.lifted[k]);
    o.in[k] = o.lifted[k] ? o.lifted[k] : eval->in[operand.data];
  }
  const bool quantizes = laci_quantized_has_result_scale(form, eval->node);
  if (!st && quantizes) st = laci_buf_create(LAC_DTYPE_F64, &eval->out[0]->shape, &sums, eval->err);
  if (!st) st = compute_on_floats(eval, &o, sums);
  if (!st && quantizes) st = quantize_result(eval, sums);
  laci_buf_destroy(sums);
  free_operands(&o);
  return st;
}

/* ---- Channels ---- */

/** Is the input absent, a scalar, or a list of one element? */
static bool is_scalar_input(const laci_coupling *c, int port) {
  if (port < 0 || !laci_has_input(c->node, port)) return true;
  const laci_shape *shape = laci_port_shape(c, port);
  return shape && (shape->rank == 0 || (shape->rank == 1 && shape->dims[0] == 1));
}

/** Does the input have one element, or one for each output channel of b? */
static bool is_scalar_or_per_channel(const laci_coupling *c, int port, int64_t n_channels) {
  if (is_scalar_input(c, port)) return true;
  const laci_shape *shape = laci_port_shape(c, port);
  return shape && shape->rank == 1 && shape->dims[0] == n_channels;
}

static void couple_channel_list(laci_coupling *c, int port, int label) {
  if (port < 0 || !laci_has_input(c->node, port)) return;
  laci_coupling_mark_described(c, port);
  if (laci_port_shape(c, port)->rank == 0) return;
  laci_coupling_set_label(c, port, 0,
                          is_scalar_input(c, port) ? laci_coupling_new_label(c) : label);
}

static void renumber_port(int *port, const int *to) {
  if (*port >= 0) *port = to[*port];
}

/** Couples the operands and the result as the operator on floats couples its inputs and its
 * output. */
static lac_status couple_operands(laci_coupling *c) {
  const laci_quantized_form *form = c->node->op->quantized;
  const laci_node *node = c->node;
  operands o;
  laci_coupling inner = *c;
  size_t n_maps = c->n_maps, n_parts = c->n_parts, n_grouped = c->n_grouped;
  lac_status st = list_operands(node, &o, NULL);
  laci_port_labels *in = st ? NULL : laci_alloc((size_t)o.n, sizeof *in);
  int *port = st ? NULL : laci_alloc((size_t)o.n, sizeof *port);
  if (in && port) {
    for (int k = 0; k < o.n; k++) port[k] = laci_quantized_operand_ports(form, node, k).data;
    inner.node = &o.node;
    inner.in = in;
    st = form->like->couple(c->graph, &o.node, &inner);
    laci_port_labels *own_in = c->in;
    *c = inner;
    c->node = node;
    c->in = own_in;
    for (int k = 0; k < o.node.n_inputs; k++) {
      if (port[k] >= 0) c->in[port[k]] = in[k];
    }
    for (; n_maps < c->n_maps; n_maps++) renumber_port(&c->maps[n_maps].in_port, port);
    for (; n_parts < c->n_parts; n_parts++) renumber_port(&c->parts[n_parts].port, port);
    for (; n_grouped < c->n_grouped; n_grouped++) {
      renumber_port(&c->grouped[n_grouped].port, port);
      renumber_port(&c->grouped[n_grouped].data_port, port);
    }
  } else if (!st) st = LAC_NO_MEMORY;
  laci_free(in);
  laci_free(port);
  free_operands(&o);
  return st;
}

/** Ties the lists of scales and zero points of operand k, or of the result (k < 0), to the channels
 * that have this label (coupling.h). */
static void couple_scales_and_zeros(laci_coupling *c, int k, int label) {
  const laci_quantized_form *form = c->node->op->quantized;
  laci_quantized_operand o = {.scale = -1, .zero = -1};
  if (k >= 0) o = laci_quantized_operand_ports(form, c->node, k);
  else if (form->quantizes) o = (laci_quantized_operand){0, form->y_scale, form->y_zero, 0};
  couple_channel_list(c, o.scale, label);
  couple_channel_list(c, o.zero, label);
}

static bool has_scalar_parameters(const laci_coupling *c, int k) {
  const laci_quantized_operand o = laci_quantized_operand_ports(c->node->op->quantized, c->node, k);
  return is_scalar_input(c, o.scale) && is_scalar_input(c, o.zero);
}

static bool has_scalar_result_parameters(const laci_coupling *c) {
  const laci_quantized_form *form = c->node->op->quantized;
  return !form->quantizes ||
         (is_scalar_input(c, form->y_scale) && is_scalar_input(c, form->y_zero));
}

lac_status laci_quantized_couple_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph;
  const int n = laci_quantized_count_operands(node->op->quantized, node);
  bool sure = has_scalar_result_parameters(c);
  for (int k = 0; k < n && sure; k++) sure = has_scalar_parameters(c, k);
  c->why = "scales or zero points of a quantized operator are no numbers";
  if (!sure) return laci_coupling_status(c);
  c->why = NULL;
  lac_status st = couple_operands(c);
  for (int k = -1; k < n && !st; k++) couple_scales_and_zeros(c, k, 0);
  return st ? st : laci_coupling_status(c);
}

/** Ties the floats that are added to the channels of the result's last axis (coupling.h). */
static void couple_added_floats(laci_coupling *c, int port) {
  const laci_shape *y = laci_port_shape(c, LACI_OUT(0)), *x = laci_port_shape(c, port);
  if (port == 0 || !y || !x || x->rank != 1) return;
  laci_coupling_mark_described(c, port);
  laci_coupling_set_label(c, port, 0, laci_coupling_get_label(c, LACI_OUT(0), y->rank - 1));
}

lac_status laci_quantized_couple_product(const laci_graph *graph, const laci_node *node,
                                         laci_coupling *c) {
  const laci_quantized_form *form = node->op->quantized;
  const laci_quantized_operand b_ports = laci_quantized_operand_ports(form, node, 1);
  const laci_shape *b = laci_port_shape(c, b_ports.data), *a = laci_port_shape(c, 0);
  (void)graph;
  c->why =
      "scales or zero points of a product of integers are no numbers, or not one for each "
      "output channel of its weight";
  if (!b || b->rank < 2) return laci_coupling_status(c);
  const bool conv = form->like == &laci_op_conv;
  const int k_axis = b_ports.axis < 0 ? b->rank + b_ports.axis : b_ports.axis;
  const int64_t n = b->dims[k_axis];
  const bool sure = n > 0 && has_scalar_parameters(c, 0) && has_scalar_result_parameters(c) &&
                    is_scalar_or_per_channel(c, b_ports.scale, n) &&
                    is_scalar_or_per_channel(c, b_ports.zero, n);
  /* a depthwise Conv with several outputs for each input channel has maps; the lists of scales have
   * none */
  const bool copies = conv && b->dims[1] == 1 && laci_node_int(node, "group", 1) != n;
  if (!sure || (copies && !has_scalar_parameters(c, 1))) return laci_coupling_status(c);
  c->why = NULL;
  lac_status st = couple_operands(c);
  const int label = st ? 0 : laci_coupling_get_label(c, b_ports.data, k_axis);
  for (int k = -1; k < 2 && !st; k++) couple_scales_and_zeros(c, k, label);
  if (!st && form->sum && laci_has_input(node, form->sum)) couple_added_floats(c, form->sum);
  for (int axis = 0; !st && form->dynamic && a && axis < a->rank; axis++)
    laci_coupling_mark_label_normalized(c, laci_coupling_get_label(c, 0, axis));
  return st ? st : laci_coupling_status(c);
}

int laci_quantized_find_weight_axes(const laci_node *node, int k_axis, laci_weight_axes axes[2]) {
  const laci_quantized_form *form = node->op->quantized;
  const laci_quantized_operand b = laci_quantized_operand_ports(form, node, 1);
  if (b.data < 0) return 0;
  const bool conv = form->like == &laci_op_conv;
  axes[0] = (laci_weight_axes){.port = b.data,
                               .k_axis = k_axis,
                               .c_axis = !k_axis,
                               .groups = conv ? laci_node_int(node, "group", 1) : 1};
  if (b.scale >= 0) axes[0].scale_port = b.scale;
  if (b.zero >= 0) axes[0].zero_port = b.zero;
  return 1;
}
