/* SPDX-License-Identifier: Apache-2.0
 * Lowers fused nodes to steps: a table gives the list of implementations of each operator, and the
 * first one that supports the node lowers it. The plain operator lowers nodes that none
 * supports. */
#include "engine/cpu/lower/lower.h"

#include <string.h>

#include "base/error.h"
#include "engine/cpu/onednn/convolution.h"
#include "engine/cpu/net_in.h"
#include "graph/ops.h"
#include "engine/cpu/native/native.h"
#include "graph/op.h"
#include "engine/cpu/onednn/onednn.h"

typedef struct operator_implementations {
  const laci_op *op;
  const laci_implementation *list;
} operator_implementations;

static const operator_implementations of_operators[] = {
    {&laci_op_conv, laci_implementations_conv},
    {&laci_op_conv_transpose, laci_implementations_conv_transpose},
    {&laci_op_gemm, laci_implementations_gemm},
    {&laci_op_mat_mul, laci_implementations_matmul},
    {&laci_op_max_pool, laci_implementations_pool},
    {&laci_op_average_pool, laci_implementations_pool},
    {&laci_op_global_average_pool, laci_implementations_global_pool},
    {&laci_op_global_max_pool, laci_implementations_global_pool},
    {&laci_op_batch_normalization, laci_implementations_batch_norm},
    {&laci_op_layer_normalization, laci_implementations_layer_norm},
    {&laci_op_softmax, laci_implementations_softmax},
    {&laci_op_log_softmax, laci_implementations_softmax},
    {&laci_op_reduce_mean, laci_implementations_reduce},
    {&laci_op_reduce_sum, laci_implementations_reduce},
    {&laci_op_reduce_max, laci_implementations_reduce},
    {&laci_op_reduce_min, laci_implementations_reduce},
    {&laci_op_add, laci_implementations_arithmetic},
    {&laci_op_sub, laci_implementations_arithmetic},
    {&laci_op_mul, laci_implementations_arithmetic},
    {&laci_op_div, laci_implementations_arithmetic},
    {&laci_op_max, laci_implementations_pair},
    {&laci_op_min, laci_implementations_pair},
    {&laci_op_sum, laci_implementations_pair},
    {&laci_op_pow, laci_implementations_function},
    {&laci_op_relu, laci_implementations_function},
    {&laci_op_leaky_relu, laci_implementations_function},
    {&laci_op_elu, laci_implementations_function},
    {&laci_op_sigmoid, laci_implementations_function},
    {&laci_op_tanh, laci_implementations_function},
    {&laci_op_exp, laci_implementations_function},
    {&laci_op_log, laci_implementations_accurate},
    {&laci_op_sqrt, laci_implementations_function},
    {&laci_op_abs, laci_implementations_function},
    {&laci_op_neg, laci_implementations_function},
    {&laci_op_reciprocal, laci_implementations_function},
    {&laci_op_softplus, laci_implementations_accurate},
    {&laci_op_erf, laci_implementations_accurate},
    {&laci_op_floor, laci_implementations_accurate},
    {&laci_op_ceil, laci_implementations_accurate},
    {&laci_op_round, laci_implementations_accurate},
    {&laci_op_sign, laci_implementations_accurate},
    {&laci_op_softsign, laci_implementations_accurate},
    {&laci_op_prelu, laci_implementations_prelu},
    {&laci_op_instance_normalization, laci_implementations_instance_norm},
    {&laci_op_depth_to_space, laci_implementations_blocks},
    {&laci_op_space_to_depth, laci_implementations_blocks},
    {&laci_op_tile, laci_implementations_tile},
    {&laci_op_mish, laci_implementations_function},
    {&laci_op_swish, laci_implementations_function},
    {&laci_op_hard_swish, laci_implementations_function},
    {&laci_op_gelu, laci_implementations_function},
    {&laci_op_hard_sigmoid, laci_implementations_function},
    {&laci_op_clip, laci_implementations_function},
    {&laci_op_concat, laci_implementations_concat},
    {&laci_op_reshape, laci_implementations_reshape},
    {&laci_op_flatten, laci_implementations_reshape},
    {&laci_op_squeeze, laci_implementations_reshape},
    {&laci_op_unsqueeze, laci_implementations_reshape},
    {&laci_op_transpose, laci_implementations_transpose},
    {&laci_op_slice, laci_implementations_slice},
    {&laci_op_split, laci_implementations_split},
    {&laci_op_pad, laci_implementations_pad},
    {&laci_op_gather, laci_implementations_gather},
    {&laci_op_gather_nd, laci_implementations_gather_nd},
    {&laci_op_resize, laci_implementations_resize},
    {&laci_op_upsample, laci_implementations_resize},
    {&laci_op_lstm, laci_implementations_recurrent},
    {&laci_op_gru, laci_implementations_recurrent},
    {&laci_op_rnn, laci_implementations_recurrent},
    {&laci_op_identity, laci_implementations_same},
    {&laci_op_dropout, laci_implementations_same},
    {&laci_op_cast, laci_implementations_cast},
    {&laci_op_quantize_linear, laci_implementations_quantize_node},
    {&laci_op_dequantize_linear, laci_implementations_quantize_node},
    {&laci_op_where, laci_implementations_where},
    {&laci_op_expand, laci_implementations_expand},
    {&laci_op_and, laci_implementations_logic},
    {&laci_op_or, laci_implementations_logic},
    {&laci_op_xor, laci_implementations_logic},
    {&laci_op_not, laci_implementations_logic},
    {&laci_op_equal, laci_implementations_logic},
    {&laci_op_less, laci_implementations_logic},
    {&laci_op_less_or_equal, laci_implementations_logic},
    {&laci_op_greater, laci_implementations_logic},
    {&laci_op_greater_or_equal, laci_implementations_logic},
    {&laci_op_dynamic_steps, laci_implementations_dynamic_steps}, /* graph/float_form.h */
    /* operators of gradients: graph/gradient.h */
    {&laci_op_batch_norm_train, laci_implementations_batch_norm_train},
    {&laci_op_batch_norm_train_grad, laci_implementations_batch_norm_train_grad},
    {&laci_op_softmax_cross_entropy, laci_implementations_cross_entropy},
    {&laci_op_softmax_cross_entropy_grad, laci_implementations_cross_entropy_grad},
    {&laci_op_squared_error, laci_implementations_squared_error},
    {&laci_op_squared_error_grad, laci_implementations_squared_error_grad},
    {&laci_op_conv_grad_input, laci_implementations_conv_grad_input},
    {&laci_op_conv_grad_weight, laci_implementations_conv_grad_weight},
    {&laci_op_max_pool_grad, laci_implementations_max_pool_grad},
    {&laci_op_average_pool_grad, laci_implementations_average_pool_grad},
    {&laci_op_relu_grad, laci_implementations_relu_grad},
    {&laci_op_unary_grad, laci_implementations_unary_grad},
    {&laci_op_clip_grad, laci_implementations_clip_grad},
    {&laci_op_slice_grad, laci_implementations_slice_grad},
};

