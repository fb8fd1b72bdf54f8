/* SPDX-License-Identifier: Apache-2.0
 * lac_model_fold: replaces weights that are computed from stored tensors (masks in the graph, sums
 * of branches, low-rank updates) by stored tensors.
 *
 * A second graph of the file is analysed, each product is evaluated in float64 and rounded to its
 * type once, and an edit of the file puts it in the place of the node that made it. The model is
 * changed in its last step, or not at all. */
#include <string.h>

#include "analyze/analyze.h"
#include "api/model/model_in.h"
#include "api/model/structs.h"
#include "base/budget.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/plural.h"
#include "graph/constants.h"
#include "graph/graph.h"
#include "graph/infer.h"
#include "graph/op.h"
#include "graph/typing.h"
#include "lacuna/model.h"
#include "onnx/edit.h"
#include "onnx/onnx.h"
#include "tensor/buf.h"

enum { LACI_FOLD_CALLS = 64 }; /* limit of the calls of one local function */

/** The state of one call of lac_model_fold. */
typedef struct folding {
  lac_model *model;
  lac_fold how;
  const laci_graph *like; /* not NULL: fold what this network does not compute, instead of what
                             `how` says */
  uint64_t most;          /* limit of the bytes of evaluated contents, less those stored so far */
  laci_graph *graph;
  laci_analysis *analysis;
  laci_onnx_edit *edit;
  bool *wanted;       /* [n_values] the values of `graph` that may become stored tensors */
  bool *done;         /* [n_values] the values of `graph` that are stored tensors after folding */
  const char **names; /* names of the values that are done; they point into `graph` */
  int n_names;
} folding;

/* ---- Is there a computed weight to fold? ---- */

static bool has_computed_weight(const laci_graph *graph, const uint8_t *constants) {
  for (int n = 0; n < graph->n_nodes; n++) {
    const laci_node *node = &graph->nodes[n];
    if (!node->op || !node->op->weights) continue;
    for (int at = 0; at < node->n_inputs; at++) {
      int value = node->inputs[at];
      if (value >= 0 && constants[value] && graph->values[value].stored < 0) return true;
    }
  }
  return false;
}

/* ---- Contents ---- */

static lac_status add_stored_content(folding *f, const char *name, const laci_buf *buf,
                                     lac_error *err) {
  uint8_t *bytes = laci_alloc((size_t)buf->count * lac_dtype_size(buf->dtype) + 1, 1);
  if (!bytes) return laci_fail_memory(err, name);
  if (buf->f) laci_write_f64(buf->dtype, buf->f, buf->count, bytes);
  else laci_write_i64(buf->dtype, buf->i, buf->count, bytes);
  lac_status st = laci_edit_add_tensor(f->edit, name, buf->dtype, &buf->shape, bytes, err);
  laci_free(bytes);
  return st;
}

/* Returns the bytes of memory of an evaluated value, whose elements are doubles or int64. */
static uint64_t count_evaluated_bytes(const laci_buf *buf) {
  return laci_count_bytes_saturated(buf->count, sizeof(double));
}

/* Returns the bytes of the value's stored elements. They count twice, since the edit and the file
 * each hold a copy. */
static uint64_t content_bytes_in_file(const laci_buf *buf) {
  return laci_count_bytes_saturated(buf->count, 2 * lac_dtype_size(buf->dtype));
}

static uint64_t count_bytes_left(const folding *f, uint64_t held) {
  return f->most > held ? f->most - held : 0;
}

/* Reserves memory for a value. Returns false if it does not fit into the limit, and the value then
 * stays computed. */
static bool reserve_content_memory(folding *f, int value, uint64_t kept, uint64_t held) {
  if (kept <= count_bytes_left(f, held)) {
    f->most -= kept;
    return true;
  }
  laci_log(LAC_LOG_INFO, "%s stays as it is computed: the memory that is allowed is used up",
           f->graph->values[value].name);
  return false;
}

