/* SPDX-License-Identifier: Apache-2.0
 * SwiGLU (opset 28): y = a * sigmoid(alpha * a) * b, element by element; both operands have the
 * same shape. */
#include <math.h>

#include "graph/gradient.h"
#include "graph/ops/shared/op_in.h"
#include "tensor/buf.h"

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 2, 2);
  if (st) return st;
  infer->out[0] = *infer->in[0];
  const laci_shape *a = laci_in_shape(infer, 0), *b = laci_in_shape(infer, 1);
  if (!a && b) infer->out[0].shape = *b;
  if (!a || !b) return LAC_OK;
  bool same = a->rank == b->rank;
  for (int axis = 0; same && axis < a->rank; axis++) {
    same = a->dims[axis] < 0 || b->dims[axis] < 0 || a->dims[axis] == b->dims[axis];
  }
  if (same) return LAC_OK;
  return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE, "gate and value differ in shape");
}

static lac_status eval(laci_eval *eval) {
  lac_status st = laci_check_floats(eval);
  double alpha = laci_node_float(eval->node, "alpha", 1);
  for (int64_t at = 0; !st && at < eval->out[0]->count; at++) {
    double a = eval->in[0]->f[at];
    eval->out[0]->f[at] = a / (1 + exp(-alpha * a)) * eval->in[1]->f[at];
  }
  return st;
}

/** With s = sigmoid(alpha a): da = dy b (s + alpha a s (1 - s)), db = dy a s. */
static lac_status gradient(laci_gradient_builder *b, const laci_node *node) {
  int dy = laci_gradient_of(b, node, 0), a = node->inputs[0];
  double alpha = laci_node_float(node, "alpha", 1);
  int s = laci_gradient_add_unary(b, "Sigmoid", laci_gradient_add_scale(b, a, alpha));
  int swish = laci_gradient_add_binary(b, "Mul", a, s);
  if (laci_gradient_is_needed(b, node, 0)) {
    int bend =
        laci_gradient_add_binary(b, "Sub", swish, laci_gradient_add_binary(b, "Mul", swish, s));
    int slope = laci_gradient_add_binary(b, "Add", s, laci_gradient_add_scale(b, bend, alpha));
    int back = laci_gradient_add_binary(b, "Mul", dy, node->inputs[1]);
    laci_gradient_contribute(b, node, 0, laci_gradient_add_binary(b, "Mul", back, slope));
  }
  laci_gradient_contribute(b, node, 1, laci_gradient_add_binary(b, "Mul", dy, swish));
  return laci_gradient_status(b);
}

const laci_op laci_op_swi_glu = {.name = "SwiGLU",
                                 .role = LACI_ROLE_PASS_THROUGH,
                                 .attributes = LACI_ATTRIBUTES({"alpha", LACI_ATTR_FLOAT}),
                                 .infer = infer,
                                 .eval = eval,
                                 .couple = laci_couple_all_inputs_broadcast,
                                 .gradient = gradient};
