/* SPDX-License-Identifier: Apache-2.0
 * Walks through a network from stop to stop. A stop is a value that layers read; these layers are
 * calibrated there. */
#include "calibrate/walk.h"

#include <string.h>

#include "analyze/analyze.h"
#include "base/clock.h"
#include "base/divide.h"
#include "base/error.h"
#include "base/log.h"
#include "calibrate/fit.h"
#include "calibrate/forecast_in.h"
#include "calibrate/recurrent_in.h"
#include "calibrate/walk_in.h"
#include "sparse/mask.h"

enum { MOST_SAMPLES = 64 };
enum {
  POSITIONS_OF_WIDE = 32
}; /* minimum number of positions (inputs x) that are summed for each
                                    column of a wide layer, unless the options say it */
/* Limit of the bytes of a batch's largest value. Larger batches make the sums faster, but need more
 * memory. */
static const uint64_t batch_bytes = (uint64_t)48 << 20;

/* ---- Setting up ---- */

static bool is_layer_to_be_pruned(const laci_walk_state *w, int layer) {
  if (!w->analysis->layers[layer].eligible) return false;
  return !w->options->wanted || w->options->wanted[layer];
}

static void destroy_networks(laci_walk_state *w) {
  for (int shape_set = 0; w->networks && shape_set < w->n_shape_sets; shape_set++)
    laci_network_destroy(w->networks[shape_set]);
  laci_free(w->networks);
  w->networks = NULL;
  w->network = NULL;
}

/* Lists in nodes[] the recurrent nodes of which a layer is to be pruned, ascending. */
static int list_recurrent_nodes(const laci_walk_state *w, int *nodes) {
  const laci_graph *graph = w->analysis->graph;
  int n = 0;
  for (int at = 0; at < graph->n_nodes; at++) {
    if (!laci_node_is_recurrent(&graph->nodes[at])) continue;
    bool any = false;
    for (int l = 0; l < w->analysis->n_layers && !any; l++)
      any = w->analysis->layers[l].node == at && is_layer_to_be_pruned(w, l);
    if (any) nodes[n++] = at;
  }
  return n;
}

/* Infers the network for every shape set that the samples have. */
static lac_status create_network_of_each_shape_set(laci_walk_state *w, int64_t batch,
                                                   lac_error *err) {
  const laci_weighted_graph dense = {.graph = w->analysis->graph, .weights = w->options->weights};
  destroy_networks(w);
  w->n_shape_sets = laci_calibration_count_shape_sets(w->samples);
  w->networks = laci_alloc((size_t)w->n_shape_sets, sizeof(laci_network *));
  lac_status st = w->networks ? LAC_OK : laci_fail_memory(err, "the sizes of values");
  int *recurrent = laci_alloc((size_t)w->analysis->graph->n_nodes + 1, sizeof *recurrent);
  if (!st && !recurrent) st = laci_fail_memory(err, "the sizes of values");
  const int n = st ? 0 : list_recurrent_nodes(w, recurrent);
  for (int shape_set = 0; shape_set < w->n_shape_sets && !st; shape_set++) {
    st = laci_network_create(&dense, w->samples, shape_set, batch, &w->networks[shape_set], err);
    if (!st) st = laci_network_add_states(w->networks[shape_set], recurrent, n, err);
  }
  laci_free(recurrent);
  w->network = st ? NULL : w->networks[0];
  return st;
}

/* Cuts the samples into batches of at most `most`. */
static lac_status cut_samples(laci_walk_state *w, int64_t most, int64_t fixed, lac_error *err) {
  const int64_t count = w->samples->count, held = w->samples->held_back;
  lac_status st = laci_calibration_cut_samples(count, held > 0 && most > held ? held : most, fixed,
                                               &w->cut, err);
  if (!st && fixed <= 0) w->cut.judging_batch = most;
  if (!st && held > 0 && w->cut.n_batches > 1) { /* the held-back samples must not be copies of
                                                    samples that weights are fitted to */
    int64_t n_fitted = (count - held + w->cut.batch - 1) / w->cut.batch;
    w->cut.n_fitted = n_fitted < w->cut.n_batches ? n_fitted : w->cut.n_batches - 1;
    if (w->cut.n_fitted < 1) w->cut.n_fitted = 1;
  }
  return st;
}

/* Infers the network for a small batch first; the sizes of its values determine how large a batch
 * may be. A network that takes one sample but not several at a time (a size in it is fixed) is run
 * with one sample at a time. */