/* The contents of all results of one node of the file. */
typedef struct contents {
  size_t n;
  int *values;     /* [n] number of each result in `graph` */
  laci_buf **bufs; /* [n] content of each result */
  uint64_t evaluated_bytes, kept;
} contents;

static void free_contents(contents *c) {
  for (size_t k = 0; c->bufs && k < c->n; k++) laci_buf_destroy(c->bufs[k]);
  laci_free(c->values);
  laci_free(c->bufs);
}

/* Evaluates all results of a node that are read. Fails LAC_UNSUPPORTED if one cannot be computed or
 * is not constant; the node then stays in the graph. */
static lac_status evaluate_node_of_value(const folding *f, int value, const uint8_t *constants,
                                         contents *c, lac_error *err) {
  size_t n = 0;
  const char *const *results = laci_edit_node_outputs(f->edit, f->graph->values[value].name, &n);
  c->values = laci_alloc(n, sizeof *c->values);
  c->bufs = laci_alloc(n, sizeof *c->bufs);
  if (!c->values || !c->bufs) return laci_fail_memory(err, "the weights that are computed");
  for (size_t k = 0; k < n; k++) {
    int made = results[k][0] ? laci_graph_find_value(f->graph, results[k]) : -1;
    if (made < 0) continue;
    const laci_value *v = &f->graph->values[made];
    if (v->n_readers == 0 && !v->is_output) continue;
    if (constants[made] != LACI_CONSTANT)
      return laci_fail(err, LAC_UNSUPPORTED, "%s: it is not constant", v->name);
    c->values[c->n] = made;
    lac_status st = laci_graph_evaluate_constant(
        f->graph, made, count_bytes_left(f, c->evaluated_bytes), &c->bufs[c->n], err);
    if (st) return st;
    c->evaluated_bytes += count_evaluated_bytes(c->bufs[c->n]);
    if (!f->done[made]) c->kept += content_bytes_in_file(c->bufs[c->n]);
    c->n++;
  }
  return LAC_OK;
}

static bool is_fatal_status(lac_status st) {
  return st == LAC_NO_MEMORY || st == LAC_IO || st == LAC_INTERRUPTED;
}

/* ---- Folding one weight ---- */

/* Returns the value of the main graph that becomes the stored tensor; -1: there is none. */
static int find_value_to_store(const folding *f, const laci_layer *layer) {
  const int values[2] = {layer->computed, layer->weight};
  for (int k = 0; k < 2; k++) {
    if (laci_edit_is_computed(f->edit, f->graph->values[values[k]].name)) return values[k];
  }
  return -1;
}

static lac_status fold_weight(folding *f, int value, const uint8_t *constants, lac_error *err) {
  contents c = {0};
  lac_error why = {0};
  lac_status st = evaluate_node_of_value(f, value, constants, &c, &why);
  if (st && !is_fatal_status(st)) {
    laci_log(LAC_LOG_INFO, "%s stays as it is computed: %s", f->graph->values[value].name,
             why.text);
    free_contents(&c);
    return LAC_OK;
  }
  if (st && err) *err = why;
  const bool fits = !st && reserve_content_memory(f, value, c.kept, c.evaluated_bytes);
  for (size_t k = 0; k < c.n && fits && !st; k++) {
    if (f->done[c.values[k]]) continue;
    const char *name = f->graph->values[c.values[k]].name;
    st = add_stored_content(f, name, c.bufs[k], err);
    if (!st) st = laci_edit_replace_value(f->edit, name, err);
    f->done[c.values[k]] = true;
    f->names[f->n_names++] = name;
  }
  free_contents(&c);
  return st;
}

/* ---- Folding one weight in a local function ---- */

/* One value of a local function, in all calls of the function. */
typedef struct calls {
  int n;
  int values[LACI_FOLD_CALLS];
  laci_edit_call_value at[LACI_FOLD_CALLS];
  laci_buf *bufs[LACI_FOLD_CALLS];
  int same[LACI_FOLD_CALLS]; /* [call] the first call of the function in which the value has the
                                same contents */
  uint64_t held, kept;
} calls;

