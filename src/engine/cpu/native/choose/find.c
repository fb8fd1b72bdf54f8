/* SPDX-License-Identifier: Apache-2.0
 * Finds the convolutions and products that native kernels can compute: the weights are constant,
 * enough of them are zeros, and native kernels support all that is fused with them. */
#include "engine/cpu/onednn/convolution.h"
#include "engine/cpu/lower/product.h"
#include "engine/cpu/net.h"
#include "graph/ops.h"
#include "engine/cpu/native/layer.h"
#include "engine/cpu/native/layout/layout.h"
#include "engine/cpu/native/costs/costs.h"
#include "engine/cpu/native/choose/choose.h"
#include "kernel/sparse/byte_pairs.h"
#include "engine/cpu/onednn/onednn.h"
#include "engine/cpu/native/algorithms/algorithm.h"

static bool find_convolution_window(const laci_net *net, const laci_fused *fused,
                                    laci_native_layer *layer) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const laci_shape *x = laci_plan_shape(&net->plan, node->inputs[0]);
  const laci_shape *y = laci_plan_shape(&net->plan, node->outputs[0]);
  const laci_shape *weight = laci_plan_shape(&net->plan, node->inputs[1]);
  laci_window w;
  if (!laci_conv_read_window(node, x, y, weight->dims + 2, &w) || w.n_spatial > 2) return false;
  layer->n_images = x->dims[0];
  layer->window = laci_native_make_window(x, y, &w);
  layer->window.groups = laci_node_int(node, "group", 1);
  layer->window.values = laci_native_value_type(net);
  return true;
}

static laci_native_reading choose_input_reading(const laci_native_layer *layer) {
  const laci_sparse_window *g = &layer->window;
  const bool strides = g->stride_h > 1 || g->stride_w > 1;
  if (!strides || layer->kind != LACI_NATIVE_PRODUCT ||
      laci_native_has_image_lanes(layer->n_images))
    return LACI_NATIVE_AS_STORED;
  return laci_native_is_1x1(g) ? LACI_NATIVE_SUBSAMPLED : LACI_NATIVE_PHASES;
}

/** Describes a matrix product as a 1x1 convolution; false: the node is no such product. */
static bool find_product_window(laci_net *net, const laci_fused *fused, laci_native_layer *layer) {
  const char *why;
  if (!laci_is_product_with_constant_matrix(net, fused, &why)) return false;
  const laci_right_operand r = laci_right_operand_read(net, fused);
  if (r.left_transposed || r.rows < 1 || r.depth < 1 || r.columns < 1) return false;
  layer->rows = true;
  layer->n_images = 1;
  layer->window = laci_native_make_1x1_window(r.depth, r.columns, 1, r.rows);
  layer->window.values = laci_native_value_type(net);
  return true;
}

/** Is the layer a product of floats with few rows? It takes the time of reading the matrix, and has
 * kernels of its own (algorithms/vector.c). */
static bool is_float_product_of_few_rows(const laci_net *net, const laci_native_layer *layer) {
  if (!layer->rows || layer->int8) return false;
  const laci_right_operand r = laci_right_operand_read(net, layer->fused);
  return laci_right_operand_has_few_rows(&r);
}

/** Returns the value that is the layer's result. If the node's value is quantized and dequantized,
 * and has no other reader, that is the value after this; otherwise it is the value itself. */
static int find_result_after_quantization(const laci_cpu_plan *plan, int value) {
  const laci_fused *after = laci_native_quantization_after(plan, value);
  for (; after; after = laci_native_quantization_after(plan, value)) value = after->output;
  return laci_native_canonical_value(plan, value);
}

/** Are layers wanted even if native kernels gain nothing? */
static bool may_find_slower_layers(const laci_net *net) {
  return net->use->which == LACI_NATIVE_USE_ALL;
}

/** Has the convolution groups of few channels? For these, dense kernels use only a part of each
 * vector, or copy values for matrix products, so that generated code gains however many weights are
 * kept. */
static bool has_narrow_groups(const laci_net *net, const laci_sparse_window *g) {
  enum { FEW = 8 };
  const bool known = laci_cost_figures_of_floats(net)->by_gemm > 0 || net->timings;
  return known && !net->plan.bf16 && g->groups > 1 && g->channels_in / g->groups <= FEW;
}

