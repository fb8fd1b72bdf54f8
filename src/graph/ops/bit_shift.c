/* SPDX-License-Identifier: Apache-2.0
 * BitShift: x shifted by y bits, direction LEFT or RIGHT, broadcast. A shift by the width of the
 * type or more, or by a negative count, gives 0. A right shift of a negative number (opset 28)
 * fills in sign bits. */
#include "graph/ops/shared/op_in.h"
#include "tensor/buf.h"

static int64_t shift_left(int64_t x, int64_t n) {
  return n < 0 || n > 63 ? 0 : (int64_t)((uint64_t)x << n);
}

static int64_t shift_right(int64_t x, int64_t n) {
  return n < 0 || n > 63 ? 0 : (int64_t)((uint64_t)x >> n);
}

static int64_t shift_right_signed(int64_t x, int64_t n) {
  return n < 0 || n > 63 ? -(x < 0) : x >> n;
}

static bool is_signed(lac_dtype dtype) {
  return dtype == LAC_DTYPE_I8 || dtype == LAC_DTYPE_I16 || dtype == LAC_DTYPE_I32 ||
         dtype == LAC_DTYPE_I64;
}

static lac_status eval(laci_eval *eval) {
  static const laci_binary left = {.i = shift_left}, right = {.i = shift_right},
                           right_signed = {.i = shift_right_signed};
  const char *direction = laci_node_text(eval->node, "direction", "");
  if (strcmp(direction, "LEFT") == 0) return laci_eval_binary(eval, &left);
  if (strcmp(direction, "RIGHT") == 0)
    return laci_eval_binary(eval, is_signed(eval->out[0]->dtype) ? &right_signed : &right);
  return laci_node_fail(eval->node, eval->err, LAC_BAD_FILE,
                        "direction is '%s', wanted LEFT or RIGHT", direction);
}

const laci_op laci_op_bit_shift = {.name = "BitShift",
                                   .role = LACI_ROLE_PASS_THROUGH,
                                   .attributes = LACI_ATTRIBUTES({"direction", LACI_ATTR_TEXT}),
                                   .infer = laci_infer_broadcast,
                                   .eval = eval,
                                   .couple = laci_couple_all_inputs_broadcast};
