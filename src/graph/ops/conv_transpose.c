/* SPDX-License-Identifier: Apache-2.0
 * ConvTranspose: the input, with zeros between elements for strides, convolved with the weight [C,
 * K/g, kernel].
 *
 *   out = stride * (in - 1) + output_padding + (kernel - 1) * dilation + 1 - pad_begin - pad_end
 *
 * Channels are the reverse of Conv's: those of x are reduced with axis 0 of the weight; axis 1 of
 * the weight gives those of y. */
#include "base/error.h"
#include "base/memory.h"
#include "base/plural.h"
#include "graph/coupling.h"
#include "graph/ops/shared/grad_in.h"
#include "graph/ops/shared/conv_in.h"
#include "graph/ops/shared/expect_in.h"
#include "graph/ops/shared/op_in.h"
#include "graph/ops/shared/window_grad_in.h"
#include "tensor/buf.h"

/** Sizes and pads of every spatial axis; x has known spatial sizes. */
typedef struct plan {
  laci_node_window window;
  int64_t out[LACI_MAX_SPATIAL];
} plan;

static lac_status read_spatial_ints(const laci_node *node, const char *name, int n_spatial,
                                    const int64_t **values, lac_error *err) {
  size_t n = 0;
  *values = laci_node_ints(node, name, &n);
  for (size_t at = 0; *values && at < n; at++) {
    if ((*values)[at] < 0 || (*values)[at] > INT32_MAX) {
      return laci_node_fail(node, err, LAC_BAD_SHAPE, "attribute %s[%zu] is %lld", name, at,
                            (long long)(*values)[at]);
    }
  }
  /* Old exporters write batch and channels into output_shape as well. */
  if (*values && n == (size_t)n_spatial + 2) *values += 2;
  else if (*values && n != (size_t)n_spatial) {
    return laci_node_fail(node, err, LAC_BAD_SHAPE, "attribute %s has %zu value%s, wanted %d", name,
                          n, laci_plural((int64_t)n), n_spatial);
  }
  return LAC_OK;
}

/** Computes the pads from a given output size. If the total is odd, the end gets one more; with
 * SAME_LOWER the begin does, and also, as the operator's text says, where auto_pad is absent. */
static void compute_pads_from_output_size(laci_window_axis *axis, laci_auto_pad mode, int64_t in,
                                          int64_t extra, int64_t out) {
  int64_t total = axis->stride * (in - 1) + extra + (axis->kernel - 1) * axis->dilation + 1 - out;
  if (total < 0) total = 0;
  axis->pad_begin = mode == LACI_PAD_SAME_UPPER ? total / 2 : total - total / 2;
  axis->pad_end = total - axis->pad_begin;
}

static lac_status compute_window_and_output(const laci_node *node, const laci_shape *x,
                                            const laci_shape *w, plan *p, lac_error *err) {
  int n_spatial = x->rank - 2;
  const int64_t *extra = NULL, *shape = NULL;
  lac_status st = laci_window_read(node, n_spatial, w, &p->window, err);
  if (!st) st = read_spatial_ints(node, "output_padding", n_spatial, &extra, err);
  if (!st) st = read_spatial_ints(node, "output_shape", n_spatial, &shape, err);
  if (st) return st;
  laci_auto_pad mode = p->window.auto_pad;
  for (int at = 0; at < n_spatial; at++) {
    laci_window_axis *axis = &p->window.axis[at];
    int64_t in = x->dims[at + 2], more = extra ? extra[at] : 0;
    if (in > INT32_MAX) {
      return laci_node_fail(node, err, LAC_BAD_SHAPE, "axis %d has size %lld", at + 2,
                            (long long)in);
    }
    bool same = mode == LACI_PAD_SAME_UPPER || mode == LACI_PAD_SAME_LOWER;
    if (shape || same) {
      p->out[at] = shape ? shape[at] : in * axis->stride;
      compute_pads_from_output_size(axis, mode, in, more, p->out[at]);
    } else {
      p->out[at] = axis->stride * (in - 1) + more + (axis->kernel - 1) * axis->dilation + 1 -
                   axis->pad_begin - axis->pad_end;
    }
    if (p->out[at] < 0) {
      return laci_node_fail(node, err, LAC_BAD_SHAPE,
                            "axis %d of size %lld gives an output of size %lld", at + 2,
                            (long long)in, (long long)p->out[at]);
    }
  }
  return LAC_OK;
}