/* Lists the value in all calls. Returns false if in some call it is not a weight that may be
 * stored, or cannot be identified by its name. */
static bool list_call_values(const folding *f, int value, calls *c) {
  laci_edit_call_value found;
  const char *name;
  if (!laci_edit_find_call_value(f->edit, f->graph->values[value].name, &found)) return false;
  for (int call = -1; (name = laci_edit_find_call_value_name(f->edit, &found, c->n, &call));
       c->n++) {
    int made = laci_graph_find_value(f->graph, name);
    if (c->n == LACI_FOLD_CALLS || made < 0 || !f->wanted[made]) return false;
    if (f->graph->values[made].is_contested) return false;
    c->values[c->n] = made;
    c->at[c->n] = (laci_edit_call_value){found.function, call, found.value};
  }
  return c->n > 0;
}

static bool have_same_content(const laci_buf *a, const laci_buf *b) {
  return a->dtype == b->dtype && laci_shape_equal(&a->shape, &b->shape) &&
         memcmp(a->f ? (void *)a->f : a->i, b->f ? (void *)b->f : b->i,
                (size_t)a->count * sizeof(double)) == 0;
}

/* Evaluates the value in all calls. Calls with equal contents share one stored tensor. */
static lac_status evaluate_calls(const folding *f, calls *c, lac_error *err) {
  for (int k = 0; k < c->n; k++) {
    lac_status st = laci_graph_evaluate_constant(f->graph, c->values[k],
                                                 count_bytes_left(f, c->held), &c->bufs[k], err);
    if (st) return st;
    c->held += count_evaluated_bytes(c->bufs[k]);
    while (c->same[k] < k && !have_same_content(c->bufs[c->same[k]], c->bufs[k])) c->same[k]++;
    if (c->same[k] == k) c->kept += content_bytes_in_file(c->bufs[k]);
  }
  return LAC_OK;
}

static lac_status store_call_contents(folding *f, const calls *c, lac_error *err) {
  const char *names[LACI_FOLD_CALLS];
  lac_status st = LAC_OK;
  for (int k = 0; k < c->n && !st; k++) {
    const char *name = f->graph->values[c->values[k]].name;
    const int same = c->same[k];
    names[k] = same < k ? names[same] : laci_edit_make_unique_name(f->edit, name, "");
    if (!names[k]) return laci_fail_memory(err, name);
    if (same == k) {
      st = add_stored_content(f, names[k], c->bufs[k], err);
      f->names[f->n_names++] = names[k];
    }
    if (!st) st = laci_edit_replace_call_value(f->edit, &c->at[k], names[k], err);
    f->done[c->values[k]] = true;
  }
  return st;
}

static lac_status fold_weight_in_all_calls(folding *f, const laci_layer *layer, lac_error *err) {
  const int values[2] = {layer->computed, layer->weight};
  if (f->done[layer->computed]) return LAC_OK; /* the value was already stored for all calls */
  calls *c = laci_alloc(1, sizeof *c);
  lac_status st = c ? LAC_OK : laci_fail_memory(err, "a function's calls");
  lac_error why = {0};
  bool found = false;
  for (int k = 0; k < 2 && !st && !found; k++) {
    *c = (calls){0};
    found = !f->done[values[k]] && list_call_values(f, values[k], c);
  }
  if (found && !st) st = evaluate_calls(f, c, &why);
  if (st && found && !is_fatal_status(st)) {
    laci_log(LAC_LOG_INFO, "%s stays as it is computed: %s", f->graph->values[layer->weight].name,
             why.text);
    st = LAC_OK;
  } else if (st && found) {
    if (err) *err = why;
  } else if (found && reserve_content_memory(f, layer->weight, c->kept, c->held)) {
    st = store_call_contents(f, c, err);
  }
  for (int k = 0; c && k < c->n; k++) laci_buf_destroy(c->bufs[k]);
  laci_free(c);
  return st;
}

