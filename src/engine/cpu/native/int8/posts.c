/* SPDX-License-Identifier: Apache-2.0
 * What follows the sums of an int8 layer whose results are int8, in the form that
 * kernel/sparse/int8x4.h reads: bounds, residual and functions, in units of the result. */

#include "kernel/pointwise/function.h"
#include "kernel/sparse/bytes.h"
#include "engine/cpu/native/layer.h"
#include "engine/cpu/native/int8/int8.h"

/** Sets the functions that follow the sums. Functions compute real numbers. So all that follows the
 * sums is in real numbers, and an additional last function converts to units of the result. */
static bool set_float_functions(laci_net *net, laci_native_layer *layer,
                                const laci_fake_quantized *y) {
  laci_pointwise *functions =
      laci_plan_alloc(&net->plan, (size_t)layer->n_functions + 2, sizeof *functions);
  int n = 0;
  if (!functions) return false;
  if (layer->has_high) {
    functions[n++] = (laci_pointwise){LACI_POINTWISE_CLIP, layer->low, layer->high};
  } else if (layer->has_low) {
    functions[n++] = (laci_pointwise){LACI_POINTWISE_RELU, 0, 0};
  }
  for (int at = 0; at < layer->n_functions; at++) functions[n++] = layer->functions[at];
  functions[n++] = (laci_pointwise){LACI_POINTWISE_LINEAR, 1 / y->scale, 0};
  layer->functions = functions;
  layer->n_functions = n;
  layer->has_low = layer->has_high = false;
  return true;
}

void laci_native_set_int8_bounds(laci_native_layer *layer) {
  laci_sparse_quantized *q = &layer->int8->quantized;
  const laci_fake_quantized *y = layer->int8->y;
  q->zero = laci_bytes_zero_point(y);
  q->low = layer->has_low ? laci_quantize_to_byte(y, layer->low) : 0;
  q->high = layer->has_high ? laci_quantize_to_byte(y, layer->high) : (uint8_t)(y->high - y->low);
}

bool laci_native_set_int8_post_functions(laci_net *net, laci_native_layer *layer) {
  laci_sparse_quantized *q = &layer->int8->quantized;
  const laci_fake_quantized *y = layer->int8->y, *residual = layer->int8->residual;
  const bool numbers = layer->n_functions > 0 || layer->residual_last;
  if (numbers && !set_float_functions(net, layer, y)) return false;
  if (residual) {
    const bool in_units = !numbers || layer->residual_last;
    q->residual_zero = laci_bytes_zero_point(residual);
    q->residual_scale = residual->scale / (in_units ? y->scale : 1);
  }
  laci_native_set_int8_bounds(layer);
  return true;
}
