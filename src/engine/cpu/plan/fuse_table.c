/* SPDX-License-Identifier: Apache-2.0
 * Finds the groups of nodes that are functions of one quantized value, and fuses each to a table.
 *
 * From a quantized value, all fused nodes are collected that read nothing but it, each other and
 * constants of one number. The largest of their groups that has a single result, which no node in
 * between gives away to others, becomes a table. Then the next largest one does, and so on. */
#include <stdio.h>
#include <string.h>

#include "engine/cpu/plan/quantized.h"
#include "graph/op.h"
#include "graph/ops.h"

enum { MOST_UNITS = 48 }; /* maximum number of fused nodes that are collected */

/** The fused nodes that are functions of a quantized value. */
typedef struct group {
  laci_cpu_plan *plan;
  int source;                             /* the value */
  int n;                                  /* number of units */
  const laci_fused *units[MOST_UNITS];    /* [n] each after those that it reads */
  bool copies[MOST_UNITS];                /* the unit's result is the value itself */
  bool taken[MOST_UNITS], in[MOST_UNITS]; /* taken: the unit is part of a table; in: of the group
                                            that is tried now */
} group;

/* ---- Nodes that work element by element ---- */

/** Does the operator compute each element of its only output from the elements at the same place?
 */
static bool is_elementwise(const laci_op *op) {
  static const laci_op *const others[] = {
      &laci_op_relu, &laci_op_clip,   &laci_op_floor,    &laci_op_ceil,    &laci_op_round,
      &laci_op_sign, &laci_op_shrink, &laci_op_identity, &laci_op_add,     &laci_op_sub,
      &laci_op_mul,  &laci_op_div,    &laci_op_pow,      &laci_op_min,     &laci_op_max,
      &laci_op_sum,  &laci_op_mean,   &laci_op_prelu,    &laci_op_ms_gelu, &laci_op_ms_quick_gelu,
  };
  for (size_t at = 0; at < sizeof others / sizeof *others; at++) {
    if (op == others[at]) return true;
  }
  return op->slope && !op->domain;
}

/** Is a pass over the values by the operator about as fast as a table? */
static bool is_cheap(const laci_op *op) {
  static const laci_op *const cheap[] = {
      &laci_op_relu, &laci_op_clip, &laci_op_leaky_relu, &laci_op_abs, &laci_op_neg,
      &laci_op_add,  &laci_op_sub,  &laci_op_mul,        &laci_op_div, &laci_op_identity,
  };
  for (size_t at = 0; at < sizeof cheap / sizeof *cheap; at++) {
    if (op == cheap[at]) return true;
  }
  return false;
}

/* ---- Collecting ---- */

static bool is_f32_of_shape(const laci_cpu_plan *plan, int value, const laci_shape *shape) {
  return plan->values[value].type.dtype == LAC_DTYPE_F32 &&
         laci_shape_equal(laci_plan_shape(plan, value), shape);
}

/** Returns the unit whose result is the value; -1: none. */
static int find_unit_of_value(const group *g, int value) {
  for (int at = 0; at < g->n; at++) {
    if (g->units[at]->output == value) return at;
  }
  return -1;
}

static bool is_known(const group *g, int value) {
  return value == g->source || find_unit_of_value(g, value) >= 0;
}

static bool is_one_number(const laci_cpu_plan *plan, int value) {
  return laci_plan_is_constant(plan, value) && laci_shape_count(laci_plan_shape(plan, value)) == 1;
}

/** Are all operands of the fused node the source, results of units, or constants of one number? */
static bool has_known_operands(const group *g, const laci_fused *fused) {
  const int n = laci_fused_n_reads(g->plan, fused, false);
  for (int at = 0; at < n; at++) {
    const int value = laci_fused_nth_read(g->plan, fused, at);
    if (value >= 0 && !is_known(g, value) && !is_one_number(g->plan, value)) return false;
  }
  return true;
}

