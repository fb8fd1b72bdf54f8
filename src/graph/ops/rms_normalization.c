/* SPDX-License-Identifier: Apache-2.0
 * RMSNormalization (opset 23): all axes from `axis` on are divided by their root mean square, then
 * scaled by a parameter that is broadcast to the last axes.  y = x / sqrt(mean x^2 + epsilon) *
 * scale
 */
#include "graph/coupling.h"
#include "graph/gradient.h"
#include "graph/ops/shared/grad_in.h"
#include "graph/ops/shared/norm_in.h"
#include "graph/ops/shared/walk_in.h"
#include "tensor/buf.h"

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 2, 2);
  if (st) return st;
  infer->out[0] = *infer->in[0];
  const laci_shape *x = laci_in_shape(infer, 0), *scale = laci_in_shape(infer, 1);
  if (!x) return LAC_OK;
  int64_t axis = laci_node_int(infer->node, "axis", -1);
  laci_shape both = *x;
  st = laci_check_axis(infer->node, x->rank, &axis, infer->err);
  if (!st && scale) st = laci_broadcast_shapes(infer, x, scale, &both);
  if (st) return st;
  bool same = both.rank == x->rank;
  for (int at = 0; same && at < x->rank; at++) {
    same = x->dims[at] < 0 || both.dims[at] < 0 || x->dims[at] == both.dims[at];
  }
  if (same) return LAC_OK;
  return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE,
                        "the scale does not broadcast into the data");
}

typedef struct job {
  const double *x;
  double *y;
  int64_t n; /* elements of a row */
  double epsilon;
} job;

static void normalize_rows(int64_t begin, int64_t end, void *context) {
  const job *j = context;
  for (int64_t row = begin; row < end; row++) {
    const double *x = j->x + row * j->n;
    double *y = j->y + row * j->n, factor = laci_inverse_root_mean_square(x, j->n, j->epsilon);
    for (int64_t i = 0; i < j->n; i++) y[i] = x[i] * factor;
  }
}

static void apply_scale(const laci_buf *scale, laci_buf *y) {
  laci_walk walk;
  laci_walk_begin(&walk, &y->shape);
  laci_walk_add_broadcast(&walk, &scale->shape);
  laci_walk_merge_axes(&walk);
  for (int64_t run = 0; run < walk.n_runs; run++, laci_walk_next(&walk)) {
    double *to = y->f + run * walk.run;
    for (int64_t i = 0; i < walk.run; i++) to[i] *= scale->f[walk.at[0] + i * walk.inner[0]];
  }
}

static lac_status eval(laci_eval *eval) {
  const laci_shape *x = &eval->in[0]->shape;
  int64_t axis = laci_node_int(eval->node, "axis", -1);
  lac_status st = laci_check_floats(eval);
  if (!st) st = laci_check_axis(eval->node, x->rank, &axis, eval->err);
  if (st || eval->in[0]->count == 0) return st;
  job j = {.x = eval->in[0]->f,
           .y = eval->out[0]->f,
           .n = laci_shape_count_range(x, (int)axis, x->rank),
           .epsilon = laci_epsilon(eval->node)};
  laci_eval_parallel(eval, eval->in[0]->count / j.n, normalize_rows, &j);
  apply_scale(eval->in[1], eval->out[0]);
  return LAC_OK;
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph;
  const laci_shape *x = laci_port_shape(c, 0);
  int axis = x ? laci_axis_counted_from_first(laci_node_int(node, "axis", -1), x->rank) : -1;
  if (axis < 0) return laci_coupling_status(c);
  laci_couple_broadcast_ports(c, (const int[]){0, 1}, 2);
  for (int at = axis; at < x->rank; at++)
    laci_coupling_mark_label_normalized(c, laci_coupling_get_label(c, 0, at));
  return laci_coupling_status(c);
}

/** With r = 1 / sqrt(mean x^2 + epsilon), h = x r and g = dy scale: dx = r (g - h mean(g h)), and
 * dscale is dy h, summed over the axes along which scale was broadcast. */
static lac_status gradient(laci_gradient_builder *b, const laci_node *node) {
  int dy = laci_gradient_of(b, node, 0), x = node->inputs[0];
  laci_shape shape = laci_gradient_shape_of_value(b, x);
  int64_t axis = laci_axis_counted_from_first(laci_node_int(node, "axis", -1), shape.rank);
  bool flags[LACI_MAX_RANK];
  for (int at = 0; at < LACI_MAX_RANK; at++) flags[at] = at >= axis && at < shape.rank;
  int squares = laci_gradient_add_mean(b, laci_gradient_add_binary(b, "Mul", x, x), flags);
  int more = laci_gradient_add_binary(b, "Add", squares,
                                      laci_gradient_store_scalar(b, x, laci_epsilon(node)));
  int r = laci_gradient_add_unary(b, "Reciprocal", laci_gradient_add_unary(b, "Sqrt", more));
  int h = laci_gradient_add_binary(b, "Mul", x, r);
  if (laci_gradient_is_needed(b, node, 0)) {
    int g = laci_gradient_add_binary(b, "Mul", dy, node->inputs[1]);
    int along = laci_gradient_add_mean(b, laci_gradient_add_binary(b, "Mul", g, h), flags);
    int rest = laci_gradient_add_binary(b, "Sub", g, laci_gradient_add_binary(b, "Mul", h, along));
    laci_gradient_contribute(b, node, 0, laci_gradient_add_binary(b, "Mul", r, rest));
  }
  laci_gradient_contribute_broadcast(b, node, 1, laci_gradient_add_binary(b, "Mul", dy, h));
  return laci_gradient_status(b);
}

const laci_op laci_op_rms_normalization = {
    .name = "RMSNormalization",
    .role = LACI_ROLE_INFER,
    .attributes = LACI_ATTRIBUTES({"axis", LACI_ATTR_INT}, {"epsilon", LACI_ATTR_FLOAT},
                                  {"stash_type", LACI_ATTR_INT}),
    .infer = infer,
    .eval = eval,
    .couple = couple_channel_orders,
    .gradient = gradient};
