/* SPDX-License-Identifier: Apache-2.0
 * Finds which nodes are element-wise functions of one value: a table by operator, and Add, Sub,
 * Mul, Div and Pow with one constant number. Next: fuse_chain.c, which fuses them. */
#include <float.h>
#include <string.h>

#include "engine/cpu/plan/plan.h"
#include "graph/ops.h"
#include "graph/op.h"

typedef struct named_function {
  const laci_op *op;
  laci_function_kind kind;
  const char *alpha_name; /* attribute that gives alpha; NULL: alpha is the number in this table */
  float alpha, beta;
} named_function;

/* Log and Softplus are not listed: oneDNN loses digits where their result is near 0
 * (lower/function.c). */
static const named_function functions[] = {
    {&laci_op_relu, LACI_FUNCTION_RELU, NULL, 0, 0},
    {&laci_op_leaky_relu, LACI_FUNCTION_RELU, "alpha", 0.01f, 0},
    {&laci_op_elu, LACI_FUNCTION_ELU, "alpha", 1, 0},
    {&laci_op_sigmoid, LACI_FUNCTION_LOGISTIC, NULL, 0, 0},
    {&laci_op_tanh, LACI_FUNCTION_TANH, NULL, 0, 0},
    {&laci_op_exp, LACI_FUNCTION_EXP, NULL, 0, 0},
    {&laci_op_sqrt, LACI_FUNCTION_SQRT, NULL, 0, 0},
    {&laci_op_abs, LACI_FUNCTION_ABS, NULL, 0, 0},
    {&laci_op_neg, LACI_FUNCTION_LINEAR, NULL, -1, 0},
    {&laci_op_reciprocal, LACI_FUNCTION_POW, NULL, 1, -1},
    {&laci_op_mish, LACI_FUNCTION_MISH, NULL, 0, 0},
    {&laci_op_swish, LACI_FUNCTION_SWISH, "alpha", 1, 0},
    {&laci_op_hard_swish, LACI_FUNCTION_HARDSWISH, NULL, 1.0f / 6, 0.5f},
};

int laci_function_from_clip(laci_cpu_plan *plan, const laci_node *node, int port,
                            laci_function *out) {
  double low = laci_node_float(node, "min", -FLT_MAX), high = laci_node_float(node, "max", FLT_MAX);
  if (laci_plan_has_input(node, port) && !laci_plan_read_scalar(plan, node->inputs[port], &low))
    return 0;
  if (laci_plan_has_input(node, port + 1) &&
      !laci_plan_read_scalar(plan, node->inputs[port + 1], &high))
    return 0;
  if (low < -(double)FLT_MAX) low = -FLT_MAX;
  if (high > (double)FLT_MAX) high = FLT_MAX;
  if (!(low <= high)) return 0; /* every x becomes `high`: rare, and left to the plain operator */
  *out = (laci_function){LACI_FUNCTION_CLIP, (float)low, (float)high};
  return 1;
}

/** Writes the functions that operator `op` with this node's attributes is equal to; returns their
 * number, 0 if none. */
static int find_functions_of_op(const laci_node *node, const laci_op *op, laci_function out[2]) {
  for (size_t at = 0; at < sizeof functions / sizeof *functions; at++) {
    const named_function *f = &functions[at];
    if (op != f->op) continue;
    float alpha = f->alpha_name ? laci_node_float(node, f->alpha_name, f->alpha) : f->alpha;
    out[0] = (laci_function){f->kind, alpha, f->beta};
    return 1;
  }
  if (op == &laci_op_gelu) {
    bool rough = strcmp(laci_node_text(node, "approximate", "none"), "tanh") == 0;
    out[0] = (laci_function){rough ? LACI_FUNCTION_GELU_TANH : LACI_FUNCTION_GELU_ERF, 0, 0};
    return 1;
  }
  if (op == &laci_op_hard_sigmoid) {
    out[0] = (laci_function){LACI_FUNCTION_LINEAR, laci_node_float(node, "alpha", 0.2f),
                             laci_node_float(node, "beta", 0.5f)};
    out[1] = (laci_function){LACI_FUNCTION_CLIP, 0, 1};
    return 2;
  }
  return 0;
}

int laci_find_type_functions(const laci_node *node, const char *type, laci_function out[2]) {
  const laci_op *op = laci_op_find(type, "");
  return op ? find_functions_of_op(node, op, out) : 0;
}

/** Writes the function c / x, or x / c if `right`; returns 1, or 0 for a division by 0. */
static int write_quotient(double c, bool right, laci_function *out) {
  *out = right ? (laci_function){LACI_FUNCTION_LINEAR, (float)(1 / c), 0}
               : (laci_function){LACI_FUNCTION_POW, (float)c, -1};
  return !right || c != 0;
}

/** Writes the function of an Add, Sub, Mul, Div or Pow with one constant number; returns 0 if it is
 * none. */
static int find_function_with_number(laci_cpu_plan *plan, const laci_node *node, int *input,
                                     laci_function *out) {
  const laci_op *op = node->op;
  double c = 0;
  if (op != &laci_op_add && op != &laci_op_sub && op != &laci_op_mul && op != &laci_op_div &&
      op != &laci_op_pow) {
    return 0;
  }
  if (node->n_inputs != 2) return 0;
  bool right = laci_plan_read_scalar(plan, node->inputs[1], &c);
  if (!right && !laci_plan_read_scalar(plan, node->inputs[0], &c)) return 0;
  *input = right ? 0 : 1;
  /* A constant with more axes than the other operand adds axes to the result. */
  if (laci_plan_shape(plan, node->inputs[!*input])->rank >
      laci_plan_shape(plan, node->inputs[*input])->rank) {
    return 0;
  }
  float x = (float)c;
  if (op == &laci_op_div) return write_quotient(c, right, out);
  if (op == &laci_op_pow) *out = (laci_function){LACI_FUNCTION_POW, 1, x};
  if (op == &laci_op_add) *out = (laci_function){LACI_FUNCTION_LINEAR, 1, x};
  if (op == &laci_op_mul) *out = (laci_function){LACI_FUNCTION_LINEAR, x, 0};
  if (op == &laci_op_sub) {
    *out = (laci_function){LACI_FUNCTION_LINEAR, right ? 1.0f : -1.0f, right ? -x : x};
  }
  return op == &laci_op_pow ? right : 1;
}

int laci_find_node_functions(laci_cpu_plan *plan, const laci_node *node, int *input,
                             laci_function out[2]) {
  *input = 0;
  if (node->n_inputs < 1 || node->n_outputs < 1 || !laci_plan_has_input(node, 0)) return 0;
  if (node->outputs[0] < 0 || !laci_plan_is_float(plan, node->outputs[0])) return 0;
  for (int at = 0; at < node->n_inputs; at++) {
    if (node->inputs[at] >= 0 && !laci_plan_is_float(plan, node->inputs[at])) return 0;
  }
  if (node->op == &laci_op_clip) return laci_function_from_clip(plan, node, 1, out);
  int n = find_functions_of_op(node, node->op, out);
  return n ? n : find_function_with_number(plan, node, input, out);
}
