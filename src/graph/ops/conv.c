/* SPDX-License-Identifier: Apache-2.0
 * Conv: y[n k o] = bias[k] + sum over c, t of x[n c o*stride - pad + t*dilation] * weight[k c t].
 *
 * Channels: those of x are reduced with axis 1 of the weight; axis 0 of the weight gives those of
 * y; spatial axes are FIXED: their order must stay (coupling.h). Depthwise convolutions (one
 * channel in each group) are computed directly, all others from the patches of conv_in.h. */
#include <string.h>

#include "graph/ops/shared/grad_in.h"
#include "graph/coupling.h"
#include "graph/ops/shared/conv_in.h"
#include "graph/ops/shared/expect_in.h"
#include "graph/ops/shared/op_in.h"
#include "graph/ops/shared/window_grad_in.h"
#include "tensor/buf.h"

static lac_status check_channels(laci_infer *infer, int64_t n_groups) {
  const laci_shape *x = &infer->in[0]->shape, *w = &infer->in[1]->shape;
  if (w->rank < 0) return LAC_OK;
  if (w->dims[0] >= 0 && w->dims[0] % n_groups != 0) {
    return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE,
                          "%lld output channels in %lld groups", (long long)w->dims[0],
                          (long long)n_groups);
  }
  if (x->rank < 0 || x->dims[1] < 0 || w->dims[1] < 0) return LAC_OK;
  if (x->dims[1] % n_groups == 0 && x->dims[1] / n_groups == w->dims[1]) return LAC_OK;
  return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE,
                        "the input has %lld channels in %lld groups, the weight wants %lld a group",
                        (long long)x->dims[1], (long long)n_groups, (long long)w->dims[1]);
}

static lac_status infer(laci_infer *infer) {
  int n_spatial = 0;
  int64_t n_groups = 1;
  lac_status st = laci_check_n_inputs(infer, 2, 3);
  if (!st) st = laci_conv_read_groups(infer->node, &n_groups, infer->err);
  if (!st) st = laci_conv_check_ranks(infer, &n_spatial);
  if (st) return st;
  const laci_shape *x = &infer->in[0]->shape, *w = &infer->in[1]->shape;
  infer->out[0].dtype = infer->in[0]->dtype;
  if (n_spatial == 0) return LAC_OK;
  laci_node_window window;
  st = check_channels(infer, n_groups);
  if (!st) st = laci_conv_check_bias(infer, w->rank < 0 ? -1 : w->dims[0]);
  if (!st) st = laci_window_read(infer->node, n_spatial, w, &window, infer->err);
  if (st) return st;
  laci_shape unknown = *x;
  if (x->rank < 0) {
    unknown.rank = w->rank;
    for (int at = 0; at < w->rank; at++) unknown.dims[at] = infer->new_symbol(infer);
  }
  laci_shape *y = &infer->out[0].shape;
  y->rank = n_spatial + 2;
  y->dims[0] = unknown.dims[0];
  y->dims[1] = w->rank >= 0 ? w->dims[0] : infer->new_symbol(infer);
  return laci_window_infer(infer, &window, &unknown, y);
}

static bool expect_input_shape(const laci_infer *infer, laci_shape *shape) {
  const laci_shape *w = laci_expect_known_shape_of_input(infer, 1);
  int64_t n_groups = laci_node_int(infer->node, "group", 1);
  if (!w || w->rank < 3 || w->dims[1] <= 0 || n_groups < 1 || n_groups > INT32_MAX) return false;
  return laci_expect_size(infer, w->rank, 1, w->dims[1] * n_groups, shape);
}

typedef struct depthwise {
  const laci_patches *patches;
  const double *w;
  double *y;
  int64_t channels_out, multiplier;
} depthwise;

/** Adds w times a line of x to a line of y, for kernel position t along the axis. */
static void add_weighted_line(const laci_conv_axis *axis, const double *x, int64_t t, double w,
                              double *y) {
  int64_t start = t * axis->dilation - axis->pad;
  int64_t first = start < 0 ? (-start + axis->stride - 1) / axis->stride : 0;
  const double *from = x + start + first * axis->stride;
  for (int64_t o = first; o < axis->out && start + o * axis->stride < axis->in; o++) {
    y[o] += w * *from;
    from += axis->stride;
  }
}

