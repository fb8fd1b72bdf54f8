/* SPDX-License-Identifier: Apache-2.0
 * Normalisations, softmax, and reductions over axes. */
#include <string.h>

#include "backend/cpu/net_in.h"

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

static bool fits_batch_norm(const laci_net *net, const laci_node *node) {
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
  if (!fits_batch_norm(net, node)) {
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

void laci_build_layer_norm(laci_net *net, const laci_net_layer *layer) {
  const laci_node *node = &net->graph->nodes[layer->node];
  const laci_shape *x = laci_net_shape(net, node->inputs[0]);
  int64_t axis = laci_node_int(node, "axis", -1), last = x->rank > 0 ? x->dims[x->rank - 1] : 0;
  dnnl_primitive_desc_t pd = NULL;
  bool fits = (axis == -1 || axis == x->rank - 1) && x->rank >= 2 && x->rank <= 5;
  int p[3] = {-1, -1, -1};
  for (int at = 1; at < node->n_outputs; at++) fits = fits && node->outputs[at] < 0;
  for (int at = 1; at < 3 && fits; at++) {
    if (!laci_net_has(node, at)) continue;
    fits = laci_net_is_constant(net, node->inputs[at]) &&
           laci_net_is_float(net, node->inputs[at]) &&
           laci_shape_count(laci_net_shape(net, node->inputs[at])) == last;
    const float *floats = fits ? laci_net_floats(net, node->inputs[at]) : NULL;
    if (floats) p[at] = laci_net_vector(net, floats, last);
  }
  if (!fits || p[1] < 0) {
    unsupported(net, "axes, parameters or outputs that oneDNN lacks");
    return;
  }
  int from = laci_net_as_dense(net, whole_input(net, node), laci_net_dt(net));
  int to = laci_net_result_like(net, from, true);
  if (net->status) return;
  unsigned flags = dnnl_use_scale | (p[2] >= 0 ? dnnl_use_shift : 0u);
  dnnl_status_t st = laci_pd_layer_norm(&pd, net->engine, net->tensors[from].md,
                                        laci_node_float(node, "epsilon", 1e-5f), flags, net->attr);
  if (!laci_net_did(net, st, "layer norm")) return;
  laci_net_step_add(net, layer, pd, p[2] >= 0 ? 4 : 3,
                    (const int[][2]){{DNNL_ARG_SRC, from},
                                     {DNNL_ARG_DST, to},
                                     {DNNL_ARG_SCALE, p[1]},
                                     {DNNL_ARG_SHIFT, p[2]}});
  laci_net_bind(net, layer->output, to);
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
  dnnl_data_type_t dt = laci_net_dt(net);
  int from = laci_net_as_dense(net, laci_net_read(net, node->inputs[0]), dt);
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
