/* SPDX-License-Identifier: Apache-2.0
 * lacuna.DynamicSteps: quantizes like DynamicQuantizeLinear, for readers that are products of
 * integers. Its outputs are the integers minus the zero point, as floats, and the scale. */
#include "graph/ops/shared/integer_in.h"
#include "tensor/buf.h"

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 1, 1);
  if (st) return st;
  infer->out[0] = *infer->in[0];
  if (infer->n_out > 1) infer->out[1] = (laci_type){.dtype = LAC_DTYPE_F32};
  return LAC_OK;
}

static lac_status eval(laci_eval *eval) {
  laci_buf *y = laci_result(eval, 0), *scale = laci_result(eval, 1);
  lac_status st = laci_check_floats(eval);
  if (st) return st;
  const laci_dynamic_range range = laci_dynamic_find_range(eval->in[0]->f, eval->in[0]->count);
  for (int64_t at = 0; y && at < y->count; at++)
    y->f[at] = laci_dynamic_quantize_to_steps(range, eval->in[0]->f[at]);
  if (scale) scale->f[0] = (double)range.scale;
  return LAC_OK;
}

const laci_op laci_op_dynamic_steps = {.name = "DynamicSteps",
                                       .domain = "lacuna",
                                       .role = LACI_ROLE_PASS_THROUGH,
                                       .infer = infer,
                                       .eval = eval,
                                       .couple = laci_couple_nothing};
