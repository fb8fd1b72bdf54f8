/* SPDX-License-Identifier: Apache-2.0
 * Calibration with the inputs of networks in use: samples along any axis, inputs that all samples
 * share and the branch that follows from them, samples of many sizes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/analyze.h"
#include "base/budget.h"
#include "calibrate/fit.h"
#include "calibrate/network_in.h"
#include "calibrate/ranges.h"
#include "calibrate/walk.h"
#include "cpu/pool.h"
#include "lacuna/calibration.h"
#include "support/graph_build.h"

enum { COUNT = 24, MOST_INPUTS = 3 };

/* What the samples are: each input's shape for one sample, and where samples are in it. */
typedef struct source {
  const laci_graph *graph;
  laci_shape shapes[MOST_INPUTS], shapes_of_set[2][MOST_INPUTS];
  const laci_shape *shape_sets[2];
  int axes[MOST_INPUTS], shape_set_of[COUNT];
  const void *constants[MOST_INPUTS];
  laci_calibration_samples samples;
} source;

static laci_graph *read_network(const char *text) {
  laci_graph *graph;
  lac_error err = {0};
  if (net_read(text, &graph, &err)) fail_msg("%s", err.text);
  if (laci_graph_infer(graph, NULL, 0, &err)) fail_msg("%s", err.text);
  return graph;
}

static const laci_shape *shapes_of(const source *s, int64_t sample) {
  return s->samples.n_shape_sets > 1 ? s->shape_sets[s->shape_set_of[sample]] : s->shapes;
}

static lac_status fetch(void *context, int64_t first, int64_t n, void *const *to, lac_error *err) {
  const source *s = context;
  (void)err;
  for (int i = 0; i < s->graph->n_inputs; i++) {
    if (s->constants[i]) continue;
    const laci_shape *one = &shapes_of(s, first)[i];
    const int axis = s->axes[i];
    const int64_t outer = laci_shape_count_range(one, 0, axis);
    const int64_t inner = laci_shape_count_range(one, axis, one->rank);
    for (int64_t o = 0; o < outer; o++) {
      for (int64_t k = 0; k < n; k++) {
        for (int64_t j = 0; j < inner; j++) {
          const uint64_t stream = (uint64_t)(i * 1000 + first + k), at = (uint64_t)(o * inner + j);
          ((float *)to[i])[(o * n + k) * inner + j] =
              (float)(laci_rng_unit_interval(5, stream, at / 8) +
                      laci_rng_unit_interval(6, stream, at) - 1);
        }
      }
    }
  }
  return LAC_OK;
}

static void source_init(source *s, const laci_graph *graph) {
  *s = (source){.graph = graph};
  for (int i = 0; i < graph->n_inputs; i++)
    s->shapes[i] = graph->values[graph->inputs[i]].type.shape;
  s->samples = (laci_calibration_samples){.count = COUNT,
                                          .shapes = s->shapes,
                                          .axes = s->axes,
                                          .constants = s->constants,
                                          .fetch = fetch,
                                          .context = s};
}

static laci_analysis *analyze(const laci_graph *graph) {
  laci_analysis *analysis;
  lac_error err = {0};
  const laci_rules rules = {.pattern = {2, 4}, .all_sizes = true};
  if (laci_analyze(graph, &rules, &analysis, &err)) fail_msg("%s", err.text);
  return analysis;
}

static laci_calibrated *calibrate(const laci_analysis *analysis, const source *s, int threads) {
  laci_calibrated *out;
  laci_pool *pool;
  lac_error err = {0};
  assert_int_equal(laci_pool_create(threads, &pool, NULL), LAC_OK);
  const laci_calibrate_options options = {
      .pattern = {2, 4}, .score = laci_score_find("alps"), .solve = true, .pool = pool};
  if (laci_calibrate(analysis, &s->samples, &options, &out, &err)) fail_msg("%s", err.text);
  laci_pool_destroy(pool);
  return out;
}

static void expect_calibrated(const laci_analysis *analysis, const laci_calibrated *c) {
  for (int l = 0; l < c->n_layers; l++) {
    const char *name = analysis->graph->nodes[analysis->layers[l].node].name;
    if (!c->layers[l].calibrated) fail_msg("%s: %s", name, c->layers[l].reason);
  }
  assert_null(c->outputs_reason);
  assert_true(c->outputs.relative > 0 && c->outputs.relative < 1);
}

