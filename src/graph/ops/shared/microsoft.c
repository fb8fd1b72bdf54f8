/* SPDX-License-Identifier: Apache-2.0
 * What operators of ONNX Runtime share; microsoft/ms_fused_gemm.c and ms_skip_layer_normalization.c
 * are the smallest users. */
#include "graph/coupling.h"
#include "graph/ops/shared/microsoft_in.h"
#include "tensor/buf.h"

#include <math.h>

#include "graph/ops/shared/norm_in.h"
#include "graph/ops/shared/walk_in.h"

lac_status laci_check_input_sizes(laci_infer *infer, int port, int rank, const int64_t *dims) {
  const laci_shape *shape = laci_in_shape(infer, port);
  if (!shape) return LAC_OK;
  bool fits = shape->rank == rank;
  for (int axis = 0; fits && axis < rank; axis++) {
    fits = dims[axis] < 0 || shape->dims[axis] < 0 || dims[axis] == shape->dims[axis];
  }
  if (fits) return LAC_OK;
  char have[128], want[128];
  laci_shape wanted = laci_shape_of(rank, dims);
  return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE, "input %d is %s, wanted %s", port,
                        laci_shape_text(shape, have, sizeof have),
                        laci_shape_text(&wanted, want, sizeof want));
}

lac_status laci_bias_activation_infer(laci_infer *infer, int least) {
  lac_status st = laci_check_n_inputs(infer, least, 2);
  int64_t size = laci_in_size(infer, 0, -1);
  if (!st) st = laci_check_input_sizes(infer, 1, 1, &size);
  const laci_shape *x = st ? NULL : laci_in_shape(infer, 0);
  if (x && x->rank < 1 && laci_has_input(infer->node, 1)) {
    return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE,
                          "input 0 is a scalar, and a bias wants an axis");
  }
  if (!st) infer->out[0] = *infer->in[0];
  return st;
}

int64_t laci_in_size(const laci_infer *infer, int port, int axis) {
  const laci_shape *shape = laci_in_shape(infer, port);
  if (shape && axis < 0) axis += shape->rank;
  return shape && axis >= 0 && axis < shape->rank && shape->dims[axis] >= 0 ? shape->dims[axis]
                                                                            : -1;
}

/* ---- Functions ---- */

static double relu(double x, const double *p) { return (void)p, fmax(x, 0); }
static double sigmoid(double x, const double *p) { return (void)p, 1 / (1 + exp(-x)); }
static double tanh_of(double x, const double *p) { return (void)p, tanh(x); }
static double softsign(double x, const double *p) { return (void)p, x / (1 + fabs(x)); }
static double softplus(double x, const double *p) {
  return (void)p, x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}
static double leaky_relu(double x, const double *p) { return x < 0 ? p[0] * x : x; }
static double elu(double x, const double *p) { return x < 0 ? p[0] * expm1(x) : x; }
static double hard_sigmoid(double x, const double *p) { return fmax(0, fmin(1, p[0] * x + p[1])); }
static double threshold(double x, const double *p) { return x > p[0] ? x : 0; }
static double selu(double x, const double *p) { return p[2] * (x < 0 ? p[0] * expm1(x) : x); }
static double clip(double x, const double *p) { return fmin(fmax(x, p[0]), p[1]); }

bool laci_activation_read(const laci_node *node, laci_fused_function *activation) {
  static const struct {
    const char *name;
    laci_fused_function activation;
  } known[] = {{"", {NULL, {0}}},
               {"Relu", {relu, {0}}},
               {"Sigmoid", {sigmoid, {0}}},
               {"Tanh", {tanh_of, {0}}},
               {"Softsign", {softsign, {0}}},
               {"Softplus", {softplus, {0}}},
               {"LeakyRelu", {leaky_relu, {0.01f}}},
               {"Elu", {elu, {1}}},
               {"HardSigmoid", {hard_sigmoid, {0.2f, 0.5}}},
               {"ThresholdedRelu", {threshold, {1}}},
               {"Selu", {selu, {1.67326319217681884765625, 0, 1.05070102214813232421875}}},
               {"Clip", {clip, {-INFINITY, INFINITY}}}};
  static const char *const names[] = {"activation_alpha", "activation_beta", "activation_gamma"};
  const char *name = laci_node_text(node, "activation", "");
  for (size_t at = 0; at < sizeof known / sizeof *known; at++) {
    if (strcmp(known[at].name, name) != 0) continue;
    const laci_attr *list = laci_node_attr(node, "activation_params");
    *activation = known[at].activation;
    for (int k = 0; k < 3; k++) {
      if (list && list->kind == LACI_ATTR_FLOATS && (size_t)k < list->n)
        activation->p[k] = list->floats[k];
      else activation->p[k] = laci_node_float(node, names[k], (float)activation->p[k]);
    }
    return true;
  }
  return false;
}

