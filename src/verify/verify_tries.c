/* SPDX-License-Identifier: Apache-2.0
 * Runs a round of the verification with different inputs. It tries sizes until the network accepts
 * them, then other random numbers as long as an output is empty, has no finite element or is 0.
 *
 * A detector may find nothing in usual numbers, and then have no shape for what it found. Such a
 * failure is due to the numbers, not to the reordering. If no try runs to its end, the one that
 * came furthest is run again, and nodes that fail are skipped. Values that were compared still
 * count; the state says how much was compared. The tries depend on the network alone, never on the
 * time. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "graph/graph.h"
#include "tensor/shape.h"
#include "verify/round_in.h"

static const uint64_t MOST_LATER = (uint64_t)1
                                   << 30; /* limit for the bytes of all values, for the tries after
                                             the first */
/* Limits for the number of multiplications in the tries after the first: least_spent, or
 * times_spent times those of a whole run. */
static const double least_spent = 4e9, times_spent = 5;

/* What a try runs with: sizes, the kind of random numbers, and whether nodes that fail are
 * skipped. */
typedef struct try {
  int attempt; /* number of the attempt in laci_choose_symbol_sizes, which determines the sizes */
  laci_draw_kind draw;
  bool tolerant;
}
try;

typedef struct tries {
  laci_round *r;
  int64_t *sizes;
  laci_verification before, best; /* findings at the beginning of the round, and after the best
                                     run */
  double max_abs_error, max_abs_output;
  uint8_t *seen; /* [n_values] how much each output showed at best (laci_output_evidence), over all
                    runs */
  bool any;      /* true: at least one run reached its end */
  int n_runs, best_told, best_finite, best_blank;
  try chosen;   /* the try that gave the best run */
  int furthest; /* largest index of a node that a failed run reached */
  try failed;
  double spent;
  lac_error why; /* error of the first run that failed */
  char tried[256];
} tries;

/* Adds the sizes of an attempt to the text of tried sizes: the shape of the first input with
 * dynamic sizes, " [2, 3, 32, 32]". */
static void append_sizes_to_text(tries *t) {
  char text[128];
  const laci_graph *graph = t->r->graph;
  size_t used = strlen(t->tried);
  for (int i = 0; i < graph->n_inputs; i++) {
    const laci_shape *shape = &graph->values[graph->inputs[i]].type.shape;
    laci_shape real;
    if (laci_shape_is_known(shape) || !laci_shape_replace_symbols(graph, shape, t->sizes, &real))
      continue;
    (void)snprintf(t->tried + used, sizeof t->tried - used, " %s",
                   laci_shape_text(&real, text, sizeof text));
    return;
  }
}

/* Are the values of this try too large? Memory was planned for the first sizes only. With the
 * longest audio, attention maps would take gigabytes. */
static bool is_try_too_large(const tries *t) {
  const laci_graph *graph = t->r->graph;
  laci_type *types = NULL;
  uint64_t bytes = 0;
  if (laci_verify_infer_types(graph, t->sizes, &types)) types = NULL;
  for (int v = 0; v < graph->n_values && bytes <= MOST_LATER; v++) {
    const laci_value *value = &graph->values[v];
    laci_shape real;
    int64_t count = types ? laci_shape_count(&types[v].shape) : -1;
    if (value->stored >= 0) continue;
    if (count < 0 && laci_shape_replace_symbols(graph, &value->type.shape, t->sizes, &real))
      count = laci_shape_count(&real);
    bytes += laci_count_bytes_saturated(count, sizeof(double));
  }
  laci_free(types);
  return bytes > MOST_LATER;
}

/* Would the network fail with this status for other numbers, too? */
static bool is_status_independent_of_draws(lac_status st) {
  return laci_status_is_not_about_data(st) || st == LAC_PROOF_FAILED || st == LAC_INTERNAL ||
         st == LAC_UNSUPPORTED;
}

/* Returns how meaningful the outputs of this run are. Each output with a finite element gives one
 * point, and one more if an element is not 0. */
static int count_meaningful_outputs(const laci_round *r) {
  int n = 0;
  for (int i = 0; i < r->graph->n_outputs; i++) {
    uint8_t seen = r->seen[r->graph->outputs[i]];
    n += (seen >= LACI_EVIDENCE_ZERO) + (seen == LACI_EVIDENCE_NUMBERS);
  }
  return n;
}

/* Was the output compared in any run, so that it shows something? Integers that are 0 count if some
 * other output is not 0. */
static bool is_meaningful_output(const tries *t, int output) {
  const laci_graph *graph = t->r->graph;
  uint8_t most = LACI_EVIDENCE_NONE, seen = t->seen[output];
  for (int i = 0; i < graph->n_outputs; i++)
    most = t->seen[graph->outputs[i]] > most ? t->seen[graph->outputs[i]] : most;
  return seen >= LACI_EVIDENCE_INTEGER_ZERO && most == LACI_EVIDENCE_NUMBERS;
}

