/* SPDX-License-Identifier: Apache-2.0
 * After the fits of layers: steps for the network as a whole, and statistics of batch normalization
 * again. What is kept errs less against the dense network, masks stay, and what cannot be done is
 * said. */
#include "support/expect_classes.h"

#include "calibrate/fit.h"
#include "distill/distill.h"
#include "calibrate/recalibrate.h"
#include "prune/prune.h"

enum { COUNT = 72, HELD = 8, INPUT = 8 * 6 * 6, LAYERS = 3 };

#define HEAD "input x Nx8x6x6\nstored w0 16x8x3x3\nv0 = Conv(x, w0) pads=1,1,1,1 name=\"c0\"\n"
#define TAIL                                                                              \
  "stored w1 16x16x1x1\nv1 = Conv(a0, w1) name=\"c1\"\ns1 = Add(v1, a0)\na1 = Relu(s1)\n" \
  "stored w2 8x16x6x6\nv2 = Conv(a1, w2) name=\"c2\"\ny = Flatten(v2)\noutput y\n"

static const char plain[] = HEAD "a0 = Relu(v0)\n" TAIL;
/** Its statistics are far from those of any sample. */
static const char normed[] = HEAD
    "stored s 16 positive\nstored b 16\nstored m 16\nstored q 16 positive\n"
    "n0 = BatchNormalization(v0, s, b, m, q)\na0 = Relu(n0)\n" TAIL;

static lac_status fetch(void *context, int64_t first, int64_t n, void *const *to, lac_error *err) {
  (void)context;
  (void)err;
  for (int64_t k = 0; k < n; k++) {
    for (int64_t at = 0; at < INPUT; at++) {
      double base = laci_rng_unit_interval(7, (uint64_t)(first + k), (uint64_t)(at / 9));
      double own = laci_rng_unit_interval(8, (uint64_t)(first + k), (uint64_t)at);
      ((float *)to[0])[k * INPUT + at] = (float)(2 * base + own - 1.2);
    }
  }
  return LAC_OK;
}

typedef struct rig {
  analysed n;
  laci_shape shape;
  laci_calibration_samples samples;
  laci_distill_options refinement;
  laci_distilled distilled;
  laci_prune_calibration calibration;
  laci_budget budget;
  laci_prune_options options;
} rig;

static void rig_init(rig *r, const char *net) {
  *r = (rig){.n = analyse(net), .shape = {4, {1, 8, 6, 6}}};
  r->samples = (laci_calibration_samples){
      .count = COUNT, .held_back = HELD, .shapes = &r->shape, .fetch = fetch};
  r->refinement = (laci_distill_options){.samples = &r->samples};
  r->calibration = (laci_prune_calibration){
      .samples = &r->samples, .score = laci_score_find("magnitude"), .max_drop = -1};
  r->budget = (laci_budget){.limit = UINT64_MAX};
  r->options = (laci_prune_options){
      .pattern = {2, 4}, .mask = true, .budget = &r->budget, .calibration = &r->calibration};
}

static void rig_clear(rig *r) { analysed_clear(&r->n); }

static laci_pruning *prune(rig *r) {
  laci_pruning *made = NULL;
  lac_error err = {0};
  lac_status st = laci_prune_begin(r->n.a, &r->options, NULL, &made, &err);
  if (!st) st = laci_distill(made, &r->options, &r->refinement, NULL, &r->distilled, &err);
  if (!st) st = laci_prune_end(made, &r->options, NULL, &err);
  if (st) fail_msg("%s", err.text);
  assert_null(made->fitted);
  return made;
}

/** What the pruning says of its outputs, measured again from the weights that it leaves. */
static void check_outputs(const rig *r, const laci_pruning *p) {
  const laci_weighted_graph dense = {.graph = r->n.graph};
  const laci_weighted_graph pruned = {r->n.graph, (const uint8_t *const *)p->weights};
  const laci_compare_options how = {.first = COUNT - HELD, .n = HELD, .batch = HELD};
  laci_output_difference found;
  assert_int_equal(laci_compare_outputs(&dense, &pruned, &r->samples, &how, &found, NULL), LAC_OK);
  double off = found.relative - p->calibration.outputs.relative;
  if (!(fabs(off) <= 1e-4 * found.relative))
    fail_msg("%g, measured %g", p->calibration.outputs.relative, found.relative);
}

