/* SPDX-License-Identifier: Apache-2.0
 * Moments of channels, computed node by node. A channel is a function of a normal variable, whose
 * values at N_POINTS equally likely points are kept: so operators that work element by element
 * compute these as they compute any tensor. */
#include "calibrate/moments.h"

#include <math.h>
#include <string.h>

#include "base/acquire.h"
#include "base/error.h"
#include "graph/coupling.h"
#include "graph/op.h"
#include "graph/ops.h"
#include "tensor/buf.h"

enum { N_POINTS = 64, MOST_INPUTS = 64, MOST_CONSTANT = 1 << 16 };

/* The upper half of the points: means of a normal variable between its 64-quantiles, scaled so that
 * all points together have variance 1. */
static const double points[N_POINTS / 2] = {
    0.019623898, 0.058901846, 0.098270578, 0.137791710, 0.177528534, 0.217546747, 0.257915270,
    0.298707141, 0.340000564, 0.381880110, 0.424438159, 0.467776624, 0.512009073, 0.557263350,
    0.603684881, 0.651440907, 0.700725960, 0.751769117, 0.804843735, 0.860280830, 0.918487873,
    0.979975900, 1.045399870, 1.115620958, 1.191807032, 1.275603758, 1.369446635, 1.477183665,
    1.605482465, 1.767661906, 1.998142741, 2.515101411};

/* The channels of a value as functions of a normal variable. */
typedef struct channels {
  laci_buf *points; /* [N_POINTS, channels, 1 ..] of the value's rank; NULL: they are not known */
  int source;       /* values of one source are functions of the same variable at each element */
} channels;

typedef struct walk {
  const laci_graph *graph;
  laci_network_moments *to;
  channels *values; /* [n_values] kept until the last reader has been visited */
  int *n_unread;    /* [n_values] number of readers that have not been visited */
} walk;

static double normal_point_at(int k) {
  const int half = N_POINTS / 2;
  return k < half ? -points[half - 1 - k] : points[k - half];
}

/* ---- Making values ---- */

static lac_status create_points(const laci_type *type, int64_t n, laci_buf **out, lac_error *err) {
  laci_shape shape = type->shape;
  for (int axis = 0; axis < shape.rank; axis++) shape.dims[axis] = axis == 0 ? N_POINTS : 1;
  shape.dims[1] = n;
  return laci_buf_create(type->dtype, &shape, out, err);
}

/* Can the value have channels along axis 1? */
static bool has_channel_axis(const laci_value *value) {
  return value->type.shape.rank >= 2 && laci_dtype_is_float(value->type.dtype);
}

/* Makes *points_of the points of the value, which owns them from now on, and computes the value's
 * moments. */
static lac_status set_points_of_channels(walk *w, int value, int source, laci_buf **points_of,
                                         lac_error *err) {
  laci_buf *from = *points_of;
  laci_channel_moments *to = &w->to->values[value];
  const int64_t n = from->shape.dims[1];
  to->mean = laci_arena_alloc(&w->to->arena, (size_t)n + 1, sizeof *to->mean);
  to->variance = laci_arena_alloc(&w->to->arena, (size_t)n + 1, sizeof *to->variance);
  if (!to->mean || !to->variance) return laci_fail_memory(err, "moments of channels");
  bool finite = true;
  for (int64_t c = 0; c < n; c++) {
    double sum = 0, squares = 0;
    for (int k = 0; k < N_POINTS; k++) sum += from->f[k * n + c];
    to->mean[c] = sum / N_POINTS;
    for (int k = 0; k < N_POINTS; k++) {
      const double off = from->f[k * n + c] - to->mean[c];
      squares += off * off;
    }
    to->variance[c] = squares / N_POINTS;
    finite = finite && isfinite(to->variance[c]);
  }
  if (!finite) return LAC_OK;
  to->n = n;
  w->values[value] = (channels){from, source};
  *points_of = NULL;
  return LAC_OK;
}

