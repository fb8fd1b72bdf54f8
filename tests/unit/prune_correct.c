/* SPDX-License-Identifier: Apache-2.0
 * Statistics corrected without data: moments of channels follow from batch normalizations, a change
 * of weights changes means and variances as they say, and pruning writes that into the network, in
 * the order of channels that was found. */
#include "support/expect_classes.h"

#include <math.h>

#include "calibrate/change.h"
#include "calibrate/moments.h"
#include "graph/infer.h"
#include "permute/plan.h"
#include "prune/prune_in.h"
#include "tensor/buf.h"

static const double pi = 3.14159265358979323846;

static void check_near(double got, double want, double tolerance) {
  if (!(fabs(got - want) <= tolerance)) fail_msg("%g, wanted %g", got, want);
}

/* ---- Moments ---- */

/** Mean and variance of a normal variable's Relu. */
static void relu_moments(double mean, double variance, double *to_mean, double *to_variance) {
  const double deviation = sqrt(variance), z = mean / deviation;
  const double below = 0.5 * erfc(-z / sqrt(2)), density = exp(-z * z / 2) / sqrt(2 * pi);
  *to_mean = mean * below + deviation * density;
  *to_variance =
      (mean * mean + variance) * below + mean * deviation * density - *to_mean * *to_mean;
}

static const char head[] =
    "input x -1x2x4x4\n"
    "stored s 2 f32 = 1.0 -2.0\nstored b 2 f32 = 0.5 -1.0\n"
    "stored m 2 f32 = 3.0 -1.0\nstored v 2 f32 = 1.0 9.0\n"
    "a = BatchNormalization(x, s, b, m, v) epsilon=0.0\n"
    "stored t 2 f32 = 0.5 1.0\n"
    "c = BatchNormalization(x, t, b, m, v) epsilon=0.0\n";

typedef struct moments_rig {
  laci_graph *graph;
  laci_network_moments all;
  const laci_channel_moments *y;
} moments_rig;

static void moments_rig_init(moments_rig *r, const char *rest) {
  char text[2048];
  lac_error err = {0};
  (void)snprintf(text, sizeof text, "%s%soutput y\n", head, rest);
  if (net_read(text, &r->graph, &err)) fail_msg("%s", err.text);
  if (laci_graph_infer(r->graph, NULL, 0, &err)) fail_msg("%s", err.text);
  if (laci_network_moments_compute(r->graph, &r->all, &err)) fail_msg("%s", err.text);
  r->y = &r->all.values[laci_graph_find_value(r->graph, "y")];
}

static void moments_rig_clear(moments_rig *r) {
  laci_network_moments_clear(&r->all);
  laci_graph_destroy(r->graph);
}

static void expect_moments(const char *rest, int n, const double *mean, const double *variance) {
  moments_rig r;
  moments_rig_init(&r, rest);
  assert_int_equal(r.y->n, n);
  for (int c = 0; c < n; c++) {
    check_near(r.y->mean[c], mean[c], 0.01);
    check_near(r.y->variance[c], variance[c], 0.02);
  }
  moments_rig_clear(&r);
}

static void a_normalization_gives_bias_and_scale(void **state) {
  (void)state;
  expect_moments("y = Identity(a)\n", 2, (double[]){0.5, -1}, (double[]){1, 4});
}

static void an_activation_gives_the_moments_of_a_cut_normal_variable(void **state) {
  double mean[2], variance[2];
  (void)state;
  relu_moments(0.5, 1, &mean[0], &variance[0]);
  relu_moments(-1, 4, &mean[1], &variance[1]);
  expect_moments("y = Relu(a)\n", 2, mean, variance);
  expect_moments(
      "stored low \"\" f32 = 0.0\nstored high \"\" f32 = 100.0\n"
      "y = Clip(a, low, high)\n",
      2, mean, variance);
  expect_moments("stored zero 1 f32 = 0.0\ny = Max(a, zero)\n", 2, mean, variance);
}

