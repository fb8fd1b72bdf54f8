/* SPDX-License-Identifier: Apache-2.0
 * Clip: y = min(max(x, low), high); NaN stays NaN.
 * The bounds are attributes in opset 6 and scalar inputs from 11 on; each may be absent. */
#include <math.h>

#include "graph/gradient.h"
#include "graph/ops/shared/op_in.h"
#include "tensor/buf.h"

typedef struct bounds {
  double low, high;
  int64_t low_integer, high_integer;
} bounds;

static double compute_double(double x, const void *context) {
  const bounds *b = context;
  double y = x < b->low ? b->low : x;
  return y > b->high ? b->high : y;
}

static int64_t compute_integer(int64_t x, const void *context) {
  const bounds *b = context;
  int64_t y = x < b->low_integer ? b->low_integer : x;
  return y > b->high_integer ? b->high_integer : y;
}

static uint64_t compute_unsigned(uint64_t x, const void *context) {
  const bounds *b = context;
  uint64_t low = (uint64_t)b->low_integer, high = (uint64_t)b->high_integer, y = x < low ? low : x;
  return y > high ? high : y;
}

static lac_status eval(laci_eval *eval) {
  bounds b = {.low = laci_node_float(eval->node, "min", -INFINITY),
              .high = laci_node_float(eval->node, "max", INFINITY)};
  laci_int_get_range(eval->in[0]->dtype, &b.low_integer, &b.high_integer);
  const laci_buf *low = laci_operand(eval, 1), *high = laci_operand(eval, 2);
  if ((low && low->count != 1) || (high && high->count != 1)) {
    return laci_node_fail(eval->node, eval->err, LAC_BAD_SHAPE, "the bounds must be scalars");
  }
  if (low) {
    b.low = laci_buf_get_f(low, 0);
    b.low_integer = laci_buf_get_i(low, 0);
  }
  if (high) {
    b.high = laci_buf_get_f(high, 0);
    b.high_integer = laci_buf_get_i(high, 0);
  }
  const laci_unary unary = {.f = compute_double, .i = compute_integer, .u = compute_unsigned};
  return laci_eval_unary(eval, &unary, &b);
}

static lac_status gradient(laci_gradient_builder *b, const laci_node *node) {
  int inputs[] = {laci_gradient_of(b, node, 0), node->inputs[0], LACI_ABSENT, LACI_ABSENT};
  for (int port = 1; port <= 2; port++) {
    if (laci_gradient_is_needed(b, node, port))
      return laci_gradient_fail_unsupported(b, node, "its bounds have no gradient");
    if (laci_has_input(node, port)) inputs[port + 1] = node->inputs[port];
  }
  laci_gradient_node made = {.type = "ClipGrad",
                             .domain = "lacuna",
                             .n_inputs = 4,
                             .inputs = inputs,
                             .n_attrs = node->n_attrs,
                             .attrs = node->attrs};
  laci_gradient_contribute(b, node, 0, laci_gradient_add_node(b, &made, NULL));
  return laci_gradient_status(b);
}

const laci_op laci_op_clip = {
    .name = "Clip",
    .role = LACI_ROLE_PASS_THROUGH,
    .attributes = LACI_ATTRIBUTES({"max", LACI_ATTR_FLOAT}, {"min", LACI_ATTR_FLOAT}),
    .inputs_without_channels = 1u << 1 | 1u << 2,
    .infer = laci_infer_same_type,
    .eval = eval,
    .couple = laci_couple_first_input,
    .gradient = gradient};