/* Returns the number of outputs that were empty, without a finite element, or 0 in every run so
 * far. */
static int count_blank_outputs(const tries *t) {
  const laci_graph *graph = t->r->graph;
  int n = 0;
  for (int i = 0; i < graph->n_outputs; i++)
    n += t->r->seen[graph->outputs[i]] > LACI_EVIDENCE_NONE &&
         !is_meaningful_output(t, graph->outputs[i]);
  return n;
}

static void keep_try_if_best(tries *t, try how) {
  const laci_round *r = t->r;
  const laci_verification *found = r->found;
  int told = count_meaningful_outputs(r);
  for (int i = 0; i < r->graph->n_outputs; i++) {
    int output = r->graph->outputs[i];
    if (r->seen[output] > t->seen[output]) t->seen[output] = r->seen[output];
  }
  t->max_abs_error = fmax(t->max_abs_error, found->max_abs_error);
  t->max_abs_output = fmax(t->max_abs_output, found->max_abs_output);
  bool better = told > t->best_told || (told == t->best_told && r->n_finite > t->best_finite);
  if (t->any && !better) return;
  t->any = true;
  t->best = *found;
  t->best_told = told;
  t->best_finite = r->n_finite;
  t->best_blank = r->first_blank;
  t->chosen = how;
}

/* Runs the network once, with the sizes and numbers of a try, and records how far it ran. */
static lac_status run_try(tries *t, try how, lac_error *err) {
  laci_round *r = t->r;
  lac_error why = {0};
  *r->found = t->before;
  r->draw = how.draw;
  r->tolerant = how.tolerant;
  lac_status st = laci_round_run_and_compare(r, &why);
  double share = st ? (double)(r->at + 1) / (double)r->graph->n_nodes : 1;
  t->spent += share * (double)laci_products_count_multiplications(r->graph, t->sizes);
  t->n_runs++;
  if (!st) {
    keep_try_if_best(t, how);
    return st;
  }
  if (err) *err = why;
  if (is_status_independent_of_draws(st)) return st;
  if (!t->why.status) t->why = why;
  if (how.draw == LACI_DRAW_USUAL) append_sizes_to_text(t);
  if (r->at > t->furthest) {
    t->furthest = r->at;
    t->failed = how;
  }
  return st;
}

/* Runs the network once. As long as it does not accept the sizes, tries the next ones. */
static lac_status run_try_with_accepted_sizes(tries *t, try how, lac_error *err) {
  lac_status st = LAC_BAD_SHAPE;
  for (; laci_choose_symbol_sizes(t->r->graph, how.attempt, t->sizes); how.attempt++) {
    if (t->n_runs > 0 && is_try_too_large(t)) continue;
    st = run_try(t, how, err);
    if (!st || is_status_independent_of_draws(st)) break;
  }
  return st && is_status_independent_of_draws(st) ? st : LAC_OK;
}

/* Can the round end without other random numbers? The second round only has to reach its end
 * once. */
static bool has_enough_outputs(const tries *t) {
  return t->any && (t->r->number > 0 || count_blank_outputs(t) == 0);
}

/* Tries other kinds of random numbers, with the sizes of the best run. */
static lac_status run_tries_with_other_draws(tries *t, try how, lac_error *err) {
  const laci_graph *graph = t->r->graph;
  t->spent = 0;
  for (int draw = 0; draw < LACI_N_DRAWS && !has_enough_outputs(t); draw++) {
    /* this kind was used already when sizes were tried */
    if (draw == (int)how.draw) continue;
    try now = {.attempt = t->any ? t->chosen.attempt : t->failed.attempt,
               .draw = (laci_draw_kind)draw};
    if (!laci_choose_symbol_sizes(graph, now.attempt, t->sizes)) break;
    double cost = (double)laci_products_count_multiplications(graph, t->sizes);
    if (t->spent + cost > fmax(least_spent, times_spent * cost)) break;
    lac_status st = run_try(t, now, err);
    if (st == LAC_MEMORY_LIMIT && t->any) break; /* comparisons before this still count */
    if (st && is_status_independent_of_draws(st)) return st;
  }
  return LAC_OK;
}

/* Repeats the try that ran furthest, and skips nodes that fail. */
static lac_status retry_skipping_failed_nodes(tries *t, lac_error *err) {
  try how = t->failed;
  how.tolerant = true;
  if (!laci_choose_symbol_sizes(t->r->graph, how.attempt, t->sizes))
    return laci_fail(err, LAC_INTERNAL, "the verification has no sizes");
  return run_try(t, how, err);
}

static void append_tried_sizes_to_reason(const tries *t, laci_verification *found) {
  size_t used = strlen(found->reason);
  if (t->any && t->chosen.tolerant && t->tried[0] && t->r->number == 0)
    (void)snprintf(found->reason + used, sizeof found->reason - used, "; tried%.200s", t->tried);
}

