/* SPDX-License-Identifier: Apache-2.0
 * Shape inference: node by node in execution order, shapes first, then the contents of small
 * tensors.
 *
 * Old and new exporters compute sizes with the network itself (Shape, Gather, Concat, Reshape).
 * Evaluating those chains on contents that hold symbols for unknown sizes gives plain constants for
 * most of them. Inferred shapes replace those that the file declares, for exporters write wrong
 * shapes. Where the shape of an input or of an operator's output is unknown, the stored weight of
 * its reader tells a part of it (op->expect), and all nodes are inferred once more. Next: op.h
 * (what an operator declares), ops/shared/op_in.h. */
#include "graph/infer.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/acquire.h"
#include "base/log.h"
#include "base/memory.h"
#include "graph/coupling.h"
#include "graph/loops_in.h"
#include "graph/op.h"
#include "tensor/buf.h"
#include "tensor/elements.h"

enum {
  KEPT_ELEMENTS = 4096, /* contents up to this many elements are kept */
  /* an integer tensor of unknown content is filled with symbols up to this many elements */
  SYMBOL_ELEMENTS = 64,
};

typedef struct inference {
  laci_graph *graph;
  int symbols_before; /* number of symbols before the current node; larger ones were made for it */
  /* a reader of a value determined a shape that earlier nodes could have used, so all nodes are
   * inferred again */
  bool again;
  laci_loops *loops; /* shapes of values that loops carry; NULL: the graph has no bodies */
  lac_error *err;
} inference;

/* ---- Sizes that the caller fixes ---- */

static lac_status fix_size_of_symbol(int64_t *bound, const char *input, int64_t symbol,
                                     int64_t size, lac_error *err) {
  int64_t *slot = &bound[-symbol];
  if (*slot >= 0 && *slot != size) {
    return laci_fail(err, LAC_BAD_SHAPE,
                     "input '%s': one size is asked to be %" PRId64 " and %" PRId64, input, *slot,
                     size);
  }
  *slot = size;
  return LAC_OK;
}

static lac_status set_input_shape(laci_graph *graph, const laci_input_shape *fixed, int64_t *bound,
                                  lac_error *err) {
  int id = laci_graph_find_value(graph, fixed->name);
  if (id < 0 || !graph->values[id].is_input) {
    return laci_graph_fail_unknown_input(graph, fixed->name, err);
  }
  laci_shape *shape = &graph->values[id].type.shape;
  if (shape->rank < 0) {
    *shape = fixed->shape;
    for (int axis = 0; axis < shape->rank; axis++) {
      if (shape->dims[axis] < 0) shape->dims[axis] = laci_graph_add_symbol(graph);
    }
    return LAC_OK;
  }
  char found[128], wanted[128];
  bool fits = shape->rank == fixed->shape.rank;
  for (int axis = 0; fits && axis < shape->rank; axis++) {
    int64_t size = fixed->shape.dims[axis];
    if (size < 0) continue;
    if (shape->dims[axis] < 0) {
      lac_status st = fix_size_of_symbol(bound, fixed->name, shape->dims[axis], size, err);
      if (st) return st;
    } else if (shape->dims[axis] != size) {
      fits = false;
    }
  }
  if (fits) return LAC_OK;
  return laci_fail(err, LAC_BAD_SHAPE, "input '%s' has shape %s, which cannot be %s", fixed->name,
                   laci_shape_text(shape, found, sizeof found),
                   laci_shape_text(&fixed->shape, wanted, sizeof wanted));
}

/** Sets the sizes that the caller fixes, in every declared shape that has their symbols. */
static lac_status set_input_shapes(laci_graph *graph, const laci_input_shape *fixed, int n_fixed,
                                   lac_error *err) {
  if (n_fixed == 0) return LAC_OK;
  int n_symbols = graph->n_symbols;
  int64_t *bound = laci_alloc((size_t)n_symbols + 1, sizeof *bound);
  if (!bound) return laci_fail_memory(err, "input shapes");
  for (int at = 0; at <= n_symbols; at++) bound[at] = -1;
  lac_status st = LAC_OK;
  for (int at = 0; at < n_fixed && !st; at++) st = set_input_shape(graph, &fixed[at], bound, err);
  for (int v = 0; v < graph->n_values && !st; v++) {
    laci_shape *shape = &graph->values[v].type.shape;
    for (int axis = 0; axis < shape->rank; axis++) {
      int64_t size = shape->dims[axis];
      if (size < 0 && -size <= n_symbols && bound[-size] >= 0) shape->dims[axis] = bound[-size];
    }
  }
  laci_free(bound);
  return st;
}

