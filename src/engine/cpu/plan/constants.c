/* SPDX-License-Identifier: Apache-2.0
 * Infers the types of all values for the given input shapes, and computes the values that do not
 * depend on the inputs.
 *
 * The graph's own inference (graph/infer.h) writes into the graph and handles symbolic sizes. Here
 * every size is a number, the graph is shared and not changed, and constants of any size are
 * folded: one walk asks each operator for its shapes and evaluates constant nodes. Next: fuse.c. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/cpu/plan/plan.h"
#include "base/budget.h"
#include "base/error.h"
#include "base/memory.h"
#include "engine/row.h"
#include "graph/infer.h"
#include "graph/op.h"
#include "graph/ops.h"
#include "tensor/buf.h"

static const int64_t most_elements = (int64_t)1 << 31, most_folded = (int64_t)1 << 28;
enum { KNOWN_ELEMENTS = 4096 }; /* a shape rule may read contents of at most this many elements */

static void clear_constant(laci_constant *constant) {
  if (!constant) return;
  laci_free(constant->i);
  laci_free(constant->owned);
  constant->i = NULL;
  constant->owned = NULL;
  constant->f = NULL;
}

void laci_plan_free_constants(laci_cpu_plan *plan) {
  for (int v = 0; plan->values && v < plan->graph->n_values; v++)
    clear_constant(plan->values[v].constant);
  plan->constant_bytes = 0;
}

void laci_plan_clear(laci_cpu_plan *plan) {
  laci_plan_free_constants(plan);
  laci_free(plan->values);
  if (plan->memory) laci_arena_clear(plan->memory);
  laci_free(plan->memory);
}

/* ---- Contents ---- */

/** Reads n elements of a stored tensor from index `first`, in the file's type. */
static lac_status fetch_elements(const laci_cpu_plan *plan, const laci_stored *stored,
                                 int64_t first, int64_t n, void *to, lac_error *err) {
  size_t size = lac_dtype_size(stored->dtype), offset = (size_t)first * size;
  size_t bytes = (size_t)n * size;
  if (plan->fetch && !stored->owned) {
    return plan->fetch(plan->fetch_context, stored->bytes + offset, bytes, to, err);
  }
  if (bytes) memcpy(to, stored->bytes + offset, bytes);
  return LAC_OK;
}

static const laci_stored *stored_tensor_of_value(const laci_cpu_plan *plan, int value) {
  return &plan->graph->stored[plan->graph->values[value].stored];
}

lac_status laci_plan_read_floats(const laci_cpu_plan *plan, int value, int64_t first, int64_t n,
                                 float *to, lac_error *err) {
  enum { RUN = 2048 };
  const laci_constant *c = plan->values[value].constant;
  const laci_stored *stored = c->f ? NULL : stored_tensor_of_value(plan, value);
  if (c->f) memcpy(to, c->f + first, (size_t)n * sizeof *to);
  if (c->f) return LAC_OK;
  if (stored->dtype == LAC_DTYPE_F32) return fetch_elements(plan, stored, first, n, to, err);
  double run[RUN], bytes[RUN];
  for (int64_t at = 0; at < n; at += RUN) {
    int64_t some = n - at < RUN ? n - at : RUN;
    lac_status st = fetch_elements(plan, stored, first + at, some, bytes, err);
    if (st) return st;
    laci_read_f64(stored->dtype, bytes, 0, some, run);
    for (int64_t i = 0; i < some; i++) to[at + i] = (float)run[i];
  }
  return LAC_OK;
}

const float *laci_plan_constant_floats(laci_cpu_plan *plan, int value) {
  laci_constant *c = plan->values[value].constant;
  lac_error why = {0};
  if (!c || c->i || c->f || plan->status || !laci_plan_is_float(plan, value))
    return c ? c->f : NULL;
  if (!laci_plan_check_budget(plan, laci_count_bytes_saturated(c->count, sizeof *c->f), value))
    return NULL;
  float *floats = laci_alloc((size_t)c->count, sizeof *floats);
  if (!floats) {
    laci_plan_fail_no_memory(plan);
    return NULL;
  }
  lac_status st = laci_plan_read_floats(plan, value, 0, c->count, floats, &why);
  if (st) {
    laci_plan_fail(plan, st, "%s: %s", plan->graph->values[value].name, why.text);
    laci_free(floats);
    return NULL;
  }
  c->f = c->owned = floats;
  plan->constant_bytes += (size_t)c->count * sizeof *floats;
  return floats;
}

