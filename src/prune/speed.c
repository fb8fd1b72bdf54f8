/* SPDX-License-Identifier: Apache-2.0
 * Chooses which layers to prune for a wanted speed (speed.h). */
#include "prune/speed.h"

#include <math.h>
#include <string.h>

#include "analyze/analyze.h"
#include "base/error.h"
#include "base/memory.h"

enum { BUCKETS = 4096, MOST_TRIES = 10, MOST_HALVINGS = 6 };
static const double finest = 0.005;

/* ---- Choosing layers by dynamic programming ---- */

static void choose_all_layers_that_save_time(laci_speed_layer *layers, int n) {
  for (int k = 0; k < n; k++) layers[k].pruned = layers[k].saved > 0;
}

/* Returns the number of buckets that a layer's saved time fills. It is rounded down, so that a
 * choice never saves less than it seems to. */
static int count_buckets_filled(double saved, double needed) {
  const double n = floor(saved / needed * BUCKETS);
  return !(n > 0) ? 0 : n < BUCKETS ? (int)n : BUCKETS;
}

/* Fills the table of dynamic programming. least[b]: the least error with which some of the first k
 * layers fill b buckets or more. taken[k][b]: layer k is one of them. */
static bool fill_bucket_table(const laci_speed_layer *layers, int n, double needed, double *least,
                              uint8_t *taken) {
  for (int b = 0; b <= BUCKETS; b++) least[b] = b > 0 ? INFINITY : 0;
  for (int k = 0; k < n; k++) {
    const int fills = count_buckets_filled(layers[k].saved, needed);
    for (int b = BUCKETS; b > 0 && fills > 0; b--) {
      const double with = least[b > fills ? b - fills : 0] + layers[k].error;
      if (!(with < least[b])) continue;
      least[b] = with;
      taken[(size_t)k * (BUCKETS + 1) + (size_t)b] = 1;
    }
  }
  return isfinite(least[BUCKETS]);
}

bool laci_speed_choose_layers(laci_speed_layer *layers, int n, double needed) {
  for (int k = 0; k < n; k++) layers[k].pruned = false;
  if (!(needed > 0)) return true;
  double *least = laci_alloc(BUCKETS + 1, sizeof *least);
  uint8_t *taken = laci_alloc((size_t)n + 1, BUCKETS + 1);
  const bool fits = least && taken && fill_bucket_table(layers, n, needed, least, taken);
  for (int k = n, b = BUCKETS; fits && k-- > 0 && b > 0;) {
    layers[k].pruned = taken[(size_t)k * (BUCKETS + 1) + (size_t)b];
    const int left = b - count_buckets_filled(layers[k].saved, needed);
    if (layers[k].pruned) b = left > 0 ? left : 0;
  }
  laci_free(least);
  laci_free(taken);
  if (!fits) choose_all_layers_that_save_time(layers, n);
  return fits;
}

/* ---- Predicting ---- */

typedef struct search {
  laci_speed_choice *choice;
  const laci_analysis *a;
  laci_speed_layer *layers;
  int n;
  bool *pruned;    /* [n_layers] the layers that a predicted run prunes */
  double *seconds; /* [n_layers] predicted seconds of each layer */
  double dense, all, needed;
} search;

static lac_status alloc_search_memory(search *s, laci_speed_choice *choice, lac_error *err) {
  *s = (search){.choice = choice, .a = choice->analysis, .layers = choice->layers, .n = choice->n};
  s->pruned = laci_alloc((size_t)s->a->n_layers + 1, sizeof *s->pruned);
  s->seconds = laci_alloc((size_t)s->a->n_layers + 1, sizeof *s->seconds);
  return s->pruned && s->seconds ? LAC_OK : laci_fail_memory(err, "the predicted times");
}

static void free_search_memory(search *s) {
  laci_free(s->pruned);
  laci_free(s->seconds);
}

/* Predicts the time of a run in which the chosen layers are pruned, and all layers that share their
 * weights. */
