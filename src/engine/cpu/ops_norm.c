/* SPDX-License-Identifier: Apache-2.0
 * Normalisations (a layer norm also where a graph spells it out), softmax, and reductions over
 * axes. */
#include <string.h>

#include "engine/cpu/net_in.h"

static void unsupported(laci_net *net, const char *why) {
  laci_net_fail(net, LAC_UNSUPPORTED, "%s", why);
}

static int whole_input(laci_net *net, const laci_node *node) {
  return laci_net_whole(net, laci_net_read(net, node->inputs[0]));
}

/* ---- Batch norm that melted into nothing ---- */

/** mean, variance, scale and shift as weights, in that order. */
static void norm_parameters(laci_net *net, const laci_node *node, int tensors[4]) {
  static const int ports[] = {3, 4, 1, 2};
  for (int at = 0; at < 4; at++) {
    int value = node->inputs[ports[at]];
    const float *floats = laci_net_floats(net, value);
    int64_t n = laci_shape_count(laci_net_shape(net, value));
    tensors[at] = floats && !net->status ? laci_net_vector(net, floats, n) : -1;
  }
}

bool laci_net_fits_batch_norm(const laci_net *net, const laci_node *node) {
  const laci_shape *x = laci_net_shape(net, node->inputs[0]);
  bool fits = node->n_inputs == 5 && x->rank >= 2 && x->rank <= 5;
  for (int at = 1; at < node->n_inputs && fits; at++) {
    fits = node->inputs[at] >= 0 && laci_net_is_constant(net, node->inputs[at]) &&
           laci_net_is_float(net, node->inputs[at]) &&
           laci_shape_count(laci_net_shape(net, node->inputs[at])) == x->dims[1];
  }
  for (int at = 1; at < node->n_outputs; at++) fits = fits && node->outputs[at] < 0;
  if (node->version >= 14 && laci_node_int(node, "training_mode", 0) != 0) fits = false;
  return fits;
}

void laci_build_batch_norm(laci_net *net, const laci_net_layer *layer) {
  const laci_node *node = &net->graph->nodes[layer->node];
  dnnl_primitive_desc_t pd = NULL;
  int p[4];
  if (!laci_net_fits_batch_norm(net, node)) {
    unsupported(net, "statistics that change");
    return;
  }
  const laci_eltwise *first = layer->n_posts > 0 ? &layer->posts[0].eltwise : NULL;
  bool relu = first && first->alg == dnnl_eltwise_relu && first->alpha == 0;
  unsigned flags = dnnl_use_global_stats | dnnl_use_scale | dnnl_use_shift;
  if (relu) flags |= dnnl_fuse_norm_relu;
  int from = whole_input(net, node), to = laci_net_result_like(net, from, true);
  norm_parameters(net, node, p);
  if (net->status) return;
  dnnl_status_t st = laci_pd_batch_norm(&pd, net->engine, net->tensors[from].md,
                                        laci_node_float(node, "epsilon", 1e-5f), flags, net->attr);
  if (!laci_net_did(net, st, "batch norm")) return;
  laci_net_step_add(net, layer, pd, 6,
                    (const int[][2]){{DNNL_ARG_SRC, from},
                                     {DNNL_ARG_DST, to},
                                     {DNNL_ARG_MEAN, p[0]},
                                     {DNNL_ARG_VARIANCE, p[1]},
                                     {DNNL_ARG_SCALE, p[2]},
                                     {DNNL_ARG_SHIFT, p[3]}});
  for (int at = relu; at < layer->n_posts; at++) {
    to = laci_net_apply(net, layer, to, &layer->posts[at].eltwise);
  }
  laci_net_bind(net, layer->output, to);
}

/* ---- Layer norm ---- */

typedef struct layer_norm {
  int x, scale,
      shift; /* values; scale and shift: one number an element of the last axis; -1: none */
  float epsilon;
} layer_norm;

/** A constant of floats with as many elements as the last axis, along it. */
static bool along_last(const laci_net *net, int value, int64_t last) {
  const laci_shape *s = laci_net_shape(net, value);
  return laci_net_is_constant(net, value) && laci_net_is_float(net, value) && s->rank > 0 &&
         s->dims[s->rank - 1] == last && laci_shape_count(s) == last;
}

/** The constant, or n times `otherwise` where there is none. */
static int norm_vector(laci_net *net, int value, int64_t n, float otherwise) {
  const float *floats = value >= 0 ? laci_net_floats(net, value) : NULL;
  if (net->status || floats) return floats ? laci_net_vector(net, floats, n) : -1;
  float *same = laci_alloc((size_t)n, sizeof *same);
  if (!same) laci_net_no_memory(net);
  for (int64_t at = 0; same && at < n; at++) same[at] = otherwise;
  int tensor = same ? laci_net_vector(net, same, n) : -1;
  laci_free(same);
  return tensor;
}