static lac_status copy_stored_tensor(const laci_cpu_plan *plan, int value, laci_buf **buf,
                                     lac_error *err) {
  const laci_stored *stored = stored_tensor_of_value(plan, value);
  if (!plan->fetch || stored->owned) {
    return laci_buf_from_bytes(&plan->values[value].type, stored->bytes, stored->size_bytes, buf,
                               err);
  }
  void *bytes = laci_alloc(stored->size_bytes, 1);
  if (!bytes) return laci_fail_memory(err, stored->name);
  lac_status st = fetch_elements(
      plan, stored, 0, (int64_t)(stored->size_bytes / lac_dtype_size(stored->dtype)), bytes, err);
  if (!st) {
    st = laci_buf_from_bytes(&plan->values[value].type, bytes, stored->size_bytes, buf, err);
  }
  laci_free(bytes);
  return st;
}

/** Copies a constant. A failure does not fail the plan: inference can often do without the
 * content. */
static lac_status copy_constant(const laci_cpu_plan *plan, int value, laci_buf **buf,
                                lac_error *err) {
  const laci_plan_value *v = &plan->values[value];
  const laci_constant *c = v->constant;
  if (!c->f && !c->i) return copy_stored_tensor(plan, value, buf, err);
  lac_status st = laci_buf_create(v->type.dtype, &v->type.shape, buf, err);
  if (st) return st;
  for (int64_t at = 0; (*buf)->f && at < c->count; at++) (*buf)->f[at] = (double)c->f[at];
  if ((*buf)->i) memcpy((*buf)->i, c->i, (size_t)c->count * sizeof *c->i);
  return LAC_OK;
}

laci_buf *laci_plan_copy_constant(laci_cpu_plan *plan, int value) {
  laci_buf *buf = NULL;
  const laci_constant *c = plan->values[value].constant;
  if (plan->status || !c) return NULL;
  if (!laci_plan_check_budget(plan, laci_count_bytes_saturated(c->count, sizeof *buf->f), value))
    return NULL;
  lac_error why = {0};
  lac_status st = copy_constant(plan, value, &buf, &why);
  if (st) laci_plan_fail(plan, st, "%s: %s", plan->graph->values[value].name, why.text);
  return st ? NULL : buf;
}

bool laci_plan_read_scalar(laci_cpu_plan *plan, int value, double *x) {
  const laci_constant *c = plan->values[value].constant;
  if (!c || c->count != 1) return false;
  laci_buf *buf = NULL;
  lac_status st = copy_constant(plan, value, &buf, NULL);
  if (st == LAC_NO_MEMORY)
    laci_plan_fail_no_memory(plan); /* the plan fails: to go on without this constant would give
                                       another plan, depending on the free memory */
  if (st) return false;
  *x = laci_buf_get_f(buf, 0);
  laci_buf_destroy(buf);
  return true;
}

/** Stores a folded result in the plan; floats as f32. */
static lac_status store_constant(laci_cpu_plan *plan, int value, laci_buf *buf, lac_error *err) {
  laci_constant *c = laci_plan_try_alloc(plan, 1, sizeof *c);
  if (!c) return laci_fail_memory(err, "constants");
  c->count = buf->count;
  plan->values[value].constant = c;
  if (buf->i) {
    c->i = buf->i;
    buf->i = NULL;
    plan->constant_bytes += (size_t)c->count * sizeof *c->i;
    return LAC_OK;
  }
  c->owned = laci_alloc((size_t)buf->count, sizeof *c->owned);
  if (!c->owned) return laci_fail_memory(err, "constants");
  for (int64_t at = 0; at < buf->count; at++) c->owned[at] = (float)buf->f[at];
  c->f = c->owned;
  plan->constant_bytes += (size_t)c->count * sizeof *c->f;
  return LAC_OK;
}

