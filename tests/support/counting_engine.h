/* SPDX-License-Identifier: Apache-2.0
 * An engine as a third party would write it, with engine/row.h alone. It computes every node by the
 * plain operators, and counts the calls that it gets. It reports its convolutions as sparse unless
 * dense ones are asked for. Register laci_engine_counting. */
#ifndef TESTS_SUPPORT_COUNTING_ENGINE_H
#define TESTS_SUPPORT_COUNTING_ENGINE_H

#include <string.h>

#include "base/budget.h"
#include "base/error.h"
#include "base/memory.h"
#include "engine/row.h"
#include "engine/stepper.h"
#include "graph/infer.h"
#include "graph/op.h"
#include "graph/sizes.h"
#include "tensor/buf.h"

typedef struct counts {
  int created, destroyed, runs, nodes;
  int patterns, masks; /* numbers of patterns and masks that were given when an engine was last
                          created */
} counts;

static counts counting;

typedef struct counting_plan {
  laci_engine_graph own;
  laci_type *types; /* [n_values] the inferred type of each value */
  laci_engine_port *ports[2];
  bool dense_only;
} counting_plan;

static bool counting_supports(const laci_engine_row *row, const laci_graph *graph,
                              const laci_node *node, lac_error *why) {
  (void)row;
  (void)graph;
  return !laci_engine_check_has_evaluation(node, why);
}

static void counting_destroy(void *self) {
  counting_plan *p = self;
  laci_engine_graph_clear(&p->own);
  laci_free(p->types);
  laci_free(p->ports[0]);
  laci_free(p->ports[1]);
  laci_free(p);
  counting.destroyed++;
}

static lac_status counting_ports(counting_plan *p, const int *values, int n,
                                 laci_engine_port **ports, lac_error *err) {
  lac_status st = LAC_OK;
  *ports = laci_alloc((size_t)n, sizeof **ports);
  if (!*ports) return laci_fail_memory(err, "ports");
  for (int at = 0; at < n && !st; at++) {
    st =
        laci_engine_port_init(&p->own.graph, values[at], &p->types[values[at]], &(*ports)[at], err);
  }
  return st;
}

static lac_status counting_create(const laci_engine_row *row, const laci_graph *graph,
                                  const laci_engine_options *options, void **self, lac_error *err) {
  (void)row;
  laci_budget budget = options->budget ? *options->budget : laci_budget_with_limit(UINT64_MAX);
  counting_plan *p = laci_alloc(1, sizeof *p);
  if (!p) return laci_fail_memory(err, "the plan");
  p->dense_only = options->dense_only;
  counting.created++;
  counting.patterns = counting.masks = 0;
  for (int at = 0; at < options->n_weights; at++) {
    counting.patterns += options->weights[at].packing != NULL;
    counting.masks += options->weights[at].mask != NULL;
  }
  lac_status st = laci_engine_graph_init(&p->own, graph, options, NULL, &budget, err);
  for (int n = 0; n < graph->n_nodes && !st; n++) {
    st = laci_engine_check_has_evaluation(&graph->nodes[n], err);
  }
  if (!st)
    st = laci_graph_infer_types(&p->own.graph, options->shapes, options->n_shapes, &p->types, err);
  if (!st) st = counting_ports(p, graph->inputs, graph->n_inputs, &p->ports[0], err);
  if (!st) st = counting_ports(p, graph->outputs, graph->n_outputs, &p->ports[1], err);
  if (st) counting_destroy(p);
  else *self = p;
  return st;
}

static int counting_inputs(const void *self, const laci_engine_port **ports) {
  const counting_plan *p = self;
  *ports = p->ports[0];
  return p->own.graph.n_inputs;
}

static int counting_outputs(const void *self, const laci_engine_port **ports) {
  const counting_plan *p = self;
  *ports = p->ports[1];
  return p->own.graph.n_outputs;
}

static size_t counting_steps(const void *self) {
  const counting_plan *p = self;
  return (size_t)p->own.graph.n_nodes;
}

static laci_engine_step counting_step(const void *self, size_t at) {
  const counting_plan *p = self;
  const laci_node *node = &p->own.graph.nodes[at];
  return (laci_engine_step){.name = node->name,
                            .op = node->type,
                            .what = node->type,
                            .kernel = "counting",
                            .sparse = !p->dense_only && strcmp(node->type, "Conv") == 0};
}

static lac_status counting_walk(counting_plan *p, laci_stepper *walk,
                                const laci_engine_watch *watch, lac_error *err) {
  lac_status st = LAC_OK;
  for (int node = 0; node < p->own.graph.n_nodes && !st; node++) {
    double begin = laci_engine_begin_step(watch, (size_t)node);
    st = laci_stepper_step(walk, node, err);
    if (!st) st = laci_engine_end_step(watch, (size_t)node, begin, err);
    counting.nodes++;
  }
  return st;
}

static lac_status counting_run(void *self, const void *const *in, void *const *out,
                               const laci_engine_watch *watch, lac_error *err) {
  counting_plan *p = self;
  const laci_graph *graph = &p->own.graph;
  laci_stepper *walk = NULL;
  counting.runs++;
  lac_status st = laci_stepper_create(graph, &(laci_stepper_options){0}, &walk, err);
  for (int at = 0; at < graph->n_inputs && !st; at++) {
    laci_buf *buf = NULL;
    lac_dtype dtype = p->types[graph->inputs[at]].dtype;
    st = laci_engine_port_load(&p->ports[0][at], dtype, in[at], &buf, err);
    if (!st) laci_stepper_set_value(walk, graph->inputs[at], buf);
  }
  if (!st) st = counting_walk(p, walk, watch, err);
  for (int at = 0; at < graph->n_outputs && !st; at++) {
    const laci_buf *buf = laci_stepper_value(walk, graph->outputs[at]);
    st = laci_engine_port_store(&p->ports[1][at], buf, out[at], err);
  }
  laci_stepper_destroy(walk);
  return st;
}

static const laci_engine_row laci_engine_counting = {.name = "counting",
                                                     .supports = counting_supports,
                                                     .create = counting_create,
                                                     .destroy = counting_destroy,
                                                     .inputs = counting_inputs,
                                                     .outputs = counting_outputs,
                                                     .run = counting_run,
                                                     .step_count = counting_steps,
                                                     .step_info = counting_step};

#endif
