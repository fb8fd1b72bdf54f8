/* SPDX-License-Identifier: Apache-2.0
 * The squared error between a value and its target, and its gradient: one pass over both as they
 * are stored, the target in the layout of the value. Sums are computed for parts of a fixed size,
 * which are added in order, so that they do not depend on the number of threads. */
#include "engine/cpu/net_in.h"
#include "graph/graph.h"
#include "kernel/pointwise/squared_error.h"
#include "cpu/pool.h"
#include "engine/cpu/onednn/onednn.h"

enum { GRAIN = 1 << 14 }; /* number of elements that a thread sums at a time */

typedef struct error_step {
  const laci_squared_error *kernel;
  double factor;
  bool relative, bf16;
  int64_t n;          /* number of elements, including zeros with which a layout is padded */
  double (*parts)[2]; /* sums over GRAIN elements each: of squared errors, and of squared targets */
} error_step;

typedef struct error_work {
  const error_step *s;
  const void *x, *t;
  float slope;
  void *to;
} error_work;

static void sum_errors_of_parts(int64_t begin, int64_t end, void *context) {
  const error_work *w = context;
  const error_step *s = w->s;
  for (int64_t part = begin; part < end; part++) {
    int64_t at = part * GRAIN, n = s->n - at < GRAIN ? s->n - at : GRAIN;
    if (s->bf16)
      s->kernel->sum_bf16((const uint16_t *)w->x + at, (const uint16_t *)w->t + at, n,
                          s->parts[part]);
    else s->kernel->sum_f32((const float *)w->x + at, (const float *)w->t + at, n, s->parts[part]);
  }
}

/** Returns the sum of squared errors. *scale: the factor by which it is multiplied for the loss. */
static double sum_all_errors(laci_net *net, error_work *w, double *scale) {
  const error_step *s = w->s;
  const int64_t n_parts = (s->n + GRAIN - 1) / GRAIN;
  double error = 0, energy = 0;
  laci_pool_for(net->pool, n_parts, 1, sum_errors_of_parts, w);
  for (int64_t part = 0; part < n_parts; part++) {
    error += s->parts[part][0];
    energy += s->parts[part][1];
  }
  *scale = !s->relative ? s->factor : energy > 0 ? s->factor / energy : 0;
  return error;
}

/* Runs the squared error. step->tensors: x, target t, loss */
static lac_status run_squared_error(laci_net *net, laci_net_step *step, lac_error *err) {
  error_work w = {.s = step->context,
                  .x = laci_net_tensor_data(net, step->tensors[0]),
                  .t = laci_net_tensor_data(net, step->tensors[1])};
  double scale, error = sum_all_errors(net, &w, &scale);
  (void)err;
  *(float *)laci_net_tensor_data(net, step->tensors[2]) = (float)(error * scale);
  return LAC_OK;
}

static void compute_gradient_in_range(int64_t begin, int64_t end, void *context) {
  const error_work *w = context;
  const laci_squared_error *kernel = w->s->kernel;
  if (w->s->bf16)
    kernel->slope_bf16((const uint16_t *)w->x + begin, (const uint16_t *)w->t + begin, w->slope,
                       end - begin, (uint16_t *)w->to + begin);
  else
    kernel->slope_f32((const float *)w->x + begin, (const float *)w->t + begin, w->slope,
                      end - begin, (float *)w->to + begin);
}

/* Runs the gradient of the squared error. step->tensors: x, target t, d loss, d x */
static lac_status run_squared_error_gradient(laci_net *net, laci_net_step *step, lac_error *err) {
  const error_step *s = step->context;
  error_work w = {.s = s,
                  .x = laci_net_tensor_data(net, step->tensors[0]),
                  .t = laci_net_tensor_data(net, step->tensors[1]),
                  .to = laci_net_tensor_data(net, step->tensors[3])};
  double scale = s->factor;
  (void)err;
  if (s->relative) (void)sum_all_errors(net, &w, &scale);
  w.slope =
      (float)(2 * scale * (double)*(const float *)laci_net_tensor_data(net, step->tensors[2]));
  laci_pool_for(net->pool, s->n, GRAIN, compute_gradient_in_range, &w);
  return LAC_OK;
}

/** Reads the value x and its target t, both in the layout of x, as bf16 or f32, into tensors[0] and
 * tensors[1]. first: the node's input that is x. */
static error_step *read_value_and_target(laci_net *net, const laci_node *node, int first,
                                         int tensors[2]) {
  int x = laci_net_read_value(net, node->inputs[first]);
  if (x < 0) return NULL;
  laci_element dt =
      net->tensors[x].dt == LACI_ELEMENT_F32 ? LACI_ELEMENT_F32 : laci_net_float_element(net);
  x = dt == laci_net_float_element(net) ? laci_net_make_whole_tensor(net, x)
                                        : laci_net_convert_to_dense(net, x, dt);
  if (x < 0) return NULL;
  dt = net->tensors[x].dt;
  tensors[0] = x;
  tensors[1] = laci_net_convert_tensor(net, laci_net_read_value(net, node->inputs[first + 1]),
                                       net->tensors[x].md, dt);
  error_step *s = laci_plan_alloc(&net->plan, 1, sizeof *s);
  if (!s || tensors[1] < 0) return NULL;
  *s = (error_step){.kernel = laci_squared_error_variant(),
                    .factor = (double)laci_node_float(node, "factor", 1),
                    .relative = laci_node_int(node, "relative", 0) != 0,
                    .bf16 = dt == LACI_ELEMENT_BF16};
  s->n = (int64_t)(laci_layout_bytes(net->tensors[x].md) / (s->bf16 ? 2 : sizeof(float)));
  s->parts = laci_plan_alloc(&net->plan, (size_t)((s->n + GRAIN - 1) / GRAIN), sizeof *s->parts);
  return s->parts ? s : NULL;
}

static void set_error_step_report(laci_net *net, const laci_fused *fused, laci_net_step *step,
                                  error_step *s) {
  if (!step) return;
  step->kernel = "own";
  step->context = s;
  step->shown = step->tensors[step->n_args - 1];
  laci_net_bind_value(net, fused->output, step->shown);
}

static void lower_squared_error(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const laci_shape *y = laci_plan_shape(&net->plan, fused->output);
  int tensors[3];
  error_step *s = read_value_and_target(net, node, 0, tensors);
  laci_layout *md = s ? laci_net_dense_layout(net, y, LACI_ELEMENT_F32) : NULL;
  if (!md) return;
  tensors[2] = laci_net_new_result(net, y, LACI_ELEMENT_F32, md);
  laci_layout_destroy(md);
  set_error_step_report(net, fused,
                        laci_net_step_add_code(net, node, run_squared_error, 3, tensors), s);
}

static void lower_squared_error_gradient(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  int tensors[4];
  error_step *s = read_value_and_target(net, node, 1, tensors);
  if (!s) return;
  tensors[2] =
      laci_net_convert_to_dense(net, laci_net_read_value(net, node->inputs[0]), LACI_ELEMENT_F32);
  tensors[3] = laci_net_new_result_like(net, tensors[1], tensors[1] != tensors[0]);
  set_error_step_report(
      net, fused, laci_net_step_add_code(net, node, run_squared_error_gradient, 4, tensors), s);
}

const laci_implementation laci_implementations_squared_error[] = {
    {"our kernel", LACI_FUSIBLE_NOTHING, NULL, lower_squared_error},
    {.name = NULL},
};
const laci_implementation laci_implementations_squared_error_grad[] = {
    {"our kernel", LACI_FUSIBLE_NOTHING, NULL, lower_squared_error_gradient},
    {.name = NULL},
};