static void terms_of_one_variable_are_computed_together(void **state) {
  (void)state;
  /* x * sign(x) is |x|; the square of a normal variable of mean 0.5 and variance 1 has mean 1.25 */
  moments_rig r;
  moments_rig_init(&r, "y = Mul(a, a)\n");
  assert_int_equal(r.y->n, 2);
  check_near(r.y->mean[0], 1.25, 0.01);
  check_near(r.y->mean[1], 5, 0.03);
  moments_rig_clear(&r);
  expect_moments("y = Sub(a, a)\n", 2, (double[]){0, 0}, (double[]){0, 0});
}

static void terms_of_a_sum_are_independent(void **state) {
  (void)state;
  expect_moments("y = Add(a, c)\n", 2, (double[]){1, -2}, (double[]){1.25, 5});
}

static void channels_move_with_their_moments(void **state) {
  (void)state;
  expect_moments("y = Concat(c, a) axis=1\n", 4, (double[]){0.5, -1, 0.5, -1},
                 (double[]){0.25, 1, 1, 4});
  expect_moments("stored p 8 i64 = 0 1 0 0 0 1 0 0\ny = Pad(a, p)\n", 4, (double[]){0, 0.5, -1, 0},
                 (double[]){0, 1, 4, 0});
  expect_moments(
      "stored f 1 i64 = 1\nstored e 1 i64 = 2\nstored i 1 i64 = 1\n"
      "y = Slice(a, f, e, i)\n",
      1, (double[]){-1}, (double[]){4});
  expect_moments(
      "stored f 1 i64 = 0\nstored e 1 i64 = 4\nstored i 1 i64 = 2\n"
      "stored k 1 i64 = 2\ny = Slice(a, f, e, i, k)\n",
      2, (double[]){0.5, -1}, (double[]){1, 4});
}

static void what_does_not_follow_is_not_known(void **state) {
  static const char *const nets[] = {
      "y = MaxPool(a) kernel_shape=2,2\n",
      "y = Mul(a, c)\n",
      "y = Concat(a, c) axis=2\n",
      "y = Add(a, x)\n",
      "stored p 8 i64 = 0 0 1 1 0 0 1 1\ny = Pad(a, p)\n",
      "stored p 8 i64 = 0 1 0 0 0 0 0 0\nstored q \"\" f32 = 1.0\ny = Pad(a, p, q)\n",
      "y = Softmax(a) axis=1\n",
      "y = Log(a)\n",
      "stored w 2x2x1x1\ny = Conv(a, w)\n",
  };
  (void)state;
  for (size_t k = 0; k < sizeof nets / sizeof *nets; k++) {
    moments_rig r;
    moments_rig_init(&r, nets[k]);
    if (r.y->n) fail_msg("%s: moments of %d channels", nets[k], (int)r.y->n);
    moments_rig_clear(&r);
  }
}

/* ---- The change of a layer ---- */

static laci_output_change predict(const char *text, const laci_changed_layer *given, double *mean,
                                  double *ratio) {
  laci_output_change change = {.mean = mean, .ratio = ratio};
  laci_changed_layer layer = *given;
  lac_error err = {0};
  laci_graph *graph;
  if (net_read(text, &graph, &err)) fail_msg("%s", err.text);
  if (laci_graph_infer(graph, NULL, 0, &err)) fail_msg("%s", err.text);
  layer.graph = graph;
  if (laci_predict_change(&layer, &change, &err)) fail_msg("%s", err.text);
  laci_graph_destroy(graph);
  return change;
}

