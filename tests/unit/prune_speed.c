/* SPDX-License-Identifier: Apache-2.0
 * The layers that are pruned for a wanted speed: as good as any choice, and what the plan says of
 * them together counts. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/analyze.h"
#include "base/rng.h"
#include "prune/speed.h"

enum { N = 12, SHARED = N + 1, CASES = 40 };

static double draw(int what, int at) {
  return laci_rng_unit_interval(3, (uint64_t)what, (uint64_t)at);
}

static void make_layers(int at, laci_speed_layer *layers) {
  for (int k = 0; k < N; k++)
    layers[k] = (laci_speed_layer){
        .layer = k, .error = draw(at, k), .saved = draw(at, N + k) - (k % 5 == 4 ? 0.8 : 0)};
}

static double total(const laci_speed_layer *layers, bool errors) {
  double sum = 0;
  for (int k = 0; k < N; k++)
    if (layers[k].pruned) sum += errors ? layers[k].error : layers[k].saved;
  return sum;
}

/* The least error of all choices that save so much. */
static double least_error(const laci_speed_layer *layers, double needed) {
  double least = INFINITY;
  for (unsigned set = 0; set < 1u << N; set++) {
    double error = 0, saved = 0;
    for (int k = 0; k < N; k++) {
      if (!(set >> k & 1)) continue;
      error += layers[k].error;
      saved += layers[k].saved;
    }
    if (saved >= needed && error < least) least = error;
  }
  return least;
}

/* The first layers in the order of the network that save so much. */
static double error_in_order(const laci_speed_layer *layers, double needed) {
  double error = 0, saved = 0;
  for (int k = 0; k < N && saved < needed; k++) {
    error += layers[k].error;
    saved += layers[k].saved;
  }
  return error;
}

static void no_choice_harms_less(void **state) {
  (void)state;
  double in_order = 0, chosen = 0;
  for (int at = 0; at < CASES; at++) {
    laci_speed_layer layers[N];
    make_layers(at, layers);
    const double needed = 0.2 + 2.5 * draw(at, 2 * N);
    assert_true(laci_speed_choose_layers(layers, N, needed));
    assert_true(total(layers, false) >= needed);
    /* buckets are narrow: a little more than is needed brings the same choice */
    assert_true(total(layers, true) <= least_error(layers, needed * (1 + 2.0 * N / 4096)) + 1e-12);
    chosen += total(layers, true);
    in_order += error_in_order(layers, needed);
  }
  assert_true(chosen < 0.8 * in_order);
}

static void nothing_is_pruned_for_nothing(void **state) {
  (void)state;
  laci_speed_layer layers[N];
  make_layers(0, layers);
  assert_true(laci_speed_choose_layers(layers, N, 0));
  for (int k = 0; k < N; k++) assert_false(layers[k].pruned);
  /* more than there is: all that saves time */
  assert_false(laci_speed_choose_layers(layers, N, 1e3));
  for (int k = 0; k < N; k++) assert_int_equal(layers[k].pruned, layers[k].saved > 0);
}

/* ---- A plan ---- */

typedef struct network {
  double saves[SHARED];
  double reorder; /* between a pruned layer and one that is not */
  int n_asked;
} network;

static lac_status predict(void *context, const bool *pruned, double *layers, double *seconds,
                          lac_error *err) {
  network *net = context;
  (void)err;
  net->n_asked++;
  *seconds = 0;
  for (int l = 0; l < SHARED; l++) {
    layers[l] = 2 - (pruned[l] ? net->saves[l] : 0);
    *seconds += layers[l];
    if (l > 0 && pruned[l] != pruned[l - 1]) *seconds += net->reorder;
  }
  return LAC_OK;
}

static void open_network(int at, laci_layer *layers, laci_analysis *a, network *net,
                         laci_speed_layer *choices) {
  *a = (laci_analysis){.n_layers = SHARED, .layers = layers};
  make_layers(at, choices);
  for (int l = 0; l < SHARED; l++) {
    layers[l] = (laci_layer){.stored = l % N}; /* the last layer has the weight of the first */
    net->saves[l] = fmax(0, choices[l % N].saved);
  }
}

static void a_speed_is_reached_with_reorders(void **state) {
  (void)state;
  for (int at = 0; at < CASES; at++) {
    laci_layer of[SHARED];
    laci_analysis a;
    network net = {.reorder = 0.05};
    laci_speed_layer choices[N];
    open_network(at, of, &a, &net, choices);
    const laci_prune_timing timing = {predict, &net, 1 + 0.1 * draw(at, 2 * N)};
    lac_error err = {0};
    laci_speed_choice choice = {&a, &timing, NULL, choices, N, 0};
    if (laci_speed_choose_for_target(&choice, &err)) fail_msg("%s", err.text);
    assert_true(choice.reached >= timing.speed);
    bool pruned[SHARED] = {false};
    double seconds, layers[SHARED];
    int n = 0;
    for (int l = 0; l < SHARED; l++) n += pruned[l] = choices[l % N].pruned;
    assert_int_equal(predict(&net, pruned, layers, &seconds, NULL), LAC_OK);
    assert_true(fabs(2 * SHARED / seconds - choice.reached) < 1e-9);
    assert_true(n < SHARED);
    assert_true(net.n_asked < 24);
  }
}

static void what_no_plan_reaches_is_said(void **state) {
  (void)state;
  laci_layer of[SHARED];
  laci_analysis a;
  network net = {.reorder = 0};
  laci_speed_layer choices[N];
  open_network(1, of, &a, &net, choices);
  const laci_prune_timing timing = {predict, &net, 3};
  lac_error err = {0};
  laci_speed_choice choice = {&a, &timing, NULL, choices, N, 0};
  assert_int_equal(laci_speed_choose_for_target(&choice, &err), LAC_UNSUPPORTED);
  assert_non_null(strstr(err.text, "3 times the speed"));
  assert_non_null(strstr(err.text, "is the most"));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(no_choice_harms_less),
                                     cmocka_unit_test(nothing_is_pruned_for_nothing),
                                     cmocka_unit_test(a_speed_is_reached_with_reorders),
                                     cmocka_unit_test(what_no_plan_reaches_is_said)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
