/* SPDX-License-Identifier: Apache-2.0
 * LayerNormalization: all axes from `axis` on are normalized together to mean 0 and variance 1,
 * then scaled and shifted by parameters that are broadcast to the last axes. Mean and 1 / sqrt(var
 * + epsilon) are optional outputs. */
#include <math.h>

#include "graph/coupling.h"
#include "graph/gradient.h"
#include "graph/ops/shared/expect_in.h"
#include "graph/ops/shared/grad_in.h"
#include "graph/ops/shared/norm_in.h"
#include "graph/ops/shared/walk_in.h"
#include "tensor/buf.h"

/** Does x keep its shape when it is broadcast with a parameter? both: the broadcast shape. */
static bool has_shape_of_broadcast(const laci_shape *x, const laci_shape *both) {
  bool same = both->rank == x->rank;
  for (int axis = 0; same && axis < x->rank; axis++) {
    same = x->dims[axis] < 0 || both->dims[axis] < 0 || x->dims[axis] == both->dims[axis];
  }
  return same;
}

/** Finds the last sizes of x: those of the scale, unless it has one element, which is broadcast. */
static bool expect_input_shape(const laci_infer *infer, laci_shape *shape) {
  const laci_shape *scale = laci_expect_known_shape_of_input(infer, 1);
  bool says = scale && scale->rank >= 1 && scale->dims[scale->rank - 1] > 1;
  return says && laci_expect_size(infer, -1, -1, scale->dims[scale->rank - 1], shape);
}

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 2, 3);
  if (st) return st;
  infer->out[0] = *infer->in[0];
  const laci_shape *x = laci_in_shape(infer, 0);
  if (!x) return LAC_OK;
  int64_t axis = laci_node_int(infer->node, "axis", -1);
  st = laci_check_axis(infer->node, x->rank, &axis, infer->err);
  for (int port = 1; !st && port < infer->n_in; port++) {
    laci_shape both;
    if (laci_in_shape(infer, port))
      st = laci_broadcast_shapes(infer, x, &infer->in[port]->shape, &both);
    if (!st && laci_in_shape(infer, port) && !has_shape_of_broadcast(x, &both)) {
      st = laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE,
                          "input %d does not broadcast into the data", port);
    }
  }
  if (st) return st;
  for (int out = 1; out < infer->n_out; out++) {
    bool kept_type = laci_node_int(infer->node, "stash_type", 1) != 1;
    infer->out[out] = *infer->in[0];
    if (!kept_type) infer->out[out].dtype = LAC_DTYPE_F32;
    for (int at = (int)axis; at < x->rank; at++) infer->out[out].shape.dims[at] = 1;
  }
  return LAC_OK;
}

typedef struct job {
  const laci_eval *eval;
  int64_t n;
} job;

static void normalize_rows(int64_t begin, int64_t end, void *context) {
  const job *j = context;
  const laci_eval *eval = j->eval;
  laci_buf *mean = laci_result(eval, 1), *inverse = laci_result(eval, 2);
  double epsilon = laci_epsilon(eval->node);
  for (int64_t row = begin; row < end; row++) {
    laci_moments m = laci_moments_of(eval->in[0]->f + row * j->n, j->n);
    laci_normalize_run(eval->in[0]->f + row * j->n, j->n, m, epsilon, eval->out[0]->f + row * j->n);
    if (mean) mean->f[row] = m.mean;
    if (inverse) inverse->f[row] = 1 / sqrt(m.variance + epsilon);
  }
}

/** A job that computes y = y * p or y + p, where p is broadcast. */
typedef struct broadcast_job {
  laci_walk walk;
  laci_buf *y;
  const laci_buf *p;
  bool multiply;
} broadcast_job;

static void apply_parameter_to_runs(int64_t begin, int64_t end, void *context) {
  const broadcast_job *s = context;
  laci_walk walk = s->walk;
  laci_walk_seek_run(&walk, begin);
  for (int64_t run = begin; run < end; run++, laci_walk_next(&walk)) {
    double *to = s->y->f + run * walk.run;
    const double *from = s->p->f + walk.at[0];
    for (int64_t i = 0; i < walk.run; i++) {
      double v = from[i * walk.inner[0]];
      to[i] = s->multiply ? to[i] * v : to[i] + v;
    }
  }
}

