/* SPDX-License-Identifier: Apache-2.0
 * The rule of cut.h.
 *
 * The time of a node is the longer one of two: that of its multiplications, and that of moving its
 * operands and results, from memory where they are larger than the caches. A stage gains the
 * difference between the whole batch and a micro-batch. From this the rule subtracts the overhead
 * of running its steps more often, and the time to write the value at the cut to memory and read it
 * back. */
#include "engine/cpu/microbatch/cut.h"

#include <math.h>

#include "engine/cpu/microbatch/per_image.h"
#include "engine/row.h"
#include "graph/ops.h"

/* Figures that were measured with two threads of a Zen 4. Only their ratios matter, and these are
 * similar on other processors. */
const laci_stage_rule laci_stage_usual = {.flops = 200e9,
                                          .memory = 30e9,
                                          .cache = 60e9,
                                          .step_seconds = 4e-6,
                                          .cache_bytes = 16e6,
                                          .least_gain = 0.05};

enum { MOST_MICRO_BATCHES = 16 };

/** A node's work for one image. */
typedef struct node_work {
  double flops, bytes;
  double pixels; /* number of pixels of the node's result, in one channel */
  double wasted; /* number of pixels that could be added to a call without more time */
  bool runs;     /* the node is a step of its own */
} node_work;

/* ---- The work of a node ---- */

static double value_bytes_per_image(const laci_cpu_plan *plan, int value) {
  const laci_shape *shape = laci_plan_shape(plan, value);
  return (double)(laci_shape_count(shape) / shape->dims[0]) * (plan->bf16 ? 2 : 4);
}

static bool is_convolution_result(const laci_cpu_plan *plan, int value) {
  const int producer = plan->graph->values[value].producer;
  return producer >= 0 && plan->graph->nodes[producer].op == &laci_op_conv;
}

static bool is_computed_in_own_step(const laci_cpu_plan *plan, const laci_node *node) {
  const laci_op *op = node->op;
  if (op == &laci_op_batch_normalization) return !is_convolution_result(plan, node->inputs[0]);
  return op == &laci_op_conv || op == &laci_op_max_pool || op == &laci_op_average_pool ||
         op == &laci_op_global_average_pool || op == &laci_op_global_max_pool ||
         op == &laci_op_reduce_mean || op == &laci_op_concat;
}

/** Returns the bytes that an element-wise node moves in addition to the node to which it is fused.
 * A sum reads one more value. A product of channels with computed factors reads and writes a value.
 * All others move no more. */
static double bytes_moved_by_fused_node(const laci_cpu_plan *plan, const laci_node *node) {
  double most = 0, least = INFINITY;
  for (int at = 0; at < node->n_inputs; at++) {
    if (node->inputs[at] < 0 || laci_plan_is_constant(plan, node->inputs[at])) continue;
    const double bytes = value_bytes_per_image(plan, node->inputs[at]);
    most = fmax(most, bytes);
    least = fmin(least, bytes);
  }
  if (node->op == &laci_op_add && node->n_inputs == 2) return least == most ? most : 0;
  return node->op == &laci_op_mul && least < most ? 2 * most : 0;
}

/** Returns the number of pixels of a convolution's window. */
static int64_t count_window_pixels(const laci_cpu_plan *plan, const laci_node *node) {
  const laci_shape *w = laci_plan_shape(plan, node->inputs[1]);
  int64_t n = 1;
  for (int axis = 2; axis < w->rank; axis++) n *= w->dims[axis];
  return n;
}

