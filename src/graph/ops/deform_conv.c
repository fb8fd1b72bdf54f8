/* SPDX-License-Identifier: Apache-2.0
 * DeformConv: a convolution over height and width whose kernel reads each position moved by an
 * offset, interpolated between four elements (0 outside), times a mask. Dai et al.,
 * arXiv:1703.06211, 2017; with the mask, Zhu et al., arXiv:1811.11168, 2018.
 *
 * Channels are coupled as in Conv where there is one group and one set of offsets; else they are
 * FIXED: their order must stay (coupling.h). */
#include <math.h>

#include "base/to_int.h"
#include "graph/coupling.h"
#include "graph/ops/shared/conv_in.h"
#include "graph/ops/shared/op_in.h"
#include "tensor/buf.h"

enum { X, W, OFFSET, BIAS, MASK };

/** Sizes from inputs and attributes, checked against each other as far as they are known. */
typedef struct geometry {
  int64_t groups, offset_groups;
  laci_node_window window;
} geometry;

static lac_status check_axis_size(laci_infer *infer, int port, int axis, int64_t wanted) {
  const laci_shape *shape = laci_in_shape(infer, port);
  if (!shape || wanted < 0 || shape->dims[axis] < 0 || shape->dims[axis] == wanted) return LAC_OK;
  return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE,
                        "axis %d of input %d has size %lld, wanted %lld", axis, port,
                        (long long)shape->dims[axis], (long long)wanted);
}

static lac_status read_geometry(const laci_node *node, const laci_shape *w, geometry *g,
                                lac_error *err) {
  g->offset_groups = laci_node_int(node, "offset_group", 1);
  lac_status st = laci_conv_read_groups(node, &g->groups, err);
  if (!st && g->offset_groups < 1)
    st = laci_node_fail(node, err, LAC_BAD_SHAPE, "offset_group is %lld",
                        (long long)g->offset_groups);
  return st ? st : laci_window_read(node, 2, w, &g->window, err);
}

/** Checks the shapes of offsets and mask: channels for each set and kernel element, and the
 * output's spatial size. */
static lac_status check_offset_and_mask_shapes(laci_infer *infer, const geometry *g,
                                               const laci_shape *y) {
  int64_t kernel = g->offset_groups;
  lac_status st = LAC_OK;
  for (int at = 0; at < 2; at++) {
    int64_t size = g->window.axis[at].kernel;
    kernel = kernel < 0 || size < 0 || size > INT32_MAX / kernel ? -1 : kernel * size;
  }
  for (int port = OFFSET; !st && port <= MASK; port++) {
    const laci_shape *shape = laci_in_shape(infer, port);
    if (port == BIAS || !shape) continue;
    if (shape->rank != 4) {
      return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE,
                            "input %d has %d axes, wanted 4", port, shape->rank);
    }
    int64_t each = kernel < 0 ? -1 : port == OFFSET ? 2 * kernel : kernel;
    st = check_axis_size(infer, port, 1, each);
    for (int axis = 0; !st && axis < 4; axis++)
      if (axis != 1) st = check_axis_size(infer, port, axis, y->dims[axis]);
  }
  return st;
}

static lac_status infer(laci_infer *infer) {
  geometry g;
  lac_status st = laci_check_n_inputs(infer, 3, 5);
  if (st) return st;
  const laci_shape *x = laci_in_shape(infer, X), *w = laci_in_shape(infer, W);
  infer->out[0].dtype = infer->in[X]->dtype;
  if ((x && x->rank != 4) || (w && w->rank != 4)) {
    return laci_node_fail(infer->node, infer->err, LAC_UNSUPPORTED,
                          "only images of two axes can be run");
  }
  if (!x || !w) return LAC_OK;
  st = read_geometry(infer->node, w, &g, infer->err);
  const laci_shape *bias = laci_in_shape(infer, BIAS);
  if (!st && bias && bias->rank != 1)
    st = laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE, "the bias has %d axes, wanted 1",
                        bias->rank);
  if (!st) st = check_axis_size(infer, BIAS, 0, w->dims[0]);
  if (st) return st;
  int64_t channels = x->dims[1];
  bool fits = channels < 0 || (channels % g.offset_groups == 0 && channels % g.groups == 0 &&
                               (w->dims[1] < 0 || channels / g.groups == w->dims[1]));
  if (!fits || (w->dims[0] >= 0 && w->dims[0] % g.groups != 0)) {
    return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE,
                          "%lld channels in %lld groups and %lld sets of offsets do not fit a "
                          "weight of %lld by %lld",
                          (long long)channels, (long long)g.groups, (long long)g.offset_groups,
                          (long long)w->dims[0], (long long)w->dims[1]);
  }
  laci_shape *y = &infer->out[0].shape;
  *y = (laci_shape){.rank = 4, .dims = {x->dims[0], w->dims[0]}};
  st = laci_window_infer(infer, &g.window, x, y);
  return st ? st : check_offset_and_mask_shapes(infer, &g, y);
}

typedef struct job {
  const laci_eval *eval;
  geometry g;
  int64_t channels, height, width, out, out_height, out_width, kernel_height, kernel_width;
} job;

/** Returns one element of a channel; 0 outside of the image. */
static double read_element(const job *j, const double *x, double h, double w) {
  bool inside = h >= 0 && h < (double)j->height && w >= 0 && w < (double)j->width;
  return inside ? x[laci_clamp_to_int64(h) * j->width + laci_clamp_to_int64(w)] : 0;
}

