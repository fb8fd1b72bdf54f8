/* SPDX-License-Identifier: Apache-2.0
 * The plain engine. One step: load what is stored, find the shapes from the operands (the
 * operator's own infer, on real sizes and contents), allocate, evaluate. What a step leaves behind
 * is freed when the next one begins, so that a caller can look at a node's inputs and outputs in
 * between. */
#include "engine/plain/plain.h"

#include "base/budget.h"
#include "base/error.h"
#include "base/memory.h"
#include "cpu/pool.h"
#include "engine/row.h"
#include "graph/op.h"
#include "graph/sizes.h"
#include "tensor/buf.h"

static const int64_t default_limit = (int64_t)1 << 31, default_keep = 65536;

struct laci_plain {
  const laci_graph *graph;
  laci_stepper_load *load;
  void *context;
  laci_pool *pool;
  int64_t max_elements, keep_elements;
  laci_buf **values;   /* [n_values] */
  int *readers_left;   /* [n_values] */
  bool *replaced;      /* [n_values] set by the caller: never loaded from the file again */
  laci_budget *budget; /* NULL: no limit */
  int last;            /* node stepped last, whose inputs and outputs are still there; -1: none */
};

static lac_status load_bytes(const laci_graph *graph, int stored, laci_buf **buf, lac_error *err) {
  const laci_stored *from = &graph->stored[stored];
  laci_type type = {.dtype = from->dtype, .shape = from->shape};
  return laci_buf_from_bytes(&type, from->bytes, from->size_bytes, buf, err);
}

/* ---- What is held ---- */

static uint64_t bytes_of(const laci_buf *buf) {
  return buf && (buf->f || buf->i) ? laci_bytes_of(buf->count, sizeof *buf->f) : 0;
}

/** Of a shape that is known, but too large to be counted, as many as can be. */
static uint64_t bytes_of_type(const laci_type *type) {
  int64_t count = laci_shape_count(&type->shape);
  if (count < 0 && laci_shape_known(&type->shape)) return UINT64_MAX;
  return laci_bytes_of(count, sizeof(double));
}

/** Adds a value of that type to what is held. */
static void hold(laci_budget *budget, const laci_graph *graph, int value, const laci_type *type) {
  char text[256] = "";
  uint64_t bytes = bytes_of_type(type);
  laci_type here = *type; /* as this engine holds it */
  here.dtype = laci_dtype_is_integer(type->dtype) ? LAC_DTYPE_I64 : LAC_DTYPE_F64;
  if (bytes > budget->largest) laci_value_text(graph, value, &here, text, sizeof text);
  laci_budget_add(budget, bytes, "%s", text);
}

static void put(laci_plain *run, int value, laci_buf *take) {
  if (run->budget) {
    laci_budget_give_back(run->budget, bytes_of(run->values[value]));
    laci_budget_add_sum(run->budget, bytes_of(take));
  }
  laci_buf_destroy(run->values[value]);
  run->values[value] = take;
}

/** Is there room for a value of that type? */
static lac_status make_sure(laci_plain *run, int value, const laci_type *type, lac_error *err) {
  if (laci_budget_has(run->budget, bytes_of_type(type))) return LAC_OK;
  laci_budget then = *run->budget;
  hold(&then, run->graph, value, type);
  return laci_budget_check(&then, "the run", err);
}

/** Loads a stored tensor that is not there yet. */
static lac_status load_stored(laci_plain *run, int value, lac_error *err) {
  const laci_value *v = &run->graph->values[value];
  laci_buf *buf = NULL;
  if (run->values[value]) return LAC_OK;
  lac_status st = run->load ? run->load(run->context, v->stored, &buf, err)
                            : load_bytes(run->graph, v->stored, &buf, err);
  if (st) return laci_fail_in(err, st, "%s", v->name);
  put(run, value, buf);
  return LAC_OK;
}

/** A graph output may be a stored tensor, which no step would ever load. */
static lac_status load_output(laci_plain *run, int value, lac_error *err) {
  return run->graph->values[value].stored >= 0 ? load_stored(run, value, err) : LAC_OK;
}