static void expect_equal_weights(const laci_graph *graph, const laci_calibrated *a,
                                 const laci_calibrated *b) {
  for (int s = 0; s < graph->n_stored; s++) {
    assert_int_equal(!a->weights[s], !b->weights[s]);
    if (a->weights[s])
      assert_memory_equal(a->weights[s], b->weights[s], graph->stored[s].size_bytes);
  }
}

static void set_open(laci_graph *graph, int input, int axis, int64_t symbol) {
  graph->values[graph->inputs[input]].type.shape.dims[axis] = symbol;
}

/* ---- Axes ---- */

/* The second input has samples along its axis 1; both are added before the layer. */
static void samples_are_along_any_axis(void **state) {
  (void)state;
  laci_graph *graph = read_network(
      "input x 1x8\ninput h 2x1x8\nstored w 8x12\nstored v 12x5\n"
      "m = ReduceMean(h) axes=0, keepdims=0\ns = Add(x, m)\na = MatMul(s, w)\nr = Relu(a)\n"
      "y = MatMul(r, v)\noutput y\nopset 13\n");
  const int64_t batch = laci_graph_add_symbol(graph);
  set_open(graph, 0, 0, batch);
  set_open(graph, 1, 1, batch);
  assert_int_equal(laci_graph_infer(graph, NULL, 0, NULL), LAC_OK);
  laci_analysis *analysis = analyze(graph);
  source s;
  source_init(&s, graph);
  s.shapes[0].dims[0] = s.shapes[1].dims[1] = 1;
  s.axes[1] = 1;
  laci_calibrated *several = calibrate(analysis, &s, 2);
  assert_true(several->cut.batch > 1);
  expect_calibrated(analysis, several);
  s.samples.single = true;
  laci_calibrated *single = calibrate(analysis, &s, 1);
  assert_int_equal(single->cut.batch, 1);
  expect_calibrated(analysis, single);
  for (int k = 0; k < graph->n_stored; k++) {
    if (!several->masks[k]) continue;
    assert_memory_equal(several->masks[k], single->masks[k],
                        (size_t)laci_shape_count(&graph->stored[k].shape));
  }
  laci_calibrated_destroy(several);
  laci_calibrated_destroy(single);
  laci_analysis_destroy(analysis);
  laci_graph_destroy(graph);
}

/* States of two layers, [2, N, 6]: the axis of samples is the second, also where a batch of two
 * makes it as long as the first. */
static void samples_are_units_along_any_axis_of_an_output(void **state) {
  (void)state;
  laci_graph *graph = read_network(
      "input x 1x8\nstored a 8x6\nstored b 6x6\nstored k 1 i64 = 0\nu = MatMul(x, a)\n"
      "v = MatMul(u, b)\np = Unsqueeze(u, k)\nq = Unsqueeze(v, k)\ns = Concat(p, q) axis=0\n"
      "output s\noutput v\n");
  set_open(graph, 0, 0, laci_graph_add_symbol(graph));
  assert_int_equal(laci_graph_infer(graph, NULL, 0, NULL), LAC_OK);
  source s;
  source_init(&s, graph);
  s.shapes[0].dims[0] = 1;
  float other[6 * 6] = {0};
  const uint8_t *weights[8] = {NULL};
  for (int i = 0; i < 6; i++) other[7 * i] = 1;
  weights[graph->values[laci_graph_find_value(graph, "b")].stored] = (const uint8_t *)other;
  const laci_weighted_graph dense = {.graph = graph},
                            changed = {.graph = graph, .weights = weights};
  laci_output_difference want = {0};
  const int64_t batches[] = {8, 2, 12};
  for (int k = 0; k < 3; k++) {
    const laci_compare_options how = {.n = COUNT, .batch = batches[k]};
    laci_output_difference d;
    assert_int_equal(laci_compare_outputs(&dense, &changed, &s.samples, &how, &d, NULL), LAC_OK);
    assert_int_equal(d.n_samples, COUNT);
    assert_int_equal(d.sums.n, COUNT);
    assert_int_equal(d.parts[0].sums.n, COUNT);
    if (k == 0) want = d;
    assert_true(fabs(d.sums.e - want.sums.e) <= 1e-6 * want.sums.e);
    assert_true(fabs(d.sums.ss - want.sums.ss) <= 1e-6 * want.sums.ss);
    assert_true(fabs(d.parts[0].sums.ss - want.parts[0].sums.ss) <= 1e-6 * want.parts[0].sums.ss);
  }
  laci_graph_destroy(graph);
}