static const laci_implementation *const of_patterns[LACI_N_PATTERNS] = {
    [LACI_PATTERN_ATTENTION] = laci_implementations_attention,
    [LACI_PATTERN_LAYER_NORM] = laci_implementations_layer_norm_nodes,
    [LACI_PATTERN_RELU_SUM] = laci_implementations_relu_sum,
    [LACI_PATTERN_QUANTIZE] = laci_implementations_quantize,
    [LACI_PATTERN_QUANTIZE_LIST] = laci_implementations_quantize_list,
    [LACI_PATTERN_FUNCTION] = laci_implementations_function_nodes,
    [LACI_PATTERN_INTEGER_PRODUCT] = laci_implementations_integer_product,
    [LACI_PATTERN_DUPLICATE] = laci_implementations_duplicate,
    [LACI_PATTERN_TABLE] = laci_implementations_table,
};

/* ---- Choosing ---- */

/** In a careful plan, which keeps NaN and infinity, may the operator be lowered as in any other
 * plan? It may if it only moves data. Products may not: a sum of floats may overflow in between,
 * and become infinite with the other sign. */
static bool is_lowered_in_careful_plan(const laci_node *node) {
  static const laci_op *const shown[] = {&laci_op_concat,  &laci_op_reshape,   &laci_op_flatten,
                                         &laci_op_squeeze, &laci_op_unsqueeze, &laci_op_transpose,
                                         &laci_op_identity};
  for (size_t at = 0; at < sizeof shown / sizeof *shown; at++) {
    if (node->op == shown[at]) return true;
  }
  return false;
}

static const laci_implementation *find_implementations(const laci_net *net,
                                                       const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  if (net->plan.careful && !is_lowered_in_careful_plan(node)) return NULL;
  if (fused->pattern) return of_patterns[fused->pattern];
  if (!laci_plan_has_elements(&net->plan, node)) return NULL;
  for (size_t at = 0; at < sizeof of_operators / sizeof *of_operators; at++) {
    if (node->op == of_operators[at].op) return of_operators[at].list;
  }
  return NULL;
}

/** Returns the flags (laci_fusible) that an implementation must have for all that is fused to the
 * node. */
static int find_needed_fusible_flags(const laci_fused *fused) {
  int needs = fused->scale ? LACI_FUSIBLE_SCALE : 0;
  for (int at = 0; at < fused->n_posts; at++) {
    needs |= fused->posts[at].value >= 0 ? LACI_FUSIBLE_SUM : LACI_FUSIBLE_FUNCTIONS;
  }
  return needs;
}

