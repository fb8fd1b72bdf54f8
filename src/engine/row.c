/* SPDX-License-Identifier: Apache-2.0
 * What all engines share: ports, checks of nodes, operation counts, and watching a run. */
#include "engine/row.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/budget.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/error.h"
#include "base/memory.h"
#include "graph/op.h"
#include "graph/sizes.h"
#include "tensor/buf.h"

/* ---- A run that is watched ---- */

bool laci_engine_is_interrupted(const laci_engine_watch *watch) {
  return !(watch && watch->ignores_interrupt) && laci_interrupted();
}

double laci_engine_begin_step(const laci_engine_watch *watch, size_t step) {
  if (!watch || !(watch->begins || watch->seconds)) return 0;
  const double begin = laci_clock_seconds();
  if (watch->begins) watch->begins[step] = begin;
  return begin;
}

lac_status laci_engine_end_step(const laci_engine_watch *watch, size_t step, double begin,
                                lac_error *err) {
  if (!watch) return LAC_OK;
  if (watch->seconds) watch->seconds[step] = laci_clock_seconds() - begin;
  return watch->after_step ? watch->after_step(watch->context, step, err) : LAC_OK;
}

/* ---- Ports ---- */

lac_status laci_engine_port_init(const laci_graph *graph, int value, const laci_type *type,
                                 laci_engine_port *port, lac_error *err) {
  bool is_float = laci_dtype_is_float(type->dtype);
  *port = (laci_engine_port){.name = graph->values[value].name, .type = *type};
  if (!is_float && !laci_dtype_is_integer(type->dtype)) {
    return laci_fail(err, LAC_UNSUPPORTED, "%s: elements of type %s", port->name,
                     lac_dtype_name(type->dtype));
  }
  if (!laci_shape_is_known(&type->shape)) {
    return laci_fail(err, LAC_UNSUPPORTED, "%s: its shape is not known", port->name);
  }
  port->type.dtype = is_float ? LAC_DTYPE_F32 : LAC_DTYPE_I64;
  port->size_bytes = (size_t)laci_shape_count(&type->shape) * lac_dtype_size(port->type.dtype);
  return LAC_OK;
}

lac_status laci_engine_check_inputs(const laci_graph *graph, const laci_type *types,
                                    lac_error *err) {
  char text[256];
  for (int at = 0; at < graph->n_inputs; at++) {
    const laci_shape *shape = &types[graph->inputs[at]].shape;
    if (laci_shape_is_known(shape)) continue;
    return laci_fail(err, LAC_BAD_SHAPE, "input '%s' has shape %s: every size must be given",
                     graph->values[graph->inputs[at]].name,
                     laci_shape_text(shape, text, sizeof text));
  }
  return LAC_OK;
}

void laci_engine_port_add_to_budget(const laci_graph *graph, int value,
                                    const laci_engine_port *port, laci_budget *budget) {
  char text[256];
  laci_value_describe(graph, value, &port->type, text, sizeof text);
  laci_budget_add(budget, port->size_bytes, "%s", text);
}

lac_status laci_engine_port_load(const laci_engine_port *port, lac_dtype dtype, const void *bytes,
                                 laci_buf **buf, lac_error *err) {
  lac_status st = laci_buf_create(dtype, &port->type.shape, buf, err);
  if (st) return laci_fail_with_prefix(err, st, "%s", port->name);
  laci_buf *to = *buf;
  for (int64_t at = 0; at < to->count; at++) {
    if (to->f) to->f[at] = (double)((const float *)bytes)[at];
    else to->i[at] = ((const int64_t *)bytes)[at];
  }
  return LAC_OK;
}

lac_status laci_engine_port_store(const laci_engine_port *port, const laci_buf *buf, void *bytes,
                                  lac_error *err) {
  bool fits = buf && laci_shape_equal(&buf->shape, &port->type.shape) &&
              laci_dtype_is_float(buf->dtype) == (port->type.dtype == LAC_DTYPE_F32);
  if (!fits) {
    return laci_fail(err, LAC_INTERNAL, "%s: %s", port->name,
                     buf ? "computed in another shape or type" : "not computed");
  }
  for (int64_t at = 0; at < buf->count; at++) {
    if (buf->f) ((float *)bytes)[at] = (float)buf->f[at];
    else ((int64_t *)bytes)[at] = buf->i[at];
  }
  return LAC_OK;
}

lac_status laci_engine_observer_check(const laci_graph *graph, const laci_engine_observer *observer,
                                      lac_error *err) {
  if (!observer) return LAC_OK;
  if (!observer->on_value)
    return laci_fail(err, LAC_BAD_ARGUMENT, "an observer without a function");
  for (int at = 0; at < observer->n_values; at++) {
    int value = observer->values[at];
    if (value >= 0 && value < graph->n_values) continue;
    return laci_fail(err, LAC_BAD_ARGUMENT, "value %d is to be observed, and there are %d", value,
                     graph->n_values);
  }
  return LAC_OK;
}

