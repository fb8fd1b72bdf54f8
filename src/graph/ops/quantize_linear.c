/* SPDX-License-Identifier: Apache-2.0
 * QuantizeLinear: y = x / scale, rounded half to even, + zero, clipped to the range of y's type; a
 * NaN becomes its least number, as in ONNX Runtime on x86. The quotient is a float's, as the
 * standard has it: which numbers lie halfway depends on it. Every channel order passes through;
 * scales and zero points of an axis follow it. See dequantize_linear.c. */
#include <math.h>

#include "base/to_int.h"
#include "graph/ops/shared/quant_in.h"

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_quant_check(infer);
  if (st) return st;
  lac_dtype wanted = (lac_dtype)laci_node_int(infer->node, "output_dtype", 0);
  if (wanted == LAC_DTYPE_NONE)
    wanted = infer->n_in > 2 && infer->in[2] ? infer->in[2]->dtype : LAC_DTYPE_U8;
  infer->out[0] = (laci_type){.dtype = wanted, .shape = infer->in[0]->shape};
  return LAC_OK;
}

/** Smallest and largest number of a type; false: nothing is quantised to it. */
static bool find_range(lac_dtype dtype, double *low, double *high) {
  switch (dtype) {
    case LAC_DTYPE_U8: *low = 0, *high = UINT8_MAX; break;
    case LAC_DTYPE_I8: *low = INT8_MIN, *high = INT8_MAX; break;
    case LAC_DTYPE_U16: *low = 0, *high = UINT16_MAX; break;
    case LAC_DTYPE_I16: *low = INT16_MIN, *high = INT16_MAX; break;
    case LAC_DTYPE_I32: *low = INT32_MIN, *high = INT32_MAX; break;
    default: return false;
  }
  return true;
}

static lac_status eval(laci_eval *eval) {
  laci_quant quant;
  double low, high;
  laci_buf *out = eval->out[0];
  lac_status st = laci_quant_read(eval, &quant);
  if (st) return st;
  if (!find_range(out->dtype, &low, &high)) {
    return laci_node_fail(eval->node, eval->err, LAC_UNSUPPORTED, "quantising to %s",
                          lac_dtype_name(out->dtype));
  }
  for (int64_t at = 0; at < out->count; at++) {
    int64_t k = laci_quant_at(&quant, at);
    double zero = quant.zero ? laci_buf_get_f(quant.zero, k) : 0;
    float quotient = (float)laci_buf_get_f(eval->in[0], at) / (float)quant.scale->f[k];
    double y = rintf(quotient) + zero;
    out->i[at] = laci_int_from_f(!(y > low) ? low : y < high ? y : high);
  }
  return LAC_OK;
}

const laci_op laci_op_quantize_linear = {
    .name = "QuantizeLinear",
    .role = LACI_ROLE_INFER,
    .jumps = true,
    .attributes = LACI_ATTRIBUTES({"axis", LACI_ATTR_INT}, {"block_size", LACI_ATTR_INT},
                                  {"output_dtype", LACI_ATTR_INT}, {"precision", LACI_ATTR_INT},
                                  {"saturate", LACI_ATTR_INT}),
    .infer = infer,
    .eval = eval,
    .couple = laci_quant_couple};
