/* SPDX-License-Identifier: Apache-2.0
 * Functions that a plug-in's engine may call: evaluation of a node by its operator, stored tensors
 * as floats, threads, counting of memory, the log. */
#include <string.h>

#include "base/budget.h"
#include "base/error.h"
#include "base/log.h"
#include "cpu/pool.h"
#include "engine/plugin/plugin_in.h"
#include "graph/op.h"
#include "tensor/buf.h"

/* ---- Values ---- */

static lac_status load_stored(const laci_plugin_plan *p, int value, laci_buf **buf,
                              lac_error *err) {
  const laci_stored *stored = &p->own.graph.stored[p->own.graph.values[value].stored];
  const laci_type type = {stored->dtype, stored->shape};
  return laci_buf_from_bytes(&type, stored->bytes, stored->size_bytes, buf, err);
}

static lac_status describe_value_port(const laci_plugin_plan *p, int value, laci_engine_port *port,
                                      lac_error *err) {
  return laci_engine_port_init(&p->own.graph, value, &p->types[value], port, err);
}

lac_status laci_plugin_read_stored(const laci_plugin_plan *p, int value, void *to, lac_error *err) {
  laci_engine_port port;
  laci_buf *buf = NULL;
  lac_status st = describe_value_port(p, value, &port, err);
  if (!st) st = load_stored(p, value, &buf, err);
  if (!st) st = laci_engine_port_store(&port, buf, to, err);
  laci_buf_destroy(buf);
  return st;
}

static lac_status read_stored(void *self, int value, void *to, lac_error *err) {
  const laci_plugin_plan *p = self;
  const laci_graph *graph = &p->own.graph;
  if (value < 0 || value >= graph->n_values || graph->values[value].stored < 0) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "value %d is no stored tensor", value);
  }
  if (!to) return laci_fail(err, LAC_BAD_ARGUMENT, "%s: no buffer", graph->values[value].name);
  return laci_plugin_read_stored(p, value, to, err);
}

/* ---- A node ---- */

static lac_status load_operand(const laci_plugin_plan *p, int value, const void *content,
                               laci_buf **buf, lac_error *err) {
  laci_engine_port port;
  if (!content && p->own.graph.values[value].stored >= 0) return load_stored(p, value, buf, err);
  if (!content) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "%s: its buffer is NULL",
                     p->own.graph.values[value].name);
  }
  lac_status st = describe_value_port(p, value, &port, err);
  return st ? st : laci_engine_port_load(&port, p->types[value].dtype, content, buf, err);
}

static lac_status store_output(const laci_plugin_plan *p, int value, const laci_buf *buf,
                               void *content, lac_error *err) {
  laci_engine_port port;
  if (!content) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "%s: its buffer is NULL",
                     p->own.graph.values[value].name);
  }
  lac_status st = describe_value_port(p, value, &port, err);
  return st ? st : laci_engine_port_store(&port, buf, content, err);
}

static void run_parallel(void *pool, int64_t n, laci_range_body *body, void *context) {
  int64_t grain = n / (8 * (int64_t)laci_pool_threads(pool));
  laci_pool_for(pool, n, grain > 1 ? grain : 1, body, context);
}

/* A node that is evaluated: its operands in double. */
typedef struct evaluation {
  const laci_node *node;
  laci_buf **in, **out;
} evaluation;

static lac_status evaluate_operator(laci_plugin_plan *p, const evaluation *e, lac_error *err) {
  const laci_node *node = e->node;
  laci_eval eval = {.node = node,
                    .n_in = node->n_inputs,
                    .n_out = node->n_outputs,
                    .in = (const laci_buf *const *)e->in,
                    .out = e->out,
                    .parallel = run_parallel,
                    .pool = p->pool,
                    .err = err};
  lac_status st = node->op->eval(&eval);
  if (!st) laci_eval_round_outputs_to_types(&eval, true);
  return st;
}

