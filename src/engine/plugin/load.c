/* SPDX-License-Identifier: Apache-2.0
 * Loads a plug-in and adds its engine to the list. A plug-in is never unloaded: engines, and
 * threads that it started, may use its code until the process ends. */
#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/ending.h"
#include "base/error.h"
#include "base/plugin.h"
#include "cpu/pool.h"
#include "engine/plugin/plugin_in.h"

enum { MOST_DTYPES = 64, MOST_LOADED = 32 };

static struct {
  void *handle;
  const laci_plugin_row *row;
} loaded[MOST_LOADED];
static int n_loaded;
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;

/* ---- Functions of laci_engine_row (engine/row.h) ---- */

static bool supports_node(const laci_engine_row *row, const laci_graph *graph,
                          const laci_node *node, lac_error *why) {
  laci_plugin_view view = {.graph = {0}};
  lac_status st = laci_plugin_view_init_node(&view, graph, node, why);
  bool can = !st && laci_plugin_ask_about_node((const laci_plugin_row *)row, &view, 0, why) !=
                        LAC_ENGINE_REFUSES;
  laci_plugin_view_clear(&view);
  return can;
}

static laci_engine_dtype computation_dtype(const laci_engine_row *row, lac_dtype dtype) {
  const lac_engine_plugin *engine = &((const laci_plugin_row *)row)->engine;
  for (int at = 0; at < engine->n_dtypes; at++) {
    if (engine->dtypes[at] == dtype) return LACI_DTYPE_HERE;
  }
  return LACI_DTYPE_NOT;
}

static int get_inputs(const void *self, const laci_engine_port **ports) {
  const laci_plugin_plan *p = self;
  *ports = p->input_ports;
  return p->own.graph.n_inputs;
}

static int get_outputs(const void *self, const laci_engine_port **ports) {
  const laci_plugin_plan *p = self;
  *ports = p->output_ports;
  return p->own.graph.n_outputs;
}

static int thread_count(const void *self) {
  const laci_plugin_plan *p = self;
  return laci_pool_threads(p->pool);
}

static laci_engine_memory planned_memory(const void *self) {
  const laci_plugin_plan *p = self;
  return p->memory;
}

static const char *plan_text(const void *self) {
  const laci_plugin_plan *p = self;
  return p->text;
}

static size_t step_count(const void *self) {
  const laci_plugin_plan *p = self;
  return p->n_steps;
}

static laci_engine_step describe_step(const void *self, size_t step) {
  const laci_plugin_plan *p = self;
  return p->steps[step];
}

static laci_engine_exact describe_exact_nodes(const void *self) {
  const laci_plugin_plan *p = self;
  if (p->n_evaluated == 0) return (laci_engine_exact){0};
  return (laci_engine_exact){.n_nodes = p->n_evaluated, .reason = p->reason};
}

static void list_nodes(const void *self, const laci_graph *graph, laci_engine_node *nodes) {
  const laci_plugin_plan *p = self;
  for (int n = 0; n < p->own.graph.n_nodes; n++) {
    int at = laci_engine_find_node(graph, &p->own.graph.nodes[n]);
    if (at < 0) continue;
    nodes[at] = (laci_engine_node){.runner = LACI_RUNNER_FAST};
    if (!p->reasons[n]) continue;
    nodes[at].runner = LACI_RUNNER_EXACT;
    nodes[at].reason = p->reasons[n];
  }
}

static const laci_engine_row functions = {.supports = supports_node,
                                          .create = laci_plugin_create,
                                          .destroy = laci_plugin_destroy,
                                          .inputs = get_inputs,
                                          .outputs = get_outputs,
                                          .run = laci_plugin_run,
                                          .threads = thread_count,
                                          .planned = planned_memory,
                                          .text = plan_text,
                                          .step_count = step_count,
                                          .step_info = describe_step,
                                          .exact = describe_exact_nodes,
                                          .nodes = list_nodes,
                                          .update = laci_plugin_update,
                                          .computes_in = computation_dtype};

/* ---- Checks of what a plug-in offers ---- */

static lac_status check_engine_name(const char *path, const char *name, lac_error *err) {
  size_t n = name ? strnlen(name, LACI_PLUGIN_MOST_NAME + 1) : 0;
  bool good = n > 0 && n <= LACI_PLUGIN_MOST_NAME;
  for (size_t at = 0; good && at < n; at++) {
    good = isalnum((unsigned char)name[at]) || strchr("_-.", name[at]);
  }
  const bool ends_as_file = name && laci_ends_with_n(name, n, ".so");
  if (good && !ends_as_file) return LAC_OK;
  return laci_fail(err, LAC_BAD_FILE,
                   "%s: the engine's name is %.64s, wanted 1 to %d letters, digits, '_', '-' or "
                   "'.', and no .so at the end",
                   path, name ? name : "NULL", LACI_PLUGIN_MOST_NAME);
}

