/* SPDX-License-Identifier: Apache-2.0
 * GridSample: for each position of the grid, reads x [N, C, sizes...] at the coordinates that the
 * grid holds, interpolated between neighbours whose weights are products over the axes. Coordinates
 * in the grid [N, positions..., axes] run from -1 to 1, the last axis first. Jaderberg et al.,
 * arXiv:1506.02025, 2015.
 *
 * Batch and channels pass channel orders through (coupling.h); all other axes are FIXED. */
#include <math.h>

#include "base/to_int.h"
#include "graph/coupling.h"
#include "graph/ops/shared/op_in.h"
#include "tensor/buf.h"

typedef enum sampling { SAMPLE_NEAREST, SAMPLE_LINEAR, SAMPLE_CUBIC } sampling;
typedef enum outside { OUTSIDE_ZEROS, OUTSIDE_BORDER, OUTSIDE_REFLECTION } outside;

enum { MAX_AXES = LACI_MAX_RANK - 2, MAX_TAPS = 4 };

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 2, 2);
  if (st) return st;
  infer->out[0].dtype = infer->in[0]->dtype;
  const laci_shape *x = laci_in_shape(infer, 0), *grid = laci_in_shape(infer, 1);
  if (!x || !grid) return LAC_OK;
  int64_t n_axes = grid->rank > 0 ? grid->dims[grid->rank - 1] : 0;
  if (x->rank < 3 || grid->rank != x->rank || (n_axes >= 0 && n_axes != x->rank - 2)) {
    return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE,
                          "a grid of %d axes for data of %d", grid->rank, x->rank);
  }
  if (x->dims[0] >= 0 && grid->dims[0] >= 0 && x->dims[0] != grid->dims[0]) {
    return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE, "%lld grids for %lld images",
                          (long long)grid->dims[0], (long long)x->dims[0]);
  }
  infer->out[0].shape = *x;
  for (int axis = 2; axis < x->rank; axis++) infer->out[0].shape.dims[axis] = grid->dims[axis - 1];
  return LAC_OK;
}

typedef struct job {
  const laci_eval *eval;
  sampling mode;
  outside beyond;
  bool corners;
  int n_axes;
  int64_t spatial, places, channels;
} job;

/** The neighbours of a coordinate along one axis, and their weights; position -1: there is no
 * element. */
typedef struct taps {
  int n;
  int64_t at[MAX_TAPS];
  double weight[MAX_TAPS];
} taps;

static double reflect_position(double x, double low, double high) {
  double range = high - low, away = x < low ? low - x : x > high ? x - high : 0;
  if (away == 0 || !(range > 0)) return away == 0 ? x : low;
  double folds = floor(away / range), rest = away - folds * range;
  bool from_low = (x < low) == (fmod(folds, 2) == 0);
  return from_low ? low + rest : high - rest;
}

/** Returns the index of the element that is read for position `at` of an axis; -1: there is
 * none. */
static int64_t find_source_index(const job *j, double at, int64_t size) {
  double last = (double)(size - 1);
  double low = j->corners ? 0 : -0.5, high = j->corners ? last : last + 0.5;
  if (j->beyond == OUTSIDE_ZEROS && !(at >= 0 && at <= last)) return -1;
  if (j->beyond == OUTSIDE_REFLECTION) at = trunc(reflect_position(at, low, high));
  return laci_clamp_to_range(at, 0, size - 1);
}

/** Returns the cubic weight at a distance (Keys, Cubic convolution interpolation, 1981), with a =
 * -0.75 as in runtimes. */