static bool can_fuse_needed(const laci_implementation *implementation, int needs) {
  int fusible = implementation->fusible;
  if (fusible & LACI_FUSIBLE_RELU) fusible |= LACI_FUSIBLE_FUNCTIONS;
  return (needs & ~fusible) == 0;
}

/** Returns the first implementation, from `implementation` on in its list, that supports the fused
 * node, or the end of the list. why: what the last one lacks. */
static const laci_implementation *find_supporting_implementation(
    laci_net *net, const laci_fused *fused, const laci_implementation *implementation,
    const char **why) {
  int needs = find_needed_fusible_flags(fused);
  for (; implementation && implementation->name; implementation++) {
    if (!can_fuse_needed(implementation, needs)) continue;
    if (!implementation->supports || implementation->supports(net, fused, why)) break;
  }
  return implementation;
}

int laci_lower_find_fusible(void *lowering, const laci_fused *fused) {
  laci_net *net = lowering;
  const laci_implementation *list = find_implementations(net, fused), *implementation = list;
  const char *why = NULL;
  while (implementation && implementation->name && !implementation->fusible) implementation++;
  if (!implementation) return -1;
  if (!implementation->name && !fused->pattern)
    return 0; /* the plain operator can be fused with nothing */
  implementation = find_supporting_implementation(net, fused, list, &why);
  return implementation->name ? implementation->fusible : -1;
}

/* ---- Lowering ---- */

/** Records that the fused node has read its inputs, once for each input port. */
static void mark_inputs_read(laci_net *net, const laci_fused *fused) {
  for (int at = 0; at < laci_fused_n_reads(&net->plan, fused, net->recomputing); at++) {
    int value = laci_fused_nth_read(&net->plan, fused, at);
    if (value >= 0) laci_net_note_read_done(net, value);
  }
}

/** Tries the implementations of the node's list in order; false: all declined, and no step was
 * added. */
static bool lower_by_first_implementation(laci_net *net, const laci_fused *fused,
                                          const char **why) {
  const laci_implementation *implementation =
      find_supporting_implementation(net, fused, find_implementations(net, fused), why);
  for (; implementation && implementation->name && !net->plan.status;
       implementation = find_supporting_implementation(net, fused, implementation + 1, why)) {
    laci_net_mark mark = laci_net_mark_position(net);
    implementation->lower(net, fused);
    if (!net->declined) return true;
    laci_net_remove_steps_after(net, mark);
    net->declined = false;
    net->plan.status = LAC_OK;
    *why = net->plan.err->text;
  }
  return false;
}

/** Returns why there is no list of implementations for the fused node; NULL: there is one. */
static const char *reason_for_plain_operator(const laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  if (find_implementations(net, fused)) return NULL;
  if (net->plan.careful && !is_lowered_in_careful_plan(node))
    return "it keeps NaN and infinity, which fast kernels may lose";
  if (!fused->pattern && !laci_plan_has_elements(&net->plan, node)) return "it has no elements";
  return "no fast kernel computes this operator";
}

/** Records how the fused node is run. why: what the last implementation lacks, if none lowered the
 * node. */
static void record_node_runner(laci_net *net, const laci_fused *fused, bool done, const char *why) {
  laci_engine_node *to = &net->nodes[fused->node];
  const char *no_list = done ? NULL : reason_for_plain_operator(net, fused);
  *to = (laci_engine_node){.runner = done ? LACI_RUNNER_FAST : LACI_RUNNER_PLAIN};
  if (done || net->plan.status) return;
  to->reason = laci_plan_copy_text(&net->plan, no_list ? no_list : why);
}

static void lower_fused(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  bool alone = fused->tail == fused->node && !fused->pattern;
  lac_error failure = {0}, *err = net->plan.err;
  const char *why = "no implementation takes all that was fused";
  if (!laci_net_has_memory(net)) return;
  net->plan.err = &failure;
  bool done = lower_by_first_implementation(net, fused, &why);
  net->plan.err = err;
  if (net->plan.status) {
    (void)laci_fail(err, net->plan.status, "%s (%s): %s", node->name, node->type, failure.text);
  } else if (done) {
    record_node_runner(net, fused, true, NULL);
  } else if (alone) {
    laci_lower_plain(net, fused);
    record_node_runner(net, fused, false, why);
  } else {
    laci_plan_fail(&net->plan, LAC_UNSUPPORTED, "%s (%s): %s", node->name, node->type, why);
  }
  mark_inputs_read(net, fused);
}

/* ---- Inputs and outputs ---- */