/* ---- Inputs ---- */

static lac_status fix_input_shape(laci_cpu_plan *plan, const laci_input_shape *fixed,
                                  int64_t *bound, lac_error *err) {
  char found[128], wanted[128];
  int id = laci_graph_find_value(plan->graph, fixed->name);
  if (id < 0 || !plan->graph->values[id].is_input) {
    return laci_graph_fail_unknown_input(plan->graph, fixed->name, err);
  }
  laci_shape *shape = &plan->values[id].type.shape;
  if (shape->rank < 0) {
    *shape = fixed->shape;
    return LAC_OK;
  }
  bool fits = shape->rank == fixed->shape.rank;
  for (int axis = 0; fits && axis < shape->rank; axis++) {
    int64_t size = fixed->shape.dims[axis];
    if (size < 0) continue;
    if (shape->dims[axis] >= 0) {
      fits = shape->dims[axis] == size;
    } else {
      int64_t *slot = &bound[-shape->dims[axis]];
      fits = *slot < 0 || *slot == size;
      *slot = size;
    }
  }
  if (fits) return LAC_OK;
  return laci_fail(err, LAC_BAD_SHAPE, "input '%s' has shape %s, which cannot be %s", fixed->name,
                   laci_shape_text(shape, found, sizeof found),
                   laci_shape_text(&fixed->shape, wanted, sizeof wanted));
}

static lac_status check_input_type(const laci_cpu_plan *plan, int value, lac_error *err) {
  const laci_type *type = &plan->values[value].type;
  const char *name = plan->graph->values[value].name;
  char text[128];
  if (type->shape.rank < 0) return laci_fail(err, LAC_BAD_SHAPE, "input '%s' needs a shape", name);
  if (!laci_shape_is_known(&type->shape)) {
    return laci_fail(err, LAC_BAD_SHAPE, "input '%s' has shape %s: every size must be given", name,
                     laci_shape_text(&type->shape, text, sizeof text));
  }
  int64_t count = laci_shape_count(&type->shape);
  if (count < 0 || count > most_elements) {
    return laci_fail(err, LAC_BAD_SHAPE, "input '%s' has shape %s, more than %lld elements", name,
                     laci_shape_text(&type->shape, text, sizeof text), (long long)most_elements);
  }
  if (!laci_dtype_is_float(type->dtype) && !laci_dtype_is_integer(type->dtype)) {
    return laci_fail(err, LAC_UNSUPPORTED, "input '%s' holds %s", name,
                     lac_dtype_name(type->dtype));
  }
  return LAC_OK;
}

/** Sets the input shapes: the declared ones, with the sizes that the caller fixes wherever the file
 * uses the same symbol. */
static lac_status fix_input_shapes(laci_cpu_plan *plan, const laci_input_shape *fixed, int n_fixed,
                                   lac_error *err) {
  const laci_graph *graph = plan->graph;
  int64_t *bound = laci_alloc((size_t)graph->n_symbols + 1, sizeof *bound);
  if (!bound) return laci_fail_memory(err, "input shapes");
  for (int at = 0; at <= graph->n_symbols; at++) bound[at] = -1;
  lac_status st = LAC_OK;
  for (int at = 0; at < n_fixed && !st; at++) st = fix_input_shape(plan, &fixed[at], bound, err);
  for (int at = 0; at < graph->n_inputs && !st; at++) {
    laci_type *type = &plan->values[graph->inputs[at]].type;
    for (int axis = 0; axis < type->shape.rank; axis++) {
      int64_t *size = &type->shape.dims[axis];
      if (*size < 0 && bound[-*size] >= 0) *size = bound[-*size];
    }
    if (type->dtype == LAC_DTYPE_NONE) type->dtype = LAC_DTYPE_F32;
    st = check_input_type(plan, graph->inputs[at], err);
  }
  laci_free(bound);
  return st;
}

/* ---- Nodes ---- */

static int64_t return_unknown_size(laci_infer *infer) {
  (void)infer;
  return -1;
}