static void convolve_depthwise_channels(int64_t begin, int64_t end, void *context) {
  const depthwise *d = context;
  const laci_conv_axis *axis = d->patches->axis;
  int64_t in = laci_patches_input_size(d->patches), out = laci_patches_output_size(d->patches);
  int64_t kernel = laci_patches_kernel_size(d->patches);
  for (int64_t channel = begin; channel < end; channel++) {
    const double *x = d->patches->x + channel / d->multiplier * in;
    const double *w = d->w + channel % d->channels_out * kernel;
    for (int64_t t = 0; t < kernel; t++) {
      int64_t t2 = t % axis[2].kernel, t1 = t / axis[2].kernel % axis[1].kernel;
      int64_t t0 = t / axis[2].kernel / axis[1].kernel;
      for (int64_t line = 0; line < axis[0].out * axis[1].out; line++) {
        int64_t i0 = line / axis[1].out * axis[0].stride - axis[0].pad + t0 * axis[0].dilation;
        int64_t i1 = line % axis[1].out * axis[1].stride - axis[1].pad + t1 * axis[1].dilation;
        if (i0 < 0 || i0 >= axis[0].in || i1 < 0 || i1 >= axis[1].in) continue;
        add_weighted_line(&axis[2], x + (i0 * axis[1].in + i1) * axis[2].in, t2, w[t],
                          d->y + channel * out + line * axis[2].out);
      }
    }
  }
}

static lac_status eval(laci_eval *eval) {
  int64_t n_groups;
  laci_node_window window;
  laci_patches patches;
  const laci_shape *x = &eval->in[0]->shape, *w = &eval->in[1]->shape;
  lac_status st = laci_check_floats(eval);
  if (!st) st = laci_conv_read_groups(eval->node, &n_groups, eval->err);
  if (!st) st = laci_window_read(eval->node, x->rank - 2, w, &window, eval->err);
  if (st) return st;
  for (int at = 0; at < window.n_spatial; at++)
    laci_window_resolve_out_size(&window, at, x->dims[at + 2]);
  st = laci_patches_init(&patches, eval, &window);
  if (st) return st;
  patches.channels = w->dims[1];
  laci_conv_fill_bias(eval);
  if (w->dims[1] != 1) return laci_conv_add_products(eval, &patches, eval->in[1]->f, n_groups);
  depthwise d = {.patches = &patches,
                 .w = eval->in[1]->f,
                 .y = eval->out[0]->f,
                 .channels_out = w->dims[0],
                 .multiplier = w->dims[0] / n_groups};
  laci_eval_parallel(eval, x->dims[0] * w->dims[0], convolve_depthwise_channels, &d);
  return LAC_OK;
}

static bool add_identity_map(laci_coupling *c, int port, int64_t n) {
  laci_axis_map *map = laci_coupling_add_map(c, LACI_OUT(0), 1, port, 0, n);
  for (int64_t at = 0; map && at < n; at++) map->from[at] = (int32_t)at;
  return map != NULL;
}

/** Maps each channel of x to `multiplier` neighbouring channels of y: channel o of y reads channel
 * o / multiplier of x, row o of the weight and element o of the bias. */
static void couple_copied_channels(laci_coupling *c, const laci_shape *w, int64_t multiplier) {
  laci_axis_map *map = laci_coupling_add_map(c, LACI_OUT(0), 1, 0, 1, w->dims[0]);
  for (int64_t at = 0; map && at < w->dims[0]; at++) map->from[at] = (int32_t)(at / multiplier);
  add_identity_map(c, 1, w->dims[0]);
  if (laci_has_input(c->node, 2)) add_identity_map(c, 2, w->dims[0]);
}