/* ---- Contents ---- */

static bool has_symbols(const laci_buf *buf) {
  for (int64_t at = 0; buf && buf->i && at < buf->count; at++) {
    if (laci_is_symbol(buf->i[at])) return true;
  }
  return false;
}

static lac_status read_small_content(laci_graph *graph, const laci_stored *stored, lac_error *err) {
  laci_value *value = &graph->values[stored->value];
  int64_t count = laci_shape_count(&stored->shape);
  bool small = count >= 0 && count <= KEPT_ELEMENTS;
  if (!small || stored->overridable) return LAC_OK;
  laci_type type = {.dtype = stored->dtype, .shape = stored->shape};
  laci_acquired_bytes held;
  lac_status st = laci_stored_acquire(graph, stored, &held, err);
  if (st) return st;
  st = laci_buf_from_bytes(&type, held.bytes, stored->size_bytes, &value->known, NULL);
  laci_bytes_release(&held);
  if (st == LAC_NO_MEMORY) return laci_fail_memory(err, stored->name);
  /* An integer of the file that equals a symbol would be taken for one, so the content of such a
   * tensor counts as unknown. */
  if (has_symbols(value->known)) {
    laci_buf_destroy(value->known);
    value->known = NULL;
  }
  return LAC_OK;
}

static void fill_with_new_symbols(laci_graph *graph, laci_buf *buf) {
  for (int64_t at = 0; at < buf->count; at++) {
    buf->i[at] = laci_element_from_size(laci_graph_add_symbol(graph));
  }
}

/** Fills a short integer tensor of unknown content with symbols, so that contents computed from it
 * have known lengths. */
static lac_status fill_unknown_content_with_symbols(laci_graph *graph, laci_value *value) {
  int64_t count = laci_shape_count(&value->type.shape);
  if (value->known || count < 0 || count > SYMBOL_ELEMENTS) return LAC_OK;
  if (!laci_dtype_is_integer(value->type.dtype)) return LAC_OK;
  lac_status st = laci_buf_create(value->type.dtype, &value->type.shape, &value->known, NULL);
  if (!st) fill_with_new_symbols(graph, value->known);
  return st;
}

static int64_t new_symbolic_element(const laci_eval *eval) {
  return laci_element_from_size(laci_graph_add_symbol(eval->owner));
}

/** The arguments for the functions `infer` and `eval` of one node's operator; all arrays are in one
 * allocation. */
typedef struct node_view {
  const laci_type **in;
  const laci_buf **known;
  laci_type *out;
  const laci_buf **operands;
  laci_buf **results;
  laci_buf *shapes; /* operands without content, for shape_only operators */
} node_view;

static void node_view_clear(const laci_node *node, node_view *view) {
  for (int at = 0; view->results && at < node->n_outputs; at++) laci_buf_destroy(view->results[at]);
  laci_free(view->in);
  laci_free(view->known);
  laci_free(view->out);
  laci_free(view->operands);
  laci_free(view->results);
  laci_free(view->shapes);
}

static bool node_view_init(const laci_graph *graph, const laci_node *node, node_view *view) {
  size_t n_in = (size_t)node->n_inputs, n_out = (size_t)node->n_outputs;
  *view = (node_view){.in = laci_alloc(n_in, sizeof *view->in),
                      .known = laci_alloc(n_in, sizeof *view->known),
                      .out = laci_alloc(n_out, sizeof *view->out),
                      .operands = laci_alloc(n_in, sizeof *view->operands),
                      .results = laci_alloc(n_out, sizeof *view->results),
                      .shapes = laci_alloc(n_in, sizeof *view->shapes)};
  if (!view->in || !view->known || !view->out || !view->operands || !view->results ||
      !view->shapes) {
    return false;
  }
  for (int at = 0; at < node->n_inputs; at++) {
    if (node->inputs[at] < 0) continue;
    const laci_value *value = &graph->values[node->inputs[at]];
    view->in[at] = &value->type;
    view->known[at] = value->known;
  }
  for (int at = 0; at < node->n_outputs; at++) view->out[at].shape = laci_shape_unknown();
  return true;
}

