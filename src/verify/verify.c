/* SPDX-License-Identifier: Apache-2.0
 * Verifies a reordering (verify.h): runs the network twice on the plain engine, in step, and
 * compares both runs after every node.
 *
 * Run A is the network as it is, run B the reordered one; B's stored tensors are reordered as they
 * are loaded, so there is no second set of weights. Each value that A computes must, reordered,
 * equal the value that B computes. The outputs of a node that cannot be run are made up, alike in
 * both runs. Next: verify_tries.c, verify_inputs.c, verify_parameters.c, verify_compare.c. */
#include "engine/stepper.h"
#include "verify/verify.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/budget.h"
#include "base/memory.h"
#include "engine/engine.h"
#include "base/error.h"
#include "base/log.h"
#include "graph/content.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "permute/orders.h"
#include "tensor/buf.h"
#include "verify/round_in.h"

enum { ROUND_STREAM = 40, INPUT_STREAM = 33, MOST_ITERATIONS = 8 };
static const double default_tolerance = 1e-9;
/* If terms cancel, a rounding error in proportion to the operands remains. Differences below this
 * share of the operands' size mean nothing. */
static const double default_rounding = 1e-13;
/* Tolerance and share of rounding for a whole network in float32, whose errors add up. An error of
 * the order may be too small to exceed them; the exact round finds it. */
static const double float_tolerance = 1e-3, float_rounding = 1e-5;

static const char *value_name(const laci_round *r, int value) {
  return r->graph->values[value].name;
}

/* Makes a buffer with a tensor's type and shape, but without elements. */
static lac_status create_placeholder(const laci_stored *stored, laci_buf **buf) {
  *buf = laci_alloc(1, sizeof **buf);
  if (!*buf) return LAC_NO_MEMORY;
  **buf = (laci_buf){.dtype = stored->dtype, .shape = stored->shape};
  return LAC_OK;
}

static lac_status load_parameter(void *context, int id, laci_buf **buf, lac_error *err) {
  const laci_round_source *from = context;
  const laci_stored *stored = &from->graph->stored[id];
  if (from->products && laci_products_is_streamed(from->products, id))
    return create_placeholder(stored, buf);
  const laci_value_orders *orders = from->orders ? &from->orders->values[stored->value] : NULL;
  return laci_parameters_load_tensor(from->parameters, id, from->anew, orders, buf, err);
}

/* Checks that the inputs and outputs of the network are not reordered. */
static lac_status check_network_ports(const laci_graph *graph, const laci_orders *orders,
                                      lac_error *err) {
  for (int v = 0; v < graph->n_values; v++) {
    const laci_value *value = &graph->values[v];
    bool overridable = value->stored >= 0 && graph->stored[value->stored].overridable;
    bool outer = value->is_input || value->is_output || overridable;
    if (outer && !laci_orders_are_identity(&orders->values[v])) {
      return laci_fail(err, LAC_INTERNAL, "%s: an %s of the network was reordered", value->name,
                       value->is_output ? "output" : "input");
    }
  }
  return LAC_OK;
}

/* Checks a node whose operator is not known: none of its inputs and outputs may be reordered. */
static lac_status check_unknown_operator(const laci_round *r, const laci_node *node,
                                         lac_error *err) {
  const int id = (int)(node - r->graph->nodes);
  if (node->op || node->assume || !laci_node_affects_outputs(r->graph, r->matters, id))
    return LAC_OK;
  const int *const lists[] = {node->inputs, node->captures, node->outputs};
  const int counts[] = {node->n_inputs, node->n_captures, node->n_outputs};
  for (int list = 0; list < 3; list++) {
    for (int i = 0; i < counts[list]; i++) {
      int value = lists[list][i];
      if (value < 0 || laci_orders_are_identity(&r->orders->values[value])) continue;
      if (list == 0 && !laci_node_reads_port_content(node, i)) continue;
      return laci_fail(err, LAC_PROOF_FAILED,
                       "%s: was reordered, but the unknown operator %s (node %s) %s it",
                       value_name(r, value), node->type, node->name, list < 2 ? "reads" : "gives");
    }
  }
  return LAC_OK;
}

