/* SPDX-License-Identifier: Apache-2.0
 * Decides which nodes are computed and which of them are fused, by two tables.
 *
 * A pattern is a group of nodes that form one operation, such as attention, or a layer norm written
 * as single operators. After patterns come chains. To a node whose implementation can fuse others,
 * the nodes that follow are fused, as long as no other node reads the values in between. These are
 * scales and shifts of its channels, which go into its weights, then functions and a sum, which are
 * applied before the result is written. A fused node is computed at the place of its last node,
 * since a summand has been computed by then. Lowering says what an implementation can fuse
 * (laci_plan_ask_fusible), so that every fused node can be lowered. Next: fuse_chain.c. */
#include "base/error.h"
#include "engine/cpu/plan/finite.h"
#include "engine/cpu/plan/quantized.h"
#include "graph/ops.h"

/** A pattern of nodes: the function that finds it, and the function that completes its fused node;
 * NULL: nothing is left to do. */
typedef struct pattern_row {
  laci_pattern_find *find;
  laci_pattern_finish *finish; /* NULL: none */
} pattern_row;

static const pattern_row patterns[] = {
    {laci_find_attention, laci_finish_attention},
    {laci_find_layer_norm, laci_finish_layer_norm},
    {laci_find_relu_sum, NULL},
    {laci_find_repeated_dequantize, laci_finish_repeated_dequantize},
    {laci_find_quantize_pair, NULL},
    {laci_find_quantize_list_pair, NULL},
    {laci_find_integer_product, NULL},
};

/** A rule that fuses the node after a chain. */
typedef struct chain_row {
  laci_fusible needs; /* what the implementation must be able to fuse */
  laci_chain_rule *rule;
} chain_row;

static const chain_row chain[] = {
    {LACI_FUSIBLE_FUNCTIONS, laci_fuse_gate},       {LACI_FUSIBLE_FUNCTIONS, laci_fuse_formula},
    {LACI_FUSIBLE_FUNCTIONS, laci_fuse_hard_swish}, {LACI_FUSIBLE_SCALE, laci_fuse_scale},
    {LACI_FUSIBLE_FUNCTIONS, laci_fuse_function},   {LACI_FUSIBLE_SUM, laci_fuse_sum},
    {LACI_FUSIBLE_RELU, laci_fuse_norm_relu},
};

/* ---- What is computed ---- */

void laci_plan_find_computed_nodes(laci_cpu_plan *plan) {
  const laci_graph *graph = plan->graph;
  plan->computed = laci_plan_alloc(plan, (size_t)graph->n_nodes, sizeof *plan->computed);
  if (plan->status) return;
  for (int at = 0; at < graph->n_outputs; at++) plan->values[graph->outputs[at]].n_uses++;
  for (int at = 0; at < plan->observer.n_values; at++)
    plan->values[plan->observer.values[at]].n_uses++;
  for (int n = graph->n_nodes - 1; n >= 0; n--) {
    const laci_node *node = &graph->nodes[n];
    for (int at = 0; at < node->n_outputs && !plan->computed[n]; at++) {
      int value = node->outputs[at];
      plan->computed[n] =
          value >= 0 && plan->values[value].n_uses > 0 && !plan->values[value].constant;
    }
    for (int at = 0; at < node->n_inputs && plan->computed[n]; at++)
      if (node->inputs[at] >= 0) plan->values[node->inputs[at]].n_uses++;
  }
}

/* ---- Patterns ---- */

/** Fuses the match's nodes into its last one; returns the fused node. */
static laci_fused *fuse_matched_nodes(laci_cpu_plan *plan, const laci_match *match) {
  for (int at = 0; at < match->n_nodes; at++) {
    plan->fused[match->nodes[at]].output = -1;
    plan->joined[match->nodes[at]] = match->last;
    plan->fused_at[match->nodes[at]] = -1;
  }
  plan->fused[match->last] = match->fused;
  plan->fused[match->last].n_nodes = match->n_nodes + 1;
  return &plan->fused[match->last];
}

static void fuse_patterns_at_node(laci_cpu_plan *plan, int node) {
  for (size_t at = 0; at < sizeof patterns / sizeof *patterns; at++) {
    laci_match match = {.last = node};
    if (!patterns[at].find(plan, node, &match)) continue;
    match.fused.node = match.fused.tail = match.last;
    match.fused.output = plan->fused[match.last].output;
    if (plan->ask(plan->lowering, &match.fused) < 0) continue;
    laci_fused *fused = fuse_matched_nodes(plan, &match);
    if (patterns[at].finish) patterns[at].finish(plan, fused);
    return;
  }
}

