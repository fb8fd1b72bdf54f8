/* SPDX-License-Identifier: Apache-2.0
 * A layer at the end of a residual block makes up for what the other term of the sum lost: its
 * weights solve the normal equations of W_d x_d + (o_d - o_p) / s, computed here one number after
 * the other; with a bias or nothing in between, too; and not where the sum's term is the same.
 * Layers can be fitted as if each alone were pruned. */
#include "support/expect_classes.h"

#include <math.h>
#include <stdio.h>

#include "calibrate/fit.h"
#include "calibrate/walk.h"
#include "cpu/pool.h"

enum {
  COUNT = 64,
  CHANNELS = 8,
  PIXELS = 9,
  INPUT = CHANNELS * PIXELS,
  WEIGHT = CHANNELS * CHANNELS
};

static lac_status fetch(void *context, int64_t first, int64_t n, void *const *to, lac_error *err) {
  (void)context;
  (void)err;
  for (int64_t k = 0; k < n * INPUT; k++) {
    const uint64_t at = (uint64_t)(first * INPUT + k);
    ((float *)to[0])[k] =
        (float)(laci_rng_unit_interval(7, at / PIXELS, 0) + laci_rng_unit_interval(8, at, 0) - 0.7);
  }
  return LAC_OK;
}

/* A block whose last layer's output v2 becomes t, which is added to a0. */
static void write_net(char *text, size_t size, const char *between) {
  (void)snprintf(text, size,
                 "input x Nx8x3x3\nstored w0 8x8x1x1\nv0 = Conv(x, w0)\na0 = Relu(v0)\n"
                 "stored w1 8x8x1x1\nv1 = Conv(a0, w1)\na1 = Relu(v1)\n"
                 "stored w2 8x8x1x1\nv2 = Conv(a1, w2)\n"
                 "stored s 8 positive\nstored b 8\nstored m 8\nstored q 8 positive\n"
                 "stored bias 1x8x1x1\n%s"
                 "r = Add(a0, t)\na2 = Relu(r)\n"
                 "stored w3 8x8x1x1\ny = Conv(a2, w3)\noutput y\n",
                 between);
}

static const float *floats_of(const laci_graph *graph, const char *name, int *stored) {
  const int value = laci_graph_find_value(graph, name);
  assert_true(value >= 0);
  *stored = graph->values[value].stored;
  return (const float *)(const void *)graph->stored[*stored].bytes;
}

/* to [CHANNELS] = the positive parts of weight times from. */
static void multiply_and_clip(const float *weight, const double *from, double *to) {
  for (int k = 0; k < CHANNELS; k++) {
    to[k] = 0;
    for (int c = 0; c < CHANNELS; c++) to[k] += (double)weight[k * CHANNELS + c] * from[c];
    to[k] = to[k] > 0 ? to[k] : 0;
  }
}

typedef struct sums {
  double h[CHANNELS][CHANNELS], target[CHANNELS][CHANNELS];
} sums;

/* Adds one pixel to the sums. dense, pruned: the weights w0, w1, w2. factor: 1 / s of each
 * channel. */
static void add_pixel(const double *x, const float *const dense[3], const float *const pruned[3],
                      const double *factor, sums *to) {
  double od[CHANNELS], op[CHANNELS], xd[CHANNELS], xp[CHANNELS];
  multiply_and_clip(dense[0], x, od);
  multiply_and_clip(pruned[0], x, op);
  multiply_and_clip(dense[1], od, xd);
  multiply_and_clip(pruned[1], op, xp);
  for (int k = 0; k < CHANNELS; k++) {
    double wanted = factor[k] * (od[k] - op[k]);
    for (int c = 0; c < CHANNELS; c++) wanted += (double)dense[2][k * CHANNELS + c] * xd[c];
    for (int c = 0; c < CHANNELS; c++) {
      to->h[k][c] += xp[k] * xp[c];
      to->target[k][c] += wanted * xp[c];
    }
  }
}