static lac_status load_operands(const laci_plugin_plan *p, const evaluation *e,
                                const void *const *inputs, lac_error *err) {
  const laci_node *node = e->node;
  lac_status st = LAC_OK;
  for (int at = 0; at < node->n_inputs && !st; at++) {
    if (node->inputs[at] < 0) continue;
    st = load_operand(p, node->inputs[at], inputs ? inputs[at] : NULL, &e->in[at], err);
  }
  for (int at = 0; at < node->n_outputs && !st; at++) {
    if (node->outputs[at] < 0) continue;
    const laci_type *type = &p->types[node->outputs[at]];
    st = laci_buf_create(type->dtype, &type->shape, &e->out[at], err);
  }
  return st;
}

static lac_status store_results(const laci_plugin_plan *p, const evaluation *e,
                                void *const *outputs, lac_error *err) {
  lac_status st = LAC_OK;
  for (int at = 0; at < e->node->n_outputs && !st; at++) {
    if (!e->out[at]) continue;
    st = store_output(p, e->node->outputs[at], e->out[at], outputs ? outputs[at] : NULL, err);
  }
  return st;
}

static void free_bufs(laci_buf **bufs, int n) {
  for (int at = 0; bufs && at < n; at++) laci_buf_destroy(bufs[at]);
  laci_free((void *)bufs);
}

static lac_status evaluate_node(void *self, int number, const void *const *inputs,
                                void *const *outputs, lac_error *err) {
  laci_plugin_plan *p = self;
  if (number < 0 || number >= p->own.graph.n_nodes) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "node %d, and there are %d", number,
                     p->own.graph.n_nodes);
  }
  const laci_node *node = &p->own.graph.nodes[number];
  lac_status st = laci_engine_check_has_evaluation(node, err);
  if (st) return st;
  const evaluation e = {.node = node,
                        .in = laci_alloc((size_t)node->n_inputs, sizeof *e.in),
                        .out = laci_alloc((size_t)node->n_outputs, sizeof *e.out)};
  if (!e.in || !e.out) st = laci_fail_memory(err, node->name);
  if (!st) st = load_operands(p, &e, inputs, err);
  if (!st) st = evaluate_operator(p, &e, err);
  if (!st) st = store_results(p, &e, outputs, err);
  free_bufs(e.in, node->n_inputs);
  free_bufs(e.out, node->n_outputs);
  return st;
}

/* ---- Memory, threads, the log ---- */

static lac_status count_plugin_memory(void *self, uint64_t bytes, const char *what,
                                      lac_error *err) {
  laci_plugin_plan *p = self;
  if (!p->budget) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "memory is counted while the network is planned");
  }
  p->counted_bytes += bytes;
  laci_budget_add(p->budget, bytes, "%s", what ? what : p->row->name);
  return laci_budget_check(p->budget, "the run", err);
}

/** A function of the plug-in that is called for each part of its work. */
typedef struct parts {
  lac_part *part;
  void *arg;
} parts;

static void run_parts_of_plugin(int64_t begin, int64_t end, void *context) {
  const parts *work = context;
  for (int64_t at = begin; at < end; at++) work->part(work->arg, (int)at);
}

static void run_in_parallel(void *self, lac_part *part, void *arg, int n) {
  const laci_plugin_plan *p = self;
  parts work = {part, arg};
  if (part && n > 0) laci_pool_for(p->pool, n, 1, run_parts_of_plugin, &work);
}

static void log_line(void *self, lac_log_level level, const char *line) {
  const laci_plugin_plan *p = self;
  if (!line) return;
  lac_context *before = laci_context_begin_call(p->context);
  laci_log(level, "%s: %s", p->row->name, line);
  (void)laci_context_enter(before);
}

void laci_plugin_host_init(laci_plugin_plan *p) {
  p->context = laci_context_entered_by_thread();
  p->host = (lac_engine_host){.size = sizeof p->host,
                              .self = p,
                              .evaluate = evaluate_node,
                              .read_stored = read_stored,
                              .count_memory = count_plugin_memory,
                              .parallel = run_in_parallel,
                              .log = log_line};
}