/** Over the last axis of a tensor of rank 2 to 5. */
static void norm_step(laci_net *net, const laci_net_layer *layer, const layer_norm *norm) {
  dnnl_data_type_t dt = laci_net_dt(net);
  dnnl_primitive_desc_t pd = NULL;
  int from = laci_net_as_dense(net, laci_net_whole(net, laci_net_read(net, norm->x)), dt);
  int to = laci_net_result_like(net, from, true);
  if (net->status) return;
  int64_t last = net->tensors[from].shape.dims[net->tensors[from].shape.rank - 1];
  int scale = norm_vector(net, norm->scale, last, 1),
      shift = norm_vector(net, norm->shift, last, 0);
  if (net->status) return;
  dnnl_status_t st = laci_pd_layer_norm(&pd, net->engine, net->tensors[from].md, norm->epsilon,
                                        dnnl_use_scale | dnnl_use_shift, net->attr);
  if (!laci_net_did(net, st, "layer norm")) return;
  laci_net_step_add(net, layer, pd, 4,
                    (const int[][2]){{DNNL_ARG_SRC, from},
                                     {DNNL_ARG_DST, to},
                                     {DNNL_ARG_SCALE, scale},
                                     {DNNL_ARG_SHIFT, shift}});
  laci_net_bind(net, layer->output, to);
}

void laci_build_layer_norm(laci_net *net, const laci_net_layer *layer) {
  const laci_node *node = &net->graph->nodes[layer->node];
  const laci_shape *x = laci_net_shape(net, node->inputs[0]);
  int64_t axis = laci_node_int(node, "axis", -1), last = x->rank > 0 ? x->dims[x->rank - 1] : 0;
  layer_norm norm = {.x = node->inputs[0],
                     .scale = laci_net_has(node, 1) ? node->inputs[1] : -1,
                     .shift = laci_net_has(node, 2) ? node->inputs[2] : -1,
                     .epsilon = laci_node_float(node, "epsilon", 1e-5f)};
  bool fits = (axis == -1 || axis == x->rank - 1) && x->rank >= 2 && x->rank <= 5;
  for (int at = 1; at < node->n_outputs; at++) fits = fits && node->outputs[at] < 0;
  if (norm.scale >= 0) fits = fits && along_last(net, norm.scale, last);
  if (norm.shift >= 0) fits = fits && along_last(net, norm.shift, last);
  if (fits) norm_step(net, layer, &norm);
  else unsupported(net, "axes, parameters or outputs that oneDNN lacks");
}

/* ---- Layer norm in pieces ----
 *
 *     x -> ReduceMean -> Sub -> Pow 2 -> ReduceMean -> + epsilon -> Sqrt -> Div [-> * scale] [-> +]
 *      \_________________/ \__________________________________________/
 */

static bool reduced_axes(laci_net *net, const laci_node *node, int rank, bool axes[LACI_MAX_RANK]);

static bool is_mean_of_last(laci_net *net, const laci_node *node) {
  bool axes[LACI_MAX_RANK];
  if (!laci_node_is(node, "ReduceMean") || !laci_net_is_float(net, node->inputs[0])) return false;
  int rank = laci_net_shape(net, node->inputs[0])->rank;
  if (rank < 2 || rank > 5 || laci_node_int(node, "keepdims", 1) == 0) return false;
  if (!reduced_axes(net, node, rank, axes)) return false;
  for (int axis = 0; axis < rank; axis++) {
    if (axes[axis] != (axis == rank - 1)) return false;
  }
  return true;
}

/** The node is x^2: by Pow with 2, or x times x. */
static bool is_square(laci_net *net, const laci_node *node, int x) {
  double power = 0;
  if (laci_node_is(node, "Mul")) return node->inputs[0] == x && node->inputs[1] == x;
  return laci_node_is(node, "Pow") && node->inputs[0] == x &&
         laci_net_scalar(net, node->inputs[1], &power) && power == 2;
}

/** The two nodes that read the value, besides each other: its square, and a division by b. */
static bool square_and_division(laci_net *net, int d, int *square, int *division) {
  const laci_value *v = &net->graph->values[d];
  *square = *division = -1;
  for (int at = 0; at < v->n_readers; at++) {
    int reader = v->readers[at];
    if (!net->computed[reader] || net->layers[reader].output < 0) continue;
    if (is_square(net, &net->graph->nodes[reader], d)) *square = reader;
    if (laci_node_is(&net->graph->nodes[reader], "Div")) *division = reader;
  }
  if (*square < 0 || *division < 0) return false;
  int reads = laci_node_is(&net->graph->nodes[*square], "Mul") ? 3 : 2;
  return laci_net_uses(net, d) == reads && net->graph->nodes[*division].inputs[0] == d;
}