static lac_status infer_network_and_batch(laci_walk_state *w, lac_error *err) {
  int64_t fixed = laci_calibration_required_batch(w->analysis->graph, w->samples);
  const int64_t one = fixed > 0 ? fixed : 1;
  lac_status st = create_network_of_each_shape_set(w, one, err);
  if (st) return st;
  uint64_t largest = laci_network_largest_value_bytes(w->network) / (uint64_t)one;
  int64_t most = w->options->batch;
  if (most <= 0) most = largest > 0 ? (int64_t)(batch_bytes / largest) : MOST_SAMPLES;
  if (most > MOST_SAMPLES && w->options->batch <= 0) most = MOST_SAMPLES;
  if (most < 1) most = 1;
  st = cut_samples(w, most, fixed, err);
  if (st || w->cut.batch == one) return st;
  lac_error why = {0};
  st = create_network_of_each_shape_set(w, w->cut.batch, &why);
  if (st == LAC_BAD_SHAPE) {
    laci_log(LAC_LOG_INFO, "samples are run one by one: %s", why.text);
    st = create_network_of_each_shape_set(w, 1, err);
    if (!st) st = cut_samples(w, 1, 1, err);
  } else if (st && err) {
    *err = why;
  }
  return st;
}

/* Prunes the layer's weight by magnitude. Several layers may share a weight; it is pruned once. */
static lac_status mask_by_magnitude(laci_walk_state *w, int layer, lac_error *err) {
  const laci_layer *from = &w->analysis->layers[layer];
  const laci_stored *stored = &w->network->graph.stored[from->stored];
  if (w->out->masks[from->stored]) return LAC_OK;
  laci_weight_view view = from->view;
  view.bytes = stored->bytes;
  uint8_t *mask = laci_alloc((size_t)laci_shape_count(&stored->shape), 1);
  uint8_t *bytes = laci_alloc(stored->size_bytes, 1);
  lac_status st = mask && bytes ? LAC_OK : laci_fail_memory(err, stored->name);
  const laci_mask_rule rule = {w->options->pattern, w->options->form, w->options->v};
  if (!st) st = laci_mask_choose_by_rule(&view, &rule, w->options->pool, mask, err);
  if (st) {
    laci_free(mask);
    laci_free(bytes);
    return st;
  }
  memcpy(bytes, stored->bytes, stored->size_bytes);
  laci_mask_apply(&view, mask, bytes);
  w->out->masks[from->stored] = mask;
  w->out->weights[from->stored] = bytes;
  if (!w->options->each_alone) w->pruned[from->stored] = bytes;
  return LAC_OK;
}

static lac_status prune_by_magnitude(laci_walk_state *w, int layer, const char *reason,
                                     lac_error *err) {
  w->out->layers[layer].pruned = true;
  w->out->layers[layer].reason = laci_arena_text(&w->out->arena, reason);
  if (!w->out->layers[layer].reason) return laci_fail_memory(err, "the layers");
  return mask_by_magnitude(w, layer, err);
}

/* Finds the layers that cannot be calibrated, and prunes them by magnitude before the walk begins.
 * So the fits of later layers compensate for them, too. */
static lac_status prune_uncalibratable_layers(laci_walk_state *w, bool *is_pruned, lac_error *err) {
  int n_layers = w->analysis->n_layers;
  w->plan.layers = laci_alloc((size_t)n_layers + 1, sizeof *w->plan.layers);
  if (!w->plan.layers) return laci_fail_memory(err, "the layers");
  lac_status st = LAC_OK;
  for (int l = 0; l < n_layers && !st; l++) {
    if (!is_layer_to_be_pruned(w, l)) continue;
    is_pruned[w->analysis->layers[l].stored] = !w->options->each_alone;
    laci_matrix_layer *layer = &w->plan.layers[w->plan.n_layers];
    const char *reason = laci_matrix_layer_init(w->analysis, l, w->network, layer);
    w->plan.n_layers += !reason;
    if (!reason) continue;
    st = prune_by_magnitude(w, l, reason, err);
  }
  return st;
}

/* Prunes by magnitude the layers whose fits do not fit into memory. If none would be left, does
 * nothing: the limit is then too low for any calibration, and planning the memory reports it. */