static void a_product_changes_by_what_it_lost(void **state) {
  static const char net[] = "input x -1x3x4x4\nstored w 2x3x1x1\ny = Conv(x, w)\noutput y\n";
  const laci_channel_moments inputs = {3, (double[]){1, 2, 3}, (double[]){1, 4, 9}};
  /* row 0: mean 1 * 1 - 1 * 2 + 2 * 3 = 5 and variance 1 + 4 + 36 = 41; row 1: 0.5 and 0.25 */
  const double before[] = {1, -1, 2, 0.5, 0, 0}, after[] = {0, -1, 2, 0.5, 0, 0};
  double mean[2], ratio[2];
  (void)state;
  laci_changed_layer layer = {.before = before,
                              .after = after,
                              .inputs = &inputs,
                              .mean = (double[]){5, 0.5},
                              .variance = (double[]){41, 0.25}};
  laci_output_change change = predict(net, &layer, mean, ratio);
  check_near(mean[0], -1, 1e-12);
  check_near(mean[1], 0, 1e-12);
  check_near(ratio[0], 40.0 / 41, 1e-12);
  check_near(ratio[1], 1, 1e-12);
  check_near(change.unexplained, 0, 1e-12);
  layer.mean = (double[]){5, 1.5};
  layer.bias = (double[]){0, 1};
  check_near(predict(net, &layer, mean, ratio).unexplained, 0, 1e-12);
  layer.bias = NULL;
  check_near(predict(net, &layer, mean, ratio).unexplained, 4 / (25.0 / 41 + 9), 1e-12);
  layer.mean = layer.variance = NULL;
  change = predict(net, &layer, mean, ratio);
  check_near(ratio[0], 1, 0);
  check_near(change.unexplained, 0, 0);
}

static void taps_over_the_padding_count_less(void **state) {
  static const char net[] =
      "input x -1x1x4x4\nstored w 1x1x3x3\ny = Conv(x, w) pads=1,1,1,1\noutput y\n";
  const laci_channel_moments inputs = {1, (double[]){2}, (double[]){1}};
  const double before[9] = {1, 1, 0, 0, 1, 0, 0, 0, 0}, after[9] = {0};
  double mean, ratio;
  (void)state;
  const laci_changed_layer layer = {.before = before, .after = after, .inputs = &inputs};
  (void)predict(net, &layer, &mean, &ratio);
  check_near(mean, -2 * (0.75 * 0.75 + 0.75 + 1), 1e-12);
}

static void groups_read_their_own_channels(void **state) {
  static const char net[] =
      "input x -1x4x2x2\nstored w 2x2x1x1\ny = Conv(x, w) group=2\noutput y\n";
  const laci_channel_moments inputs = {4, (double[]){1, 2, 3, 4}, (double[]){1, 1, 1, 1}};
  const double before[] = {1, 1, 1, 1}, after[] = {1, 0, 0, 1};
  double mean[2], ratio[2];
  (void)state;
  const laci_changed_layer layer = {.before = before, .after = after, .inputs = &inputs};
  (void)predict(net, &layer, mean, ratio);
  check_near(mean[0], -2, 1e-12);
  check_near(mean[1], -3, 1e-12);
}

static void variances_show_whether_taps_are_alike(void **state) {
  static const char net[] = "input x -1x1x1x9\nstored w 2x1x1x2\ny = Conv(x, w)\noutput y\n";
  const laci_channel_moments inputs = {1, (double[]){0}, (double[]){1}};
  const double before[] = {1, 1, 1, -1}, after[] = {1, 0, 1, 0};
  double mean[2], ratio[2];
  (void)state;
  /* taps that are the same: 1 + 1 has variance 4, and 1 - 1 nearly none */
  laci_changed_layer layer = {.before = before,
                              .after = after,
                              .inputs = &inputs,
                              .mean = (double[]){0, 0},
                              .variance = (double[]){3.6, 0.4}};
  (void)predict(net, &layer, mean, ratio);
  check_near(ratio[0], 1 / 3.6, 1e-9);
  check_near(ratio[1], 1 / 0.4, 1e-9);
}

/* ---- Pruning ---- */

enum { CHANNELS = 16 };