/** From the square to the number that the difference is divided by. */
static bool is_deviation(laci_net *net, int square, int divisor, int nodes[3], float *epsilon) {
  const laci_graph *graph = net->graph;
  laci_eltwise e[2];
  int input, at = square;
  for (int i = 0; i < 3; i++) {
    at = laci_net_only_reader(net, graph->nodes[at].outputs[0]);
    if (at < 0) return false;
    nodes[i] = at;
  }
  if (!is_mean_of_last(net, &graph->nodes[nodes[0]])) return false;
  if (!laci_node_is(&graph->nodes[nodes[1]], "Add") ||
      !laci_node_is(&graph->nodes[nodes[2]], "Sqrt"))
    return false;
  if (laci_eltwise_of(net, &graph->nodes[nodes[1]], &input, e) != 1) return false;
  *epsilon = e[0].beta;
  return *epsilon >= 0 && laci_net_uses(net, divisor) == 1 &&
         graph->nodes[nodes[2]].outputs[0] == divisor;
}

/** A following product with, or sum with, a vector along the last axis: its other operand. */
static int take_vector(laci_net *net, laci_net_layer *layer, const char *type) {
  int next = laci_net_only_reader(net, layer->output);
  if (next < 0) return -1;
  const laci_node *node = &net->graph->nodes[next];
  const laci_shape *y = laci_net_shape(net, layer->output);
  if (!laci_node_is(node, type) || node->n_inputs != 2) return -1;
  int other = node->inputs[node->inputs[0] == layer->output];
  if (!along_last(net, other, y->dims[y->rank - 1])) return -1;
  if (!laci_shape_equal(laci_net_shape(net, node->outputs[0]), y)) return -1;
  laci_net_melt(net, layer, next);
  return other;
}

static void build_pieces(laci_net *net, const laci_net_layer *layer) {
  size_t first = net->n_steps;
  norm_step(net, layer, layer->pattern);
  if (!net->status && net->n_steps > first) {
    net->steps[net->n_steps - 1].what = "LayerNormalization in pieces";
  }
}

bool laci_net_find_layer_norm(laci_net *net, int mean) {
  const laci_graph *graph = net->graph;
  layer_norm norm = {.x = graph->nodes[mean].n_inputs > 0 ? graph->nodes[mean].inputs[0] : -1},
             *kept;
  int square, division, deviation[3];
  if (norm.x < 0 || !is_mean_of_last(net, &graph->nodes[mean])) return false;
  if (laci_shape_count(laci_net_shape(net, norm.x)) == 0) return false;
  int sub = laci_net_only_reader(net, graph->nodes[mean].outputs[0]);
  if (sub < 0 || !laci_node_is(&graph->nodes[sub], "Sub")) return false;
  if (graph->nodes[sub].inputs[0] != norm.x) return false;
  if (!square_and_division(net, graph->nodes[sub].outputs[0], &square, &division)) return false;
  if (!is_deviation(net, square, graph->nodes[division].inputs[1], deviation, &norm.epsilon)) {
    return false;
  }
  kept = laci_net_new(net, 1, sizeof *kept);
  if (!kept) return false;
  laci_net_layer *layer = &net->layers[division];
  const int nodes[] = {mean, sub, square, deviation[0], deviation[1], deviation[2]};
  laci_net_absorb(net, division, nodes, 6);
  norm.scale = take_vector(net, layer, "Mul");
  norm.shift = take_vector(net, layer, "Add");
  *kept = norm;
  layer->build = build_pieces;
  layer->pattern = kept;
  layer->n_reads = 2;
  layer->reads[0] = layer->reads[1] = norm.x;
  return true;
}

/* ---- Softmax ---- */