/* Makes the channels of the value normal variables, by mean and variance. */
static lac_status set_normal_channels(walk *w, int value, int source,
                                      const laci_channel_moments *by, lac_error *err) {
  laci_buf *made = NULL;
  lac_status st = create_points(&w->graph->values[value].type, by->n, &made, err);
  for (int64_t c = 0; c < by->n && !st; c++) {
    const double deviation = sqrt(by->variance[c]);
    for (int k = 0; k < N_POINTS; k++)
      made->f[k * by->n + c] = by->mean[c] + deviation * normal_point_at(k);
  }
  if (!st) st = set_points_of_channels(w, value, source, &made, err);
  laci_buf_destroy(made);
  return st;
}

/* ---- Batch normalization ---- */

static lac_status read_vector(const laci_graph *graph, const laci_stored *from, double *to,
                              lac_error *err) {
  laci_acquired_bytes held;
  lac_status st = laci_stored_acquire(graph, from, &held, err);
  if (st) return st;
  laci_read_f64(from->dtype, held.bytes, 0, from->shape.dims[0], to);
  laci_bytes_release(&held);
  return LAC_OK;
}

bool laci_node_has_statistics(const laci_graph *graph, const laci_node *node) {
  enum { N_INPUTS = 5 };
  if (!laci_node_is(node, "BatchNormalization") || node->body || node->n_inputs != N_INPUTS ||
      laci_node_int(node, "training_mode", 0) != 0 || laci_node_int(node, "spatial", 1) == 0)
    return false;
  for (int out = 1; out < node->n_outputs; out++)
    if (node->outputs[out] >= 0) return false;
  const laci_stored *first = laci_node_find_stored_floats(graph, node, 1);
  for (int port = 1; port < N_INPUTS; port++) {
    const laci_stored *stored = laci_node_find_stored_floats(graph, node, port);
    if (!stored || stored->shape.rank != 1 || stored->shape.dims[0] < 1 ||
        stored->shape.dims[0] != first->shape.dims[0])
      return false;
  }
  return true;
}

static lac_status visit_normalization(walk *w, int id, lac_error *err) {
  const laci_node *node = &w->graph->nodes[id];
  const double epsilon = (double)laci_node_float(node, "epsilon", 1e-5F);
  const int64_t n = laci_node_find_stored_floats(w->graph, node, 1)->shape.dims[0];
  double *memory = laci_alloc((size_t)n * 3, sizeof *memory);
  if (!memory) return laci_fail_memory(err, "moments of channels");
  double *scale = memory, *stored = memory + 2 * n;
  laci_channel_moments by = {n, memory + n, scale};
  lac_status st =
      read_vector(w->graph, laci_node_find_stored_floats(w->graph, node, 1), scale, err);
  if (!st)
    st = read_vector(w->graph, laci_node_find_stored_floats(w->graph, node, 2), by.mean, err);
  if (!st) st = read_vector(w->graph, laci_node_find_stored_floats(w->graph, node, 4), stored, err);
  for (int64_t c = 0; c < n && !st; c++) {
    const double variance = fmax(stored[c], 0), whole = variance + epsilon;
    by.variance[c] = whole > 0 ? scale[c] * scale[c] * variance / whole : 0;
  }
  if (!st) st = set_normal_channels(w, node->outputs[0], id, &by, err);
  laci_free(memory);
  return st;
}

/* ---- Sums of independent terms ---- */

static bool is_sum(const laci_node *node) {
  return laci_node_is(node, "Add") || laci_node_is(node, "Sum");
}

static lac_status visit_independent_sum(walk *w, int id, lac_error *err) {
  const laci_node *node = &w->graph->nodes[id];
  const int to = node->outputs[0];
  const laci_shape *shape = &w->graph->values[to].type.shape;
  const int64_t n = w->to->values[node->inputs[0]].n;
  for (int i = 0; i < node->n_inputs; i++) {
    const laci_shape *term = &w->graph->values[node->inputs[i]].type.shape;
    if (!w->values[node->inputs[i]].points || w->to->values[node->inputs[i]].n != n ||
        !laci_shape_equal(term, shape))
      return LAC_OK;
  }
  double *memory = laci_alloc((size_t)n * 2, sizeof *memory);
  if (!memory) return laci_fail_memory(err, "moments of channels");
  const laci_channel_moments sum = {n, memory, memory + n};
  for (int i = 0; i < node->n_inputs; i++) {
    const laci_channel_moments *term = &w->to->values[node->inputs[i]];
    for (int64_t c = 0; c < n; c++) {
      sum.mean[c] += term->mean[c];
      sum.variance[c] += term->variance[c];
    }
  }
  lac_status st = set_normal_channels(w, to, id, &sum, err);
  laci_free(memory);
  return st;
}