static void compute_sums(const laci_graph *graph, const laci_calibrated *made, const double *factor,
                         sums *to) {
  const char *const names[] = {"w0", "w1", "w2"};
  const float *dense[3], *pruned[3];
  static float images[COUNT * INPUT];
  for (int i = 0; i < 3; i++) {
    int stored;
    dense[i] = floats_of(graph, names[i], &stored);
    pruned[i] = (const float *)(const void *)made->weights[stored];
    assert_non_null(pruned[i]);
  }
  *to = (sums){{{0}}, {{0}}};
  assert_int_equal(fetch(NULL, 0, COUNT, &(void *){images}, NULL), LAC_OK);
  for (int64_t k = 0; k < made->cut.n_fitted * made->cut.batch; k++) {
    for (int p = 0; p < PIXELS; p++) {
      double x[CHANNELS];
      for (int c = 0; c < CHANNELS; c++) x[c] = (double)images[k * INPUT + c * PIXELS + p];
      add_pixel(x, dense, pruned, factor, to);
    }
  }
}

/* Are the kept weights of w2 where the gradient of the damped error is zero? Returns the largest
 * rest as a part of the target's largest element. */
static double largest_rest(const laci_graph *graph, const laci_calibrated *made, const sums *of) {
  int stored;
  const float *dense = floats_of(graph, "w2", &stored);
  const float *w = (const float *)(const void *)made->weights[stored];
  double damping = 0, rest = 0, most = 0;
  for (int c = 0; c < CHANNELS; c++) damping += 0.01 * of->h[c][c] / CHANNELS;
  for (int k = 0; k < CHANNELS; k++) {
    for (int j = 0; j < CHANNELS; j++) {
      if (!made->masks[stored][k * CHANNELS + j]) continue;
      const double own = (double)w[k * CHANNELS + j], was = (double)dense[k * CHANNELS + j];
      double sum = damping * (own - was) - of->target[k][j];
      for (int c = 0; c < CHANNELS; c++) sum += (double)w[k * CHANNELS + c] * of->h[c][j];
      rest = fmax(rest, fabs(sum));
      most = fmax(most, fabs(of->target[k][j]));
    }
  }
  return rest / most;
}

static laci_calibrated *calibrate_how(const analysed *n, const bool *wanted, bool each_alone,
                                      laci_pool *pool) {
  const laci_shape shape = laci_shape_of(4, (int64_t[]){1, CHANNELS, 3, 3});
  const laci_calibration_samples samples = {.count = COUNT, .shapes = &shape, .fetch = fetch};
  const laci_calibrate_options how = {.pattern = {2, 4},
                                      .score = laci_score_find("magnitude"),
                                      .solve = true,
                                      .each_alone = each_alone,
                                      .wanted = wanted,
                                      .positions = INT64_MAX,
                                      .pool = pool};
  laci_calibrated *made = NULL;
  lac_error err = {0};
  if (laci_calibrate(n->a, &samples, &how, &made, &err)) fail_msg("%s", err.text);
  return made;
}

static laci_calibrated *calibrate(const analysed *n, const bool *wanted, laci_pool *pool) {
  return calibrate_how(n, wanted, false, pool);
}

static void check_block(const char *between, bool scaled) {
  char text[1024];
  double factor[CHANNELS];
  sums with, without;
  int stored;
  write_net(text, sizeof text, between);
  analysed n = analyse(text);
  const float *scale = floats_of(n.graph, "s", &stored);
  const float *variance = floats_of(n.graph, "q", &stored);
  for (int c = 0; c < CHANNELS; c++)
    factor[c] = scaled ? sqrt((double)variance[c] + 1e-5) / (double)scale[c] : 1;
  laci_calibrated *made = calibrate(&n, NULL, NULL);
  compute_sums(n.graph, made, factor, &with);
  for (int c = 0; c < CHANNELS; c++) factor[c] = 0;
  compute_sums(n.graph, made, factor, &without);
  assert_true(largest_rest(n.graph, made, &with) < 1e-4);
  assert_true(largest_rest(n.graph, made, &without) > 1e-3);
  laci_calibrated_destroy(made);
  analysed_clear(&n);
}

