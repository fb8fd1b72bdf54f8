/* SPDX-License-Identifier: Apache-2.0
 * Runs a network on a plug-in's engine: copies ports to its device and back, shows observed values,
 * and checks that the engine runs the steps that it announced. */
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "engine/plugin/plugin_in.h"

/* ---- Copies ---- */

static lac_status copy_to_or_from_device(const laci_plugin_plan *p, bool to_device, void *to,
                                         const void *from, size_t n, lac_error *err) {
  const lac_engine_plugin *engine = &p->row->engine;
  const lac_engine_device *device = engine->device;
  lac_error given = {0};
  if (n == 0) return LAC_OK;
  lac_status st = to_device ? device->to_device(engine->context, to, from, n, &given)
                            : device->to_host(engine->context, to, from, n, &given);
  given.text[sizeof given.text - 1] = 0;
  return laci_plugin_check_status(p->row, to_device ? "to copy to its device" : "to copy from it",
                                  st, &given, err);
}

static lac_status set_input_addresses(laci_plugin_plan *p, const void *const *inputs,
                                      lac_error *err) {
  lac_status st = LAC_OK;
  for (int at = 0; at < p->own.graph.n_inputs && !st; at++) {
    const laci_plugin_buffer *buffer = &p->inputs[at];
    p->in[at] = buffer->device ? buffer->device : inputs[at];
    if (buffer->device)
      st =
          copy_to_or_from_device(p, true, buffer->device, inputs[at], buffer->port.size_bytes, err);
  }
  return st;
}

static void set_output_addresses(laci_plugin_plan *p, void *const *outputs) {
  for (int at = 0; at < p->n_results; at++) {
    const laci_plugin_buffer *buffer = &p->results[at];
    p->out[at] = buffer->device ? buffer->device
                 : buffer->host ? buffer->host
                                : outputs[buffer->at];
  }
}

/* Copies output `at` of the network from the engine to the caller's buffer. */
static lac_status fetch_output(const laci_plugin_plan *p, const void *const *inputs,
                               void *const *outputs, int at, lac_error *err) {
  const laci_graph *graph = &p->own.graph;
  const size_t n = p->output_ports[at].size_bytes;
  const int value = graph->outputs[at], k = p->results_of[at];
  if (k >= 0) {
    const laci_plugin_buffer *result = &p->results[k];
    if (result->device)
      return copy_to_or_from_device(p, false, outputs[at], result->device, n, err);
    if (outputs[at] != p->out[k]) memmove(outputs[at], p->out[k], n);
    return LAC_OK;
  }
  if (graph->values[value].stored >= 0) return laci_plugin_read_stored(p, value, outputs[at], err);
  for (int in = 0; in < graph->n_inputs; in++) {
    if (graph->inputs[in] == value) memmove(outputs[at], inputs[in], n);
  }
  return LAC_OK;
}

/* Copies all outputs from the engine to the caller's buffers. Those that are inputs of the network
 * come first, since a later output may be written to the buffer of an input. */
static lac_status fetch_outputs(const laci_plugin_plan *p, const void *const *inputs,
                                void *const *outputs, lac_error *err) {
  lac_status st = LAC_OK;
  for (int computed = 0; computed <= 1; computed++) {
    for (int at = 0; at < p->own.graph.n_outputs && !st; at++) {
      if ((p->results_of[at] >= 0) == (computed == 1))
        st = fetch_output(p, inputs, outputs, at, err);
    }
  }
  return st;
}

/* ---- Observed values ---- */

static lac_status show_to_observer(laci_plugin_plan *p, int value, const void *content,
                                   lac_error *err) {
  laci_plugin_seen *seen = &p->seen[p->seen_at[value]];
  seen->is_done = true;
  return p->on_value(p->on_value_context, value, &seen->port, content, err);
}

static lac_status show_stored_and_inputs(laci_plugin_plan *p, const void *const *inputs,
                                         lac_error *err) {
  const laci_graph *graph = &p->own.graph;
  lac_status st = LAC_OK;
  for (int at = 0; at < p->n_seen; at++) p->seen[at].is_done = false;
  for (int at = 0; at < p->n_seen && !st; at++) {
    if (graph->values[p->seen[at].value].stored < 0) continue;
    st = laci_plugin_read_stored(p, p->seen[at].value, p->scratch, err);
    if (!st) st = show_to_observer(p, p->seen[at].value, p->scratch, err);
  }
  for (int at = 0; at < graph->n_inputs && !st; at++) {
    if (p->n_seen > 0 && p->seen_at[graph->inputs[at]] >= 0) {
      st = show_to_observer(p, graph->inputs[at], inputs[at], err);
    }
  }
  return st;
}

/* Shows a result that the engine computed as an output. */
static lac_status show_computed_result(laci_plugin_plan *p, int value, void *const *outputs,
                                       lac_error *err) {
  const laci_plugin_buffer *result = NULL;
  for (int at = 0; at < p->n_results && !result; at++) {
    if (p->results[at].value == value) result = &p->results[at];
  }
  if (!result) {
    return laci_fail(err, LAC_BAD_FILE, "the engine %s did not show '%s'", p->row->name,
                     p->own.graph.values[value].name);
  }
  const void *content = result->at >= 0 ? outputs[result->at] : result->host;
  lac_status st = LAC_OK;
  if (result->device && result->at < 0)
    st = copy_to_or_from_device(p, false, result->host, result->device, result->port.size_bytes,
                                err);
  return st ? st : show_to_observer(p, value, content, err);
}