static void couple_channels(laci_coupling *c, const laci_shape *w, int64_t n_groups) {
  bool depth = w->dims[1] == 1 && n_groups > 1;
  if (depth && w->dims[0] != n_groups) {
    couple_copied_channels(c, w, w->dims[0] / n_groups);
    return;
  }
  int in = laci_coupling_new_label(c), out = depth ? in : laci_coupling_new_label(c);
  laci_coupling_set_label(c, 0, 1, in);
  laci_coupling_set_label(c, 1, 0, out);
  laci_coupling_set_label(c, LACI_OUT(0), 1, out);
  laci_coupling_set_label(c, 2, 0, out);
  if (depth) return;
  if (n_groups == 1) {
    laci_coupling_set_label(c, 1, 1, in);
    return;
  }
  laci_coupling_add_grouped_axis(c, (laci_grouped_axis){.port = 1,
                                                        .row_axis = 0,
                                                        .axis = 1,
                                                        .data_port = 0,
                                                        .data_axis = 1,
                                                        .n_groups = n_groups});
  laci_coupling_add_axis_parts(c, 0, 1, n_groups);
  laci_coupling_add_axis_parts(c, LACI_OUT(0), 1, n_groups);
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph;
  const laci_shape *x = laci_port_shape(c, 0), *w = laci_port_shape(c, 1);
  const laci_shape *y = laci_port_shape(c, LACI_OUT(0));
  int64_t n_groups = laci_node_int(node, "group", 1);
  c->why = "places along height and width matter to Conv";
  if (!x || !w || !y || x->rank < 3 || w->rank != x->rank) return laci_coupling_status(c);
  if (n_groups < 1 || w->dims[0] < 0 || w->dims[1] < 0 || w->dims[0] % n_groups != 0) {
    return laci_coupling_status(c);
  }
  laci_coupling_mark_described(c, 0);
  laci_coupling_mark_described(c, 1);
  laci_coupling_mark_described(c, LACI_OUT(0));
  int batch = laci_coupling_new_label(c);
  laci_coupling_set_label(c, 0, 0, batch);
  laci_coupling_set_label(c, LACI_OUT(0), 0, batch);
  couple_channels(c, w, n_groups);
  return laci_coupling_status(c);
}

static int find_weight_axes(const laci_graph *graph, const laci_node *node,
                            laci_weight_axes axes[2]) {
  (void)graph;
  if (node->n_inputs < 2 || node->inputs[1] < 0) return 0;
  axes[0] = (laci_weight_axes){
      .port = 1, .k_axis = 0, .c_axis = 1, .groups = laci_node_int(node, "group", 1)};
  return 1;
}

static lac_status gradient(laci_gradient_builder *b, const laci_node *node) {
  laci_window_attrs attrs;
  laci_shape x = laci_gradient_shape_of_input(b, node, 0),
             w = laci_gradient_shape_of_input(b, node, 1);
  lac_status st = laci_gradient_read_window(b, node, &x, &w, &attrs);
  if (st) return st;
  int dy = laci_gradient_of(b, node, 0);
  if (laci_gradient_is_needed(b, node, 1)) {
    const int inputs[] = {node->inputs[0], dy};
    laci_gradient_contribute(b, node, 1,
                             laci_gradient_add_internal(b, "ConvGradWeight", 2, inputs, &attrs));
  }
  if (laci_gradient_is_needed(b, node, 0)) {
    const int inputs[] = {dy, node->inputs[1]};
    laci_window_attrs_add_input_shape(&attrs, &x);
    laci_gradient_contribute(b, node, 0,
                             laci_gradient_add_internal(b, "ConvGradInput", 2, inputs, &attrs));
  }
  laci_gradient_contribute_channel_sums(b, node, 2, dy);
  return laci_gradient_status(b);
}

const laci_op laci_op_conv = {
    .name = "Conv",
    .role = LACI_ROLE_ALLOW,
    .attributes = LACI_ATTRIBUTES({"auto_pad", LACI_ATTR_TEXT}, {"dilations", LACI_ATTR_INTS},
                                  {"group", LACI_ATTR_INT}, {"kernel_shape", LACI_ATTR_INTS},
                                  {"pads", LACI_ATTR_INTS}, {"strides", LACI_ATTR_INTS}),
    .weights = find_weight_axes,
    .infer = infer,
    .expect = expect_input_shape,
    .eval = eval,
    .couple = couple_channel_orders,
    .gradient = gradient};
