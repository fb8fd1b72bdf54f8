/* SPDX-License-Identifier: Apache-2.0
 * BitCast (opset 26): the bytes of each element read as another type of the same size. Every
 * channel order passes through. */
#include "graph/ops/shared/op_in.h"
#include "tensor/buf.h"

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 1, 1);
  if (st) return st;
  int64_t to = laci_node_int(infer->node, "to", LAC_DTYPE_NONE);
  lac_dtype from = infer->in[0]->dtype;
  if (to <= LAC_DTYPE_NONE || to >= LAC_DTYPE_COUNT) {
    return laci_node_fail(infer->node, infer->err, LAC_UNSUPPORTED,
                          "to = %lld is no element type we know", (long long)to);
  }
  infer->out[0] = (laci_type){.dtype = (lac_dtype)to, .shape = infer->in[0]->shape};
  if (from == LAC_DTYPE_NONE || laci_dtype_bits(from) == laci_dtype_bits((lac_dtype)to))
    return LAC_OK;
  return laci_node_fail(infer->node, infer->err, LAC_BAD_FILE, "%s and %s differ in size",
                        lac_dtype_name(from), lac_dtype_name((lac_dtype)to));
}

static lac_status eval(laci_eval *eval) {
  const laci_buf *x = eval->in[0];
  laci_buf *y = eval->out[0];
  for (int64_t at = 0; at < x->count; at++) {
    uint8_t bytes[sizeof(int64_t)] = {0};
    if (x->f) laci_write_f64(x->dtype, x->f + at, 1, bytes);
    else memcpy(bytes, &x->i[at], sizeof bytes); /* the low bytes come first */
    if (y->f) laci_read_f64(y->dtype, bytes, 0, 1, y->f + at);
    else laci_read_i64(y->dtype, bytes, 0, 1, y->i + at);
  }
  return LAC_OK;
}

const laci_op laci_op_bit_cast = {.name = "BitCast",
                                  .role = LACI_ROLE_PASS_THROUGH,
                                  .discontinuous = true,
                                  .attributes = LACI_ATTRIBUTES({"to", LACI_ATTR_INT}),
                                  .infer = infer,
                                  .eval = eval,
                                  .couple = laci_couple_first_input};