static lac_status check_dtypes(const char *path, const lac_engine_plugin *engine, lac_error *err) {
  if (!engine->dtypes || engine->n_dtypes < 1 || engine->n_dtypes > MOST_DTYPES) {
    return laci_fail(err, LAC_BAD_FILE,
                     "%s: the engine computes in %d element types, wanted 1 to %d", path,
                     engine->dtypes ? engine->n_dtypes : 0, MOST_DTYPES);
  }
  for (int at = 0; at < engine->n_dtypes; at++) {
    if (lac_dtype_size(engine->dtypes[at]) > 0) continue;
    return laci_fail(err, LAC_BAD_FILE, "%s: the engine computes in type %d, which is none", path,
                     (int)engine->dtypes[at]);
  }
  return LAC_OK;
}

/* Returns a function that is missing; NULL: none is. */
static const char *find_missing_function(const lac_engine_plugin *e) {
  if (!e->supports) return "supports";
  if (!e->create) return "create";
  if (!e->destroy) return "destroy";
  if (!e->start != !e->wait) return e->start ? "wait" : "start";
  if (!e->run && !e->start) return "run";
  if (!e->step_count != !e->step_info) return e->step_count ? "step_info" : "step_count";
  if (!e->device) return NULL;
  bool whole = e->device->name && e->device->allocate && e->device->release &&
               e->device->to_device && e->device->to_host;
  return whole ? NULL : "device's name or function";
}

/* Copies what the plug-in offers into the row, and checks it. */
static lac_status copy_and_check_engine(const char *path, const lac_engine_plugin *given,
                                        laci_plugin_row *row, lac_error *err) {
  static const laci_plugin_struct engine_type = {
      "lac_engine_plugin", sizeof(lac_engine_plugin),
      offsetof(lac_engine_plugin, observes) + sizeof given->observes};
  static const laci_plugin_struct device_type = {
      "lac_engine_device", sizeof(lac_engine_device),
      offsetof(lac_engine_device, to_host) + sizeof given->device->to_host};
  lac_status st =
      laci_plugin_copy_struct(path, &engine_type, given, given->size, &row->engine, err);
  const lac_engine_device *device = st ? NULL : row->engine.device;
  if (device) {
    st = laci_plugin_copy_struct(path, &device_type, device, device->size, &row->device, err);
    row->engine.device = &row->device;
  }
  if (!st) st = check_engine_name(path, row->engine.name, err);
  if (!st) st = check_dtypes(path, &row->engine, err);
  if (st) return st;
  const char *missing = find_missing_function(&row->engine);
  if (missing) {
    return laci_fail(err, LAC_BAD_FILE, "%s: the engine %s has no %s", path, row->engine.name,
                     missing);
  }
  (void)snprintf(row->name, sizeof row->name, "%s", row->engine.name);
  row->row = functions;
  row->row.name = row->name;
  return LAC_OK;
}

/* ---- Loading ---- */

static lac_status open_engine(const char *path, const lac_plugin *plugin,
                              const lac_engine_plugin **engine, lac_error *err) {
  const char *why = NULL;
  if (!plugin->open_engine) return laci_fail(err, LAC_BAD_FILE, "%s: it offers no engine", path);
  *engine = plugin->open_engine(&why);
  if (*engine) return LAC_OK;
  return laci_fail(err, LAC_UNSUPPORTED, "%s: its engine cannot be used here: %s", path,
                   why ? why : "no reason is given");
}

static lac_status add_engine(const char *path, const lac_engine_plugin *given, void *handle,
                             lac_error *err) {
  if (n_loaded == MOST_LOADED) {
    return laci_fail(err, LAC_UNSUPPORTED, "%s: %d engines are loaded, and no more fit", path,
                     n_loaded);
  }
  laci_plugin_row *row = laci_alloc(1, sizeof *row);
  if (!row) return laci_fail_memory(err, path);
  lac_status st = copy_and_check_engine(path, given, row, err);
  if (!st) st = laci_engine_register(&row->row, err);
  if (st == LAC_EXISTS) st = laci_fail_with_prefix(err, st, "%s", path);
  if (st) {
    laci_free(row);
    return st;
  }
  loaded[n_loaded].handle = handle;
  loaded[n_loaded++].row = row;
  return LAC_OK;
}

static const char *find_loaded_engine(const void *handle) {
  for (int at = 0; at < n_loaded; at++) {
    if (loaded[at].handle == handle) return loaded[at].row->name;
  }
  return NULL;
}

static lac_status load_plugin_locked(const char *path, const char **name, lac_error *err) {
  lac_plugin plugin;
  void *handle = NULL;
  const lac_engine_plugin *engine;
  lac_status st = laci_plugin_open(path, false, &plugin, &handle, err);
  if (!st && find_loaded_engine(handle)) {
    *name = find_loaded_engine(handle);
    return LAC_OK;
  }
  if (!st) st = open_engine(path, &plugin, &engine, err);
  if (!st) st = add_engine(path, engine, handle, err);
  if (!st) *name = find_loaded_engine(handle);
  return st;
}

lac_status laci_engine_load(const char *path, const char **name, lac_error *err) {
  *name = NULL;
  (void)pthread_mutex_lock(&loading);
  lac_status st = load_plugin_locked(path, name, err);
  (void)pthread_mutex_unlock(&loading);
  return st;
}
