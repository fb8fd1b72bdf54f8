/* SPDX-License-Identifier: Apache-2.0
 * QuantizeLinear: y = x / scale, rounded half to even, + zero, clipped to the range of y's type, or
 * rounded to a float of 8 or 4 bits as in Cast. The quotient is rounded to the scale's type or to
 * `precision`, as in the standard, which decides what numbers are halfway. An engine may hold x and
 * scale with more digits than their types have; both are rounded to their types first. Every axis
 * passes channel orders through (coupling.h); scales and zero points along an axis share its label.
 * See dequantize_linear.c. */
#include <math.h>

#include "graph/ops/shared/quant_in.h"
#include "tensor/buf.h"
#include "tensor/narrow.h"

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_quant_check_shapes(infer);
  if (st) return st;
  lac_dtype wanted = (lac_dtype)laci_node_int(infer->node, "output_dtype", 0);
  if (wanted == LAC_DTYPE_NONE)
    wanted = infer->n_in > 2 && infer->in[2] ? infer->in[2]->dtype : LAC_DTYPE_U8;
  infer->out[0] = (laci_type){.dtype = wanted, .shape = infer->in[0]->shape};
  return LAC_OK;
}

/** Is this an integer type that may be quantized to? */
static bool is_quantized_type(lac_dtype dtype) {
  return laci_dtype_is_integer(dtype) && dtype != LAC_DTYPE_BOOL && dtype != LAC_DTYPE_I64 &&
         dtype != LAC_DTYPE_U64 && dtype != LAC_DTYPE_U32;
}

lac_dtype laci_quantizer_precision(const laci_node *node, lac_dtype scales) {
  lac_dtype wanted = (lac_dtype)laci_node_int(node, "precision", LAC_DTYPE_NONE);
  if (wanted == LAC_DTYPE_NONE) wanted = scales;
  return wanted == LAC_DTYPE_F16 || wanted == LAC_DTYPE_BF16 ? wanted : LAC_DTYPE_F32;
}

static double read_rounded_to_precision(const laci_buf *buf, int64_t at, lac_dtype precision) {
  double x = laci_buf_get_f(buf, at);
  return laci_float_round(precision, buf->f ? laci_float_round_finite(buf->dtype, x) : x, 0);
}

static lac_status eval(laci_eval *eval) {
  laci_quant quant;
  laci_buf *out = eval->out[0];
  const unsigned rounding = laci_node_rounding_flags(eval->node);
  const lac_dtype precision = laci_quantizer_precision(eval->node, eval->in[1]->dtype);
  lac_status st = laci_quant_read_parameters(eval, &quant);
  if (st) return st;
  if (!out->f && !is_quantized_type(out->dtype)) {
    return laci_node_fail(eval->node, eval->err, LAC_UNSUPPORTED, "quantizing to %s",
                          lac_dtype_name(out->dtype));
  }
  for (int64_t at = 0; at < out->count; at++) {
    int64_t k = laci_quant_index_of_scale(&quant, at);
    double zero = quant.zero ? laci_buf_get_f(quant.zero, k) : 0;
    double x = read_rounded_to_precision(eval->in[0], at, precision),
           scale = read_rounded_to_precision(quant.scale, k, precision);
    double quotient = laci_float_round(precision, (double)((float)x / (float)scale), 0);
    if (out->f) out->f[at] = laci_float_round(out->dtype, quotient + zero, rounding);
    else out->i[at] = laci_int_quantize(out->dtype, (float)quotient, zero);
  }
  return LAC_OK;
}

const laci_op laci_op_quantize_linear = {
    .name = "QuantizeLinear",
    .role = LACI_ROLE_INFER,
    .discontinuous = true,
    .attributes = LACI_ATTRIBUTES({"axis", LACI_ATTR_INT}, {"block_size", LACI_ATTR_INT},
                                  {"output_dtype", LACI_ATTR_INT}, {"precision", LACI_ATTR_INT},
                                  {"saturate", LACI_ATTR_INT}),
    .infer = infer,
    .eval = eval,
    .couple = laci_quant_couple_orders};