static node_work estimate_node_work(const laci_cpu_plan *plan, const laci_node *node) {
  node_work w = {.runs = is_computed_in_own_step(plan, node)};
  if (!w.runs) w.bytes = bytes_moved_by_fused_node(plan, node);
  for (int at = 0; w.runs && at < node->n_inputs; at++) {
    const int value = node->inputs[at];
    if (value >= 0 && !laci_plan_is_constant(plan, value))
      w.bytes += value_bytes_per_image(plan, value);
  }
  if (w.runs) w.bytes += value_bytes_per_image(plan, node->outputs[0]);
  if (node->op == &laci_op_conv) {
    const laci_shape *y = laci_plan_shape(plan, node->outputs[0]);
    w.flops = (double)laci_engine_node_flops(node, laci_plan_shape(plan, node->inputs[0]),
                                             laci_plan_shape(plan, node->inputs[1]), y) /
              /* bf16 does two products in the time of one */
              (double)y->dims[0] / (plan->bf16 ? 2 : 1);
    w.pixels = (double)laci_shape_count(y) / (double)(y->dims[0] * y->dims[1]);
    w.wasted = count_window_pixels(plan, node) > 1 ? 320 : 40;
  }
  return w;
}

static double estimate_node_seconds(const laci_stage_rule *rule, const node_work *w,
                                    int64_t images) {
  const double bytes = w->bytes * (double)images, pixels = w->pixels * (double)images;
  const double pace = bytes > rule->cache_bytes ? rule->memory : rule->cache;
  const double overhead = pixels > 0 ? 1 + w->wasted / pixels : 1;
  return fmax(overhead * w->flops * (double)images / rule->flops, bytes / pace);
}

/* ---- Where a graph can be cut ---- */

/** Is little time lost if the network is cut at this value, which is then written to memory? Much
 * is lost if its reader would have been fused with its producer. A value that was rounded to int8
 * cannot be cut, since the next stage would not know of the rounding. */
static bool is_good_cut(const laci_cpu_plan *plan, int value, int64_t batch) {
  const laci_value *v = &plan->graph->values[value];
  const laci_shape *shape = laci_plan_shape(plan, value);
  const int producer = v->producer;
  if (producer < 0 || plan->graph->nodes[producer].op == &laci_op_dequantize_linear) return false;
  if (v->is_output || laci_plan_is_constant(plan, value)) return false;
  if (!laci_plan_is_float(plan, value) || shape->rank != 4 || shape->dims[0] != batch) return false;
  int n_reads = 0;
  for (int at = 0; at < v->n_readers; at++) {
    const laci_node *reader = &plan->graph->nodes[v->readers[at]];
    if (!plan->computed[v->readers[at]]) continue;
    n_reads++;
    const bool sums = reader->op == &laci_op_add && v->n_readers > 1;
    const bool rounds = reader->op == &laci_op_quantize_linear;
    if (!sums && !rounds && !is_computed_in_own_step(plan, reader)) return false;
  }
  return n_reads > 0;
}

/** Returns the last node that a run computes and that reads the value; -1: none. */
static int find_last_reader(const laci_cpu_plan *plan, int value) {
  const laci_value *v = &plan->graph->values[value];
  for (int at = v->n_readers - 1; at >= 0; at--) {
    if (plan->computed[v->readers[at]]) return v->readers[at];
  }
  return -1;
}

/** Returns an array [n_nodes] with the number of values that are live after each node: computed by
 * then, or inputs, and still to be read by later nodes or the caller. NULL: no memory, which is
 * recorded in the plan. */
static int *count_live_values(laci_cpu_plan *plan) {
  const laci_graph *graph = plan->graph;
  int *live = laci_plan_alloc(plan, (size_t)graph->n_nodes, sizeof *live);
  if (!live) return NULL;
  for (int v = 0; v < graph->n_values; v++) {
    const laci_value *value = &graph->values[v];
    if (laci_plan_is_constant(plan, v) || (value->producer < 0 && !value->is_input)) continue;
    if (value->producer >= 0 && !plan->computed[value->producer]) continue;
    const int first = value->producer < 0 ? 0 : value->producer;
    const int last = find_last_reader(plan, v);
    if (!value->is_output && last <= first && value->producer >= 0) continue;
    live[first]++;
    if (!value->is_output && last >= 0) live[last]--;
  }
  for (int n = 1; n < graph->n_nodes; n++) live[n] += live[n - 1];
  return live;
}

