/* SPDX-License-Identifier: Apache-2.0
 * Runs two networks side by side, and compares the values that both compute. Pairs of nodes are in
 * the order of both networks, so that a value is compared while both runs still hold it. */
#include "lacuna/compare.h"

#include <string.h>

#include "api/compare/compare_in.h"
#include "api/compare/runtime.h"
#include "api/model/model_in.h"
#include "api/model/structs.h"
#include "api/run/infer_in.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "cpu/pool.h"
#include "engine/stepper.h"
#include "lacuna/model.h"
#include "report/json.h"
#include "tensor/buf.h"
#include "verify/verify.h"

enum { A, B, NETWORKS };

/* A lac_compare_result with the memory that it owns. */
typedef struct whole_result {
  lac_compare_result pub; /* must be first: a lac_compare_result * is cast to whole_result * */
  laci_arena arena;
} whole_result;

typedef struct run {
  const lac_compare_options *options;
  lac_model *views[NETWORKS];
  laci_stepper *steppers[NETWORKS];
  int next[NETWORKS]; /* index of the next node to compute in each network */
  laci_buf **inputs;  /* [n_inputs] array for each input of the first network */
  laci_budget budget;
  laci_pool *pool;
  laci_node_pair *pairs;
  int n_pairs;
  laci_buf **theirs; /* [n_values] values of the second network that ONNX Runtime computed; NULL:
                        Lacuna computes them */
  laci_buf **copies; /* [n_inputs] array for each input of the second network, if ONNX Runtime
                        computes it */
  char version[32];
} run;

static const laci_graph *graph_of_network(const run *r, int which) {
  return r->views[which]->graph;
}

void lac_compare_options_init(lac_compare_options *options, size_t size) {
  const lac_compare_options usual = {.size = sizeof usual, .tolerance = 1e-3};
  laci_struct_set_defaults(&usual, sizeof usual, options, size);
}

/* ---- Inputs ---- */

static lac_status read_inputs(run *r, lac_error *err) {
  const laci_graph *graph = graph_of_network(r, A);
  const lac_infer_options usual = lac_infer_options_default();
  laci_inference reader = {
      .graph = graph, .options = &usual, .inputs = r->inputs, .budget = r->budget};
  reader.keep = laci_alloc((size_t)r->options->n_inputs + 1, sizeof *reader.keep);
  if (!reader.keep) return laci_fail_memory(err, "the inputs");
  lac_status st =
      laci_inference_read_inputs(&reader, r->options->inputs, r->options->n_inputs, err);
  laci_free(reader.keep);
  return st;
}

static lac_status draw_inputs(run *r, lac_error *err) {
  const laci_graph *graph = graph_of_network(r, A);
  laci_shape *shapes = laci_alloc((size_t)graph->n_inputs + 1, sizeof *shapes);
  if (!shapes) return laci_fail_memory(err, "the inputs");
  lac_status st = laci_verify_find_input_shapes(graph, shapes, err);
  for (int at = 0; at < graph->n_inputs && !st; at++) {
    st = laci_verify_draw_input(graph, graph->inputs[at], &shapes[at], r->options->seed,
                                &r->inputs[at], err);
  }
  laci_free(shapes);
  return st;
}

/* Returns the number of the second network's input that belongs to input `at` of the first: the one
 * of the same name, else the one at the same place. */
static int find_matching_input(const run *r, int at) {
  const laci_graph *a = graph_of_network(r, A), *b = graph_of_network(r, B);
  for (int other = 0; other < b->n_inputs; other++)
    if (strcmp(b->values[b->inputs[other]].name, a->values[a->inputs[at]].name) == 0) return other;
  return at;
}

