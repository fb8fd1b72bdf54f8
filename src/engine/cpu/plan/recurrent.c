/* SPDX-License-Identifier: Apache-2.0
 * Implements recurrent.h. */
#include "engine/cpu/plan/recurrent.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "engine/cpu/plan/finite.h"
#include "graph/ops.h"

static bool read_operator_kind(const laci_node *node, laci_recurrent_node *r) {
  if (node->op == &laci_op_lstm) r->kind = LACI_RECURRENT_LSTM, r->n_gates = 4;
  else if (node->op == &laci_op_gru) r->kind = LACI_RECURRENT_GRU, r->n_gates = 3;
  else if (node->op == &laci_op_rnn) r->kind = LACI_RECURRENT_RNN, r->n_gates = 1;
  else return false;
  return true;
}

/** Reads the functions of both directions. Gates between 0 and 1 keep states within bounds, so that
 * LSTM and GRU need Sigmoid there. */
static bool read_gate_functions(const laci_node *node, laci_recurrent_node *r) {
  static const char *const usual[] = {"Sigmoid", "Tanh", "Tanh"};
  const int first = r->kind == LACI_RECURRENT_RNN, n = r->n_gates == 4   ? 3
                                                       : r->n_gates == 3 ? 2
                                                                         : 1;
  const laci_attr *names = laci_node_attr(node, "activations");
  const bool given = names && names->kind == LACI_ATTR_TEXTS && names->n > 0;
  if (given && names->n != (size_t)(n * r->directions)) return false;
  for (int at = 0; at < n * (int)r->directions; at++) {
    const char *name = given ? names->texts[at] : usual[first + at % n];
    const bool sigmoid = strcasecmp(name, "Sigmoid") == 0;
    if (!sigmoid && strcasecmp(name, "Tanh") != 0) return false;
    if (!sigmoid && at % n == 0 && r->kind != LACI_RECURRENT_RNN) return false;
    r->functions[at / n][at % n] = sigmoid ? LACI_FUNCTION_LOGISTIC : LACI_FUNCTION_TANH;
  }
  return true;
}

static bool has_element_count(const laci_cpu_plan *plan, const laci_node *node, int port,
                              int64_t count) {
  if (!laci_plan_has_input(node, port)) return true;
  const int value = node->inputs[port];
  return laci_shape_count(laci_plan_shape(plan, value)) == count &&
         laci_plan_is_float(plan, value) == (port != LACI_RECURRENT_LENGTHS);
}

/** Do all operands have the elements that the operator reads? */
static bool read_operand_sizes(const laci_cpu_plan *plan, const laci_node *node,
                               laci_recurrent_node *r) {
  if (node->n_inputs <= LACI_RECURRENT_R) return false;
  for (int port = LACI_RECURRENT_X; port <= LACI_RECURRENT_R; port++) {
    if (node->inputs[port] < 0 || !laci_plan_is_float(plan, node->inputs[port]) ||
        laci_plan_shape(plan, node->inputs[port])->rank != 3)
      return false;
  }
  const laci_shape *x = laci_plan_shape(plan, node->inputs[LACI_RECURRENT_X]);
  r->directions = laci_plan_shape(plan, node->inputs[LACI_RECURRENT_W])->dims[0];
  r->hidden = laci_plan_shape(plan, node->inputs[LACI_RECURRENT_R])->dims[2];
  r->batch_first = laci_node_int(node, "layout", 0) != 0;
  r->time = x->dims[r->batch_first ? 1 : 0];
  r->batch = x->dims[r->batch_first ? 0 : 1];
  r->inputs = x->dims[2];
  const int64_t rows = r->n_gates * r->hidden, states = r->directions * r->batch * r->hidden;
  return (r->directions == 1 || r->directions == 2) &&
         has_element_count(plan, node, LACI_RECURRENT_W, r->directions * rows * r->inputs) &&
         has_element_count(plan, node, LACI_RECURRENT_R, r->directions * rows * r->hidden) &&
         has_element_count(plan, node, LACI_RECURRENT_BIAS, r->directions * 2 * rows) &&
         has_element_count(plan, node, LACI_RECURRENT_LENGTHS, r->batch) &&
         has_element_count(plan, node, LACI_RECURRENT_INITIAL_H, states) &&
         has_element_count(plan, node, LACI_RECURRENT_INITIAL_C, states) &&
         has_element_count(plan, node, LACI_RECURRENT_PEEPHOLE, r->directions * 3 * r->hidden);
}

bool laci_plan_read_recurrent(const laci_cpu_plan *plan, const laci_node *node,
                              laci_recurrent_node *r, const char **why) {
  const char *ignored;
  if (!why) why = &ignored;
  *r = (laci_recurrent_node){0};
  *why = "no recurrent operator";
  if (!read_operator_kind(node, r)) return false;
  *why = "operands of other sizes or types";
  if (!laci_plan_has_elements(plan, node) || !read_operand_sizes(plan, node, r)) return false;
  *why = "other activations than Sigmoid and Tanh";
  if (!read_gate_functions(node, r)) return false;
  r->backward = strcmp(laci_node_text(node, "direction", "forward"), "reverse") == 0;
  r->clip = laci_node_float(node, "clip", INFINITY);
  r->input_forget = r->kind == LACI_RECURRENT_LSTM && laci_node_int(node, "input_forget", 0) != 0;
  r->linear_before =
      r->kind == LACI_RECURRENT_GRU && laci_node_int(node, "linear_before_reset", 0) != 0;
  *why = "a clip below 0";
  return r->clip >= 0;
}

/* ---- Bounds ---- */

/** Returns the bound of the product of a weight with a vector of numbers of magnitude up to x. */
static double bound_of_state_product(laci_cpu_plan *plan, const double *bounds, int weight,
                                     double x) {
  const int64_t length = laci_plan_shape(plan, weight)->dims[2];
  const laci_finite_rows rows = {.inner = 1, .length = length};
  if (laci_plan_is_constant(plan, weight)) {
    return laci_finite_largest_row_sum(plan, weight, &rows) * x;
  }
  return (double)length * laci_finite_operand_bound(plan, bounds, weight) * x;
}

double laci_plan_recurrent_bound(laci_cpu_plan *plan, const double *bounds, const laci_node *node,
                                 const laci_recurrent_node *r) {
  double operands[LACI_RECURRENT_PORTS] = {0};
  for (int port = 0; port < node->n_inputs && port < LACI_RECURRENT_PORTS; port++) {
    if (port == LACI_RECURRENT_W || port == LACI_RECURRENT_R) continue;
    operands[port] = laci_finite_operand_bound(plan, bounds, node->inputs[port]);
    if (isnan(operands[port])) return INFINITY; /* fmax would ignore the NaN */
  }
  /* a state is a mean of numbers within 1 and the state before; each step adds at most 1 to a
     cell */
  const double h = fmax(1, operands[LACI_RECURRENT_INITIAL_H]);
  const double c =
      r->kind == LACI_RECURRENT_LSTM ? operands[LACI_RECURRENT_INITIAL_C] + (double)r->time : 0;
  const double sum = bound_of_state_product(plan, bounds, node->inputs[LACI_RECURRENT_W],
                                            operands[LACI_RECURRENT_X]) +
                     bound_of_state_product(plan, bounds, node->inputs[LACI_RECURRENT_R], h) +
                     2 * operands[LACI_RECURRENT_BIAS] + operands[LACI_RECURRENT_PEEPHOLE] * c;
  return sum < LACI_FINITE_BOUND ? fmax(h, c) : INFINITY;
}