static lac_status prune_too_large_layers(laci_walk_state *w, const bool *is_pruned,
                                         lac_error *err) {
  int n = 0;
  lac_status st = LAC_OK;
  for (int l = 0; l < w->plan.n_layers; l++)
    n += laci_walk_explain_too_large_fit(w, &w->plan.layers[l]) == NULL;
  if (n == 0 || n == w->plan.n_layers) return LAC_OK;
  n = 0;
  for (int l = 0; l < w->plan.n_layers && !st; l++) {
    const laci_matrix_layer layer = w->plan.layers[l];
    const char *reason = laci_walk_explain_too_large_fit(w, &layer);
    if (!reason) {
      w->plan.layers[n++] = layer;
      continue;
    }
    const laci_graph *graph = &w->network->graph;
    laci_log(LAC_LOG_WARNING, "%s is not calibrated: %s", graph->nodes[layer.node].name, reason);
    st = prune_by_magnitude(w, layer.layer, reason, err);
  }
  if (st) return st;
  w->plan.n_layers = n;
  w->plan.n_stops = 0;
  return laci_walk_plan_make(w->network, is_pruned, &w->plan, err);
}

static lac_status walk_init(laci_walk_state *w, lac_error *err) {
  lac_status st = infer_network_and_batch(w, err);
  if (st) return st;
  size_t n_stored = (size_t)w->network->graph.n_stored,
         n_values = (size_t)w->network->graph.n_values;
  bool *is_pruned = laci_alloc(n_stored + 1, sizeof *is_pruned);
  w->pruned = laci_alloc(n_stored + 1, sizeof *w->pruned);
  for (int i = 0; i < LACI_STREAMS; i++) w->kept[i] = laci_alloc(n_values + 1, sizeof *w->kept[i]);
  bool ok = is_pruned && w->pruned && w->kept[0] && w->kept[1];
  st = ok ? LAC_OK : laci_fail_memory(err, "the calibration");
  if (!st) {
    memcpy(w->pruned, w->network->weights, n_stored * sizeof *w->pruned);
    w->weights[LACI_STREAM_DENSE] = w->network->weights;
    w->weights[LACI_STREAM_PRUNED] = w->pruned;
    st = prune_uncalibratable_layers(w, is_pruned, err);
  }
  if (!st) st = laci_walk_plan_make(w->network, is_pruned, &w->plan, err);
  if (!st) st = prune_too_large_layers(w, is_pruned, err);
  if (!st) st = laci_walk_plan_memory(w, err);
  laci_free(is_pruned);
  w->total = w->cut.n_batches * (w->plan.n_stops + 1);
  return st;
}

static void walk_clear(laci_walk_state *w) {
  for (int i = 0; i < LACI_STREAMS; i++) {
    for (int v = 0; w->network && w->kept[i] && v < w->network->graph.n_values; v++)
      laci_stored_batches_destroy(w->kept[i][v]);
    laci_free(w->kept[i]);
  }
  laci_batch_allocator_clear(&w->allocator);
  laci_free(w->plan.layers);
  laci_free(w->pruned);
  destroy_networks(w);
}

/* ---- Running the network from one calibrated layer to the next ---- */

lac_status laci_walk_describe_layer_input(laci_walk_state *w, const laci_matrix_layer *layer,
                                          int shape_set, laci_unfold *unfold, lac_error *err) {
  laci_matrix_layer there;
  const char *reason =
      laci_matrix_layer_init(w->analysis, layer->layer, w->networks[shape_set], &there);
  if (reason)
    return laci_fail(err, LAC_UNSUPPORTED, "%s: %s, for samples of some sizes",
                     w->network->graph.nodes[layer->node].name, reason);
  *unfold = there.unfold;
  return LAC_OK;
}

int64_t laci_walk_max_positions(const laci_walk_state *w, const laci_unfold *unfold) {
  const int64_t columns = laci_unfold_n_columns(unfold), asked = w->options->positions;
  if (asked <= 0) return laci_grams_choose_positions(columns, POSITIONS_OF_WIDE, w->cut.n_fitted);
  if (asked > INT64_MAX / columns) return INT64_MAX;
  return laci_ceil_div(asked * columns, w->cut.n_fitted);
}

static lac_status run_and_fit_stop(laci_walk_state *w, int s, lac_error *err) {
  const laci_stop *stop = &w->plan.stops[s];
  laci_stop_sums sums;
  lac_status st = laci_walk_create_sums(w, stop, &sums, err);
  if (!st) st = laci_walk_run_part(w, s, &sums, err);
  for (int m = 0; m < sums.n_grams && !st; m++) laci_grams_finish(&sums.grams[m], w->options->pool);
  for (int l = 0; l < stop->n_layers && !st; l++)
    st = laci_walk_fit_layer(w, &w->plan.layers[stop->first_layer + l], &sums, l, err);
  laci_walk_clear_sums(&sums);
  laci_walk_free_unneeded_values(w, s);
  return st;
}