lac_status laci_plain_create(const laci_graph *graph, laci_stepper_load *load, void *context,
                             laci_pool *pool, laci_plain **run, lac_error *err) {
  *run = NULL;
  laci_plain *made = laci_alloc(1, sizeof *made);
  if (!made) return laci_fail_memory(err, "the plain engine");
  *made = (laci_plain){.graph = graph,
                       .load = load,
                       .context = context,
                       .pool = pool,
                       .max_elements = default_limit,
                       .keep_elements = default_keep,
                       .last = -1};
  made->values = laci_alloc((size_t)graph->n_values, sizeof *made->values);
  made->readers_left = laci_alloc((size_t)graph->n_values, sizeof *made->readers_left);
  made->replaced = laci_alloc((size_t)graph->n_values, sizeof *made->replaced);
  lac_status st = LAC_OK;
  if (!made->values || !made->readers_left || !made->replaced)
    st = laci_fail_memory(err, "the plain engine");
  for (int v = 0; v < graph->n_values && !st; v++)
    made->readers_left[v] = graph->values[v].n_readers;
  for (int at = 0; at < graph->n_outputs && !st; at++)
    st = load_output(made, graph->outputs[at], err);
  if (st) laci_plain_destroy(made);
  else *run = made;
  return st;
}

void laci_plain_destroy(laci_plain *run) {
  if (!run) return;
  for (int v = 0; run->values && v < run->graph->n_values; v++) laci_buf_destroy(run->values[v]);
  laci_free(run->values);
  laci_free(run->readers_left);
  laci_free(run->replaced);
  laci_free(run);
}

void laci_plain_limit(laci_plain *run, int64_t max_elements) { run->max_elements = max_elements; }

void laci_plain_budget(laci_plain *run, laci_budget *budget) { run->budget = budget; }

void laci_plain_keep(laci_plain *run, int64_t max_elements) { run->keep_elements = max_elements; }

void laci_plain_set(laci_plain *run, int value, laci_buf *take) {
  put(run, value, take);
  run->replaced[value] = true;
}

const laci_buf *laci_plain_value(const laci_plain *run, int value) { return run->values[value]; }

/** The node has read the value: frees it where no other will. */
static void release(laci_plain *run, int value) {
  const laci_value *v = &run->graph->values[value];
  bool last = run->readers_left[value] <= 0;
  bool stored = v->stored >= 0 && !run->replaced[value] && run->values[value];
  bool reload = stored && run->values[value]->count > run->keep_elements;
  if (!v->is_output && (last || reload)) put(run, value, NULL);
}

/** Does the node read that value at an earlier place, too? Its readers count it once. */
static bool read_before(const laci_node *node, int at, int value) {
  for (int before = 0; before < at; before++) {
    int other =
        before < node->n_inputs ? node->inputs[before] : node->captures[before - node->n_inputs];
    if (other == value) return true;
  }
  return false;
}

/** Frees what the last step left behind. */
static void release_last(laci_plain *run) {
  if (run->last < 0) return;
  const laci_node *node = &run->graph->nodes[run->last];
  for (int at = 0; at < node->n_inputs + node->n_captures; at++) {
    int value = at < node->n_inputs ? node->inputs[at] : node->captures[at - node->n_inputs];
    if (value < 0 || read_before(node, at, value)) continue;
    run->readers_left[value]--;
    release(run, value);
  }
  for (int at = 0; at < node->n_outputs; at++) {
    if (node->outputs[at] >= 0) release(run, node->outputs[at]);
  }
  run->last = -1;
}

static lac_status find_operand(laci_plain *run, const laci_node *node, int value, lac_error *err) {
  const laci_value *v = &run->graph->values[value];
  if (v->stored >= 0) return load_stored(run, value, err);
  if (run->values[value]) return LAC_OK;
  return laci_fail(err, LAC_UNSUPPORTED, "%s (%s): its input '%s' was not computed", node->name,
                   node->type, v->name);
}

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
    lac_status st = find_operand(run, node, node->inputs[at], err);
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

