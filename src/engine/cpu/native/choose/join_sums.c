/* SPDX-License-Identifier: Apache-2.0
 * Joins sums of int8 values to the products that compute one of their operands: the end of a
 * residual block of a quantized network. The product's kernel quantizes its sums, adds the other
 * operand, and quantizes again, so that no step reads and writes both values once more. The bytes
 * are those of two steps. */
#include "engine/cpu/native/algorithms/algorithm.h"
#include "engine/cpu/native/choose/choose.h"
#include "engine/cpu/native/int8/int8.h"
#include "engine/cpu/native/layer.h"
#include "kernel/sparse/bytes.h"

/** Can the layer's kernel add a value to its quantized results? */
static bool can_add_bytes(const laci_native_layer *layer) {
  return layer->chosen && layer->kind == LACI_NATIVE_PRODUCT && layer->int8 && layer->int8->y &&
         layer->residual < 0 && layer->n_functions == 0 && layer->last == layer->fused &&
         laci_algorithm_by_id(layer->algorithm)->adds_bytes;
}

/** Returns the product that computes `value`, which only the sum reads, and can add the sum's other
 * operand; NULL: there is none. */
static laci_native_layer *find_product(const laci_net *net, const laci_native_layer *sum,
                                       int value) {
  const laci_cpu_plan *plan = &net->plan;
  if (laci_plan_count_uses(plan, value) != 1) return NULL;
  for (int at = 0; at < net->native->n_layers; at++) {
    laci_native_layer *layer = &net->native->layers[at];
    if (layer->output != value || layer->rows != sum->rows || !can_add_bytes(layer)) continue;
    const laci_fused *after = laci_native_quantization_after(plan, layer->fused->output);
    return after && after->output == value ? layer : NULL;
  }
  return NULL;
}

/** Returns the data of a product whose kernel adds the other operand of a sum. last: the product is
 * the sum's second operand. NULL: no memory, which is recorded in the plan. */
static laci_native_int8_data *make_joined_int8_data(laci_net *net,
                                                    const laci_native_int8_data *product,
                                                    const laci_native_int8_data *sum, bool last) {
  laci_native_int8_data *joined = laci_plan_alloc(&net->plan, 1, sizeof *joined);
  laci_sparse_middle *middle = laci_plan_alloc(&net->plan, 1, sizeof *middle);
  if (!joined || !middle) return NULL;
  *joined = *product;
  joined->sum = product->y;
  joined->residual = last ? sum->x : sum->residual;
  joined->y = sum->y;
  *middle = (laci_sparse_middle){.scale = product->y->scale / sum->y->scale,
                                 .zero = laci_bytes_zero_point(product->y),
                                 .low = product->quantized.low,
                                 .high = product->quantized.high,
                                 .last = last};
  laci_sparse_quantized *q = &joined->quantized;
  q->middle = middle;
  q->residual_scale = joined->residual->scale / sum->y->scale;
  q->residual_zero = laci_bytes_zero_point(joined->residual);
  q->zero = laci_bytes_zero_point(sum->y);
  q->low = sum->quantized.low;
  q->high = sum->quantized.high;
  return joined;
}

/** Replaces the sum by the product with the sum after it; the product's own entry is no longer
 * chosen. */
static void join_product_and_sum(laci_net *net, laci_native_layer *sum,
                                 laci_native_layer *product) {
  const bool last = sum->input != product->output;
  laci_native_int8_data *int8 = make_joined_int8_data(net, product->int8, sum->int8, last);
  if (!int8) return;
  laci_native_layer joined = *product;
  joined.int8 = int8;
  joined.last = sum->fused;
  joined.output = sum->output;
  joined.residual = last ? sum->input : sum->residual;
  product->chosen = false;
  product->joined = true;
  *sum = joined;
}

void laci_native_join_sums(laci_net *net) {
  laci_native_net *native = net->native;
  for (int at = 0; at < native->n_layers; at++) {
    laci_native_layer *sum = &native->layers[at];
    if (!sum->chosen || sum->kind != LACI_NATIVE_SUM || sum->input == sum->residual) continue;
    laci_native_layer *product = find_product(net, sum, sum->input);
    if (!product) product = find_product(net, sum, sum->residual);
    if (product) join_product_and_sum(net, sum, product);
  }
}
