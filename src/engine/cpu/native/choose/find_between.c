/* SPDX-License-Identifier: Apache-2.0
 * Finds the layers that may be between native products: pools, and in int8 networks sums and
 * averages and functions of int8 values. */
#include "engine/cpu/onednn/pool.h"
#include "engine/cpu/plan/moves.h"
#include "engine/cpu/plan/quantized.h"
#include "graph/ops.h"
#include "kernel/sparse/average_pool.h"
#include "kernel/sparse/max_pool.h"
#include "engine/cpu/native/layer.h"
#include "engine/cpu/native/layout/layout.h"
#include "engine/cpu/native/choose/choose.h"
#include "engine/cpu/native/int8/int8.h"
#include "engine/cpu/onednn/onednn.h"

/** Returns the value from which `value` was computed, element by element or row by row; -1: another
 * kind of node computed it. */
static int find_elementwise_source(const laci_cpu_plan *plan, int value) {
  static const laci_op *const elementwise[] = {&laci_op_add, &laci_op_sub, &laci_op_mul,
                                               &laci_op_div};
  const int rows = laci_native_find_same_rows(plan, value);
  const int producer = plan->graph->values[value].producer;
  if (rows >= 0 || producer < 0 || !plan->computed[producer]) return rows;
  const laci_fused *fused = &plan->fused[producer];
  const laci_node *node = &plan->graph->nodes[producer];
  if (fused->pattern == LACI_PATTERN_QUANTIZE || fused->pattern == LACI_PATTERN_TABLE)
    return fused->reads[0];
  if (laci_plan_is_move(node)) return node->inputs[0];
  for (size_t at = 0; at < sizeof elementwise / sizeof *elementwise; at++) {
    if (node->op == elementwise[at])
      return node->inputs[laci_plan_is_constant(plan, node->inputs[0]) ? 1 : 0];
  }
  return -1;
}

bool laci_native_is_matrix_of_rows(const laci_cpu_plan *plan, int value) {
  for (int from = value; from >= 0; from = find_elementwise_source(plan, from)) value = from;
  const int node = plan->graph->values[value].producer;
  const laci_op *op = node < 0 ? NULL : plan->graph->nodes[node].op;
  return op == &laci_op_gemm || op == &laci_op_mat_mul || op == &laci_op_layer_normalization ||
         laci_plan_shape(plan, value)->rank < 3;
}

/** Returns the window of a layer between values of this shape that computes each element from those
 * at the same place. rows: the values are matrices, else images of three or four axes. */
static laci_sparse_window make_elementwise_window(const laci_shape *shape, bool rows) {
  const int64_t last = shape->dims[shape->rank - 1], h = shape->rank == 4 ? shape->dims[2] : 1;
  laci_sparse_window w =
      rows ? laci_native_make_1x1_window(last, last, 1, laci_shape_count(shape) / last)
           : laci_native_make_1x1_window(shape->dims[1], shape->dims[1], h, last);
  w.values = LACI_SPARSE_S8;
  return w;
}

bool laci_native_find_int8_sum(laci_net *net, const laci_fused *fused, laci_native_layer *layer) {
  const laci_cpu_plan *plan = &net->plan;
  const laci_node *node = &plan->graph->nodes[fused->node];
  const laci_fused *after = laci_native_quantization_after(plan, fused->output);
  if (node->op != &laci_op_add || !after || fused->scale || fused->shift) return false;
  const laci_shape *shape = laci_plan_shape(plan, fused->output);
  const laci_fake_quantized *in[2];
  const bool rows = shape->rank < 4 && laci_native_is_matrix_of_rows(plan, fused->output);
  if (rows ? shape->rank < 2 : shape->rank != 4) return false;
  for (int at = 0; at < 2; at++) {
    in[at] = laci_plan_quantization_of(plan, node->inputs[at]);
    if (!in[at] || !laci_shape_equal(laci_plan_shape(plan, node->inputs[at]), shape)) return false;
  }
  *layer = (laci_native_layer){.fused = fused,
                               .kind = LACI_NATIVE_SUM,
                               .rows = rows,
                               .n_images = rows ? 1 : shape->dims[0],
                               .input = laci_native_canonical_value(plan, node->inputs[0]),
                               .output = after->output,
                               .kept = 1};
  if (!laci_native_set_post_functions(net, layer) || layer->residual >= 0 || layer->n_functions > 0)
    return false;
  layer->residual = laci_native_canonical_value(plan, node->inputs[1]);
  layer->window = make_elementwise_window(shape, rows);
  layer->int8 = laci_plan_alloc(&net->plan, 1, sizeof *layer->int8);
  if (!layer->int8) return false;
  *layer->int8 =
      (laci_native_int8_data){.x = in[0], .residual = in[1], .y = after->details, .n_scales = 0};
  laci_native_set_int8_bounds(layer);
  return true;
}