static lac_status set_stepper_inputs(run *r, lac_error *err) {
  const laci_graph *a = graph_of_network(r, A), *b = graph_of_network(r, B);
  if (a->n_inputs != b->n_inputs) {
    return laci_fail(err, LAC_BAD_SHAPE, "%s has %d inputs, %s %d: wanted the same",
                     r->views[A]->path, a->n_inputs, r->views[B]->path, b->n_inputs);
  }
  r->inputs = laci_alloc((size_t)a->n_inputs + 1, sizeof *r->inputs);
  if (r->options->runtime) r->copies = laci_alloc((size_t)b->n_inputs + 1, sizeof *r->copies);
  if (!r->inputs || (r->options->runtime && !r->copies)) return laci_fail_memory(err, "the inputs");
  lac_status st = r->options->n_inputs ? read_inputs(r, err) : draw_inputs(r, err);
  for (int at = 0; at < a->n_inputs && !st; at++) {
    laci_buf *copy = NULL;
    st = laci_buf_copy(r->inputs[at], &copy, err);
    if (st) break;
    laci_stepper_set_value(r->steppers[A], a->inputs[at], r->inputs[at]);
    const int other = find_matching_input(r, at);
    if (r->copies) r->copies[other] = copy;
    else laci_stepper_set_value(r->steppers[B], b->inputs[other], copy);
    r->inputs[at] = NULL; /* the stepper owns it */
  }
  return st;
}

/* ---- The run ---- */

static lac_status create_steppers(run *r, const lac_model *const models[NETWORKS], lac_error *err) {
  lac_status st = laci_pool_create(r->options->threads, &r->pool, err);
  r->budget = laci_budget_with_limit(r->options->max_memory);
  for (int which = 0; which < NETWORKS && !st; which++) {
    st = laci_model_view_create(models[which], &r->views[which], err);
    if (!st) st = laci_model_materialise(models[which], err);
    if (!st) laci_model_add_stored_to_budget(models[which], &r->budget);
    const laci_stepper_options how = {.pool = r->pool, .budget = &r->budget};
    if (!st) st = laci_budget_check(&r->budget, "the models", err);
    if (!st) st = laci_stepper_create(graph_of_network(r, which), &how, &r->steppers[which], err);
  }
  return st;
}

static void destroy_steppers(run *r) {
  for (int at = 0; r->inputs && at < graph_of_network(r, A)->n_inputs; at++)
    laci_buf_destroy(r->inputs[at]);
  laci_free(r->inputs);
  for (int at = 0; r->copies && at < graph_of_network(r, B)->n_inputs; at++)
    laci_buf_destroy(r->copies[at]);
  laci_free(r->copies);
  for (int at = 0; r->theirs && at < graph_of_network(r, B)->n_values; at++)
    laci_buf_destroy(r->theirs[at]);
  laci_free(r->theirs);
  for (int which = 0; which < NETWORKS; which++) {
    laci_stepper_destroy(r->steppers[which]);
    laci_model_view_destroy(r->views[which]);
  }
  laci_free(r->pairs);
  laci_pool_destroy(r->pool);
}

/* Computes nodes of a network up to `node`, this one included. */
static lac_status step_through_node(run *r, int which, int node, lac_error *err) {
  lac_status st = LAC_OK;
  while (r->next[which] <= node && !st) {
    if (laci_interrupted()) return laci_fail(err, LAC_INTERRUPTED, "interrupted");
    st = laci_stepper_step(r->steppers[which], r->next[which]++, err);
  }
  return st ? laci_fail_with_prefix(err, st, "%s", r->views[which]->path) : LAC_OK;
}

/* ---- The second network in ONNX Runtime ---- */

/* Can ONNX Runtime be asked for the value? It must be computed, and must have a name of its own in
 * the file. */
static bool is_value_requested(const laci_graph *graph, int value) {
  const laci_value *of = value < 0 ? NULL : &graph->values[value];
  return of && of->producer >= 0 && !of->known && !of->is_contested;
}