/* ---- Operators that work element by element ---- */

/* The operands of a node: points of channels, or constants. */
typedef struct operands {
  const laci_buf *in[MOST_INPUTS];
  laci_buf *made[MOST_INPUTS]; /* those of `in` that are read from stored tensors */
  laci_type types[MOST_INPUTS];
  const laci_type *type[MOST_INPUTS];
  const laci_buf *known[MOST_INPUTS];
  int n_sources, source; /* number of different sources, up to 2; one of them */
} operands;

static bool is_small_constant(const laci_value *value, const laci_graph *graph) {
  if (value->stored < 0) return false;
  const laci_stored *stored = &graph->stored[value->stored];
  return stored->shape.rank >= 0 && !stored->overridable &&
         laci_shape_count(&stored->shape) <= MOST_CONSTANT;
}

static lac_status read_constant(const walk *w, int value, laci_buf **made, lac_error *err) {
  const laci_stored *stored = &w->graph->stored[w->graph->values[value].stored];
  const laci_type type = {stored->dtype, stored->shape};
  laci_acquired_bytes held;
  lac_status st = laci_stored_acquire(w->graph, stored, &held, err);
  if (st) return st;
  if (laci_buf_from_bytes(&type, held.bytes, stored->size_bytes, made, NULL)) *made = NULL;
  laci_bytes_release(&held);
  return LAC_OK;
}

/* Collects the operands. *all is false if one of them is not known. */
static lac_status collect_operands(const walk *w, const laci_node *node, operands *o, bool *all,
                                   lac_error *err) {
  lac_status st = LAC_OK;
  *all = node->n_inputs <= MOST_INPUTS;
  for (int i = 0; i < node->n_inputs && *all && !st; i++) {
    const int value = node->inputs[i];
    if (value < 0) continue;
    const channels *given = &w->values[value];
    const laci_buf *known = w->graph->values[value].known;
    if (given->points) {
      o->in[i] = given->points;
      if (o->n_sources == 0 || o->source != given->source) o->n_sources++;
      o->source = given->source;
    } else if (is_small_constant(&w->graph->values[value], w->graph)) {
      st = read_constant(w, value, &o->made[i], err);
      o->in[i] = o->known[i] = o->made[i];
    } else if (known && known->f) {
      o->in[i] = o->known[i] = known;
    }
    *all = o->in[i] != NULL;
    if (!*all) break;
    o->types[i] = (laci_type){o->in[i]->dtype, o->in[i]->shape};
    o->type[i] = &o->types[i];
  }
  return st;
}

static int64_t return_unknown_size(laci_infer *infer) {
  (void)infer;
  return -1;
}

/* Computes the node's output at all points. *made is NULL if that cannot be done. */
static lac_status evaluate_at_points(const walk *w, const laci_node *node, const operands *o,
                                     laci_buf **made, lac_error *err) {
  laci_type out = {.shape.rank = -1};
  laci_infer infer = {.node = node,
                      .n_in = node->n_inputs,
                      .n_out = 1,
                      .in = o->type,
                      .known = o->known,
                      .out = &out,
                      .new_symbol = return_unknown_size};
  const laci_value *value = &w->graph->values[node->outputs[0]];
  lac_status st = node->op->infer(&infer);
  if (st) return st == LAC_NO_MEMORY ? laci_fail_memory(err, "moments of channels") : LAC_OK;
  laci_shape wanted = value->type.shape;
  for (int axis = 0; axis < wanted.rank; axis++) wanted.dims[axis] = axis == 0 ? N_POINTS : 1;
  wanted.dims[1] = out.shape.rank >= 2 ? out.shape.dims[1] : 0;
  if (!laci_shape_equal(&out.shape, &wanted) || wanted.dims[1] != value->type.shape.dims[1])
    return LAC_OK;
  out.dtype = value->type.dtype;
  st = laci_buf_create(out.dtype, &out.shape, made, err);
  if (st) return st;
  laci_eval eval = {.node = node, .n_in = node->n_inputs, .n_out = 1, .in = o->in, .out = made};
  st = node->op->eval(&eval);
  if (!st) return LAC_OK;
  laci_buf_destroy(*made);
  *made = NULL;
  return st == LAC_NO_MEMORY ? laci_fail_memory(err, "moments of channels") : LAC_OK;
}

