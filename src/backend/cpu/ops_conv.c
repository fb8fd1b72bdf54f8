/* SPDX-License-Identifier: Apache-2.0
 * Convolutions and pools: windows that slide over planes.
 *
 * A convolution leaves the layouts of its input, weights and output to oneDNN; the weights are
 * scaled by what melted in and reordered once. A pool takes its input as it lies. */
#include <string.h>

#include "backend/cpu/net_in.h"

/** Kernel, strides, dilations and pads from the attributes; the end pads follow from the output's
 * size, which the operator's shape rule has found (ceil_mode and auto_pad included). False: not a
 * window that oneDNN takes. */
static bool read_window(const laci_node *node, const laci_shape *x, const laci_shape *y,
                        const int64_t *kernel, laci_dnnl_window *w) {
  size_t n;
  const char *automatic = laci_node_text(node, "auto_pad", "NOTSET");
  const int64_t *strides = laci_node_ints(node, "strides", &n);
  const int64_t *dilations = laci_node_ints(node, "dilations", &n);
  const int64_t *pads = laci_node_ints(node, "pads", &n);
  bool given = strcmp(automatic, "NOTSET") == 0, lower = strcmp(automatic, "SAME_LOWER") == 0;
  bool same = lower || strcmp(automatic, "SAME_UPPER") == 0;
  w->n_spatial = x->rank - 2;
  if (w->n_spatial < 1 || w->n_spatial > 3) return false;
  for (int at = 0; at < w->n_spatial; at++) {
    int64_t in = x->dims[at + 2], out = y->dims[at + 2];
    w->kernel[at] = kernel[at];
    w->strides[at] = strides ? strides[at] : 1;
    w->dilates[at] = dilations ? dilations[at] - 1 : 0;
    int64_t reach = (kernel[at] - 1) * (w->dilates[at] + 1) + 1;
    int64_t total = (out - 1) * w->strides[at] + reach - in;
    w->pads_begin[at] = given && pads ? pads[at] : 0;
    if (same && total > 0) w->pads_begin[at] = lower ? total - total / 2 : total / 2;
    w->pads_end[at] = total - w->pads_begin[at];
    if (w->pads_begin[at] < 0 || (given && pads && pads[w->n_spatial + at] < 0)) return false;
  }
  return true;
}

/* ---- Convolution ---- */

static int64_t groups_of(const laci_node *node) { return laci_node_int(node, "group", 1); }

bool laci_net_fits_conv(const laci_net *net, const laci_node *node) {
  laci_dnnl_window w;
  if (!laci_net_has(node, 0) || !laci_net_has(node, 1)) return false;
  const laci_shape *x = laci_net_shape(net, node->inputs[0]);
  const laci_shape *weight = laci_net_shape(net, node->inputs[1]);
  const laci_shape *y = laci_net_shape(net, node->outputs[0]);
  for (int at = 0; at < node->n_inputs; at++) {
    if (node->inputs[at] >= 0 && !laci_net_is_float(net, node->inputs[at])) return false;
    if (at > 0 && node->inputs[at] >= 0 && !laci_net_is_constant(net, node->inputs[at])) {
      return false;
    }
  }
  return laci_shape_count(x) > 0 && laci_shape_count(weight) > 0 && laci_shape_count(y) > 0 &&
         read_window(node, x, y, weight->dims + 2, &w);
}

/** The weights with the folded scale, in the layout that is wanted. */
static int conv_weight(laci_net *net, const laci_net_layer *layer, const laci_shape *shape,
                       laci_md_view wanted) {
  const laci_node *node = &net->graph->nodes[layer->node];
  const float *floats = laci_net_floats(net, node->inputs[1]);
  float *scaled = NULL;
  dnnl_dims_t strides;
  int64_t count = laci_shape_count(shape), each = count / layer->channels, stride = 1;
  if (!floats || net->status) return -1;
  if (layer->scale) {
    scaled = laci_alloc((size_t)count, sizeof *scaled);
    if (!scaled) {
      laci_net_no_memory(net);
      return -1;
    }
    for (int64_t at = 0; at < count; at++) scaled[at] = floats[at] * layer->scale[at / each];
  }
  for (int axis = shape->rank - 1; axis >= 0; axis--) {
    strides[axis] = stride;
    stride *= shape->dims[axis];
  }
  int tensor = laci_net_weight(net, shape, scaled ? scaled : floats, strides, wanted);
  laci_free(scaled);
  return tensor;
}

