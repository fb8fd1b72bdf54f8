/* SPDX-License-Identifier: Apache-2.0
 * Finds groups of nodes that compute a function of one quantized value, and fuses each group to a
 * table.
 *
 * The candidates for a quantized value (the source) are all fused nodes that read only the source,
 * results of candidates, and constants of one number. A group is a candidate and all candidates
 * that it is computed from. The largest group becomes a table in which no node outside reads the
 * result of any node but the last. Then the next largest one does, and so on. */
#include <stdio.h>
#include <string.h>

#include "engine/cpu/plan/quantized.h"
#include "graph/op.h"
#include "graph/ops.h"

enum { MOST_CANDIDATES = 48 }; /* maximum number of fused nodes that are collected */

/** The candidates for a quantized value, and the group of them that is tried. */
typedef struct group {
  laci_cpu_plan *plan;
  int source;                                    /* the quantized value */
  int n;                                         /* number of candidates */
  const laci_fused *candidates[MOST_CANDIDATES]; /* [n] each after the candidates whose results it
                                                    reads */
  bool copies[MOST_CANDIDATES];                  /* the candidate's result is the quantized value
                                                    itself */
  bool taken[MOST_CANDIDATES],
      in[MOST_CANDIDATES]; /* taken: the candidate is part of a table; in: of the group that is
                              tried now */
} group;

/* ---- Nodes that work element by element ---- */

/** Is the operator's own pass over the values about as fast as a table? */
static bool is_as_fast_as_table(const laci_op *op) {
  static const laci_op *const cheap[] = {
      &laci_op_relu, &laci_op_clip, &laci_op_leaky_relu, &laci_op_abs, &laci_op_neg,
      &laci_op_add,  &laci_op_sub,  &laci_op_mul,        &laci_op_div, &laci_op_identity,
  };
  for (size_t at = 0; at < sizeof cheap / sizeof *cheap; at++) {
    if (op == cheap[at]) return true;
  }
  return false;
}

/* ---- Collecting candidates ---- */

static bool is_f32_of_shape(const laci_cpu_plan *plan, int value, const laci_shape *shape) {
  return plan->values[value].type.dtype == LAC_DTYPE_F32 &&
         laci_shape_equal(laci_plan_shape(plan, value), shape);
}

/** Returns the index of the candidate whose result is `value`; -1: there is none. */
static int find_candidate_of_value(const group *g, int value) {
  for (int at = 0; at < g->n; at++) {
    if (g->candidates[at]->output == value) return at;
  }
  return -1;
}

static bool is_source_or_candidate(const group *g, int value) {
  return value == g->source || find_candidate_of_value(g, value) >= 0;
}

static bool is_constant_scalar(const laci_cpu_plan *plan, int value) {
  return laci_plan_is_constant(plan, value) && laci_shape_count(laci_plan_shape(plan, value)) == 1;
}

/** Are all operands of the fused node the source, results of candidates, or constants of one
 * number? */
static bool reads_source_or_candidates(const group *g, const laci_fused *fused) {
  const int n = laci_fused_n_reads(g->plan, fused, false);
  for (int at = 0; at < n; at++) {
    const int value = laci_fused_nth_read(g->plan, fused, at);
    if (value >= 0 && !is_source_or_candidate(g, value) && !is_constant_scalar(g->plan, value))
      return false;
  }
  return true;
}

static bool can_be_candidate(const group *g, const laci_fused *fused) {
  const laci_cpu_plan *plan = g->plan;
  const laci_node *node = &plan->graph->nodes[fused->node];
  const bool pair =
      fused->pattern == LACI_PATTERN_QUANTIZE || fused->pattern == LACI_PATTERN_DUPLICATE;
  if (fused->output < 0 || fused->output == g->source || fused->n_posts > 0 ||
      (fused->pattern && !pair))
    return false;
  if (!pair &&
      (node->n_outputs != 1 || !node->op || !node->op->eval || !laci_op_is_elementwise(node->op)))
    return false;
  return is_f32_of_shape(plan, fused->output, laci_plan_shape(plan, g->source)) &&
         reads_source_or_candidates(g, fused);
}