/* Returns the first output that is 0, if no output is empty or without a finite element; else
 * NULL. */
static const laci_value *find_zero_output_unless_blank(const tries *t) {
  const laci_graph *graph = t->r->graph;
  const laci_value *zero = NULL;
  for (int i = 0; i < graph->n_outputs; i++) {
    int output = graph->outputs[i];
    if (t->seen[output] == LACI_EVIDENCE_BLANK) return NULL;
    bool is_zero = t->seen[output] >= LACI_EVIDENCE_ZERO && !is_meaningful_output(t, output);
    if (is_zero && !zero) zero = &graph->values[output];
  }
  return zero;
}

/* Writes the reason why nothing was compared, if no node computes an output of the network. */
static void write_reason_of_uncomputed_outputs(const laci_graph *graph, laci_verification *found) {
  bool all_stored = true;
  for (int i = 0; i < graph->n_outputs; i++)
    all_stored &= graph->values[graph->outputs[i]].stored >= 0;
  (void)snprintf(found->reason, sizeof found->reason, "%s",
                 all_stored ? "no output depends on an input"
                            : "no node computes an output: each is an input or a constant");
}

/* Writes the reason why outputs show nothing although every node ran. */
static void write_reason_of_blank_outputs(const tries *t, laci_verification *found) {
  const laci_graph *graph = t->r->graph;
  const laci_value *zero = find_zero_output_unless_blank(t);
  const laci_value *value = zero || t->best_blank < 0 ? zero : &graph->values[t->best_blank];
  if (found->first_skipped) return;
  if (found->n_outputs == 0) {
    write_reason_of_uncomputed_outputs(graph, found);
    return;
  }
  if (!value) return;
  found->first_skipped = graph->nodes[value->producer].name;
  if (value != zero)
    (void)snprintf(found->reason, sizeof found->reason,
                   "%.200s has no finite element, with any of %d draws of the inputs", value->name,
                   t->n_runs);
  else if (found->n_outputs_compared == 0)
    (void)snprintf(found->reason, sizeof found->reason, "outputs are 0 for every input tried");
  else
    (void)snprintf(found->reason, sizeof found->reason,
                   "the output %.200s is 0 for every input tried", value->name);
}

static void write_findings_of_round(tries *t) {
  laci_round *r = t->r;
  laci_verification *found = r->found;
  *found = t->best;
  if (r->number > 0) return;
  found->max_abs_error = t->max_abs_error;
  found->max_abs_output = t->max_abs_output;
  found->n_outputs_compared = 0;
  for (int i = 0; i < r->graph->n_outputs; i++)
    found->n_outputs_compared += is_meaningful_output(t, r->graph->outputs[i]);
  bool all = found->n_outputs > 0 && found->n_outputs_compared == found->n_outputs;
  found->state = all                  ? LACI_VERIFY_ALL
                 : t->best_finite > 0 ? LACI_VERIFY_PART
                                      : LACI_VERIFY_NOTHING;
  append_tried_sizes_to_reason(t, found);
  if (!all) write_reason_of_blank_outputs(t, found);
}

/* Runs one round. *from: the try to begin with; becomes the best one. */
static lac_status run_tries(laci_round *r, int64_t *sizes, try *from, lac_error *err) {
  tries t = {.r = r, .sizes = sizes, .before = *r->found, .furthest = -1, .best_blank = -1};
  t.seen = laci_alloc((size_t)r->graph->n_values, sizeof *t.seen);
  if (!t.seen) return laci_fail_memory(err, "the verification");
  lac_status st = LAC_OK;
  if (from->tolerant) t.failed = *from;
  else st = run_try_with_accepted_sizes(&t, *from, err);
  if (!st && !from->tolerant && !has_enough_outputs(&t))
    st = run_tries_with_other_draws(&t, *from, err);
  if (!st && !t.any) st = retry_skipping_failed_nodes(&t, err);
  if (!st) write_findings_of_round(&t);
  if (!st) *from = t.chosen;
  laci_free(t.seen);
  return st;
}

static int count_computed_outputs(const laci_graph *graph) {
  int n = 0;
  for (int i = 0; i < graph->n_outputs; i++) n += graph->values[graph->outputs[i]].producer >= 0;
  return n;
}

lac_status laci_rounds_run_with_tries(laci_round *r, int64_t *sizes, lac_error *err) {
  try from = {0}; /* the second round begins with the try that was best in the first round */
  lac_status st = LAC_OK;
  *r->found = (laci_verification){.engine = laci_verify_engine_name(false),
                                  .n_outputs = count_computed_outputs(r->graph)};
  for (r->number = 0; r->number < LACI_N_ROUNDS && !st; r->number++)
    st = run_tries(r, sizes, &from, err);
  return st;
}
