/* SPDX-License-Identifier: Apache-2.0
 * A run of the automatic engine: its parts one after the other. Fast parts read and write buffers
 * of floats and 64-bit integers; exact parts read and write doubles and integers in the stepper. A
 * value that goes from one kind of part to the other is converted. */
#include <string.h>

#include "base/error.h"
#include "engine/auto/choice.h"
#include "engine/auto/run_in.h"
#include "engine/stepper.h"
#include "graph/graph.h"
#include "tensor/buf.h"

/** A watch of a part's engine that reports its steps to the caller's watch `to`, counted from
 * `first` on among the steps of all parts. */
typedef struct shifted_watch {
  const laci_engine_watch *to;
  size_t first;
} shifted_watch;

static lac_status call_watch_between_steps(void *context, size_t step, lac_error *err) {
  const shifted_watch *s = context;
  return s->to->after_step(s->to->context, s->first + step, err);
}

/* ---- Conversion between buffers and the stepper ---- */

/* Copies a value of floats or integers from its buffer into the stepper (the exact engine), for
 * exact nodes. */
static lac_status copy_to_stepper(laci_auto *a, int value, const laci_engine_port *port,
                                  lac_error *err) {
  laci_buf *buf = NULL;
  lac_status st = laci_engine_port_load(port, a->cut.types[value].dtype, a->at[value], &buf, err);
  if (!st) laci_stepper_set_value(a->stepper, value, buf);
  return st;
}

lac_status laci_auto_copy_from_stepper(laci_auto *a, int value, const laci_engine_port *port,
                                       void *bytes, lac_error *err) {
  const laci_buf *buf = laci_stepper_value(a->stepper, value);
  char want[128], found[128];
  if (!buf) {
    return laci_fail(err, LAC_UNSUPPORTED, "%s: this value could not be computed", port->name);
  }
  if (!laci_shape_equal(&buf->shape, &port->type.shape)) {
    return laci_fail(err, LAC_BAD_SHAPE, "%s: its shape is %s, and the plan is for %s", port->name,
                     laci_shape_text(&buf->shape, found, sizeof found),
                     laci_shape_text(&port->type.shape, want, sizeof want));
  }
  return laci_engine_port_store(port, buf, bytes, err);
}

bool laci_auto_is_in_buffer(const laci_auto *a, int value) {
  const int producer = a->graph->values[value].producer;
  return producer >= 0 && (a->cut.fast[producer] || a->buffered[value]);
}

/* ---- Parts ---- */

lac_status laci_auto_run_engine(laci_auto *a, const laci_auto_part *part,
                                const laci_engine_watch *watch, lac_error *err) {
  shifted_watch to = {.to = watch, .first = part->first_step};
  laci_engine_watch own = watch ? *watch : (laci_engine_watch){0};
  if (own.begins) own.begins += part->first_step;
  if (own.seconds) own.seconds += part->first_step;
  if (own.after_step) {
    own.after_step = call_watch_between_steps;
    own.context = &to;
  }
  lac_status st = LAC_OK;
  for (int at = 0; at < part->n_inputs && !st; at++) {
    int value = part->inputs[at];
    const bool exact = a->graph->values[value].producer >= 0 && !laci_auto_is_in_buffer(a, value);
    if (exact)
      st = laci_auto_copy_from_stepper(a, value, &part->input_ports[at], a->at[value], err);
    part->in[at] = a->at[value];
  }
  if (st) return st;
  return laci_engine_run_watched(part->engine, part->in, part->out, watch ? &own : NULL, err);
}

static lac_status run_fast_part(laci_auto *a, const laci_auto_part *part,
                                const laci_engine_watch *watch, lac_error *err) {
  for (int at = 0; at < part->n_outputs; at++) part->out[at] = a->at[part->outputs[at]];
  lac_status st = laci_auto_run_engine(a, part, watch, err);
  for (int at = 0; at < part->n_outputs && !st; at++) {
    int value = part->outputs[at];
    if (a->in_stepper[value]) st = copy_to_stepper(a, value, &part->output_ports[at], err);
  }
  return st;
}

