/* SPDX-License-Identifier: Apache-2.0
 * Chooses the layers that stay dense: those whose pruning changes the network's outputs most.
 *
 *     effect of a layer = sum |y - y_l|^2 / sum |y|^2     y: outputs of the dense network,
 *                                                         y_l: with this layer alone pruned
 *
 * Rows of probabilities have the mean of 1 - sum sqrt(y y_l) as their effect. Layers are ranked by
 * the larger of two effects: with the weights of a fit in which the layer alone is pruned, and with
 * those of a fit of all layers. A curve shows the loss if the first n layers of the ranking are
 * pruned, with the weights of the fit of all. If a limit of the loss is given, n is found by
 * bisection. Each try is fitted anew: if fewer layers are pruned, the fits of the others have less
 * to compensate for. Each try is judged on samples that neither the fits nor the ranking have read
 * (drop.c). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analyze.h"
#include "base/budget.h"
#include "base/divide.h"
#include "base/error.h"
#include "base/log.h"
#include "base/min.h"
#include "base/plural.h"
#include "calibrate/walk.h"
#include "graph/graph.h"
#include "prune/prune_in.h"
#include "prune/speed.h"
#include "tensor/shape.h"

enum { MOST_SAMPLES = 256, MOST_ALONE = 64, MOST_TRIES = 6 };

typedef struct ranked_layer {
  int layer;
  double effect;
  double saved; /* predicted seconds that pruning the layer saves; 0: it saves none, or times do not
                   matter */
  bool kept;    /* true: the wanted speed cannot be reached without pruning this layer */
} ranked_layer;

typedef struct chooser {
  laci_pruning *p;
  const laci_prune_options *options;
  laci_pool *pool;
  laci_calibrated *all;  /* a fit in which all wanted layers are pruned; borrowed */
  int n;                 /* number of layers to be ranked. Layers that share a weight count once */
  ranked_layer *ranking; /* [n] layers to be ranked, the one of least effect first */
  const uint8_t **mixed; /* [n_stored] weights of the dense network, some of them replaced by pruned
                            ones */
  laci_judged_drop drop; /* loss of the fit that was judged last, or of the one that is kept */
  bool *always;          /* [n_layers] layers that keep the zeros that they have already */
  laci_output_cache *cache; /* outputs of the dense network, with which all other outputs are
                               compared; NULL: there is not enough memory */
} chooser;

static const char *name_of_layer(const laci_analysis *a, int l) {
  return a->graph->nodes[a->layers[l].node].name;
}

/* ---- Measuring how much outputs change ---- */

/* Compares the outputs of the dense network with those of c->mixed, in which some layers are
 * pruned: on at most `most` of the samples held back, or, if fewer than `least` are, on `least` of
 * all samples. */
static lac_status compare_outputs_with_dense(const chooser *c, int64_t least, int64_t most,
                                             laci_output_difference *difference, lac_error *err) {
  const laci_calibration_cut *cut = &c->all->cut;
  const int64_t n_held = cut->n_batches - cut->n_fitted;
  const int64_t n_least = laci_min(laci_ceil_div(least, cut->batch), cut->n_batches);
  const int64_t n = n_held > n_least ? n_held : n_least, first = cut->n_batches - n;
  const int64_t most_batches = most / cut->batch > 0 ? most / cut->batch : 1;
  const laci_compare_options how = {.first = first * cut->batch,
                                    .n = (n < most_batches ? n : most_batches) * cut->batch,
                                    .batch = cut->batch,
                                    .pool = c->pool,
                                    .budget = c->options->budget,
                                    .cache = c->cache};
  const laci_graph *graph = c->p->analysis->graph;
  const laci_weighted_graph dense = {graph, (const uint8_t *const *)c->p->weights};
  const laci_weighted_graph mixed = {graph, c->mixed};
  if (laci_interrupted()) return laci_fail(err, LAC_INTERRUPTED, "interrupted");
  return laci_compare_outputs(&dense, &mixed, c->options->calibration->samples, &how, difference,
                              err);
}

