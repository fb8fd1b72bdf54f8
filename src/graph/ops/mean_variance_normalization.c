/* SPDX-License-Identifier: Apache-2.0
 * MeanVarianceNormalization: normalizes to mean 0 and variance 1 over `axes` (by default all but
 * the channels): y = (x - mean) / (sqrt(variance) + 1e-9), as in the standard. Axes pass channel
 * orders through (coupling.h); those of `axes` are marked as normalized. */
#include <math.h>

#include "base/error.h"
#include "base/memory.h"
#include "graph/coupling.h"
#include "graph/gradient.h"
#include "graph/ops/shared/grad_in.h"
#include "graph/ops/shared/walk_in.h"
#include "tensor/buf.h"

static lac_status read_axes(const laci_node *node, int rank, bool flags[LACI_MAX_RANK],
                            lac_error *err) {
  laci_ints axes = laci_read_int_list(node, "axes", -1, NULL);
  if (!axes.present) axes = (laci_ints){.present = true, .known = true, .n = 3, .v = {0, 2, 3}};
  return laci_axes_to_flags(node, &axes, rank, false, flags, err);
}

static lac_status infer(laci_infer *infer) {
  bool flags[LACI_MAX_RANK];
  lac_status st = laci_check_n_inputs(infer, 1, 1);
  if (st) return st;
  infer->out[0] = *infer->in[0];
  const laci_shape *x = laci_in_shape(infer, 0);
  return x ? read_axes(infer->node, x->rank, flags, infer->err) : LAC_OK;
}

/** Adds x, or (x - mean)^2 where mean is given, to `to`, at the index of the axes that are kept. */
static void add_values_or_squares(const laci_buf *x, laci_walk walk, const double *mean,
                                  double *to) {
  for (int64_t run = 0; run < walk.n_runs; run++, laci_walk_next(&walk)) {
    for (int64_t i = 0; i < walk.run; i++) {
      int64_t place = walk.at[0] + i * walk.inner[0];
      double v = x->f[run * walk.run + i], away = mean ? v - mean[place] : 0;
      to[place] += mean ? away * away : v;
    }
  }
}

static lac_status eval(laci_eval *eval) {
  const laci_buf *x = eval->in[0];
  laci_buf *y = eval->out[0];
  bool flags[LACI_MAX_RANK];
  lac_status st = laci_check_floats(eval);
  if (!st) st = read_axes(eval->node, x->shape.rank, flags, eval->err);
  if (st || x->count == 0) return st;
  laci_shape kept = x->shape;
  for (int axis = 0; axis < kept.rank; axis++) {
    if (flags[axis]) kept.dims[axis] = 1;
  }
  int64_t n_kept = laci_shape_count(&kept), n = x->count / n_kept;
  double *mean = laci_alloc((size_t)n_kept * 2, sizeof *mean), *deviation = mean + n_kept;
  if (!mean) return laci_fail_memory(eval->err, eval->node->name);
  laci_walk walk;
  laci_walk_begin(&walk, &x->shape);
  laci_walk_add_broadcast(&walk, &kept);
  laci_walk_merge_axes(&walk);
  add_values_or_squares(x, walk, NULL, mean);
  for (int64_t at = 0; at < n_kept; at++) mean[at] /= (double)n;
  add_values_or_squares(x, walk, mean, deviation);
  for (int64_t at = 0; at < n_kept; at++) deviation[at] = sqrt(deviation[at] / (double)n) + 1e-9;
  for (int64_t run = 0; run < walk.n_runs; run++, laci_walk_next(&walk)) {
    for (int64_t i = 0; i < walk.run; i++) {
      int64_t place = walk.at[0] + i * walk.inner[0], at = run * walk.run + i;
      y->f[at] = (x->f[at] - mean[place]) / deviation[place];
    }
  }
  laci_free(mean);
  return LAC_OK;
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph;
  bool flags[LACI_MAX_RANK];
  const laci_shape *x = laci_port_shape(c, 0);
  if (!x || !laci_port_shape(c, LACI_OUT(0)) || read_axes(node, x->rank, flags, NULL))
    return laci_coupling_status(c);
  laci_couple_equal_axes(c, 0, LACI_OUT(0));
  for (int axis = 0; axis < x->rank; axis++) {
    if (flags[axis]) laci_coupling_mark_label_normalized(c, laci_coupling_get_label(c, 0, axis));
  }
  return laci_coupling_status(c);
}

/** With z = x - mean, s = sqrt(variance) and d = s + 1e-9: dx = (g - mean g) / d - z mean(g z) /
 * (d^2 s).
 */
static lac_status gradient(laci_gradient_builder *b, const laci_node *node) {
  bool flags[LACI_MAX_RANK] = {false};
  int g = laci_gradient_of(b, node, 0), x = node->inputs[0];
  if (read_axes(node, laci_gradient_shape_of_value(b, x).rank, flags, NULL))
    return laci_gradient_fail_unsupported(b, node, "its axes do not fit");
  int z = laci_gradient_add_binary(b, "Sub", x, laci_gradient_add_mean(b, x, flags));
  int s = laci_gradient_add_unary(
      b, "Sqrt", laci_gradient_add_mean(b, laci_gradient_add_binary(b, "Mul", z, z), flags));
  int d = laci_gradient_add_binary(b, "Add", s, laci_gradient_store_scalar(b, x, 1e-9));
  int even = laci_gradient_add_binary(b, "Sub", g, laci_gradient_add_mean(b, g, flags));
  int along = laci_gradient_add_mean(b, laci_gradient_add_binary(b, "Mul", g, z), flags);
  int ratio = laci_gradient_add_binary(b, "Div", along, laci_gradient_add_binary(b, "Mul", d, s));
  int rest = laci_gradient_add_binary(b, "Sub", even, laci_gradient_add_binary(b, "Mul", z, ratio));
  laci_gradient_contribute(b, node, 0, laci_gradient_add_binary(b, "Div", rest, d));
  return laci_gradient_status(b);
}

const laci_op laci_op_mean_variance_normalization = {
    .name = "MeanVarianceNormalization",
    .role = LACI_ROLE_PASS_THROUGH,
    .attributes = LACI_ATTRIBUTES({"axes", LACI_ATTR_INTS}),
    .infer = infer,
    .eval = eval,
    .couple = couple_channel_orders,
    .gradient = gradient};
