/* SPDX-License-Identifier: Apache-2.0
 * Mod: the remainder, broadcast. It has the sign of the divisor, or with fmod = 1 that of the
 * dividend, as in C. Floats may have fmod = 0 from opset 28 on. An integer remainder by zero is not
 * defined in ONNX; here it gives 0 and never traps. */
#include <math.h>

#include "graph/ops/shared/op_in.h"

static double remainder_truncated(double a, double b) { return fmod(a, b); }

static double remainder_floor(double a, double b) {
  double rest = fmod(a, b);
  if (rest == 0) return copysign(0, b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}

static int64_t remainder_truncated_integer(int64_t a, int64_t b) {
  return b == 0 || b == -1 ? 0 : a % b;
}

static int64_t remainder_floor_integer(int64_t a, int64_t b) {
  int64_t rest = remainder_truncated_integer(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static uint64_t remainder_unsigned(uint64_t a, uint64_t b) { return b == 0 ? 0 : a % b; }

static lac_status eval(laci_eval *eval) {
  static const laci_binary like_c = {
      .f = remainder_truncated, .i = remainder_truncated_integer, .u = remainder_unsigned};
  static const laci_binary like_floor = {
      .f = remainder_floor, .i = remainder_floor_integer, .u = remainder_unsigned};
  return laci_eval_binary(eval, laci_node_int(eval->node, "fmod", 0) ? &like_c : &like_floor);
}

const laci_op laci_op_mod = {.name = "Mod",
                             .role = LACI_ROLE_PASS_THROUGH,
                             .discontinuous = true,
                             .attributes = LACI_ATTRIBUTES({"fmod", LACI_ATTR_INT}),
                             .is_fold = true,
                             .symbol_safe = true,
                             .infer = laci_infer_broadcast,
                             .eval = eval,
                             .couple = laci_couple_all_inputs_broadcast};