/* Returns the loss at a point of the curve, in the unit of max_drop. It is a first guess, on few
   samples. */
static double estimate_loss(const laci_output_difference *d) {
  if (d->n_labelled > 0) return 100 * (double)(d->n_right_a - d->n_right_b) / (double)d->n_labelled;
  return 100 * laci_worst_part_error(d);
}

/* Puts the layer's weight of a fit into c->mixed; its dense weight if `from` is NULL. */
static void use_weight_of_layer(chooser *c, int layer, const laci_calibrated *from) {
  int s = c->p->analysis->layers[layer].stored;
  c->mixed[s] = from && from->weights[s] ? from->weights[s] : c->p->weights[s];
}

/* Judges the loss of a pruned network. *holds: the loss is within the limit, or there is no
 * limit. */
static lac_status judge_loss_of_fit(chooser *c, const laci_calibrated *fitted, bool *holds,
                                    lac_error *err) {
  const double most = c->options->calibration->max_drop;
  const int n_stored = c->p->analysis->graph->n_stored;
  *holds = true;
  if (most < 0) return LAC_OK;
  const uint8_t **weights = laci_alloc((size_t)n_stored + 1, sizeof *weights);
  if (!weights) return laci_fail_memory(err, "a network to be judged");
  for (int s = 0; s < n_stored; s++)
    weights[s] = fitted->weights[s] ? fitted->weights[s] : c->p->weights[s];
  const laci_weighted_graph pruned = {c->p->analysis->graph, weights};
  const laci_drop_candidate candidate = {&fitted->cut, &pruned, c->pool, c->cache};
  lac_status st = laci_pruning_judge_drop(c->p, c->options, &candidate, &c->drop, err);
  *holds = c->drop.most <= most;
  laci_free(weights);
  return st;
}

/* ---- Ranking the layers ---- */

/* Compares two layers for sorting. Layers that a wanted speed needs come first. The others are
 * sorted by their effect for each second that pruning them saves. */
static int compare_effects_for_time(const void *a, const void *b) {
  const ranked_layer *x = a, *y = b;
  const bool saves_x = x->saved > 0, saves_y = y->saved > 0;
  if (x->kept != y->kept) return x->kept ? -1 : 1;
  if (saves_x != saves_y) return saves_x ? -1 : 1;
  const double of_x = saves_x ? x->effect / x->saved : x->effect;
  const double of_y = saves_y ? y->effect / y->saved : y->effect;
  if (of_x != of_y) return of_x < of_y ? -1 : 1;
  return x->layer - y->layer;
}

static int compare_effects(const void *a, const void *b) {
  const ranked_layer *x = a, *y = b;
  if (x->effect != y->effect) return x->effect < y->effect ? -1 : 1;
  return x->layer - y->layer;
}

/* Lists the layers to be ranked. Of several layers that share a weight, only the first is listed.
 */
static void list_rankable_layers(chooser *c, const bool *wanted) {
  const laci_analysis *a = c->p->analysis;
  for (int l = 0; l < a->n_layers; l++) {
    bool first = wanted[l] && c->all->weights[a->layers[l].stored];
    for (int k = 0; first && k < c->n; k++)
      first = a->layers[c->ranking[k].layer].stored != a->layers[l].stored;
    if (first) c->ranking[c->n++].layer = l;
  }
}

/* Finds how much time pruning each layer saves, and which layers must be pruned to reach a wanted
 * speed. */
static lac_status find_time_savings(chooser *c, lac_error *err) {
  const laci_prune_timing *timing = c->options->timing;
  const bool fast = timing && timing->speed > 0;
  if (!timing) return LAC_OK;
  laci_speed_layer *layers = laci_alloc((size_t)c->n + 1, sizeof *layers);
  if (!layers) return laci_fail_memory(err, "the predicted times");
  for (int k = 0; k < c->n; k++)
    layers[k] = (laci_speed_layer){.layer = c->ranking[k].layer, .error = c->ranking[k].effect};
  laci_speed_choice choice = {c->p->analysis, timing, c->always, layers, c->n, 0};
  lac_status st =
      fast ? laci_speed_choose_for_target(&choice, err) : laci_speed_find_savings(&choice, err);
  for (int k = 0; k < c->n && !st; k++) {
    c->ranking[k].saved = layers[k].saved;
    c->ranking[k].kept = fast && layers[k].pruned;
  }
  if (!st && fast)
    laci_log(LAC_LOG_INFO, "%g times the speed of the dense network is wanted: %.3g predicted",
             timing->speed, choice.reached);
  laci_free(layers);
  return st;
}

