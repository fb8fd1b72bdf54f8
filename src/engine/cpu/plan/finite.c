/* SPDX-License-Identifier: Apache-2.0
 * Implements finite.h: the walk over fused nodes. Next: finite_core.c. */
#include "base/memory.h"
#include "engine/cpu/plan/finite.h"

#include <math.h>
#include <string.h>

#include "engine/cpu/plan/recurrent.h"
#include "graph/ops.h"

typedef struct bound_search {
  laci_cpu_plan *plan;
  double *bounds; /* [n_values] the largest magnitude that a value of floats can have; INFINITY: not
                     known */
  bool *numbers;  /* [n_values] is the value free of NaN? This may be known even without a bound */
} bound_search;

static bool is_bound_known(double bound) { return bound < LACI_FINITE_BOUND; }

/** Returns the bound, or INFINITY if it is NaN, since fmin and fmax would ignore a NaN. */
static double infinite_if_nan(double x) { return isnan(x) ? INFINITY : x; }

static bool is_data_move(const laci_node *node) {
  static const char *const moves[] = {"Transpose", "Reshape",   "Flatten",
                                      "Squeeze",   "Unsqueeze", "Identity"};
  for (size_t at = 0; at < sizeof moves / sizeof *moves; at++) {
    if (strcmp(node->type, moves[at]) == 0) return true;
  }
  return false;
}

/** If the value was made only by moving elements of another value, returns that other value. It can
 * be checked instead, and the moves can still be views. */
static int find_unmoved_value(const laci_cpu_plan *plan, int value) {
  for (;;) {
    const int producer = plan->graph->values[value].producer;
    const laci_node *node = producer < 0 ? NULL : &plan->graph->nodes[producer];
    if (!node || !is_data_move(node) || laci_plan_is_constant(plan, node->inputs[0])) return value;
    value = node->inputs[0];
  }
}

static void add_value_to_check(bound_search *w, int moved, double most) {
  laci_cpu_plan *plan = w->plan;
  const int value = find_unmoved_value(plan, moved);
  w->bounds[moved] = fmin(w->bounds[moved], most);
  for (int at = 0; at < plan->n_checked; at++) {
    if (plan->checked[at].value == value) return;
  }
  plan->checked[plan->n_checked++] = (laci_checked_value){.value = value};
  plan->values[value].n_uses++;
  w->bounds[value] = fmin(w->bounds[value], most);
}

/** Adds each operand without a known bound to the checked values. all: operands whose bound exceeds
 * LACI_FINITE_CHECK_LIMIT, too. */
static void add_operand_checks(bound_search *w, const laci_fused *fused, bool all) {
  const int n = laci_fused_n_reads(w->plan, fused, false);
  for (int at = 0; at < n; at++) {
    const int value = laci_fused_nth_read(w->plan, fused, at);
    if (value < 0 || laci_plan_is_constant(w->plan, value) || !laci_plan_is_float(w->plan, value))
      continue;
    const bool is_mask = fused->pattern == LACI_PATTERN_ATTENTION &&
                         value == ((const laci_attention_pattern *)fused->details)->mask;
    if (is_mask) continue; /* the mask of attention may hold -inf, which excludes a key */
    if (all ? w->bounds[value] > LACI_FINITE_CHECK_LIMIT : !is_bound_known(w->bounds[value])) {
      add_value_to_check(w, value, LACI_FINITE_CHECK_LIMIT);
    }
  }
}

/* ---- Values that hold no NaN ---- */

enum { DEEPEST = 64 };

static bool is_known_without_nan(bound_search *w, int value) {
  if (value < 0 || !laci_plan_is_float(w->plan, value)) return true;
  if (laci_plan_is_constant(w->plan, value))
    return !isnan(laci_finite_operand_bound(w->plan, w->bounds, value));
  return w->numbers[value] || is_bound_known(w->bounds[value]);
}

/** Returns the fused node of the value if it only selects elements of its operands; else NULL. */
static const laci_fused *find_selecting_node(bound_search *w, int value) {
  const int producer = w->plan->graph->values[value].producer;
  const laci_fused *fused = producer < 0 ? NULL : &w->plan->fused[producer];
  const bool whole = fused && w->plan->computed[producer] && fused->output == value &&
                     !fused->pattern && fused->n_posts == 0;
  return whole && laci_finite_core_bounds(w->plan, w->bounds, fused).selects_elements ? fused
                                                                                      : NULL;
}

/** Adds checks of the values whose elements `value` selects, until it is certain that `value` has
 * no NaN. */
static void add_nan_checks(bound_search *w, int value, int depth) {
  if (is_known_without_nan(w, value)) return;
  const laci_fused *fused = depth < DEEPEST ? find_selecting_node(w, value) : NULL;
  const int n = fused ? laci_fused_n_reads(w->plan, fused, false) : 0;
  bool sure = fused != NULL;
  for (int at = 0; at < n; at++) {
    const int operand = laci_fused_nth_read(w->plan, fused, at);
    add_nan_checks(w, operand, depth + 1);
    sure = sure && is_known_without_nan(w, operand); /* a constant may hold NaN */
  }
  if (sure) {
    const double reach = laci_finite_core_bounds(w->plan, w->bounds, fused).bound;
    w->numbers[value] = true;
    w->bounds[value] = is_bound_known(reach) ? reach : INFINITY;
  } else {
    add_value_to_check(w, value, LACI_FINITE_CHECK_LIMIT);
  }
}

/** Adds checks for NaN to the operands of a node that only selects elements of them. Returns
 * whether no operand holds a NaN, so that they need no bound. */