/* ---- Folding all weights ---- */

/* Does the other network compute the value, too? If it has no value of this name, it has no such
 * call of the local function, and computes nothing there. */
static bool is_computed_by(const laci_graph *other, const char *name) {
  const int value = laci_graph_find_value(other, name);
  return value >= 0 && other->values[value].producer >= 0;
}

static bool should_be_folded(const folding *f, const laci_layer *layer) {
  if (f->how == LAC_FOLD_ALONE && !f->like) return layer->alone;
  if (!layer->storable || !f->like) return layer->storable;
  return !is_computed_by(f->like, f->graph->values[layer->computed].name) ||
         !is_computed_by(f->like, f->graph->values[layer->weight].name);
}

/* Chooses the computed values that will be stored as tensors. */
static lac_status choose_values(folding *f, lac_error *err) {
  f->wanted = laci_alloc((size_t)f->graph->n_values, sizeof *f->wanted);
  if (!f->wanted) return laci_fail_memory(err, "the computed weights");
  for (int l = 0; l < f->analysis->n_rows; l++) {
    const laci_layer *layer = &f->analysis->layers[l];
    if (should_be_folded(f, layer)) f->wanted[layer->computed] = f->wanted[layer->weight] = true;
  }
  return LAC_OK;
}

static lac_status fold_all_weights(folding *f, lac_error *err) {
  const laci_analysis *a = f->analysis;
  lac_status st = LAC_OK;
  f->done = laci_alloc((size_t)f->graph->n_values, sizeof *f->done);
  f->names = laci_alloc((size_t)f->graph->n_values, sizeof *f->names);
  uint8_t *constants = laci_graph_find_constants(f->graph);
  if (!f->done || !f->names || !constants) st = laci_fail_memory(err, "the computed weights");
  if (!st) st = choose_values(f, err);
  for (int l = 0; l < a->n_rows && !st; l++) {
    const laci_layer *layer = &a->layers[l];
    if (layer->computed < 0 || !f->wanted[layer->computed]) continue;
    int value = find_value_to_store(f, layer);
    if (value < 0) st = fold_weight_in_all_calls(f, layer, err);
    else if (!f->done[value]) st = fold_weight(f, value, constants, err);
    if (!st && laci_interrupted()) st = laci_fail(err, LAC_INTERRUPTED, "interrupted");
  }
  laci_free(constants);
  return st;
}

/* ---- Analyzing, folding and committing ---- */

/* Reads and analyzes the graph of the file. If it cannot be analyzed, nothing is folded, and the
 * model's later analysis reports the problem. */
static lac_status analyze_file(folding *f, lac_error *err) {
  const laci_rules rules = {.pattern = {2, 4}, .all_sizes = true, .recurrent = true};
  lac_status st = laci_onnx_reimport(f->model->file, &f->graph, err);
  if (!st) st = laci_graph_check_attr_and_weight_types(f->graph, true, err);
  if (!st) st = laci_graph_infer(f->graph, NULL, 0, err);
  return st ? st : laci_analyze(f->graph, &rules, &f->analysis, err);
}

static char *copy_text(const char *text) {
  size_t n = strlen(text) + 1;
  char *copy = laci_alloc(n, 1);
  if (copy) memcpy(copy, text, n);
  return copy;
}

static lac_status copy_names(const folding *f, char ***names, lac_error *err) {
  *names = laci_alloc((size_t)f->n_names, sizeof **names);
  bool ok = *names != NULL;
  for (int k = 0; k < f->n_names && ok; k++) {
    (*names)[k] = copy_text(f->names[k]);
    ok = (*names)[k] != NULL;
  }
  if (ok) return LAC_OK;
  for (int k = 0; *names && k < f->n_names; k++) laci_free((*names)[k]);
  laci_free(*names);
  return laci_fail_memory(err, "the computed weights");
}

