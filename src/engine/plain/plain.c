/* SPDX-License-Identifier: Apache-2.0
 * The plain engine. A step loads stored operands, finds the shapes of the results from the operands
 * (the operator's own infer, on real sizes and contents), allocates and evaluates. The inputs and
 * outputs of a node are freed when the next step begins, so that a caller can read them in between
 * (values.c). */
#include "engine/plain/plain.h"

#include "base/budget.h"
#include "base/error.h"
#include "base/memory.h"
#include "cpu/pool.h"
#include "engine/plain/plain_in.h"
#include "engine/row.h"
#include "graph/op.h"
#include "tensor/buf.h"

static const int64_t default_limit = (int64_t)1 << 31, default_keep = 65536;

/** Loads a graph output that is a stored tensor, since no step may read it. */
static lac_status load_stored_output(laci_plain *run, int value, lac_error *err) {
  return run->graph->values[value].stored >= 0 ? laci_plain_load_value(run, value, err) : LAC_OK;
}

/** Marks the values that depend on the content of an input; in bodies all values do. The others
 * (computed from shapes and weights) are rounded to f32, as engines that compute in f32 have
 * them. */
static void mark_input_dependent_values(laci_plain *run) {
  const laci_graph *graph = run->graph;
  bool *found = run->from_data;
  for (int v = 0; v < graph->n_values; v++) found[v] = graph->values[v].is_input;
  for (int n = 0; n < graph->n_nodes; n++) {
    const laci_node *node = &graph->nodes[n];
    bool data = node->body || node->n_captures || laci_node_control_flow_role(node);
    for (int at = 0; node->op && !node->op->shape_only && at < node->n_inputs; at++) {
      const bool shape_alone = at < 32 && (node->op->shape_inputs >> at & 1);
      data |= node->inputs[at] >= 0 && found[node->inputs[at]] && !shape_alone;
    }
    for (int at = 0; at < node->n_outputs; at++) {
      if (node->outputs[at] >= 0) found[node->outputs[at]] = data;
    }
  }
}

lac_status laci_plain_create(const laci_graph *graph, laci_stepper_load *load, void *context,
                             laci_pool *pool, laci_plain **run, lac_error *err) {
  *run = NULL;
  laci_plain *made = laci_alloc(1, sizeof *made);
  if (!made) return laci_fail_memory(err, "the plain engine");
  *made = (laci_plain){.graph = graph,
                       .step = laci_plain_step,
                       .load = load,
                       .context = context,
                       .pool = pool,
                       .max_elements = default_limit,
                       .keep_elements = default_keep,
                       .last = -1};
  made->values = laci_alloc((size_t)graph->n_values, sizeof *made->values);
  made->readers_left = laci_alloc((size_t)graph->n_values, sizeof *made->readers_left);
  made->from_data = laci_alloc((size_t)graph->n_values, sizeof *made->from_data);
  made->replaced = laci_alloc((size_t)graph->n_values, sizeof *made->replaced);
  made->keeps_outer_values = laci_alloc((size_t)graph->n_bodies, sizeof *made->keeps_outer_values);
  made->iterates = laci_alloc((size_t)graph->n_bodies, sizeof *made->iterates);
  lac_status st = LAC_OK;
  if (!made->values || !made->readers_left || !made->from_data || !made->replaced ||
      !made->keeps_outer_values || !made->iterates)
    st = laci_fail_memory(err, "the plain engine");
  if (!st) mark_input_dependent_values(made);
  for (int v = 0; v < graph->n_values && !st; v++)
    made->readers_left[v] = graph->values[v].n_readers;
  for (int at = 0; at < graph->n_outputs && !st; at++)
    st = load_stored_output(made, graph->outputs[at], err);
  if (st) laci_plain_destroy(made);
  else *run = made;
  return st;
}