lac_status laci_auto_run_exact_step(laci_auto *a, int node, size_t step,
                                    const laci_engine_watch *watch, lac_error *err) {
  if (laci_engine_is_interrupted(watch)) return laci_fail(err, LAC_INTERRUPTED, "interrupted");
  const double begin = laci_engine_begin_step(watch, step);
  lac_status st = laci_stepper_step(a->stepper, node, err);
  return st ? st : laci_engine_end_step(watch, step, begin, err);
}

static lac_status run_exact_part(laci_auto *a, const laci_auto_part *part,
                                 const laci_engine_watch *watch, lac_error *err) {
  lac_status st = LAC_OK;
  for (size_t at = 0; at < part->n_nodes && !st; at++)
    st = laci_auto_run_exact_step(a, part->nodes[at], part->first_step + at, watch, err);
  return st;
}

/* ---- A run ---- */

/* Prepares the buffers of a run. A value that is an output of the network is computed in the
 * caller's buffer; an output that is listed twice is copied at the end. */
static lac_status prepare_run_buffers(laci_auto *a, const void *const *inputs, void *const *outputs,
                                      lac_error *err) {
  const laci_graph *graph = a->graph;
  a->budget_with_stepper = a->budget;
  laci_stepper_destroy(a->stepper);
  a->stepper = NULL;
  const laci_stepper_options o = {.engine = LACI_ENGINE_EXACT,
                                  .pool = a->pool,
                                  .single = true,
                                  .budget = &a->budget_with_stepper};
  lac_status st = laci_stepper_create(&a->own.graph, &o, &a->stepper, err);
  for (int at = graph->n_outputs - 1; at >= 0 && !st; at--) {
    int value = graph->outputs[at];
    if (!a->outputs[at].open && !a->ours[value]) a->at[value] = outputs[at];
  }
  for (int at = 0; at < graph->n_inputs && !st; at++) {
    int value = graph->inputs[at];
    a->at[value] = (void *)(uintptr_t)inputs[at];
    if (a->in_stepper[value]) st = copy_to_stepper(a, value, &a->inputs[at], err);
  }
  return st;
}

static lac_status run_part(laci_auto *a, const laci_auto_part *part, const laci_engine_watch *watch,
                           lac_error *err) {
  if (part->choice) return laci_auto_run_choice(a, part, watch, err);
  return part->engine ? run_fast_part(a, part, watch, err) : run_exact_part(a, part, watch, err);
}

static lac_status copy_run_outputs(laci_auto *a, void *const *outputs, lac_error *err) {
  const laci_graph *graph = a->graph;
  lac_status st = LAC_OK;
  for (int at = 0; at < graph->n_outputs && !st; at++) {
    const laci_engine_port *port = &a->outputs[at];
    const int value = graph->outputs[at];
    const bool fast = laci_auto_is_in_buffer(a, value);
    if (fast && outputs[at] != a->at[value]) memcpy(outputs[at], a->at[value], port->size_bytes);
    if (!fast && port->open && !laci_stepper_value(a->stepper, value)) {
      st = laci_fail(err, LAC_UNSUPPORTED, "output '%s' could not be computed", port->name);
    }
    if (!fast && !port->open) st = laci_auto_copy_from_stepper(a, value, port, outputs[at], err);
  }
  return st;
}

lac_status laci_auto_run(void *self, const void *const *inputs, void *const *outputs,
                         const laci_engine_watch *watch, lac_error *err) {
  laci_auto *a = self;
  if (a->whole) return laci_engine_run_watched(a->whole, inputs, outputs, watch, err);
  lac_status st = prepare_run_buffers(a, inputs, outputs, err);
  for (int at = 0; at < a->n_parts && !st; at++) { st = run_part(a, &a->parts[at], watch, err); }
  return st ? st : copy_run_outputs(a, outputs, err);
}
