/* SPDX-License-Identifier: Apache-2.0
 * Bodies of If, Loop and Scan on the plain engine.
 *
 * The caller steps node by node. Nodes of a body that is not taken do nothing. The first iteration
 * of a loop is stepped by the caller like all other nodes. The node that ends the loop runs the
 * other iterations by itself, so that an observer sees the first iteration and the result. What a
 * body reads from outside must live until the body's end. So where the body begins, each of its
 * reads of such a value is counted as one more reader. */
#include "engine/plain/plain_in.h"
#include "tensor/buf.h"

#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "graph/op.h"

enum {
  MOST_REPEATED_SLICES =
      4096,              /* an output of more slices than this is not completed by repeated slices
                            (laci_stepper_options.iterations) */
  MOST_ITERATIONS = 512, /* with laci_stepper_options.iterations, loops stop after this many
                            iterations of all loops together, since nested loops could take
                            forever */
};

/* ---- Small values ---- */

/** Copies the content of an operand to another value. */
static lac_status copy_value(laci_plain *run, const laci_node *node, int from, int to,
                             lac_error *err) {
  laci_buf *copy = NULL;
  lac_status st = laci_plain_require_value(run, node, from, err);
  if (st || to < 0) return st;
  const laci_buf *buf = run->values[from];
  const laci_type type = {.dtype = buf->dtype, .shape = buf->shape};
  st = laci_plain_check_budget(run, to, &type, err);
  if (!st) st = laci_buf_copy(buf, &copy, err);
  if (!st) laci_plain_replace_value(run, to, copy);
  return st;
}

static lac_status set_integer_value(laci_plain *run, int value, lac_dtype dtype, int64_t number,
                                    lac_error *err) {
  const laci_shape scalar = {.rank = 0};
  laci_buf *buf = NULL;
  lac_status st = laci_buf_create(dtype, &scalar, &buf, err);
  if (st) return st;
  buf->i[0] = number;
  laci_plain_replace_value(run, value, buf);
  return LAC_OK;
}

/** Reads the integer in an operand into *number; `absent`, where the node leaves the operand
 * out. */
static lac_status read_integer_operand(laci_plain *run, const laci_node *node, int port,
                                       int64_t absent, int64_t *number, lac_error *err) {
  int value = node->inputs[port];
  *number = absent;
  if (value < 0) return LAC_OK;
  lac_status st = laci_plain_require_value(run, node, value, err);
  if (st) return st;
  const laci_buf *buf = run->values[value];
  if (!buf->i || buf->count != 1) {
    return laci_fail(err, LAC_BAD_SHAPE, "%s (%s): '%s' is not one number", node->name, node->type,
                     run->graph->values[value].name);
  }
  *number = buf->i[0];
  return LAC_OK;
}

/* ---- Which branches and loop bodies run ---- */

static bool is_branch_taken(const laci_plain *run, const laci_body *body) {
  const laci_node *end = &run->graph->nodes[body->end];
  const laci_buf *buf = end->inputs[0] >= 0 ? run->values[end->inputs[0]] : NULL;
  return buf && buf->i && buf->count == 1 && (buf->i[0] != 0) == body->branch;
}

bool laci_plain_is_active(const laci_plain *run, const laci_node *node) {
  for (int b = node->body; b; b = run->graph->bodies[b - 1].outer) {
    const laci_body *body = &run->graph->bodies[b - 1];
    bool taken = body->branch < 0 ? run->iterates[b - 1] : is_branch_taken(run, body);
    if (!taken) return false;
  }
  return true;
}

/* ---- If ---- */

static lac_status choose_branch_outputs(laci_plain *run, const laci_node *node, lac_error *err) {
  int n = node->n_outputs;
  int64_t condition;
  if (node->n_inputs != 1 + 2 * n)
    return laci_fail(err, LAC_UNSUPPORTED, "%s: an If without bodies", node->name);
  lac_status st = read_integer_operand(run, node, 0, 0, &condition, err);
  for (int at = 0; at < n && !st; at++)
    st = copy_value(run, node, node->inputs[1 + at + (condition ? 0 : n)], node->outputs[at], err);
  return st;
}

/* ---- What a loop reads lives until its end ---- */

static bool is_outside_body(const laci_graph *graph, int value, const laci_body *body) {
  int producer = graph->values[value].producer;
  return producer < body->begin || producer >= body->end;
}

/** Adds `more` to the reader count of each value that the loop reads from outside. begin_too: also
 * of those that its begin node reads. */