static lac_status predict_chosen_run(search *s, double *seconds, lac_error *err) {
  const laci_analysis *a = s->a;
  for (int l = 0; l < a->n_layers; l++) s->pruned[l] = s->choice->always && s->choice->always[l];
  for (int k = 0; k < s->n; k++) {
    const int stored = a->layers[s->layers[k].layer].stored;
    for (int l = 0; s->layers[k].pruned && l < a->n_layers; l++)
      if (a->layers[l].stored == stored) s->pruned[l] = true;
  }
  const laci_prune_timing *timing = s->choice->timing;
  return timing->predict(timing->context, s->pruned, s->seconds, seconds, err);
}

/* Adds to each listed layer's `saved` the seconds of all layers with its weight, times `by`. */
static void add_seconds_of_weight(search *s, double by) {
  for (int k = 0; k < s->n; k++) {
    const int stored = s->a->layers[s->layers[k].layer].stored;
    for (int l = 0; l < s->a->n_layers; l++)
      if (s->a->layers[l].stored == stored) s->layers[k].saved += by * s->seconds[l];
  }
}

static lac_status predict_savings(search *s, lac_error *err) {
  for (int k = 0; k < s->n; k++) {
    s->layers[k].pruned = false;
    s->layers[k].saved = 0;
  }
  lac_status st = predict_chosen_run(s, &s->dense, err);
  if (st) return st;
  add_seconds_of_weight(s, 1);
  for (int k = 0; k < s->n; k++) s->layers[k].pruned = true;
  st = predict_chosen_run(s, &s->all, err);
  if (!st) add_seconds_of_weight(s, -1);
  return st;
}

lac_status laci_speed_find_savings(laci_speed_choice *choice, lac_error *err) {
  search s;
  lac_status st = alloc_search_memory(&s, choice, err);
  if (!st) st = predict_savings(&s, err);
  free_search_memory(&s);
  return st;
}

/* ---- The search ---- */

/* Chooses layers whose savings add up to `asked` seconds. *saves: what a plan with these layers
 * saves by prediction. */
static lac_status choose_and_predict(search *s, double asked, double *saves, lac_error *err) {
  double seconds;
  (void)laci_speed_choose_layers(s->layers, s->n, asked);
  lac_status st = predict_chosen_run(s, &seconds, err);
  *saves = s->dense - seconds;
  return st;
}

/* Increases the seconds that layers are asked to save until the plan saves as much as is needed.
 * Then lowers them as long as the plan still does. */
static lac_status adjust_asked_seconds(search *s, lac_error *err) {
  double low = 0, asked = s->needed, most = 0, saves = 0;
  lac_status st = LAC_OK;
  for (int k = 0; k < s->n; k++) most += fmax(s->layers[k].saved, 0);
  bool enough = false;
  double step = finest * s->needed;
  for (int at = 0; at < MOST_TRIES && !enough && !st; at++) {
    st = choose_and_predict(s, asked, &saves, err);
    enough = saves >= s->needed;
    if (enough) break;
    low = asked;
    if (asked >= most) break;
    step = 2 * fmax(step, (s->needed - saves) / 2);
    asked = fmin(most, asked + step);
  }
  for (int at = 0; at < MOST_HALVINGS && enough && low > 0 && !st; at++) {
    const double between = (low + asked) / 2;
    st = choose_and_predict(s, between, &saves, err);
    if (saves >= s->needed) asked = between;
    else low = between;
  }
  if (!st && enough) return choose_and_predict(s, asked, &saves, err);
  /* no smaller choice was found: pruning all layers reaches the wanted speed */
  for (int k = 0; k < s->n; k++) s->layers[k].pruned = true;
  return st;
}

lac_status laci_speed_choose_for_target(laci_speed_choice *choice, lac_error *err) {
  const double speed = choice->timing->speed;
  search s;
  double seconds = 0;
  lac_status st = alloc_search_memory(&s, choice, err);
  if (!st) st = predict_savings(&s, err);
  s.needed = s.dense - s.dense / speed;
  if (!st && s.dense - s.all < s.needed)
    st = laci_fail(err, LAC_UNSUPPORTED,
                   "%g times the speed of the dense network is wanted: %.3g is the most that "
                   "pruning all eligible layers is predicted to give",
                   speed, s.all > 0 ? s.dense / s.all : 1);
  if (!st) st = adjust_asked_seconds(&s, err);
  if (!st) st = predict_chosen_run(&s, &seconds, err);
  choice->reached = seconds > 0 ? s.dense / seconds : 1;
  free_search_memory(&s);
  return st;
}
