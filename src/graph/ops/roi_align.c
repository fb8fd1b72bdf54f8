/* SPDX-License-Identifier: Apache-2.0
 * RoiAlign: regions [R, 4] of images [N, C, H, W], each cut into output_height x output_width bins;
 * a bin is the mean (or maximum) of sampled points inside, each interpolated between four elements.
 * He et al., Mask R-CNN, arXiv:1703.06870, 2017.
 *
 * Channels and regions pass channel orders through (coupling.h); the axis of images is FIXED, for
 * regions refer to images by index. */
#include <math.h>

#include "base/to_int.h"
#include "graph/coupling.h"
#include "graph/ops/shared/op_in.h"
#include "tensor/buf.h"

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 3, 3);
  if (st) return st;
  const laci_shape *x = laci_in_shape(infer, 0), *rois = laci_in_shape(infer, 1);
  infer->out[0].dtype = infer->in[0]->dtype;
  int64_t height = laci_node_int(infer->node, "output_height", 1);
  int64_t width = laci_node_int(infer->node, "output_width", 1);
  bool fits = (!x || x->rank == 4) && (!rois || rois->rank == 2) && height > 0 && width > 0;
  if (!fits || (rois && rois->dims[1] >= 0 && rois->dims[1] != 4)) {
    return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE,
                          "wanted images of four axes and regions of four numbers");
  }
  int64_t n = rois ? rois->dims[0] : infer->new_symbol(infer);
  int64_t channels = x ? x->dims[1] : infer->new_symbol(infer);
  infer->out[0].shape = (laci_shape){.rank = 4, .dims = {n, channels, height, width}};
  return LAC_OK;
}

typedef struct job {
  const laci_eval *eval;
  int64_t ratio; /* number of sampled points in a bin along each axis; 0: as many as elements of x
                    in the bin */
  double scale, offset;
  bool largest;
} job;

/** How one axis of a region is divided into output bins. */
typedef struct side {
  double begin, bin;
  int64_t n_places; /* number of sampled points in a bin along this axis */
} side;

static side divide_region_into_bins(const job *j, double from, double to, int64_t bins) {
  /* computed in float, as in runtimes, because the result is rounded up below */
  float begin = (float)from * (float)j->scale - (float)j->offset;
  float size = (float)to * (float)j->scale - (float)j->offset - begin;
  if (j->offset == 0) size = fmaxf(size, 1); /* before opset 16 a region has at least size 1 */
  float places = ceilf(size / (float)bins);
  bool fits = places > 0 && places < 0x1p20F;
  return (side){.begin = begin,
                .bin = size / (float)bins,
                .n_places = j->ratio > 0 ? j->ratio
                            : fits       ? laci_clamp_to_int64(places)
                                         : 0};
}

/** Finds the two neighbours of a position, and the weight of the second. Returns false where it is
 * outside. */
static bool find_neighbours(double at, int64_t size, int64_t *low, int64_t *high, double *weight) {
  if (!(at >= -1 && at <= (double)size)) return false;
  at = fmax(at, 0);
  *low = laci_clamp_to_int64(at);
  *high = *low + 1;
  if (*low >= size - 1) {
    *low = *high = size - 1;
    at = (double)*low;
  }
  *weight = at - (double)*low;
  return true;
}

/** Returns one bin of one channel: the mean of the sampled points, or the largest of all weighted
 * neighbours. */
static double pool_bin(const job *j, const double *x, const side *y_side, const side *x_side,
                       const int64_t *bin) {
  const int64_t *size = j->eval->in[0]->shape.dims + 2;
  double sum = 0, largest = -INFINITY;
  int64_t n = y_side->n_places * x_side->n_places;
  for (int64_t at = 0; at < n; at++) {
    double row = (double)(at / x_side->n_places) + 0.5, col = (double)(at % x_side->n_places) + 0.5;
    int64_t y0, y1, x0, x1;
    double wy, wx;
    double y =
        y_side->begin + (double)bin[0] * y_side->bin + row * y_side->bin / (double)y_side->n_places;
    double across =
        x_side->begin + (double)bin[1] * x_side->bin + col * x_side->bin / (double)x_side->n_places;
    if (!find_neighbours(y, size[0], &y0, &y1, &wy) ||
        !find_neighbours(across, size[1], &x0, &x1, &wx)) {
      largest = fmax(largest, 0);
      continue;
    }
    const double part[4] = {(1 - wy) * (1 - wx) * x[y0 * size[1] + x0],
                            (1 - wy) * wx * x[y0 * size[1] + x1],
                            wy * (1 - wx) * x[y1 * size[1] + x0], wy * wx * x[y1 * size[1] + x1]};
    for (int k = 0; k < 4; k++) {
      sum += part[k];
      largest = fmax(largest, part[k]);
    }
  }
  if (n == 0) return 0;
  return j->largest ? largest : sum / (double)n;
}