static void add_readers_of_loop(laci_plain *run, const laci_body *body, bool begin_too, int more) {
  for (int n = body->begin + !begin_too; n < body->end; n++) {
    const laci_node *node = &run->graph->nodes[n];
    for (int at = 0; at < node->n_inputs + node->n_captures; at++) {
      int value = laci_plain_nth_read(node, at);
      if (value < 0 || !is_outside_body(run->graph, value, body)) continue;
      run->readers_left[value] += more;
      if (more < 0) laci_plain_release_value(run, value);
    }
  }
}

/** Resets the reader counts for another iteration, which reads the values of the body again. */
static void reset_reader_counts(laci_plain *run, const laci_body *body) {
  add_readers_of_loop(run, body, false, 1);
  for (int n = body->begin; n < body->end; n++) {
    const laci_node *node = &run->graph->nodes[n];
    for (int at = 0; at < node->n_outputs; at++) {
      int value = node->outputs[at];
      if (value >= 0) run->readers_left[value] = run->graph->values[value].n_readers;
    }
  }
}

/* ---- Slices ---- */

/** Computes the product of the sizes before an axis (outer) and after it (inner). */
static void find_sizes_around_axis(const laci_shape *whole, int axis, int64_t *outer,
                                   int64_t *inner) {
  *outer = *inner = 1;
  for (int k = 0; k < whole->rank; k++)
    *(k < axis ? outer : inner) *= k == axis ? 1 : whole->dims[k];
}

static void copy_elements(laci_buf *to, int64_t at, const laci_buf *from, int64_t begin,
                          int64_t n) {
  if (n && from->f) memcpy(to->f + at, from->f + begin, (size_t)n * sizeof *to->f);
  if (n && from->i) memcpy(to->i + at, from->i + begin, (size_t)n * sizeof *to->i);
}

static bool is_sequence_reversed(const laci_node *node, const char *name, int k) {
  size_t n;
  const int64_t *directions = laci_node_ints(node, name, &n);
  return directions && (size_t)k < n && directions[k] == 1;
}

/** Finds the k-th sequence that a Scan reads in slices, and the axis of the slices. */
static lac_status find_sequence(laci_plain *run, const laci_node *begin, int k,
                                const laci_buf **whole, int *axis, lac_error *err) {
  int value = begin->inputs[begin->n_inputs - (int)laci_node_int(begin, "num_scan_inputs", 0) + k];
  lac_status st = laci_plain_require_value(run, begin, value, err);
  if (st) return st;
  *whole = run->values[value];
  *axis = laci_node_slice_axis(begin, "scan_input_axes", k, (*whole)->shape.rank);
  if (*axis >= 0) return LAC_OK;
  return laci_fail(err, LAC_BAD_SHAPE, "%s (%s): '%s' has no such axis", begin->name, begin->type,
                   run->graph->values[value].name);
}

/** Puts slice `iteration` of the k-th sequence into its value in the body. */
static lac_status set_body_slice(laci_plain *run, const laci_node *begin, int k, int64_t iteration,
                                 lac_error *err) {
  const laci_buf *whole;
  laci_buf *slice = NULL;
  int axis;
  lac_status st = find_sequence(run, begin, k, &whole, &axis, err);
  if (st) return st;
  laci_shape shape = {.rank = whole->shape.rank - 1};
  for (int a = 0; a < shape.rank; a++) shape.dims[a] = whole->shape.dims[a + (a >= axis)];
  st = laci_buf_create(whole->dtype, &shape, &slice, err);
  if (st) return st;
  int64_t outer, inner, n = whole->shape.dims[axis];
  if (is_sequence_reversed(begin, "scan_input_directions", k)) iteration = n - 1 - iteration;
  find_sizes_around_axis(&whole->shape, axis, &outer, &inner);
  for (int64_t o = 0; o < outer; o++)
    copy_elements(slice, o * inner, whole, (o * n + iteration) * inner, inner);
  int to = begin->outputs[begin->n_outputs - (int)laci_node_int(begin, "num_scan_inputs", 0) + k];
  laci_plain_replace_value(run, to, slice);
  return LAC_OK;
}

/* ---- A loop ---- */

typedef struct loop {
  laci_plain *run;
  const laci_body *body;
  const laci_node *begin, *end;
  laci_end_ports ports;
  bool is_scan;
  int n_sequences; /* number of sequences that a Scan reads in slices */
  int64_t wanted;  /* maximum number of iterations; INT64_MAX: the loop runs until its condition is
                      false */
  int64_t least;   /* number of iterations that are run in any case under
                      laci_stepper_options.iterations, whatever the data are */
  int64_t done;    /* number of iterations whose slices are in `slices` */
  size_t capacity;
  laci_buf **slices; /* [done, n_slices] the slices of all iterations so far */
  lac_error *err;
} loop;