static bool works_element_by_element(const laci_node *node) {
  return node->op && node->op->eval && node->op->infer && node->n_outputs == 1 &&
         (node->op->couple == laci_couple_first_input ||
          node->op->couple == laci_couple_all_inputs_broadcast);
}

static lac_status visit_elements(walk *w, int id, lac_error *err) {
  const laci_node *node = &w->graph->nodes[id];
  operands o = {.n_sources = 0};
  laci_buf *made = NULL;
  bool all;
  lac_status st = collect_operands(w, node, &o, &all, err);
  if (!st && all && o.n_sources == 1) st = evaluate_at_points(w, node, &o, &made, err);
  if (!st && made) st = set_points_of_channels(w, node->outputs[0], o.source, &made, err);
  laci_buf_destroy(made);
  for (int i = 0; i < MOST_INPUTS; i++) laci_buf_destroy(o.made[i]);
  if (!st && all && o.n_sources > 1 && is_sum(node)) st = visit_independent_sum(w, id, err);
  return st;
}

/* ---- Operators that move channels ---- */

/* Is the axis of input 0 and of the output the same, position by position? */
static bool is_same_axis(const laci_coupling *c, int axis) {
  const int label = laci_coupling_get_label(c, LACI_OUT(0), axis);
  return label > 0 && label == laci_coupling_get_label(c, 0, axis);
}

/* Slice may leave out positions, which does not change their distribution; Pad adds zeros. */
static bool keeps_distribution(const laci_coupling *c, const laci_node *node, int rank) {
  if (laci_node_is(node, "Slice")) return true;
  if (!laci_node_is(node, "Pad")) return false;
  for (int axis = 2; axis < rank; axis++)
    if (!is_same_axis(c, axis)) return false;
  const int fill = node->n_inputs > 2 ? node->inputs[2] : -1;
  const laci_buf *known = fill >= 0 ? c->graph->values[fill].known : NULL;
  if (fill >= 0 && !(known && known->f && known->count == 1 && known->f[0] == 0)) return false;
  return laci_node_float(node, "value", 0) == 0;
}

/* Finds the channel of input `port` that each channel of the output copies: from[n], -1: it is not
 * a channel of that input. */
static void find_copied_channels(const laci_coupling *c, int port, int64_t n, int32_t *from) {
  const int label = laci_coupling_get_label(c, LACI_OUT(0), 1);
  const bool same = label > 0 && label == laci_coupling_get_label(c, port, 1);
  for (int64_t k = 0; k < n; k++) from[k] = same ? (int32_t)k : -1;
  for (size_t m = 0; m < c->n_maps; m++) {
    const laci_axis_map *map = &c->maps[m];
    if (map->out_port != LACI_OUT(0) || map->out_axis != 1 || map->in_port != port ||
        map->in_axis != 1)
      continue;
    for (int64_t k = 0; k < map->n; k++)
      if (map->start + k < n) from[map->start + k] = map->from[k];
  }
}

static lac_status copy_channels(const walk *w, const laci_node *node, const laci_coupling *c,
                                int n_ports, laci_buf **made, lac_error *err) {
  const laci_type *type = &w->graph->values[node->outputs[0]].type;
  const int64_t n = type->shape.dims[1];
  int32_t *from = laci_alloc((size_t)n + 1, sizeof *from);
  lac_status st =
      from ? create_points(type, n, made, err) : laci_fail_memory(err, "moments of channels");
  for (int port = 0; port < n_ports && !st; port++) {
    const laci_buf *points_of = w->values[node->inputs[port]].points;
    const int64_t n_from = points_of->shape.dims[1];
    find_copied_channels(c, port, n, from);
    for (int k = 0; k < N_POINTS; k++)
      for (int64_t to = 0; to < n; to++)
        if (from[to] >= 0 && from[to] < n_from)
          (*made)->f[k * n + to] = points_of->f[k * n_from + from[to]];
  }
  laci_free(from);
  return st;
}