void laci_plain_destroy(laci_plain *run) {
  if (!run) return;
  for (int v = 0; run->values && v < run->graph->n_values; v++) laci_buf_destroy(run->values[v]);
  laci_free(run->values);
  laci_free(run->readers_left);
  laci_free(run->from_data);
  laci_free(run->replaced);
  laci_free(run->keeps_outer_values);
  laci_free(run->iterates);
  laci_free(run);
}

void laci_plain_set_max_elements(laci_plain *run, int64_t max_elements) {
  run->max_elements = max_elements;
}

void laci_plain_set_budget(laci_plain *run, laci_budget *budget) { run->budget = budget; }

void laci_plain_set_max_iterations(laci_plain *run, int max_iterations) {
  run->max_iterations = max_iterations;
}

void laci_plain_set_single_precision(laci_plain *run, bool single) { run->single = single; }

void laci_plain_set_unrounded(laci_plain *run, bool unrounded) { run->unrounded = unrounded; }

void laci_plain_set_max_kept_elements(laci_plain *run, int64_t max_elements) {
  run->keep_elements = max_elements;
}

void laci_plain_set_value(laci_plain *run, int value, laci_buf *take) {
  laci_plain_replace_value(run, value, take);
  run->replaced[value] = true;
}

const laci_buf *laci_plain_value(const laci_plain *run, int value) { return run->values[value]; }

/** What a step works with; the arrays have the node's numbers of inputs and outputs. */
typedef struct step {
  const laci_node *node;
  const laci_buf **in;
  laci_type *in_types, *out_types;
  const laci_type **in_type;
  laci_buf **out;
} step;

static void step_clear(step *s) {
  for (int at = 0; s->out && at < s->node->n_outputs; at++) laci_buf_destroy(s->out[at]);
  laci_free(s->in);
  laci_free(s->in_types);
  laci_free(s->out_types);
  laci_free(s->in_type);
  laci_free(s->out);
}

static lac_status step_init(laci_plain *run, const laci_node *node, step *s, lac_error *err) {
  size_t n_in = (size_t)node->n_inputs, n_out = (size_t)node->n_outputs;
  *s = (step){.node = node,
              .in = laci_alloc(n_in, sizeof *s->in),
              .in_types = laci_alloc(n_in, sizeof *s->in_types),
              .out_types = laci_alloc(n_out, sizeof *s->out_types),
              .in_type = laci_alloc(n_in, sizeof *s->in_type),
              .out = laci_alloc(n_out, sizeof *s->out)};
  if (!s->in || !s->in_types || !s->out_types || !s->in_type || !s->out)
    return laci_fail_memory(err, node->name);
  for (int at = 0; at < node->n_inputs; at++) {
    if (node->inputs[at] < 0) continue;
    lac_status st = laci_plain_require_value(run, node, node->inputs[at], err);
    if (st) return st;
    s->in[at] = run->values[node->inputs[at]];
    s->in_types[at] = (laci_type){.dtype = s->in[at]->dtype, .shape = s->in[at]->shape};
    s->in_type[at] = &s->in_types[at];
  }
  for (int at = 0; at < node->n_outputs; at++) s->out_types[at].shape = laci_shape_unknown();
  return LAC_OK;
}

static int64_t unknown_size(laci_infer *infer) {
  (void)infer;
  return -1;
}

static lac_status infer_output_types(const step *s, lac_error *err) {
  laci_infer infer = {.node = s->node,
                      .n_in = s->node->n_inputs,
                      .n_out = s->node->n_outputs,
                      .in = s->in_type,
                      .known = s->in,
                      .out = s->out_types,
                      .new_symbol = unknown_size,
                      .err = err};
  return s->node->op->infer(&infer);
}

