/* SPDX-License-Identifier: Apache-2.0
 * Asks a plug-in's engine for its steps, memory and text: once, when a network is planned. Answers
 * that cannot be true are failures. */
#include <string.h>

#include "base/error.h"
#include "base/plural.h"
#include "cpu/pool.h"
#include "engine/plugin/plugin_in.h"

enum { MOST_STEPS = 1 << 24, LONGEST_TEXT = 1 << 24 };

/* ---- Steps ---- */

static int64_t sum_value_bytes(const laci_plugin_plan *p, const int *values, int n) {
  int64_t sum = 0;
  for (int at = 0; at < n; at++) {
    int64_t count = values[at] >= 0 ? laci_shape_count(&p->types[values[at]].shape) : 0;
    bool is_float = values[at] >= 0 && lac_dtype_size(p->types[values[at]].dtype) > 0;
    if (count > 0 && is_float) sum += count * (int64_t)sizeof(float);
  }
  return sum;
}

/* Fills the fields of the step that the plug-in left at 0, from the step's node. */
static void fill_missing_step_info(const laci_plugin_plan *p, const laci_node *node,
                                   laci_engine_step *step) {
  const laci_type *types = p->types;
  bool product = node->n_inputs > 1 && node->n_outputs > 0 && node->inputs[0] >= 0 &&
                 node->inputs[1] >= 0 && node->outputs[0] >= 0;
  if (!step->flops && product) {
    step->flops =
        laci_engine_node_flops(node, &types[node->inputs[0]].shape, &types[node->inputs[1]].shape,
                               &types[node->outputs[0]].shape);
  }
  if (!step->bytes_read) step->bytes_read = sum_value_bytes(p, node->inputs, node->n_inputs);
  if (!step->bytes_written)
    step->bytes_written = sum_value_bytes(p, node->outputs, node->n_outputs);
}

static lac_status read_plugin_step(laci_plugin_plan *p, int at, const lac_engine_step *info,
                                   lac_error *err) {
  laci_engine_step *step = &p->steps[at];
  const laci_graph *graph = &p->own.graph;
  if (!info->what || !info->kernel) {
    return laci_fail(err, LAC_BAD_FILE, "the engine %s: step %d does not say what it computes",
                     p->row->name, at);
  }
  if (info->node < -1 || info->node >= graph->n_nodes || info->flops < 0 || info->bytes_read < 0 ||
      info->bytes_written < 0) {
    return laci_fail(err, LAC_BAD_FILE,
                     "the engine %s: step %d is of node %d of %d, with %lld operations, %lld bytes "
                     "read and %lld written",
                     p->row->name, at, info->node, graph->n_nodes, (long long)info->flops,
                     (long long)info->bytes_read, (long long)info->bytes_written);
  }
  const laci_node *node = info->node >= 0 ? &graph->nodes[info->node] : NULL;
  *step = (laci_engine_step){.name = node ? node->name : NULL,
                             .what = laci_arena_text(&p->view.arena, info->what),
                             .kernel = laci_arena_text(&p->view.arena, info->kernel),
                             .plain = node && p->reasons[info->node] != NULL,
                             .exact = node && p->reasons[info->node] != NULL,
                             .sparse = info->is_sparse,
                             .flops = info->flops,
                             .bytes_read = info->bytes_read,
                             .bytes_written = info->bytes_written};
  step->op = node ? node->type : step->what;
  if (node) fill_missing_step_info(p, node, step);
  return step->what && step->kernel ? LAC_OK : laci_fail_memory(err, "the engine's steps");
}

/* Reads the steps that the plug-in lists. One without a list has one step, the whole network. */
static lac_status read_plugin_steps(laci_plugin_plan *p, lac_error *err) {
  const lac_engine_plugin *engine = &p->row->engine;
  int n = engine->step_count ? engine->step_count(p->self) : 1;
  if (n < 0 || n > MOST_STEPS) {
    return laci_fail(err, LAC_BAD_FILE, "the engine %s says that it has %d steps", p->row->name, n);
  }
  p->n_steps = (size_t)n;
  p->steps = laci_alloc(p->n_steps, sizeof *p->steps);
  if (!p->steps) return laci_fail_memory(err, "the engine's steps");
  lac_status st = LAC_OK;
  for (int at = 0; at < n && !st; at++) {
    lac_engine_step info = {.size = sizeof info, .node = -1};
    if (engine->step_count) engine->step_info(p->self, at, &info);
    else info.what = "network", info.kernel = p->row->name;
    st = read_plugin_step(p, at, &info, err);
  }
  return st;
}

/* ---- Text ---- */

/* Writes the plan's text to `to`; with NULL it only returns the length. */
static size_t write_plan_text(const laci_plugin_plan *p, char *to, size_t capacity) {
  const int threads = laci_pool_threads(p->pool);
  size_t used = laci_engine_format_text(to, capacity, "step  %-28s %-26s node\n", "what", "kernel");
  for (size_t at = 0; at < p->n_steps; at++) {
    const laci_engine_step *step = &p->steps[at];
    used +=
        laci_engine_format_text(to ? to + used : NULL, capacity - used, "%4zu  %-28s %-26s %s\n",
                                at, step->what, step->kernel, step->name ? step->name : "");
  }
  if (p->row->engine.device) {
    used += laci_engine_format_text(to ? to + used : NULL, capacity - used, "%s: %.1f MB\n",
                                    p->row->engine.device->name, (double)p->device_bytes / 1e6);
  }
  return used + laci_engine_format_text(to ? to + used : NULL, capacity - used,
                                        "%zu step%s by the engine %s; %s, %d thread%s\n",
                                        p->n_steps, laci_plural((int64_t)p->n_steps), p->row->name,
                                        lac_dtype_name(p->request.dtype), threads,
                                        laci_plural(threads));
}

static lac_status read_plugin_text(laci_plugin_plan *p, lac_error *err) {
  const char *theirs = p->row->engine.text ? p->row->engine.text(p->self) : NULL;
  size_t n = theirs ? strnlen(theirs, LONGEST_TEXT) : write_plan_text(p, NULL, 0);
  p->text = laci_alloc(n + 1, 1);
  if (!p->text) return laci_fail_memory(err, "the plan's text");
  if (theirs) memcpy(p->text, theirs, n);
  else (void)write_plan_text(p, p->text, n + 1);
  return LAC_OK;
}

lac_status laci_plugin_describe(laci_plugin_plan *p, lac_error *err) {
  lac_engine_held held = {.size = sizeof held};
  lac_status st = read_plugin_steps(p, err);
  if (st) return st;
  held.value_bytes = p->counted_bytes;
  if (p->row->engine.memory) p->row->engine.memory(p->self, &held);
  p->memory.arena_bytes += held.value_bytes;
  p->memory.weight_bytes = p->own.size_bytes + held.weight_bytes;
  p->device_bytes += held.device_bytes;
  return read_plugin_text(p, err);
}