static void add_candidate(group *g, const laci_fused *fused) {
  const bool copy = fused->pattern == LACI_PATTERN_DUPLICATE;
  const int from = copy ? fused->reads[0] : -1;
  const int candidate = copy ? find_candidate_of_value(g, from) : -1;
  g->copies[g->n] = copy && (from == g->source || (candidate >= 0 && g->copies[candidate]));
  g->candidates[g->n++] = fused;
}

/** Adds the nodes that read `value` to the candidates, if their other operands are known
 * already. */
static void add_candidates_reading_value(group *g, int value) {
  const laci_value *v = &g->plan->graph->values[value];
  for (int at = 0; at < v->n_readers && g->n < MOST_CANDIDATES; at++) {
    if (!g->plan->computed[v->readers[at]]) continue;
    const laci_fused *fused =
        &g->plan->fused[laci_plan_find_computing_node(g->plan, v->readers[at])];
    if (can_be_candidate(g, fused) && find_candidate_of_value(g, fused->output) < 0)
      add_candidate(g, fused);
  }
}

/** Adds the nodes that read `value` or the bytes from which it was dequantized, since its
 * duplicates read these bytes. */
static void add_candidates_reading_copies(group *g, int value) {
  const int producer = g->plan->graph->values[value].producer;
  const laci_node *node = producer < 0 ? NULL : &g->plan->graph->nodes[producer];
  add_candidates_reading_value(g, value);
  if (node && node->op == &laci_op_dequantize_linear)
    add_candidates_reading_value(g, node->inputs[0]);
}

static void collect_candidates(group *g) {
  add_candidates_reading_copies(g, g->source);
  for (int at = 0; at < g->n; at++) add_candidates_reading_copies(g, g->candidates[at]->output);
}

/* ---- Groups with one result ---- */

/** Marks the group of the candidate `last`: this candidate, and all that it is computed from. */
static void mark_nodes_computing(group *g, int last) {
  memset(g->in, 0, sizeof g->in);
  g->in[last] = true;
  for (int at = last; at >= 0; at--) {
    const int n = g->in[at] ? laci_fused_n_reads(g->plan, g->candidates[at], false) : 0;
    for (int read = 0; read < n; read++) {
      const int candidate =
          find_candidate_of_value(g, laci_fused_nth_read(g->plan, g->candidates[at], read));
      if (candidate >= 0 && !g->copies[candidate]) g->in[candidate] = true;
    }
  }
}

/** Counts how often nodes of the group (marked candidates) read the value. */
static int count_marked_reads(const group *g, int value) {
  int n = 0;
  for (int at = 0; at < g->n; at++) {
    const int n_reads = g->in[at] ? laci_fused_n_reads(g->plan, g->candidates[at], false) : 0;
    for (int read = 0; read < n_reads; read++) {
      n += laci_fused_nth_read(g->plan, g->candidates[at], read) == value;
    }
  }
  return n;
}

/** Do only nodes of the group (marked candidates) read its results, except that of the last
 * node? */
static bool has_no_reader_outside(const group *g, int last) {
  for (int at = 0; at < last; at++) {
    const int value = g->candidates[at]->output;
    if (!g->in[at]) continue;
    if (g->taken[at] || count_marked_reads(g, value) != laci_plan_count_uses(g->plan, value))
      return false;
  }
  return !g->taken[last];
}

/** Is a table faster than the nodes of the group? */
static bool is_table_faster(const group *g) {
  const laci_fused *only = NULL;
  int n = 0;
  for (int at = 0; at < g->n; at++) {
    if (!g->in[at] || g->candidates[at]->pattern == LACI_PATTERN_DUPLICATE) continue;
    only = g->candidates[at];
    n++;
  }
  if (n != 1) return n > 1;
  return !only->pattern && !is_as_fast_as_table(g->plan->graph->nodes[only->node].op);
}

