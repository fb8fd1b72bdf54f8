/* SPDX-License-Identifier: Apache-2.0
 * What the kernel of a layer of int8 gets: whole weights, a bias and a scale for each row, and what
 * follows its sums, in units of the result. */
#include <math.h>

#include "engine/cpu/lower/sparse.h"
#include "kernel/pointwise/function.h"
#include "kernel/sparse/bytes.h"

/* ---- What follows the sums ---- */

/** The byte that a bound of results becomes. */
static uint8_t byte_of(const laci_fake_quantised *q, float bound) {
  const float whole = rintf(bound / q->scale);
  return (uint8_t)((whole < q->low ? q->low : whole > q->high ? q->high : whole) - q->low);
}

/** Functions are of numbers, so that what follows the sums is, too, until the last one makes units
 * of the result of them. */
static bool follow_numbers(laci_net *net, laci_sparse_layer *layer, const laci_fake_quantised *y) {
  laci_pointwise *functions =
      laci_plan_new(&net->plan, (size_t)layer->n_functions + 2, sizeof *functions);
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

void laci_sparse_bound_bytes(laci_sparse_layer *layer) {
  laci_sparse_quantised *q = &layer->bytes->quantised;
  const laci_fake_quantised *y = layer->bytes->y;
  q->zero = laci_bytes_zero(y);
  q->low = layer->has_low ? byte_of(y, layer->low) : 0;
  q->high = layer->has_high ? byte_of(y, layer->high) : UINT8_MAX;
}

bool laci_sparse_follow_bytes(laci_net *net, laci_sparse_layer *layer) {
  laci_sparse_quantised *q = &layer->bytes->quantised;
  const laci_fake_quantised *y = layer->bytes->y, *residual = layer->bytes->residual;
  const bool numbers = layer->n_functions > 0 || layer->residual_last;
  if (numbers && !follow_numbers(net, layer, y)) return false;
  if (residual) {
    const bool in_units = !numbers || layer->residual_last;
    q->residual_zero = laci_bytes_zero(residual);
    q->residual_scale = residual->scale / (in_units ? y->scale : 1);
  }
  laci_sparse_bound_bytes(layer);
  return true;
}

/* ---- Weights, bias and scales ---- */

bool laci_sparse_quantise_kept(laci_net *net, const laci_sparse_layer *layer,
                               laci_sparse_kept *kept) {
  laci_sparse_bytes *bytes = layer->bytes;
  const int64_t n_rows = layer->window.channels_out;
  const bool in_units = bytes->y && layer->n_functions == 0;
  const double unit = in_units ? (double)bytes->y->scale : 1;
  const int32_t zero = laci_bytes_zero(bytes->x);
  int32_t *whole = laci_plan_new(&net->plan, (size_t)n_rows, sizeof *whole);
  float *scales = laci_plan_new(&net->plan, (size_t)n_rows, sizeof *scales);
  const int tensor = laci_sparse_bias(net, layer);
  if (tensor < 0 || !whole || !scales) return false;
  const float *bias = net->buffers[net->tensors[tensor].buffer].data;
  for (int64_t row = 0; row < n_rows; row++) {
    const double scale = laci_sparse_bytes_scale(bytes, row);
    const float weight_scale = bytes->weight_scale[bytes->n_scales == 1 ? 0 : row];
    int32_t sum = 0;
    for (int64_t k = kept->row_begin[row]; k < kept->row_begin[row + 1]; k++) {
      kept->weight[k] = rintf(kept->weight[k] / weight_scale);
      sum += (int32_t)kept->weight[k];
    }
    whole[row] = (int32_t)lrint((double)bias[row] / scale) - zero * sum;
    scales[row] = (float)(scale / unit);
  }
  bytes->quantised.bias = whole;
  bytes->quantised.scale = scales;
  net->plan.weight_bytes += (size_t)n_rows * (sizeof *whole + sizeof *scales);
  return true;
}