static double interpolate_element(const job *j, const double *x, double h, double w) {
  double h0 = floor(h), w0 = floor(w), dh = h - h0, dw = w - w0;
  return (1 - dh) * ((1 - dw) * read_element(j, x, h0, w0) + dw * read_element(j, x, h0, w0 + 1)) +
         dh * ((1 - dw) * read_element(j, x, h0 + 1, w0) + dw * read_element(j, x, h0 + 1, w0 + 1));
}

/** Returns what kernel element k reads in a channel for an output position. */
static double sample_kernel_element(const job *j, int64_t image, int64_t channel, int64_t k,
                                    int64_t at) {
  const laci_window_axis *axis = j->g.window.axis;
  int64_t kernel = j->kernel_height * j->kernel_width, places = j->out_height * j->out_width;
  int64_t set = channel / (j->channels / j->g.offset_groups);
  int64_t where = (image * j->g.offset_groups + set) * kernel + k;
  const double *offset = j->eval->in[OFFSET]->f + 2 * where * places + at;
  const laci_buf *mask = laci_operand(j->eval, MASK);
  int64_t h = at / j->out_width * axis[0].stride - axis[0].pad_begin +
              k / j->kernel_width * axis[0].dilation;
  int64_t w = at % j->out_width * axis[1].stride - axis[1].pad_begin +
              k % j->kernel_width * axis[1].dilation;
  const double *x = j->eval->in[X]->f + (image * j->channels + channel) * j->height * j->width;
  double value = interpolate_element(j, x, (double)h + offset[0], (double)w + offset[places]);
  return mask ? value * mask->f[where * places + at] : value;
}

/** Computes the output for a range of channels of all images. */
static void convolve_channels(int64_t begin, int64_t end, void *context) {
  const job *j = context;
  const laci_buf *bias = laci_operand(j->eval, BIAS);
  int64_t kernel = j->kernel_height * j->kernel_width, places = j->out_height * j->out_width;
  int64_t own = j->channels / j->g.groups;
  for (int64_t channel = begin; channel < end; channel++) {
    int64_t image = channel / j->out, k = channel % j->out;
    int64_t first = k / (j->out / j->g.groups) * own;
    const double *w = j->eval->in[W]->f + k * own * kernel;
    for (int64_t at = 0; at < places; at++) {
      double sum = bias ? bias->f[k] : 0;
      for (int64_t c = 0; c < own; c++) {
        for (int64_t t = 0; t < kernel; t++)
          sum += w[c * kernel + t] * sample_kernel_element(j, image, first + c, t, at);
      }
      j->eval->out[0]->f[channel * places + at] = sum;
    }
  }
}

static lac_status eval(laci_eval *eval) {
  const laci_shape *x = &eval->in[X]->shape, *w = &eval->in[W]->shape;
  job j = {.eval = eval,
           .channels = x->dims[1],
           .height = x->dims[2],
           .width = x->dims[3],
           .out = w->dims[0],
           .out_height = eval->out[0]->shape.dims[2],
           .out_width = eval->out[0]->shape.dims[3],
           .kernel_height = w->dims[2],
           .kernel_width = w->dims[3]};
  lac_status st = laci_check_floats(eval);
  if (!st) st = read_geometry(eval->node, w, &j.g, eval->err);
  if (st) return st;
  for (int at = 0; at < 2; at++) laci_window_resolve_out_size(&j.g.window, at, x->dims[at + 2]);
  laci_eval_parallel(eval, x->dims[0] * j.out, convolve_channels, &j);
  return LAC_OK;
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph;
  geometry g;
  const laci_shape *x = laci_port_shape(c, X), *w = laci_port_shape(c, W);
  c->why = "groups of channels and places matter to DeformConv";
  if (!x || !w || read_geometry(node, w, &g, NULL)) return laci_coupling_status(c);
  for (int port = X; port < node->n_inputs; port++) laci_coupling_mark_described(c, port);
  int batch = laci_coupling_new_label(c);
  laci_coupling_set_label(c, X, 0, batch);
  laci_coupling_set_label(c, OFFSET, 0, batch);
  laci_coupling_set_label(c, LACI_OUT(0), 0, batch);
  if (laci_has_input(node, MASK)) laci_coupling_set_label(c, MASK, 0, batch);
  if (g.groups > 1) return laci_coupling_status(c);
  int out = laci_coupling_new_label(c);
  laci_coupling_set_label(c, W, 0, out);
  laci_coupling_set_label(c, LACI_OUT(0), 1, out);
  if (laci_has_input(node, BIAS)) laci_coupling_set_label(c, BIAS, 0, out);
  if (g.offset_groups > 1) return laci_coupling_status(c);
  int in = laci_coupling_new_label(c);
  laci_coupling_set_label(c, X, 1, in);
  laci_coupling_set_label(c, W, 1, in);
  return laci_coupling_status(c);
}

const laci_op laci_op_deform_conv = {
    .name = "DeformConv",
    .role = LACI_ROLE_INFER,
    .attributes = LACI_ATTRIBUTES({"dilations", LACI_ATTR_INTS}, {"group", LACI_ATTR_INT},
                                  {"kernel_shape", LACI_ATTR_INTS}, {"offset_group", LACI_ATTR_INT},
                                  {"pads", LACI_ATTR_INTS}, {"strides", LACI_ATTR_INTS}),
    .infer = infer,
    .eval = eval,
    .couple = couple_channel_orders};