static const char net[] =
    "input x -1x16x6x6\n"
    "stored w0 16x16x1x1\nv0 = Conv(x, w0) name=\"c0\"\n"
    "stored s0 16 positive\nstored b0 16\nstored m0 16\nstored q0 16 positive\n"
    "n0 = BatchNormalization(v0, s0, b0, m0, q0)\na0 = Relu(n0)\n"
    "stored w1 16x16x1x1\nv1 = Conv(a0, w1) name=\"c1\"\n"
    "stored s1 16 positive\nstored b1 16\nstored m1 16\nstored q1 16 positive\n"
    "n1 = BatchNormalization(v1, s1, b1, m1, q1)\na1 = Relu(n1)\n"
    "stored w2 16x16x1x1\nstored o2 16\nv2 = Conv(a1, w2, o2) name=\"c2\"\n"
    "a2 = Relu(v2)\n"
    "stored w3 16x16x1x1\ny = Conv(a2, w3) name=\"c3\"\noutput y\n";

typedef struct rig {
  analysed n;
  laci_budget budget;
  laci_prune_options options;
  laci_pruning *pruned;
  double mean[CHANNELS]; /* of v1 by the moments of a0 */
} rig;

static const laci_stored *stored_named(const rig *r, const char *name) {
  return &r->n.graph->stored[r->n.graph->values[laci_graph_find_value(r->n.graph, name)].stored];
}

static const float *floats(const rig *r, const char *name) {
  return (const float *)(const void *)stored_named(r, name)->bytes;
}

static const float *new_floats(const rig *r, const char *name) {
  const uint8_t *bytes = r->pruned->weights[stored_named(r, name) - r->n.graph->stored];
  return bytes ? (const float *)(const void *)bytes : floats(r, name);
}

/** explained: m1 is what the moments of a0 give. */
static void rig_init(rig *r, bool explained, bool permute, bool correct) {
  laci_network_moments moments;
  lac_error err = {0};
  *r = (rig){.n = analyse(net)};
  r->budget = (laci_budget){.limit = UINT64_MAX};
  r->options = (laci_prune_options){.pattern = {2, 4},
                                    .mask = true,
                                    .permute = permute,
                                    .correct = correct,
                                    .verify = true,
                                    .budget = &r->budget};
  if (laci_network_moments_compute(r->n.graph, &moments, &err)) fail_msg("%s", err.text);
  const laci_channel_moments *a0 = &moments.values[laci_graph_find_value(r->n.graph, "a0")];
  laci_stored *m1 = &r->n.graph->stored[stored_named(r, "m1") - r->n.graph->stored];
  float *means = (float *)(void *)laci_stored_writable_bytes(m1);
  for (int k = 0; k < CHANNELS; k++) {
    for (int c = 0; c < CHANNELS; c++)
      r->mean[k] += (double)floats(r, "w1")[k * CHANNELS + c] * a0->mean[c];
    means[k] = (float)(explained ? r->mean[k] : 10 * r->mean[k]);
  }
  laci_network_moments_clear(&moments);
  if (laci_prune(r->n.a, &r->options, NULL, &r->pruned, &err)) fail_msg("%s", err.text);
}

static void rig_clear(rig *r) {
  laci_pruning_destroy(r->pruned);
  analysed_clear(&r->n);
}

/** Finds the old index of each new row, by a weight that is kept of it. */
static void find_rows(const rig *r, const char *weight, int *old_row) {
  const float *old = floats(r, weight), *now = new_floats(r, weight);
  for (int row = 0; row < CHANNELS; row++) {
    int at = row * CHANNELS;
    while (now[at] == 0) at++;
    int from = 0;
    while (old[from] != now[at]) from++;
    old_row[row] = from / CHANNELS;
  }
}

static bool is_kept(const rig *r, const char *weight, float element) {
  const float *now = new_floats(r, weight);
  for (int at = 0; at < CHANNELS * CHANNELS; at++)
    if (now[at] == element) return true;
  return false;
}

/** The mean of a layer's outputs by what is kept of a row, given the means of its inputs. */
static double mean_of_kept(const rig *r, const char *weight, int row, const double *inputs) {
  double sum = 0;
  for (int c = 0; c < CHANNELS; c++) {
    const float element = floats(r, weight)[row * CHANNELS + c];
    if (is_kept(r, weight, element)) sum += (double)element * inputs[c];
  }
  return sum;
}