static lac_status allocate_outputs(laci_plain *run, const step *s, lac_error *err) {
  char text[128];
  const laci_node *node = s->node;
  for (int at = 0; at < node->n_outputs; at++) {
    if (node->outputs[at] < 0 && at > 0) continue; /* every operator writes its first output */
    laci_type *type = &s->out_types[at];
    int64_t count = laci_shape_is_known(&type->shape) ? laci_shape_count(&type->shape) : -1;
    if (!laci_shape_is_known(&type->shape)) {
      return laci_fail(err, LAC_UNSUPPORTED, "%s (%s): the shape of output %d is not known",
                       node->name, node->type, at);
    }
    if (count < 0 || count > run->max_elements) {
      return laci_fail(err, LAC_BAD_SHAPE,
                       "%s (%s): output %d would have shape %s, more than %lld elements",
                       node->name, node->type, at, laci_shape_text(&type->shape, text, sizeof text),
                       (long long)run->max_elements);
    }
    if (type->dtype == LAC_DTYPE_NONE && node->outputs[at] >= 0)
      type->dtype = run->graph->values[node->outputs[at]].type.dtype;
    lac_status st = LAC_OK;
    if (node->outputs[at] >= 0) st = laci_plain_check_budget(run, node->outputs[at], type, err);
    if (!st) st = laci_buf_create(type->dtype, &type->shape, &s->out[at], err);
    if (st == LAC_MEMORY_LIMIT) return st; /* its text names the node */
    if (st) return laci_fail_with_prefix(err, st, "%s (%s)", node->name, node->type);
  }
  return LAC_OK;
}

static void run_parallel(void *pool, int64_t n, laci_range_body *body, void *context) {
  int64_t grain = n / (8 * (int64_t)laci_pool_threads(pool));
  laci_pool_for(pool, n, grain > 1 ? grain : 1, body, context);
}

static bool is_rounded_to_single(const laci_plain *run, const laci_node *node) {
  const int first = node->n_outputs ? node->outputs[0] : -1;
  return run->single || (first >= 0 && !run->from_data[first]);
}

static lac_status evaluate_and_round(laci_plain *run, const step *s, lac_error *err) {
  laci_eval eval = {.node = s->node,
                    .n_in = s->node->n_inputs,
                    .n_out = s->node->n_outputs,
                    .in = s->in,
                    .out = s->out,
                    .parallel = run->pool ? run_parallel : NULL,
                    .pool = run->pool,
                    .err = err};
  lac_status st = s->node->op->eval(&eval);
  const bool single = is_rounded_to_single(run, s->node);
  if (!st && (single || !run->unrounded)) laci_eval_round_outputs_to_types(&eval, !single);
  return st;
}

static lac_status run_plain_node(laci_plain *run, const laci_node *node, lac_error *err) {
  step s = {.node = node};
  lac_status st = laci_engine_check_has_evaluation(node, err);
  if (!st) st = step_init(run, node, &s, err);
  if (!st) st = infer_output_types(&s, err);
  if (!st) st = allocate_outputs(run, &s, err);
  if (!st) st = evaluate_and_round(run, &s, err);
  for (int at = 0; at < node->n_outputs && !st; at++) {
    if (node->outputs[at] < 0) continue;
    laci_plain_replace_value(run, node->outputs[at], s.out[at]);
    s.out[at] = NULL;
  }
  step_clear(&s);
  return st;
}

/* A node that would not run in a real run may fail, since its operands need not fit: such a failure
 * becomes LAC_UNSUPPORTED. */
static lac_status status_of_tolerated_failure(lac_status st) {
  return !st || laci_status_is_not_about_data(st) ? st : LAC_UNSUPPORTED;
}

lac_status laci_plain_step(laci_plain *run, int node_id, lac_error *err) {
  const laci_node *node = &run->graph->nodes[node_id];
  if (run->last != node_id) laci_plain_release_last_step(run);
  run->last = node_id;
  bool active = laci_plain_is_active(run, node);
  for (int at = 0; at < node->n_outputs && !active; at++) {
    if (node->outputs[at] >= 0) laci_plain_replace_value(run, node->outputs[at], NULL);
  }
  if (!active && !run->max_iterations) return LAC_OK;
  lac_status st = laci_node_control_flow_role(node) ? laci_plain_run_control_node(run, node_id, err)
                                                    : run_plain_node(run, node, err);
  return active ? st : status_of_tolerated_failure(st);
}