const laci_fake_quantized *laci_native_quantized_result(const laci_cpu_plan *plan, int value,
                                                        int *output) {
  const laci_fused *after = laci_native_quantization_after(plan, value);
  *output = laci_native_canonical_value(plan, after ? after->output : value);
  return after ? after->details : laci_plan_quantization_of(plan, value);
}

/** Is the node a MaxPool of floats, with nothing fused after it? If so, describes it in *layer. */
static bool find_max_pool(const laci_net *net, const laci_fused *fused, laci_native_layer *layer) {
  const laci_cpu_plan *plan = &net->plan;
  const laci_node *node = &plan->graph->nodes[fused->node];
  laci_window w;
  if (node->op != &laci_op_max_pool || fused->n_posts > 0) return false;
  if (!laci_plan_has_elements(plan, node)) return false;
  const laci_shape *in = laci_plan_shape(plan, node->inputs[0]);
  if (in->rank != 4 || !laci_pool_read_window(net, node, &w)) return false;
  *layer = (laci_native_layer){.fused = fused,
                               .kind = LACI_NATIVE_POOL,
                               .n_images = in->dims[0],
                               .input = laci_native_canonical_value(plan, node->inputs[0]),
                               .output = fused->output,
                               .residual = -1,
                               .kept = 1};
  layer->window = laci_native_make_window(in, laci_plan_shape(plan, fused->output), &w);
  return laci_max_pool_can_compute(&layer->window);
}

bool laci_native_find_max_pool(laci_net *net, const laci_fused *fused, laci_native_layer *layer) {
  return !net->plan.bf16 && find_max_pool(net, fused, layer);
}

bool laci_native_find_int8_max_pool(laci_net *net, const laci_fused *fused,
                                    laci_native_layer *layer) {
  if (!find_max_pool(net, fused, layer)) return false;
  const laci_cpu_plan *plan = &net->plan;
  const laci_fake_quantized *y = laci_native_quantized_result(plan, fused->output, &layer->output);
  const laci_fake_quantized *x =
      laci_plan_quantization_of(plan, plan->graph->nodes[fused->node].inputs[0]);
  if (!y || !x || !laci_plan_has_same_scale_and_bounds(x, y)) return false;
  layer->window.values = LACI_SPARSE_S8;
  layer->int8 = laci_plan_alloc(&net->plan, 1, sizeof *layer->int8);
  if (!layer->int8) return false;
  *layer->int8 = (laci_native_int8_data){.x = x, .y = y};
  return true;
}

bool laci_native_find_int8_table(laci_net *net, const laci_fused *fused, laci_native_layer *layer) {
  const laci_cpu_plan *plan = &net->plan;
  const laci_table_pattern *table = fused->details;
  if (fused->pattern != LACI_PATTERN_TABLE || !table->to || plan->bf16) return false;
  const laci_shape *shape = laci_plan_shape(plan, fused->output);
  const bool rows = laci_native_is_matrix_of_rows(plan, fused->reads[0]);
  if (rows ? shape->rank < 2 : shape->rank != 3 && shape->rank != 4) return false;
  *layer = (laci_native_layer){.fused = fused,
                               .rows = rows,
                               .kind = LACI_NATIVE_TABLE,
                               .n_images = rows ? 1 : shape->dims[0],
                               .input = laci_native_canonical_value(plan, fused->reads[0]),
                               .output = fused->output,
                               .residual = -1,
                               .kept = 1};
  layer->window = make_elementwise_window(shape, rows);
  layer->int8 = laci_plan_alloc(&net->plan, 1, sizeof *layer->int8);
  if (!layer->int8) return false;
  *layer->int8 = (laci_native_int8_data){.x = table->from, .y = table->to};
  return true;
}

/** Reads the window of an average pool. False: it is none, or cannot be described. */
static bool read_average_pool_window(const laci_net *net, const laci_node *node, laci_window *w) {
  const laci_shape *in = laci_plan_shape(&net->plan, node->inputs[0]);
  if (in->rank != 4) return false;
  if (node->op == &laci_op_average_pool) {
    const bool rounds_up = laci_node_int(node, "ceil_mode", 0) != 0;
    return !rounds_up && laci_pool_read_window(net, node, w);
  }
  *w = (laci_window){
      .n_spatial = 2, .kernel = {in->dims[2], in->dims[3]}, .strides = {1, 1}, .dilates = {0, 0}};
  return node->op == &laci_op_global_average_pool;
}