/* Measures how much the layer alone, with its weights of this fit, changes the network's outputs.
 * Raises ranked->effect to that. */
static lac_status measure_effect(chooser *c, const laci_calibrated *from, ranked_layer *ranked,
                                 lac_error *err) {
  laci_output_difference difference;
  use_weight_of_layer(c, ranked->layer, from);
  lac_status st = compare_outputs_with_dense(c, MOST_ALONE, MOST_ALONE, &difference, err);
  use_weight_of_layer(c, ranked->layer, NULL);
  if (!st) ranked->effect = fmax(ranked->effect, laci_worst_part_shift(&difference));
  return st;
}

/* Measures the effects of all layers by two fits. That of each layer alone shows what its mask
 * loses. That of all layers shows, too, what the layer has to make up for. */
static lac_status measure_effects(chooser *c, const bool *wanted, lac_error *err) {
  laci_calibrated *alone = NULL;
  lac_status st = laci_pruning_fit_each_alone(c->p, c->options, wanted, c->pool, &alone, err);
  for (int k = 0; k < c->n && !st; k++) {
    laci_progress("layers alone", k, c->n);
    c->ranking[k].effect = 0;
    st = measure_effect(c, alone, &c->ranking[k], err);
    if (!st) st = measure_effect(c, c->all, &c->ranking[k], err);
  }
  laci_calibrated_destroy(alone);
  if (!st) laci_progress("layers alone", c->n, c->n);
  return st;
}

/* Are layers ranked by the errors of their own outputs? They are if those of the network cannot be
 * compared, and if all layers stay dense anyway. */
static bool ranks_by_own_outputs(const chooser *c) {
  const laci_prune_calibration *how = c->options->calibration;
  return c->all->outputs_reason || (how->keep_dense >= c->n && !how->curve);
}

/* Ranks the layers by their effects on the network's outputs, or by the errors of their own. */
static lac_status rank_layers(chooser *c, const bool *wanted, lac_error *err) {
  for (int k = 0; k < c->n; k++)
    c->ranking[k].effect = c->all->layers[c->ranking[k].layer].error_after;
  lac_status st = ranks_by_own_outputs(c) ? LAC_OK : measure_effects(c, wanted, err);
  if (st) return st;
  st = find_time_savings(c, err);
  if (st) return st;
  qsort(c->ranking, (size_t)c->n, sizeof *c->ranking,
        c->options->timing ? compare_effects_for_time : compare_effects);
  for (int k = 0; k < c->n; k++) c->p->layers[c->ranking[k].layer].effect = c->ranking[k].effect;
  return LAC_OK;
}

/* ---- Measuring the loss over the number of pruned layers ---- */

static lac_status measure_loss_curve(chooser *c, lac_error *err) {
  laci_pruning_calibration *to = &c->p->calibration;
  if (c->all->outputs_reason) return LAC_OK;
  to->points = laci_alloc((size_t)c->n + 1, sizeof *to->points);
  if (!to->points) return laci_fail_memory(err, "the loss over the layers");
  lac_status st = LAC_OK;
  for (int k = 0; k <= c->n && !st; k++) {
    laci_pruning_point *point = &to->points[k];
    *point = (laci_pruning_point){.layer = -1};
    laci_progress("loss over layers", k, c->n + 1);
    if (k > 0) {
      point->layer = c->ranking[k - 1].layer;
      point->effect = c->ranking[k - 1].effect;
      use_weight_of_layer(c, point->layer, c->all);
    }
    st = compare_outputs_with_dense(c, 1, MOST_SAMPLES, &point->difference, err);
  }
  for (int k = 0; k < c->n; k++) use_weight_of_layer(c, c->ranking[k].layer, NULL);
  laci_progress("loss over layers", c->n + 1, c->n + 1);
  if (!st) to->n_points = c->n + 1;
  return st;
}

