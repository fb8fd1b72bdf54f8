/* SPDX-License-Identifier: Apache-2.0
 * Compares two networks whose weights cannot be matched one by one, by their outputs on random
 * inputs like those of the verification. The kept weights of one may have been fitted or trained,
 * or it was quantized or has other nodes. Next: explain.c. */
#include <stdio.h>
#include <string.h>

#include "analyze/analyze.h"
#include "base/error.h"
#include "base/memory.h"
#include "calibrate/samples.h"
#include "graph/graph.h"
#include "prune/prune_in.h"
#include "tensor/buf.h"

enum { SAMPLES = 8 };

typedef struct random_samples {
  const laci_graph *graph;
  const laci_shape *shapes;
  uint64_t seed;
} random_samples;

static lac_status draw_sample(const random_samples *s, int input, int64_t sample, int64_t n,
                              uint8_t *to, lac_error *err) {
  laci_buf *buf = NULL;
  laci_shape shape = s->shapes[input];
  if (shape.rank > 0) shape.dims[0] = n;
  lac_status st = laci_verify_draw_input(s->graph, s->graph->inputs[input], &shape,
                                         s->seed + (uint64_t)sample, &buf, err);
  for (int64_t e = 0; !st && e < buf->count; e++) {
    if (buf->f) ((float *)(void *)to)[e] = (float)buf->f[e];
    else ((int64_t *)(void *)to)[e] = buf->i[e];
  }
  laci_buf_destroy(buf);
  return st;
}

static lac_status draw_random_samples(void *context, int64_t first, int64_t n, void *const *to,
                                      lac_error *err) {
  const random_samples *s = context;
  lac_status st = LAC_OK;
  for (int i = 0; i < s->graph->n_inputs && !st; i++) st = draw_sample(s, i, first, n, to[i], err);
  return st;
}

/* Returns the batch size that the network's input declares; 1 if it declares none. */
static int64_t find_required_batch(const laci_graph *graph) {
  const laci_shape *shape =
      graph->n_inputs > 0 ? &graph->values[graph->inputs[0]].type.shape : NULL;
  return shape && shape->rank > 0 && shape->dims[0] > 0 ? shape->dims[0] : 1;
}

static lac_status compare_on_random_samples(const laci_graph *old, const laci_graph *fresh,
                                            const laci_prune_options *options, laci_pool *pool,
                                            laci_output_difference *found, lac_error *err) {
  laci_shape *shapes = laci_alloc((size_t)old->n_inputs + 1, sizeof *shapes);
  if (!shapes) return laci_fail_memory(err, "outputs to be compared");
  random_samples drawn = {.graph = old, .shapes = shapes, .seed = options->search.seed};
  const int64_t batch = find_required_batch(old);
  const laci_calibration_samples samples = {.count = SAMPLES * batch,
                                            .shapes = shapes,
                                            .fetch = draw_random_samples,
                                            .context = &drawn,
                                            .engine = options->engine};
  const laci_compare_options how = {
      .n = SAMPLES * batch, .batch = batch, .pool = pool, .budget = options->budget};
  const laci_weighted_graph a = {.graph = old}, b = {.graph = fresh};
  lac_status st = laci_verify_find_input_shapes(old, shapes, err);
  if (!st) st = laci_compare_outputs(&a, &b, &samples, &how, found, err);
  laci_free(shapes);
  return st;
}

static bool have_same_nodes(const laci_graph *a, const laci_graph *b) {
  bool same = a->n_nodes == b->n_nodes && a->n_stored == b->n_stored;
  for (int n = 0; same && n < a->n_nodes; n++)
    same = strcmp(a->nodes[n].type, b->nodes[n].type) == 0;
  return same;
}

static bool have_same_weight_types(const laci_graph *a, const laci_graph *b) {
  bool same = true;
  for (int s = 0; same && s < a->n_stored; s++) {
    int value = laci_graph_find_value(b, a->stored[s].name);
    int other = value < 0 ? -1 : b->values[value].stored;
    same = other < 0 || b->stored[other].dtype == a->stored[s].dtype;
  }
  return same;
}

/* Returns the number of nodes that compute with integers, such as QLinearConv, MatMulInteger and
 * MatMulNBits. */
static int count_integer_nodes(const laci_graph *graph) {
  int n = 0;
  for (int k = 0; k < graph->n_nodes; k++) {
    const char *type = graph->nodes[k].type;
    n += strstr(type, "uantizeLinear") || strncmp(type, "QLinear", 7) == 0 ||
         strstr(type, "Integer") || strstr(type, "NBits");
  }
  return n;
}

/* Returns a text that says how the weights of the two networks differ. */
static const char *describe_weight_difference(const laci_graph *old, const laci_graph *fresh) {
  if (have_same_nodes(old, fresh))
    return have_same_weight_types(old, fresh) ? "that were solved, corrected or trained"
                                              : "of another type";
  return count_integer_nodes(fresh) > count_integer_nodes(old) ? "that were quantized"
                                                               : "of other nodes";
}

lac_status laci_pruning_compare_unexplained(laci_pruning *p, const laci_graph *changed,
                                            const laci_prune_options *options, laci_pool *pool,
                                            const lac_error *why, lac_error *err) {
  const laci_graph *graph = p->analysis->graph;
  laci_verification *found = &p->verification.found;
  laci_output_difference outputs = {0};
  lac_error refused = {0};
  char said[290];
  lac_status st = compare_on_random_samples(graph, changed, options, pool, &outputs, &refused);
  if (laci_status_is_not_about_data(st)) {
    if (err) *err = refused;
    return st;
  }
  if (st || outputs.doubt)
    (void)snprintf(said, sizeof said, "outputs could not be compared either: %.240s",
                   st ? refused.text : outputs.doubt);
  else
    (void)snprintf(said, sizeof said, "outputs differ by %.3g%% on %lld random inputs",
                   100 * outputs.relative, (long long)outputs.n_samples);
  found->state = LACI_VERIFY_NOTHING;
  p->verification.order_unknown = true;
  (void)snprintf(found->reason, sizeof found->reason,
                 "%.140s; weights %s cannot be compared one by one; %s", why->text,
                 describe_weight_difference(graph, changed), said);
  if (!options->verify) return LAC_OK;
  return laci_hint(err, LAC_HINT_UNVERIFIED,
                   laci_fail(err, LAC_PROOF_FAILED, "not verified: %s", found->reason));
}
