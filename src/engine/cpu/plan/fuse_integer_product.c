/* SPDX-License-Identifier: Apache-2.0
 * Fuses a product of integers that are found in each run, in the float form of a quantized network
 * (graph/float_form.h):
 *
 *     x -> DynamicSteps -> MatMul with integers [-> Identity] -> * (scale of x [* constant])
 *
 * The constant is integers as floats, or integers times one scale for each column. Products with
 * the same x share its DynamicSteps, which stays a node. What follows is fused as to other products
 * (fuse_chain.c). Next: lower/integer_product.c. */
#include <float.h>
#include <math.h>

#include "engine/cpu/plan/plan.h"
#include "graph/ops.h"
#include "kernel/linear/byte_product.h"

/* ---- The constant matrix ---- */

static bool is_constant_of_bytes(const laci_cpu_plan *plan, int value) {
  const lac_dtype dtype = plan->values[value].type.dtype;
  return laci_plan_is_constant(plan, value) && (dtype == LAC_DTYPE_U8 || dtype == LAC_DTYPE_I8);
}

static const laci_node *find_node_of_value(const laci_cpu_plan *plan, int value) {
  const int producer = value < 0 ? -1 : plan->graph->values[value].producer;
  return producer < 0 ? NULL : &plan->graph->nodes[producer];
}

/** Is the value a constant of bytes that a Cast converts to floats? */
static bool is_cast_of_bytes(const laci_cpu_plan *plan, int value) {
  const laci_node *node = find_node_of_value(plan, value);
  return node && node->op == &laci_op_cast && is_constant_of_bytes(plan, node->inputs[0]);
}

/** Is the value a constant of bytes as floats, perhaps minus a zero point of bytes? */
static bool holds_integers(const laci_cpu_plan *plan, int value) {
  const laci_node *node = find_node_of_value(plan, value);
  if (node && node->op == &laci_op_sub)
    return is_cast_of_bytes(plan, node->inputs[0]) && is_cast_of_bytes(plan, node->inputs[1]);
  return is_cast_of_bytes(plan, value);
}

/** Are all scales numbers by which a product with an integer of 9 bits can be divided again? */
static bool are_safe_divisors(const float *scales, int64_t n) {
  const float most = FLT_MAX / (1 << 9);
  for (int64_t at = 0; at < n; at++) {
    const float magnitude = fabsf(scales[at]);
    if (!(magnitude >= FLT_MIN && magnitude <= most)) return false;
  }
  return true;
}

/** Has a constant one element, or one for each column? */
static bool is_along_columns(const laci_cpu_plan *plan, int value, int64_t columns) {
  const laci_shape *s = laci_plan_shape(plan, value);
  const int64_t count = laci_shape_count(s);
  return laci_plan_is_constant(plan, value) && laci_plan_is_float(plan, value) && s->rank <= 1 &&
         (count == 1 || count == columns);
}

/** Returns the value of the scales with which a DequantizeLinear converted constant integers to
 * `value`; -1: no DequantizeLinear computes it. */
static int find_weight_scale(laci_cpu_plan *plan, int value, int64_t columns) {
  const laci_node *node = find_node_of_value(plan, value);
  if (!node || node->op != &laci_op_dequantize_linear) return -1;
  if (!is_constant_of_bytes(plan, node->inputs[0])) return -1;
  if (laci_node_int(node, "block_size", 0) != 0) return -1;
  const int scale = node->inputs[1];
  if (!is_along_columns(plan, scale, columns)) return -1;
  const int64_t n = laci_shape_count(laci_plan_shape(plan, scale));
  const int64_t axis = laci_node_int(node, "axis", 1);
  if (n > 1 && axis != 1 && axis != -1) return -1;
  const float *scales = laci_plan_constant_floats(plan, scale);
  return scales && are_safe_divisors(scales, n) ? scale : -1;
}

/* ---- The nodes of the product ---- */

/** Returns the node that computes the value, if it has this operator, is not fused, and only one
 * node reads the value; else -1. */
