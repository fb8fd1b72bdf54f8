/* SPDX-License-Identifier: Apache-2.0
 * lacuna.LayerNormalizationGrad: inputs dY, X, scale (broadcast to X). A row is all axes from
 * `axis` on; with h = (X - mean) / sqrt(var + epsilon) and g = dY * scale
 *
 *     dX     = (g - mean(g) - h * mean(g * h)) / sqrt(var + epsilon)    means over a row
 *     dscale = sum dY * h                                               over what scale is
 *     dbias  = sum dY                                                   broadcast along
 *
 * Instance and group normalization use it too, under other axes. */
#include <math.h>

#include "base/error.h"
#include "base/memory.h"
#include "graph/ops/shared/grad_in.h"
#include "graph/ops/shared/norm_in.h"
#include "graph/ops/shared/walk_in.h"
#include "tensor/buf.h"

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 3, 3);
  if (!st) st = laci_infer_equal_shapes(infer, 0, 1);
  if (st) return st;
  const laci_shape *x = laci_in_shape(infer, 1), *scale = laci_in_shape(infer, 2);
  for (int out = 1; out < infer->n_out && out < 3; out++) infer->out[out] = *infer->in[2];
  if (!x || !scale) return LAC_OK;
  int64_t axis = laci_node_int(infer->node, "axis", -1);
  st = laci_check_axis(infer->node, x->rank, &axis, infer->err);
  laci_shape both = *x;
  if (!st) st = laci_broadcast_shapes(infer, x, scale, &both);
  if (!st && laci_shape_is_known(x) && !laci_shape_equal(x, &both))
    st = laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE,
                        "the scale does not broadcast into the data");
  return st;
}

/** Moments of one row: the mean, and 1 / sqrt(var + epsilon). */
typedef struct row_moments {
  double mean, inverse;
} row_moments;

typedef struct job {
  const laci_eval *eval;
  row_moments *moments; /* [rows] moments of each row of X */
  laci_walk scale;      /* a walk over X that gives the index of scale, run by run */
  double epsilon;
  int64_t n;
} job;

static void compute_moments_of_rows(int64_t begin, int64_t end, void *context) {
  const job *j = context;
  for (int64_t row = begin; row < end; row++) {
    laci_moments m = laci_moments_of(j->eval->in[1]->f + row * j->n, j->n);
    j->moments[row] = (row_moments){.mean = m.mean, .inverse = 1 / sqrt(m.variance + j->epsilon)};
  }
}

/** Sets dX = dY * scale, to be completed later, and adds up dscale and dbias. */
static void compute_partial_gradients(const job *j) {
  const double *dy = j->eval->in[0]->f, *x = j->eval->in[1]->f, *scale = j->eval->in[2]->f;
  laci_buf *dx = laci_result(j->eval, 0), *dscale = laci_result(j->eval, 1),
           *dbias = laci_result(j->eval, 2);
  laci_walk walk = j->scale;
  laci_walk_seek_run(&walk, 0);
  for (int64_t run = 0; run < walk.n_runs; run++, laci_walk_next(&walk)) {
    for (int64_t i = 0; i < walk.run; i++) {
      int64_t at = run * walk.run + i, of = walk.at[0] + i * walk.inner[0];
      const row_moments *m = &j->moments[at / j->n];
      if (dx) dx->f[at] = dy[at] * scale[of];
      if (dscale) dscale->f[of] += dy[at] * (x[at] - m->mean) * m->inverse;
      if (dbias) dbias->f[of] += dy[at];
    }
  }
}

static void complete_input_gradients(int64_t begin, int64_t end, void *context) {
  const job *j = context;
  for (int64_t row = begin; row < end; row++) {
    const double *x = j->eval->in[1]->f + row * j->n;
    double *g = j->eval->out[0]->f + row * j->n, sum = 0, product = 0;
    row_moments m = j->moments[row];
    for (int64_t i = 0; i < j->n; i++) {
      sum += g[i];
      product += g[i] * (x[i] - m.mean) * m.inverse;
    }
    for (int64_t i = 0; i < j->n; i++) {
      double h = (x[i] - m.mean) * m.inverse;
      g[i] = m.inverse * (g[i] - (sum + h * product) / (double)j->n);
    }
  }
}

static lac_status eval(laci_eval *eval) {
  const laci_shape *x = &eval->in[1]->shape;
  int64_t axis = laci_node_int(eval->node, "axis", -1);
  lac_status st = laci_check_floats(eval);
  if (!st) st = laci_check_axis(eval->node, x->rank, &axis, eval->err);
  if (st || eval->in[1]->count == 0) return st;
  job j = {.eval = eval,
           .epsilon = laci_epsilon(eval->node),
           .n = laci_shape_count_range(x, (int)axis, x->rank)};
  int64_t rows = eval->in[1]->count / j.n;
  j.moments = laci_alloc((size_t)rows, sizeof *j.moments);
  if (!j.moments) return laci_fail_memory(eval->err, eval->node->name);
  laci_walk_begin(&j.scale, x);
  laci_walk_add_broadcast(&j.scale, &eval->in[2]->shape);
  laci_walk_merge_axes(&j.scale);
  laci_eval_parallel(eval, rows, compute_moments_of_rows, &j);
  compute_partial_gradients(&j);
  if (eval->out[0]) laci_eval_parallel(eval, rows, complete_input_gradients, &j);
  laci_free(j.moments);
  return LAC_OK;
}

const laci_op laci_op_layer_normalization_grad = {.name = "LayerNormalizationGrad",
                                                  .domain = "lacuna",
                                                  .role = LACI_ROLE_PASS_THROUGH,
                                                  .infer = infer,
                                                  .eval = eval,
                                                  .couple = laci_couple_nothing};