/** scale * bias + shift; -1 where there is neither bias nor shift. */
static int conv_bias(laci_net *net, const laci_net_layer *layer) {
  const laci_node *node = &net->graph->nodes[layer->node];
  const float *bias = laci_net_has(node, 2) ? laci_net_floats(net, node->inputs[2]) : NULL;
  if (!layer->scale) return bias ? laci_net_vector(net, bias, layer->channels) : -1;
  float *sum = laci_alloc((size_t)layer->channels, sizeof *sum);
  if (!sum) laci_net_no_memory(net);
  for (int64_t c = 0; c < layer->channels && sum; c++) {
    sum[c] = (bias ? bias[c] * layer->scale[c] : 0) + layer->shift[c];
  }
  int tensor = sum ? laci_net_vector(net, sum, layer->channels) : -1;
  laci_free(sum);
  return tensor;
}

/** [g, out / g, in / g, kernel] where there are groups. */
static laci_shape grouped(const laci_shape *weight, int64_t groups) {
  if (groups == 1) return *weight;
  laci_shape s = {.rank = weight->rank + 1};
  s.dims[0] = groups;
  s.dims[1] = weight->dims[0] / groups;
  for (int axis = 1; axis < weight->rank; axis++) s.dims[axis + 1] = weight->dims[axis];
  return s;
}

static void conv_step(laci_net *net, const laci_net_layer *layer, dnnl_primitive_desc_t pd,
                      const laci_shape *weight, int bias, int sum) {
  const laci_node *node = &net->graph->nodes[layer->node];
  dnnl_data_type_t dt = laci_net_dt(net);
  const laci_shape *y = laci_net_shape(net, layer->output);
  laci_md_view src = dnnl_primitive_desc_query_md(pd, dnnl_query_src_md, 0);
  laci_md_view dst = dnnl_primitive_desc_query_md(pd, dnnl_query_dst_md, 0);
  int x = laci_net_as(net, laci_net_read(net, node->inputs[0]), src, dt);
  int w =
      conv_weight(net, layer, weight, dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0));
  int to;
  if (sum >= 0) {
    to = laci_net_sum_target(net, laci_net_read(net, sum), dst, dt);
  } else {
    laci_md md = NULL;
    if (!laci_md_copy(&md, dst)) laci_net_no_memory(net);
    int buffer = laci_net_buffer_new(net, LACI_PLACE_ARENA, dnnl_memory_desc_get_size(dst));
    to = laci_net_tensor_new(net, y, dt, md, buffer);
  }
  laci_net_step_add(
      net, layer, pd, bias >= 0 ? 4 : 3,
      (const int[][2]){
          {DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DST, to}, {DNNL_ARG_BIAS, bias}});
  laci_net_bind(net, layer->output, to);
}

void laci_build_conv(laci_net *net, const laci_net_layer *layer) {
  const laci_node *node = &net->graph->nodes[layer->node];
  const laci_shape *x = laci_net_shape(net, node->inputs[0]);
  const laci_shape *y = laci_net_shape(net, layer->output);
  laci_dnnl_window window;
  dnnl_primitive_desc_t pd = NULL;
  if (!laci_net_fits_conv(net, node)) {
    laci_net_fail(net, LAC_UNSUPPORTED, "weights that change, or a window that oneDNN lacks");
    return;
  }
  const laci_shape *stored = laci_net_shape(net, node->inputs[1]);
  (void)read_window(node, x, y, stored->dims + 2, &window);
  laci_shape weight = grouped(stored, groups_of(node));
  laci_shape channels = laci_shape_of(1, &layer->channels);
  int sum, bias = conv_bias(net, layer);
  dnnl_primitive_attr_t attr = laci_net_posts(net, layer, &sum);
  laci_md src = laci_net_any(net, x, laci_net_dt(net)),
          w = laci_net_any(net, &weight, laci_net_dt(net));
  laci_md dst = laci_net_any(net, y, laci_net_dt(net));
  laci_md b = bias >= 0 ? laci_net_dense(net, &channels, dnnl_f32) : NULL;
  if (!net->status) {
    dnnl_status_t st =
        laci_pd_conv(&pd, net->engine, (const laci_md_view[]){src, w, b, dst}, &window, attr);
    if (laci_net_did(net, st, "convolution")) conv_step(net, layer, pd, &weight, bias, sum);
  }
  laci_md_drop(src);
  laci_md_drop(w);
  laci_md_drop(b);
  laci_md_drop(dst);
  if (attr) (void)dnnl_primitive_attr_destroy(attr);
}