static void multiply_or_add_parameter(const laci_eval *eval, const laci_buf *p, bool multiply) {
  broadcast_job s = {.y = eval->out[0], .p = p, .multiply = multiply};
  laci_walk_begin(&s.walk, &s.y->shape);
  laci_walk_add_broadcast(&s.walk, &p->shape);
  laci_walk_merge_axes(&s.walk);
  laci_eval_parallel(eval, s.walk.n_runs, apply_parameter_to_runs, &s);
}

static lac_status eval(laci_eval *eval) {
  const laci_shape *x = &eval->in[0]->shape;
  int64_t axis = laci_node_int(eval->node, "axis", -1);
  lac_status st = laci_check_floats(eval);
  if (!st) st = laci_check_axis(eval->node, x->rank, &axis, eval->err);
  if (st || eval->in[0]->count == 0) return st;
  job j = {.eval = eval, .n = laci_shape_count_range(x, (int)axis, x->rank)};
  laci_eval_parallel(eval, eval->in[0]->count / j.n, normalize_rows, &j);
  multiply_or_add_parameter(eval, eval->in[1], true);
  if (laci_operand(eval, 2)) multiply_or_add_parameter(eval, eval->in[2], false);
  return LAC_OK;
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph;
  const laci_shape *x = laci_port_shape(c, 0);
  int axis = x ? laci_axis_counted_from_first(laci_node_int(node, "axis", -1), x->rank) : -1;
  if (axis < 0) return laci_coupling_status(c);
  laci_couple_broadcast_ports(c, (const int[]){0, 1, 2}, laci_has_input(node, 2) ? 3 : 2);
  for (int at = axis; at < x->rank; at++)
    laci_coupling_mark_label_normalized(c, laci_coupling_get_label(c, 0, at));
  for (int out = 1; out < node->n_outputs; out++) {
    for (int at = 0; at < x->rank; at++) {
      laci_coupling_set_label(
          c, LACI_OUT(out), at,
          at < axis ? laci_coupling_get_label(c, 0, at) : laci_coupling_new_label(c));
    }
  }
  return laci_coupling_status(c);
}

static lac_status gradient(laci_gradient_builder *b, const laci_node *node) {
  int out[3];
  if (laci_gradient_of(b, node, 0) < 0 || laci_gradient_of(b, node, 1) >= 0 ||
      laci_gradient_of(b, node, 2) >= 0)
    return laci_gradient_fail_unsupported(b, node, "its moments have no gradient");
  laci_gradient_norm norm = {.dy = laci_gradient_of(b, node, 0),
                             .x = node->inputs[0],
                             .scale = node->inputs[1],
                             .axis = laci_node_int(node, "axis", -1),
                             .epsilon = laci_node_float(node, "epsilon", 1e-5f)};
  laci_gradient_add_normalization(b, &norm, out);
  laci_gradient_contribute(b, node, 0, out[0]);
  laci_gradient_contribute(b, node, 1, out[1]);
  if (laci_gradient_is_needed(b, node, 2)) {
    laci_shape shape = laci_gradient_shape_of_input(b, node, 2);
    laci_shape same = laci_gradient_shape_of_input(b, node, 1);
    laci_gradient_contribute(b, node, 2,
                             laci_shape_equal(&shape, &same)
                                 ? out[2]
                                 : laci_gradient_add_unbroadcast(b, norm.dy, &shape));
  }
  return laci_gradient_status(b);
}

const laci_op laci_op_layer_normalization = {
    .name = "LayerNormalization",
    .role = LACI_ROLE_INFER,
    .attributes = LACI_ATTRIBUTES({"axis", LACI_ATTR_INT}, {"epsilon", LACI_ATTR_FLOAT},
                                  {"stash_type", LACI_ATTR_INT}),
    .infer = infer,
    .expect = expect_input_shape,
    .eval = eval,
    .couple = couple_channel_orders,
    .gradient = gradient};