static laci_draw make_draw_for_value(const laci_round *r, int value) {
  uint64_t stream =
      ((uint64_t)(r->number + 1) << ROUND_STREAM) + ((uint64_t)1 << INPUT_STREAM) + (uint64_t)value;
  return (laci_draw){.seed = r->seed,
                     .stream = stream,
                     .pool = r->pool,
                     .kind = r->draw,
                     .size_of_symbol = r->size_of_symbol};
}

/* Checks that there is memory for a value that gets random content in both runs. A damaged file can
 * declare any size for the result of a node that cannot be computed. */
static lac_status check_memory_for_value(const laci_round *r, int value, const laci_shape *shape,
                                         lac_error *err) {
  char text[256];
  laci_budget budget = r->budget;
  laci_budget_add(&budget, laci_count_bytes_saturated(laci_shape_count(shape), 2 * sizeof(double)),
                  "%.100s: %s, made up twice", value_name(r, value),
                  laci_shape_text(shape, text, sizeof text));
  return laci_budget_check(&budget, "the verification of the reordering", err);
}

/* Gives a value the same random content in both runs. *made becomes false if its shape or type does
 * not allow this. */
static lac_status draw_value_for_both_runs(laci_round *r, int value, bool *made, lac_error *err) {
  laci_buf *a = NULL, *b = NULL;
  laci_shape shape;
  *made = laci_shape_replace_symbols(r->graph, &r->graph->values[value].type.shape,
                                     r->size_of_symbol, &shape);
  if (!*made) return LAC_OK;
  laci_draw draw = make_draw_for_value(r, value);
  lac_status st = check_memory_for_value(r, value, &shape, err);
  if (!st) st = laci_draw_value(r->graph, value, &shape, &draw, &a, err);
  if (!st) st = laci_buf_reorder(a, &r->orders->values[value], &b, err);
  if (st) {
    laci_buf_destroy(a);
    *made = false;
    return st == LAC_UNSUPPORTED ? LAC_OK : st;
  }
  r->scale[value] = 1;
  laci_stepper_set_value(r->a, value, a);
  laci_stepper_set_value(r->b, value, b);
  return LAC_OK;
}

/* Records that a node was skipped; only the first one is reported. */
static void record_first_skipped(laci_verification *found, const char *name, const char *why) {
  if (found->first_skipped) return;
  found->first_skipped = name;
  (void)snprintf(found->reason, sizeof found->reason, "%.*s", (int)sizeof found->reason - 1, why);
}

/* Does the operator output random numbers? Then numbers drawn here are as good as its own. */
static bool is_random_operator(const laci_node *node) {
  return node->domain[0] == 0 &&
         (strncmp(node->type, "Random", 6) == 0 || strcmp(node->type, "Bernoulli") == 0);
}

static void record_skipped_node(laci_verification *found, const laci_node *node, const char *why) {
  char unknown[224];
  (void)snprintf(unknown, sizeof unknown, "%.64s%s%.100s %s", node->domain,
                 node->domain[0] ? "." : "", node->type,
                 is_random_operator(node) ? "gives other numbers in every run" : "is not known");
  record_first_skipped(found, node->name, node->fault ? node->fault : node->op ? why : unknown);
}

/* Skips a node that cannot run. Its outputs get random content, so that the rest of the network can
 * be verified. */
static lac_status skip_node(laci_round *r, const laci_node *node, const char *why, lac_error *err) {
  lac_status st = check_unknown_operator(r, node, err);
  for (int i = 0; i < node->n_outputs && !st; i++) {
    bool made;
    if (node->outputs[i] < 0) continue;
    r->substituted[node->outputs[i]] =
        r->substituted[node->outputs[i]] || !is_random_operator(node);
    st = draw_value_for_both_runs(r, node->outputs[i], &made, err);
    r->found->n_skipped++;
  }
  record_skipped_node(r->found, node, why);
  return st;
}

/* Returns the size that a difference is relative to: that of the value itself (scale), or one that
 * allows for rounding errors of its operands. */
