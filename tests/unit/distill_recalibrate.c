/* SPDX-License-Identifier: Apache-2.0
 * Running statistics estimated again: those of a small network computed one number after the other,
 * layer after layer; nothing else changes, nothing at all on failure; the same bytes twice. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/budget.h"
#include "cpu/pool.h"
#include "calibrate/recalibrate.h"
#include "lacuna/log.h"
#include "support/graph_build.h"

enum { SAMPLES = 11, BATCH = 4, USED = 8, CHANNELS = 3, PIXELS = 4, SAMPLE = CHANNELS * PIXELS };

static const char two_norms[] =
    "input x -1x3x2x2\n"
    "stored w 3x3x1x1\nstored s 3\nstored b 3\nstored m 3\nstored v 3 positive\n"
    "stored u 3x3x1x1\nstored t 3\nstored c 3\nstored n 3\nstored q 3 positive\n"
    "h = Conv(x, w)\nk = BatchNormalization(h, s, b, m, v) epsilon=0.01\nr = Relu(k)\n"
    "e = Conv(r, u)\nf = BatchNormalization(e, t, c, n, q) epsilon=0.01\n"
    "y = GlobalAveragePool(f)\noutput y\n";

typedef struct source {
  laci_shape shape;
  int64_t interrupt_at; /* the fetch that asks to stop; -1: none */
  int64_t n_fetched;
  lac_status fails;
} source;

static float pixel(int64_t sample, int i) { return (float)net_number("pixels", sample * 100 + i); }

static lac_status fetch(void *context, int64_t first, int64_t n, void *const *to, lac_error *err) {
  source *s = context;
  float *images = to[0];
  if (s->fails) return laci_fail(err, s->fails, "no more samples");
  if (s->n_fetched++ == s->interrupt_at) lac_interrupt(true);
  for (int64_t k = 0; k < n; k++)
    for (int i = 0; i < SAMPLE; i++) images[k * SAMPLE + i] = pixel(first + k, i);
  return LAC_OK;
}

static laci_graph *read_net(const char *text) {
  lac_error err = {0};
  laci_graph *graph = NULL;
  if (net_read(text, &graph, &err)) fail_msg("%s", err.text);
  return graph;
}

static const laci_stored *stored_of(const laci_graph *graph, const char *name) {
  int value = laci_graph_find_value(graph, name);
  assert_true(value >= 0 && graph->values[value].stored >= 0);
  return &graph->stored[graph->values[value].stored];
}

static const float *floats_of(const laci_graph *graph, const char *name) {
  return (const float *)(const void *)stored_of(graph, name)->bytes;
}

static lac_status recalibrate(laci_graph *graph, source *from, int threads,
                              laci_recalibrated *result, lac_error *err) {
  laci_pool *pool = NULL;
  assert_int_equal(laci_pool_create(threads, &pool, err), LAC_OK);
  from->shape = laci_shape_of(4, (int64_t[]){1, CHANNELS, 2, 2});
  const laci_calibration_samples samples = {
      .count = SAMPLES, .shapes = &from->shape, .fetch = fetch, .context = from};
  const laci_recalibrate_options how = {.batch = BATCH, .first = 1, .n = SAMPLES - 1, .pool = pool};
  lac_status st = laci_recalibrate_batch_norms(graph, &samples, &how, result, err);
  laci_pool_destroy(pool);
  return st;
}

/* ---- One number after the other ---- */

typedef struct layer {
  const char *weight, *scale, *bias;
  double mean[CHANNELS], variance[CHANNELS]; /* summed over batches */
} layer;

/** A layer's product and norm of a batch, in its place; statistics are added. */
static void norm_forward(const laci_graph *graph, layer *l, double x[BATCH][CHANNELS][PIXELS]) {
  double h[BATCH][CHANNELS][PIXELS] = {{{0}}};
  const float *w = floats_of(graph, l->weight);
  const double n = BATCH * PIXELS;
  for (int b = 0; b < BATCH; b++)
    for (int o = 0; o < CHANNELS; o++)
      for (int i = 0; i < CHANNELS; i++)
        for (int p = 0; p < PIXELS; p++) h[b][o][p] += (double)w[o * CHANNELS + i] * x[b][i][p];
  for (int o = 0; o < CHANNELS; o++) {
    double mean = 0, squares = 0;
    for (int b = 0; b < BATCH; b++)
      for (int p = 0; p < PIXELS; p++) mean += h[b][o][p] / n;
    for (int b = 0; b < BATCH; b++)
      for (int p = 0; p < PIXELS; p++) squares += (h[b][o][p] - mean) * (h[b][o][p] - mean);
    l->mean[o] += mean;
    l->variance[o] += squares / (n - 1);
    double factor = (double)floats_of(graph, l->scale)[o] / sqrt(squares / n + 0.01);
    for (int b = 0; b < BATCH; b++)
      for (int p = 0; p < PIXELS; p++)
        x[b][o][p] = (h[b][o][p] - mean) * factor + (double)floats_of(graph, l->bias)[o];
  }
}

static void expect_near(const laci_graph *graph, const char *name, const double *sums) {
  for (int c = 0; c < CHANNELS; c++) {
    double want = sums[c] * BATCH / USED, got = (double)floats_of(graph, name)[c];
    if (!(fabs(got - want) <= 1e-5 * (1 + fabs(want))))
      fail_msg("%s[%d]: %.9g, want %.9g", name, c, got, want);
  }
}

/* ---- Tests ---- */