/* ---- Stored tensors ---- */

static size_t round_to_alignment(size_t bytes) {
  enum { LINE = 64 };
  return (bytes + LINE - 1) / LINE * LINE;
}

static bool is_stored_needed(const laci_graph *graph, int stored, const bool *skipped) {
  return graph->stored[stored].value >= 0 && !(skipped && skipped[stored]);
}

/* Copies all stored tensors that are values, one after the other, into own->bytes. */
static lac_status copy_stored_tensors(laci_engine_graph *own, const laci_engine_options *options,
                                      const bool *skipped, laci_budget *budget, lac_error *err) {
  laci_graph *graph = &own->graph;
  for (int s = 0; s < graph->n_stored; s++) {
    if (is_stored_needed(graph, s, skipped))
      own->size_bytes += round_to_alignment(graph->stored[s].size_bytes);
  }
  laci_budget_add(budget, own->size_bytes, "weights");
  lac_status st = laci_budget_check(budget, "the run", err);
  if (st) return st;
  own->bytes = laci_alloc(own->size_bytes, 1);
  if (!own->bytes) return laci_fail_memory(err, "weights");
  uint8_t *to = own->bytes;
  for (int s = 0; s < graph->n_stored && !st; s++) {
    laci_stored *stored = &graph->stored[s];
    if (!is_stored_needed(graph, s, skipped)) continue;
    st = options->fetch(options->fetch_context, stored->bytes, stored->size_bytes, to, err);
    stored->bytes = to;
    to += round_to_alignment(stored->size_bytes);
  }
  return st;
}

lac_status laci_engine_graph_init(laci_engine_graph *own, const laci_graph *graph,
                                  const laci_engine_options *options, const bool *skipped,
                                  laci_budget *budget, lac_error *err) {
  *own = (laci_engine_graph){.graph = *graph};
  own->graph.stored = laci_alloc((size_t)graph->n_stored, sizeof *own->graph.stored);
  if (!own->graph.stored) return laci_fail_memory(err, "the engine");
  for (int s = 0; s < graph->n_stored; s++) own->graph.stored[s] = graph->stored[s];
  return options->fetch ? copy_stored_tensors(own, options, skipped, budget, err) : LAC_OK;
}

void laci_engine_graph_clear(laci_engine_graph *own) {
  laci_free(own->graph.stored);
  laci_free(own->bytes);
  *own = (laci_engine_graph){0};
}

/* ---- Nodes ---- */

int laci_engine_find_node(const laci_graph *graph, const laci_node *node) {
  for (int at = 0; at < node->n_outputs; at++) {
    if (node->outputs[at] >= 0) return graph->values[node->outputs[at]].producer;
  }
  return -1;
}

lac_status laci_engine_check_has_evaluation(const laci_node *node, lac_error *err) {
  if (node->op && node->op->infer && node->op->eval) return LAC_OK;
  if (laci_node_control_flow_role(node)) {
    return laci_fail(err, LAC_UNSUPPORTED,
                     "%s: bodies of If, Loop and Scan can be run by the plain engine only",
                     node->name);
  }
  return laci_fail(err, LAC_UNSUPPORTED, "%s: operator %s%s%s cannot be run", node->name,
                   node->domain, node->domain[0] ? "." : "", node->type);
}

static int64_t last_dimension(const laci_shape *shape) {
  return shape->rank > 0 ? shape->dims[shape->rank - 1] : 1;
}

/* Each element of the result is a sum of as many products as an output channel has weights. */
static int64_t count_convolution_flops(const laci_shape *y, const laci_shape *w) {
  int64_t channels = y->rank > 1 ? y->dims[1] : 0;
  return channels < 1 ? 0 : 2 * laci_shape_count(y) * (laci_shape_count(w) / channels);
}

int64_t laci_engine_node_flops(const laci_node *node, const laci_shape *x, const laci_shape *w,
                               const laci_shape *y) {
  if (laci_node_is(node, "Conv")) return count_convolution_flops(y, w);
  if (laci_node_is(node, "MatMul")) return 2 * laci_shape_count(y) * last_dimension(x);
  if (laci_node_is(node, "Gemm") && x->rank == 2) {
    return 2 * laci_shape_count(y) * x->dims[laci_node_int(node, "transA", 0) ? 0 : 1];
  }
  bool transposed = laci_node_is(node, "ConvTranspose");
  /* in a transposed convolution, each input element is multiplied by all weights of its channel */
  if (transposed && w->rank > 0 && w->dims[0] > 0) {
    return 2 * laci_shape_count(x) * (laci_shape_count(w) / w->dims[0]);
  }
  return 0;
}

/* ---- Texts of plans ---- */

size_t laci_engine_format_text(char *to, size_t capacity, const char *format, ...) {
  va_list args;
  va_start(args, format);
  int n = vsnprintf(to, to ? capacity : 0, format, args);
  va_end(args);
  return n > 0 ? (size_t)n : 0;
}