static double scale_of_allowed_difference(const laci_round *r, const laci_node *node,
                                          double scale) {
  double operands = 0;
  for (int i = 0; i < node->n_inputs; i++) {
    if (node->inputs[i] >= 0) operands = fmax(operands, r->scale[node->inputs[i]]);
  }
  return fmax(scale, operands * r->rounding / r->tolerance);
}

static void record_comparison(laci_round *r, int value, const laci_difference *d, double ratio) {
  laci_verification *found = r->found;
  if (d->any_finite) found->n_compared++;
  else found->n_skipped++;
  r->scale[value] = d->scale;
  bool reporting = !r->fast || r->number > 0; /* errors of float32 are not reported */
  if (reporting && (!found->worst_value || ratio > found->worst_ratio)) {
    found->worst_ratio = ratio;
    found->worst_value = value_name(r, value);
  }
  r->n_finite += d->any_finite;
  if (!d->any_finite && r->first_blank < 0) r->first_blank = value;
  if (r->number > 0 || !r->graph->values[value].is_output) return;
  found->max_abs_error = fmax(found->max_abs_error, d->kind_differs ? INFINITY : d->largest);
  found->max_abs_output = fmax(found->max_abs_output, d->scale);
  if (r->substituted[value]) return; /* both runs have the same random substitute */
  r->seen[value] = !d->any_finite                       ? LACI_EVIDENCE_BLANK
                   : d->scale > 0                       ? LACI_EVIDENCE_NUMBERS
                   : laci_stepper_value(r->a, value)->f ? LACI_EVIDENCE_ZERO
                                                        : LACI_EVIDENCE_INTEGER_ZERO;
}

static lac_status fail_differing_value(const laci_round *r, const laci_node *node, int value,
                                       const laci_buf *got, const laci_difference *d,
                                       lac_error *err) {
  char where[128];
  laci_shape place = got->shape;
  int64_t left = d->at;
  for (int axis = place.rank - 1; axis >= 0; axis--) {
    place.dims[axis] = left % got->shape.dims[axis];
    left /= got->shape.dims[axis];
  }
  laci_shape_text(&place, where, sizeof where);
  const char *round = r->number ? " (with parameters drawn anew)" : "";
  if (d->kind_differs) {
    return laci_fail(err, LAC_PROOF_FAILED,
                     "%s: node %s gives NaN or an infinity at %s in only one of the networks "
                     "before and after the "
                     "reordering%s",
                     value_name(r, value), node->name, where, round);
  }
  return laci_fail(err, LAC_PROOF_FAILED,
                   "%s: node %s gives something else after the reordering: at %s off by %.3g, "
                   "where %.3g is the largest "
                   "element%s",
                   value_name(r, value), node->name, where, d->largest, d->scale, round);
}

/* Replaces the value in the second run by the reordered value of the first run, so that rounding
 * errors do not spread to later nodes. */
static lac_status copy_reordered_value_to_second_run(laci_round *r, int value, lac_error *err) {
  laci_buf *b = NULL;
  lac_status st =
      laci_buf_reorder(laci_stepper_value(r->a, value), &r->orders->values[value], &b, err);
  if (!st) laci_stepper_set_value(r->b, value, b);
  return st;
}

/* May a rounding error of the value become a large difference? For example, TopK may sort two
 * scores that differ only in the last bit in another order. */
static bool has_rounding_sensitive_reader(const laci_round *r, int value) {
  const laci_value *v = &r->graph->values[value];
  for (int i = 0; i < v->n_readers; i++) {
    const laci_node *reader = &r->graph->nodes[v->readers[i]];
    if (reader->op && reader->op->discontinuous) return true;
  }
  return false;
}