typedef struct node_inference {
  const laci_type **in;
  const laci_buf **known;
  laci_buf **owned; /* the same buffers as `known`; freed by node_inference_clear */
  laci_buf *shapes; /* buffers without elements, for operands of which the operator reads only the
                       shape */
  laci_type *out;
  laci_buf **results;
} node_inference;

static void node_inference_clear(const laci_node *node, node_inference *l) {
  for (int at = 0; l->owned && at < node->n_inputs; at++) laci_buf_destroy(l->owned[at]);
  for (int at = 0; l->results && at < node->n_outputs; at++) laci_buf_destroy(l->results[at]);
  laci_free(l->in);
  laci_free(l->known);
  laci_free(l->owned);
  laci_free(l->shapes);
  laci_free(l->out);
  laci_free(l->results);
}

static lac_status node_inference_init(laci_cpu_plan *plan, const laci_node *node, bool all,
                                      node_inference *l, lac_error *err) {
  size_t n_in = (size_t)node->n_inputs, n_out = (size_t)node->n_outputs;
  uint64_t held = 0;
  *l = (node_inference){.in = laci_alloc(n_in, sizeof *l->in),
                        .known = laci_alloc(n_in, sizeof *l->known),
                        .owned = laci_alloc(n_in, sizeof *l->owned),
                        .shapes = laci_alloc(n_in, sizeof *l->shapes),
                        .out = laci_alloc(n_out, sizeof *l->out),
                        .results = laci_alloc(n_out, sizeof *l->results)};
  if (!l->in || !l->known || !l->owned || !l->shapes || !l->out || !l->results) {
    return laci_fail_memory(err, node->name);
  }
  for (int at = 0; at < node->n_outputs; at++) l->out[at].shape = laci_shape_unknown();
  for (int at = 0; at < node->n_inputs; at++) {
    if (node->inputs[at] < 0) continue;
    const laci_plan_value *v = &plan->values[node->inputs[at]];
    l->in[at] = &v->type;
    if (!v->constant || (!all && v->constant->count > KNOWN_ELEMENTS)) continue;
    held += laci_count_bytes_saturated(v->constant->count, sizeof(double));
    if (all && !laci_plan_check_budget(plan, held, node->inputs[at])) return plan->status;
    lac_status st = copy_constant(plan, node->inputs[at], &l->owned[at], err);
    if (st == LAC_NO_MEMORY || (st && all)) return st;
    l->known[at] = st ? NULL : l->owned[at];
  }
  return LAC_OK;
}

/** Is the node's result the same in every run? */
static bool is_constant_node(const laci_cpu_plan *plan, const laci_node *node) {
  if (node->n_captures > 0) return false;
  for (int at = 0; at < node->n_inputs && !node->op->shape_only; at++) {
    if (node->inputs[at] >= 0 && !plan->values[node->inputs[at]].constant) return false;
  }
  return true;
}

static lac_status set_output_types(laci_cpu_plan *plan, const laci_node *node,
                                   const node_inference *l, lac_error *err) {
  char text[128];
  for (int at = 0; at < node->n_outputs; at++) {
    if (node->outputs[at] < 0) continue;
    laci_type *type = &plan->values[node->outputs[at]].type;
    lac_dtype declared = type->dtype;
    *type = l->out[at];
    if (type->dtype == LAC_DTYPE_NONE) type->dtype = declared;
    if (type->dtype != LAC_DTYPE_NONE && !laci_dtype_is_numeric(type->dtype)) {
      return laci_fail(err, LAC_UNSUPPORTED, "%s (%s): cannot compute with elements of type %s",
                       node->name, node->type, lac_dtype_name(type->dtype));
    }
    if (!laci_shape_is_known(&type->shape)) {
      return laci_fail(err, LAC_UNSUPPORTED,
                       "%s (%s): the shape of output %d is not known from the inputs' shapes",
                       node->name, node->type, at);
    }
    int64_t count = laci_shape_count(&type->shape);
    if (count < 0 || count > most_elements) {
      return laci_fail(err, LAC_BAD_SHAPE,
                       "%s (%s): output %d would have shape %s, more than %" PRId64 " elements",
                       node->name, node->type, at, laci_shape_text(&type->shape, text, sizeof text),
                       most_elements);
    }
  }
  return LAC_OK;
}