typedef struct applied {
  const laci_fused_function *activation;
  double *y;
} applied;

static void apply_activation(int64_t begin, int64_t end, void *context) {
  const applied *a = context;
  for (int64_t at = begin; at < end; at++) a->y[at] = a->activation->f(a->y[at], a->activation->p);
}

lac_status laci_activation_apply_to_output(const laci_eval *eval) {
  laci_fused_function activation;
  if (!laci_activation_read(eval->node, &activation)) {
    return laci_node_fail(eval->node, eval->err, LAC_UNSUPPORTED, "activation \"%s\" is not known",
                          laci_node_text(eval->node, "activation", ""));
  }
  applied a = {&activation, eval->out[0]->f};
  if (activation.f) laci_eval_parallel(eval, eval->out[0]->count, apply_activation, &a);
  return LAC_OK;
}

/* ---- Normalized sums ---- */

lac_status laci_skip_norm_infer(laci_infer *infer, const laci_skip_norm *norm) {
  const laci_shape *x = laci_in_shape(infer, 0), *skip = laci_in_shape(infer, 1);
  const int vectors[] = {norm->scale, norm->shift, norm->bias};
  infer->out[0] = *infer->in[0];
  if (norm->sum < infer->n_out) infer->out[norm->sum] = *infer->in[0];
  if (!x) return LAC_OK;
  laci_shape both = *x, moments = *x;
  lac_status st = LAC_OK;
  if (x->rank < 1)
    st = laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE, "a scalar has no last axis");
  int64_t n = x->rank < 1 ? -1 : x->dims[x->rank - 1];
  for (int k = 0; k < 3 && !st; k++) st = laci_check_input_sizes(infer, vectors[k], 1, &n);
  if (!st && skip) st = laci_broadcast_shapes(infer, x, skip, &both);
  if (!st && skip && (both.rank != x->rank || !laci_shape_equal(&both, x)) &&
      laci_shape_is_known(&both) && laci_shape_is_known(x))
    st = laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE,
                        "the second input does not broadcast into the first");
  if (st) return st;
  moments.dims[x->rank - 1] = 1;
  const int narrow[] = {norm->mean, norm->inverse};
  for (int k = 0; k < 2; k++) {
    if (narrow[k] < infer->n_out)
      infer->out[narrow[k]] = (laci_type){.dtype = LAC_DTYPE_F32, .shape = moments};
  }
  return LAC_OK;
}

typedef struct skip_job {
  const laci_eval *eval;
  const laci_skip_norm *norm;
  const double *scale, *shift, *bias;
  laci_buf *sum, *mean, *inverse;
  double *y;
  int64_t n;
  double epsilon;
} skip_job;

/* Normalizes rows of y, which hold x + skip at the start. */
static void normalize_rows(int64_t begin, int64_t end, void *context) {
  const skip_job *j = context;
  for (int64_t row = begin; row < end; row++) {
    double *y = j->y + row * j->n, mean = 0, inverse;
    for (int64_t i = 0; j->bias && i < j->n; i++) y[i] += j->bias[i];
    if (j->sum) memcpy(j->sum->f + row * j->n, y, (size_t)j->n * sizeof *y);
    if (j->norm->centred) {
      laci_moments m = laci_moments_of(y, j->n);
      mean = m.mean;
      inverse = 1 / sqrt(m.variance + j->epsilon);
    } else {
      inverse = laci_inverse_root_mean_square(y, j->n, j->epsilon);
    }
    for (int64_t i = 0; i < j->n; i++)
      y[i] = (y[i] - mean) * inverse * j->scale[i] + (j->shift ? j->shift[i] : 0);
    if (j->mean) j->mean->f[row] = mean;
    if (j->inverse) j->inverse->f[row] = inverse;
  }
}

static const double *vector_operand_or_null(const laci_eval *eval, int port) {
  const laci_buf *buf = laci_operand(eval, port);
  return buf ? buf->f : NULL;
}

