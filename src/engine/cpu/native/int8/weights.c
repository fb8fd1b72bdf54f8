/* SPDX-License-Identifier: Apache-2.0
 * The weights of an int8 layer as its kernel reads them: integers, with a bias and a scale for each
 * row. A bias of floats is split into an integer times the scale and a rest, which is added in
 * floats. Kernels read these of four rows at once, so that there are a multiple of four, the last
 * of them zero. */
#include <math.h>

#include "kernel/sparse/bytes.h"
#include "kernel/sparse/int8x4.h"
#include "engine/cpu/native/layer.h"
#include "engine/cpu/native/algorithms/algorithms.h"
#include "engine/cpu/native/int8/int8.h"

/** Returns the factor, a power of two and usually 1, by which the scale of a row's weights must
 * grow so that its bias, in units of the scale, fits in 32 bits. Quantizers give a channel with
 * weights near zero a tiny scale. With a larger scale the weights are rounded, by no more than a
 * sum of floats as large as the bias would lose. */
static double find_scale_factor_for_bias(double bias, double scale) {
  int exponent = 0;
  (void)frexp(bias / scale / LACI_NATIVE_MOST_SUM, &exponent);
  return exponent > 0 ? ldexp(1, exponent) : 1;
}

/** Returns the part of a bias that is no integer times `scale`. A bias of integers, which was
 * rounded to a float, has none. */
static double find_rest_of_bias(double bias, double scale) {
  static const double rounding = 0x1p-22; /* of the bias and of the scale as floats */
  const double whole = rint(bias / scale), rest = bias - whole * scale;
  return fabs(rest) > rounding * fabs(bias) ? rest : 0;
}

/** Quantizes the weights of all rows. Row r has those from row_begin[r] to row_begin[r + 1];
 * row_begin NULL: all its weights. */
static bool quantize_rows(laci_net *net, const laci_native_layer *layer, const int64_t *row_begin,
                          float *weight) {
  laci_native_int8_data *int8 = layer->int8;
  const int64_t n_rows = layer->window.channels_out;
  const int64_t n_padded =
      laci_sparse_layout_channels(n_rows, LACI_SPARSE_S8) * LACI_INT8X4_CHANNELS;
  const int64_t each = laci_sparse_weights_per_row(&layer->window);
  const bool in_units = int8->y && layer->n_functions == 0;
  const laci_fake_quantized *of_sums = int8->sum ? int8->sum : int8->y;
  const double unit = in_units ? (double)of_sums->scale : 1;
  const int32_t zero = laci_bytes_zero_point(int8->x);
  int32_t *whole = laci_plan_alloc(&net->plan, (size_t)n_padded, sizeof *whole);
  float *scales = laci_plan_alloc(&net->plan, (size_t)n_padded, sizeof *scales);
  float *rest = laci_plan_alloc(&net->plan, (size_t)n_padded, sizeof *rest);
  bool has_rest = false;
  const int tensor = laci_native_store_bias(net, layer);
  if (tensor < 0 || !whole || !scales || !rest) return false;
  const float *bias = net->buffers[net->tensors[tensor].buffer].data;
  for (int64_t row = 0; row < n_rows; row++) {
    const double fine = laci_native_sum_scale(int8, row);
    const double factor = find_scale_factor_for_bias((double)bias[row], fine),
                 scale = fine * factor;
    const float weight_scale =
        (float)((double)int8->weight_scale[int8->n_scales == 1 ? 0 : row] * factor);
    const int64_t first = row_begin ? row_begin[row] : row * each;
    const int64_t after = row_begin ? row_begin[row + 1] : first + each;
    int32_t sum = 0;
    for (int64_t k = first; k < after; k++) {
      weight[k] = rintf(weight[k] / weight_scale);
      sum += (int32_t)weight[k];
    }
    whole[row] = (int32_t)lrint((double)bias[row] / scale) - zero * sum;
    scales[row] = (float)(scale / unit);
    rest[row] = (float)(find_rest_of_bias((double)bias[row], scale) / unit);
    has_rest |= rest[row] != 0;
  }
  int8->quantized.bias = whole;
  int8->quantized.scale = scales;
  int8->quantized.rest = has_rest ? rest : NULL;
  net->plan.weight_bytes += (size_t)n_padded * (sizeof *whole + sizeof *scales + sizeof *rest);
  return true;
}

bool laci_native_quantize_kept_weights(laci_net *net, const laci_native_layer *layer,
                                       laci_sparse_kept_weights *kept) {
  return quantize_rows(net, layer, kept->row_begin, kept->weight);
}

bool laci_native_quantize_dense_weights(laci_net *net, const laci_native_layer *layer,
                                        float *weight) {
  return quantize_rows(net, layer, NULL, weight);
}