/* ---- Constants and branches ---- */

static const char branches[] =
    "input x 1x8\ninput rate 1 i64\nstored low 1 i64 = 8000\nc = Equal(rate, low)\n"
    "then\nstored w1 8x8\na = MatMul(x, w1) name=\"low\"\n"
    "else\nstored w2 8x8\nb = MatMul(x, w2) name=\"high\"\n"
    "end\ne = If(c, a, b)\nr = Relu(e)\nstored w3 8x5\ny = MatMul(r, w3) name=\"last\"\noutput y\n";

static laci_graph *read_branches(source *s, const int64_t *rate) {
  laci_graph *graph = read_network(branches);
  set_open(graph, 0, 0, laci_graph_add_symbol(graph));
  assert_int_equal(laci_graph_infer(graph, NULL, 0, NULL), LAC_OK);
  source_init(s, graph);
  s->shapes[0].dims[0] = 1;
  s->axes[1] = -1;
  s->constants[1] = rate;
  return graph;
}

static void the_branch_that_a_constant_takes_is_calibrated(void **state) {
  (void)state;
  static const int64_t rates[] = {8000, 16000};
  for (int k = 0; k < 2; k++) {
    source s;
    laci_graph *graph = read_branches(&s, &rates[k]);
    laci_analysis *analysis = analyze(graph);
    laci_calibrated *c = calibrate(analysis, &s, 2);
    for (int l = 0; l < c->n_layers; l++) {
      const char *name = graph->nodes[analysis->layers[l].node].name;
      const bool taken = strcmp(name, k ? "low" : "high") != 0;
      assert_true(c->layers[l].pruned);
      if (c->layers[l].calibrated != taken) fail_msg("%s: %s", name, c->layers[l].reason);
    }
    assert_null(c->outputs_reason);
    assert_true(c->outputs.relative > 0 && c->outputs.relative < 1);
    laci_calibrated_destroy(c);
    laci_analysis_destroy(analysis);
    laci_graph_destroy(graph);
  }
}

static void without_the_constant_a_branch_stays_a_branch(void **state) {
  (void)state;
  source s;
  laci_graph *graph = read_branches(&s, NULL);
  laci_network *network;
  const laci_weighted_graph from = {.graph = graph};
  lac_error err = {0};
  if (laci_network_create(&from, &s.samples, 0, 1, &network, &err)) fail_msg("%s", err.text);
  assert_false(network->is_reduced);
  assert_null(network->alias);
  const int e = laci_graph_find_value(graph, "e");
  assert_non_null(network->refusal[e]);
  laci_network_destroy(network);
  laci_graph_destroy(graph);
}

static void ranges_are_those_of_the_branch(void **state) {
  (void)state;
  static const int64_t rate = 16000;
  source s;
  laci_graph *graph = read_branches(&s, &rate);
  const int values[] = {laci_graph_find_value(graph, "e"), laci_graph_find_value(graph, "r"),
                        laci_graph_find_value(graph, "a")};
  laci_range ranges[3];
  const laci_ranges_options how = {
      .values = values, .n_values = 3, .samples = &s.samples, .batch = 4, .n_batches = 5};
  const laci_weighted_graph from = {.graph = graph};
  lac_error err = {0};
  if (laci_ranges_measure(&from, &how, ranges, &err)) fail_msg("%s", err.text);
  assert_true(ranges[0].low < 0 && ranges[0].high > 0);
  assert_true(ranges[1].low == 0 && ranges[1].high == ranges[0].high);
  assert_true(ranges[2].low == 0 && ranges[2].high == 0); /* of the branch that is not taken */
  laci_graph_destroy(graph);
}

/* ---- Sizes ---- */

