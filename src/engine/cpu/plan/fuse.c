/* SPDX-License-Identifier: Apache-2.0
 * Which nodes are computed, and which of them are fused: two tables.
 *
 * Patterns are nodes that are one thing together: attention, a layer norm in pieces. Then every
 * node whose implementation takes others in is followed by a chain of them, as long as no other
 * reads what lies between: scales and shifts of its channels, which go into its weights, then
 * functions and a sum, which are applied before the result is written. A fused node is computed
 * where its last node stood, since a summand is there by then. What an implementation takes,
 * lowering says (laci_plan_ask): nothing is fused that could not be built. Next: fuse_chain.c. */
#include "base/error.h"
#include "engine/cpu/net_in.h"
#include "graph/ops.h"

typedef struct pattern_row {
  laci_pattern_find *find;
  laci_pattern_finish *finish; /* NULL: nothing to be done */
} pattern_row;

static const pattern_row patterns[] = {
    {laci_find_attention, laci_finish_attention},
    {laci_find_layer_norm, laci_finish_layer_norm},
    {laci_find_relu_sum, NULL},
};

typedef struct chain_row {
  laci_takes needs; /* what the implementation has to take */
  laci_chain_rule *rule;
} chain_row;

static const chain_row chain[] = {
    {LACI_TAKES_FUNCTIONS, laci_chain_gate}, {LACI_TAKES_FUNCTIONS, laci_chain_gelu},
    {LACI_TAKES_SCALE, laci_chain_scale},    {LACI_TAKES_FUNCTIONS, laci_chain_function},
    {LACI_TAKES_SUM, laci_chain_sum},        {LACI_TAKES_RELU, laci_chain_norm_relu},
};

/* ---- What is computed ---- */

static void find_computed(laci_net *net) {
  const laci_graph *graph = net->graph;
  for (int at = 0; at < graph->n_outputs; at++) net->values[graph->outputs[at]].n_uses++;
  laci_net_observe_uses(net);
  for (int n = graph->n_nodes - 1; n >= 0; n--) {
    const laci_node *node = &graph->nodes[n];
    for (int at = 0; at < node->n_outputs && !net->computed[n]; at++) {
      int value = node->outputs[at];
      net->computed[n] =
          value >= 0 && net->values[value].n_uses > 0 && !net->values[value].constant;
    }
    for (int at = 0; at < node->n_inputs && net->computed[n]; at++)
      if (node->inputs[at] >= 0) net->values[node->inputs[at]].n_uses++;
  }
}

/* ---- Patterns ---- */

/** The match's nodes become part of its last one. */
static laci_fused *fuse_match(laci_net *net, const laci_match *match) {
  for (int at = 0; at < match->n_nodes; at++) {
    net->fused[match->nodes[at]].output = -1;
    net->fused_at[match->nodes[at]] = -1;
  }
  net->fused[match->last] = match->fused;
  net->fused[match->last].n_nodes = match->n_nodes + 1;
  return &net->fused[match->last];
}

static void find_patterns(laci_net *net, laci_plan_ask *ask, int node) {
  for (size_t at = 0; at < sizeof patterns / sizeof *patterns; at++) {
    laci_match match = {.last = node};
    if (!patterns[at].find(net, node, &match)) continue;
    match.fused.node = match.fused.tail = match.last;
    match.fused.output = net->fused[match.last].output;
    if (ask(net, &match.fused) < 0) continue;
    laci_fused *fused = fuse_match(net, &match);
    if (patterns[at].finish) patterns[at].finish(net, fused);
    return;
  }
}

/* ---- Chains ---- */

/** Channels whose scale can go into the weights. */
static int64_t channels_of(const laci_net *net, const laci_node *node) {
  const laci_shape *y = laci_net_shape(net, node->outputs[0]);
  return y->rank < 1 ? 0 : y->dims[node->op == &laci_op_conv ? 1 : y->rank - 1];
}

/** One more of the chain; false: it ends here. */
static bool extend(laci_net *net, laci_fused *fused, int takes) {
  for (size_t at = 0; at < sizeof chain / sizeof *chain; at++) {
    if ((takes & (int)chain[at].needs) && chain[at].rule(net, fused)) return true;
  }
  return false;
}

static void fuse_chain(laci_net *net, laci_plan_ask *ask, laci_fused *fused) {
  const laci_node *node = &net->graph->nodes[fused->node];
  int takes = ask(net, fused);
  if (takes <= 0) return;
  if (takes & LACI_TAKES_SCALE) fused->channels = channels_of(net, node);
  while (extend(net, fused, takes) && !(takes & LACI_TAKES_ONE)) {}
}

/* ---- All ---- */

static void start(laci_net *net) {
  for (int n = 0; n < net->graph->n_nodes; n++) {
    int output = net->graph->nodes[n].n_outputs > 0 ? net->graph->nodes[n].outputs[0] : -1;
    net->fused[n] = (laci_fused){.node = n, .tail = n, .n_nodes = 1, .output = output};
    net->fused_at[n] = net->computed[n] ? n : -1;
    net->workspaces[n] = -1;
  }
}

lac_status laci_plan_fuse(laci_net *net, laci_plan_ask *ask, lac_error *err) {
  int n_nodes = net->graph->n_nodes;
  net->computed = laci_net_new(net, (size_t)n_nodes, sizeof *net->computed);
  net->fused = laci_net_new(net, (size_t)n_nodes, sizeof *net->fused);
  net->fused_at = laci_net_new(net, (size_t)n_nodes, sizeof *net->fused_at);
  net->workspaces = laci_net_new(net, (size_t)n_nodes, sizeof *net->workspaces);
  if (net->status) return laci_fail_memory(err, "the plan's fused nodes");
  find_computed(net);
  start(net);
  for (int n = 0; n < n_nodes; n++) {
    if (net->fused_at[n] != n || !laci_plan_has_elements(net, &net->graph->nodes[n])) continue;
    find_patterns(net, ask, n);
  }
  for (int n = 0; n < n_nodes; n++) {
    laci_fused *fused = &net->fused[n];
    bool alone = net->fused_at[fused->tail] == n && fused->output >= 0 && !fused->pattern;
    if (alone && laci_plan_has_elements(net, &net->graph->nodes[n])) fuse_chain(net, ask, fused);
  }
  return net->status;
}