static lac_status compare_value(laci_round *r, const laci_node *node, int value, lac_error *err) {
  const laci_buf *a = laci_stepper_value(r->a, value), *b = laci_stepper_value(r->b, value);
  if (!a || !b || a->dtype != b->dtype || !laci_shape_equal(&a->shape, &b->shape)) {
    return laci_fail(err, LAC_PROOF_FAILED,
                     "%s: node %s gives another shape or type after the reordering",
                     value_name(r, value), node->name);
  }
  laci_difference d;
  lac_status st = laci_compare_reordered_values(a, &r->orders->values[value], b, r->pool, &d, err);
  if (st) return laci_fail_with_prefix(err, st, "%s", value_name(r, value));
  bool is_float = a->f != NULL;
  double measure = is_float ? scale_of_allowed_difference(r, node, d.scale) : d.scale;
  double ratio = d.at < 0 ? 0 : d.kind_differs || !(measure > 0) ? INFINITY : d.largest / measure;
  record_comparison(r, value, &d, ratio);
  bool same = is_float ? ratio <= r->tolerance : d.at < 0;
  if (!same) return fail_differing_value(r, node, value, b, &d, err);
  bool anew = (r->fast && r->number > 0) || (is_float && has_rounding_sensitive_reader(r, value));
  return anew && d.at >= 0 ? copy_reordered_value_to_second_run(r, value, err) : LAC_OK;
}

/* Does output number `output` of an If come from a random substitute? The node's inputs are
 * (condition, results of `then`, results of `else`). */
static bool is_if_output_substituted(const laci_round *r, const laci_node *node, int output) {
  const laci_buf *condition =
      node->inputs[0] >= 0 ? laci_stepper_value(r->a, node->inputs[0]) : NULL;
  int taken = 1 + output;
  if (!condition || condition->count != 1 || node->n_inputs != 1 + 2 * node->n_outputs) return true;
  if (!laci_buf_get_i(condition, 0)) taken += node->n_outputs;
  bool substituted = r->substituted[node->inputs[0]];
  return substituted || (node->inputs[taken] >= 0 && r->substituted[node->inputs[taken]]);
}

/* Marks the outputs of a node that depend on a random substitute, because an input does. Returns
 * whether an input does. */
static bool mark_substituted_outputs(laci_round *r, const laci_node *node) {
  bool substituted = false;
  for (int i = 0; i < node->n_inputs; i++)
    substituted |= node->inputs[i] >= 0 && r->substituted[node->inputs[i]];
  for (int o = 0; o < node->n_outputs; o++) {
    bool of_if = substituted && node->op && laci_node_is(node, "If");
    if (node->outputs[o] >= 0)
      r->substituted[node->outputs[o]] = of_if ? is_if_output_substituted(r, node, o) : substituted;
  }
  return substituted;
}

static lac_status run_node(laci_round *r, int id, lac_error *err) {
  const laci_node *node = &r->graph->nodes[id];
  lac_error why = {0};
  lac_status st = laci_stepper_step(r->a, id, &why);
  /* sizes computed from random substitutes need not agree with those of another branch */
  bool unfit = mark_substituted_outputs(r, node) && st == LAC_BAD_SHAPE;
  unfit = unfit || (r->tolerant && st && st != LAC_INTERNAL && !laci_status_is_not_about_data(st));
  if (st == LAC_UNSUPPORTED || unfit) {
    lac_status first = st;
    st = laci_stepper_step(r->b, id, NULL); /* this call only frees what the run kept in its last
                                               step */
    if (st != first)
      return laci_fail(err, st ? st : LAC_INTERNAL, "%s: runs in one network only", node->name);
    return skip_node(r, node, why.text, err);
  }
  if (st) {
    if (err) *err = why;
    return st;
  }
  bool matters = laci_node_affects_outputs(r->graph, r->matters, id);
  st = laci_stepper_step(r->b, id, matters ? err : &why);
  if (st && !matters && !laci_status_is_not_about_data(st))
    return skip_node(r, node, why.text, err);
  if (st && !laci_status_is_not_about_data(st))
    return laci_fail_with_prefix(err, LAC_PROOF_FAILED, "after the reordering");
  for (int i = 0; i < node->n_outputs && !st && matters; i++) {
    if (node->outputs[i] >= 0) st = compare_value(r, node, node->outputs[i], err);
  }
  return st;
}