static lac_status loop_init(loop *l, laci_plain *run, const laci_node *node, lac_error *err) {
  const laci_graph *graph = run->graph;
  if (!node->frames) {
    return laci_fail(err, LAC_UNSUPPORTED, "%s: a %s without a body", node->name, node->type);
  }
  const laci_body *body = &graph->bodies[node->frames - 1];
  *l = (loop){.run = run,
              .body = body,
              .begin = &graph->nodes[body->begin],
              .end = &graph->nodes[body->end],
              .err = err};
  l->ports = laci_node_loop_end_ports(l->end);
  l->is_scan = strcmp(l->end->type, "Scan") == 0;
  if (l->is_scan) l->n_sequences = l->begin->n_inputs - l->ports.n_carried;
  return LAC_OK;
}

/** Does the number of iterations follow from the network alone? */
static bool is_known_from_network(const laci_graph *graph, int value) {
  if (value < 0 || graph->values[value].stored >= 0) return true;
  const laci_buf *known = graph->values[value].known;
  return known && known->i && known->count == 1 && !laci_is_symbol(known->i[0]);
}

static lac_status find_trip_count(loop *l) {
  const laci_plain *run = l->run;
  const int *inputs = l->begin->inputs;
  int64_t condition;
  lac_status st = read_integer_operand(l->run, l->begin, 0, INT64_MAX, &l->wanted, l->err);
  if (!st) st = read_integer_operand(l->run, l->begin, 1, 1, &condition, l->err);
  if (st) return st;
  if (!condition || l->wanted < 0) l->wanted = 0;
  if (is_known_from_network(run->graph, inputs[0]) && is_known_from_network(run->graph, inputs[1]))
    return LAC_OK;
  l->least = run->max_iterations < 2 ? run->max_iterations : 2;
  if (l->wanted < l->least) l->wanted = l->least;
  return LAC_OK;
}

/** Finds the maximum number of iterations of the loop (l->wanted). */
static lac_status find_max_iterations(loop *l) {
  const laci_node *begin = l->begin;
  l->wanted = INT64_MAX;
  if (!l->is_scan) return find_trip_count(l);
  for (int k = 0; k < l->n_sequences; k++) {
    const laci_buf *whole;
    int axis;
    lac_status st = find_sequence(l->run, begin, k, &whole, &axis, l->err);
    if (st) return st;
    int64_t n = whole->shape.dims[axis];
    if (k && n != l->wanted) {
      return laci_fail(l->err, LAC_BAD_SHAPE, "%s (%s): sequences of %lld and %lld slices",
                       l->end->name, l->end->type, (long long)l->wanted, (long long)n);
    }
    l->wanted = n;
  }
  return LAC_OK;
}

/** Sets the inputs of the body for an iteration, except the carried values. */
static lac_status begin_iteration(loop *l, int64_t iteration) {
  lac_status st = LAC_OK;
  if (!l->is_scan) {
    st = set_integer_value(l->run, l->begin->outputs[0], LAC_DTYPE_I64, iteration, l->err);
    if (!st) st = set_integer_value(l->run, l->begin->outputs[1], LAC_DTYPE_BOOL, 1, l->err);
  }
  for (int k = 0; k < l->n_sequences && !st; k++)
    st = set_body_slice(l->run, l->begin, k, iteration, l->err);
  return st;
}

static lac_status step_loop_begin(loop *l) {
  laci_plain *run = l->run;
  lac_status st = find_max_iterations(l);
  run->iterates[l->begin->frames - 1] = !st && l->wanted > 0;
  if (st) return st;
  add_readers_of_loop(run, l->body, true, 1);
  run->keeps_outer_values[l->begin->frames - 1] = true;
  if (l->wanted == 0 && (l->is_scan || !run->max_iterations)) {
    if (!run->max_iterations) return LAC_OK;
    return laci_fail(l->err, LAC_UNSUPPORTED, "%s (%s): has no iteration", l->end->name,
                     l->end->type);
  }
  st = begin_iteration(l, 0);
  int from = l->is_scan ? 0 : 2;
  for (int k = 0; k < l->ports.n_carried && !st; k++)
    st = copy_value(run, l->begin, l->begin->inputs[from + k], l->begin->outputs[from + k], l->err);
  return st;
}

