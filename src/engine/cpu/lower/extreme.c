/* SPDX-License-Identifier: Apache-2.0
 * The largest or the smallest elements over adjacent axes, by a kernel of our own
 * (kernel/pointwise/extreme.h). oneDNN's reductions start from the largest finite number, so that a
 * row of infinities would give a finite result, and its pools are slow for row-major values. */
#include "kernel/pointwise/extreme.h"

#include "cpu/pool.h"
#include "engine/cpu/lower/reduce.h"
#include "engine/cpu/onednn/onednn.h"
#include "engine/cpu/onednn/pool.h"
#include "graph/ops.h"

enum { GRAIN = 1 << 13 }; /* number of elements that a thread reduces at a time */

typedef struct extremes {
  int64_t outer, n, inner; /* the operand is [outer, n, inner]; n elements are reduced to one */
  int64_t n_parts;         /* number of parts into which the n elements are divided; each part is
                              reduced first by itself; 1: not divided */
  bool largest;
  laci_extreme *kernel;
} extremes;

typedef struct extremes_work {
  const extremes *e;
  const float *x;
  float *parts; /* [outer, n_parts, inner] the extreme of each part of the n elements */
  float *y;
} extremes_work;

static void reduce_row_ranges_to_extremes(int64_t begin, int64_t end, void *context) {
  const extremes_work *w = context;
  const extremes *e = w->e;
  for (int64_t at = begin; at < end; at++) {
    const int64_t o = at / e->n_parts, part = at % e->n_parts;
    const int64_t first = part * e->n / e->n_parts, last = (part + 1) * e->n / e->n_parts;
    float *to = e->n_parts > 1 ? w->parts : w->y;
    e->kernel(w->x + (o * e->n + first) * e->inner, last - first, e->inner, e->largest,
              to + at * e->inner);
  }
}

static lac_status run_extremes(laci_net *net, laci_net_step *step, lac_error *err) {
  const extremes *e = step->context;
  extremes_work w = {.e = e,
                     .x = laci_net_tensor_data(net, step->tensors[0]),
                     .y = laci_net_tensor_data(net, step->tensors[1])};
  if (e->n_parts > 1) w.parts = laci_net_tensor_data(net, step->tensors[2]);
  (void)err;
  const int64_t each = e->n / e->n_parts * e->inner; /* number of elements of a part */
  laci_pool_for(net->pool, e->outer * e->n_parts, each < GRAIN ? GRAIN / each : 1,
                reduce_row_ranges_to_extremes, &w);
  for (int64_t o = 0; o < e->outer && e->n_parts > 1; o++)
    e->kernel(w.parts + o * e->n_parts * e->inner, e->n_parts, e->inner, e->largest,
              w.y + o * e->inner);
  return LAC_OK;
}

/** Divides each row into parts, if there are too few rows for the threads. */
static void divide_rows_into_parts(const laci_net *net, extremes *e) {
  enum { EACH = 2 };
  e->n_parts = 1;
  const int64_t wanted = (EACH * net->n_threads + e->outer - 1) / e->outer;
  const int64_t rows = (GRAIN + e->inner - 1) / e->inner; /* minimum number of rows in a part */
  const int64_t most = e->n / rows;
  if (net->n_threads > 1 && e->outer < net->n_threads) e->n_parts = wanted < most ? wanted : most;
  if (e->n_parts < 1) e->n_parts = 1;
}

/** Adds a step that finds the extremes *how of the node's input; the result has the shape *y. */
static void add_extremes_step(laci_net *net, const laci_fused *fused, const extremes *how,
                              const laci_shape *y) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  int from =
      laci_net_convert_to_dense(net, laci_net_read_value(net, node->inputs[0]), LACI_ELEMENT_F32);
  laci_layout *md = laci_net_dense_layout(net, y, LACI_ELEMENT_F32);
  int to = md && from >= 0 ? laci_net_new_result(net, y, LACI_ELEMENT_F32, md) : -1;
  laci_layout_destroy(md);
  extremes *e = laci_plan_alloc(&net->plan, 1, sizeof *e);
  if (!e) return;
  *e = *how;
  e->kernel = laci_extreme_variant();
  divide_rows_into_parts(net, e);
  const bool parts = e->n_parts > 1;
  const int64_t bytes = e->outer * e->n_parts * e->inner * (int64_t)sizeof(float);
  const int scratch = parts ? laci_net_scratch_new(net, (size_t)bytes) : -1;
  laci_net_step *step =
      laci_net_step_add_code(net, node, run_extremes, parts ? 3 : 2, (int[]){from, to, scratch});
  if (!step) return;
  if (parts) step->codes[2] = LACI_ARG_SCRATCHPAD;
  step->context = e;
  step->kernel = "own";
  step->shown = to;
  laci_net_bind_reshaped(net, fused->output, to);
}

/* ---- ReduceMax and ReduceMin ---- */

bool laci_can_lower_extremes(laci_net *net, const laci_fused *fused, const char **why) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  laci_reduction r;
  int64_t outer, n, inner;
  *why = "no largest or smallest elements along axes side by side";
  if (node->op != &laci_op_reduce_max && node->op != &laci_op_reduce_min) return false;
  if (!laci_reduce_read_node(net, node, &r) || laci_shape_count(&r.x) < 1) return false;
  return laci_reduce_merge_axes(&r, &outer, &n, &inner);
}

void laci_lower_extremes(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  extremes e = {.largest = node->op == &laci_op_reduce_max};
  laci_reduction r;
  if (!laci_reduce_read_node(net, node, &r)) return;
  (void)laci_reduce_merge_axes(&r, &e.outer, &e.n, &e.inner);
  add_extremes_step(net, fused, &e, &r.y);
}

/* ---- GlobalMaxPool ---- */

/** Is the value a row-major tensor of floats? */
static bool is_stored_by_rows(laci_net *net, int value) {
  const int tensor = net->plan.values[value].tensor;
  if (tensor < 0 || net->tensors[tensor].native || net->tensors[tensor].partial) return false;
  return net->tensors[tensor].dt == LACI_ELEMENT_F32 && laci_net_is_row_major(net, tensor);
}

bool laci_can_lower_global_max(laci_net *net, const laci_fused *fused, const char **why) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const laci_shape *x = laci_plan_shape(&net->plan, node->inputs[0]);
  *why = "no largest elements of a row-major value";
  return node->op == &laci_op_global_max_pool && x->rank >= 3 && laci_shape_count(x) > 0 &&
         laci_plan_is_float(&net->plan, node->inputs[0]) && !net->plan.bf16 &&
         !laci_pool_has_gradient(net, fused->node) && is_stored_by_rows(net, node->inputs[0]);
}

void laci_lower_global_max(laci_net *net, const laci_fused *fused) {
  const laci_shape *x = laci_plan_shape(&net->plan, net->plan.graph->nodes[fused->node].inputs[0]);
  const extremes e = {.outer = x->dims[0] * x->dims[1],
                      .n = laci_shape_count_range(x, 2, x->rank),
                      .inner = 1,
                      .largest = true};
  laci_shape y = *x;
  for (int axis = 2; axis < y.rank; axis++) y.dims[axis] = 1;
  add_extremes_step(net, fused, &e, &y);
}
