/* SPDX-License-Identifier: Apache-2.0
 * Fuses gelu and swish where a graph writes them as operators:
 *
 *     x (1 + erf(x / sqrt 2)) / 2
 *     x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2
 *     x sigmoid(alpha x)
 *
 * Exporters write cubes, factors and halves in many orders. So nodes are collected that compute one
 * value from x and numbers, and that value is compared with the functions at some points. */
#include <math.h>

#include "engine/cpu/plan/plan.h"
#include "graph/ops.h"

enum {
  MOST_NODES = 12,
  REACH = 32 /* maximum number of nodes from one of the formula to the next */
};

/** The nodes of a formula of x, in the graph's order; each reads x, results of earlier ones and
 * numbers alone. */
typedef struct formula {
  laci_cpu_plan *plan;
  int x, n, nodes[MOST_NODES];
  bool is_curved; /* one of the nodes is no arithmetic */
} formula;

/** Returns the place of the node that computes the value; -1: none of them. */
static int find_place(const formula *f, int value) {
  int at = f->n - 1;
  while (at >= 0 && f->plan->graph->nodes[f->nodes[at]].outputs[0] != value) at--;
  return at;
}

static bool is_curve(const laci_op *op) {
  return op == &laci_op_tanh || op == &laci_op_erf || op == &laci_op_sigmoid;
}

static bool is_arithmetic(const laci_op *op) {
  return op == &laci_op_add || op == &laci_op_mul || op == &laci_op_sub || op == &laci_op_div ||
         op == &laci_op_pow;
}

static bool belongs_to_formula(const formula *f, int n) {
  laci_cpu_plan *plan = f->plan;
  const laci_node *node = &plan->graph->nodes[n];
  double number;
  bool reads = false;
  if (!plan->computed[n] || laci_plan_is_fused(plan, n) || plan->fused[n].pattern) return false;
  if (is_curve(node->op) ? node->n_inputs != 1 : !is_arithmetic(node->op) || node->n_inputs != 2)
    return false;
  for (int at = 0; at < node->n_inputs; at++) {
    const int value = node->inputs[at];
    if (value < 0) return false;
    if (value == f->x || find_place(f, value) >= 0) reads = true;
    else if (!laci_plan_read_scalar(plan, value, &number)) return false;
  }
  return reads &&
         laci_shape_equal(laci_plan_shape(plan, f->x), laci_plan_shape(plan, node->outputs[0]));
}

static int count_uses_in_formula(const formula *f, int value) {
  int n = 0;
  for (int k = 0; k < f->n; k++) {
    const laci_node *node = &f->plan->graph->nodes[f->nodes[k]];
    for (int at = 0; at < node->n_inputs; at++) n += node->inputs[at] == value;
  }
  return n;
}

/** Are x and all results but the last one read by the formula alone? */
static bool is_closed(const formula *f) {
  bool closed = count_uses_in_formula(f, f->x) == laci_plan_count_uses(f->plan, f->x);
  for (int k = 0; k < f->n - 1 && closed; k++) {
    const int value = f->plan->graph->nodes[f->nodes[k]].outputs[0];
    closed = count_uses_in_formula(f, value) == laci_plan_count_uses(f->plan, value);
  }
  return closed;
}

static double apply_operator(const laci_op *op, double a, double b) {
  return op == &laci_op_tanh      ? tanh(a)
         : op == &laci_op_erf     ? erf(a)
         : op == &laci_op_sigmoid ? 1 / (1 + exp(-a))
         : op == &laci_op_add     ? a + b
         : op == &laci_op_sub     ? a - b
         : op == &laci_op_mul     ? a * b
         : op == &laci_op_div     ? a / b
                                  : pow(a, b);
}

static double compute_formula(const formula *f, double x) {
  double y[MOST_NODES];
  for (int k = 0; k < f->n; k++) {
    const laci_node *node = &f->plan->graph->nodes[f->nodes[k]];
    double in[2] = {0};
    for (int at = 0; at < node->n_inputs; at++) {
      const int place = find_place(f, node->inputs[at]);
      if (node->inputs[at] == f->x) in[at] = x;
      else if (place >= 0) in[at] = y[place];
      else (void)laci_plan_read_scalar(f->plan, node->inputs[at], &in[at]);
    }
    y[k] = apply_operator(node->op, in[0], in[1]);
  }
  return y[f->n - 1];
}

static double compute_function(const laci_function *function, double x) {
  switch (function->kind) {
    case LACI_FUNCTION_GELU_ERF: return 0.5 * x * (1 + erf(x * 0.7071067811865476));
    case LACI_FUNCTION_GELU_TANH:
      return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
    default: return x / (1 + exp(-(double)function->alpha * x));
  }
}

/** Is the formula this function, but for the digits that its numbers may have in f32? The two gelus
 * differ by 5e-4. */
static bool is_function(const formula *f, const laci_function *function) {
  const double tolerance = 2e-6;
  for (int k = -20; k <= 20; k++) {
    const double x = 0.3 * k;
    if (!(fabs(compute_formula(f, x) - compute_function(function, x)) <= tolerance)) return false;
  }
  return true;
}

/** Finds the function that the formula is; false: none of those above. */
static bool find_function(const formula *f, laci_function *function) {
  const double one = compute_formula(f, 1); /* swish: 1 / (1 + exp(-alpha)) */
  const laci_function candidates[] = {
      {LACI_FUNCTION_GELU_ERF, 0, 0},
      {LACI_FUNCTION_GELU_TANH, 0, 0},
      {LACI_FUNCTION_SWISH, one > 0 && one < 1 ? (float)log(one / (1 - one)) : 1, 0},
  };
  for (size_t at = 0; at < sizeof candidates / sizeof *candidates; at++) {
    *function = candidates[at];
    if (is_function(f, function)) return true;
  }
  return false;
}

bool laci_fuse_formula(laci_cpu_plan *plan, laci_fused *fused) {
  laci_function function;
  int readers[2];
  formula f = {.plan = plan, .x = fused->output};
  if (!laci_plan_is_float(plan, f.x) || laci_plan_find_readers(plan, f.x, readers) < 2)
    return false;
  for (int n = readers[0], last = n; n <= last + REACH && n < plan->graph->n_nodes; n++) {
    if (f.n == MOST_NODES) return false;
    if (!belongs_to_formula(&f, n)) continue;
    f.nodes[f.n++] = last = n;
    f.is_curved = f.is_curved || is_curve(plan->graph->nodes[n].op);
    if (!f.is_curved || !is_closed(&f) || !find_function(&f, &function)) continue;
    if (!laci_fused_append_functions(fused, 1, &function)) return false;
    for (int k = 0; k < f.n; k++) laci_fused_append(plan, fused, f.nodes[k]);
    return true;
  }
  return false;
}
