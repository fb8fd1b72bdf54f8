/* SPDX-License-Identifier: Apache-2.0
 * Cast: y = x in another element type. Integers wrap around, floats are truncated towards zero
 * (laci_int_cast says what becomes of those that do not fit), bool is x != 0. Every channel order
 * passes through. See also cast_like.c. */
#include "graph/gradient.h"
#include "graph/ops/shared/op_in.h"

typedef struct conversion {
  const laci_eval *eval;
  const laci_buf *in;
  laci_buf *out;
} conversion;

static void convert_range(int64_t begin, int64_t end, void *context) {
  const conversion *job = context;
  const laci_buf *in = job->in;
  laci_buf *out = job->out;
  bool to_bool = out->dtype == LAC_DTYPE_BOOL;
  for (int64_t at = begin; at < end; at++) {
    if (out->f) out->f[at] = laci_buf_get_f(in, at);
    else if (in->f) out->i[at] = laci_int_cast(out->dtype, in->f[at]);
    else if (!laci_eval_is_symbol(job->eval, in->i[at]))
      out->i[at] = laci_int_wrap(out->dtype, in->i[at]);
    else out->i[at] = to_bool ? job->eval->new_symbol(job->eval) : in->i[at];
  }
}

void laci_eval_convert(const laci_eval *eval, const laci_buf *in, laci_buf *out) {
  conversion job = {.eval = eval, .in = in, .out = out};
  laci_eval_parallel(eval, in->count, convert_range, &job);
}

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_want_inputs(infer, 1, 1);
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
  laci_eval_convert(eval, eval->in[0], eval->out[0]);
  return LAC_OK;
}

static lac_status gradient(laci_gradient_builder *b, const laci_node *node) {
  laci_attr to = laci_attr_int("to", laci_gradient_dtype(b, node->inputs[0]));
  int dy = laci_gradient_of(b, node, 0);
  laci_gradient_node made = {
      .type = "Cast", .n_inputs = 1, .inputs = &dy, .n_attrs = 1, .attrs = &to};
  laci_gradient_give(b, node, 0, laci_gradient_add(b, &made, NULL));
  return laci_gradient_ok(b);
}

const laci_op laci_op_cast = {
    .name = "Cast",
    .role = LACI_ROLE_CLEAR,
    .jumps = true,
    .attributes = LACI_ATTRIBUTES({"round_mode", LACI_ATTR_TEXT}, {"saturate", LACI_ATTR_INT},
                                  {"to", LACI_ATTR_INT}),
    .symbol_safe = true,
    .is_fold = true,
    .infer = infer,
    .eval = eval,
    .couple = laci_couple_unary,
    .gradient = gradient};