static const char sequence[] =
    "input x 1x8x1\nstored a 8x8x3\nstored b 12x8x3\nstored c 12x6\n"
    "u = Conv(x, a) pads=1,1\nv = Relu(u)\nw = Conv(v, b) strides=2, pads=1,1\nr = Relu(w)\n"
    "p = GlobalAveragePool(r)\nf = Flatten(p)\ny = MatMul(f, c)\noutput y\n";

static laci_graph *read_sequence(source *s, int64_t first_length, int64_t second_length) {
  laci_graph *graph = read_network(sequence);
  set_open(graph, 0, 0, laci_graph_add_symbol(graph));
  set_open(graph, 0, 2, laci_graph_add_symbol(graph));
  assert_int_equal(laci_graph_infer(graph, NULL, 0, NULL), LAC_OK);
  source_init(s, graph);
  s->shapes_of_set[0][0] = (laci_shape){3, {1, 8, first_length}};
  s->shapes_of_set[1][0] = (laci_shape){3, {1, 8, second_length}};
  s->shapes[0] = s->shapes_of_set[0][0];
  for (int shape_set = 0; shape_set < 2; shape_set++)
    s->shape_sets[shape_set] = s->shapes_of_set[shape_set];
  s->samples.single = true;
  s->samples.n_shape_sets = 2;
  s->samples.shape_sets = s->shape_sets;
  s->samples.shape_set_of = s->shape_set_of;
  return graph;
}

static void samples_of_two_lengths_are_fitted_together(void **state) {
  (void)state;
  source s;
  laci_graph *graph = read_sequence(&s, 9, 14);
  for (int k = 0; k < COUNT; k++) s.shape_set_of[k] = k % 3 == 0;
  laci_analysis *analysis = analyze(graph);
  laci_calibrated *one = calibrate(analysis, &s, 1), *two = calibrate(analysis, &s, 3);
  expect_calibrated(analysis, one);
  assert_int_equal(one->outputs.n_samples, COUNT - one->cut.n_fitted);
  assert_int_equal(one->outputs.sums.n, one->outputs.n_samples);
  expect_equal_weights(graph, one, two);
  for (int l = 0; l < one->n_layers; l++)
    assert_true(one->layers[l].error_after <= one->layers[l].error_before);
  laci_calibrated_destroy(one);
  laci_calibrated_destroy(two);
  laci_analysis_destroy(analysis);
  laci_graph_destroy(graph);
}

/* Two shape sets of one size in the samples' order are the same sums as one shape set. */
static void shape_sets_change_nothing_but_sizes(void **state) {
  (void)state;
  source s;
  laci_graph *graph = read_sequence(&s, 12, 12);
  for (int k = 0; k < COUNT; k++) s.shape_set_of[k] = k >= COUNT / 2;
  laci_analysis *analysis = analyze(graph);
  laci_calibrated *two = calibrate(analysis, &s, 2);
  s.samples.n_shape_sets = 0;
  laci_calibrated *one = calibrate(analysis, &s, 2);
  expect_equal_weights(graph, one, two);
  assert_true(one->outputs.relative == two->outputs.relative);
  laci_calibrated_destroy(one);
  laci_calibrated_destroy(two);
  laci_analysis_destroy(analysis);
  laci_graph_destroy(graph);
}

static void ranges_are_those_of_all_sizes(void **state) {
  (void)state;
  source s;
  laci_graph *graph = read_sequence(&s, 9, 14);
  for (int k = 0; k < COUNT; k++) s.shape_set_of[k] = k % 2;
  const int value = laci_graph_find_value(graph, "u");
  const laci_weighted_graph from = {.graph = graph};
  laci_range all, only[2];
  laci_ranges_options how = {
      .values = &value, .n_values = 1, .samples = &s.samples, .batch = 1, .n_batches = COUNT};
  lac_error err = {0};
  if (laci_ranges_measure(&from, &how, &all, &err)) fail_msg("%s", err.text);
  assert_int_equal(all.n_zeros + all.n_others, 12 * 8 * (9 + 14));
  for (int shape_set = 0; shape_set < 2; shape_set++) {
    s.samples.count = how.n_batches = shape_set ? 0 : COUNT;
    if (shape_set) break;
    for (int k = 0; k < COUNT; k++) s.shape_set_of[k] = 0;
    if (laci_ranges_measure(&from, &how, &only[shape_set], &err)) fail_msg("%s", err.text);
    assert_int_equal(only[shape_set].n_zeros + only[shape_set].n_others, 24 * 8 * 9);
  }
  laci_graph_destroy(graph);
}