static bool check_operands_for_nan(bound_search *w, const laci_fused *fused) {
  bool all = true;
  const int n = laci_fused_n_reads(w->plan, fused, false);
  for (int at = 0; at < n; at++) {
    add_nan_checks(w, laci_fused_nth_read(w->plan, fused, at), 0);
    all = all && is_known_without_nan(w, laci_fused_nth_read(w->plan, fused, at));
  }
  return all;
}

/* ---- The walk ---- */

/** Returns the bound of a fused node's result. core: the bound before the posts. *most: the largest
 * bound of this and of each post's result. */
static double bound_after_posts(bound_search *w, const laci_fused *fused, double core,
                                double *most) {
  double y = infinite_if_nan(core);
  *most = y;
  for (int at = 0; at < fused->n_posts; at++) {
    const laci_post *post = &fused->posts[at];
    y = infinite_if_nan(post->value >= 0
                            ? y + laci_finite_operand_bound(w->plan, w->bounds, post->value)
                            : laci_finite_function_bound(&post->function, y));
    const bool open = post->value < 0 && laci_function_may_be_nonfinite(&post->function);
    if (!open || at + 1 < fused->n_posts) *most = fmax(y, *most);
  }
  return y;
}

static bool may_lone_function_be_nonfinite(bound_search *w, const laci_fused *fused) {
  laci_function f[2];
  int input;
  if (fused->pattern || fused->n_posts > 0) return false;
  const laci_node *node = &w->plan->graph->nodes[fused->node];
  const int n = laci_find_node_functions(w->plan, node, &input, f);
  return n == 1 && laci_function_may_be_nonfinite(&f[0]);
}

/** Sets the bounds of the outputs after the first. Parts of the first operand, and states of a
 * recurrent node, have the bound of the first output; for all others no bound is known. */
static void set_other_output_bounds(bound_search *w, const laci_fused *fused, double first) {
  const laci_node *node = &w->plan->graph->nodes[fused->node];
  laci_recurrent_node recurrent;
  const bool alike = (node->op == &laci_op_split && fused->output >= 0) ||
                     laci_plan_read_recurrent(w->plan, node, &recurrent, NULL);
  for (int at = 1; at < node->n_outputs && !fused->pattern; at++) {
    if (node->outputs[at] < 0) continue;
    w->bounds[node->outputs[at]] = alike && is_bound_known(first) ? first : INFINITY;
  }
}

static void bound_or_check_node(bound_search *w, const laci_fused *fused) {
  const laci_node *node = &w->plan->graph->nodes[fused->node];
  if (fused->output >= 0 && !laci_plan_is_float(w->plan, fused->output))
    return; /* integers are exact */
  laci_finite_core core = laci_finite_core_bounds(w->plan, w->bounds, fused);
  double most, y;
  bool loses = core.loses_nonfinite;
  for (int at = 0; at < fused->n_posts; at++) loses = loses || fused->posts[at].value < 0;
  if (loses) {
    if (core.selects_elements && fused->output >= 0 && fused->n_posts == 0 &&
        check_operands_for_nan(w, fused)) {
      w->numbers[fused->output] = true;
      loses = false;
    } else {
      add_operand_checks(w, fused, false);
    }
    core = laci_finite_core_bounds(w->plan, w->bounds, fused);
  }
  y = bound_after_posts(w, fused, core.bound, &most);
  if (loses && !is_bound_known(most) && !may_lone_function_be_nonfinite(w, fused)) {
    add_operand_checks(w, fused, true);
    core = laci_finite_core_bounds(w->plan, w->bounds, fused);
    y = bound_after_posts(w, fused, core.bound, &most);
    if (!is_bound_known(most) && !w->plan->careless) w->plan->careless = node->name;
  }
  if (fused->output >= 0 && laci_plan_is_float(w->plan, fused->output)) {
    w->bounds[fused->output] = is_bound_known(y) ? y : INFINITY;
    if (core.propagates_nonfinite && !is_bound_known(y))
      add_value_to_check(w, fused->output, core.selects_elements ? LACI_FINITE_CHECK_LIMIT : 1);
  }
  set_other_output_bounds(w, fused, y);
}

/** Is it a network for training? Then the training loop checks the loss. */
static bool is_training_network(const laci_cpu_plan *plan) {
  for (int n = 0; n < plan->graph->n_nodes; n++) {
    const laci_node *node = &plan->graph->nodes[n];
    if (plan->computed[n] && strcmp(node->domain, "lacuna") == 0) return true;
  }
  return false;
}

void laci_plan_find_values_to_check(laci_cpu_plan *plan) {
  const size_t n = (size_t)plan->graph->n_values;
  bound_search w = {.plan = plan,
                    .bounds = laci_alloc(n + 1, sizeof *w.bounds),
                    .numbers = laci_alloc(n + 1, sizeof *w.numbers)};
  plan->checked = laci_plan_alloc(plan, n + 1, sizeof *plan->checked);
  if (!w.bounds || !w.numbers) laci_plan_fail_no_memory(plan);
  for (size_t at = 0; w.bounds && at < n; at++) w.bounds[at] = INFINITY;
  plan->reports_nan = !is_training_network(plan);
  const int n_scheduled = plan->reports_nan ? plan->n_scheduled : 0;
  for (int t = 0; t < n_scheduled && !plan->status; t++) {
    bound_or_check_node(&w, &plan->fused[plan->schedule[t].fused]);
  }
  laci_free(w.bounds);
  laci_free(w.numbers);
}