/** Does the budget allow the node's results to be computed and stored? */
static bool may_fold(laci_cpu_plan *plan, const laci_node *node) {
  uint64_t bytes = 0;
  for (int at = 0; at < node->n_outputs; at++) {
    if (node->outputs[at] < 0) continue;
    int64_t count = laci_shape_count(&plan->values[node->outputs[at]].type.shape);
    bytes += laci_count_bytes_saturated(count, sizeof(double) + sizeof(float));
    if (!laci_plan_check_budget(plan, bytes, node->outputs[at])) return false;
  }
  return true;
}

static lac_status fold_node(laci_cpu_plan *plan, const laci_node *node, node_inference *l,
                            lac_error *err) {
  lac_status st = may_fold(plan, node) ? LAC_OK : plan->status;
  for (int at = 0; at < node->n_inputs; at++) {
    if (!l->in[at] || l->known[at]) continue;
    l->shapes[at] = (laci_buf){.dtype = l->in[at]->dtype, .shape = l->in[at]->shape, .count = -1};
    l->known[at] = &l->shapes[at];
  }
  for (int at = 0; at < node->n_outputs && !st; at++) {
    if (node->outputs[at] < 0) continue;
    const laci_type *type = &plan->values[node->outputs[at]].type;
    st = laci_buf_create(type->dtype, &type->shape, &l->results[at], err);
  }
  laci_eval eval = {.node = node,
                    .n_in = node->n_inputs,
                    .n_out = node->n_outputs,
                    .in = l->known,
                    .out = l->results,
                    .err = err};
  if (!st) st = node->op->eval(&eval);
  if (!st) laci_eval_round_outputs_to_types(&eval, false);
  for (int at = 0; at < node->n_outputs && !st; at++) {
    if (l->results[at]) st = store_constant(plan, node->outputs[at], l->results[at], err);
  }
  return st;
}

/** Is the node a Cast of stored bytes to f32, as large matrices of quantized networks are? */
static bool is_cast_of_stored_bytes(const laci_cpu_plan *plan, const laci_node *node) {
  if (node->op != &laci_op_cast || node->n_inputs != 1 || node->inputs[0] < 0) return false;
  const laci_plan_value *x = &plan->values[node->inputs[0]];
  return x->constant && !x->constant->f && !x->constant->i && node->outputs[0] >= 0 &&
         (x->type.dtype == LAC_DTYPE_U8 || x->type.dtype == LAC_DTYPE_I8) &&
         laci_node_int(node, "to", 0) == LAC_DTYPE_F32;
}

/** Writes a constant's n stored bytes as floats. */
static lac_status read_bytes_as_floats(const laci_cpu_plan *plan, int value, int64_t n, float *to,
                                       lac_error *err) {
  enum { RUN = 4096 };
  const bool is_signed = plan->values[value].type.dtype == LAC_DTYPE_I8;
  uint8_t run[RUN];
  lac_status st = LAC_OK;
  for (int64_t at = 0; at < n && !st; at += RUN) {
    const int64_t some = n - at < RUN ? n - at : RUN;
    st = fetch_elements(plan, stored_tensor_of_value(plan, value), at, some, run, err);
    for (int64_t i = 0; i < some && !st; i++)
      to[at + i] = is_signed ? (float)(int8_t)run[i] : (float)run[i];
  }
  return st;
}

/** Folds a Cast of stored bytes to f32. The operator's evaluation would take 20 bytes of memory for
 * each of them in between. */
static lac_status fold_cast_of_bytes(laci_cpu_plan *plan, const laci_node *node, lac_error *err) {
  const int x = node->inputs[0], y = node->outputs[0];
  const int64_t count = plan->values[x].constant->count;
  const uint64_t bytes = laci_count_bytes_saturated(count, sizeof(float));
  if (!laci_plan_check_budget(plan, bytes, y)) return plan->status;
  laci_constant *c = laci_plan_try_alloc(plan, 1, sizeof *c);
  float *floats = laci_alloc((size_t)count, sizeof *floats);
  lac_status st = c && floats ? read_bytes_as_floats(plan, x, count, floats, err)
                              : laci_fail_memory(err, "constants");
  if (st) {
    laci_free(floats);
    return st;
  }
  *c = (laci_constant){.count = count, .f = floats, .owned = floats};
  plan->values[y].constant = c;
  plan->constant_bytes += (size_t)bytes;
  return LAC_OK;
}

