/* SPDX-License-Identifier: Apache-2.0
 * The common code of the pools. Along every axis, the kernel positions inside the input are a range
 * that is found by division, so the cost of a huge kernel is limited by the size of the input. */
#include "base/to_int.h"
#include "graph/coupling.h"
#include "graph/ops/shared/pool_in.h"
#include "graph/ops/shared/window_in.h"
#include "tensor/buf.h"

#include "graph/ops/shared/grad_in.h"
#include "base/divide.h"

lac_status laci_pooling_infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 1, 1);
  if (st) return st;
  const laci_shape *x = laci_in_shape(infer, 0);
  infer->out[0].dtype = infer->in[0]->dtype;
  if (!x) return LAC_OK;
  laci_node_window window;
  st = laci_window_read(infer->node, x->rank - 2, NULL, &window, infer->err);
  if (st) return st;
  laci_shape *y = &infer->out[0].shape;
  y->rank = x->rank;
  y->dims[0] = x->dims[0];
  y->dims[1] = x->dims[1];
  return laci_window_infer(infer, &window, x, y);
}

/** The kernel positions that a window covers along one axis, for one output position. */
typedef struct reach {
  int64_t start;       /* input position of kernel position 0 */
  int64_t first, last; /* kernel positions [first, last) inside the input */
  int64_t n_padded;    /* number of kernel positions inside the padded input */
} reach;

typedef struct job {
  const laci_pooling *pooling;
  const laci_node_window *window;
  const laci_buf *x;
  laci_buf *y, *indices; /* outputs; NULL: not used */
  const laci_shape *out; /* shape of the output: one window for each position */
  int64_t in_spatial, out_spatial;
} job;

static int64_t clamp(int64_t x, int64_t low, int64_t high) {
  return x < low ? low : x > high ? high : x;
}

static reach find_window_range_along_axis(const laci_window_axis *axis, int64_t size, int64_t o) {
  reach r = {.start = o * axis->stride - axis->pad_begin};
  r.first = clamp(laci_ceil_div(-r.start, axis->dilation), 0, axis->kernel);
  r.last = clamp(laci_ceil_div(size - r.start, axis->dilation), r.first, axis->kernel);
  r.n_padded =
      clamp(laci_ceil_div(size + axis->pad_end - r.start, axis->dilation), 0, axis->kernel);
  return r;
}

/** Returns the position within the channel of element t of the window. */
static int64_t index_of_window_element(const job *j, const reach *r, const int64_t *t) {
  int64_t at = 0;
  for (int axis = 0; axis < j->window->n_spatial; axis++) {
    int64_t place = r[axis].start + t[axis] * j->window->axis[axis].dilation;
    at = at * j->x->shape.dims[axis + 2] + place;
  }
  return at;
}

/** Moves t to the next element of the window inside the channel, last axis fastest. */
static void move_to_next_element(const job *j, const reach *r, int64_t *t) {
  for (int axis = j->window->n_spatial - 1; axis >= 0; axis--) {
    if (++t[axis] < r[axis].last) break;
    t[axis] = r[axis].first;
  }
}

/** Calls step for each element of the window that is inside the channel. */
static void visit_window(const job *j, const reach *r, const double *floats,
                         const int64_t *integers, laci_pool_state *state) {
  int n = j->window->n_spatial;
  int64_t t[LACI_MAX_SPATIAL];
  for (int axis = 0; axis < n; axis++) t[axis] = r[axis].first;
  for (int64_t left = state->n_inside; left > 0; left--, move_to_next_element(j, r, t)) {
    int64_t at = index_of_window_element(j, r, t);
    j->pooling->step(state, floats ? floats[at] : (double)integers[at], at);
  }
}

/** Finds which input positions the window of output position `rest` (flat within the channel)
 * covers. */
static void find_ranges_of_window(const job *j, int64_t rest, reach *r, laci_pool_state *state) {
  state->n_inside = state->n_padded = 1;
  for (int axis = j->window->n_spatial - 1; axis >= 0; axis--) {
    int64_t size = j->out->dims[axis + 2];
    r[axis] = find_window_range_along_axis(&j->window->axis[axis], j->x->shape.dims[axis + 2],
                                           rest % size);
    state->n_inside *= r[axis].last - r[axis].first;
    state->n_padded *= r[axis].n_padded;
    rest /= size;
  }
}

static void pool_windows(int64_t begin, int64_t end, void *context) {
  const job *j = context;
  for (int64_t at = begin; at < end; at++) {
    int64_t channel = at / j->out_spatial;
    reach r[LACI_MAX_SPATIAL];
    laci_pool_state state = j->pooling->start;
    find_ranges_of_window(j, at % j->out_spatial, r, &state);
    visit_window(j, r, j->x->f ? j->x->f + channel * j->in_spatial : NULL,
                 j->x->i ? j->x->i + channel * j->in_spatial : NULL, &state);
    double value = j->pooling->end ? j->pooling->end(&state) : state.value;
    if (j->y && j->y->f) j->y->f[at] = value;
    else if (j->y) j->y->i[at] = laci_clamp_to_int64(value);
    if (j->indices) j->indices->i[at] = channel * j->in_spatial + state.at;
  }
}