/** Has the convolution so few results for each pixel that dense kernels use only a part of each
 * vector, or wait for their own sums? Then generated code gains however many weights are kept. */
static bool has_few_results(const laci_net *net, const laci_native_layer *layer) {
  return !layer->rows && laci_cost_few_results_factor(net, layer) > 1;
}

bool laci_native_describe_product(laci_net *net, const laci_fused *fused,
                                  laci_native_layer *layer) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const bool conv = node->op == &laci_op_conv;
  if (fused->pattern || node->n_inputs < 2 || node->inputs[1] < 0) return false;
  if (!conv && node->op != &laci_op_gemm && node->op != &laci_op_mat_mul) return false;
  *layer = (laci_native_layer){.fused = fused, .input = node->inputs[0], .kept = 1};
  if (!(conv ? find_convolution_window(net, fused, layer) : find_product_window(net, fused, layer)))
    return false;
  if (conv && laci_native_is_depthwise(&layer->window)) layer->kind = LACI_NATIVE_DEPTHWISE;
  return !is_float_product_of_few_rows(net, layer);
}

static bool find_weighted_layer(laci_net *net, const laci_fused *fused, bool bytes,
                                laci_native_layer *layer) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const bool conv = node->op == &laci_op_conv;
  const char *why;
  if (fused->output >= 0 && bytes && laci_native_find_int8_table(net, fused, layer)) return true;
  if (fused->output < 0 || fused->pattern) return false;
  if (laci_native_find_trained_layer(net, fused, layer)) return true;
  if (bytes && laci_native_find_int8_sum(net, fused, layer)) return true;
  if (bytes && laci_native_find_int8_shift(net, fused, layer)) return true;
  if (bytes && laci_native_find_int8_gate(net, fused, layer)) return true;
  if (bytes && laci_native_find_int8_max_pool(net, fused, layer)) return true;
  if (bytes && laci_native_find_int8_average_pool(net, fused, layer)) return true;
  if (laci_native_find_max_pool(net, fused, layer)) {
    layer->output = find_result_after_quantization(&net->plan, fused->output);
    return true;
  }
  if (!conv && node->op != &laci_op_gemm && node->op != &laci_op_mat_mul) return false;
  if (!laci_plan_has_elements(&net->plan, node)) return false;
  if (conv && !laci_can_lower_conv_constant(net, fused, &why)) return false;
  *layer = (laci_native_layer){.fused = fused,
                               .input = laci_native_canonical_value(&net->plan, node->inputs[0]),
                               .output = find_result_after_quantization(&net->plan, fused->output)};
  if (!laci_native_set_post_functions(net, layer)) return false;
  if (!(conv ? find_convolution_window(net, fused, layer) : find_product_window(net, fused, layer)))
    return false;
  if (net->plan.bf16 && !laci_native_can_compute_bf16(net, layer)) return false;
  if (conv && laci_native_is_depthwise(&layer->window)) layer->kind = LACI_NATIVE_DEPTHWISE;
  layer->reading = choose_input_reading(layer);
  if (!laci_native_padding_is_small(layer)) return false;
  if (layer->kind == LACI_NATIVE_DEPTHWISE) {
    layer->kept = 1;
    if (bytes) laci_native_make_int8_if_possible(net, layer);
    return true;
  }
  layer->kept = laci_net_nonzero_share(net, node->inputs[1]);
  if (bytes) laci_native_make_int8_if_possible(net, layer);
  if (is_float_product_of_few_rows(net, layer)) return false;
  layer->is_dense = layer->kept * 100 > laci_cost_figures_of_floats(net)->most_kept &&
                    !layer->int8 && !may_find_slower_layers(net) &&
                    !has_narrow_groups(net, &layer->window) && !has_few_results(net, layer);
  return !layer->is_dense || laci_native_can_gain_without_zeros(net, layer);
}

/** Sets the kind of the layer's values: a matrix of rows, or images of a convolution. False: one of
 * them has the other kind in another layer. */
static bool set_kind_of_values(uint8_t *kinds, const laci_native_layer *layer) {
  const uint8_t kind = layer->rows ? 1 : 2;
  for (int at = 0; at < laci_native_n_values(layer); at++) {
    const int value = laci_native_nth_value(layer, at);
    if (value >= 0 && kinds[value] && kinds[value] != kind) return false;
  }
  for (int at = 0; at < laci_native_n_values(layer); at++) {
    const int value = laci_native_nth_value(layer, at);
    if (value >= 0) kinds[value] = kind;
  }
  return true;
}

