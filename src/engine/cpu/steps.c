/* SPDX-License-Identifier: Apache-2.0
 * Describes each step of a plan and counts its work, for reports.
 *
 * Work is counted where it is done. A primitive's work follows from its own operands, as oneDNN
 * sees them, so that a node that became several steps is counted once. The work of a plain operator
 * follows from the node's values. Next: api/bench/bench.c, which prints it. */
#include <string.h>

#include "engine/cpu/native/native.h"
#include "engine/cpu/net_in.h"
#include "graph/float_form.h"
#include "engine/row.h"
#include "engine/cpu/onednn/onednn.h"

/* ---- Products ---- */

static int64_t size_of_last_axis(const laci_shape *shape) {
  return shape->rank > 0 ? shape->dims[shape->rank - 1] : 1;
}

static const laci_shape *shape_of_step_argument(const laci_net *net, const laci_net_step *step,
                                                int code) {
  for (int at = 0; at < step->n_args; at++) {
    if (step->codes[at] == code) return &net->tensors[step->tensors[at]].shape;
  }
  return NULL;
}

/* Each element of the result is a sum of as many products as an output channel has weights. */
static int64_t count_convolution_flops(const laci_shape *result, const laci_shape *weight) {
  int64_t channels = result && result->rank > 1 ? result->dims[1] : 0;
  if (!weight || channels < 1) return 0;
  return 2 * laci_shape_count(result) * (laci_shape_count(weight) / channels);
}

static int64_t count_primitive_flops(const laci_net *net, const laci_net_step *step) {
  const laci_shape *result = shape_of_step_argument(net, step, LACI_ARG_DST);
  const laci_shape *left = shape_of_step_argument(net, step, LACI_ARG_SRC);
  switch (laci_primitive_product_kind(step->primitive)) {
    case LACI_PRODUCT_CONV:
      return count_convolution_flops(result, shape_of_step_argument(net, step, LACI_ARG_WEIGHTS));
    case LACI_PRODUCT_MATMUL:
      return result && left ? 2 * laci_shape_count(result) * size_of_last_axis(left) : 0;
    default: return 0;
  }
}

static int64_t count_plain_flops(const laci_net *net, const laci_node *node) {
  if (node->n_inputs < 2 || node->n_outputs < 1) return 0;
  if (node->inputs[0] < 0 || node->inputs[1] < 0 || node->outputs[0] < 0) return 0;
  const laci_shape *x = laci_plan_shape(&net->plan, node->inputs[0]);
  const laci_shape *w = laci_plan_shape(&net->plan, node->inputs[1]);
  const laci_shape *y = laci_plan_shape(&net->plan, node->outputs[0]);
  return laci_engine_node_flops(node, x, w, y);
}

/* ---- Traffic ---- */

static int64_t tensor_bytes(const laci_net *net, int tensor) {
  const laci_net_tensor *t = &net->tensors[tensor];
  if (t->native) return (int64_t)net->buffers[t->buffer].bytes;
  if (!t->md) return laci_shape_count(&t->shape) * (int64_t)sizeof(int64_t);
  if (!t->partial) return (int64_t)laci_layout_bytes(t->md);
  return laci_shape_count(&t->shape) * (t->dt == LACI_ELEMENT_BF16 ? 2 : 4);
}

static void count_primitive_bytes(const laci_net *net, const laci_net_step *step,
                                  laci_engine_step *info) {
  bool adds = laci_primitive_adds_to_result(step->primitive); /* the destination is read, too */
  for (int at = 0; at < step->n_args; at++) {
    if (step->codes[at] == LACI_ARG_SCRATCHPAD || step->tensors[at] < 0) continue;
    bool result = step->codes[at] == LACI_ARG_DST;
    int64_t bytes = tensor_bytes(net, step->tensors[at]);
    if (result) info->bytes_written += bytes;
    if (!result || adds) info->bytes_read += bytes;
  }
}

static int64_t value_bytes(const laci_net *net, int value) {
  if (value < 0) return 0;
  size_t element = laci_plan_is_float(&net->plan, value) ? sizeof(float) : sizeof(int64_t);
  return laci_shape_count(laci_plan_shape(&net->plan, value)) * (int64_t)element;
}

