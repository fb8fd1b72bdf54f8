/* SPDX-License-Identifier: Apache-2.0
 * Cast: y = x in another element type. Integers wrap around, floats are rounded to narrower floats
 * (tensor/narrow.h) and truncated towards zero to integers (laci_int_cast defines the result for
 * values that do not fit), bool is x != 0. Every channel order passes through. See also
 * cast_like.c.
 *
 * An engine may hold x with more digits than its type has, so x is rounded to its type first.
 * Otherwise a product that is 29 in float could become 28 as an integer. */
#include "graph/gradient.h"
#include "graph/ops/shared/op_in.h"
#include "tensor/buf.h"
#include "tensor/narrow.h"

typedef struct conversion {
  const laci_eval *eval;
  unsigned rounding;
  const laci_buf *in;
  laci_buf *out;
} conversion;

/* Returns a double that rounds to type `to` as the exact element does. Converting a 64-bit integer
 * to double rounds it, and rounding again to a smaller type could differ from rounding once. So
 * bits that do not fit into a double are cut off, and the last bit is set instead (rounding to
 * odd). */
static double read_double_rounded_to_odd(const laci_buf *in, int64_t at, lac_dtype to) {
  if (in->f || to == LAC_DTYPE_F64) return laci_buf_get_f(in, at);
  const bool negative = in->dtype != LAC_DTYPE_U64 && in->i[at] < 0;
  uint64_t size = negative ? 0 - (uint64_t)in->i[at] : (uint64_t)in->i[at], lost = 0;
  if (size >> 53) {
    lost = size & 0x7FF;
    size = (size ^ lost) | (lost ? 0x800 : 0);
  }
  return negative ? -(double)size : (double)size;
}

static void convert_elements_in_range(int64_t begin, int64_t end, void *context) {
  const conversion *job = context;
  const laci_buf *in = job->in;
  laci_buf *out = job->out;
  bool to_bool = out->dtype == LAC_DTYPE_BOOL;
  for (int64_t at = begin; at < end; at++) {
    double x = out->f || in->f ? read_double_rounded_to_odd(in, at, out->dtype) : 0;
    if (in->f && !(job->rounding & LACI_ROUND_NONE)) x = laci_float_round_finite(in->dtype, x);
    if (out->f) out->f[at] = laci_float_round(out->dtype, x, job->rounding);
    else if (in->f) out->i[at] = laci_int_cast(out->dtype, x);
    else if (!laci_eval_is_symbol(job->eval, in->i[at]))
      out->i[at] = laci_int_wrap(out->dtype, in->i[at]);
    else out->i[at] = to_bool ? job->eval->new_symbol(job->eval) : in->i[at];
  }
}

unsigned laci_node_rounding_flags(const laci_node *node) {
  const char *mode = laci_node_text(node, "round_mode", "up");
  unsigned rounding = laci_node_int(node, "saturate", 1) ? 0 : LACI_ROUND_OVERFLOW;
  if (strcmp(mode, "down") == 0) rounding |= LACI_ROUND_DOWN;
  if (strcmp(mode, "nearest") == 0) rounding |= LACI_ROUND_NEAREST;
  if (strcmp(mode, LACI_ROUND_MODE_NONE) == 0) rounding |= LACI_ROUND_NONE;
  return rounding;
}

void laci_eval_convert_elements(const laci_eval *eval, const laci_buf *in, laci_buf *out) {
  conversion job = {
      .eval = eval, .rounding = laci_node_rounding_flags(eval->node), .in = in, .out = out};
  laci_eval_parallel(eval, in->count, convert_elements_in_range, &job);
}

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 1, 1);
  if (st) return st;
  int64_t to = laci_node_int(infer->node, "to", LAC_DTYPE_NONE);
  if (to <= LAC_DTYPE_NONE || to >= LAC_DTYPE_COUNT) {
    return laci_node_fail(infer->node, infer->err, LAC_UNSUPPORTED,
                          "to = %lld is no element type we know", (long long)to);
  }
  infer->out[0] = (laci_type){.dtype = (lac_dtype)to, .shape = infer->in[0]->shape};
  return LAC_OK;
}

static lac_status eval(laci_eval *eval) {
  laci_eval_convert_elements(eval, eval->in[0], eval->out[0]);
  return LAC_OK;
}

/* The gradient has the type of x but is not rounded to it, for half precision cannot hold small
 * numbers. */
static lac_status gradient(laci_gradient_builder *b, const laci_node *node) {
  laci_attr attrs[2] = {laci_attr_int("to", laci_gradient_dtype_of_value(b, node->inputs[0])),
                        laci_attr_text("round_mode", LACI_ROUND_MODE_NONE)};
  int dy = laci_gradient_of(b, node, 0);
  laci_gradient_node made = {
      .type = "Cast", .n_inputs = 1, .inputs = &dy, .n_attrs = 2, .attrs = attrs};
  laci_gradient_contribute(b, node, 0, laci_gradient_add_node(b, &made, NULL));
  return laci_gradient_status(b);
}

const laci_op laci_op_cast = {
    .name = "Cast",
    .role = LACI_ROLE_PASS_THROUGH,
    .discontinuous = true,
    .attributes = LACI_ATTRIBUTES({"round_mode", LACI_ATTR_TEXT}, {"saturate", LACI_ATTR_INT},
                                  {"to", LACI_ATTR_INT}),
    .symbol_safe = true,
    .is_fold = true,
    .infer = infer,
    .eval = eval,
    .couple = laci_couple_first_input,
    .gradient = gradient};
