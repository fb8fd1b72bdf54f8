/* SPDX-License-Identifier: Apache-2.0
 * The list of engines, and the look-up of a name's row of functions.
 *
 * Rows are only added and never move, so a row that was found stays valid without a lock. Next:
 * row.h. */
#include "engine/engine.h"
#include "engine/stepper.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "engine/row.h"
#include "sparse/pack.h"

#define LAC_ENGINE(name) extern const laci_engine_row laci_engine_##name;
#include "engine/engine.def"
#undef LAC_ENGINE

enum { MOST_ENGINES = 32 };

static const laci_engine_row *rows[MOST_ENGINES] = {
#define LAC_ENGINE(name) &laci_engine_##name,
#include "engine/engine.def"
#undef LAC_ENGINE
};
static pthread_mutex_t rows_lock = PTHREAD_MUTEX_INITIALIZER;

struct laci_engine {
  const laci_engine_row *row;
  void *self;
};

struct laci_stepper {
  const laci_stepper_functions *stepping;
  void *self;
};

/* ---- The list ---- */

static int count_rows(void) {
  int n = 0;
  while (n < MOST_ENGINES && rows[n]) n++;
  return n;
}

static const laci_engine_row *find_row_locked(const char *name) {
  for (int at = 0; at < count_rows(); at++) {
    if (strcmp(rows[at]->name, name) == 0) return rows[at];
  }
  return NULL;
}

static bool has_required_functions(const laci_engine_row *row) {
  return row && row->name && row->name[0] && row->supports && row->create && row->destroy &&
         row->inputs && row->outputs && row->run && !row->step_count == !row->step_info;
}

lac_status laci_engine_register(const laci_engine_row *row, lac_error *err) {
  lac_status st = LAC_OK;
  if (!has_required_functions(row)) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "an engine's row lacks its name or a function");
  }
  (void)pthread_mutex_lock(&rows_lock);
  const laci_engine_row *other = find_row_locked(row->name);
  int n = count_rows();
  if (other && other != row) {
    st = laci_fail(err, LAC_EXISTS, "there is an engine '%s' already", row->name);
  } else if (!other && n == MOST_ENGINES) {
    st = laci_fail(err, LAC_UNSUPPORTED, "%d engines, and no more fit", n);
  } else if (!other) {
    rows[n] = row;
  }
  (void)pthread_mutex_unlock(&rows_lock);
  return st;
}

int laci_engine_names(const char **names, int capacity) {
  (void)pthread_mutex_lock(&rows_lock);
  int n = count_rows();
  for (int at = 0; at < n && at < capacity; at++) names[at] = rows[at]->name;
  (void)pthread_mutex_unlock(&rows_lock);
  return n;
}

static lac_status find_engine_row(const char *name, const laci_engine_row **row, lac_error *err) {
  char known[256] = "";
  (void)pthread_mutex_lock(&rows_lock);
  *row = find_row_locked(name);
  for (int at = 0, used = 0; !*row && at < count_rows() && used < (int)sizeof known; at++) {
    used +=
        snprintf(known + used, sizeof known - (size_t)used, "%s%s", at ? ", " : "", rows[at]->name);
  }
  (void)pthread_mutex_unlock(&rows_lock);
  if (*row) return LAC_OK;
  return laci_fail(err, LAC_NOT_FOUND, "there is no engine '%s'; there are %s", name, known);
}

lac_status laci_engine_check_name(const char *name, lac_error *err) {
  const laci_engine_row *row;
  return find_engine_row(name, &row, err);
}

bool laci_engine_can_run_node(const char *engine, const laci_graph *graph, const laci_node *node,
                              lac_error *why) {
  const laci_engine_row *row;
  lac_status st = find_engine_row(engine ? engine : LACI_ENGINE_FAST, &row, why);
  return !st && row->supports(row, graph, node, why);
}

laci_engine_dtype laci_engine_find_dtype_support(const char *engine, lac_dtype dtype) {
  const laci_engine_row *row;
  if (find_engine_row(engine ? engine : LACI_ENGINE_FAST, &row, NULL)) return LACI_DTYPE_NOT;
  if (row->computes_in) return row->computes_in(row, dtype);
  return dtype == LAC_DTYPE_F32 ? LACI_DTYPE_HERE : LACI_DTYPE_NOT;
}