/* Shows the observed values in the order of the nodes, like engines that show values while they
 * run. */
static lac_status show_results(laci_plugin_plan *p, void *const *outputs, lac_error *err) {
  const laci_graph *graph = &p->own.graph;
  lac_status st = LAC_OK;
  for (int n = 0; p->n_seen > 0 && n < graph->n_nodes; n++) {
    const laci_node *node = &graph->nodes[n];
    for (int at = 0; at < node->n_outputs && !st; at++) {
      int value = node->outputs[at];
      bool wanted = value >= 0 && p->seen_at[value] >= 0 && !p->seen[p->seen_at[value]].is_done;
      if (wanted) st = show_computed_result(p, value, outputs, err);
    }
  }
  return st;
}

/* ---- Functions that the plug-in calls during a run ---- */

/* Records the first failure of the run, which then fails even if the plug-in ignores it. */
static lac_status record_failure(laci_plugin_plan *p, lac_status st, lac_error *err) {
  if (st && !p->ended) p->ended = st;
  if (st && err) *err = p->why_ended;
  return st;
}

static lac_status receive_observed_value(void *self, int value, const void *content,
                                         lac_error *err) {
  laci_plugin_plan *p = self;
  bool known = p->n_seen > 0 && value >= 0 && value < p->own.graph.n_values &&
               p->seen_at[value] >= 0 && content;
  if (p->ended) return record_failure(p, p->ended, err);
  if (!known) {
    return record_failure(
        p,
        laci_fail(&p->why_ended, LAC_BAD_FILE,
                  "the engine %s shows value %d, which is not observed", p->row->name, value),
        err);
  }
  lac_status st = LAC_OK;
  if (p->row->engine.device) {
    st = copy_to_or_from_device(p, false, p->scratch, content,
                                p->seen[p->seen_at[value]].port.size_bytes, &p->why_ended);
    content = p->scratch;
  }
  return record_failure(p, st ? st : show_to_observer(p, value, content, &p->why_ended), err);
}

static lac_status record_step_end(laci_plugin_plan *p, double seconds, lac_error *err) {
  const laci_engine_watch *watch = p->watch;
  const size_t step = p->next_step++;
  if (!watch) return LAC_OK;
  const double begin = laci_clock_seconds() - (seconds > 0 ? seconds : 0);
  if (watch->begins) watch->begins[step] = begin;
  return laci_engine_end_step(watch, step, begin, err);
}

static lac_status receive_step_end(void *self, int step, double seconds, lac_error *err) {
  laci_plugin_plan *p = self;
  if (p->ended) return record_failure(p, p->ended, err);
  if (!p->row->engine.step_count) return LAC_OK;
  if (step < 0 || (size_t)step != p->next_step || p->next_step >= p->n_steps) {
    return record_failure(p,
                          laci_fail(&p->why_ended, LAC_BAD_FILE,
                                    "the engine %s ended step %d where step %zu of %zu was next",
                                    p->row->name, step, p->next_step, p->n_steps),
                          err);
  }
  return record_failure(p, record_step_end(p, seconds, &p->why_ended), err);
}

static bool is_interrupted(void *self) {
  const laci_plugin_plan *p = self;
  return laci_engine_is_interrupted(p->watch);
}

/* ---- A run ---- */

static lac_status call_engine(laci_plugin_plan *p, lac_error *err) {
  const lac_engine_plugin *engine = &p->row->engine;
  const lac_engine_call call = {.size = sizeof call,
                                .self = p,
                                .inputs = p->in,
                                .outputs = p->out,
                                .see = receive_observed_value,
                                .step_done = receive_step_end,
                                .is_interrupted = is_interrupted};
  lac_error given = {0};
  lac_status st;
  if (engine->start) {
    st = engine->start(p->self, &call, &given);
    if (!st) st = engine->wait(p->self, &given);
  } else {
    st = engine->run(p->self, &call, &given);
  }
  given.text[sizeof given.text - 1] = 0;
  if (p->ended) return laci_fail(err, p->ended, "%s", p->why_ended.text);
  return laci_plugin_check_status(p->row, "to run", st, &given, err);
}

static lac_status run_steps(laci_plugin_plan *p, lac_error *err) {
  const double begin = laci_clock_seconds();
  p->next_step = 0;
  p->ended = LAC_OK;
  p->why_ended = (lac_error){.status = LAC_OK};
  lac_status st = call_engine(p, err);
  if (st) return st;
  if (!p->row->engine.step_count) return record_step_end(p, laci_clock_seconds() - begin, err);
  if (p->next_step == p->n_steps) return LAC_OK;
  return laci_fail(err, LAC_BAD_FILE, "the engine %s ended a run after step %zu of %zu",
                   p->row->name, p->next_step, p->n_steps);
}

lac_status laci_plugin_run(void *self, const void *const *inputs, void *const *outputs,
                           const laci_engine_watch *watch, lac_error *err) {
  laci_plugin_plan *p = self;
  p->watch = watch;
  if (laci_engine_is_interrupted(watch)) return laci_fail(err, LAC_INTERRUPTED, "interrupted");
  lac_status st = show_stored_and_inputs(p, inputs, err);
  if (!st) st = set_input_addresses(p, inputs, err);
  if (st) return st;
  set_output_addresses(p, outputs);
  st = run_steps(p, err);
  if (!st) st = fetch_outputs(p, inputs, outputs, err);
  if (!st) st = show_results(p, outputs, err);
  p->watch = NULL;
  return st;
}