static lac_status draw_and_set_inputs(laci_round *r, lac_error *err) {
  for (int i = 0; i < r->graph->n_inputs; i++) {
    int value = r->graph->inputs[i];
    laci_shape shape;
    if (!laci_shape_replace_symbols(r->graph, &r->graph->values[value].type.shape,
                                    r->size_of_symbol, &shape)) {
      return laci_hint(
          err, LAC_HINT_INPUT_SHAPE,
          laci_fail(err, LAC_UNSUPPORTED, "%s: the verification needs the shape of this input",
                    value_name(r, value)));
    }
    bool made;
    lac_status st = draw_value_for_both_runs(r, value, &made, err);
    if (st) return st;
    if (made) continue;
    r->found->n_skipped++; /* the value has a type without numbers, such as strings; nodes that read
                              it are skipped */
    char why[sizeof r->found->reason];
    (void)snprintf(why, sizeof why, "no values of type %s could be made up for the input '%.150s'",
                   lac_dtype_name(r->graph->values[value].type.dtype), value_name(r, value));
    record_first_skipped(r->found, value_name(r, value), why);
  }
  return LAC_OK;
}

static lac_status run_nodes(laci_round *r, lac_error *err) {
  int64_t n_nodes = r->graph->n_nodes;
  for (int id = 0; id < n_nodes; id++) {
    if (laci_interrupted())
      return laci_fail(err, LAC_INTERRUPTED, "interrupted during the verification");
    r->at = (int)id;
    laci_progress("verification", r->number * n_nodes + id, LACI_N_ROUNDS * n_nodes);
    lac_status st = run_node(r, id, err);
    if (st) return st;
  }
  return LAC_OK;
}

/* Opens one of the two runs. Its graph is the network's, or a copy in which the fast engine
 * computes products. */
static lac_status open_stepper(laci_round *r, laci_round_source *from, laci_products **products,
                               laci_stepper **run, lac_error *err) {
  lac_status st = LAC_OK;
  laci_products_options how = {.pool = r->pool,
                               .graph = r->graph,
                               .orders = from->orders,
                               .size_of_symbol = r->size_of_symbol,
                               .seed = r->seed,
                               .integers = r->number > 0,
                               .all = r->engine == LACI_VERIFY_CPU,
                               .budget = &r->budget};
  if (r->fast) st = laci_products_create(r->graph, &how, products, err);
  if (st) return st;
  from->products = *products;
  from->anew = r->number > 0;
  const laci_graph *graph = *products ? laci_products_get_graph(*products) : r->graph;
  /* exact products differ entirely if operands differ by a rounding error. So every value in
   * between must be compared and made equal, but values inside loops are not */
  const laci_stepper_options options = {.load = load_parameter,
                                        .load_context = from,
                                        .pool = r->pool,
                                        .iterations = r->fast ? 1 : MOST_ITERATIONS,
                                        .unrounded = true,
                                        .budget = &r->budget};
  return laci_stepper_create(graph, &options, run, err);
}

laci_verify_engine laci_verify_engine_by_name(const char *name) {
  return name && strcmp(name, LACI_ENGINE_EXACT) == 0 ? LACI_VERIFY_PLAIN : LACI_VERIFY_AUTO;
}

bool laci_verify_can_use_engine(const char *name) {
  return !name || strcmp(name, LACI_ENGINE_EXACT) == 0 || strcmp(name, LACI_ENGINE_FAST) == 0 ||
         strcmp(name, LACI_ENGINE_AUTO) == 0;
}

const char *laci_verify_engine_name(bool fast) {
  return fast ? LACI_ENGINE_FAST : LACI_ENGINE_EXACT;
}

/* Chooses the engine that computes products, and the tolerance. Only sizes decide, so that the same
 * network is always verified with the same engine. */
static void choose_engine_and_tolerance(laci_round *r) {
  int64_t cost = laci_products_count_multiplications(r->graph, r->size_of_symbol);
  r->fast = laci_verify_uses_fast_engine(r->graph, r->engine, r->size_of_symbol);
  bool rough = r->fast && r->number == 0;
  r->tolerance = rough ? float_tolerance : r->wanted_tolerance;
  r->rounding = rough ? float_rounding : default_rounding;
  r->found->engine = laci_verify_engine_name(r->fast);
  if (r->number > 0 || r->draw || r->tolerant) return;
  laci_log(LAC_LOG_DEBUG, "verification: %.3g multiplications a run: products by the engine %s",
           (double)cost, laci_verify_engine_name(r->fast));
}