static void a_block_makes_up_for_its_shortcut(void **state) {
  (void)state;
  check_block("t = Add(v2, bias)\n", false);
  check_block("t = BatchNormalization(v2, s, b, m, q)\n", true);
}

/* The first layer stays dense, so that the shortcut has lost nothing. */
static void a_shortcut_without_errors_changes_nothing(void **state) {
  (void)state;
  char text[1024];
  double factor[CHANNELS] = {0};
  sums without;
  write_net(text, sizeof text, "t = Add(v2, bias)\n");
  analysed n = analyse(text);
  bool wanted[4];
  for (int l = 0; l < n.a->n_layers; l++) wanted[l] = true;
  int first = 0, w0;
  (void)floats_of(n.graph, "w0", &w0);
  while (n.a->layers[first].stored != w0) first++;
  wanted[first] = false;
  laci_calibrated *made = calibrate(&n, wanted, NULL);
  made->weights[w0] = laci_alloc(WEIGHT, sizeof(float)); /* it was not changed */
  assert_non_null(made->weights[w0]);
  memcpy(made->weights[w0], n.graph->stored[w0].bytes, WEIGHT * sizeof(float));
  compute_sums(n.graph, made, factor, &without);
  assert_true(largest_rest(n.graph, made, &without) < 1e-4);
  laci_calibrated_destroy(made);
  analysed_clear(&n);
}

/* A fit of each layer alone is that of a walk in which only this layer is pruned. */
static void layers_fitted_alone_know_no_others(void **state) {
  (void)state;
  char text[1024];
  write_net(text, sizeof text, "t = Add(v2, bias)\n");
  analysed n = analyse(text);
  laci_calibrated *all = calibrate(&n, NULL, NULL), *each = calibrate_how(&n, NULL, true, NULL);
  int n_other = 0;
  assert_int_equal(n.a->n_layers, 4);
  for (int l = 0; l < n.a->n_layers; l++) {
    bool wanted[4] = {false};
    wanted[l] = true;
    laci_calibrated *one = calibrate(&n, wanted, NULL);
    const int s = n.a->layers[l].stored;
    assert_memory_equal(each->weights[s], one->weights[s], WEIGHT * sizeof(float));
    assert_memory_equal(each->masks[s], one->masks[s], WEIGHT);
    assert_true(each->layers[l].error_after == one->layers[l].error_after);
    n_other += memcmp(each->weights[s], all->weights[s], WEIGHT * sizeof(float)) != 0;
    laci_calibrated_destroy(one);
  }
  assert_int_equal(n_other, 3); /* all but the first */
  laci_calibrated_destroy(all);
  laci_calibrated_destroy(each);
  analysed_clear(&n);
}

static void threads_change_no_byte(void **state) {
  (void)state;
  char text[1024];
  laci_pool *pool = NULL;
  write_net(text, sizeof text, "t = BatchNormalization(v2, s, b, m, q)\n");
  analysed n = analyse(text);
  assert_int_equal(laci_pool_create(3, &pool, NULL), LAC_OK);
  laci_calibrated *a = calibrate(&n, NULL, NULL), *b = calibrate(&n, NULL, pool);
  for (int s = 0; s < n.graph->n_stored; s++) {
    assert_int_equal(a->weights[s] != NULL, b->weights[s] != NULL);
    if (a->weights[s])
      assert_memory_equal(a->weights[s], b->weights[s], n.graph->stored[s].size_bytes);
  }
  laci_calibrated_destroy(a);
  laci_calibrated_destroy(b);
  laci_pool_destroy(pool);
  analysed_clear(&n);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_block_makes_up_for_its_shortcut),
      cmocka_unit_test(a_shortcut_without_errors_changes_nothing),
      cmocka_unit_test(layers_fitted_alone_know_no_others),
      cmocka_unit_test(threads_change_no_byte),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