static int find_fusible_producer(const laci_cpu_plan *plan, int value, const laci_op *op) {
  if (laci_plan_is_constant(plan, value) || laci_plan_count_uses(plan, value) != 1) return -1;
  const int node = laci_plan_find_producer(plan, value);
  return node >= 0 && plan->graph->nodes[node].op == op ? node : -1;
}

/** Returns the DynamicSteps whose output number `port` is the value; NULL: none. */
static const laci_node *find_dynamic_steps(const laci_cpu_plan *plan, int value, int port) {
  const laci_node *node = find_node_of_value(plan, value);
  const bool is = node && node->op == &laci_op_dynamic_steps && node->n_outputs == 2 &&
                  node->outputs[port] == value;
  return is ? node : NULL;
}

/** Is the node a product of the integers of a DynamicSteps and a constant matrix of integers? If
 * so, fills the fields of the pattern that describe it. */
static bool is_product_of_integers(laci_cpu_plan *plan, const laci_node *node,
                                   laci_integer_product *p) {
  const laci_node *steps = find_dynamic_steps(plan, node->inputs[0], 0);
  const laci_shape *w = laci_plan_shape(plan, node->inputs[1]);
  if (!steps || !laci_plan_is_constant(plan, node->inputs[1]) || w->rank != 2) return false;
  if (!laci_plan_has_elements(plan, node) || w->dims[0] > LACI_BYTE_MOST_DEPTH) return false;
  p->x = steps->outputs[0];
  p->x_scale = steps->outputs[1];
  p->weight = node->inputs[1];
  p->depth = w->dims[0];
  p->columns = w->dims[1];
  p->rows = laci_shape_count(laci_plan_shape(plan, p->x)) / p->depth;
  p->weight_scale = find_weight_scale(plan, p->weight, p->columns);
  return p->weight_scale >= 0 || holds_integers(plan, p->weight);
}

/** Finds the product of integers that computes the value, directly or before an Identity; false:
 * none does. */
static bool match_product(laci_cpu_plan *plan, int value, laci_integer_product *p,
                          laci_match *match) {
  const int identity = find_fusible_producer(plan, value, &laci_op_identity);
  if (identity >= 0) value = plan->graph->nodes[identity].inputs[0];
  const int product = find_fusible_producer(plan, value, &laci_op_mat_mul);
  if (product < 0 || !is_product_of_integers(plan, &plan->graph->nodes[product], p)) return false;
  p->node = match->nodes[match->n_nodes++] = product;
  if (identity >= 0) match->nodes[match->n_nodes++] = identity;
  return true;
}

/** Is the value the scale of x, or its product with a constant along the columns? */
static bool match_scale(laci_cpu_plan *plan, int value, laci_integer_product *p,
                        laci_match *match) {
  p->scale = -1;
  if (value == p->x_scale) return true;
  const int mul = find_fusible_producer(plan, value, &laci_op_mul);
  if (mul < 0) return false;
  const laci_node *node = &plan->graph->nodes[mul];
  const bool left = node->inputs[0] == p->x_scale;
  p->scale = node->inputs[left];
  if (!left && node->inputs[1] != p->x_scale) return false;
  match->nodes[match->n_nodes++] = mul;
  return is_along_columns(plan, p->scale, p->columns);
}

bool laci_find_integer_product(laci_cpu_plan *plan, int last, laci_match *match) {
  const laci_node *node = &plan->graph->nodes[last];
  laci_integer_product p = {0};
  bool found = false;
  if (node->op != &laci_op_mul || node->n_inputs != 2) return false;
  for (int at = 0; at < 2 && !found; at++) {
    match->n_nodes = 0;
    found = match_product(plan, node->inputs[at], &p, match) &&
            match_scale(plan, node->inputs[!at], &p, match) &&
            laci_shape_equal(laci_plan_shape(plan, node->inputs[at]),
                             laci_plan_shape(plan, node->outputs[0]));
  }
  laci_integer_product *kept = found ? laci_plan_alloc(plan, 1, sizeof *kept) : NULL;
  if (!kept) return false;
  *kept = p;
  match->fused = (laci_fused){.pattern = LACI_PATTERN_INTEGER_PRODUCT,
                              .details = kept,
                              .n_reads = 2,
                              .reads = {p.x, p.x_scale}};
  return true;
}