/* ---- Choosing the layers that stay dense ---- */

/* Sets wanted[] for the first n layers of the ranking, and for all layers that share their
 * weights. */
static void select_first_layers(const chooser *c, int n, bool *wanted) {
  const laci_analysis *a = c->p->analysis;
  for (int k = 0; k < c->n; k++) {
    for (int l = 0; l < a->n_layers; l++) {
      if (a->layers[l].stored == a->layers[c->ranking[k].layer].stored && a->layers[l].eligible)
        wanted[l] = k < n;
    }
  }
}

static lac_status fit_first_layers(chooser *c, int n, bool *wanted, laci_calibrated **fitted,
                                   lac_error *err) {
  select_first_layers(c, n, wanted);
  return laci_pruning_fit_layers(c->p, c->options, wanted, c->pool, fitted, err);
}

/* Returns the largest number of pruned layers, below n, for which the curve's loss is at most
 * `most`. */
static int guess_layer_count_by_curve(const chooser *c, int n, double most) {
  const laci_pruning_calibration *curve = &c->p->calibration;
  int best = 0;
  for (int k = 0; k < n && k < curve->n_points; k++) {
    if (estimate_loss(&curve->points[k].difference) <= most) best = k;
  }
  return best;
}

static void log_tried_layers(const chooser *c, int n, bool holds) {
  const laci_judged_drop *d = &c->drop;
  char most[64] = "";
  if (!d->hopeless) (void)snprintf(most, sizeof most, ", at most %.3g", d->most);
  laci_log(LAC_LOG_INFO, "%d layer%s pruned: %.3g %s lost%s; %s", n, laci_plural(n), d->found,
           d->measure == LACI_DROP_TOP1        ? "points of top-1"
           : d->measure == LACI_DROP_ANSWERS   ? "percent of the answers"
           : d->measure == LACI_DROP_POSITIONS ? "percent of the positions"
                                               : "percent of the outputs",
           most, holds ? "within the limit" : "too much");
}

/* Searches by bisection for the largest number of pruned layers with a loss within the limit. 0
 * layers are within it, and `bad` layers are not. *best is the fit with *n layers pruned. */
static lac_status bisect_layer_count(chooser *c, int bad, bool *wanted, int *n,
                                     laci_calibrated **best, lac_error *err) {
  const double most = c->options->calibration->max_drop;
  int good = 0, at = guess_layer_count_by_curve(c, bad, most);
  laci_judged_drop held = {.n = 0};
  lac_status st = LAC_OK;
  for (int tries = 0; !st && bad - good > 1 && tries < MOST_TRIES; tries++) {
    laci_calibrated *tried = NULL;
    if (at <= good || at >= bad) at = good + (bad - good) / 2;
    st = fit_first_layers(c, at, wanted, &tried, err);
    bool holds = false;
    if (!st) st = judge_loss_of_fit(c, tried, &holds, err);
    if (!st) log_tried_layers(c, at, holds);
    if (holds) {
      laci_calibrated_destroy(*best);
      *best = tried;
      held = c->drop;
      good = at;
    } else {
      laci_calibrated_destroy(tried);
      bad = at;
    }
    at = -1;
  }
  c->drop = held;
  *n = good;
  return st;
}