/** Can the node be evaluated from known contents? If so, sets its operands. */
static bool set_known_operands(const laci_node *node, node_view *view) {
  for (int at = 0; at < node->n_inputs; at++) {
    if (!view->in[at]) continue;
    view->operands[at] = view->known[at];
    if (!view->operands[at] && node->op->shape_only && view->in[at]->shape.rank >= 0) {
      view->shapes[at] =
          (laci_buf){.dtype = view->in[at]->dtype, .shape = view->in[at]->shape, .count = -1};
      view->operands[at] = &view->shapes[at];
    }
    if (!view->operands[at]) return false;
  }
  return true;
}

static lac_status allocate_results(const laci_graph *graph, const laci_node *node,
                                   node_view *view) {
  for (int at = 0; at < node->n_outputs; at++) {
    if (node->outputs[at] < 0) continue;
    const laci_type *type = &graph->values[node->outputs[at]].type;
    int64_t count = laci_shape_count(&type->shape);
    if (count < 0 || count > KEPT_ELEMENTS) return LAC_UNSUPPORTED;
    lac_status st = laci_buf_create(type->dtype, &type->shape, &view->results[at], NULL);
    if (st) return st;
  }
  return LAC_OK;
}

static void store_known_results(laci_graph *graph, const laci_node *node, node_view *view,
                                bool symbols_in) {
  bool careful = node->op->moves_data || node->op->symbol_safe || node->op->shape_only;
  for (int at = 0; at < node->n_outputs; at++) {
    laci_buf *result = view->results[at];
    /* a float cannot be a symbol: its content stays unknown */
    if (!result || (symbols_in && result->f)) continue;
    if (symbols_in && !careful) fill_with_new_symbols(graph, result);
    graph->values[node->outputs[at]].known = result;
    view->results[at] = NULL;
  }
}

/** Evaluates a small pure node. If that fails (an index is outside, say), the content of its
 * outputs stays unknown. */
static lac_status evaluate_known_node(laci_graph *graph, const laci_node *node, node_view *view) {
  if (!set_known_operands(node, view)) return LAC_OK;
  lac_status st = allocate_results(graph, node, view);
  if (st) return st == LAC_NO_MEMORY ? st : LAC_OK;
  bool symbols_in = false;
  for (int at = 0; at < node->n_inputs; at++) symbols_in |= has_symbols(view->operands[at]);
  laci_eval eval = {.node = node,
                    .n_in = node->n_inputs,
                    .n_out = node->n_outputs,
                    .in = view->operands,
                    .out = view->results,
                    .new_symbol = new_symbolic_element,
                    .owner = graph};
  st = node->op->eval(&eval);
  if (!st) laci_eval_round_outputs_to_types(&eval, false);
  if (!st) store_known_results(graph, node, view, symbols_in);
  return st == LAC_NO_MEMORY ? st : LAC_OK;
}

/* ---- Nodes ---- */

static int64_t new_size_symbol(laci_infer *infer) {
  inference *job = infer->owner;
  return laci_graph_add_symbol(job->graph);
}

/** Returns the inferred size, or the declared one if inference does not know the size. */
static int64_t choose_inferred_or_declared_size(const inference *job, int64_t inferred,
                                                int64_t declared) {
  return inferred < -(int64_t)job->symbols_before ? declared : inferred;
}

static void merge_inferred_type(const inference *job, laci_value *value,
                                const laci_type *inferred) {
  const laci_shape *declared = &value->type.shape;
  laci_shape shape = inferred->shape;
  if (inferred->dtype != LAC_DTYPE_NONE) value->type.dtype = inferred->dtype;
  if (shape.rank < 0) return;
  bool differs = declared->rank >= 0 && declared->rank != shape.rank;
  for (int axis = 0; axis < shape.rank && declared->rank == shape.rank; axis++) {
    int64_t size = choose_inferred_or_declared_size(job, shape.dims[axis], declared->dims[axis]);
    differs |= size >= 0 && declared->dims[axis] >= 0 && size != declared->dims[axis];
    shape.dims[axis] = size;
  }
  if (differs && laci_log_is_enabled(LAC_LOG_DEBUG)) {
    char found[128], said[128];
    laci_log(LAC_LOG_DEBUG, "'%s' is declared as %s but is %s", value->name,
             laci_shape_text(declared, said, sizeof said),
             laci_shape_text(&shape, found, sizeof found));
  }
  value->type.shape = shape;
}