static double compute_cubic_weight(double distance) {
  double d = fabs(distance), a = -0.75;
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

static void find_neighbours_and_weights(const job *j, double given, int64_t size, taps *t) {
  double last = (double)(size - 1), low = j->corners ? 0 : -0.5;
  double high = j->corners ? last : last + 0.5;
  double at = j->corners ? (given + 1) / 2 * last : ((given + 1) * (double)size - 1) / 2;
  at = (float)at; /* positions are rounded to float before further rounding, as in runtimes */
  if (j->mode == SAMPLE_NEAREST) at = rint(at);
  /* a cubic filter may read beyond the border; resolve() clamps each of its elements */
  if (!(at >= low && at <= high) && j->mode != SAMPLE_CUBIC) {
    if (j->beyond == OUTSIDE_BORDER) at = fmin(fmax(at, 0), last);
    if (j->beyond == OUTSIDE_REFLECTION) at = reflect_position(at, low, high);
  }
  if (!(fabs(at) < 0x1p52)) at = -2; /* outside of any axis */
  double first = j->mode == SAMPLE_NEAREST ? trunc(at) : floor(at);
  if (j->mode == SAMPLE_CUBIC) first -= 1;
  t->n = j->mode == SAMPLE_NEAREST ? 1 : j->mode == SAMPLE_LINEAR ? 2 : 4;
  for (int k = 0; k < t->n; k++) {
    double distance = fabs(first + k - at);
    t->at[k] = find_source_index(j, first + k, size);
    t->weight[k] = j->mode == SAMPLE_NEAREST  ? 1
                   : j->mode == SAMPLE_LINEAR ? 1 - distance
                                              : compute_cubic_weight(distance);
  }
}

/** Returns the weighted sum over all combinations of neighbours, one from each axis. */
static double sum_weighted_neighbours(const double *x, const int64_t *sizes, const taps *t,
                                      int n_axes) {
  if (n_axes == 0) return *x;
  int64_t stride = 1;
  for (int axis = 1; axis < n_axes; axis++) stride *= sizes[axis];
  double sum = 0;
  for (int k = 0; k < t->n; k++) {
    if (t->at[k] < 0 || t->weight[k] == 0) continue;
    sum +=
        t->weight[k] * sum_weighted_neighbours(x + t->at[k] * stride, sizes + 1, t + 1, n_axes - 1);
  }
  return sum;
}

static void sample_places(int64_t begin, int64_t end, void *context) {
  const job *j = context;
  const laci_buf *x = j->eval->in[0], *grid = j->eval->in[1];
  const int64_t *sizes = x->shape.dims + 2;
  for (int64_t at = begin; at < end; at++) {
    int64_t n = at / j->places, place = at % j->places;
    taps t[MAX_AXES];
    for (int axis = 0; axis < j->n_axes; axis++) {
      find_neighbours_and_weights(j, grid->f[at * j->n_axes + j->n_axes - 1 - axis], sizes[axis],
                                  &t[axis]);
    }
    for (int64_t channel = 0; channel < j->channels; channel++) {
      int64_t image = n * j->channels + channel;
      j->eval->out[0]->f[image * j->places + place] =
          sum_weighted_neighbours(x->f + image * j->spatial, sizes, t, j->n_axes);
    }
  }
}

/** Returns the index of a text in a list, or -1. */
static int index_of_name(const char *text, const char *const *names, int n) {
  for (int at = 0; at < n; at++) {
    if (strcmp(text, names[at]) == 0) return at;
  }
  return -1;
}

static lac_status eval(laci_eval *eval) {
  static const char *const modes[] = {"nearest", "linear", "cubic"};
  static const char *const old_modes[] = {"nearest", "bilinear", "bicubic"};
  static const char *const paddings[] = {"zeros", "border", "reflection"};
  const laci_node *node = eval->node;
  const laci_shape *x = &eval->in[0]->shape;
  bool old = node->version > 0 && node->version < 20;
  const char *mode = laci_node_text(node, "mode", old ? "bilinear" : "linear");
  const char *padding = laci_node_text(node, "padding_mode", "zeros");
  int m = index_of_name(mode, old ? old_modes : modes, 3), p = index_of_name(padding, paddings, 3);
  lac_status st = laci_check_floats(eval);
  if (!st && (m < 0 || p < 0))
    st = laci_node_fail(node, eval->err, LAC_UNSUPPORTED, "mode %s, %s", mode, padding);
  if (st || eval->out[0]->count == 0 || eval->in[0]->count == 0) return st;
  job j = {.eval = eval,
           .mode = (sampling)m,
           .beyond = (outside)p,
           .corners = laci_node_int(node, "align_corners", 0) != 0,
           .n_axes = x->rank - 2,
           .channels = x->dims[1],
           .spatial = laci_shape_count_range(x, 2, x->rank),
           .places = laci_shape_count_range(&eval->out[0]->shape, 2, x->rank)};
  laci_eval_parallel(eval, x->dims[0] * j.places, sample_places, &j);
  return LAC_OK;
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph, (void)node;
  c->why = "GridSample reads places by their position";
  int batch = laci_coupling_new_label(c), channel = laci_coupling_new_label(c);
  laci_coupling_set_label(c, 0, 0, batch);
  laci_coupling_set_label(c, 0, 1, channel);
  laci_coupling_set_label(c, 1, 0, batch);
  laci_coupling_set_label(c, LACI_OUT(0), 0, batch);
  laci_coupling_set_label(c, LACI_OUT(0), 1, channel);
  return laci_coupling_status(c);
}

const laci_op laci_op_grid_sample = {
    .name = "GridSample",
    .role = LACI_ROLE_PASS_THROUGH,
    .discontinuous = true,
    .attributes = LACI_ATTRIBUTES({"align_corners", LACI_ATTR_INT}, {"mode", LACI_ATTR_TEXT},
                                  {"padding_mode", LACI_ATTR_TEXT}),
    .infer = infer,
    .eval = eval,
    .couple = couple_channel_orders};