static void check_corrected(bool permute) {
  rig r;
  int old_row[CHANNELS];
  laci_network_moments moments;
  lac_error err = {0};
  rig_init(&r, true, permute, true);
  assert_int_equal(r.pruned->n_corrected, 2); /* c1 by its normalization, c2 by its bias */
  if (laci_network_moments_compute(r.n.graph, &moments, &err)) fail_msg("%s", err.text);
  const laci_channel_moments *a0 = &moments.values[laci_graph_find_value(r.n.graph, "a0")];
  const laci_channel_moments *a1 = &moments.values[laci_graph_find_value(r.n.graph, "a1")];
  find_rows(&r, "w1", old_row);
  for (int k = 0; k < CHANNELS; k++) {
    const int old = old_row[k];
    check_near((double)new_floats(&r, "m1")[k], mean_of_kept(&r, "w1", old, a0->mean), 1e-4);
    assert_true(new_floats(&r, "q1")[k] < floats(&r, "q1")[old]);
    assert_true(new_floats(&r, "b1")[k] == floats(&r, "b1")[old]);
  }
  find_rows(&r, "w2", old_row);
  for (int k = 0; k < CHANNELS; k++) {
    const int old = old_row[k];
    double lost = -mean_of_kept(&r, "w2", old, a1->mean);
    for (int c = 0; c < CHANNELS; c++)
      lost += (double)floats(&r, "w2")[old * CHANNELS + c] * a1->mean[c];
    check_near((double)new_floats(&r, "o2")[k], (double)floats(&r, "o2")[old] + lost, 1e-4);
  }
  laci_network_moments_clear(&moments);
  rig_clear(&r);
}

static void means_are_those_of_what_is_kept(void **state) {
  (void)state;
  check_corrected(false);
}

static void statistics_are_in_the_order_that_was_found(void **state) {
  rig r;
  (void)state;
  rig_init(&r, true, true, true);
  bool moves = false;
  for (int g = 0; g < r.n.a->n_searchable; g++)
    moves = moves || laci_plan_moves_channels(r.pruned->plan, g);
  assert_true(moves && r.pruned->verification.verified);
  rig_clear(&r);
  check_corrected(true);
}

static void only_what_the_moments_explain_is_corrected(void **state) {
  rig r;
  (void)state;
  rig_init(&r, false, false, true);
  assert_int_equal(r.pruned->n_corrected, 1); /* c2, of which nothing is known to be wrong */
  assert_null(r.pruned->weights[stored_named(&r, "m1") - r.n.graph->stored]);
  rig_clear(&r);
}

static void nothing_is_corrected_unless_wanted(void **state) {
  rig r;
  (void)state;
  rig_init(&r, true, false, false);
  assert_int_equal(r.pruned->n_corrected, 0);
  assert_null(r.pruned->weights[stored_named(&r, "m1") - r.n.graph->stored]);
  assert_null(r.pruned->weights[stored_named(&r, "o2") - r.n.graph->stored]);
  rig_clear(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_normalization_gives_bias_and_scale),
      cmocka_unit_test(an_activation_gives_the_moments_of_a_cut_normal_variable),
      cmocka_unit_test(terms_of_one_variable_are_computed_together),
      cmocka_unit_test(terms_of_a_sum_are_independent),
      cmocka_unit_test(channels_move_with_their_moments),
      cmocka_unit_test(what_does_not_follow_is_not_known),
      cmocka_unit_test(a_product_changes_by_what_it_lost),
      cmocka_unit_test(taps_over_the_padding_count_less),
      cmocka_unit_test(groups_read_their_own_channels),
      cmocka_unit_test(variances_show_whether_taps_are_alike),
      cmocka_unit_test(means_are_those_of_what_is_kept),
      cmocka_unit_test(statistics_are_in_the_order_that_was_found),
      cmocka_unit_test(only_what_the_moments_explain_is_corrected),
      cmocka_unit_test(nothing_is_corrected_unless_wanted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