/** The outputs of an iteration become the inputs of the next one, all at once. */
static lac_status carry_loop_values(loop *l) {
  int n = l->ports.n_carried;
  const int *in = l->end->inputs + l->ports.in, *out = l->end->inputs + l->ports.out;
  laci_buf **copies = laci_alloc((size_t)n, sizeof(laci_buf *));
  lac_status st = copies ? LAC_OK : laci_fail_memory(l->err, l->end->name);
  for (int k = 0; k < n && !st; k++) {
    st = laci_plain_require_value(l->run, l->end, out[k], l->err);
    if (!st) st = laci_buf_copy(l->run->values[out[k]], &copies[k], l->err);
  }
  for (int k = 0; k < n && copies; k++) {
    if (st) laci_buf_destroy(copies[k]);
    else laci_plain_replace_value(l->run, in[k], copies[k]);
  }
  laci_free((void *)copies);
  return st;
}

static lac_status run_iteration(loop *l, int64_t iteration) {
  lac_status st = laci_interrupted() ? laci_fail(l->err, LAC_INTERRUPTED, "interrupted") : LAC_OK;
  if (!st) st = carry_loop_values(l);
  if (st) return st;
  reset_reader_counts(l->run, l->body);
  st = begin_iteration(l, iteration);
  for (int n = l->body->begin + 1; n < l->body->end && !st; n++)
    st = l->run->step(l->run, n, l->err);
  laci_plain_release_last_step(l->run);
  return st;
}

/** Finds the type of the value that n slices of output k form, joined along their axis. */
static lac_status find_joined_type(const loop *l, int k, const laci_type *slice, int64_t n,
                                   laci_type *whole, int *axis) {
  *whole = (laci_type){.dtype = slice->dtype, .shape = {.rank = slice->shape.rank + 1}};
  *axis = laci_node_slice_axis(l->end, "scan_output_axes", k, whole->shape.rank);
  if (slice->shape.rank < 0 || whole->shape.rank > LACI_MAX_RANK || *axis < 0) {
    return laci_fail(l->err, LAC_UNSUPPORTED, "%s (%s): the shape of result %d is not known",
                     l->end->name, l->end->type, l->ports.n_carried + k);
  }
  for (int a = 0; a < whole->shape.rank; a++)
    whole->shape.dims[a] = a == *axis ? n : slice->shape.dims[a - (a > *axis)];
  return LAC_OK;
}

/** Stores the outputs of this iteration that become slices of the loop's outputs. Fails if the
 * budget does not allow for all slices, joined in the end. */
static lac_status keep_slices(loop *l) {
  int n = l->ports.n_slices;
  size_t used = (size_t)l->done * (size_t)n;
  while (l->capacity < used + (size_t)n) {
    void *array = l->slices;
    if (!laci_grow(&array, l->capacity, &l->capacity, sizeof(laci_buf *)))
      return laci_fail_memory(l->err, l->end->name);
    l->slices = array;
  }
  for (int k = 0; k < n; k++) l->slices[used + (size_t)k] = NULL;
  l->done++;
  lac_status st = LAC_OK;
  for (int k = 0; k < n && !st; k++) {
    int value = l->end->inputs[l->ports.slices + k], axis;
    st = laci_plain_require_value(l->run, l->end, value, l->err);
    if (st) return st;
    const laci_buf *slice = l->run->values[value];
    laci_type type = {.dtype = slice->dtype, .shape = slice->shape}, whole;
    st = find_joined_type(l, k, &type, l->done, &whole, &axis);
    if (!st) st = laci_plain_check_budget(l->run, value, &whole, l->err);
    if (!st) st = laci_buf_copy(slice, &l->slices[used + (size_t)k], l->err);
  }
  return st;
}

static lac_status run_iterations(loop *l) {
  int64_t limit = l->run->max_iterations ? l->run->max_iterations : INT64_MAX, go_on = 1;
  lac_status st = find_max_iterations(l);
  bool iterates = l->run->iterates[l->end->frames - 1];
  if (!st && iterates) st = keep_slices(l);
  while (!st && iterates) {
    if (!l->is_scan) st = read_integer_operand(l->run, l->end, 0, 1, &go_on, l->err);
    if (l->done < l->least) go_on = 1;
    bool enough = l->run->max_iterations && l->run->n_iterations >= MOST_ITERATIONS;
    if (st || !go_on || enough || l->done >= l->wanted || l->done >= limit) break;
    l->run->n_iterations++;
    st = run_iteration(l, l->done);
    if (!st) st = keep_slices(l);
  }
  if (!l->is_scan && !go_on) l->wanted = l->done;
  return st;
}