static lac_status find_shapes(const step *s, lac_error *err) {
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

static lac_status make_outputs(laci_plain *run, const step *s, lac_error *err) {
  char text[128];
  const laci_node *node = s->node;
  for (int at = 0; at < node->n_outputs; at++) {
    if (node->outputs[at] < 0 && at > 0) continue; /* every operator writes its first output */
    laci_type *type = &s->out_types[at];
    int64_t count = laci_shape_known(&type->shape) ? laci_shape_count(&type->shape) : -1;
    if (!laci_shape_known(&type->shape)) {
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
    if (node->outputs[at] >= 0) st = make_sure(run, node->outputs[at], type, err);
    if (!st) st = laci_buf_create(type->dtype, &type->shape, &s->out[at], err);
    if (st == LAC_MEMORY_LIMIT) return st; /* which names the node */
    if (st) return laci_fail_in(err, st, "%s (%s)", node->name, node->type);
  }
  return LAC_OK;
}

static void run_parallel(void *pool, int64_t n, laci_range_body *body, void *context) {
  int64_t grain = n / (8 * (int64_t)laci_pool_threads(pool));
  laci_pool_for(pool, n, grain > 1 ? grain : 1, body, context);
}

static lac_status evaluate(laci_plain *run, const step *s, lac_error *err) {
  laci_eval eval = {.node = s->node,
                    .n_in = s->node->n_inputs,
                    .n_out = s->node->n_outputs,
                    .in = s->in,
                    .out = s->out,
                    .parallel = run->pool ? run_parallel : NULL,
                    .pool = run->pool,
                    .err = err};
  return s->node->op->eval(&eval);
}

lac_status laci_plain_step(laci_plain *run, int node_id, lac_error *err) {
  const laci_node *node = &run->graph->nodes[node_id];
  step s = {.node = node};
  if (run->last != node_id) release_last(run);
  run->last = node_id;
  lac_status st = laci_engine_node_check(node, err);
  if (!st) st = step_init(run, node, &s, err);
  if (!st) st = find_shapes(&s, err);
  if (!st) st = make_outputs(run, &s, err);
  if (!st) st = evaluate(run, &s, err);
  for (int at = 0; at < node->n_outputs && !st; at++) {
    if (node->outputs[at] < 0) continue;
    put(run, node->outputs[at], s.out[at]);
    s.out[at] = NULL;
  }
  step_clear(&s);
  return st;
}

lac_status laci_plain_run_all(laci_plain *run, lac_error *err) {
  lac_status st = LAC_OK;
  for (int node = 0; node < run->graph->n_nodes && !st; node++)
    st = laci_plain_step(run, node, err);
  return st;
}

/* ---- Planning: the same walk over sizes alone ---- */

typedef struct outlook {
  const laci_graph *graph;
  const laci_type *types; /* [n_values] */
  const bool *skipped;    /* [n_stored], or NULL */
  laci_budget *now, most;
  uint64_t *held;    /* [n_values] bytes */
  int *readers_left; /* [n_values] */
} outlook;

static void foresee(outlook *o, int value) {
  const laci_value *v = &o->graph->values[value];
  if (o->held[value] || (v->stored >= 0 && o->skipped && o->skipped[v->stored])) return;
  o->held[value] = bytes_of_type(&o->types[value]);
  hold(o->now, o->graph, value, &o->types[value]);
  laci_budget_keep_most(&o->most, o->now);
}

static void give_back(outlook *o, int value) {
  const laci_value *v = &o->graph->values[value];
  bool reload = v->stored >= 0 && laci_shape_count(&o->types[value].shape) > default_keep;
  if (v->is_output || (o->readers_left[value] > 0 && !reload)) return;
  laci_budget_give_back(o->now, o->held[value]);
  o->held[value] = 0;
}

static void foresee_node(outlook *o, const laci_node *node) {
  int n_read = node->n_inputs + node->n_captures;
  for (int at = 0; at < node->n_inputs; at++) {
    int value = node->inputs[at];
    if (value >= 0 && o->graph->values[value].stored >= 0) foresee(o, value);
  }
  for (int at = 0; at < node->n_outputs; at++) {
    if (node->outputs[at] >= 0) foresee(o, node->outputs[at]);
  }
  for (int at = 0; at < n_read; at++) {
    int value = at < node->n_inputs ? node->inputs[at] : node->captures[at - node->n_inputs];
    if (value < 0 || read_before(node, at, value)) continue;
    o->readers_left[value]--;
    give_back(o, value);
  }
  for (int at = 0; at < node->n_outputs; at++) {
    if (node->outputs[at] >= 0) give_back(o, node->outputs[at]);
  }
}

lac_status laci_plain_plan(const laci_graph *graph, const laci_type *types, const bool *skipped,
                           laci_budget *budget, lac_error *err) {
  size_t n = (size_t)graph->n_values;
  laci_budget now = *budget;
  outlook o = {.graph = graph, .types = types, .skipped = skipped, .now = &now, .most = now};
  o.held = laci_alloc(n, sizeof *o.held);
  o.readers_left = laci_alloc(n, sizeof *o.readers_left);
  lac_status st = o.held && o.readers_left ? LAC_OK : laci_fail_memory(err, "the plan of a run");
  for (size_t v = 0; v < n && !st; v++) o.readers_left[v] = graph->values[v].n_readers;
  for (int at = 0; at < graph->n_inputs && !st; at++) foresee(&o, graph->inputs[at]);
  for (int at = 0; at < graph->n_outputs && !st; at++) {
    if (graph->values[graph->outputs[at]].stored >= 0) foresee(&o, graph->outputs[at]);
  }
  for (int at = 0; at < graph->n_nodes && !st; at++) foresee_node(&o, &graph->nodes[at]);
  laci_free(o.held);
  laci_free(o.readers_left);
  if (!st) *budget = o.most;
  return st;
}
