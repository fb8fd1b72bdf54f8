/* SPDX-License-Identifier: Apache-2.0
 * Int8 layers: convolutions and products of a quantized network (QDQ). Their input comes from a
 * QuantizeLinear and a DequantizeLinear, and their weight is a constant of integers followed by a
 * DequantizeLinear.
 *
 * Sums are exact, where floats would be rounded. Results become int8 where a QuantizeLinear and a
 * DequantizeLinear are their only readers. Relu and Clip are then bounds of the int8 result. All
 * other results are floats. */
#include <float.h>
#include <math.h>

#include "engine/cpu/lower/product.h"
#include "engine/cpu/plan/quantized.h"
#include "graph/ops.h"
#include "kernel/pointwise/fake_quantize.h"
#include "engine/cpu/native/layer.h"
#include "engine/cpu/native/int8/int8.h"
#include "engine/cpu/native/choose/choose.h"
#include "tensor/buf.h"

/* ---- Values ---- */

/** Returns the only node that reads the value, if it reads the value once; -1: the value is read
 * more often, or never. */
static int find_only_reader(const laci_cpu_plan *plan, int value) {
  int readers[2];
  const bool one = value >= 0 && laci_plan_count_uses(plan, value) == 1 &&
                   laci_plan_find_readers(plan, value, readers) == 1;
  return one ? readers[0] : -1;
}

const laci_fused *laci_native_quantization_after(const laci_cpu_plan *plan, int value) {
  const int quantize = find_only_reader(plan, value);
  const laci_node *node = quantize < 0 ? NULL : &plan->graph->nodes[quantize];
  if (!node || node->n_outputs != 1) return NULL;
  const laci_fused *last = &plan->fused[laci_plan_find_computing_node(plan, quantize)];
  return laci_plan_is_quantize_pair(last) && last->reads[0] == value ? last : NULL;
}

int laci_native_canonical_value(const laci_cpu_plan *plan, int value) {
  return laci_plan_skip_duplicates(plan, value);
}

/* ---- Weights ---- */

/** Are all elements of an integer constant equal to `wanted`? */
static bool is_constant_filled_with(laci_cpu_plan *plan, int value, int64_t wanted) {
  laci_buf *zeros = laci_plan_copy_constant(plan, value);
  bool all = zeros && zeros->i;
  for (int64_t at = 0; all && at < zeros->count; at++) all = zeros->i[at] == wanted;
  laci_buf_destroy(zeros);
  return all;
}

/** Finds the scales of the layer's weights. False: the weights are not integers from -128 to 127
 * (with the zero point subtracted) with one scale, or one for each row. */
static bool find_weight_scale(laci_cpu_plan *plan, const laci_native_layer *layer) {
  enum { MIDDLE = 128 };
  const int64_t n_rows = layer->window.channels_out;
  laci_native_int8_data *int8 = layer->int8;
  const laci_node *node = &plan->graph->nodes[layer->fused->node];
  const int producer = plan->graph->values[node->inputs[1]].producer;
  const laci_node *from = producer < 0 ? NULL : &plan->graph->nodes[producer];
  if (!from || from->op != &laci_op_dequantize_linear) return false;
  if (laci_node_int(from, "block_size", 0) != 0) return false;
  const laci_plan_value *scale = &plan->values[from->inputs[1]];
  const lac_dtype dtype = plan->values[from->inputs[0]].type.dtype;
  const bool unsigned_bytes = dtype == LAC_DTYPE_U8;
  if (!scale->constant || scale->type.dtype != LAC_DTYPE_F32) return false;
  if (!unsigned_bytes && dtype != LAC_DTYPE_I8) return false;
  const int rank = laci_plan_shape(plan, node->inputs[1])->rank;
  int64_t axis = laci_node_int(from, "axis", 1);
  if (axis < 0) axis += rank;
  const bool transposed = layer->rows && laci_node_int(node, "transB", 0) == 0;
  int8->n_scales = laci_shape_count(&scale->type.shape);
  if (int8->n_scales != 1 && (int8->n_scales != n_rows || axis != transposed)) return false;
  const bool has_zeros = laci_plan_has_input(from, 2);
  if (unsigned_bytes && !has_zeros) return false;
  if (has_zeros && !is_constant_filled_with(plan, from->inputs[2], unsigned_bytes ? MIDDLE : 0))
    return false;
  int8->weight_scale = laci_plan_constant_floats(plan, from->inputs[1]);
  return int8->weight_scale != NULL;
}

/** Multiplies the scales of the weights by those of a batch normalization that follows the layer.
 * Its weights are multiplied by the same scales where they are read, so that they are the same
 * integers. False: the scales are of other channels, or there is no memory. */