bool laci_native_find_int8_average_pool(laci_net *net, const laci_fused *fused,
                                        laci_native_layer *layer) {
  const laci_cpu_plan *plan = &net->plan;
  const laci_node *node = &plan->graph->nodes[fused->node];
  const bool pool = node->op == &laci_op_average_pool || node->op == &laci_op_global_average_pool;
  laci_window w;
  if (!pool || fused->n_posts > 0 || !laci_plan_has_elements(plan, node)) return false;
  const laci_fused *after = laci_native_quantization_after(plan, fused->output);
  const laci_fake_quantized *x = laci_plan_quantization_of(plan, node->inputs[0]);
  if (!after || !x || !read_average_pool_window(net, node, &w)) return false;
  const laci_shape *in = laci_plan_shape(plan, node->inputs[0]);
  *layer = (laci_native_layer){.fused = fused,
                               .kind = LACI_NATIVE_POOL,
                               .n_images = in->dims[0],
                               .input = laci_native_canonical_value(plan, node->inputs[0]),
                               .output = after->output,
                               .residual = -1,
                               .kept = 1};
  layer->window = laci_native_make_window(in, laci_plan_shape(plan, fused->output), &w);
  layer->window.values = LACI_SPARSE_S8;
  if (!laci_average_pool_can_compute(&layer->window)) return false;
  layer->int8 = laci_plan_alloc(&net->plan, 1, sizeof *layer->int8);
  if (!layer->int8) return false;
  *layer->int8 =
      (laci_native_int8_data){.x = x,
                              .y = after->details,
                              .averages = true,
                              .counts_padding = laci_node_int(node, "count_include_pad", 0) != 0};
  laci_native_set_int8_bounds(layer);
  return true;
}

bool laci_native_find_int8_shift(laci_net *net, const laci_fused *fused, laci_native_layer *layer) {
  const laci_cpu_plan *plan = &net->plan;
  const laci_node *node = &plan->graph->nodes[fused->node];
  if (node->op != &laci_op_add || fused->n_posts > 0 || fused->scale || plan->bf16) return false;
  const int constant = laci_plan_is_constant(plan, node->inputs[1]), x = node->inputs[!constant];
  const laci_fake_quantized *from = laci_plan_quantization_of(plan, x);
  const laci_fused *after = laci_native_quantization_after(plan, fused->output);
  const laci_shape *shape = laci_plan_shape(plan, fused->output);
  if (!from || !after || !laci_native_is_matrix_of_rows(plan, x) || shape->rank < 2) return false;
  const int64_t last = shape->dims[shape->rank - 1];
  if (!laci_shape_equal(laci_plan_shape(plan, x), shape) ||
      !laci_plan_is_vector_of_last_axis(plan, node->inputs[constant], last))
    return false;
  *layer = (laci_native_layer){.fused = fused,
                               .rows = true,
                               .kind = LACI_NATIVE_SHIFT,
                               .n_images = 1,
                               .input = laci_native_canonical_value(plan, x),
                               .output = after->output,
                               .residual = -1,
                               .kept = 1};
  layer->window = make_elementwise_window(shape, true);
  layer->int8 = laci_plan_alloc(&net->plan, 1, sizeof *layer->int8);
  if (!layer->int8) return false;
  *layer->int8 = (laci_native_int8_data){.x = from, .y = after->details};
  return true;
}

/** Returns which operand of the node has one value for each channel of the other one's images; -1:
 * none has. */
static int find_gate_operand(const laci_cpu_plan *plan, const laci_node *node) {
  for (int at = 0; at < 2; at++) {
    const laci_shape *gate = laci_plan_shape(plan, node->inputs[at]);
    const laci_shape *x = laci_plan_shape(plan, node->inputs[!at]);
    if (gate->rank != 4 || x->rank != 4 || gate->dims[2] != 1 || gate->dims[3] != 1) continue;
    if (gate->dims[0] == x->dims[0] && gate->dims[1] == x->dims[1] && x->dims[2] * x->dims[3] > 1)
      return at;
  }
  return -1;
}

bool laci_native_find_int8_gate(laci_net *net, const laci_fused *fused, laci_native_layer *layer) {
  const laci_cpu_plan *plan = &net->plan;
  const laci_node *node = &plan->graph->nodes[fused->node];
  if (node->op != &laci_op_mul || fused->scale || fused->shift || plan->bf16) return false;
  const laci_fused *after = laci_native_quantization_after(plan, fused->output);
  const int gate = find_gate_operand(plan, node), x = !gate;
  if (!after || gate < 0) return false;
  const laci_fake_quantized *of_x = laci_plan_quantization_of(plan, node->inputs[x]);
  const laci_fake_quantized *of_gate = laci_plan_quantization_of(plan, node->inputs[gate]);
  if (!of_x || !of_gate) return false;
  const laci_shape *shape = laci_plan_shape(plan, fused->output);
  *layer = (laci_native_layer){.fused = fused,
                               .kind = LACI_NATIVE_GATE,
                               .n_images = shape->dims[0],
                               .input = laci_native_canonical_value(plan, node->inputs[x]),
                               .output = after->output,
                               .kept = 1};
  if (!laci_native_set_post_functions(net, layer) || layer->residual >= 0 || layer->n_functions > 0)
    return false;
  layer->window = make_elementwise_window(shape, false);
  layer->int8 = laci_plan_alloc(&net->plan, 1, sizeof *layer->int8);
  if (!layer->int8) return false;
  *layer->int8 =
      (laci_native_int8_data){.x = of_x,
                              .y = after->details,
                              .gate = of_gate,
                              .gate_value = laci_native_canonical_value(plan, node->inputs[gate])};
  laci_native_set_int8_bounds(layer);
  return true;
}
