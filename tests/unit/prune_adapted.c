/* SPDX-License-Identifier: Apache-2.0
 * Fits to drawn samples: the dense network has the samples' statistics meanwhile, as if the file
 * stored them; the file keeps its own; other samples and networks without statistics are fitted as
 * they are. */
#include "support/expect_classes.h"

#include "calibrate/fit.h"
#include "calibrate/recalibrate.h"
#include "calibrate/walk.h"
#include "cpu/pool.h"
#include "prune/prune_in.h"

enum { COUNT = 64, HELD = 8, INPUT = 8 * 6 * 6 };

static const char with_norms[] =
    "input x Nx8x6x6\n"
    "stored w0 16x8x3x3\nstored s0 16\nstored b0 16\nstored m0 16\nstored q0 16 positive\n"
    "v0 = Conv(x, w0) pads=1,1,1,1 name=\"c0\"\n"
    "n0 = BatchNormalization(v0, s0, b0, m0, q0)\na0 = Relu(n0)\n"
    "stored w1 16x16x3x3\nstored s1 16\nstored b1 16\nstored m1 16\nstored q1 16 positive\n"
    "v1 = Conv(a0, w1) pads=1,1,1,1 name=\"c1\"\n"
    "n1 = BatchNormalization(v1, s1, b1, m1, q1)\na1 = Relu(n1)\n"
    "stored w2 8x16x6x6\nv2 = Conv(a1, w2) name=\"c2\"\ny = Flatten(v2)\noutput y\n";
static const char without_norms[] =
    "input x Nx8x6x6\nstored w0 16x8x3x3\nv0 = Conv(x, w0) pads=1,1,1,1 name=\"c0\"\n"
    "a0 = Relu(v0)\nstored w1 8x16x6x6\nv1 = Conv(a0, w1) name=\"c1\"\ny = Flatten(v1)\n"
    "output y\n";

static lac_status fetch(void *context, int64_t first, int64_t n, void *const *to, lac_error *err) {
  (void)context;
  (void)err;
  for (int64_t k = 0; k < n * INPUT; k++) {
    const uint64_t at = (uint64_t)(first * INPUT + k);
    ((float *)to[0])[k] =
        (float)(2 * laci_rng_unit_interval(7, at / 9, 0) + laci_rng_unit_interval(8, at, 0));
  }
  return LAC_OK;
}

typedef struct rig {
  analysed n;
  laci_shape shape;
  laci_calibration_samples samples;
  laci_prune_calibration calibration;
  laci_budget budget;
  laci_prune_options options;
} rig;

static void rig_init(rig *r, const char *net, bool drawn) {
  *r = (rig){.n = analyse(net), .shape = {4, {1, 8, 6, 6}}};
  r->samples = (laci_calibration_samples){
      .count = COUNT, .held_back = HELD, .shapes = &r->shape, .fetch = fetch};
  r->calibration = (laci_prune_calibration){.samples = &r->samples,
                                            .score = laci_score_find("alps"),
                                            .solve = true,
                                            .max_drop = -1,
                                            .drawn = drawn};
  r->budget = (laci_budget){.limit = UINT64_MAX};
  r->options = (laci_prune_options){
      .pattern = {2, 4}, .mask = true, .budget = &r->budget, .calibration = &r->calibration};
}

static laci_pruning *prune(const rig *r, laci_pool *pool) {
  laci_pruning *made = NULL;
  lac_error err = {0};
  if (laci_prune(r->n.a, &r->options, pool, &made, &err)) fail_msg("%s", err.text);
  return made;
}

/* Gives the graph the statistics of all samples that are not held back. */
static void store_statistics(const rig *r) {
  const laci_recalibrate_options how = {.batch = 128, .n = COUNT - HELD};
  laci_recalibrated done;
  lac_error err = {0};
  if (laci_recalibrate_batch_norms(r->n.graph, &r->samples, &how, &done, &err))
    fail_msg("%s", err.text);
  assert_int_equal(done.n_norms, 2);
}

/* Compares the new weights of two prunings; returns whether all are the same. */
static bool is_same(const laci_pruning *a, const laci_pruning *b) {
  bool same = true;
  for (int s = 0; s < a->analysis->graph->n_stored; s++) {
    assert_int_equal(a->weights[s] != NULL, b->weights[s] != NULL);
    same = same && (!a->weights[s] || memcmp(a->weights[s], b->weights[s],
                                             a->analysis->graph->stored[s].size_bytes) == 0);
  }
  return same;
}

static void fits_see_the_statistics_of_drawn_samples(void **state) {
  (void)state;
  rig drawn, stored, data;
  rig_init(&drawn, with_norms, true);
  rig_init(&stored, with_norms, false);
  rig_init(&data, with_norms, false);
  store_statistics(&stored);
  laci_pruning *a = prune(&drawn, NULL), *b = prune(&stored, NULL), *c = prune(&data, NULL);
  assert_true(is_same(a, b)); /* only weights that are pruned are new: the statistics stay */
  assert_false(is_same(a, c));
  for (int l = 0; l < a->analysis->n_layers; l++)
    assert_true(a->layers[l].error_after == b->layers[l].error_after);
  /* the outputs are compared with the statistics that the file has */
  assert_true(a->calibration.outputs.relative > 0);
  assert_true(a->calibration.outputs.relative != b->calibration.outputs.relative);
  laci_pruning_destroy(a);
  laci_pruning_destroy(b);
  laci_pruning_destroy(c);
  analysed_clear(&drawn.n);
  analysed_clear(&stored.n);
  analysed_clear(&data.n);
}

static void networks_without_statistics_are_fitted_as_they_are(void **state) {
  (void)state;
  rig drawn, data;
  rig_init(&drawn, without_norms, true);
  rig_init(&data, without_norms, false);
  laci_pruning *a = prune(&drawn, NULL), *b = prune(&data, NULL);
  assert_true(is_same(a, b));
  assert_true(a->calibration.outputs.relative == b->calibration.outputs.relative);
  laci_pruning_destroy(a);
  laci_pruning_destroy(b);
  analysed_clear(&drawn.n);
  analysed_clear(&data.n);
}

static void threads_change_no_byte(void **state) {
  (void)state;
  rig r;
  laci_pool *pool = NULL;
  rig_init(&r, with_norms, true);
  assert_int_equal(laci_pool_create(3, &pool, NULL), LAC_OK);
  laci_pruning *a = prune(&r, NULL), *b = prune(&r, pool);
  assert_true(is_same(a, b));
  assert_true(a->calibration.outputs.relative == b->calibration.outputs.relative);
  laci_pruning_destroy(a);
  laci_pruning_destroy(b);
  laci_pool_destroy(pool);
  analysed_clear(&r.n);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(fits_see_the_statistics_of_drawn_samples),
      cmocka_unit_test(networks_without_statistics_are_fitted_as_they_are),
      cmocka_unit_test(threads_change_no_byte),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
