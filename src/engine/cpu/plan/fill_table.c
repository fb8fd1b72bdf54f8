/* SPDX-License-Identifier: Apache-2.0
 * Computes a table, by the operators' own evaluation in double. Each result is rounded to f32, as a
 * careful plan rounds it (lower/plain.c), so that both give the same bits. */
#include <string.h>

#include "base/memory.h"
#include "engine/cpu/plan/quantized.h"
#include "graph/op.h"
#include "tensor/buf.h"

enum { MOST_OPERANDS = 8 };

/** The values of a table's nodes, for each element of the operand. */
typedef struct values_of_nodes {
  laci_cpu_plan *plan;
  const laci_table_nodes *nodes;
  float (*of)[LACI_N_BYTES]; /* [nodes->n] results of each fused node */
  float source[LACI_N_BYTES];
} values_of_nodes;

/** Returns the elements of a value: a result, or the operand of the table. */
static const float *find_value_elements(const values_of_nodes *v, int value) {
  for (int at = 0; at < v->nodes->n; at++) {
    if (v->nodes->list[at]->output == value) return v->of[at];
  }
  return v->source;
}

/** Returns a buffer for the evaluation: of the constant's one number, or of the value's elements.
 * NULL: no memory. */
static laci_buf *create_operand(const values_of_nodes *v, int value) {
  static const laci_shape scalar = {0};
  const laci_shape list = laci_shape_of(1, (int64_t[]){LACI_N_BYTES});
  laci_buf *buf = NULL;
  if (laci_plan_is_constant(v->plan, value)) {
    buf = laci_plan_copy_constant(v->plan, value);
    if (buf) buf->shape = scalar;
    return buf;
  }
  const float *from = find_value_elements(v, value);
  if (laci_buf_create(LAC_DTYPE_F32, &list, &buf, NULL)) return NULL;
  for (int at = 0; at < LACI_N_BYTES; at++) buf->f[at] = (double)from[at];
  return buf;
}

/** Evaluates a node for all elements. False: it cannot be evaluated, or no memory. */
static bool evaluate_node(const values_of_nodes *v, const laci_node *node, float *to) {
  const laci_shape list = laci_shape_of(1, (int64_t[]){LACI_N_BYTES});
  laci_buf *in[MOST_OPERANDS] = {NULL}, *out = NULL;
  bool done = node->n_inputs <= MOST_OPERANDS;
  for (int at = 0; at < node->n_inputs && done; at++) {
    if (node->inputs[at] < 0) continue;
    in[at] = create_operand(v, node->inputs[at]);
    done = in[at] != NULL;
  }
  done = done && laci_buf_create(LAC_DTYPE_F32, &list, &out, NULL) == LAC_OK;
  if (done) {
    const laci_buf *operands[MOST_OPERANDS];
    memcpy(operands, in, sizeof operands);
    laci_eval eval = {
        .node = node, .n_in = node->n_inputs, .n_out = 1, .in = operands, .out = &out};
    done = node->op->eval(&eval) == LAC_OK;
  }
  for (int at = 0; done && at < LACI_N_BYTES; at++) to[at] = (float)out->f[at];
  for (int at = 0; at < MOST_OPERANDS; at++) laci_buf_destroy(in[at]);
  laci_buf_destroy(out);
  return done;
}

static bool evaluate_fused(const values_of_nodes *v, const laci_fused *fused, float *to) {
  if (!fused->pattern) return evaluate_node(v, &v->plan->graph->nodes[fused->node], to);
  const float *from = find_value_elements(v, fused->reads[0]);
  if (fused->pattern == LACI_PATTERN_DUPLICATE) memcpy(to, from, sizeof v->source);
  else laci_fake_quantize_scalar(fused->details, from, LACI_N_BYTES, to);
  return true;
}

static void set_table_results(laci_table_pattern *table, const float *results) {
  const laci_fake_quantized *to = table->to;
  table->table.from = *table->from;
  memcpy(table->table.values, results, sizeof table->table.values);
  for (int at = 0; to && at < LACI_N_BYTES; at++) {
    table->bytes[at] = laci_quantize_to_byte(to, results[at]);
  }
}

bool laci_plan_fill_table(laci_cpu_plan *plan, const laci_table_nodes *nodes,
                          laci_table_pattern *table) {
  const laci_fake_quantized *from = table->from;
  values_of_nodes v = {
      .plan = plan, .nodes = nodes, .of = laci_alloc((size_t)nodes->n, sizeof *v.of)};
  bool done = v.of != NULL;
  if (!done) laci_plan_fail_no_memory(plan);
  for (int at = 0; at < LACI_N_BYTES; at++) {
    v.source[at] = ((float)at + from->low) * from->scale + 0.0F; /* -0 becomes +0 */
  }
  for (int at = 0; at < nodes->n && done; at++) {
    done = evaluate_fused(&v, nodes->list[at], v.of[at]);
  }
  if (done) set_table_results(table, v.of[nodes->n - 1]);
  laci_free(v.of);
  return done;
}