/** Is the node in a branch of an If? The branch need not run, so operands that do not fit there are
 * no fault of the network. */
static bool is_in_branch(const laci_graph *graph, const laci_node *node) {
  for (int body = node->body; body > 0; body = graph->bodies[body - 1].outer)
    if (graph->bodies[body - 1].branch >= 0) return true;
  return false;
}

static lac_status infer_output_types(inference *job, const laci_node *node, node_view *view) {
  lac_error why = {0};
  laci_infer infer = {.node = node,
                      .n_in = node->n_inputs,
                      .n_out = node->n_outputs,
                      .in = view->in,
                      .known = view->known,
                      .out = view->out,
                      .new_symbol = new_size_symbol,
                      .owner = job,
                      .err = &why};
  lac_status st = node->op->infer(&infer);
  if (st == LAC_BAD_SHAPE && is_in_branch(job->graph, node)) st = LAC_UNSUPPORTED;
  /* the library does not know this form of the operator: its outputs stay unknown */
  if (st == LAC_UNSUPPORTED) {
    laci_log(LAC_LOG_DEBUG, "%s", why.text);
    for (int at = 0; at < node->n_outputs; at++) {
      view->out[at] = (laci_type){.shape = laci_shape_unknown()};
    }
    return LAC_OK;
  }
  return st ? laci_fail(job->err, st, "%s", why.text) : LAC_OK;
}

/** Sets sizes of the value that are unknown to those that one of its readers requires (`required`).
 * Returns true if there were any. */
static bool adopt_reader_sizes(inference *job, laci_value *value, const laci_shape *required) {
  laci_shape *shape = &value->type.shape;
  bool learned = shape->rank < 0;
  /* a contradiction is reported when the reader itself is inferred */
  if (!learned && shape->rank != required->rank) return false;
  if (learned) *shape = (laci_shape){.rank = required->rank};
  for (int axis = 0; axis < required->rank; axis++) {
    if (shape->dims[axis] <= 0 && required->dims[axis] > 0) {
      shape->dims[axis] = required->dims[axis];
      learned = true;
    } else if (shape->dims[axis] == 0) {
      shape->dims[axis] = laci_graph_add_symbol(job->graph);
    }
  }
  return learned;
}

static bool has_unknown_size(const laci_shape *shape) {
  return shape->rank < 0 || !laci_shape_is_known(shape);
}

/** Sets unknown sizes of the node's input 0 to those that its op->expect requires, and so for the
 * inputs of elementwise operators before it. */
static void infer_shape_of_input(inference *job, const laci_node *node, const node_view *view) {
  laci_graph *graph = job->graph;
  laci_infer infer = {.node = node, .n_in = node->n_inputs, .in = view->in, .known = view->known};
  laci_shape required;
  int at = node->n_inputs ? node->inputs[0] : -1;
  if (at < 0 || !has_unknown_size(&graph->values[at].type.shape) ||
      !node->op->expect(&infer, &required))
    return;
  for (bool learned = true; learned && at >= 0;) {
    laci_value *value = &graph->values[at];
    bool had_rank = value->type.shape.rank >= 0;
    learned = value->stored < 0 && has_unknown_size(&value->type.shape) &&
              adopt_reader_sizes(job, value, &required);
    job->again |= learned && (!had_rank || value->is_input);
    const laci_node *producer = value->producer >= 0 ? &graph->nodes[value->producer] : NULL;
    bool passes = producer && producer->op && producer->op->couple == laci_couple_first_input;
    at = passes && producer->n_inputs ? producer->inputs[0] : -1;
  }
}

/** Checks that the strides of a value can be computed: with an axis of size 0, the product of the
 * other sizes may overflow. */