/** Returns the type of a slice where there was no iteration: unknown sizes are 0. */
static laci_type slice_type_or_empty(const loop *l, int k) {
  int value = l->end->inputs[l->ports.slices + k];
  laci_type type = l->run->graph->values[value].type;
  for (int a = 0; a < type.shape.rank; a++) {
    if (type.shape.dims[a] < 0) type.shape.dims[a] = 0;
  }
  return type;
}

/** Joins all slices of the k-th output to one value. */
static lac_status join_slices_of_output(loop *l, int k) {
  int to = l->end->outputs[l->ports.n_carried + k], axis;
  size_t n = (size_t)l->ports.n_slices;
  const laci_buf *first = l->done ? l->slices[k] : NULL;
  laci_type type =
      first ? (laci_type){.dtype = first->dtype, .shape = first->shape} : slice_type_or_empty(l, k);
  int64_t repeated =
      l->run->max_iterations && l->wanted <= MOST_REPEATED_SLICES ? l->wanted : l->done;
  int64_t iterations = l->done && repeated > l->done ? repeated : l->done;
  laci_type whole;
  laci_buf *buf = NULL;
  lac_status st = find_joined_type(l, k, &type, iterations, &whole, &axis);
  if (st || to < 0) return to < 0 ? LAC_OK : st;
  int64_t count = laci_shape_count(&whole.shape), outer, inner;
  if (count < 0 || count > l->run->max_elements) {
    return laci_fail(l->err, LAC_BAD_SHAPE, "%s (%s): output %d would have more than %lld elements",
                     l->end->name, l->end->type, l->ports.n_carried + k,
                     (long long)l->run->max_elements);
  }
  st = laci_plain_check_budget(l->run, to, &whole, l->err);
  if (!st) st = laci_buf_create(whole.dtype, &whole.shape, &buf, l->err);
  find_sizes_around_axis(&whole.shape, axis, &outer, &inner);
  bool reversed = is_sequence_reversed(l->end, "scan_output_directions", k);
  for (int64_t t = 0; t < iterations && !st; t++) {
    const laci_buf *one = l->slices[(size_t)(t < l->done ? t : l->done - 1) * n + (size_t)k];
    int64_t at = reversed ? iterations - 1 - t : t;
    if (one->dtype != type.dtype || !laci_shape_equal(&one->shape, &type.shape)) {
      st = laci_fail(l->err, LAC_BAD_SHAPE, "%s (%s): output %d has slices of different shapes",
                     l->end->name, l->end->type, l->ports.n_carried + k);
    }
    for (int64_t o = 0; o < outer && !st; o++)
      copy_elements(buf, (o * iterations + at) * inner, one, o * inner, inner);
  }
  if (st) laci_buf_destroy(buf);
  else laci_plain_replace_value(l->run, to, buf);
  return st;
}

static lac_status step_loop_end(loop *l) {
  int end = l->body->end;
  l->run->last = -1; /* keeps this node's inputs while the body runs again */
  bool iterates = l->run->iterates[l->end->frames - 1];
  lac_status st = run_iterations(l);
  const int *from = l->end->inputs + (iterates ? l->ports.out : l->ports.first);
  for (int k = 0; k < l->ports.n_carried && !st; k++)
    st = copy_value(l->run, l->end, from[k], l->end->outputs[k], l->err);
  for (int k = 0; k < l->ports.n_slices && !st; k++) st = join_slices_of_output(l, k);
  for (size_t k = 0; k < (size_t)l->done * (size_t)l->ports.n_slices; k++)
    laci_buf_destroy(l->slices[k]);
  laci_free((void *)l->slices);
  if (l->run->keeps_outer_values[l->end->frames - 1])
    add_readers_of_loop(l->run, l->body, true, -1);
  l->run->keeps_outer_values[l->end->frames - 1] = false;
  l->run->last = end;
  return st;
}

lac_status laci_plain_run_control_node(laci_plain *run, int node_id, lac_error *err) {
  const laci_node *node = &run->graph->nodes[node_id];
  loop l;
  if (laci_node_control_flow_role(node) == LACI_CONTROL_CHOICE)
    return choose_branch_outputs(run, node, err);
  lac_status st = loop_init(&l, run, node, err);
  if (st) return st;
  return laci_node_control_flow_role(node) == LACI_CONTROL_BEGIN ? step_loop_begin(&l)
                                                                 : step_loop_end(&l);
}