/** Returns the layout of the floats of a network input or output. NULL after a failure. */
static laci_layout *make_port_layout(laci_net *net, const laci_shape *shape, bool in_blocks) {
  laci_layout *md = in_blocks ? laci_net_blocks_layout(net, shape, LACI_ELEMENT_F32) : NULL;
  return md ? md : laci_net_dense_layout(net, shape, LACI_ELEMENT_F32);
}

static void lower_input(laci_net *net, int port) {
  int value = net->plan.graph->inputs[port];
  const laci_engine_port *p = &net->inputs[port];
  bool is_float = p->type.dtype == LAC_DTYPE_F32;
  laci_layout *md = is_float ? make_port_layout(net, &p->type.shape, net->reads_blocks) : NULL;
  int buffer = laci_net_buffer_new(net, LACI_PLACE_INPUT, p->size_bytes);
  if (buffer >= 0) net->buffers[buffer].port = port;
  laci_net_bind_value(
      net, value,
      laci_net_tensor_new(net, &p->type.shape, is_float ? LACI_ELEMENT_F32 : LACI_ELEMENT_NONE, md,
                          buffer));
}

static lac_status run_integer_copy(laci_net *net, laci_net_step *step, lac_error *err) {
  (void)err;
  memcpy(laci_net_tensor_data(net, step->tensors[1]), laci_net_tensor_data(net, step->tensors[0]),
         net->buffers[net->tensors[step->tensors[1]].buffer].bytes);
  return LAC_OK;
}

static void lower_output(laci_net *net, int port) {
  static const laci_node result = {.name = "", .type = "output"};
  const laci_engine_port *p = &net->outputs[port];
  bool is_float = p->type.dtype == LAC_DTYPE_F32;
  int from = laci_net_read_value(net, net->plan.graph->outputs[port]);
  laci_layout *md = is_float ? make_port_layout(net, &p->type.shape, net->writes_blocks) : NULL;
  int buffer = laci_net_buffer_new(net, LACI_PLACE_OUTPUT, p->size_bytes);
  if (buffer >= 0) net->buffers[buffer].port = port;
  int to = laci_net_tensor_new(net, &p->type.shape, is_float ? LACI_ELEMENT_F32 : LACI_ELEMENT_NONE,
                               md, buffer);
  if (to < 0 || from < 0 || p->size_bytes == 0) return;
  if (!is_float) {
    (void)laci_net_step_add_code(net, &result, run_integer_copy, 2, (int[]){from, to});
    return;
  }
  laci_primitive *pd = NULL;
  lac_status st =
      laci_primitive_describe_reorder(&pd, net->onednn, net->tensors[from].md, net->tensors[to].md);
  if (!laci_net_check_status(net, st, "reorder of an output")) return;
  laci_net_step_add(net, NULL, pd, 2, (const int[][2]){{LACI_ARG_SRC, from}, {LACI_ARG_DST, to}});
}

/** Adds the steps that write outputs of the network, for those outputs that have no such step yet
 * and whose values are lowered, or for all of them. */
static void lower_outputs(laci_net *net, bool *lowered, bool all) {
  for (int at = 0; at < net->n_outputs && !net->plan.status; at++) {
    int value = net->plan.graph->outputs[at];
    if (lowered[at] || !(all || net->plan.values[value].tensor >= 0)) continue;
    lower_output(net, at);
    laci_net_note_read_done(net, value);
    lowered[at] = true;
  }
}

void laci_net_lower_graph(laci_net *net) {
  bool *lowered = laci_plan_alloc(&net->plan, (size_t)net->n_outputs, sizeof *lowered);
  net->workspaces =
      laci_plan_alloc(&net->plan, (size_t)net->plan.graph->n_nodes, sizeof *net->workspaces);
  net->nodes = laci_plan_alloc(&net->plan, (size_t)net->plan.graph->n_nodes, sizeof *net->nodes);
  for (int n = 0; n < net->plan.graph->n_nodes && net->workspaces; n++) net->workspaces[n] = -1;
  laci_native_choose_layers(net);
  laci_conv_choose_blocked_layout(net);
  for (int at = 0; at < net->n_inputs; at++) lower_input(net, at);
  laci_net_add_observer_steps(net);
  laci_net_add_check_steps(net);
  for (int t = 0; t < net->plan.n_scheduled && !net->plan.status; t++) {
    net->recomputing = net->plan.schedule[t].recomputed;
    lower_fused(net, &net->plan.fused[net->plan.schedule[t].fused]);
    net->recomputing = false;
    laci_net_add_observer_steps(net);
    laci_net_add_check_steps(net);
    if (net->early_outputs) lower_outputs(net, lowered, false);
  }
  lower_outputs(net, lowered, true);
  laci_net_check_observed_are_lowered(net);
  laci_net_mark_missing_checks(net);
}