/* ---- Chains ---- */

/** Returns the number of channels whose scale can be multiplied into the weights. */
static int64_t count_weight_channels(const laci_cpu_plan *plan, const laci_node *node) {
  const laci_shape *y = laci_plan_shape(plan, node->outputs[0]);
  return y->rank < 1 ? 0 : y->dims[laci_plan_channel_axis(node, y->rank)];
}

/** Can the node's result be infinite or NaN even for finite operands? Then no node that could lose
 * these is fused after it. */
static bool may_be_nonfinite(laci_cpu_plan *plan, const laci_node *node) {
  laci_function f[2];
  int input;
  const int n = laci_find_node_functions(plan, node, &input, f);
  if (n > 0) return laci_function_may_be_nonfinite(&f[n - 1]);
  return node->op == &laci_op_div && !laci_plan_is_constant(plan, node->inputs[1]);
}

/** Fuses one more node of the chain; false: the chain ends here. */
static bool fuse_next_node(laci_cpu_plan *plan, laci_fused *fused, int fusible) {
  const laci_post *last = fused->n_posts > 0 ? &fused->posts[fused->n_posts - 1] : NULL;
  if (last && last->value < 0 && laci_function_may_be_nonfinite(&last->function)) return false;
  for (size_t at = 0; at < sizeof chain / sizeof *chain; at++) {
    if ((fusible & (int)chain[at].needs) && chain[at].rule(plan, fused)) return true;
  }
  return false;
}

static void fuse_following_nodes(laci_cpu_plan *plan, laci_fused *fused) {
  const laci_node *node = &plan->graph->nodes[fused->node];
  int fusible = plan->ask(plan->lowering, fused);
  if (fusible <= 0 || may_be_nonfinite(plan, node)) return;
  if (fusible & LACI_FUSIBLE_SCALE) fused->channels = count_weight_channels(plan, node);
  while (!plan->careful && fuse_next_node(plan, fused, fusible) &&
         !(fusible & LACI_FUSIBLE_SINGLE_NODE)) {}
}

/** Can nodes be fused to the fused node that begins with the node? Most patterns are complete. */
static bool can_be_followed(const laci_cpu_plan *plan, int node) {
  const laci_fused *fused = &plan->fused[node];
  if (plan->fused_at[fused->tail] != node || fused->output < 0) return false;
  return !fused->pattern || fused->pattern == LACI_PATTERN_INTEGER_PRODUCT;
}

/* ---- All ---- */

static void init_fused(laci_cpu_plan *plan) {
  for (int n = 0; n < plan->graph->n_nodes; n++) {
    int output = plan->graph->nodes[n].n_outputs > 0 ? plan->graph->nodes[n].outputs[0] : -1;
    plan->fused[n] = (laci_fused){.node = n, .tail = n, .n_nodes = 1, .output = output};
    plan->fused_at[n] = plan->computed[n] ? n : -1;
    plan->joined[n] = n;
  }
}

lac_status laci_plan_fuse_nodes(laci_cpu_plan *plan, lac_error *err) {
  int n_nodes = plan->graph->n_nodes;
  laci_plan_find_computed_nodes(plan);
  plan->fused = laci_plan_alloc(plan, (size_t)n_nodes, sizeof *plan->fused);
  plan->joined = laci_plan_alloc(plan, (size_t)n_nodes, sizeof *plan->joined);
  plan->fused_at = laci_plan_alloc(plan, (size_t)n_nodes, sizeof *plan->fused_at);
  if (plan->status) return laci_fail_memory(err, "the plan's fused nodes");
  init_fused(plan);
  for (int n = 0; n < n_nodes && !plan->careful; n++) {
    if (plan->fused_at[n] != n || !laci_plan_has_elements(plan, &plan->graph->nodes[n])) continue;
    fuse_patterns_at_node(plan, n);
  }
  if (!plan->careful) laci_plan_fuse_tables(plan);
  for (int n = 0; n < n_nodes; n++) {
    if (!can_be_followed(plan, n) || !laci_plan_has_elements(plan, &plan->graph->nodes[n]))
      continue;
    /* earlier nodes have already been fused with all nodes that can follow them */
    if (!plan->careful && laci_fuse_lone_function(plan, n)) continue;
    fuse_following_nodes(plan, &plan->fused[n]);
  }
  return plan->status;
}