static bool can_be_unit(const group *g, const laci_fused *fused) {
  const laci_cpu_plan *plan = g->plan;
  const laci_node *node = &plan->graph->nodes[fused->node];
  const bool pair =
      fused->pattern == LACI_PATTERN_QUANTIZE || fused->pattern == LACI_PATTERN_DUPLICATE;
  if (fused->output < 0 || fused->output == g->source || fused->n_posts > 0 ||
      (fused->pattern && !pair))
    return false;
  if (!pair && (node->n_outputs != 1 || !node->op || !node->op->eval || !is_elementwise(node->op)))
    return false;
  return is_f32_of_shape(plan, fused->output, laci_plan_shape(plan, g->source)) &&
         has_known_operands(g, fused);
}

static void add_unit(group *g, const laci_fused *fused) {
  const bool copy = fused->pattern == LACI_PATTERN_DUPLICATE;
  const int from = copy ? fused->reads[0] : -1;
  const int unit = copy ? find_unit_of_value(g, from) : -1;
  g->copies[g->n] = copy && (from == g->source || (unit >= 0 && g->copies[unit]));
  g->units[g->n++] = fused;
}

/** Adds the units that read the value and whose other operands are known already. */
static void add_readers(group *g, int value) {
  const laci_value *v = &g->plan->graph->values[value];
  for (int at = 0; at < v->n_readers && g->n < MOST_UNITS; at++) {
    if (!g->plan->computed[v->readers[at]]) continue;
    const laci_fused *fused =
        &g->plan->fused[laci_plan_find_computing_node(g->plan, v->readers[at])];
    if (can_be_unit(g, fused) && find_unit_of_value(g, fused->output) < 0) add_unit(g, fused);
  }
}

/** As add_readers. Duplicates of a value may read the bytes that it was dequantized from. */
static void add_readers_and_duplicates(group *g, int value) {
  const int producer = g->plan->graph->values[value].producer;
  const laci_node *node = producer < 0 ? NULL : &g->plan->graph->nodes[producer];
  add_readers(g, value);
  if (node && node->op == &laci_op_dequantize_linear) add_readers(g, node->inputs[0]);
}

static void collect_units(group *g) {
  add_readers_and_duplicates(g, g->source);
  for (int at = 0; at < g->n; at++) add_readers_and_duplicates(g, g->units[at]->output);
}

/* ---- Groups with one result ---- */

/** Marks the unit `last` and all units that it is computed from. */
static void mark_operands(group *g, int last) {
  memset(g->in, 0, sizeof g->in);
  g->in[last] = true;
  for (int at = last; at >= 0; at--) {
    const int n = g->in[at] ? laci_fused_n_reads(g->plan, g->units[at], false) : 0;
    for (int read = 0; read < n; read++) {
      const int unit = find_unit_of_value(g, laci_fused_nth_read(g->plan, g->units[at], read));
      if (unit >= 0 && !g->copies[unit]) g->in[unit] = true;
    }
  }
}

/** Counts how often marked units read the value. */
static int count_reads(const group *g, int value) {
  int n = 0;
  for (int at = 0; at < g->n; at++) {
    const int n_reads = g->in[at] ? laci_fused_n_reads(g->plan, g->units[at], false) : 0;
    for (int read = 0; read < n_reads; read++) {
      n += laci_fused_nth_read(g->plan, g->units[at], read) == value;
    }
  }
  return n;
}

/** Do only marked units read the results of marked units, except that of the last one? */
static bool is_closed(const group *g, int last) {
  for (int at = 0; at < last; at++) {
    const int value = g->units[at]->output;
    if (!g->in[at]) continue;
    if (g->taken[at] || count_reads(g, value) != laci_plan_count_uses(g->plan, value)) return false;
  }
  return !g->taken[last];
}

/** Is a table faster than what it replaces? */
static bool is_worthwhile(const group *g) {
  const laci_fused *only = NULL;
  int n = 0;
  for (int at = 0; at < g->n; at++) {
    if (!g->in[at] || g->units[at]->pattern == LACI_PATTERN_DUPLICATE) continue;
    only = g->units[at];
    n++;
  }
  if (n != 1) return n > 1;
  return !only->pattern && !is_cheap(g->plan->graph->nodes[only->node].op);
}

/* ---- Fusing ---- */

/** Lists the source and its duplicates, if marked units read them, each of them once. False: there
 * are too many. */