static lac_status check_channels(laci_infer *infer, int64_t n_groups) {
  const laci_shape *x = &infer->in[0]->shape, *w = &infer->in[1]->shape;
  if (x->rank < 0 || w->rank < 0 || x->dims[1] < 0 || w->dims[0] < 0) return LAC_OK;
  if (x->dims[1] == w->dims[0] && w->dims[0] % n_groups == 0) return LAC_OK;
  return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE,
                        "the input has %lld channels, the weight wants %lld in %lld groups",
                        (long long)x->dims[1], (long long)w->dims[0], (long long)n_groups);
}

static bool expect_input_shape(const laci_infer *infer, laci_shape *shape) {
  const laci_shape *w = laci_expect_known_shape_of_input(infer, 1);
  return w && w->rank >= 3 && laci_expect_size(infer, w->rank, 1, w->dims[0], shape);
}

static lac_status infer(laci_infer *infer) {
  int n_spatial = 0;
  int64_t n_groups = 1;
  lac_status st = laci_check_n_inputs(infer, 2, 3);
  if (!st) st = laci_conv_read_groups(infer->node, &n_groups, infer->err);
  if (!st) st = laci_conv_check_ranks(infer, &n_spatial);
  if (!st) st = check_channels(infer, n_groups);
  if (st) return st;
  const laci_shape *x = &infer->in[0]->shape, *w = &infer->in[1]->shape;
  infer->out[0].dtype = infer->in[0]->dtype;
  if (n_spatial == 0) return LAC_OK;
  laci_shape *y = &infer->out[0].shape;
  bool k_known = w->rank >= 0 && w->dims[1] >= 0 && w->dims[1] <= INT32_MAX;
  int64_t channels_out = k_known ? w->dims[1] * n_groups : -1;
  st = laci_conv_check_bias(infer, channels_out);
  if (st) return st;
  y->dims[0] = x->rank >= 0 ? x->dims[0] : infer->new_symbol(infer);
  y->dims[1] = channels_out >= 0 ? channels_out : infer->new_symbol(infer);
  y->rank = n_spatial + 2;
  bool known = x->rank >= 0 && w->rank >= 0;
  for (int at = 2; known && at < y->rank; at++) known = x->dims[at] >= 0 && w->dims[at] >= 0;
  plan p;
  if (known) st = compute_window_and_output(infer->node, x, w, &p, infer->err);
  if (st) return st;
  for (int at = 0; at < n_spatial; at++) {
    y->dims[at + 2] = known ? p.out[at] : infer->new_symbol(infer);
  }
  return LAC_OK;
}

static lac_status eval(laci_eval *eval) {
  int64_t n_groups;
  plan p;
  laci_patches patches;
  const laci_shape *x = &eval->in[0]->shape, *w = &eval->in[1]->shape;
  lac_status st = laci_check_floats(eval);
  if (!st) st = laci_conv_read_groups(eval->node, &n_groups, eval->err);
  if (!st) st = compute_window_and_output(eval->node, x, w, &p, eval->err);
  if (!st) st = laci_patches_init(&patches, eval, &p.window);
  if (st) return st;
  double *transposed = laci_conv_transposed_weight(eval->in[1], n_groups);
  if (!transposed) return laci_fail_memory(eval->err, eval->node->name);
  patches.transposed = true;
  patches.channels = w->dims[0] / n_groups;
  laci_conv_fill_bias(eval);
  st = laci_conv_add_products(eval, &patches, transposed, n_groups);
  laci_free(transposed);
  return st;
}

