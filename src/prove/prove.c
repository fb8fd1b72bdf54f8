/* SPDX-License-Identifier: Apache-2.0
 * The proof: two plain runs in step, compared after every node.
 *
 * Run A is the network as it is, run B the reordered one; B's stored tensors are reordered as they are loaded, so that
 * no second set of weights exists. An operator that cannot be run gets the same random outputs in both: its inputs were
 * compared, so nothing that it may do differs. */
#include "prove/prove.h"

#include <math.h>

#include "backend/plain/plain.h"
#include "base/error.h"
#include "base/log.h"
#include "prove/prove_in.h"

/* Where the stored tensors of one run come from. */
typedef struct source {
  const laci_graph *graph;
  const laci_orders *orders; /* NULL: as they are */
  bool redraw;
  uint64_t seed;
} source;

typedef struct proof_round {
  const laci_graph *graph;
  const laci_orders *orders;
  const laci_proof_options *options;
  laci_proof *proof;
  laci_plain *a, *b;
  source from_a, from_b;
  const int64_t *size_of_symbol;
  int number; /* 0: real parameters, 1: drawn anew */
} proof_round;

static lac_status reorder(const laci_value_orders *orders, const laci_buf *in, laci_buf **out,
                          lac_error *err) {
  lac_status st = laci_buf_create(in->dtype, &in->shape, out, err);
  if (st) return st;
  const void *from = in->f ? (const void *)in->f : (const void *)in->i;
  void *to = (*out)->f ? (void *)(*out)->f : (void *)(*out)->i;
  st = laci_reorder(&in->shape, sizeof(double), orders, from, to, err);
  if (!st) return LAC_OK;
  laci_buf_destroy(*out);
  *out = NULL;
  return st;
}

static lac_status load_stored(void *context, int id, laci_buf **buf, lac_error *err) {
  const source *from = context;
  const laci_stored *stored = &from->graph->stored[id];
  laci_buf *made = NULL;
  lac_status st = laci_buf_create(stored->dtype, &stored->shape, &made, err);
  if (st) return laci_fail_in(err, st, "%s", stored->name);
  if (made->f) laci_read_f(stored->dtype, stored->bytes, 0, made->count, made->f);
  else laci_read_i(stored->dtype, stored->bytes, 0, made->count, made->i);
  if (from->redraw) laci_redraw(made, id, from->seed);
  const laci_value_orders *orders = from->orders ? &from->orders->values[stored->value] : NULL;
  if (orders && orders->n) {
    laci_buf *moved = NULL;
    st = reorder(orders, made, &moved, err);
    laci_buf_destroy(made);
    made = moved;
  }
  *buf = made;
  return st;
}

/* Largest |difference| and largest |wanted|; an element that is not finite must be the same on both sides. */
static bool differences(const laci_buf *wanted, const laci_buf *got, double *error, double *scale) {
  bool same = wanted->count == got->count && laci_shape_equal(&wanted->shape, &got->shape);
  *error = *scale = 0;
  for (int64_t e = 0; same && e < wanted->count; e++) {
    double w = wanted->f ? wanted->f[e] : (double)wanted->i[e],
           g = got->f ? got->f[e] : (double)got->i[e];
    if (!isfinite(w) || !isfinite(g)) {
      same = (isnan(w) && isnan(g)) || w == g;
      continue;
    }
    double size = fabs(w), apart = fabs(w - g);
    if (size > *scale) *scale = size;
    if (apart > *error) *error = apart;
  }
  return same;
}

static lac_status compare_value(proof_round *r, int value, const char *node, lac_error *err) {
  const laci_buf *a = laci_plain_value(r->a, value), *b = laci_plain_value(r->b, value);
  if (!a || !b) return LAC_OK; /* nobody reads it, or it was skipped */
  const laci_value_orders *orders = &r->orders->values[value];
  laci_buf *moved = NULL;
  if (orders->n) {
    lac_status st = reorder(orders, a, &moved, err);
    if (st) return st;
  }
  double error, scale;
  bool same = differences(moved ? moved : a, b, &error, &scale);
  bool exact = a->i != NULL;
  laci_buf_destroy(moved);
  laci_proof *proof = r->proof;
  proof->n_compared++;
  double ratio = scale > 0 ? error / scale : error;
  if (ratio > proof->worst_ratio || !proof->worst_value) {
    proof->worst_ratio = ratio;
    proof->worst_value = r->graph->values[value].name;
  }
  if (r->number == 0 && r->graph->values[value].is_output) {
    if (error > proof->max_abs_error) proof->max_abs_error = error;
    if (scale > proof->max_abs_output) proof->max_abs_output = scale;
  }
  if (same && ratio <= (exact ? 0 : r->options->tolerance)) return LAC_OK;
  return laci_fail(err, LAC_PROOF_FAILED,
                   "%s: after the reordering its output %s differs by %g where the largest is %g%s",
                   node, r->graph->values[value].name, error, scale,
                   same ? "" : " (or by NaN or Inf)");
}