/* Are the channels of the output those of the node's first n_ports inputs, or zeros? */
static bool moves_channels(const walk *w, const laci_node *node, const laci_coupling *c,
                           int n_ports) {
  const int rank = w->graph->values[node->outputs[0]].type.shape.rank;
  const int label = laci_coupling_get_label(c, LACI_OUT(0), 1);
  for (int port = 0; port < n_ports; port++)
    if (node->inputs[port] < 0 || !w->values[node->inputs[port]].points) return false;
  if (laci_node_is(node, "Concat")) return label == LACI_MAPPED;
  return (label == LACI_MAPPED || is_same_axis(c, 1)) && keeps_distribution(c, node, rank);
}

static lac_status visit_move(walk *w, int id, lac_error *err) {
  const laci_node *node = &w->graph->nodes[id];
  const int to = node->outputs[0];
  const int n_ports = laci_node_is(node, "Concat") ? node->n_inputs : 1;
  laci_coupling c;
  laci_buf *made = NULL;
  if (w->graph->values[to].type.shape.dims[1] < 1) return LAC_OK;
  lac_status st = laci_couple_node(&c, w->graph, node);
  if (!st && moves_channels(w, node, &c, n_ports))
    st = copy_channels(w, node, &c, n_ports, &made, err);
  laci_coupling_clear(&c);
  if (!st && made) st = set_points_of_channels(w, to, id, &made, err);
  laci_buf_destroy(made);
  return st == LAC_NO_MEMORY ? laci_fail_memory(err, "moments of channels") : st;
}

/* ---- The network ---- */

static bool is_move(const laci_node *node) {
  return laci_node_is(node, "Slice") || laci_node_is(node, "Pad") || laci_node_is(node, "Concat");
}

static lac_status visit_node(walk *w, int id, lac_error *err) {
  const laci_node *node = &w->graph->nodes[id];
  if (node->body || node->n_outputs < 1 || node->outputs[0] < 0 ||
      !has_channel_axis(&w->graph->values[node->outputs[0]]))
    return LAC_OK;
  if (laci_node_has_statistics(w->graph, node)) return visit_normalization(w, id, err);
  if (works_element_by_element(node)) return visit_elements(w, id, err);
  return is_move(node) ? visit_move(w, id, err) : LAC_OK;
}

/* Frees the points of values that no later node reads. */
static void release_read_values(walk *w, const laci_node *node) {
  for (int i = 0; i < node->n_inputs; i++) {
    const int value = node->inputs[i];
    bool again = value < 0;
    for (int before = 0; before < i; before++) again |= node->inputs[before] == value;
    if (again || --w->n_unread[value] > 0) continue;
    laci_buf_destroy(w->values[value].points);
    w->values[value].points = NULL;
  }
}

lac_status laci_network_moments_compute(const laci_graph *graph, laci_network_moments *to,
                                        lac_error *err) {
  walk w = {.graph = graph, .to = to};
  *to = (laci_network_moments){.values = NULL};
  to->values = laci_arena_alloc(&to->arena, (size_t)graph->n_values + 1, sizeof *to->values);
  w.values = laci_alloc((size_t)graph->n_values + 1, sizeof *w.values);
  w.n_unread = laci_alloc((size_t)graph->n_values + 1, sizeof *w.n_unread);
  lac_status st =
      to->values && w.values && w.n_unread ? LAC_OK : laci_fail_memory(err, "moments of channels");
  for (int v = 0; v < graph->n_values && !st; v++) w.n_unread[v] = graph->values[v].n_readers;
  for (int id = 0; id < graph->n_nodes && !st; id++) {
    st = visit_node(&w, id, err);
    release_read_values(&w, &graph->nodes[id]);
  }
  for (int v = 0; w.values && v < graph->n_values; v++) laci_buf_destroy(w.values[v].points);
  laci_free(w.values);
  laci_free(w.n_unread);
  return st;
}

void laci_network_moments_clear(laci_network_moments *moments) {
  laci_arena_clear(&moments->arena);
  *moments = (laci_network_moments){.values = NULL};
}
