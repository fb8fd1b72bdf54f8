/* SPDX-License-Identifier: Apache-2.0
 * PRelu: y = x where x >= 0, else slope * x; the slope is broadcast to x. The slope is a parameter
 * in the channel order of x. */
#include "graph/gradient.h"
#include "graph/ops/shared/op_in.h"

static double compute_double(double a, double b) { return a < 0 ? a * b : a; }

static int64_t compute_integer(int64_t a, int64_t b) {
  return a < 0 ? (int64_t)((uint64_t)a * (uint64_t)b) : a;
}

/** Checks that the slope is broadcast to x, not x to the slope. */
static lac_status infer(laci_infer *infer) {
  lac_status st = laci_infer_broadcast(infer);
  const laci_shape *x = st ? NULL : laci_in_shape(infer, 0),
                   *slope = st ? NULL : laci_in_shape(infer, 1);
  bool fits = !x || !slope || slope->rank <= x->rank;
  for (int back = 1; x && slope && fits && back <= slope->rank; back++) {
    int64_t size = x->dims[x->rank - back], own = slope->dims[slope->rank - back];
    fits = own < 0 || own == 1 || size < 0 || own == size;
  }
  if (st) return st;
  if (!fits) {
    char text[2][128];
    return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE, "a slope %s for an input %s",
                          laci_shape_text(slope, text[0], sizeof text[0]),
                          laci_shape_text(x, text[1], sizeof text[1]));
  }
  if (x) infer->out[0].shape = *x;
  return LAC_OK;
}

static lac_status eval(laci_eval *eval) {
  static const laci_binary operation = {.f = compute_double, .i = compute_integer};
  return laci_eval_binary(eval, &operation);
}

/** dx = dy where x > 0, else dy * slope;  dslope = 0 where x > 0, else dy * x. */
static lac_status gradient(laci_gradient_builder *b, const laci_node *node) {
  int dy = laci_gradient_of(b, node, 0), x = node->inputs[0];
  int zero = laci_gradient_store_scalar(b, x, 0),
      positive = laci_gradient_add_binary(b, "Greater", x, zero);
  if (laci_gradient_is_needed(b, node, 0)) {
    int scaled = laci_gradient_add_binary(b, "Mul", dy, node->inputs[1]);
    laci_gradient_contribute(b, node, 0, laci_gradient_add_where(b, positive, dy, scaled));
  }
  if (laci_gradient_is_needed(b, node, 1)) {
    int product = laci_gradient_add_binary(b, "Mul", dy, x);
    laci_gradient_contribute_broadcast(b, node, 1,
                                       laci_gradient_add_where(b, positive, zero, product));
  }
  return laci_gradient_status(b);
}

const laci_op laci_op_prelu = {.name = "PRelu",
                               .role = LACI_ROLE_INFER,
                               .infer = infer,
                               .eval = eval,
                               .couple = laci_couple_all_inputs_broadcast,
                               .gradient = gradient};