static int64_t find_largest_output(const laci_cpu_plan *plan, const laci_node *node) {
  int64_t most = 0;
  for (int at = 0; at < node->n_outputs; at++) {
    if (node->outputs[at] < 0) continue;
    int64_t count = laci_shape_count(&plan->values[node->outputs[at]].type.shape);
    if (count > most) most = count;
  }
  return most;
}

static lac_status infer_node(laci_cpu_plan *plan, int id, lac_error *err) {
  const laci_node *node = &plan->graph->nodes[id];
  node_inference l = {0};
  lac_status st = laci_engine_check_has_evaluation(node, err);
  if (st) return st;
  bool constant = is_constant_node(plan, node),
       bytes = constant && is_cast_of_stored_bytes(plan, node);
  st = node_inference_init(plan, node, constant && !bytes && !node->op->shape_only, &l, err);
  if (st) goto out;
  laci_infer infer = {.node = node,
                      .n_in = node->n_inputs,
                      .n_out = node->n_outputs,
                      .in = l.in,
                      .known = l.known,
                      .out = l.out,
                      .new_symbol = return_unknown_size,
                      .err = err};
  st = node->op->infer(&infer);
  if (!st) st = set_output_types(plan, node, &l, err);
  if (!st && constant && find_largest_output(plan, node) <= most_folded)
    st = bytes ? fold_cast_of_bytes(plan, node, err) : fold_node(plan, node, &l, err);
out:
  node_inference_clear(node, &l);
  return st;
}

static lac_status init_values(laci_cpu_plan *plan, lac_error *err) {
  const laci_graph *graph = plan->graph;
  plan->values = laci_alloc((size_t)graph->n_values, sizeof *plan->values);
  if (!plan->values) return laci_fail_memory(err, "the plan's values");
  for (int v = 0; v < graph->n_values; v++) {
    plan->values[v] = (laci_plan_value){.type = graph->values[v].type, .tensor = -1};
  }
  for (int at = 0; at < graph->n_stored; at++) {
    const laci_stored *stored = &graph->stored[at];
    int64_t count = laci_shape_count(&stored->shape);
    bool usable = laci_dtype_is_numeric(stored->dtype);
    if (stored->value < 0 || count < 0 || !usable) continue;
    if ((uint64_t)count > stored->size_bytes / lac_dtype_size(stored->dtype)) {
      return laci_fail(err, LAC_BAD_SHAPE, "%s: %zu bytes are fewer than its shape wants",
                       stored->name, stored->size_bytes);
    }
    laci_constant *c = laci_plan_try_alloc(plan, 1, sizeof *c);
    if (!c) return laci_fail_memory(err, "constants");
    c->count = count;
    plan->values[stored->value].constant = c;
    plan->values[stored->value].type = (laci_type){.dtype = stored->dtype, .shape = stored->shape};
  }
  return LAC_OK;
}

lac_status laci_plan_infer_types(laci_cpu_plan *plan, const laci_input_shape *fixed, int n_fixed,
                                 lac_error *err) {
  lac_status st = init_values(plan, err);
  if (!st) st = fix_input_shapes(plan, fixed, n_fixed, err);
  for (int node = 0; node < plan->graph->n_nodes && !st; node++) st = infer_node(plan, node, err);
  return st;
}

/* ---- Inference of graphs with nodes that cannot be run ---- */

/** Can a step read or write the value: has it numbers, and a known size? */
static bool is_numeric_of_known_size(const laci_type *type) {
  if (!laci_dtype_is_numeric(type->dtype) || !laci_shape_is_known(&type->shape)) return false;
  const int64_t count = laci_shape_count(&type->shape);
  return count >= 0 && count <= most_elements;
}