/* ---- Memory ---- */

static void a_layer_too_large_for_memory_is_left_to_magnitude(void **state) {
  (void)state;
  laci_graph *graph = read_network(
      "input x 1x8\nstored a 8x640\nstored b 640x8\nstored c 8x4\n"
      "u = MatMul(x, a)\nv = Relu(u)\nw = MatMul(v, b) name=\"wide\"\nr = Relu(w)\n"
      "y = MatMul(r, c)\noutput y\n");
  set_open(graph, 0, 0, laci_graph_add_symbol(graph));
  assert_int_equal(laci_graph_infer(graph, NULL, 0, NULL), LAC_OK);
  laci_analysis *analysis = analyze(graph);
  source s;
  source_init(&s, graph);
  s.shapes[0].dims[0] = 1;
  laci_budget budget = {.limit = (uint64_t)3 << 20};
  const laci_calibrate_options options = {
      .pattern = {2, 4}, .score = laci_score_find("alps"), .solve = true, .budget = &budget};
  laci_calibrated *c;
  lac_error err = {0};
  if (laci_calibrate(analysis, &s.samples, &options, &c, &err)) fail_msg("%s", err.text);
  for (int l = 0; l < c->n_layers; l++) {
    const bool wide = strcmp(graph->nodes[analysis->layers[l].node].name, "wide") == 0;
    assert_true(c->layers[l].pruned);
    assert_int_equal(c->layers[l].calibrated, !wide);
    if (wide) assert_non_null(strstr(c->layers[l].reason, "its fit takes "));
  }
  assert_null(c->outputs_reason);
  laci_calibrated_destroy(c);
  budget = (laci_budget){.limit = 1000};
  assert_int_equal(laci_calibrate(analysis, &s.samples, &options, &c, &err), LAC_MEMORY_LIMIT);
  laci_analysis_destroy(analysis);
  laci_graph_destroy(graph);
}

static void running_out_of_memory_is_a_failure_at_every_allocation(void **state) {
  (void)state;
  static const int64_t rate = 8000;
  for (int which = 0; which < 2; which++) {
    source s;
    laci_graph *graph = which ? read_sequence(&s, 5, 6) : read_branches(&s, &rate);
    for (int k = 0; k < COUNT; k++) s.shape_set_of[k] = k % 2;
    s.samples.count = 4;
    laci_analysis *analysis = analyze(graph);
    const laci_calibrate_options o = {
        .pattern = {2, 4}, .score = laci_score_find("magnitude"), .solve = true};
    for (long at = 1;; at += at < 150 ? 1 : 29) {
      laci_calibrated *c;
      laci_memory_fail_once(at);
      lac_status st = laci_calibrate(analysis, &s.samples, &o, &c, NULL);
      const bool reached = !laci_memory_is_failure_pending();
      laci_memory_fail_from(0);
      laci_calibrated_destroy(c);
      if (!reached) break;
      assert_true(st == LAC_NO_MEMORY || st == LAC_OK);
    }
    laci_analysis_destroy(analysis);
    laci_graph_destroy(graph);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(samples_are_along_any_axis),
      cmocka_unit_test(samples_are_units_along_any_axis_of_an_output),
      cmocka_unit_test(the_branch_that_a_constant_takes_is_calibrated),
      cmocka_unit_test(without_the_constant_a_branch_stays_a_branch),
      cmocka_unit_test(ranges_are_those_of_the_branch),
      cmocka_unit_test(samples_of_two_lengths_are_fitted_together),
      cmocka_unit_test(shape_sets_change_nothing_but_sizes),
      cmocka_unit_test(ranges_are_those_of_all_sizes),
      cmocka_unit_test(a_layer_too_large_for_memory_is_left_to_magnitude),
      cmocka_unit_test(running_out_of_memory_is_a_failure_at_every_allocation),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