static void check_masks(const laci_pruning *p) {
  assert_int_equal(p->n_masks, LAYERS);
  for (int k = 0; k < p->n_masks; k++) {
    const laci_pruned_mask *mask = &p->masks[k];
    const float *weight = (const float *)(const void *)p->weights[mask->stored];
    for (int64_t e = 0; e < mask->count; e++)
      if (!(mask->bits[e / 8] >> (e % 8) & 1)) assert_true(weight[e] == 0);
  }
}

static void steps_make_outputs_err_less(void **state) {
  (void)state;
  rig r;
  rig_init(&r, plain);
  r.refinement.steps = 60;
  laci_pruning *p = prune(&r), *again = prune(&r);
  const laci_distilled *got = &r.distilled;
  assert_true(got->refined && !got->recalibrated);
  assert_int_equal(got->steps, 60);
  assert_true(got->error_refined < 0.9 * got->error_fitted);
  assert_true(p->calibration.outputs.relative == got->error_refined);
  assert_null(got->reason);
  check_outputs(&r, p);
  check_masks(p);
  for (int s = 0; s < r.n.graph->n_stored; s++) {
    if (p->weights[s])
      assert_memory_equal(p->weights[s], again->weights[s], r.n.graph->stored[s].size_bytes);
  }
  laci_pruning_destroy(again);
  laci_pruning_destroy(p);
  rig_clear(&r);
}

/** The stored statistics are not those of the samples: the dense network lives with that, and so
 * does the pruned one better than with others. */
static void statistics_that_err_more_are_not_kept(void **state) {
  (void)state;
  rig r;
  rig_init(&r, normed);
  r.refinement.recalibrate = true;
  laci_pruning *p = prune(&r);
  const laci_distilled *got = &r.distilled;
  assert_false(got->recalibrated);
  assert_true(got->error_recalibrated > got->error_fitted);
  assert_true(p->calibration.outputs.relative == got->error_fitted);
  check_outputs(&r, p);
  laci_pruning_destroy(p);
  rig_clear(&r);
}

/** The dense network's statistics are those of its samples; pruning moves them. */
static void statistics_that_err_less_are_kept(void **state) {
  (void)state;
  rig r;
  rig_init(&r, normed);
  laci_recalibrated done;
  const laci_recalibrate_options how = {.batch = COUNT - HELD, .n = COUNT - HELD};
  lac_error err = {0};
  if (laci_recalibrate_batch_norms(r.n.graph, &r.samples, &how, &done, &err))
    fail_msg("%s", err.text);
  r.refinement.recalibrate = true;
  laci_pruning *p = prune(&r);
  const laci_distilled *got = &r.distilled;
  assert_true(got->recalibrated);
  assert_true(got->error_recalibrated < got->error_fitted);
  assert_true(p->calibration.outputs.relative == got->error_recalibrated);
  check_outputs(&r, p);
  check_masks(p);
  laci_pruning_destroy(p);
  rig_clear(&r);
}

static void what_cannot_be_done_is_said(void **state) {
  (void)state;
  rig r;
  rig_init(&r, plain);
  r.refinement.recalibrate = true;
  laci_pruning *p = prune(&r);
  const laci_distilled *got = &r.distilled;
  assert_non_null(got->reason);
  assert_non_null(strstr(got->reason, "has no BatchNormalization"));
  assert_true(p->calibration.outputs.relative == got->error_fitted);
  check_masks(p);
  laci_pruning_destroy(p);
  rig_clear(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(steps_make_outputs_err_less),
      cmocka_unit_test(statistics_that_err_more_are_not_kept),
      cmocka_unit_test(statistics_that_err_less_are_kept),
      cmocka_unit_test(what_cannot_be_done_is_said),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
