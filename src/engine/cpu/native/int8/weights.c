/* SPDX-License-Identifier: Apache-2.0
 * The weights of an int8 layer as its kernel reads them: integers, with a bias and a scale for each
 * row. */
#include <math.h>

#include "kernel/sparse/bytes.h"
#include "engine/cpu/native/layer.h"
#include "engine/cpu/native/algorithms/algorithms.h"
#include "engine/cpu/native/int8/int8.h"

bool laci_native_quantize_kept_weights(laci_net *net, const laci_native_layer *layer,
                                       laci_sparse_kept_weights *kept) {
  laci_native_int8_data *int8 = layer->int8;
  const int64_t n_rows = layer->window.channels_out;
  const bool in_units = int8->y && layer->n_functions == 0;
  const double unit = in_units ? (double)int8->y->scale : 1;
  const int32_t zero = laci_bytes_zero_point(int8->x);
  int32_t *whole = laci_plan_alloc(&net->plan, (size_t)n_rows, sizeof *whole);
  float *scales = laci_plan_alloc(&net->plan, (size_t)n_rows, sizeof *scales);
  const int tensor = laci_native_store_bias(net, layer);
  if (tensor < 0 || !whole || !scales) return false;
  const float *bias = net->buffers[net->tensors[tensor].buffer].data;
  for (int64_t row = 0; row < n_rows; row++) {
    const double scale = laci_native_sum_scale(int8, row);
    const float weight_scale = int8->weight_scale[int8->n_scales == 1 ? 0 : row];
    int32_t sum = 0;
    for (int64_t k = kept->row_begin[row]; k < kept->row_begin[row + 1]; k++) {
      kept->weight[k] = rintf(kept->weight[k] / weight_scale);
      sum += (int32_t)kept->weight[k];
    }
    whole[row] = (int32_t)lrint((double)bias[row] / scale) - zero * sum;
    scales[row] = (float)(scale / unit);
  }
  int8->quantized.bias = whole;
  int8->quantized.scale = scales;
  net->plan.weight_bytes += (size_t)n_rows * (sizeof *whole + sizeof *scales);
  return true;
}