static void count_plain_bytes(const laci_net *net, const laci_node *node, laci_engine_step *info) {
  for (int at = 0; at < node->n_inputs; at++) {
    info->bytes_read += value_bytes(net, node->inputs[at]);
  }
  for (int at = 0; at < node->n_outputs; at++) {
    info->bytes_written += value_bytes(net, node->outputs[at]);
  }
}

/* Counts the bytes of a step that is a function. Its result is the tensor that the text shows, or
 * its last tensor. Of a table from which rows are picked, only as many bytes are read as are
 * written. */
static void count_code_bytes(const laci_net *net, const laci_net_step *step,
                             laci_engine_step *info) {
  int to = step->shown >= 0 ? step->shown : step->tensors[step->n_args - 1];
  bool picks = step->node && strncmp(step->node->type, "Gather", 6) == 0;
  info->bytes_written = tensor_bytes(net, to);
  for (int at = 0; at < step->n_args; at++) {
    int from = step->tensors[at];
    if (from < 0 || from == to || step->codes[at] == LACI_ARG_SCRATCHPAD) continue;
    info->bytes_read += picks && at == 0 ? info->bytes_written : tensor_bytes(net, from);
  }
}

/* ---- Reports ---- */

size_t laci_net_step_count(const laci_net *net) { return net->n_steps; }

/* Returns the last step that uses the output's buffer. An output without bytes is never written. */
size_t laci_net_output_step(const laci_net *net, int port) {
  for (size_t at = 0; at < net->n_buffers; at++) {
    const laci_buffer *buffer = &net->buffers[at];
    if (buffer->place != LACI_PLACE_OUTPUT || buffer->port != port) continue;
    return buffer->last > 0 ? (size_t)buffer->last : 0;
  }
  return net->n_steps;
}

/* Marks the nodes that a kernel computes without the zeros of their weights (sparse), and those
 * that one could (sparse_possible). */
static void mark_sparse_nodes(const laci_net *net, const laci_graph *graph,
                              laci_engine_node *nodes) {
  const laci_graph *own = net->plan.graph;
  int at = 0, from = 0;
  for (int n = laci_native_find_next_sparse(net, &at); n >= 0;
       n = laci_native_find_next_sparse(net, &at)) {
    const int to = laci_float_form_find_original_node(graph, &own->nodes[n], &from);
    if (to >= 0) nodes[to].sparse_possible = true;
  }
  for (size_t s = 0; s < net->n_steps; s++) {
    const laci_node *node = net->steps[s].sparse ? net->steps[s].node : NULL;
    const int to = node ? laci_float_form_find_original_node(graph, node, &from) : -1;
    if (to >= 0) nodes[to].sparse = nodes[to].sparse_possible = true;
  }
}

/* Several nodes of the plan may belong to one node of the graph; the slowest of them is listed. */
void laci_net_list_nodes(const laci_net *net, const laci_graph *graph, laci_engine_node *nodes) {
  int from = 0;
  for (int n = 0; n < net->plan.graph->n_nodes; n++) {
    if (!net->plan.computed[n]) continue;
    const int to = laci_float_form_find_original_node(graph, &net->plan.graph->nodes[n], &from);
    const laci_engine_node *how = &net->nodes[laci_plan_find_computing_node(&net->plan, n)];
    if (to >= 0 && how->runner >= nodes[to].runner) nodes[to] = *how;
  }
  mark_sparse_nodes(net, graph, nodes);
}

int laci_net_threads(const laci_net *net) { return net->n_threads; }

laci_engine_step laci_net_step_info(const laci_net *net, size_t at) {
  const laci_net_step *step = &net->steps[at];
  bool has_kernel = step->kernel && step->kernel[0];
  laci_engine_step info = {.what = step->what,
                           .kernel = has_kernel ? step->kernel : "own",
                           .plain = step->plain,
                           .sparse = step->sparse,
                           .recomputed = step->recomputed,
                           .predicted_seconds = step->predicted_seconds,
                           .op = step->node ? step->node->type : "reorder"};
  if (step->node && step->node->name[0]) info.name = step->node->name;
  if (step->primitive) {
    info.flops = count_primitive_flops(net, step);
    count_primitive_bytes(net, step, &info);
  } else if (info.plain) {
    info.flops = count_plain_flops(net, step->node);
    count_plain_bytes(net, step->node, &info);
  } else {
    info.flops = step->flops;
    count_code_bytes(net, step, &info);
  }
  return info;
}
