/* SPDX-License-Identifier: Apache-2.0
 * Shrink: elements within lambd of 0 become 0; all others move towards 0 by bias.
 *   y = x + bias where x < -lambd,  x - bias where x > lambd,  0 elsewhere */
#include <math.h>

#include "base/to_int.h"
#include "graph/ops/shared/op_in.h"
#include "tensor/buf.h"

typedef struct limits {
  double lambd, bias;
  lac_dtype dtype;
} limits;

static double shrink_double(double x, const void *context) {
  const limits *l = context;
  return x < -l->lambd ? x + l->bias : x > l->lambd ? x - l->bias : 0;
}

/** Returns x + by, exact for 64-bit integers, and clamped to the type. */
static int64_t add_clamped(lac_dtype dtype, int64_t x, double by) {
  const laci_wide wide = laci_int_to_wide(dtype, x);
  const bool exact =
      fabs(by) < 0x1p62 && (by == rint(by) || wide > 1LL << 52 || wide < -(1LL << 52));
  if (!exact) return laci_int_truncate(dtype, laci_int_to_double(dtype, x) + by);
  return laci_int_from_wide(dtype, wide + laci_clamp_to_int64(wide > 0 ? floor(by) : ceil(by)));
}

static int64_t shrink_integer(int64_t x, const void *context) {
  const limits *l = context;
  const double value = laci_int_to_double(l->dtype, x);
  return value < -l->lambd  ? add_clamped(l->dtype, x, l->bias)
         : value > l->lambd ? add_clamped(l->dtype, x, -l->bias)
                            : 0;
}

static lac_status eval(laci_eval *eval) {
  static const laci_unary unary = {.f = shrink_double, .i = shrink_integer};
  limits l = {.lambd = laci_node_float(eval->node, "lambd", 0.5F),
              .bias = laci_node_float(eval->node, "bias", 0),
              .dtype = eval->in[0]->dtype};
  return laci_eval_unary(eval, &unary, &l);
}

const laci_op laci_op_shrink = {
    .name = "Shrink",
    .role = LACI_ROLE_PASS_THROUGH,
    .discontinuous = true,
    .attributes = LACI_ATTRIBUTES({"bias", LACI_ATTR_FLOAT}, {"lambd", LACI_ATTR_FLOAT}),
    .infer = laci_infer_same_type,
    .eval = eval,
    .couple = laci_couple_first_input};