/* Fills in the job's lists of values to compute: one for each pair of nodes. */
static void list_requested_values(const run *r, const char **names[3], int *places,
                                  laci_runtime_job *job) {
  const laci_graph *graph = graph_of_network(r, B);
  job->inputs = names[0];
  job->values = names[1];
  job->added = names[2];
  for (int at = 0; at < graph->n_inputs; at++) names[0][at] = graph->values[graph->inputs[at]].name;
  job->n_inputs = graph->n_inputs;
  for (int at = 0; at < r->n_pairs; at++) {
    const laci_node *node = &graph->nodes[r->pairs[at].b];
    const int value = node->n_outputs > 0 ? node->outputs[0] : -1;
    if (!is_value_requested(graph, value)) continue;
    places[job->n_values] = value;
    names[1][job->n_values++] = graph->values[value].name;
    if (!graph->values[value].is_output) names[2][job->n_added++] = graph->values[value].name;
  }
}

/* Computes all values of the second network at once in ONNX Runtime. */
static lac_status run_second_network_in_onnx_runtime(run *r, lac_error *err) {
  laci_runtime_job job = {.library = r->options->runtime,
                          .model = r->views[B]->path,
                          .arrays = (const laci_buf *const *)r->copies};
  int *places = laci_alloc((size_t)r->n_pairs + 1, sizeof *places);
  laci_buf **bufs = laci_alloc((size_t)r->n_pairs + 1, sizeof(laci_buf *));
  r->theirs = laci_alloc((size_t)graph_of_network(r, B)->n_values + 1, sizeof(laci_buf *));
  const size_t most = (size_t)r->n_pairs + (size_t)graph_of_network(r, B)->n_inputs + 1;
  const char **names[3];
  for (int k = 0; k < 3; k++) names[k] = laci_alloc(most, sizeof *names[k]);
  const bool is_there = places && bufs && r->theirs && names[0] && names[1] && names[2];
  lac_status st = is_there ? LAC_OK : laci_fail_memory(err, "the comparison");
  if (!st) list_requested_values(r, names, places, &job);
  if (!st) st = laci_runtime_run(&job, bufs, r->version, err);
  for (int at = 0; bufs && r->theirs && at < job.n_values; at++) r->theirs[places[at]] = bufs[at];
  for (int k = 0; k < 3; k++) laci_free(names[k]);
  laci_free(bufs);
  laci_free(places);
  return st;
}

/* Compares the values of a pair of nodes. *kept: the values were compared, and *value describes the
 * result. */
static lac_status compare_pair(run *r, const laci_node_pair *pair, whole_result *result,
                               lac_compare_value *value, bool *kept, lac_error *err) {
  const laci_node *a = &graph_of_network(r, A)->nodes[pair->a],
                  *b = &graph_of_network(r, B)->nodes[pair->b];
  lac_status st = step_through_node(r, A, pair->a, err);
  if (!st && !r->theirs) st = step_through_node(r, B, pair->b, err);
  *kept = false;
  if (st || a->n_outputs < 1 || b->n_outputs < 1 || a->outputs[0] < 0 || b->outputs[0] < 0)
    return st;
  const laci_value *of = &graph_of_network(r, A)->values[a->outputs[0]];
  const laci_buf *x = laci_stepper_value(r->steppers[A], a->outputs[0]),
                 *y = r->theirs ? r->theirs[b->outputs[0]]
                                : laci_stepper_value(r->steppers[B], b->outputs[0]);
  if (!x || !y || of->known) return LAC_OK;   /* constants are not compared */
  if (!x->f && !of->is_output) return LAC_OK; /* integers (shapes, indices) are not compared */
  *value = (lac_compare_value){.name = laci_arena_text(&result->arena, a->name),
                               .other = laci_arena_text(&result->arena, b->name),
                               .op = laci_arena_text(&result->arena, a->type),
                               .by_name = pair->by_name,
                               .is_output = of->is_output};
  *kept = true;
  if (!value->name || !value->other || !value->op) return laci_fail_memory(err, "the comparison");
  return laci_compare_bufs(x, y, value, err);
}

