/* SPDX-License-Identifier: Apache-2.0
 * Resampling by taps: for each output position of an axis, a first input position and some weights.
 * Axes follow one another through intermediate tensors, which equals the product of the axes'
 * weights.
 *
 * Taps outside the input read its border, or have weight 0 with exclude_outside. With antialias,
 * the filter of an axis that gets smaller is 1 / scale times as wide. */
#include <math.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/to_int.h"
#include "graph/ops.h"
#include "graph/ops/shared/op_in.h"
#include "graph/ops/shared/resample_in.h"
#include "graph/resample.h"
#include "tensor/buf.h"

/** The largest width of a filter; no real input is as long. */
enum { LARGEST_FILTER = 1 << 20 };

/** Computes x / scale: in float for LACI_NEAREST, where the result is rounded to an integer, as
 * runtimes do. 3 / 0.6f is 5 in float, a little less in double. */
static double divide_by_scale(const laci_resampling *r, double x, double scale) {
  return r->mode == LACI_NEAREST ? (float)(x / scale) : x / scale;
}

static double find_source_position(const laci_resampling *r, const laci_resample_axis *axis,
                                   int64_t o, int64_t in, int64_t out) {
  double x = (double)o, size_in = (double)in, size_out = (double)out, scale = axis->scale;
  switch (r->place) {
    case LACI_HALF_PIXEL: return divide_by_scale(r, x + 0.5, scale) - 0.5;
    case LACI_HALF_PIXEL_FOR_NEAREST: return divide_by_scale(r, x + 0.5, scale);
    case LACI_PYTORCH_HALF_PIXEL: return out > 1 ? divide_by_scale(r, x + 0.5, scale) - 0.5 : 0;
    case LACI_ALIGN_CORNERS: { /* the scaled size need not be an integer */
      double size = fabs(scale * size_in - size_out) < 1e-6 ? size_out : scale * size_in;
      return out > 1 ? x * (size_in - 1) / (size - 1) : 0;
    }
    case LACI_ASYMMETRIC: return divide_by_scale(r, x, scale);
    case LACI_HALF_PIXEL_SYMMETRIC: {
      /* The middle of the input stays in the middle of the output, even if the scaled size is no
       * integer. */
      double whole = size_out / (scale * size_in), middle = size_in / 2;
      return middle * (1 - whole) + divide_by_scale(r, x + 0.5, scale) - 0.5;
    }
    case LACI_CROP_AND_RESIZE: {
      double begin = axis->crop_begin * (size_in - 1), end = axis->crop_end * (size_in - 1);
      return out > 1 ? begin + x * (end - begin) / (size_out - 1) : (begin + end) / 2;
    }
  }
  return x;
}

static double round_position(laci_resample_round round, bool shrinks, double x) {
  switch (round) {
    case LACI_ROUND_PREFER_FLOOR: return ceil(x - 0.5);
    case LACI_ROUND_PREFER_CEIL: return floor(x + 0.5);
    case LACI_ROUND_FLOOR: return floor(x);
    case LACI_ROUND_CEIL: return ceil(x);
    case LACI_ROUND_OLD: return shrinks ? ceil(x) : floor(x);
  }
  return x;
}

