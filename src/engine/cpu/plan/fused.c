/* SPDX-License-Identifier: Apache-2.0
 * Questions about nodes while they are being fused, and about fused nodes: who reads what. */
#include "engine/cpu/net_in.h"
#include "graph/ops.h"

/* ---- Nodes ---- */

int laci_plan_uses(const laci_net *net, int value) { return net->values[value].n_uses; }

int laci_plan_readers(const laci_net *net, int value, int readers[2]) {
  const laci_value *v = &net->graph->values[value];
  int n = 0;
  for (int at = 0; at < v->n_readers; at++) {
    if (!net->computed[v->readers[at]]) continue;
    if (n < 2) readers[n] = v->readers[at];
    n++;
  }
  return n;
}

bool laci_plan_is_fused(const laci_net *net, int node) { return net->fused[node].output < 0; }

int laci_plan_only_reader(const laci_net *net, int value) {
  int readers[2];
  if (laci_plan_uses(net, value) != 1 || laci_plan_readers(net, value, readers) != 1) return -1;
  return laci_plan_is_fused(net, readers[0]) ? -1 : readers[0];
}

int laci_plan_producer(const laci_net *net, int value) {
  int node = net->graph->values[value].producer;
  if (node < 0 || !net->computed[node] || laci_plan_is_fused(net, node)) return -1;
  return net->fused[node].pattern ? -1 : node; /* else it is no longer what it looks like */
}

bool laci_plan_has_elements(const laci_net *net, const laci_node *node) {
  for (int at = 0; at < node->n_inputs + node->n_outputs; at++) {
    int value = at < node->n_inputs ? node->inputs[at] : node->outputs[at - node->n_inputs];
    if (value >= 0 && laci_shape_count(laci_net_shape(net, value)) == 0) return false;
  }
  return true;
}

void laci_fused_append(laci_net *net, laci_fused *fused, int node) {
  net->fused[node].output = -1;
  net->fused_at[node] = -1;
  net->fused_at[fused->tail] = -1;
  fused->tail = node;
  fused->n_nodes++;
  fused->output = net->graph->nodes[node].outputs[0];
  net->fused_at[node] = fused->node;
}

/* ---- What a fused node reads and writes ---- */

bool laci_fused_has_statistics(const laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->graph->nodes[fused->node];
  return node->op == &laci_op_batch_norm_train && node->n_outputs > 2 && node->outputs[1] >= 0 &&
         node->outputs[2] >= 0;
}

int laci_fused_n_reads(const laci_net *net, const laci_fused *fused, bool recomputed) {
  int own = fused->pattern ? fused->n_reads : net->graph->nodes[fused->node].n_inputs;
  return own + fused->n_posts + (recomputed && laci_fused_has_statistics(net, fused) ? 2 : 0);
}

int laci_fused_read(const laci_net *net, const laci_fused *fused, int at) {
  const laci_node *node = &net->graph->nodes[fused->node];
  int own = fused->pattern ? fused->n_reads : node->n_inputs;
  if (at < own) return fused->pattern ? fused->reads[at] : node->inputs[at];
  at -= own;
  return at < fused->n_posts ? fused->posts[at].value : node->outputs[1 + at - fused->n_posts];
}

int laci_fused_n_writes(const laci_net *net, const laci_fused *fused) {
  return fused->pattern ? 1 : net->graph->nodes[fused->node].n_outputs;
}

int laci_fused_write(const laci_net *net, const laci_fused *fused, int at) {
  return at == 0 ? fused->output : net->graph->nodes[fused->node].outputs[at];
}