/* ---- The best cut ---- */

typedef struct cut_search {
  laci_cpu_plan *plan;
  const laci_stage_rule *rule;
  int64_t batch;
  int n_micro;
  int64_t micro[MOST_MICRO_BATCHES];
  double gain[MOST_MICRO_BATCHES]; /* seconds gained in all nodes so far, for each size of
                                      micro-batches */
  double whole;                    /* seconds of the network in one stage */
  double best;
  laci_stage_cut cut;
} cut_search;

/** Adds, to the time of the whole network, that of a node which must run for the whole batch. */
static void add_unsplit_node_time(cut_search *s, const laci_node *node) {
  if (node->n_inputs < 2 || node->inputs[0] < 0 || node->inputs[1] < 0) return;
  if (node->n_outputs < 1 || node->outputs[0] < 0) return;
  const laci_shape *y = laci_plan_shape(s->plan, node->outputs[0]);
  s->whole += (double)laci_engine_node_flops(node, laci_plan_shape(s->plan, node->inputs[0]),
                                             laci_plan_shape(s->plan, node->inputs[1]), y) /
              s->rule->flops;
}

static void add_node_time(cut_search *s, const laci_node *node) {
  const node_work w = estimate_node_work(s->plan, node);
  const double before = estimate_node_seconds(s->rule, &w, s->batch);
  s->whole += before;
  for (int at = 0; at < s->n_micro; at++) {
    const double micro_batches = (double)(s->batch / s->micro[at]);
    const double calls = w.runs ? (micro_batches - 1) * s->rule->step_seconds : 0;
    s->gain[at] +=
        before - micro_batches * estimate_node_seconds(s->rule, &w, s->micro[at]) - calls;
  }
}

static void record_cut_if_faster(cut_search *s, int value) {
  const double there_and_back = 2 * value_bytes_per_image(s->plan, value) * (double)s->batch;
  for (int at = 0; at < s->n_micro; at++) {
    const double gain = s->gain[at] - there_and_back / s->rule->memory;
    if (gain <= s->best) continue;
    s->best = gain;
    s->cut = (laci_stage_cut){.value = value, .micro_batch = s->micro[at]};
  }
}

static void search_cuts(cut_search *s, const int *live) {
  const laci_graph *graph = s->plan->graph;
  bool all = true; /* every node so far computes each image by itself */
  for (int n = 0; n < graph->n_nodes; n++) {
    const laci_node *node = &graph->nodes[n];
    if (!s->plan->computed[n]) continue;
    all = all && laci_node_is_per_image(s->plan, node, s->batch);
    if (all) add_node_time(s, node);
    else add_unsplit_node_time(s, node);
    if (all && live[n] == 1 && is_good_cut(s->plan, node->outputs[0], s->batch)) {
      record_cut_if_faster(s, node->outputs[0]);
    }
  }
}

bool laci_stage_find_cut(laci_cpu_plan *plan, const laci_stage_rule *rule, laci_stage_cut *cut) {
  const laci_graph *graph = plan->graph;
  if (graph->n_inputs != 1 || graph->n_bodies > 0 || plan->status) return false;
  const laci_shape *input = laci_plan_shape(plan, graph->inputs[0]);
  if (input->rank != 4 || input->dims[0] < 2) return false;
  cut_search s = {.plan = plan, .rule = rule, .batch = input->dims[0]};
  for (int64_t n = 1; n < s.batch && s.n_micro < MOST_MICRO_BATCHES; n *= 2) {
    if (s.batch % n == 0) s.micro[s.n_micro++] = n;
  }
  laci_plan_find_computed_nodes(plan);
  const int *live = count_live_values(plan);
  if (live) search_cuts(&s, live);
  *cut = s.cut;
  return s.best > 0 && s.best >= rule->least_gain * s.whole;
}