lac_status laci_round_run_and_compare(laci_round *r, lac_error *err) {
  laci_products *products_a = NULL, *products_b = NULL;
  laci_budget before = r->budget;
  choose_engine_and_tolerance(r);
  r->n_finite = r->at = 0;
  r->first_blank = -1;
  memset(r->scale, 0, (size_t)r->graph->n_values * sizeof *r->scale);
  memset(r->substituted, 0, (size_t)r->graph->n_values * sizeof *r->substituted);
  memset(r->seen, LACI_EVIDENCE_NONE, (size_t)r->graph->n_values * sizeof *r->seen);
  lac_status st = open_stepper(r, &r->from_a, &products_a, &r->a, err);
  if (!st) st = open_stepper(r, &r->from_b, &products_b, &r->b, err);
  if (!st) st = draw_and_set_inputs(r, err);
  if (!st) st = run_nodes(r, err);
  laci_stepper_destroy(r->a);
  laci_stepper_destroy(r->b);
  laci_products_destroy(products_a);
  laci_products_destroy(products_b);
  r->budget = before;
  r->a = r->b = NULL;
  return st;
}

/* Runs both rounds. A failure of the fast engine is checked with the plain one, since float32 may
 * round more than the tolerance allows. */
static lac_status run_rounds_and_confirm_failure(laci_round *r, int64_t *sizes, lac_error *err) {
  lac_error why = {0};
  lac_status st = laci_rounds_run_with_tries(r, sizes, &why);
  bool doubt = st == LAC_PROOF_FAILED && r->fast && r->engine == LACI_VERIFY_AUTO;
  if (doubt) {
    laci_log(LAC_LOG_INFO, "verification: the fast engine found: %s; the plain engine looks again",
             why.text);
    r->engine = LACI_VERIFY_PLAIN;
    return laci_rounds_run_with_tries(r, sizes, err);
  }
  if (st && err) *err = why;
  return st;
}

lac_status laci_verify(const laci_graph *graph, const laci_orders *orders,
                       const laci_verify_options *options, laci_pool *pool,
                       laci_verification *found, lac_error *err) {
  *found = (laci_verification){.engine = laci_verify_engine_name(false)};
  laci_parameters *parameters = NULL;
  laci_round r = {.graph = graph, .orders = orders, .pool = pool, .found = found};
  r.seed = options ? options->seed : 0;
  r.engine = options ? options->engine : LACI_VERIFY_AUTO;
  r.budget = options && options->budget ? *options->budget : laci_budget_with_limit(UINT64_MAX);
  r.wanted_tolerance = options && options->tolerance > 0 ? options->tolerance : default_tolerance;
  int64_t *sizes = laci_alloc((size_t)graph->n_symbols + 1, sizeof *sizes);
  r.scale = laci_alloc((size_t)graph->n_values, sizeof *r.scale);
  r.substituted = laci_alloc((size_t)graph->n_values, sizeof *r.substituted);
  r.seen = laci_alloc((size_t)graph->n_values, sizeof *r.seen);
  lac_status st = sizes && r.scale && r.substituted && r.seen
                      ? check_network_ports(graph, orders, err)
                      : laci_fail_memory(err, "the verification");
  if (!st) st = laci_find_values_affecting_outputs(graph, &r.matters, err);
  laci_budget planned = r.budget;
  if (!st && options && options->budget) {
    st = laci_verify_plan_memory(graph, options, &planned, err);
  }
  if (!st) st = laci_parameters_create(graph, r.seed, pool, &parameters, err);
  r.from_a = (laci_round_source){.parameters = parameters, .graph = graph};
  r.from_b = (laci_round_source){.parameters = parameters, .graph = graph, .orders = orders};
  r.size_of_symbol = sizes;
  if (!st) st = run_rounds_and_confirm_failure(&r, sizes, err);
  if (!st) laci_progress("verification", 1, 1);
  laci_parameters_destroy(parameters);
  laci_free(r.scale);
  laci_free(r.substituted);
  laci_free(r.seen);
  laci_free(r.matters);
  laci_free(sizes);
  return st;
}