static bool list_source_reads(const group *g, laci_fused *fused) {
  for (int unit = -1; unit < g->n; unit++) {
    const int value = unit < 0 ? g->source : g->units[unit]->output;
    if ((unit >= 0 && !g->copies[unit]) || count_reads(g, value) == 0) continue;
    if (fused->n_reads == LACI_FUSED_MAX_READS) return false;
    fused->reads[fused->n_reads++] = value;
  }
  return true;
}

/** Returns the text "table of Erf, Add, Mul" with the operators of the marked units. */
static const char *describe_table(const group *g) {
  char text[128] = "table of";
  size_t used = strlen(text);
  int n = 0;
  for (int at = 0; at < g->n && used < sizeof text - 1; at++) {
    if (!g->in[at] || g->units[at]->pattern) continue;
    const char *type = g->plan->graph->nodes[g->units[at]->node].type;
    used += (size_t)snprintf(text + used, sizeof text - used, "%s %s", n++ ? "," : "", type);
  }
  return laci_plan_copy_text(g->plan, n ? text : "table");
}

/** Makes the marked units one fused node, that of the last unit. */
static void fuse_units(group *g, int last, laci_fused *made) {
  laci_cpu_plan *plan = g->plan;
  const int node = g->units[last]->node;
  for (int at = 0; at < made->n_reads; at++) {
    plan->values[made->reads[at]].n_uses -= count_reads(g, made->reads[at]) - 1;
  }
  for (int at = 0; at <= last; at++) {
    if (!g->in[at]) continue;
    g->taken[at] = true;
    made->n_nodes += g->units[at]->n_nodes;
    if (at == last) continue;
    plan->fused[g->units[at]->node].output = -1;
    plan->joined[g->units[at]->node] = node;
    plan->fused_at[g->units[at]->tail] = -1;
  }
  plan->fused[node] = *made;
}

/** Fuses the group of the unit `last` to a table, where that is possible and faster. */
static void fuse_group(group *g, int last) {
  laci_cpu_plan *plan = g->plan;
  const laci_fused *listed[MOST_UNITS];
  laci_table_nodes nodes = {.list = listed, .source = g->source};
  mark_operands(g, last);
  if (g->copies[last] || !is_closed(g, last) || !is_worthwhile(g)) return;
  laci_fused made = {.node = g->units[last]->node,
                     .tail = g->units[last]->node,
                     .output = g->units[last]->output,
                     .pattern = LACI_PATTERN_TABLE};
  laci_table_pattern *table = laci_plan_alloc(plan, 1, sizeof *table);
  if (!table || !list_source_reads(g, &made)) return;
  for (int at = 0; at <= last; at++) {
    if (g->in[at]) listed[nodes.n++] = g->units[at];
  }
  *table = (laci_table_pattern){.from = laci_plan_quantization_of(plan, g->source),
                                .what = describe_table(g)};
  table->to = laci_plan_quantization_of(plan, made.output);
  made.details = table;
  if (!laci_plan_fill_table(plan, &nodes, table) || plan->ask(plan->lowering, &made) < 0) return;
  fuse_units(g, last, &made);
}

static void fuse_tables_of_value(laci_cpu_plan *plan, int value) {
  group g = {.plan = plan, .source = value};
  if (!is_f32_of_shape(plan, value, laci_plan_shape(plan, value))) return;
  collect_units(&g);
  for (int last = g.n - 1; last >= 0 && !plan->status; last--) fuse_group(&g, last);
}

void laci_plan_fuse_tables(laci_cpu_plan *plan) {
  for (int n = 0; n < plan->graph->n_nodes && !plan->status; n++) {
    const laci_node *node = &plan->graph->nodes[n];
    if (plan->fused_at[n] < 0 || plan->fused[n].pattern == LACI_PATTERN_DUPLICATE) continue;
    if (!laci_plan_has_elements(plan, node)) continue;
    for (int at = 0; at < node->n_outputs; at++) {
      const int value = node->outputs[at];
      if (value >= 0 && laci_plan_quantization_of(plan, value)) fuse_tables_of_value(plan, value);
    }
  }
}