/* ---- Pools ---- */

/** A pool over any window, from tensor to tensor. */
static int pool_step(laci_net *net, const laci_net_layer *layer, dnnl_alg_kind_t alg,
                     const laci_dnnl_window *window, const laci_shape *y) {
  const laci_node *node = &net->graph->nodes[layer->node];
  dnnl_primitive_desc_t pd = NULL;
  int from = laci_net_whole(net, laci_net_read(net, node->inputs[0]));
  laci_md any = laci_net_any(net, y, laci_net_dt(net)), md = NULL;
  int to = -1;
  if (net->status) goto out;
  dnnl_status_t st = laci_pd_pool(
      &pd, net->engine, alg, (const laci_md_view[]){net->tensors[from].md, any}, window, net->attr);
  if (!laci_net_did(net, st, "pool")) goto out;
  laci_md_view dst = dnnl_primitive_desc_query_md(pd, dnnl_query_dst_md, 0);
  if (!laci_md_copy(&md, dst)) laci_net_no_memory(net);
  to = laci_net_tensor_new(
      net, y, laci_net_dt(net), md,
      laci_net_buffer_new(net, LACI_PLACE_ARENA, dnnl_memory_desc_get_size(dst)));
  laci_net_step_add(net, layer, pd, 2, (const int[][2]){{DNNL_ARG_SRC, from}, {DNNL_ARG_DST, to}});
out:
  laci_md_drop(any);
  return to;
}

/** With padding counted, a last window of ceil_mode counts only what the pads reach: not what
 * oneDNN divides by. */
static bool counts_fit(const laci_node *node, const laci_dnnl_window *w) {
  size_t n;
  const int64_t *pads = laci_node_ints(node, "pads", &n);
  if (laci_node_int(node, "ceil_mode", 0) == 0) return true;
  for (int at = 0; at < w->n_spatial; at++) {
    if (w->pads_end[at] > (pads ? pads[w->n_spatial + at] : 0)) return false;
  }
  return true;
}

static bool read_pool(const laci_net *net, const laci_node *node, laci_dnnl_window *w) {
  size_t n;
  const int64_t *kernel = laci_node_ints(node, "kernel_shape", &n);
  const laci_shape *x = laci_net_shape(net, node->inputs[0]);
  if (!kernel || (int)n != x->rank - 2 || !laci_net_is_float(net, node->inputs[0])) return false;
  if (node->n_outputs > 1 && node->outputs[1] >= 0) return false;
  return read_window(node, x, laci_net_shape(net, node->outputs[0]), kernel, w);
}

void laci_build_pool(laci_net *net, const laci_net_layer *layer) {
  const laci_node *node = &net->graph->nodes[layer->node];
  laci_dnnl_window window;
  bool max = strcmp(node->type, "MaxPool") == 0;
  bool padded = !max && laci_node_int(node, "count_include_pad", 0) != 0;
  if (!read_pool(net, node, &window) || (padded && !counts_fit(node, &window))) {
    laci_net_fail(net, LAC_UNSUPPORTED, "a window or an output that oneDNN lacks");
    return;
  }
  dnnl_alg_kind_t alg = max      ? dnnl_pooling_max
                        : padded ? dnnl_pooling_avg_include_padding
                                 : dnnl_pooling_avg_exclude_padding;
  int to = pool_step(net, layer, alg, &window, laci_net_shape(net, layer->output));
  laci_net_bind(net, layer->output, to);
}

void laci_build_global_pool(laci_net *net, const laci_net_layer *layer) {
  const laci_node *node = &net->graph->nodes[layer->node];
  const laci_shape *x = laci_net_shape(net, node->inputs[0]);
  laci_dnnl_window w = {.n_spatial = x->rank - 2};
  bool max = strcmp(node->type, "GlobalMaxPool") == 0;
  if (w.n_spatial < 1 || w.n_spatial > 3 || !laci_net_is_float(net, node->inputs[0])) {
    laci_net_fail(net, LAC_UNSUPPORTED, "an input that oneDNN lacks");
    return;
  }
  laci_shape y = *x;
  for (int at = 0; at < w.n_spatial; at++) {
    w.kernel[at] = w.strides[at] = x->dims[at + 2];
    y.dims[at + 2] = 1;
  }
  int to = pool_step(net, layer, max ? dnnl_pooling_max : dnnl_pooling_avg_exclude_padding, &w, &y);
  laci_net_bind_shaped(net, layer->output, to);
}