lac_status laci_pooling_eval(const laci_eval *eval, const laci_pooling *pooling,
                             laci_buf *indices) {
  const laci_buf *x = eval->in[0];
  laci_buf *y = eval->out[0];
  laci_node_window window;
  lac_status st = laci_window_read(eval->node, x->shape.rank - 2, NULL, &window, eval->err);
  if (st) return st;
  const laci_shape *out = y ? &y->shape : indices ? &indices->shape : NULL;
  if (!out) return LAC_OK; /* no output is used */
  if ((y && !x->f != !y->f) || (indices && !indices->i)) {
    return laci_node_fail(eval->node, eval->err, LAC_UNSUPPORTED, "mixed element types");
  }
  for (int at = 0; at < window.n_spatial; at++) {
    laci_window_resolve_out_size(&window, at, x->shape.dims[at + 2]);
  }
  job j = {.pooling = pooling,
           .window = &window,
           .x = x,
           .y = y,
           .indices = indices,
           .out = out,
           .in_spatial = laci_shape_count_range(&x->shape, 2, x->shape.rank),
           .out_spatial = laci_shape_count_range(out, 2, out->rank)};
  laci_eval_parallel(eval, laci_shape_count(out), pool_windows, &j);
  return LAC_OK;
}

typedef struct spread_job {
  job shapes;
  const double *y;
  double *x;
  bool with_pad;
} spread_job;

static void spread_gradient_over_windows(int64_t begin, int64_t end, void *context) {
  const spread_job *s = context;
  const job *j = &s->shapes;
  for (int64_t at = begin * j->out_spatial; at < end * j->out_spatial; at++) {
    reach r[LACI_MAX_SPATIAL];
    int64_t t[LACI_MAX_SPATIAL];
    laci_pool_state state = {0};
    double *x = s->x + at / j->out_spatial * j->in_spatial;
    find_ranges_of_window(j, at % j->out_spatial, r, &state);
    for (int axis = 0; axis < j->window->n_spatial; axis++) t[axis] = r[axis].first;
    double share = s->y[at] / (double)(s->with_pad ? state.n_padded : state.n_inside);
    for (int64_t left = state.n_inside; left > 0; left--, move_to_next_element(j, r, t))
      x[index_of_window_element(j, r, t)] += share;
  }
}

lac_status laci_pooling_average_gradient(const laci_eval *eval, const laci_buf *y, laci_buf *x,
                                         bool with_pad) {
  laci_node_window window;
  lac_status st = laci_check_floats(eval);
  if (!st) st = laci_window_read(eval->node, x->shape.rank - 2, NULL, &window, eval->err);
  if (st) return st;
  for (int at = 0; at < window.n_spatial; at++)
    laci_window_resolve_out_size(&window, at, x->shape.dims[at + 2]);
  spread_job s = {.shapes = {.window = &window,
                             .x = x,
                             .out = &y->shape,
                             .in_spatial = laci_shape_count_range(&x->shape, 2, x->shape.rank),
                             .out_spatial = laci_shape_count_range(&y->shape, 2, y->shape.rank)},
                  .y = y->f,
                  .x = x->f,
                  .with_pad = with_pad};
  laci_eval_parallel(eval, x->shape.dims[0] * x->shape.dims[1], spread_gradient_over_windows, &s);
  return LAC_OK;
}

lac_status laci_pooling_check_gradient_shape(laci_infer *infer, const laci_shape *x) {
  laci_node_window window;
  laci_shape y = *x;
  lac_status st = laci_window_read(infer->node, x->rank - 2, NULL, &window, infer->err);
  if (!st) st = laci_window_infer(infer, &window, x, &y);
  return st ? st : laci_check_input_shape(infer, 0, &y);
}

lac_status laci_pooling_couple_orders(const laci_graph *graph, const laci_node *node,
                                      laci_coupling *c) {
  (void)graph, (void)node;
  const laci_shape *x = laci_port_shape(c, 0), *y = laci_port_shape(c, LACI_OUT(0));
  c->why = "places along height and width matter to pools";
  if (!x || !y || x->rank != y->rank || x->rank < 3) return laci_coupling_status(c);
  for (int axis = 0; axis < 2; axis++) {
    int label = laci_coupling_new_label(c);
    laci_coupling_set_label(c, 0, axis, label);
    laci_coupling_set_label(c, LACI_OUT(0), axis, label);
  }
  return laci_coupling_status(c);
}