static lac_status check_sizes_do_not_overflow(const inference *job, const laci_value *value) {
  char text[128];
  if (laci_shape_has_strides(&value->type.shape)) return LAC_OK;
  return laci_fail(job->err, LAC_BAD_SHAPE, "%s: sizes %s are too large to be counted", value->name,
                   laci_shape_text(&value->type.shape, text, sizeof text));
}

static lac_status infer_node(inference *job, const laci_node *node) {
  laci_graph *graph = job->graph;
  node_view view;
  lac_status st = LAC_OK;
  if (!node_view_init(graph, node, &view)) {
    st = laci_fail_memory(job->err, "shape inference");
    goto out;
  }
  /* What a node in a body requires of a value only holds if the body is run. */
  if (node->op && node->op->expect && !node->body) infer_shape_of_input(job, node, &view);
  job->symbols_before = graph->n_symbols;
  if (node->op && node->op->infer) st = infer_output_types(job, node, &view);
  else if (node->assume && node->n_inputs && node->n_outputs && view.in[0])
    view.out[0] = *view.in[0];
  for (int at = 0; at < node->n_outputs && !st; at++) {
    if (node->outputs[at] < 0) continue;
    laci_value *value = &graph->values[node->outputs[at]];
    merge_inferred_type(job, value, &view.out[at]);
    st = check_sizes_do_not_overflow(job, value);
    if (job->loops) laci_loops_make_changing_sizes_unknown(job->loops, graph, node->outputs[at]);
  }
  if (st || !node->op || !node->op->is_fold || !node->op->eval) goto out;
  /* every operator writes output 0, so a node without that output is not evaluated */
  if (node->n_outputs < 1 || node->outputs[0] < 0) goto out;
  st = evaluate_known_node(graph, node, &view);
  for (int at = 0; at < node->n_outputs && !st; at++) {
    if (node->outputs[at] >= 0)
      st = fill_unknown_content_with_symbols(graph, &graph->values[node->outputs[at]]);
  }
  if (st) st = laci_fail_memory(job->err, "shape inference");
out:
  node_view_clear(node, &view);
  return st;
}

/** Infers all nodes in order, after it has read the contents of stored tensors. */
static lac_status infer_all_nodes(inference *job) {
  laci_graph *graph = job->graph;
  lac_status st = LAC_OK;
  for (int v = 0; v < graph->n_values; v++) {
    laci_buf_destroy(graph->values[v].known);
    graph->values[v].known = NULL;
  }
  for (int at = 0; at < graph->n_stored && !st; at++) {
    st = read_small_content(graph, &graph->stored[at], job->err);
  }
  for (int at = 0; at < graph->n_inputs && !st; at++) {
    st = check_sizes_do_not_overflow(job, &graph->values[graph->inputs[at]]);
    if (st) return st;
    st = fill_unknown_content_with_symbols(graph, &graph->values[graph->inputs[at]]);
  }
  laci_loops loops = {0};
  if (!st && graph->n_bodies) st = laci_loops_init(&loops, graph);
  if (st) return st == LAC_NO_MEMORY ? laci_fail_memory(job->err, "shape inference") : st;
  job->loops = graph->n_bodies ? &loops : NULL;
  for (int n = 0; n < graph->n_nodes && !st; n++) {
    st = infer_node(job, &graph->nodes[n]);
    if (!st && job->loops) n = laci_loops_find_next_node(job->loops, graph, n) - 1;
  }
  job->loops = NULL;
  laci_loops_clear(&loops);
  return st;
}

lac_status laci_graph_infer(laci_graph *graph, const laci_input_shape *fixed, int n_fixed,
                            lac_error *err) {
  inference job = {.graph = graph, .err = err};
  lac_status st = set_input_shapes(graph, fixed, n_fixed, err);
  if (st) return st;
  graph->sizes_fixed |= n_fixed > 0;
  st = infer_all_nodes(&job);
  /* in a graph with bodies, inferring again would have to start from the declared types */
  if (st || !job.again || graph->n_bodies) return st;
  return infer_all_nodes(&job);
}

lac_status laci_graph_infer_node(laci_graph *graph, int node, lac_error *err) {
  inference job = {.graph = graph, .err = err};
  return infer_node(&job, &graph->nodes[node]);
}