/* Compares the network's outputs with the dense network's. A network that cannot be run as a whole
 * is no failure, since it was calibrated as far as it can be run. */
static lac_status compare_outputs_with_dense(laci_walk_state *w, lac_error *err) {
  const laci_graph *graph = w->analysis->graph;
  const laci_weighted_graph dense = {.graph = graph, .weights = w->network->weights};
  const laci_weighted_graph pruned = {.graph = graph, .weights = w->pruned};
  const laci_compare_options how = {.first = laci_walk_first_held_back(w) * w->cut.batch,
                                    .n = laci_walk_count_held_back(w) * w->cut.batch,
                                    .batch = w->cut.batch,
                                    .pool = w->options->pool,
                                    .budget = w->options->budget};
  lac_error why = {0};
  lac_status st = laci_compare_outputs(&dense, &pruned, w->samples, &how, &w->out->outputs, &why);
  if (!st && w->out->outputs.doubt) /* a result that does not hold for other samples is not reported
                                       as a small difference */
    st = laci_fail(&why, LAC_UNSUPPORTED,
                   "%s, which says nothing of how the network answers on others",
                   w->out->outputs.doubt);
  if (w->out->outputs.doubt) w->out->outputs = (laci_output_difference){0};
  if (st == LAC_UNSUPPORTED) {
    w->out->outputs_reason = laci_arena_text(&w->out->arena, why.text);
    return w->out->outputs_reason ? LAC_OK : laci_fail_memory(err, "the calibration");
  }
  if (st && err) *err = why;
  return st;
}

static lac_status fit_all_stops(laci_walk_state *w, lac_error *err) {
  lac_status st = walk_init(w, err);
  if (!st && w->plan.n_stops > 0) st = laci_walk_read_inputs(w, err);
  if (!st && w->plan.n_stops > 0 && w->options->n_walks > 0) laci_walk_forecast(w);
  for (int s = 0; s < w->plan.n_stops && !st; s++) st = run_and_fit_stop(w, s, err);
  const double began = laci_clock_seconds();
  if (!st && !w->options->each_alone) st = compare_outputs_with_dense(w, err);
  w->times.judging += laci_clock_seconds() - began;
  laci_log(LAC_LOG_DEBUG,
           "the walk took %.2f s of runs, %.2f s of sums, %.2f s of fits, %.2f s of judging",
           w->times.runs, w->times.sums, w->out->fit_seconds, w->times.judging);
  if (!st) laci_progress("calibrating", w->total, w->total);
  return st;
}

/* ---- The result ---- */

static lac_status create_result(const laci_analysis *analysis, laci_calibrated **out,
                                lac_error *err) {
  laci_calibrated *c = laci_alloc(1, sizeof *c);
  *out = c;
  if (!c) return laci_fail_memory(err, "the calibration");
  c->n_layers = analysis->n_layers;
  c->n_stored = analysis->graph->n_stored;
  c->layers = laci_alloc((size_t)c->n_layers + 1, sizeof *c->layers);
  c->masks = laci_alloc((size_t)c->n_stored + 1, sizeof *c->masks);
  c->weights = laci_alloc((size_t)c->n_stored + 1, sizeof *c->weights);
  return c->layers && c->masks && c->weights ? LAC_OK : laci_fail_memory(err, "the calibration");
}

void laci_calibrated_destroy(laci_calibrated *c) {
  if (!c) return;
  for (int s = 0; s < c->n_stored; s++) {
    if (c->masks) laci_free(c->masks[s]);
    if (c->weights) laci_free(c->weights[s]);
  }
  laci_free(c->layers);
  laci_free(c->masks);
  laci_free(c->weights);
  laci_arena_clear(&c->arena);
  laci_free(c);
}

lac_status laci_calibrate(const laci_analysis *analysis, const laci_calibration_samples *samples,
                          const laci_calibrate_options *options, laci_calibrated **out,
                          lac_error *err) {
  double began = laci_clock_seconds();
  laci_walk_state w = {.analysis = analysis, .samples = samples, .options = options};
  lac_status st = create_result(analysis, &w.out, err);
  if (!st) st = fit_all_stops(&w, err);
  if (w.out) {
    w.out->cut = w.cut;
    w.out->values_bytes = w.allocator.most_bytes;
    w.out->file_bytes = w.allocator.most_file_bytes;
    w.out->seconds = laci_clock_seconds() - began;
  }
  walk_clear(&w);
  if (st) laci_calibrated_destroy(w.out);
  *out = st ? NULL : w.out;
  return st;
}