lac_status laci_skip_norm_eval(laci_eval *eval, const laci_skip_norm *norm) {
  const laci_buf *x = eval->in[0], *skip = eval->in[1];
  lac_status st = laci_check_floats(eval);
  if (st || x->count == 0) return st;
  laci_walk walk;
  laci_walk_begin(&walk, &x->shape);
  laci_walk_add_broadcast(&walk, &skip->shape);
  laci_walk_merge_axes(&walk);
  laci_walk_seek_run(&walk, 0);
  double *y = eval->out[0]->f;
  for (int64_t run = 0; run < walk.n_runs; run++, laci_walk_next(&walk)) {
    for (int64_t i = 0; i < walk.run; i++) {
      int64_t at = run * walk.run + i;
      y[at] = x->f[at] + skip->f[walk.at[0] + i * walk.inner[0]];
    }
  }
  skip_job j = {.eval = eval,
                .norm = norm,
                .scale = vector_operand_or_null(eval, norm->scale),
                .shift = vector_operand_or_null(eval, norm->shift),
                .bias = vector_operand_or_null(eval, norm->bias),
                .sum = laci_result(eval, norm->sum),
                .mean = laci_result(eval, norm->mean),
                .inverse = laci_result(eval, norm->inverse),
                .y = y,
                .n = x->shape.dims[x->shape.rank - 1],
                .epsilon = laci_node_float(eval->node, "epsilon", 1e-5f)};
  if (!laci_node_attr(eval->node, "epsilon")) j.epsilon = 1e-12f;
  laci_eval_parallel(eval, x->count / j.n, normalize_rows, &j);
  return LAC_OK;
}

lac_status laci_skip_norm_couple_orders(laci_coupling *c, const laci_skip_norm *norm) {
  const laci_shape *x = laci_port_shape(c, 0);
  if (!x || x->rank < 1 || !laci_port_shape(c, 1)) return laci_coupling_status(c);
  laci_couple_broadcast_ports(c, (const int[]){0, 1, norm->scale, norm->shift, norm->bias}, 5);
  laci_coupling_mark_label_normalized(c, laci_coupling_get_label(c, 0, -1));
  for (int axis = 0; axis < x->rank; axis++) {
    int label = laci_coupling_get_label(c, 0, axis);
    laci_coupling_set_label(c, LACI_OUT(norm->sum), axis, label);
    if (axis == x->rank - 1) label = laci_coupling_new_label(c);
    laci_coupling_set_label(c, LACI_OUT(norm->mean), axis, label);
    laci_coupling_set_label(c, LACI_OUT(norm->inverse), axis, label);
  }
  return laci_coupling_status(c);
}

/* ---- Packed projections ---- */

/* Maps the channels of queries and keys to virtual axes (LACI_VIRTUAL_AXIS). If the axis of the
 * first place holds queries alone, all heads are parts of one virtual axis; otherwise each head of
 * keys has a virtual axis of its own. */
void laci_couple_query_keys(laci_coupling *c, const laci_query_keys *q) {
  const laci_channels *first = &q->places[0];
  int64_t n = q->n_heads * q->size;
  bool alone = laci_port_shape(c, first->port)->dims[first->axis] == n;
  for (int64_t head = 0; head < q->n_heads; head++) {
    for (int place = 0; place < q->n_places; place++) {
      const laci_channels *at = &q->places[place];
      int64_t own = q->keys[place] ? head / q->copies : head;
      laci_coupling_add_map_of_consecutive(
          c,
          (laci_axis_map){.out_port = LACI_OUT(0),
                          .out_axis = LACI_VIRTUAL_AXIS(alone ? 0 : (int)(head / q->copies)),
                          .in_port = at->port,
                          .in_axis = at->axis,
                          .n_out = alone ? n : q->size * q->copies,
                          .start = (alone ? head : head % q->copies) * q->size,
                          .n = q->size},
          at->start + own * q->size);
    }
  }
  if (alone) laci_coupling_add_axis_parts(c, first->port, first->axis, q->n_heads / q->copies);
}

void laci_fix_query_key_channels(laci_coupling *c, const laci_query_keys *q) {
  for (int place = 0; place < q->n_places; place++) {
    const laci_channels *at = &q->places[place];
    int64_t heads = q->keys[place] ? q->n_heads / q->copies : q->n_heads;
    laci_coupling_add_axis_hold(c,
                                (laci_axis_hold){at->port, at->axis, at->start, heads * q->size});
  }
}

void laci_couple_attention_values(laci_coupling *c, const laci_query_keys *v) {
  const laci_shape *y = laci_port_shape(c, LACI_OUT(0));
  int64_t n = v->n_heads * v->size;
  for (int place = 0; place < v->n_places; place++) {
    const laci_channels *at = &v->places[place];
    laci_axis_map *map = laci_coupling_add_map(c, LACI_OUT(0), y->rank - 1, at->port, at->axis, n);
    for (int64_t o = 0; map && o < n; o++) {
      map->from[o] = (int32_t)(at->start + o / v->size / v->copies * v->size + o % v->size);
    }
  }
  laci_coupling_add_axis_parts(c, LACI_OUT(0), y->rank - 1, v->n_heads / v->copies);
}
