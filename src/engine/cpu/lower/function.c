/* SPDX-License-Identifier: Apache-2.0
 * Element-wise functions of one value, and their gradients.
 *
 * The result has the layout of the operand, and its memory if no later node reads the operand. A
 * Relu's gradient needs only the Relu's result. If the Relu was fused to the batch norm before it,
 * its gradient is fused to that of the norm: this node's result is then the same tensor as its
 * operand. Next: binary.c. */
#include <math.h>

#include "engine/cpu/lower/binary.h"
#include "graph/ops.h"
#include "cpu/pool.h"
#include "engine/cpu/onednn/onednn.h"

int laci_net_apply_function(laci_net *net, const laci_fused *fused, int from,
                            const laci_function *f) {
  laci_primitive *pd = NULL;
  int to = laci_net_new_result_like(net, from, true);
  if (to < 0) return -1;
  lac_status st = laci_primitive_describe_function(&pd, net->onednn, f, net->tensors[from].md);
  if (!laci_net_check_status(net, st, "element-wise function")) return -1;
  laci_net_step_add(net, fused, pd, 2, (const int[][2]){{LACI_ARG_SRC, from}, {LACI_ARG_DST, to}});
  return to;
}

bool laci_can_lower_function(laci_net *net, const laci_fused *fused, const char **why) {
  laci_function f[2];
  int input;
  *why = "no function of one value";
  return laci_find_node_functions(&net->plan, &net->plan.graph->nodes[fused->node], &input, f) > 0;
}

void laci_lower_unary_function(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  laci_function f[2];
  int input, n = laci_find_node_functions(&net->plan, node, &input, f);
  int at = laci_net_make_whole_tensor(net, laci_net_read_value(net, node->inputs[input]));
  for (int i = 0; i < n; i++) at = laci_net_apply_function(net, fused, at, &f[i]);
  laci_net_bind_value(net, fused->output, at);
}

/* ---- Functions that lose no digits ---- */

/* Functions that oneDNN lacks, or computes less accurately: log(x) near x = 1, and softplus(x) for
 * very negative x. */
static float softplus(float x) { return x > 0 ? x + log1pf(expf(-x)) : log1pf(expf(x)); }
static float softsign(float x) { return x / (1 + fabsf(x)); }
static float sign(float x) { return x > 0 ? 1 : x < 0 ? -1 : x; }

typedef struct accurate_function {
  const laci_op *op;
  float (*of)(float x);
} accurate_function;

static const accurate_function accurate_functions[] = {
    {&laci_op_log, logf},     {&laci_op_softplus, softplus}, {&laci_op_erf, erff},
    {&laci_op_floor, floorf}, {&laci_op_ceil, ceilf},        {&laci_op_round, rintf},
    {&laci_op_sign, sign},    {&laci_op_softsign, softsign},
};

typedef struct accurate_step {
  int64_t n;
  float (*of)(float x);
} accurate_step;

typedef struct accurate_work {
  const accurate_step *c;
  const float *x;
  float *y;
} accurate_work;

static void apply_function_range(int64_t begin, int64_t end, void *context) {
  const accurate_work *w = context;
  for (int64_t at = begin; at < end; at++) w->y[at] = w->c->of(w->x[at]);
}

static lac_status run_accurate_function(laci_net *net, laci_net_step *step, lac_error *err) {
  enum { GRAIN = 4096 };
  const accurate_step *c = step->context;
  accurate_work w = {.c = c,
                     .x = laci_net_tensor_data(net, step->tensors[0]),
                     .y = laci_net_tensor_data(net, step->tensors[1])};
  (void)err;
  laci_pool_for(net->pool, c->n, GRAIN, apply_function_range, &w);
  return LAC_OK;
}

static bool can_lower_accurate_function(laci_net *net, const laci_fused *fused, const char **why) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  *why = "no floats, or none at all";
  return laci_plan_is_float(&net->plan, node->inputs[0]) &&
         laci_shape_count(laci_plan_shape(&net->plan, node->inputs[0])) > 0;
}

static void lower_accurate_function(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const laci_shape *shape = laci_plan_shape(&net->plan, node->inputs[0]);
  int from =
      laci_net_convert_to_dense(net, laci_net_read_value(net, node->inputs[0]), LACI_ELEMENT_F32);
  laci_layout *md = laci_net_dense_layout(net, shape, LACI_ELEMENT_F32);
  int to = md && from >= 0 ? laci_net_new_result(net, shape, LACI_ELEMENT_F32, md) : -1;
  laci_layout_destroy(md);
  accurate_step *c = laci_plan_alloc(&net->plan, 1, sizeof *c);
  laci_net_step *step =
      laci_net_step_add_code(net, node, run_accurate_function, 2, (int[]){from, to});
  if (!c || !step) return;
  const accurate_function *function = accurate_functions;
  while (function->op != node->op) function++;
  *c = (accurate_step){.n = laci_shape_count(shape), .of = function->of};
  step->context = c;
  step->kernel = "own";
  step->shown = to;
  laci_net_bind_value(net, fused->output, to);
}