static void couple_channels(laci_coupling *c, const laci_shape *w, int64_t n_groups) {
  bool depth = n_groups > 1 && w->dims[1] == 1 && w->dims[0] == n_groups;
  int in = laci_coupling_new_label(c), out = depth ? in : laci_coupling_new_label(c);
  laci_coupling_set_label(c, 0, 1, in);
  laci_coupling_set_label(c, 1, 0, in);
  laci_coupling_set_label(c, LACI_OUT(0), 1, out);
  laci_coupling_set_label(c, 2, 0, out);
  if (depth) return;
  if (n_groups == 1) {
    laci_coupling_set_label(c, 1, 1, out);
    return;
  }
  laci_coupling_add_grouped_axis(c, (laci_grouped_axis){.port = 1,
                                                        .row_axis = 0,
                                                        .axis = 1,
                                                        .data_port = LACI_OUT(0),
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
  c->why = "places along height and width matter to ConvTranspose";
  if (!x || !w || !y || x->rank < 3 || w->rank != x->rank) return laci_coupling_status(c);
  if (n_groups < 1 || w->dims[0] < 0 || w->dims[1] < 0) return laci_coupling_status(c);
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
      .port = 1, .k_axis = 1, .c_axis = 0, .groups = laci_node_int(node, "group", 1)};
  return 1;
}

/** The forward pass equals the gradient of a convolution with respect to its input. So its gradient
 * is that convolution, and the gradient of the weight is that of the convolution's weight with
 * input and output exchanged. */
static lac_status gradient(laci_gradient_builder *b, const laci_node *node) {
  laci_window_attrs attrs = {.n = 0};
  plan p;
  laci_shape x = laci_gradient_shape_of_input(b, node, 0),
             w = laci_gradient_shape_of_input(b, node, 1);
  if (compute_window_and_output(node, &x, &w, &p, NULL))
    return laci_gradient_fail_unsupported(b, node, "its window does not fit");
  for (int at = 0; at < p.window.n_spatial; at++) {
    const laci_window_axis *a = &p.window.axis[at];
    /* The Conv of dY has to read exactly `want` positions: its end pad makes up for positions that
       output_padding added to Y, and is negative if there are more of these than of padding. */
    int64_t want = a->stride * (x.dims[at + 2] - 1) + (a->kernel - 1) * a->dilation + 1;
    p.window.axis[at].pad_end = want - p.out[at] - a->pad_begin;
  }
  laci_window_attrs_fill(&attrs, &p.window);
  attrs.attr[attrs.n++] = laci_attr_int("group", laci_node_int(node, "group", 1));
  int dy = laci_gradient_of(b, node, 0);
  if (laci_gradient_is_needed(b, node, 0)) {
    const int inputs[] = {dy, node->inputs[1]};
    laci_gradient_node made = {
        .type = "Conv", .n_inputs = 2, .inputs = inputs, .n_attrs = attrs.n, .attrs = attrs.attr};
    laci_gradient_contribute(b, node, 0, laci_gradient_add_node(b, &made, NULL));
  }
  if (laci_gradient_is_needed(b, node, 1)) {
    const int inputs[] = {dy, node->inputs[0]};
    laci_gradient_contribute(b, node, 1,
                             laci_gradient_add_internal(b, "ConvGradWeight", 2, inputs, &attrs));
  }
  laci_gradient_contribute_channel_sums(b, node, 2, dy);
  return laci_gradient_status(b);
}

const laci_op laci_op_conv_transpose = {
    .name = "ConvTranspose",
    .role = LACI_ROLE_ALLOW,
    .attributes = LACI_ATTRIBUTES(
        {"auto_pad", LACI_ATTR_TEXT}, {"dilations", LACI_ATTR_INTS}, {"group", LACI_ATTR_INT},
        {"kernel_shape", LACI_ATTR_INTS}, {"output_padding", LACI_ATTR_INTS},
        {"output_shape", LACI_ATTR_INTS}, {"pads", LACI_ATTR_INTS}, {"strides", LACI_ATTR_INTS}),
    .weights = find_weight_axes,
    .infer = infer,
    .expect = expect_input_shape,
    .eval = eval,
    .couple = couple_channel_orders,
    .gradient = gradient};
