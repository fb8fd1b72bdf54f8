/* SPDX-License-Identifier: Apache-2.0
 * Shrink: what is at most lambd away from 0 becomes 0, all else comes nearer by bias.
 *   y = x + bias where x < -lambd,  x - bias where x > lambd,  0 elsewhere */
#include "graph/ops/shared/op_in.h"

typedef struct limits {
  double lambd, bias;
} limits;

static double shrink(double x, const void *context) {
  const limits *l = context;
  return x < -l->lambd ? x + l->bias : x > l->lambd ? x - l->bias : 0;
}

static int64_t shrink_integer(int64_t x, const void *context) {
  return laci_int_from_f(shrink((double)x, context));
}

static lac_status eval(laci_eval *eval) {
  static const laci_unary unary = {.f = shrink, .i = shrink_integer};
  limits l = {.lambd = laci_node_float(eval->node, "lambd", 0.5F),
              .bias = laci_node_float(eval->node, "bias", 0)};
  return laci_eval_unary(eval, &unary, &l);
}

const laci_op laci_op_shrink = {
    .name = "Shrink",
    .role = LACI_ROLE_CLEAR,
    .jumps = true,
    .attributes = LACI_ATTRIBUTES({"bias", LACI_ATTR_FLOAT}, {"lambd", LACI_ATTR_FLOAT}),
    .infer = laci_infer_same,
    .eval = eval,
    .couple = laci_couple_unary};