/** Removes pools from the list: between layers whose weights change in training, oneDNN computes
 * them. Returns how many layers are left. */
static int remove_pools(laci_native_layer *layers, int n) {
  int left = 0;
  for (int at = 0; at < n; at++) {
    if (layers[at].kind != LACI_NATIVE_POOL) layers[left++] = layers[at];
  }
  return left;
}

/** Returns the number of layers that there can be: one for each output of a fused node. */
static size_t count_results(const laci_cpu_plan *plan) {
  size_t n = 0;
  for (int t = 0; t < plan->n_scheduled; t++)
    n += (size_t)plan->graph->nodes[plan->fused[plan->schedule[t].fused].node].n_outputs + 1;
  return n;
}

/** Finds the layers that compute a fused node: several where each output is moved for itself (a
 * Split). Returns their number. */
static int find_layers_of_node(laci_net *net, const laci_fused *fused, bool bytes,
                               laci_native_layer *layers) {
  if (find_weighted_layer(net, fused, bytes, &layers[0])) return 1;
  const int n_outputs = bytes ? net->plan.graph->nodes[fused->node].n_outputs : 0;
  int n = 0;
  for (int port = 0; port < n_outputs; port++)
    n += laci_native_find_int8_move(net, fused, port, &layers[n]);
  return n;
}

/** Are there products of int8 by vectors of AVX2, and have they been timed on such a processor? */
static bool has_int8_products(const laci_net *net) {
  const laci_cost_table *table = net->costs->tables[LACI_COSTS_int8];
  return table->figures[LACI_COSTS_int8].byte_pairs > 0 && laci_byte_pairs_can_run();
}

void laci_native_find_layers(laci_net *net) {
  laci_cpu_plan *plan = &net->plan;
  laci_native_layer *layers = laci_plan_alloc(plan, count_results(plan), sizeof *layers);
  laci_native_net *native = laci_plan_alloc(plan, 1, sizeof *native);
  uint8_t *kinds = laci_plan_alloc(plan, (size_t)plan->graph->n_values, sizeof *kinds);
  const laci_jit_isa isa = laci_jit_isa_allowed(), isa_of_bytes = laci_jit_isa_for_int8(isa);
  const bool bytes =
      isa_of_bytes != LACI_JIT_NONE || has_int8_products(net) || may_find_slower_layers(net);
  int n = 0, n_neighbours = 0;
  bool trained = false;
  if (!layers || !native || !kinds) return;
  for (int t = 0; t < plan->n_scheduled; t++) {
    const laci_scheduled *scheduled = &plan->schedule[t];
    if (scheduled->recomputed) continue;
    const int first = n;
    const int found = find_layers_of_node(net, &plan->fused[scheduled->fused], bytes, &layers[n]);
    for (int at = first; at < first + found; at++) {
      if (!set_kind_of_values(kinds, &layers[at])) continue;
      layers[n] = layers[at];
      layers[n].last = layers[n].fused;
      layers[n].algorithm = laci_algorithm_default_of_kind(layers[n].kind);
      trained = trained || layers[n].mask;
      n_neighbours += layers[n].kind != LACI_NATIVE_PRODUCT;
      n++;
    }
  }
  if (n == 0 || (n == n_neighbours && !may_find_slower_layers(net))) return;
  if (trained) n = remove_pools(layers, n);
  *native = (laci_native_net){.isa = plan->bf16 ? laci_jit_isa_for_bf16(isa) : isa,
                              .isa_of_bytes = isa_of_bytes,
                              .layers = layers,
                              .n_layers = n,
                              .trained = trained};
  net->native = native;
  native->tight = laci_native_is_short_of_memory(net);
}

const laci_native_layer *laci_native_chosen_layer(const laci_net *net, const laci_fused *fused) {
  const laci_native_net *native = net->native;
  for (int at = 0; native && at < native->n_layers; at++) {
    const laci_native_layer *layer = &native->layers[at];
    const bool has = layer->fused->node == fused->node || layer->last->node == fused->node;
    if (layer->chosen && has) return layer;
  }
  return NULL;
}