static void pool_regions(int64_t begin, int64_t end, void *context) {
  const job *j = context;
  const laci_buf *x = j->eval->in[0], *rois = j->eval->in[1], *images = j->eval->in[2];
  laci_buf *y = j->eval->out[0];
  const int64_t *out = y->shape.dims;
  int64_t channels = out[1], spatial = x->shape.dims[2] * x->shape.dims[3];
  for (int64_t at = begin; at < end; at++) {
    const double *roi = rois->f + at * 4;
    side rows = divide_region_into_bins(j, roi[1], roi[3], out[2]),
         cols = divide_region_into_bins(j, roi[0], roi[2], out[3]);
    int64_t image = laci_buf_get_i(images, at);
    for (int64_t k = 0; k < channels * out[2] * out[3]; k++) {
      const int64_t bin[2] = {k / out[3] % out[2], k % out[3]};
      const double *from = x->f + (image * channels + k / (out[2] * out[3])) * spatial;
      y->f[at * channels * out[2] * out[3] + k] = pool_bin(j, from, &rows, &cols, bin);
    }
  }
}

static lac_status eval(laci_eval *eval) {
  const laci_node *node = eval->node;
  const laci_buf *x = eval->in[0], *rois = eval->in[1], *images = eval->in[2];
  const char *mode = laci_node_text(node, "mode", "avg");
  bool old = node->version > 0 && node->version < 16;
  const char *places = laci_node_text(node, "coordinate_transformation_mode",
                                      old ? "output_half_pixel" : "half_pixel");
  job j = {.eval = eval,
           .ratio = laci_node_int(node, "sampling_ratio", 0),
           .scale = laci_node_float(node, "spatial_scale", 1),
           .offset = strcmp(places, "half_pixel") == 0 ? 0.5 : 0,
           .largest = strcmp(mode, "max") == 0};
  if (!x->f || !rois->f || images->count != rois->shape.dims[0] || j.ratio > 1 << 20) {
    return laci_node_fail(node, eval->err, LAC_BAD_SHAPE, "the regions do not fit the images");
  }
  for (int64_t at = 0; at < images->count; at++) {
    int64_t image = laci_buf_get_i(images, at);
    lac_status st = laci_check_index(eval, x->shape.dims[0], &image);
    if (st) return st;
  }
  if (x->count > 0) laci_eval_parallel(eval, images->count, pool_regions, &j);
  return LAC_OK;
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph, (void)node;
  c->why = "RoiAlign reads places and images by their position";
  int channel = laci_coupling_new_label(c), region = laci_coupling_new_label(c);
  laci_coupling_set_label(c, 0, 1, channel);
  laci_coupling_set_label(c, 1, 0, region);
  laci_coupling_set_label(c, 2, 0, region);
  laci_coupling_set_label(c, LACI_OUT(0), 0, region);
  laci_coupling_set_label(c, LACI_OUT(0), 1, channel);
  return laci_coupling_status(c);
}

const laci_op laci_op_roi_align = {
    .name = "RoiAlign",
    .role = LACI_ROLE_PASS_THROUGH,
    .discontinuous = true,
    .attributes = LACI_ATTRIBUTES(
        {"coordinate_transformation_mode", LACI_ATTR_TEXT}, {"mode", LACI_ATTR_TEXT},
        {"output_height", LACI_ATTR_INT}, {"output_width", LACI_ATTR_INT},
        {"sampling_ratio", LACI_ATTR_INT}, {"spatial_scale", LACI_ATTR_FLOAT}),
    .infer = infer,
    .eval = eval,
    .couple = couple_channel_orders};