static lac_status compare_node_pairs(run *r, whole_result *result, lac_error *err) {
  lac_compare_value *values =
      laci_arena_alloc(&result->arena, (size_t)r->n_pairs + 1, sizeof *values);
  if (!values) return laci_fail_memory(err, "the comparison");
  result->pub.values = values;
  lac_status st = LAC_OK;
  for (int at = 0; at < r->n_pairs && !st; at++) {
    bool kept;
    laci_progress("comparing", at, r->n_pairs);
    st = compare_pair(r, &r->pairs[at], result, &values[result->pub.n_values], &kept, err);
    result->pub.n_values += !st && kept;
  }
  laci_progress("comparing", r->n_pairs, r->n_pairs);
  return st;
}

static lac_status compare_networks(const lac_model *const models[NETWORKS],
                                   const lac_compare_options *options, whole_result *result,
                                   lac_error *err) {
  run r = {.options = options};
  lac_status st = create_steppers(&r, models, err);
  if (!st) st = set_stepper_inputs(&r, err);
  if (!st)
    st = laci_compare_pair_nodes(graph_of_network(&r, A), graph_of_network(&r, B), &r.pairs,
                                 &r.n_pairs, err);
  if (!st && r.n_pairs == 0) {
    st = laci_fail(err, LAC_BAD_VALUE, "%s and %s: no node of one is like a node of the other",
                   models[A]->path, models[B]->path);
  }
  if (!st && options->runtime) st = run_second_network_in_onnx_runtime(&r, err);
  if (!st) st = compare_node_pairs(&r, result, err);
  if (!st) {
    result->pub.n_nodes = graph_of_network(&r, A)->n_nodes;
    result->pub.n_other = graph_of_network(&r, B)->n_nodes;
    result->pub.model = laci_arena_text(&result->arena, models[A]->path);
    result->pub.other = laci_arena_text(&result->arena, models[B]->path);
    if (options->runtime) result->pub.runtime = laci_arena_text(&result->arena, r.version);
    if (!result->pub.model || !result->pub.other || (options->runtime && !result->pub.runtime))
      st = laci_fail_memory(err, "the comparison");
  }
  destroy_steppers(&r);
  return st;
}

lac_status lac_compare(const lac_model *model, const lac_model *other,
                       const lac_compare_options *options, lac_compare_result **result,
                       lac_error *err) {
  lac_compare_options own;
  if (result) *result = NULL;
  lac_status st = LACI_CHECK_GIVEN(err, {"model", model}, {"result", result});
  if (!st) st = laci_take_compare_options(options, &own, err);
  if (!st && own.runtime && !other) other = model;
  if (!st) st = LACI_CHECK_GIVEN(err, {"other", other});
  if (!st) st = laci_check_threads(own.threads, err);
  if (!st && (own.n_inputs < 0 || (own.n_inputs > 0 && !own.inputs))) {
    st = laci_fail(err, LAC_BAD_ARGUMENT, "lac_compare: n_inputs is %d, and inputs is%s NULL",
                   own.n_inputs, own.inputs ? " not" : "");
  }
  if (st) return st;
  whole_result *made = laci_alloc(1, sizeof *made);
  if (!made) return laci_fail_memory(err, "the comparison");
  made->pub.given = own.n_inputs > 0;
  made->pub.tolerance = own.tolerance;
  made->pub.seed = own.seed;
  lac_context *before = laci_call_enter_context(own.context);
  st = compare_networks((const lac_model *const[NETWORKS]){model, other}, &own, made, err);
  laci_call_leave_context(before);
  if (st) lac_compare_result_destroy(&made->pub);
  else *result = &made->pub;
  return st;
}

void lac_compare_result_destroy(lac_compare_result *result) {
  if (!result) return;
  laci_arena_clear(&((whole_result *)result)->arena);
  laci_free(result);
}

lac_status lac_compare_json(const lac_compare_result *result, char **text, lac_error *err) {
  lac_status st = LACI_CHECK_GIVEN(err, {"result", result}, {"text", text});
  return st ? st : laci_compare_json(result, text, err);
}