static void statistics_are_the_mean_over_batches(void **state) {
  lac_error err = {0};
  laci_recalibrated result;
  source from = {.interrupt_at = -1};
  layer first = {.weight = "w", .scale = "s", .bias = "b"};
  layer second = {.weight = "u", .scale = "t", .bias = "c"};
  laci_graph *graph = read_net(two_norms), *before = read_net(two_norms);
  (void)state;
  if (recalibrate(graph, &from, 2, &result, &err)) fail_msg("%s", err.text);
  assert_int_equal(result.n_norms, 2);
  assert_int_equal(result.n_batches, USED / BATCH);
  for (int k = 0; k < USED / BATCH; k++) {
    double x[BATCH][CHANNELS][PIXELS];
    for (int b = 0; b < BATCH; b++)
      for (int i = 0; i < SAMPLE; i++)
        x[b][i / PIXELS][i % PIXELS] = (double)pixel(1 + k * BATCH + b, i);
    norm_forward(before, &first, x);
    for (int i = 0; i < BATCH * SAMPLE; i++) {
      double *at = &x[i / SAMPLE][i % SAMPLE / PIXELS][i % PIXELS];
      *at = fmax(*at, 0);
    }
    norm_forward(before, &second, x);
  }
  expect_near(graph, "m", first.mean);
  expect_near(graph, "v", first.variance);
  expect_near(graph, "n", second.mean);
  expect_near(graph, "q", second.variance);
  const char *const same[] = {"w", "s", "b", "u", "t", "c"};
  for (size_t at = 0; at < sizeof same / sizeof *same; at++)
    assert_memory_equal(stored_of(graph, same[at])->bytes, stored_of(before, same[at])->bytes,
                        stored_of(before, same[at])->size_bytes);
  laci_graph_destroy(graph);
  laci_graph_destroy(before);
}

static void expect_same_stored(const laci_graph *a, const laci_graph *b) {
  for (int s = 0; s < a->n_stored; s++)
    assert_memory_equal(a->stored[s].bytes, b->stored[s].bytes, a->stored[s].size_bytes);
}

static void the_same_again_has_the_same_bytes(void **state) {
  lac_error err = {0};
  laci_recalibrated result;
  laci_graph *a = read_net(two_norms), *b = read_net(two_norms), *c = read_net(two_norms);
  source from = {.interrupt_at = -1};
  (void)state;
  if (recalibrate(a, &from, 2, &result, &err)) fail_msg("%s", err.text);
  if (recalibrate(b, &from, 2, &result, &err)) fail_msg("%s", err.text);
  if (recalibrate(c, &from, 1, &result, &err)) fail_msg("%s", err.text);
  expect_same_stored(a, b);
  expect_same_stored(a, c);
  laci_graph_destroy(a);
  laci_graph_destroy(b);
  laci_graph_destroy(c);
}

static void expect_refusal(const char *text, source from, lac_status want, const char *says) {
  lac_error err = {0};
  laci_recalibrated result;
  laci_graph *graph = read_net(text), *before = read_net(text);
  lac_status st = recalibrate(graph, &from, 1, &result, &err);
  lac_interrupt(false);
  assert_int_equal(st, want);
  if (!strstr(err.text, says)) fail_msg("'%s' does not say '%s'", err.text, says);
  expect_same_stored(graph, before);
  laci_graph_destroy(graph);
  laci_graph_destroy(before);
}

static void a_failure_leaves_all_as_it_was(void **state) {
  (void)state;
  expect_refusal("input x -1x3x2x2\nstored w 3x3x1x1\ny = Conv(x, w)\noutput y\n",
                 (source){.interrupt_at = -1}, LAC_UNSUPPORTED, "has no BatchNormalization");
  expect_refusal("input x -1x3x2x2\ninput z 1\ny = Mul(x, z)\noutput y\n",
                 (source){.interrupt_at = -1}, LAC_UNSUPPORTED, "2 inputs");
  expect_refusal(two_norms, (source){.interrupt_at = 1}, LAC_INTERRUPTED, "interrupted");
  expect_refusal(two_norms, (source){.interrupt_at = -1, .fails = LAC_IO}, LAC_IO,
                 "no more samples");
  expect_refusal(
      "input x -1x3x2x2\nstored s 3\nstored b 3\nstored m 3\nstored v 3 positive\n"
      "stored z 1 = 3e38\nh = Mul(x, z)\n"
      "y = BatchNormalization(h, s, b, m, v)\noutput y\n",
      (source){.interrupt_at = -1}, LAC_BAD_VALUE, "wanted a number");
}

static void memory_is_asked_for_first(void **state) {
  lac_error err = {0};
  laci_recalibrated result;
  source from = {.interrupt_at = -1, .shape = laci_shape_of(4, (int64_t[]){1, CHANNELS, 2, 2})};
  const laci_calibration_samples samples = {
      .count = SAMPLES, .shapes = &from.shape, .fetch = fetch, .context = &from};
  const laci_budget budget = laci_budget_with_limit(64);
  const laci_recalibrate_options how = {.batch = BATCH, .n = SAMPLES, .budget = &budget};
  laci_graph *graph = read_net(two_norms);
  (void)state;
  assert_int_equal(laci_recalibrate_batch_norms(graph, &samples, &how, &result, &err),
                   LAC_MEMORY_LIMIT);
  assert_int_equal(from.n_fetched, 0);
  laci_graph_destroy(graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(statistics_are_the_mean_over_batches),
      cmocka_unit_test(the_same_again_has_the_same_bytes),
      cmocka_unit_test(a_failure_leaves_all_as_it_was),
      cmocka_unit_test(memory_is_asked_for_first),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