/* ---- Fusing ---- */

/** Lists the source and its duplicates, if marked candidates read them, each of them once. False:
 * there are too many. */
static bool list_marked_reads_of_source(const group *g, laci_fused *fused) {
  for (int candidate = -1; candidate < g->n; candidate++) {
    const int value = candidate < 0 ? g->source : g->candidates[candidate]->output;
    if ((candidate >= 0 && !g->copies[candidate]) || count_marked_reads(g, value) == 0) continue;
    if (fused->n_reads == LACI_FUSED_MAX_READS) return false;
    fused->reads[fused->n_reads++] = value;
  }
  return true;
}

/** Returns the text "table of Erf, Add, Mul" with the operators of the marked candidates. */
static const char *describe_table_operators(const group *g) {
  char text[128] = "table of";
  size_t used = strlen(text);
  int n = 0;
  for (int at = 0; at < g->n && used < sizeof text - 1; at++) {
    if (!g->in[at] || g->candidates[at]->pattern) continue;
    const char *type = g->plan->graph->nodes[g->candidates[at]->node].type;
    used += (size_t)snprintf(text + used, sizeof text - used, "%s %s", n++ ? "," : "", type);
  }
  return laci_plan_copy_text(g->plan, n ? text : "table");
}

/** Makes the marked candidates one fused node, that of the last candidate. */
static void fuse_marked_nodes(group *g, int last, laci_fused *made) {
  laci_cpu_plan *plan = g->plan;
  const int node = g->candidates[last]->node;
  for (int at = 0; at < made->n_reads; at++) {
    plan->values[made->reads[at]].n_uses -= count_marked_reads(g, made->reads[at]) - 1;
  }
  for (int at = 0; at <= last; at++) {
    if (!g->in[at]) continue;
    g->taken[at] = true;
    made->n_nodes += g->candidates[at]->n_nodes;
    if (at == last) continue;
    plan->fused[g->candidates[at]->node].output = -1;
    plan->joined[g->candidates[at]->node] = node;
    plan->fused_at[g->candidates[at]->tail] = -1;
  }
  plan->fused[node] = *made;
}

/** Fuses the group of the candidate `last` to a table, where that is possible and faster. */
static void fuse_table_if_faster(group *g, int last) {
  laci_cpu_plan *plan = g->plan;
  const laci_fused *listed[MOST_CANDIDATES];
  laci_table_nodes nodes = {.list = listed, .source = g->source};
  mark_nodes_computing(g, last);
  if (g->copies[last] || !has_no_reader_outside(g, last) || !is_table_faster(g)) return;
  laci_fused made = {.node = g->candidates[last]->node,
                     .tail = g->candidates[last]->node,
                     .output = g->candidates[last]->output,
                     .pattern = LACI_PATTERN_TABLE};
  laci_table_pattern *table = laci_plan_alloc(plan, 1, sizeof *table);
  if (!table || !list_marked_reads_of_source(g, &made)) return;
  for (int at = 0; at <= last; at++) {
    if (g->in[at]) listed[nodes.n++] = g->candidates[at];
  }
  *table = (laci_table_pattern){.from = laci_plan_quantization_of(plan, g->source),
                                .what = describe_table_operators(g)};
  table->to = laci_plan_quantization_of(plan, made.output);
  made.details = table;
  if (!laci_plan_fill_table(plan, &nodes, table) || plan->ask(plan->lowering, &made) < 0) return;
  fuse_marked_nodes(g, last, &made);
}

static void fuse_tables_of_value(laci_cpu_plan *plan, int value) {
  group g = {.plan = plan, .source = value};
  if (!is_f32_of_shape(plan, value, laci_plan_shape(plan, value))) return;
  collect_candidates(&g);
  for (int last = g.n - 1; last >= 0 && !plan->status; last--) fuse_table_if_faster(&g, last);
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
