/* SPDX-License-Identifier: Apache-2.0
 * calibrate/choose: the chosen samples are those whose statistics a network's normalizations store,
 * the same ones for any number of threads. */
#include "calibrate/choose.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/rng.h"
#include "cpu/pool.h"
#include "support/graph_build.h"

enum { N = 120, WANTED = 30, SAMPLE = 2 * 4 * 4 };

/* Every third sample has the mean 3 and the deviation 2 of the network below; the others are far
 * from it, and differ from each other. */
static bool is_like_training(int64_t at) { return at % 3 == 1; }

static lac_status fetch(void *context, int64_t first, int64_t n, void *const *to, lac_error *err) {
  (void)context;
  (void)err;
  float *x = to[0];
  for (int64_t k = 0; k < n; k++) {
    const bool like = is_like_training(first + k);
    for (int e = 0; e < SAMPLE; e++) {
      const uint64_t counter = (uint64_t)((first + k) * SAMPLE + e);
      const double u = laci_rng_unit_interval(7, 1, counter) +
                       laci_rng_unit_interval(7, 2, counter) +
                       laci_rng_unit_interval(7, 3, counter) - 1.5; /* of deviation 1/2 */
      x[k * SAMPLE + e] = (float)(like ? 3 + 4 * u : (first + k) % 3 ? 9 + u : -20 + 30 * u);
    }
  }
  return LAC_OK;
}

static const laci_shape shapes[] = {{4, {1, 2, 4, 4}}};
static const laci_calibration_samples candidates = {.count = N, .shapes = shapes, .fetch = fetch};

static laci_graph *read_net(const char *text) {
  laci_graph *graph = NULL;
  lac_error err = {0};
  if (net_read(text, &graph, &err)) fail_msg("%s", err.text);
  return graph;
}

static laci_graph *normalizing_net(void) {
  return read_net(
      "input x -1x2x4x4\n"
      "stored one 1x1x1x1 f32 = 1.0\ny = Mul(x, one)\n"
      "stored s 2 f32 = 1.0 1.0\nstored b 2 f32 = 0.0 0.0\n"
      "stored m 2 f32 = 3.0 3.0\nstored v 2 f32 = 4.0 4.0\n"
      "z = BatchNormalization(y, s, b, m, v)\nr = Relu(z)\noutput r\n");
}

static laci_choice choose(const laci_graph *graph, int threads, int64_t *places) {
  laci_pool *pool = NULL;
  laci_choice choice;
  lac_error err = {0};
  if (laci_pool_create(threads, &pool, &err)) fail_msg("%s", err.text);
  const laci_choose_options options = {.candidates = &candidates, .n = WANTED, .pool = pool};
  if (laci_choose_samples(graph, &options, places, &choice, &err)) fail_msg("%s", err.text);
  laci_pool_destroy(pool);
  return choice;
}

static void samples_like_those_of_training_are_chosen(void **state) {
  (void)state;
  laci_graph *graph = normalizing_net();
  int64_t places[WANTED];
  bool taken[N] = {false};
  const laci_choice choice = choose(graph, 1, places);
  int like = 0;
  for (int k = 0; k < WANTED; k++) {
    assert_true(places[k] >= 0 && places[k] < N);
    assert_false(taken[places[k]]);
    taken[places[k]] = true;
    like += is_like_training(places[k]);
  }
  assert_true(like >= WANTED - 2);
  assert_int_equal(choice.n_norms, 1);
  assert_true(choice.chosen < choice.first / 100);
  laci_graph_destroy(graph);
}

static void the_choice_does_not_depend_on_threads(void **state) {
  (void)state;
  laci_graph *graph = normalizing_net();
  int64_t places[WANTED], again[WANTED];
  (void)choose(graph, 1, places);
  for (int threads = 2; threads <= 5; threads++) {
    (void)choose(graph, threads, again);
    assert_memory_equal(places, again, sizeof places);
  }
  laci_graph_destroy(graph);
}

static void without_normalizations_the_first_samples_are_taken(void **state) {
  (void)state;
  laci_graph *graph = read_net("input x -1x2x4x4\nr = Relu(x)\noutput r\n");
  int64_t places[WANTED];
  const laci_choice choice = choose(graph, 1, places);
  assert_int_equal(choice.n_norms, 0);
  for (int k = 0; k < WANTED; k++) assert_int_equal(places[k], k);
  laci_graph_destroy(graph);
}

static void every_failing_allocation_is_an_error(void **state) {
  (void)state;
  laci_graph *graph = normalizing_net();
  int64_t places[WANTED];
  laci_choice choice;
  const laci_choose_options options = {.candidates = &candidates, .n = WANTED};
  long n = 1;
  for (;; n++) {
    lac_error err = {0};
    laci_memory_fail_from(n);
    const lac_status st = laci_choose_samples(graph, &options, places, &choice, &err);
    laci_memory_fail_from(0);
    if (!st) break;
    assert_int_equal(st, LAC_NO_MEMORY);
  }
  assert_true(n > 10);
  laci_graph_destroy(graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(samples_like_those_of_training_are_chosen),
      cmocka_unit_test(the_choice_does_not_depend_on_threads),
      cmocka_unit_test(without_normalizations_the_first_samples_are_taken),
      cmocka_unit_test(every_failing_allocation_is_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