static lac_status commit_folding(folding *f, lac_error *err) {
  laci_graph *graph = NULL;
  char **names = NULL;
  lac_status st = copy_names(f, &names, err);
  if (st) return st;
  st = laci_onnx_edit_apply(f->edit, &graph, err);
  if (!st) st = laci_graph_check_attr_and_weight_types(graph, true, err);
  if (st) {
    for (int k = 0; k < f->n_names; k++) laci_free(names[k]);
    laci_free(names);
    laci_graph_destroy(graph);
    return st;
  }
  laci_model_replace_graph(f->model, graph, false);
  laci_onnx_edit_keep(f->edit);
  f->edit = NULL;
  f->model->folded = names;
  f->model->n_folded = f->n_names;
  laci_log(LAC_LOG_DEBUG, "%d weight%s computed from constants %s stored as one tensor%s",
           f->n_names, laci_plural(f->n_names), f->n_names == 1 ? "is" : "are",
           f->n_names == 1 ? "" : " each");
  return LAC_OK;
}

static lac_status fold_file(folding *f, lac_error *err) {
  lac_error why = {0};
  lac_status st = analyze_file(f, &why);
  if (st && !is_fatal_status(st)) return LAC_OK;
  if (st && err) *err = why;
  if (!st) st = laci_onnx_edit_begin(f->model->file, &f->edit, err);
  if (!st) st = fold_all_weights(f, err);
  if (!st && f->n_names) st = commit_folding(f, err);
  return st;
}

static lac_status fold_model(folding *f, uint64_t max_memory, lac_error *err) {
  lac_model *model = f->model;
  if (!model->file || model->packed || model->n_folded) return LAC_OK;
  uint8_t *constants = laci_graph_find_constants(model->graph);
  if (!constants) return laci_fail_memory(err, "the computed weights");
  bool any = has_computed_weight(model->graph, constants);
  laci_free(constants);
  if (!any) return LAC_OK;
  laci_budget budget = laci_budget_with_limit(max_memory);
  if (laci_model_stays_in_files(model, &budget)) laci_model_add_streamed_to_budget(model, &budget);
  else laci_model_add_stored_to_budget(model, &budget);
  f->most = budget.needed < budget.limit ? budget.limit - budget.needed : 0;
  lac_status st = laci_model_materialise_small(model, err);
  if (!st) st = fold_file(f, err);
  laci_onnx_edit_undo(f->edit);
  laci_analysis_destroy(f->analysis);
  laci_graph_destroy(f->graph);
  laci_free(f->wanted);
  laci_free(f->done);
  laci_free((void *)f->names);
  return st;
}

lac_status lac_model_fold(lac_model *model, lac_fold how, uint64_t max_memory, lac_context *context,
                          int *n_folded, lac_error *err) {
  if (n_folded) *n_folded = 0;
  lac_status st = LACI_CHECK_GIVEN(err, {"model", model});
  if (st) return st;
  if (how != LAC_FOLD_ALONE && how != LAC_FOLD_ALL)
    return laci_fail(err, LAC_BAD_ARGUMENT, "fold %d: there is no such choice", (int)how);
  folding f = {.model = model, .how = how};
  lac_context *before = laci_call_enter_context(context);
  st = fold_model(&f, max_memory, err);
  laci_call_leave_context(before);
  if (n_folded && !st) *n_folded = model->n_folded;
  return st;
}

lac_status lac_model_fold_like(lac_model *model, const lac_model *like, uint64_t max_memory,
                               lac_context *context, lac_error *err) {
  lac_status st = LACI_CHECK_GIVEN(err, {"model", model}, {"like", like});
  if (st) return st;
  folding f = {.model = model, .like = like->graph};
  lac_context *before = laci_call_enter_context(context);
  st = fold_model(&f, max_memory, err);
  laci_call_leave_context(before);
  return st;
}