lac_status laci_engine_measure_costs(const char *engine, char **text, lac_error *err) {
  const laci_engine_row *row;
  *text = NULL;
  lac_status st = find_engine_row(engine ? engine : LACI_ENGINE_FAST, &row, err);
  if (st) return st;
  if (row->measure_costs) return row->measure_costs(text, err);
  return laci_fail(err, LAC_UNSUPPORTED, "the engine '%s' chooses nothing by costs", row->name);
}

bool laci_engine_has_cost_table(const char *engine) {
  const laci_engine_row *row;
  if (find_engine_row(engine ? engine : LACI_ENGINE_FAST, &row, NULL)) return true;
  return !row->knows_costs || row->knows_costs();
}

lac_status laci_engine_find_runnable_nodes(const char *engine, const laci_graph *graph,
                                           const laci_engine_options *options,
                                           laci_engine_reached *reached, lac_error *err) {
  const laci_engine_row *row;
  lac_status st = find_engine_row(engine, &row, err);
  if (st) return st;
  if (row->reach) return row->reach(graph, options, reached, err);
  return laci_fail(err, LAC_UNSUPPORTED, "the engine '%s' does not say how far it gets", engine);
}

/* ---- An engine ---- */

/* Checks that `weight` names a weight of the graph, and that its packing has the weight's size. */
static lac_status check_weight(const laci_graph *graph, const laci_engine_weight *weight,
                               lac_error *err) {
  const laci_packing *p = weight->packing;
  const laci_value *value =
      weight->value >= 0 && weight->value < graph->n_values ? &graph->values[weight->value] : NULL;
  if (!value || (value->stored < 0 && !value->is_input)) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "%s: neither a stored tensor nor an input",
                     value ? value->name : "a weight");
  }
  int64_t count = laci_shape_count(&value->type.shape);
  if (value->stored >= 0) count = laci_shape_count(&graph->stored[value->stored].shape);
  if (!p && weight->rows) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "%s: packed, and its pattern is not known",
                     value->name);
  }
  if (!p || p->outer * p->columns * p->inner == count) return LAC_OK;
  return laci_fail(err, LAC_BAD_ARGUMENT, "%s: a pattern of %lld elements, but it has %lld",
                   value->name, (long long)(p->outer * p->columns * p->inner), (long long)count);
}

static lac_status check_weights(const laci_graph *graph, const laci_engine_options *options,
                                lac_error *err) {
  lac_status st = LAC_OK;
  for (int at = 0; at < options->n_weights && !st; at++) {
    st = check_weight(graph, &options->weights[at], err);
  }
  return st;
}

lac_status laci_engine_create(const laci_graph *graph, const laci_engine_options *options,
                              laci_engine **engine, lac_error *err) {
  const laci_engine_row *row;
  *engine = NULL;
  lac_status st = find_engine_row(options->engine ? options->engine : LACI_ENGINE_FAST, &row, err);
  if (!st) st = check_weights(graph, options, err);
  if (st) return st;
  laci_engine *made = laci_alloc(1, sizeof *made);
  if (!made) return laci_fail_memory(err, "the engine");
  made->row = row;
  st = row->create(row, graph, options, &made->self, err);
  if (st) laci_free(made);
  else *engine = made;
  return st;
}

void laci_engine_destroy(laci_engine *engine) {
  if (!engine) return;
  engine->row->destroy(engine->self);
  laci_free(engine);
}

const char *laci_engine_name(const laci_engine *engine) { return engine->row->name; }

int laci_engine_inputs(const laci_engine *engine, const laci_engine_port **ports) {
  return engine->row->inputs(engine->self, ports);
}

int laci_engine_outputs(const laci_engine *engine, const laci_engine_port **ports) {
  return engine->row->outputs(engine->self, ports);
}

laci_engine_memory laci_engine_planned_memory(const laci_engine *engine) {
  return engine->row->planned ? engine->row->planned(engine->self) : (laci_engine_memory){0};
}

int laci_engine_threads(const laci_engine *engine) {
  return engine->row->threads ? engine->row->threads(engine->self) : 1;
}

const char *laci_engine_plan_text(const laci_engine *engine) {
  return engine->row->text ? engine->row->text(engine->self) : "";
}

size_t laci_engine_step_count(const laci_engine *engine) {
  return engine->row->step_count ? engine->row->step_count(engine->self) : 0;
}

laci_engine_step laci_engine_step_info(const laci_engine *engine, size_t step) {
  return engine->row->step_info(engine->self, step);
}