static lac_status set_reasons_of_dense_layers(const chooser *c, int n, lac_error *err) {
  laci_pruning *p = c->p;
  for (int k = n; k < c->n; k++) {
    char text[200], saves[64] = "";
    if (c->options->timing)
      (void)snprintf(saves, sizeof saves, ", and is predicted to save %.3g us",
                     1e6 * c->ranking[k].saved);
    (void)snprintf(text, sizeof text, "left dense: pruned alone it changes %s by %.3g %%%s",
                   ranks_by_own_outputs(c) ? "its own outputs" : "the network's outputs",
                   100 * c->ranking[k].effect, saves);
    laci_pruned_layer *layer = &p->layers[c->ranking[k].layer];
    layer->kept = layer->total;
    layer->reason = laci_arena_text(&p->arena, text);
    if (!layer->reason) return laci_fail_memory(err, "the pruning");
    laci_log(LAC_LOG_INFO, "%s: %s", name_of_layer(p->analysis, c->ranking[k].layer),
             layer->reason);
  }
  p->calibration.n_kept_dense = c->n - n;
  return LAC_OK;
}

/* Fits the layers that must be pruned for a wanted speed, and judges the loss. */
static lac_status fit_and_judge_for_speed(chooser *c, bool *wanted, int *n, laci_calibrated **best,
                                          lac_error *err) {
  const laci_prune_calibration *how = c->options->calibration;
  bool holds = true;
  *n = 0;
  while (*n < c->n && c->ranking[*n].kept) ++*n;
  lac_status st = *n < c->n ? fit_first_layers(c, *n, wanted, best, err) : LAC_OK;
  if (!st && *best) st = judge_loss_of_fit(c, *best, &holds, err);
  else if (!st) holds = how->max_drop < 0 || c->drop.most <= how->max_drop;
  if (!st && *best && how->max_drop >= 0) log_tried_layers(c, *n, holds);
  if (!st && !holds)
    st = laci_fail(err, LAC_UNSUPPORTED,
                   "%g times the speed of the dense network is wanted within a loss of at most %g: "
                   "%.3g is lost by the choice of layers that harms least",
                   c->options->timing->speed, how->max_drop, c->drop.found);
  return st;
}

/* Chooses *n, how many layers to prune: the first *n of the ranking. *best is the fit with these
 * layers pruned; NULL: all layers are pruned, and their fit is kept. */
static lac_status choose_layer_count(chooser *c, bool *wanted, int *n, laci_calibrated **best,
                                     lac_error *err) {
  const laci_prune_calibration *how = c->options->calibration;
  *n = how->keep_dense < c->n ? c->n - how->keep_dense : 0;
  lac_status st = *n < c->n ? fit_first_layers(c, *n, wanted, best, err) : LAC_OK;
  if (st) return st;
  bool holds = true;
  if (*best) st = judge_loss_of_fit(c, *best, &holds, err);
  else holds = how->max_drop < 0 || c->drop.most <= how->max_drop;
  if (!st && !holds && *n > 0) {
    laci_calibrated_destroy(*best);
    *best = NULL;
    st = bisect_layer_count(c, *n, wanted, n, best, err);
  }
  if (!st && !*best && *n < c->n) { /* makes the fit in which no layer is pruned */
    st = fit_first_layers(c, *n, wanted, best, err);
    if (!st) st = judge_loss_of_fit(c, *best, &holds, err);
  }
  select_first_layers(c, *n, wanted);
  return st;
}

/* Returns the number of bytes that all outputs take for one sample. Unknown sizes are assumed. */
static uint64_t output_bytes_per_sample(const laci_graph *graph) {
  enum { GUESS = 4096 };
  uint64_t sum = 0;
  for (int i = 0; i < graph->n_outputs; i++) {
    const laci_shape *shape = &graph->values[graph->outputs[i]].type.shape;
    const int64_t n = shape->rank > 1 ? laci_shape_count_range(shape, 1, shape->rank) : GUESS;
    sum += (n > 0 ? (uint64_t)n : GUESS) * sizeof(double);
  }
  return sum;
}

/* Allocates memory for the dense network's outputs: a small share of the memory limit, reserved
 * before any other memory. */