/** Returns the weight of an input position at that distance. */
static double compute_filter_weight(const laci_resampling *r, double distance) {
  double d = fabs(distance), a = r->cubic_a;
  if (r->mode == LACI_LINEAR) return d < 1 ? 1 - d : 0;
  if (d < 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

/** Fills in the weights of `width` input positions for output position o; their sum is 1. */
static void fill_weights(const laci_resampling *r, double place, double shrink, int64_t in,
                         const laci_resample_taps *t, int64_t o) {
  double half = (r->mode == LACI_LINEAR ? 1 : 2) / shrink, sum = 0;
  int64_t first = laci_clamp_to_int64(floor(place - half)) + 1;
  t->first[o] = first;
  for (int64_t at = 0; at < t->width; at++) {
    int64_t from = first + at;
    double w = compute_filter_weight(r, ((double)from - place) * shrink);
    if (r->exclude_outside && (from < 0 || from >= in)) w = 0;
    t->weight[o * t->width + at] = w;
    sum += w;
  }
  for (int64_t at = 0; at < t->width && sum != 0; at++) t->weight[o * t->width + at] /= sum;
}

/** Fills in the taps of all t->n_out output positions. */
static lac_status compute_taps(const laci_node *node, const laci_resampling *r,
                               const laci_resample_axis *axis, int64_t in, laci_resample_taps *t,
                               lac_error *err) {
  double shrink = r->antialias && axis->scale < 1 ? axis->scale : 1;
  double half = r->mode == LACI_NEAREST ? 0.5 : (r->mode == LACI_LINEAR ? 1 : 2) / shrink;
  if (!(2 * half < LARGEST_FILTER)) {
    return laci_node_fail(node, err, LAC_BAD_VALUE, "a scale of %g is too small", axis->scale);
  }
  t->width = laci_clamp_to_int64(ceil(2 * half));
  t->first = laci_alloc((size_t)t->n_out, sizeof *t->first);
  t->weight = laci_alloc((size_t)t->n_out * (size_t)t->width, sizeof *t->weight);
  if (!t->first || !t->weight) return laci_fail_memory(err, node->name);
  for (int64_t o = 0; o < t->n_out; o++) {
    double place = find_source_position(r, axis, o, in, t->n_out);
    bool outside = !(place >= 0 && place <= (double)(in - 1));
    if (r->place == LACI_CROP_AND_RESIZE && outside) {
      t->first[o] = INT64_MIN;
      continue;
    }
    if (!(fabs(place) < 9e15)) {
      return laci_node_fail(node, err, LAC_BAD_VALUE, "a scale of %g", axis->scale);
    }
    if (r->mode == LACI_NEAREST) {
      t->first[o] = laci_clamp_to_int64(round_position(r->round, axis->scale < 1, place));
      t->weight[o] = 1;
    } else {
      fill_weights(r, place, shrink, in, t, o);
    }
  }
  return LAC_OK;
}

typedef struct pass {
  const laci_resample_taps *taps;
  const double *x; /* [outer, in, inner] the tensor before an axis is resampled */
  double *y;       /* [outer, n_out, inner] the tensor afterwards */
  int64_t in, inner;
  double outside_value;
} pass;

static void resample_lines(int64_t begin, int64_t end, void *context) {
  const pass *p = context;
  for (int64_t line = begin; line < end; line++) {
    int64_t o = line % p->taps->n_out, outer = line / p->taps->n_out;
    double *y = p->y + line * p->inner;
    const double *x = p->x + outer * p->in * p->inner;
    bool outside = p->taps->first[o] == INT64_MIN;
    for (int64_t i = 0; i < p->inner; i++) y[i] = outside ? p->outside_value : 0;
    for (int64_t at = 0; at < p->taps->width && !outside; at++) {
      double w = p->taps->weight[o * p->taps->width + at];
      int64_t from = p->taps->first[o] + at;
      if (w == 0) continue;
      from = from < 0 ? 0 : from >= p->in ? p->in - 1 : from;
      for (int64_t i = 0; i < p->inner; i++) y[i] += w * x[from * p->inner + i];
    }
  }
}

/** Resamples one axis of *now into a new buffer, which replaces *now. */
static lac_status resample_axis(const laci_eval *eval, const laci_resampling *r,
                                const laci_resample_axis *how, int axis, laci_buf **now) {
  laci_shape shape = (*now)->shape;
  int64_t in = shape.dims[axis];
  laci_resample_taps t = {.n_out = eval->out[0]->shape.dims[axis]};
  laci_buf *next = NULL;
  shape.dims[axis] = t.n_out;
  lac_status st = compute_taps(eval->node, r, how, in, &t, eval->err);
  if (!st) st = laci_buf_create(LAC_DTYPE_F64, &shape, &next, eval->err);
  if (st) goto out;
  pass p = {.taps = &t,
            .x = (*now)->f,
            .y = next->f,
            .in = in,
            .inner = laci_shape_count_range(&shape, axis + 1, shape.rank),
            .outside_value = r->outside_value};
  laci_eval_parallel(eval, laci_shape_count_range(&shape, 0, axis + 1), resample_lines, &p);
  laci_buf_destroy(*now);
  *now = next;
out:
  laci_resample_clear_taps(&t);
  return st;
}

/** Does resampling leave the axis unchanged? */
static bool is_axis_unchanged(const laci_resampling *r, const laci_resample_axis *axis, int64_t in,
                              int64_t out) {
  bool crop = r->place == LACI_CROP_AND_RESIZE && (axis->crop_begin != 0 || axis->crop_end != 1);
  return in == out && axis->scale == 1 && !crop;
}

lac_status laci_resample_all_axes(const laci_eval *eval, const laci_resampling *resize,
                                  const laci_resample_axis *axes) {
  const laci_buf *x = eval->in[0];
  laci_buf *y = eval->out[0], *now = NULL;
  if (y->count == 0) return LAC_OK;
  if (x->count == 0) {
    return laci_node_fail(eval->node, eval->err, LAC_BAD_SHAPE, "nothing to resample from");
  }
  lac_status st = laci_buf_create(LAC_DTYPE_F64, &x->shape, &now, eval->err);
  if (st) goto out;
  for (int64_t at = 0; at < x->count; at++) now->f[at] = laci_buf_get_f(x, at);
  for (int axis = 0; !st && axis < x->shape.rank; axis++) {
    if (is_axis_unchanged(resize, &axes[axis], x->shape.dims[axis], y->shape.dims[axis])) continue;
    st = resample_axis(eval, resize, &axes[axis], axis, &now);
  }
  for (int64_t at = 0; !st && at < y->count; at++) {
    if (y->f) y->f[at] = now->f[at];
    else y->i[at] = laci_int_cast(y->dtype, now->f[at]);
  }
out:
  laci_buf_destroy(now);
  return st;
}

/* ---- For engines ---- */

lac_status laci_resample_find_taps(const laci_resampled *of, int axis, laci_resample_taps *taps,
                                   lac_error *err) {
  const int64_t in = of->x->dims[axis], out = of->y->dims[axis];
  laci_resampling how;
  laci_resample_axis axes[LACI_MAX_RANK];
  *taps = (laci_resample_taps){0};
  laci_resample_describe *describe =
      of->node->op == &laci_op_upsample ? laci_upsample_describe : laci_resize_describe;
  lac_status st = describe(of->node, of->x, of->operands, &how, axes, err);
  if (st || is_axis_unchanged(&how, &axes[axis], in, out)) return st;
  taps->n_out = out;
  st = compute_taps(of->node, &how, &axes[axis], in, taps, err);
  if (st) laci_resample_clear_taps(taps);
  return st;
}

void laci_resample_clear_taps(laci_resample_taps *taps) {
  laci_free(taps->first);
  laci_free(taps->weight);
  *taps = (laci_resample_taps){0};
}