void laci_build_softmax(laci_net *net, const laci_net_layer *layer) {
  const laci_node *node = &net->graph->nodes[layer->node];
  const laci_shape *x = laci_net_shape(net, node->inputs[0]);
  bool flat = node->version < 13; /* all axes from `axis` on together */
  int64_t axis = laci_node_int(node, "axis", flat ? 1 : -1);
  dnnl_primitive_desc_t pd = NULL;
  if (axis < 0) axis += x->rank;
  if (!laci_net_is_float(net, node->inputs[0]) || axis < 0 || axis >= x->rank) {
    unsupported(net, "an axis or elements that oneDNN lacks");
    return;
  }
  int from = laci_net_as_dense(net, whole_input(net, node), laci_net_dt(net));
  if (flat) {
    laci_shape two = laci_shape_of(2, (int64_t[]){laci_shape_count_range(x, 0, (int)axis),
                                                  laci_shape_count_range(x, (int)axis, x->rank)});
    from = laci_net_view(net, from, &two, laci_net_dense(net, &two, laci_net_dt(net)), false);
    axis = 1;
  }
  int to = laci_net_result_like(net, from, true);
  if (net->status) return;
  bool log = strcmp(node->type, "LogSoftmax") == 0;
  dnnl_status_t st =
      laci_pd_softmax(&pd, net->engine, log ? dnnl_softmax_log : dnnl_softmax_accurate,
                      net->tensors[from].md, (int)axis, net->attr);
  if (!laci_net_did(net, st, "softmax")) return;
  laci_net_step_add(net, layer, pd, 2, (const int[][2]){{DNNL_ARG_SRC, from}, {DNNL_ARG_DST, to}});
  laci_net_bind_shaped(net, layer->output, to);
}

/* ---- Reductions ---- */

/** Which axes go: from the attribute, or from a constant input. False: not known here. */
static bool reduced_axes(laci_net *net, const laci_node *node, int rank, bool axes[LACI_MAX_RANK]) {
  size_t n = 0;
  const int64_t *given = laci_node_ints(node, "axes", &n);
  laci_buf *buf = NULL;
  if (!given && laci_net_has(node, 1)) {
    if (!laci_net_is_constant(net, node->inputs[1])) return false;
    buf = laci_net_constant_buf(net, node->inputs[1]);
    if (!buf || !buf->i) {
      laci_buf_destroy(buf);
      return false;
    }
    given = buf->i;
    n = (size_t)buf->count;
  }
  bool none = n == 0, fits = !(none && laci_node_int(node, "noop_with_empty_axes", 0) != 0);
  for (int axis = 0; axis < rank; axis++) axes[axis] = none;
  for (size_t at = 0; at < n && fits; at++) {
    int64_t axis = given[at] < 0 ? given[at] + rank : given[at];
    fits = axis >= 0 && axis < rank;
    if (fits) axes[axis] = true;
  }
  laci_buf_destroy(buf);
  return fits;
}

void laci_build_reduce(laci_net *net, const laci_net_layer *layer) {
  static const struct {
    const char *type;
    dnnl_alg_kind_t alg;
  } kinds[] = {{"ReduceMean", dnnl_reduction_mean},
               {"ReduceSum", dnnl_reduction_sum},
               {"ReduceMax", dnnl_reduction_max},
               {"ReduceMin", dnnl_reduction_min}};
  const laci_node *node = &net->graph->nodes[layer->node];
  laci_shape x = *laci_net_shape(net, node->inputs[0]), y = x;
  bool axes[LACI_MAX_RANK];
  dnnl_primitive_desc_t pd = NULL;
  size_t kind = 0;
  while (strcmp(node->type, kinds[kind].type) != 0) kind++;
  if (!laci_net_is_float(net, node->inputs[0]) || x.rank < 1 || x.rank > 5 ||
      !reduced_axes(net, node, x.rank, axes)) {
    unsupported(net, "axes or elements that oneDNN lacks");
    return;
  }
  bool planes = kind == 0 && x.rank >= 3;
  for (int axis = 0; axis < x.rank; axis++) {
    planes = planes && axes[axis] == (axis >= 2);
    if (axes[axis]) y.dims[axis] = 1;
  }
  if (planes) { /* an average pool takes any layout */
    laci_build_global_pool(net, layer);
    return;
  }
  if (kind == 1 && laci_net_channel_sums(net, layer, axes)) return;
  dnnl_data_type_t dt = laci_net_result_dt(net, layer->output);
  int from = laci_net_read(net, node->inputs[0]);
  from = laci_net_as_dense(net, from, from < 0 ? dt : net->tensors[from].dt);
  laci_md md = laci_net_dense(net, &y, dt);
  if (net->status) {
    laci_md_drop(md);
    return;
  }
  int to = laci_net_tensor_new(
      net, &y, dt, md, laci_net_buffer_new(net, LACI_PLACE_ARENA, dnnl_memory_desc_get_size(md)));
  if (to < 0) return;
  if (laci_shape_equal(&x, &y)) {
    unsupported(net, "nothing to reduce");
    return;
  }
  dnnl_status_t st = laci_pd_reduction(
      &pd, net->engine, kinds[kind].alg,
      (const laci_md_view[]){net->tensors[from].md, net->tensors[to].md}, 0, net->attr);
  if (!laci_net_did(net, st, "reduction")) return;
  laci_net_step_add(net, layer, pd, 2, (const int[][2]){{DNNL_ARG_SRC, from}, {DNNL_ARG_DST, to}});
  laci_net_bind_shaped(net, layer->output, to);
}