void laci_plain_skip(laci_plain *run, int node) {
  if (run->last != node) laci_plain_release_last_step(run);
  run->last = node;
}

lac_status laci_plain_run_all(laci_plain *run, lac_error *err) {
  lac_status st = LAC_OK;
  for (int node = 0; node < run->graph->n_nodes && !st; node++)
    st = laci_plain_step(run, node, err);
  return st;
}

/* ---- Planning: the same walk over sizes alone ---- */

typedef struct memory_plan {
  const laci_graph *graph;
  const laci_type *types; /* [n_values] type of each value */
  const bool *skipped;    /* [n_stored] stored tensors that are not loaded; NULL: none */
  laci_budget *now, most;
  uint64_t *value_bytes; /* [n_values] bytes that each value takes now; 0: it is not in memory */
  int *readers_left;     /* [n_values] number of nodes that still have to read the value */
} memory_plan;

static void plan_value_memory(memory_plan *o, int value) {
  const laci_value *v = &o->graph->values[value];
  if (o->value_bytes[value] || (v->stored >= 0 && o->skipped && o->skipped[v->stored])) return;
  o->value_bytes[value] = laci_plain_bytes_of_type(&o->types[value]);
  laci_plain_add_to_budget(o->now, o->graph, value, &o->types[value]);
  laci_budget_keep_larger(&o->most, o->now);
}

static void plan_value_release(memory_plan *o, int value) {
  const laci_value *v = &o->graph->values[value];
  bool reload = v->stored >= 0 && laci_shape_count(&o->types[value].shape) > default_keep;
  if (v->is_output || (o->readers_left[value] > 0 && !reload)) return;
  laci_budget_subtract(o->now, o->value_bytes[value]);
  o->value_bytes[value] = 0;
}

static void plan_node_memory(memory_plan *o, const laci_node *node) {
  int n_read = node->n_inputs + node->n_captures;
  for (int at = 0; at < node->n_inputs; at++) {
    int value = node->inputs[at];
    if (value >= 0 && o->graph->values[value].stored >= 0) plan_value_memory(o, value);
  }
  for (int at = 0; at < node->n_outputs; at++) {
    if (node->outputs[at] >= 0) plan_value_memory(o, node->outputs[at]);
  }
  for (int at = 0; at < n_read; at++) {
    int value = laci_plain_nth_read(node, at);
    if (value < 0) continue;
    o->readers_left[value]--;
    plan_value_release(o, value);
  }
  for (int at = 0; at < node->n_outputs; at++) {
    if (node->outputs[at] >= 0) plan_value_release(o, node->outputs[at]);
  }
}

lac_status laci_plain_plan_memory(const laci_graph *graph, const laci_type *types,
                                  const bool *skipped, laci_budget *budget, lac_error *err) {
  size_t n = (size_t)graph->n_values;
  laci_budget now = *budget;
  memory_plan o = {.graph = graph, .types = types, .skipped = skipped, .now = &now, .most = now};
  o.value_bytes = laci_alloc(n, sizeof *o.value_bytes);
  o.readers_left = laci_alloc(n, sizeof *o.readers_left);
  lac_status st =
      o.value_bytes && o.readers_left ? LAC_OK : laci_fail_memory(err, "the plan of a run");
  for (size_t v = 0; v < n && !st; v++) o.readers_left[v] = graph->values[v].n_readers;
  for (int at = 0; at < graph->n_inputs && !st; at++) plan_value_memory(&o, graph->inputs[at]);
  for (int at = 0; at < graph->n_outputs && !st; at++) {
    if (graph->values[graph->outputs[at]].stored >= 0) plan_value_memory(&o, graph->outputs[at]);
  }
  for (int at = 0; at < graph->n_nodes && !st; at++) plan_node_memory(&o, &graph->nodes[at]);
  laci_free(o.value_bytes);
  laci_free(o.readers_left);
  if (!st) *budget = o.most;
  return st;
}