static void create_kept_outputs(chooser *c, laci_budget *budget, laci_prune_options *options) {
  enum { SHARE = 32 };
  const laci_calibration_samples *samples = options->calibration->samples;
  if (!options->budget) return;
  *budget = *options->budget;
  uint64_t bytes = output_bytes_per_sample(c->p->analysis->graph) *
                   (uint64_t)(samples->count + samples->judging);
  if (bytes > budget->limit / SHARE) bytes = budget->limit / SHARE;
  if (!laci_budget_allows(budget, bytes)) return;
  laci_budget_add(budget, bytes, "outputs of the dense network");
  c->cache = laci_output_cache_create(bytes);
  options->budget = budget;
}

static lac_status init_chooser(chooser *c, lac_error *err) {
  const int n_stored = c->p->analysis->graph->n_stored;
  c->ranking = laci_alloc((size_t)c->p->analysis->n_layers, sizeof *c->ranking);
  c->mixed = laci_alloc((size_t)n_stored, sizeof *c->mixed);
  c->always = laci_alloc((size_t)c->p->analysis->n_layers, sizeof *c->always);
  if (!c->ranking || !c->mixed || !c->always)
    return laci_fail_memory(err, "the layers that stay dense");
  for (int s = 0; s < n_stored; s++) c->mixed[s] = c->p->weights[s];
  for (int l = 0; l < c->p->analysis->n_layers; l++)
    c->always[l] = laci_pruning_keeps_mask_of_layer(c->p, c->options, l);
  return LAC_OK;
}

/* Sets *limited: the loss of the fit with all layers pruned may exceed the limit. If the user wants
 * a number of layers to stay dense anyway, this is assumed without a measurement. */
static lac_status may_loss_exceed_limit(chooser *c, bool *limited, lac_error *err) {
  const laci_prune_calibration *how = c->options->calibration;
  bool holds = true;
  *limited = how->max_drop >= 0;
  if (!*limited) return LAC_OK;
  if (c->all->outputs_reason) {
    return laci_fail(err, LAC_UNSUPPORTED,
                     "a loss of at most %g is wanted, but the outputs cannot be compared: %s",
                     how->max_drop, c->all->outputs_reason);
  }
  if (how->keep_dense > 0) return LAC_OK;
  lac_status st = judge_loss_of_fit(c, c->all, &holds, err);
  if (!st) log_tried_layers(c, c->n, holds);
  *limited = !holds;
  return st;
}

lac_status laci_pruning_choose_dense_layers(laci_pruning *p, const laci_prune_options *options,
                                            laci_pool *pool, bool *wanted, laci_calibrated **fitted,
                                            lac_error *err) {
  const laci_prune_calibration *how = options->calibration;
  const bool fast = options->timing && options->timing->speed > 0;
  if (how->keep_dense <= 0 && how->max_drop < 0 && !how->curve && !fast) return LAC_OK;
  laci_prune_options own = *options;
  laci_budget budget;
  chooser c = {.p = p, .options = &own, .pool = pool, .all = *fitted};
  laci_calibrated *best = NULL;
  int n = 0;
  bool limited = false;
  create_kept_outputs(&c, &budget, &own);
  lac_status st = init_chooser(&c, err);
  if (!st) list_rankable_layers(&c, wanted);
  if (!st) st = may_loss_exceed_limit(&c, &limited, err);
  const bool ranks = how->keep_dense > 0 || limited || how->curve || fast;
  if (!st && ranks) st = rank_layers(&c, wanted, err);
  if (!st && (how->curve || (limited && !fast))) st = measure_loss_curve(&c, err);
  if (!st && fast) st = fit_and_judge_for_speed(&c, wanted, &n, &best, err);
  else if (!st && ranks) st = choose_layer_count(&c, wanted, &n, &best, err);
  if (!st && ranks) st = set_reasons_of_dense_layers(&c, n, err);
  p->calibration.drop = c.drop;
  if (!st && best) {
    laci_calibrated *worse = *fitted;
    *fitted = best;
    best = worse;
  }
  laci_calibrated_destroy(best);
  laci_free(c.ranking);
  laci_free(c.mixed);
  laci_free(c.always);
  laci_output_cache_destroy(c.cache);
  return st;
}
