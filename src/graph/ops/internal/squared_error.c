/* SPDX-License-Identifier: Apache-2.0
 * lacuna.SquaredError: inputs X, T of one shape;
 *   loss [] = factor * sum (X - T)^2 / d,   d = sum T^2 where relative is set, else 1.
 *
 * The distance of X from T, a value of another network, which gets no gradient. Where T is all
 * zeros, a relative loss is 0. Its gradient is squared_error_grad.c. */
#include "graph/gradient.h"
#include "graph/ops/shared/grad_in.h"
#include "graph/ops/shared/squared_error_in.h"

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 2, 2);
  if (!st) st = laci_infer_equal_shapes(infer, 0, 1);
  infer->out[0].shape = (laci_shape){.rank = 0};
  return st;
}

static lac_status eval(laci_eval *eval) {
  lac_status st = laci_check_floats(eval);
  if (st) return st;
  const laci_buf *x = eval->in[0], *t = eval->in[1];
  double sum = 0;
  for (int64_t i = 0; i < x->count; i++) sum += (x->f[i] - t->f[i]) * (x->f[i] - t->f[i]);
  eval->out[0]->f[0] = sum * laci_squared_error_factor(eval->node, t);
  return LAC_OK;
}

static lac_status gradient(laci_gradient_builder *b, const laci_node *node) {
  if (laci_gradient_is_needed(b, node, 1))
    return laci_gradient_fail_unsupported(b, node, "what is to be met has no gradient");
  const int inputs[] = {laci_gradient_of(b, node, 0), node->inputs[0], node->inputs[1]};
  const laci_attr attrs[] = {laci_attr_float("factor", laci_node_float(node, "factor", 1)),
                             laci_attr_int("relative", laci_node_int(node, "relative", 0))};
  const laci_gradient_node made = {.type = "SquaredErrorGrad",
                                   .domain = "lacuna",
                                   .n_inputs = 3,
                                   .inputs = inputs,
                                   .n_attrs = 2,
                                   .attrs = attrs};
  laci_gradient_contribute(b, node, 0, laci_gradient_add_node(b, &made, NULL));
  return laci_gradient_status(b);
}

const laci_op laci_op_squared_error = {.name = "SquaredError",
                                       .domain = "lacuna",
                                       .role = LACI_ROLE_PASS_THROUGH,
                                       .infer = infer,
                                       .eval = eval,
                                       .couple = laci_couple_nothing,
                                       .gradient = gradient};