static bool are_all_numeric_of_known_size(const laci_cpu_plan *plan, const int *values, int n) {
  for (int at = 0; at < n; at++) {
    if (values[at] >= 0 && !is_numeric_of_known_size(&plan->values[values[at]].type)) return false;
  }
  return true;
}

/** Infers one node. Fails as infer_node; LAC_UNSUPPORTED with an empty text means that an operand
 * is not known. */
static lac_status try_to_infer_node(laci_cpu_plan *plan, int id, lac_error *why) {
  const laci_node *node = &plan->graph->nodes[id];
  lac_status st = laci_engine_check_has_evaluation(node, why);
  if (!st && (node->body || node->n_captures > 0 ||
              !are_all_numeric_of_known_size(plan, node->inputs, node->n_inputs))) {
    return LAC_UNSUPPORTED;
  }
  if (!st) st = infer_node(plan, id, why);
  if (!st && !are_all_numeric_of_known_size(plan, node->outputs, node->n_outputs)) {
    st = laci_fail(why, LAC_UNSUPPORTED, "%s (%s): its results are no numbers", node->name,
                   node->type);
  }
  return st;
}

static void set_known_types(laci_cpu_plan *plan, const laci_node *node, const laci_type *types) {
  for (int at = 0; at < node->n_outputs; at++) {
    if (node->outputs[at] < 0) continue;
    laci_plan_value *v = &plan->values[node->outputs[at]];
    clear_constant(v->constant);
    *v = (laci_plan_value){.type = types[node->outputs[at]], .tensor = -1};
  }
}

/** Returns why the node is not run. found: the reason that inference gave; "": an operand is not
 * known. NULL: no memory. */
static const char *explain_why_node_is_not_run(const laci_cpu_plan *plan, const laci_node *node,
                                               const char *found, laci_arena *memory) {
  char text[256];
  if (found[0]) return laci_arena_text(memory, found);
  if (node->body || node->n_captures > 0)
    return laci_arena_text(memory, "it is in a body of If, Loop or Scan");
  for (int at = 0; at < node->n_inputs; at++) {
    const int value = node->inputs[at];
    if (value < 0 || is_numeric_of_known_size(&plan->values[value].type)) continue;
    (void)snprintf(text, sizeof text, "it reads '%.200s', whose size or type is not known",
                   plan->graph->values[value].name);
    return laci_arena_text(memory, text);
  }
  return laci_arena_text(memory, "a type is not known");
}

static lac_status record_if_node_runs(laci_cpu_plan *plan, int id, laci_engine_reached *reached,
                                      lac_error *err) {
  const laci_node *node = &plan->graph->nodes[id];
  lac_error why = {0};
  lac_status st = try_to_infer_node(plan, id, &why);
  if (st == LAC_NO_MEMORY || plan->status) {
    return laci_fail(err, plan->status ? plan->status : st, "%s", why.text);
  }
  reached->nodes[id] = st                             ? LACI_REACH_NOT
                       : is_constant_node(plan, node) ? LACI_REACH_CONSTANT
                                                      : LACI_REACH_RUNS;
  if (st) set_known_types(plan, node, reached->types);
  if (st && reached->reasons) {
    reached->reasons[id] = explain_why_node_is_not_run(plan, node, why.text, reached->memory);
    if (!reached->reasons[id]) return laci_fail_memory(err, "a reason");
  }
  if (st && reached->first < 0 && why.text[0]) {
    reached->first = id;
    *reached->why = why;
  }
  return LAC_OK;
}

lac_status laci_plan_infer_runnable(laci_cpu_plan *plan, const laci_input_shape *fixed, int n_fixed,
                                    laci_engine_reached *reached, lac_error *err) {
  lac_status st = init_values(plan, err);
  reached->first = -1;
  if (!st) st = fix_input_shapes(plan, fixed, n_fixed, err);
  for (int n = 0; n < plan->graph->n_nodes && !st; n++)
    st = record_if_node_runs(plan, n, reached, err);
  for (int v = 0; v < plan->graph->n_values && !st; v++) reached->types[v] = plan->values[v].type;
  return st;
}

bool laci_plan_is_float(const laci_cpu_plan *plan, int value) {
  return laci_dtype_is_float(plan->values[value].type.dtype);
}