void laci_engine_list_nodes(const laci_engine *engine, const laci_graph *graph,
                            laci_engine_node *nodes) {
  if (engine->row->nodes) {
    engine->row->nodes(engine->self, graph, nodes);
    return;
  }
  for (int n = 0; n < graph->n_nodes; n++)
    nodes[n] = (laci_engine_node){.runner = LACI_RUNNER_FAST};
}

laci_engine_exact laci_engine_describe_exact_nodes(const laci_engine *engine) {
  return engine->row->exact ? engine->row->exact(engine->self) : (laci_engine_exact){0};
}

const laci_buf *laci_engine_result(const laci_engine *engine, int port) {
  return engine->row->result ? engine->row->result(engine->self, port) : NULL;
}

int laci_engine_sparse_step_count(const laci_engine *engine) {
  int n = 0;
  for (size_t at = 0; at < laci_engine_step_count(engine); at++) {
    n += laci_engine_step_info(engine, at).sparse;
  }
  return n;
}

size_t laci_engine_output_step(const laci_engine *engine, int port) {
  const laci_engine_row *row = engine->row;
  return row->output_step ? row->output_step(engine->self, port) : laci_engine_step_count(engine);
}

lac_status laci_engine_run(laci_engine *engine, const void *const *inputs, void *const *outputs,
                           lac_error *err) {
  return engine->row->run(engine->self, inputs, outputs, NULL, err);
}

lac_status laci_engine_run_watched(laci_engine *engine, const void *const *inputs,
                                   void *const *outputs, const laci_engine_watch *watch,
                                   lac_error *err) {
  return engine->row->run(engine->self, inputs, outputs, watch, err);
}

lac_status laci_engine_update_weights(laci_engine *engine, const lac_engine_update *update,
                                      lac_error *err) {
  if (engine->row->update) return engine->row->update(engine->self, update, err);
  return laci_fail(err, LAC_UNSUPPORTED, "the engine '%s' updates no weights", engine->row->name);
}

/* ---- A stepper ---- */

static lac_status find_stepper_functions(const char *engine,
                                         const laci_stepper_functions **stepping, lac_error *err) {
  const laci_engine_row *row;
  lac_status st = find_engine_row(engine ? engine : LACI_ENGINE_EXACT, &row, err);
  if (st) return st;
  *stepping = row->stepping;
  if (*stepping) return LAC_OK;
  return laci_fail(err, LAC_UNSUPPORTED, "the engine '%s' does not run node by node", row->name);
}

bool laci_engine_has_stepper(const char *engine) {
  const laci_stepper_functions *stepping;
  return !find_stepper_functions(engine, &stepping, NULL);
}

lac_status laci_stepper_create(const laci_graph *graph, const laci_stepper_options *options,
                               laci_stepper **stepper, lac_error *err) {
  const laci_stepper_functions *stepping = NULL;
  *stepper = NULL;
  lac_status st = find_stepper_functions(options->engine, &stepping, err);
  if (st) return st;
  laci_stepper *made = laci_alloc(1, sizeof *made);
  if (!made) return laci_fail_memory(err, "the run");
  made->stepping = stepping;
  st = stepping->create(graph, options, &made->self, err);
  if (st) laci_free(made);
  else *stepper = made;
  return st;
}

void laci_stepper_destroy(laci_stepper *stepper) {
  if (!stepper) return;
  stepper->stepping->destroy(stepper->self);
  laci_free(stepper);
}

void laci_stepper_set_value(laci_stepper *stepper, int value, laci_buf *take) {
  stepper->stepping->set(stepper->self, value, take);
}

lac_status laci_stepper_step(laci_stepper *stepper, int node, lac_error *err) {
  return stepper->stepping->step(stepper->self, node, err);
}

void laci_stepper_skip(laci_stepper *stepper, int node) {
  stepper->stepping->skip(stepper->self, node);
}

const laci_buf *laci_stepper_value(const laci_stepper *stepper, int value) {
  return stepper->stepping->value(stepper->self, value);
}

lac_status laci_stepper_plan_memory(const char *engine, const laci_graph *graph,
                                    const laci_type *types, const bool *skipped,
                                    laci_budget *budget, lac_error *err) {
  const laci_stepper_functions *stepping = NULL;
  lac_status st = find_stepper_functions(engine, &stepping, err);
  return st ? st : stepping->plan(graph, types, skipped, budget, err);
}