/* ---- Gradients ---- */

/** Adds a step that multiplies the gradient dY by the function's slope at `data`, in the layout of
 * `data`; returns the result's tensor. */
static int add_gradient_step(laci_net *net, const laci_fused *fused, const laci_function *f, int dy,
                             int data) {
  bool by_result = f->kind == LACI_FUNCTION_RELU_BY_RESULT;
  laci_primitive *hint = NULL, *pd = NULL;
  data = laci_net_make_whole_tensor(net, data);
  if (data < 0) return -1;
  const laci_layout *md = net->tensors[data].md;
  lac_status st = laci_primitive_describe_function_train(&hint, net->onednn, f, md);
  if (!st) st = laci_primitive_describe_function_gradient(&pd, net->onednn, f, md, hint);
  laci_primitive_destroy(hint);
  if (!laci_net_check_status(net, st, "gradient of this function")) return -1;
  int from = laci_net_convert_tensor(net, dy, md, laci_net_float_element(net));
  int to = laci_net_new_result_like(net, from, true);
  laci_net_step_add(net, fused, pd, 3,
                    (const int[][2]){{by_result ? LACI_ARG_DST : LACI_ARG_SRC, data},
                                     {LACI_ARG_DIFF_DST, from},
                                     {LACI_ARG_DIFF_SRC, to}});
  return to;
}

/** Lowers the gradient of a Relu. If the batch norm before the Relu has stored which results were
 * positive (in its workspace), the norm's gradient also does that of the Relu, and dy is passed on
 * unchanged. */
static void lower_relu_grad(laci_net *net, const laci_fused *fused) {
  static const laci_function relu = {LACI_FUNCTION_RELU_BY_RESULT, 0, 0};
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  int norm = laci_plan_workspace_producer(&net->plan, fused->node);
  int dy;
  if (norm >= 0 && net->workspaces[norm] >= 0) {
    dy = laci_net_find_value_tensor(net, node->inputs[0]);
  } else {
    dy = laci_net_read_value(net, node->inputs[0]);
    dy = add_gradient_step(net, fused, &relu, dy, laci_net_read_value(net, node->inputs[1]));
  }
  laci_net_bind_value(net, fused->output, dy);
}

/** Finds the function by whose slope a UnaryGrad or ClipGrad multiplies; false: it is not a single
 * function. */
static bool read_gradient_function(laci_net *net, const laci_fused *fused, laci_function *f) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  laci_function of[2] = {{0}};
  bool clip = node->op == &laci_op_clip_grad;
  int n = clip ? laci_function_from_clip(&net->plan, node, 2, of)
               : laci_find_type_functions(node, laci_node_text(node, "of", ""), of);
  *f = of[0];
  if (clip) f->kind = LACI_FUNCTION_CLIP_OPEN; /* ClipGrad's slope is 0 at the bounds */
  return n == 1;
}

static bool can_lower_function_gradient(laci_net *net, const laci_fused *fused, const char **why) {
  laci_function f;
  *why = "a function or bounds that oneDNN lacks";
  return read_gradient_function(net, fused, &f);
}

static void lower_function_gradient(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  laci_function f;
  (void)read_gradient_function(net, fused, &f);
  int dy = laci_net_read_value(net, node->inputs[0]), x = laci_net_read_value(net, node->inputs[1]);
  laci_net_bind_value(net, fused->output, add_gradient_step(net, fused, &f, dy, x));
}

/* ---- The lists of implementations ---- */

const laci_implementation laci_implementations_function[] = {
    {"oneDNN's function", LACI_FUSIBLE_NOTHING, laci_can_lower_function, laci_lower_unary_function},
    {.name = NULL},
};
const laci_implementation laci_implementations_accurate[] = {
    {"with all digits", LACI_FUSIBLE_NOTHING, can_lower_accurate_function, lower_accurate_function},
    {.name = NULL},
};
const laci_implementation laci_implementations_relu_grad[] = {
    {"oneDNN's slope", LACI_FUSIBLE_NOTHING, NULL, lower_relu_grad},
    {.name = NULL},
};
const laci_implementation laci_implementations_unary_grad[] = {
    {"oneDNN's slope", LACI_FUSIBLE_NOTHING, can_lower_function_gradient, lower_function_gradient},
    {.name = NULL},
};
const laci_implementation laci_implementations_clip_grad[] = {
    {"oneDNN's slope", LACI_FUSIBLE_NOTHING, can_lower_function_gradient, lower_function_gradient},
    {.name = NULL},
};