/* The same random outputs for an operator that cannot be run. False: a shape is not known. */
static lac_status make_up_outputs(proof_round *r, const laci_node *node, bool *made,
                                  lac_error *err) {
  *made = true;
  for (int i = 0; i < node->n_inputs; i++) { /* what was skipped before it spreads */
    int v = node->inputs[i];
    if (v >= 0 && r->graph->values[v].stored < 0 && !laci_plain_value(r->a, v)) *made = false;
  }
  for (int i = 0; i < node->n_outputs && *made; i++) {
    if (node->outputs[i] < 0) continue;
    laci_buf *a = NULL, *b = NULL;
    if (laci_random_value(r->graph, node->outputs[i], r->size_of_symbol, r->options->seed, &a,
                          NULL)) {
      *made = false;
      break;
    }
    lac_status st = reorder(&r->orders->values[node->outputs[i]], a, &b, err);
    if (st) {
      laci_buf_destroy(a);
      return st;
    }
    laci_plain_set(r->a, node->outputs[i], a);
    laci_plain_set(r->b, node->outputs[i], b);
  }
  return LAC_OK;
}

static lac_status step(proof_round *r, int n, lac_error *err) {
  const laci_node *node = &r->graph->nodes[n];
  lac_error why = {0};
  lac_status st = laci_plain_step(r->a, n, &why);
  if (st == LAC_UNSUPPORTED) {
    bool made;
    st = make_up_outputs(r, node, &made, err);
    if (st || made) return st;
    for (int i = 0; i < node->n_outputs; i++) r->proof->n_skipped += node->outputs[i] >= 0;
    if (!r->proof->first_skipped) r->proof->first_skipped = node->name;
    return LAC_OK;
  }
  if (st) {
    if (err) *err = why;
    return st;
  }
  st = laci_plain_step(r->b, n, err);
  if (st)
    return laci_fail_in(err, st == LAC_NO_MEMORY ? st : LAC_PROOF_FAILED, "after the reordering");
  for (int i = 0; i < node->n_outputs && !st; i++) {
    if (node->outputs[i] >= 0) st = compare_value(r, node->outputs[i], node->name, err);
  }
  return st;
}

static lac_status set_inputs(proof_round *r, lac_error *err) {
  for (int i = 0; i < r->graph->n_inputs; i++) {
    int value = r->graph->inputs[i];
    if (!laci_orders_are_identity(&r->orders->values[value])) {
      return laci_fail(err, LAC_INTERNAL, "%s: an input of the network was reordered",
                       r->graph->values[value].name);
    }
    for (int k = 0; k < 2; k++) {
      laci_buf *buf = NULL;
      lac_status st =
          laci_random_value(r->graph, value, r->size_of_symbol, r->options->seed, &buf, err);
      if (st) return st;
      laci_plain_set(k ? r->b : r->a, value, buf);
    }
  }
  return LAC_OK;
}

static lac_status run_round(proof_round *r, laci_pool *pool, lac_error *err) {
  r->from_a = (source){.graph = r->graph, .redraw = r->number == 1, .seed = r->options->seed};
  r->from_b = r->from_a;
  r->from_b.orders = r->orders;
  lac_status st = laci_plain_create(r->graph, load_stored, &r->from_a, pool, &r->a, err);
  if (!st) st = laci_plain_create(r->graph, load_stored, &r->from_b, pool, &r->b, err);
  if (!st) st = set_inputs(r, err);
  for (int n = 0; n < r->graph->n_nodes && !st; n++) {
    laci_progress("proof", (int64_t)r->number * r->graph->n_nodes + n,
                  2 * (int64_t)r->graph->n_nodes);
    st = laci_interrupted() ? laci_fail(err, LAC_INTERRUPTED, "interrupted during the proof")
                            : step(r, n, err);
  }
  laci_plain_destroy(r->a);
  laci_plain_destroy(r->b);
  r->a = r->b = NULL;
  return st;
}

lac_status laci_prove(const laci_graph *graph, const laci_orders *orders,
                      const laci_proof_options *options, laci_pool *pool, laci_proof *proof,
                      lac_error *err) {
  int64_t *sizes = laci_alloc((size_t)graph->n_symbols + 1, sizeof *sizes);
  if (!sizes) return laci_fail_memory(err, "the proof");
  lac_status st = LAC_OK;
  int attempt = 0;
  for (int number = 0; number < 2 && !st; number++) {
    bool more = laci_choose_sizes(graph, attempt, sizes);
    laci_proof before = *proof;
    for (;;) {
      proof_round r = {.graph = graph,
                       .orders = orders,
                       .options = options,
                       .proof = proof,
                       .size_of_symbol = sizes,
                       .number = number};
      st = run_round(&r, pool, err);
      if (st != LAC_BAD_SHAPE || number) break;
      more = laci_choose_sizes(graph, ++attempt, sizes);
      if (!more) break;
      *proof = before;
    }
  }
  if (!st) laci_progress("proof", 1, 1);
  if (st == LAC_BAD_SHAPE) {
    st = laci_fail_in(
        err, LAC_BAD_SHAPE,
        "the proof cannot run this network (--input-shape NAME=SIZES gives it other sizes)");
  }
  laci_free(sizes);
  return st;
}