static bool fold_norm_scales(laci_cpu_plan *plan, const laci_native_layer *layer) {
  const laci_fused *fused = layer->fused;
  const int64_t n_rows = layer->window.channels_out;
  laci_native_int8_data *int8 = layer->int8;
  if (!fused->scale) return true;
  float *folded = laci_plan_alloc(plan, (size_t)n_rows, sizeof *folded);
  if (!folded || fused->channels != n_rows) return false;
  for (int64_t row = 0; row < n_rows; row++) {
    const float one = int8->weight_scale[int8->n_scales == 1 ? 0 : row];
    /* a scale of 0 makes all weights of the row 0, which are integers in any units */
    folded[row] = fused->scale[row] == 0 ? one : one * fused->scale[row];
  }
  int8->weight_scale = folded;
  int8->n_scales = n_rows;
  return true;
}

double laci_native_sum_scale(const laci_native_int8_data *int8, int64_t row) {
  return (double)int8->x->scale * (double)int8->weight_scale[int8->n_scales == 1 ? 0 : row];
}

/** Does the sum of every row (output channel) fit in 32 bits, and can its bias be added? A bias too
 * large for the units of a sum has units of its own (weights.c). */
static bool has_sums_of_32_bits(laci_cpu_plan *plan, const laci_native_layer *layer) {
  const laci_node *node = &plan->graph->nodes[layer->fused->node];
  const int64_t n_rows = layer->window.channels_out;
  const float *bias = NULL;
  int64_t n_biases = 0;
  if (laci_plan_has_input(node, 2)) {
    bias = laci_plan_constant_floats(plan, node->inputs[2]);
    if (!bias) return false;
    n_biases = laci_shape_count(laci_plan_shape(plan, node->inputs[2]));
  }
  for (int64_t row = 0; row < n_rows; row++) {
    const double scale = fabs(laci_native_sum_scale(layer->int8, row));
    if (layer->fused->shift && !isfinite(layer->fused->shift[row])) return false;
    if (!(scale >= (double)FLT_MIN && scale <= (double)FLT_MAX)) return false;
    if (bias && !isfinite(bias[n_biases == 1 ? 0 : row])) return false;
  }
  return (double)laci_sparse_row_length(&layer->window) * UINT8_MAX * -INT8_MIN <
         LACI_NATIVE_MOST_SUM;
}

/* ---- Making a layer int8 ---- */

/** Is it a convolution, or a product with alpha and beta 1? */
static bool is_unscaled_product(const laci_net *net, const laci_native_layer *layer) {
  const laci_fused *fused = layer->fused;
  if (!layer->rows) return true;
  const laci_right_operand r = laci_right_operand_read(net, fused);
  const bool biased = laci_plan_has_input(&net->plan.graph->nodes[fused->node], 2);
  return r.alpha == 1 && (!biased || r.beta == 1);
}

static bool can_share_int8x4_groups(const laci_sparse_window *g) {
  enum { INT8X4 = 4 };
  const int64_t in = g->channels_in / g->groups, out = g->channels_out / g->groups;
  return g->groups == 1 || (in % INT8X4 == 0 && out % INT8X4 == 0);
}

/** Is there an int8 kernel for layers of this kind, window and residual? */
static bool has_int8_kernel(const laci_native_layer *layer) {
  if (layer->kind == LACI_NATIVE_DEPTHWISE) return layer->residual < 0;
  return layer->kind == LACI_NATIVE_PRODUCT && can_share_int8x4_groups(&layer->window);
}

void laci_native_make_int8_if_possible(laci_net *net, laci_native_layer *layer) {
  laci_cpu_plan *plan = &net->plan;
  const laci_fake_quantized *x = laci_plan_quantization_of(plan, layer->input);
  if (!x || plan->bf16 || !has_int8_kernel(layer) || !is_unscaled_product(net, layer)) return;
  laci_native_int8_data *int8 = laci_plan_alloc(plan, 1, sizeof *int8);
  laci_native_layer made = *layer;
  if (!int8) return;
  *int8 = (laci_native_int8_data){.x = x, .quantized = {.floats = true}};
  made.int8 = int8;
  made.window.values = LACI_SPARSE_S8;
  if (!find_weight_scale(plan, &made) || !fold_norm_scales(plan, &made) ||
      !has_sums_of_32_bits(plan, &made))
    return;
  const laci_fused *after = laci_native_quantization_after(plan, layer->fused->output);
  if (after && layer->residual >= 0) {
    int8->residual = laci_plan_quantization_of(plan, layer->residual);
    if (!int8->residual) after = NULL;
  }
  if (after) {
    int8->y = after->details;
    int8->quantized.floats = false;
    made.output = after->output;
    if (!laci_native_set_int8_post_functions(net, &made)) return;
  }
  *layer = made;
}
