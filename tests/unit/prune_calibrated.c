/* SPDX-License-Identifier: Apache-2.0
 * Pruning by samples: the masks and weights of the walk become the network's, in the order that was
 * found; layers stay dense as a number or a loss asks; what fails leaves no trace. */
#include "support/expect_classes.h"

#include "calibrate/fit.h"
#include "calibrate/walk.h"
#include "cpu/pool.h"
#include "base/hash.h"
#include "permute/plan.h"
#include "prune/prune_in.h"
#include "prune/speed.h"
#include "sparse/mask.h"
#include "support/light.h"

enum { COUNT = 96, JUDGING = 700, INPUT = 8 * 6 * 6, CLASSES = 8 };

/* Sizes that no Tensor Core takes are pruned, too: all of 4 channels and more. */
static const char net[] =
    "input x Nx8x6x6\n"
    "stored w0 16x8x3x3\nv0 = Conv(x, w0) pads=1,1,1,1 name=\"c0\"\na0 = Relu(v0)\n"
    "stored w1 16x16x3x3\nv1 = Conv(a0, w1) pads=1,1,1,1 name=\"c1\"\nb1 = Relu(v1)\n"
    "stored w2 16x16x1x1\nv2 = Conv(b1, w2) name=\"c2\"\ns2 = Add(v2, a0)\na2 = Relu(s2)\n"
    "stored w3 16x16x3x3\nv3 = Conv(a2, w3) name=\"c3\"\na3 = Relu(v3)\n"
    "stored w4 8x16x4x4\nv4 = Conv(a3, w4) name=\"c4\"\ny = Flatten(v4)\n"
    "output y\n";
enum { N_LAYERS = 5 };

/* ---- Samples ---- */

typedef struct source {
  int64_t fails_at;    /* a sample that cannot be had; -1: none */
  bool same;           /* those that judge are one sample over and over */
  int64_t infinite_at; /* a sample that is not finite; 0: none */
} source;

static lac_status fetch(void *context, int64_t first, int64_t n, void *const *to, lac_error *err) {
  const source *from = context;
  for (int64_t k = 0; k < n; k++) {
    if (first + k == from->fails_at) return laci_fail(err, LAC_IO, "sample %d", (int)(first + k));
    const uint64_t sample = (uint64_t)(from->same && first + k > COUNT ? COUNT : first + k);
    for (int64_t at = 0; at < INPUT; at++) {
      /* neighbouring pixels alike: inputs that depend on each other are what fits make use of */
      double base = laci_rng_unit_interval(7, sample, (uint64_t)(at / 9));
      double own = laci_rng_unit_interval(8, sample, (uint64_t)at);
      ((float *)to[0])[k * INPUT + at] = (float)(2 * base + own - 1.2);
    }
    if (from->infinite_at > 0 && first + k == from->infinite_at)
      ((float *)to[0])[k * INPUT] = INFINITY;
  }
  return LAC_OK;
}

typedef struct rig {
  analysed n;
  source from;
  laci_shape shape;
  int64_t labels[COUNT + JUDGING];
  laci_calibration_samples samples;
  laci_prune_calibration calibration;
  laci_budget budget;
  laci_prune_options options;
} rig;

static void rig_init(rig *r, const char *score) {
  *r = (rig){.n = analyse(net), .from = {.fails_at = -1}, .shape = {4, {1, 8, 6, 6}}};
  r->samples = (laci_calibration_samples){
      .count = COUNT, .judging = JUDGING, .shapes = &r->shape, .fetch = fetch, .context = &r->from};
  r->calibration = (laci_prune_calibration){
      .samples = &r->samples, .score = laci_score_find(score), .solve = true, .max_drop = -1};
  assert_non_null(r->calibration.score);
  r->budget = (laci_budget){.limit = UINT64_MAX};
  r->options = (laci_prune_options){
      .pattern = {2, 4}, .mask = true, .budget = &r->budget, .calibration = &r->calibration};
  assert_int_equal(r->n.a->n_layers, N_LAYERS);
  for (int l = 0; l < N_LAYERS; l++) assert_true(r->n.a->layers[l].eligible);
}

static void rig_clear(rig *r) { analysed_clear(&r->n); }

static laci_pruning *prune_with(const rig *r, laci_pool *pool) {
  laci_pruning *made = NULL;
  lac_error err = {0};
  if (laci_prune(r->n.a, &r->options, pool, &made, &err)) fail_msg("%s", err.text);
  return made;
}

static laci_pruning *prune(const rig *r) { return prune_with(r, NULL); }

/* ---- What is asked of a result ---- */

static int count_pruned(const laci_pruning *p) {
  int n = 0;
  for (int l = 0; l < p->analysis->n_layers; l++) n += p->layers[l].pruned;
  return n;
}

static bool kept_at(const laci_pruned_mask *mask, int64_t at) {
  return mask->bits[at / 8] >> (at % 8) & 1;
}

/** Masks hold the pattern, weights hold the masks, and figures are those of both. */
static void check_layers(const laci_pruning *p) {
  const laci_analysis *a = p->analysis;
  assert_int_equal(p->n_masks, count_pruned(p));
  for (int k = 0; k < p->n_masks; k++) {
    const laci_pruned_mask *mask = &p->masks[k];
    const float *weight = (const float *)(const void *)p->weights[mask->stored];
    int64_t n_kept = 0, n_zeros = 0;
    assert_non_null(weight);
    for (int64_t e = 0; e < mask->count; e++) {
      n_kept += kept_at(mask, e);
      n_zeros += weight[e] == 0;
      if (!kept_at(mask, e)) assert_true(weight[e] == 0);
    }
    assert_int_equal(n_kept, mask->count / 2);
    int l = 0;
    while (a->layers[l].stored != mask->stored) l++;
    assert_true(p->layers[l].pruned && p->layers[l].holds_pattern);
    assert_int_equal(p->layers[l].n_zeros, n_zeros);
    assert_true(p->layers[l].kept > 0.4 * p->layers[l].total &&
                p->layers[l].kept <= p->layers[l].total);
    if (p->layers[l].calibrated) assert_true(p->layers[l].kept < p->layers[l].total);
  }
}

static void check_same(const laci_pruning *a, const laci_pruning *b) {
  for (int s = 0; s < a->analysis->graph->n_stored; s++) {
    assert_int_equal(a->weights[s] != NULL, b->weights[s] != NULL);
    if (a->weights[s])
      assert_memory_equal(a->weights[s], b->weights[s], a->analysis->graph->stored[s].size_bytes);
  }
  for (int l = 0; l < a->analysis->n_layers; l++) {
    assert_true(a->layers[l].error_after == b->layers[l].error_after);
    assert_true(a->layers[l].error_before == b->layers[l].error_before);
    assert_true(a->layers[l].effect == b->layers[l].effect);
  }
  assert_true(a->calibration.outputs.relative == b->calibration.outputs.relative);
}

/* ---- Tests ---- */

static void every_score_leaves_masks_and_weights_in_place(void **state) {
  (void)state;
  double magnitude = 0;
  for (int at = 0; laci_score_at(at); at++) {
    rig r;
    rig_init(&r, laci_score_name(laci_score_at(at)));
    for (int solve = 0; solve < 2; solve++) {
      r.calibration.solve = solve;
      laci_pruning *p = prune(&r);
      check_layers(p);
      assert_int_equal(count_pruned(p), N_LAYERS);
      assert_true(p->calibration.done);
      assert_string_equal(p->calibration.score, laci_score_name(laci_score_at(at)));
      assert_true(p->calibration.n_held_back > 0);
      assert_true(p->calibration.n_fitted + p->calibration.n_held_back <= COUNT);
      double error = p->calibration.outputs.relative;
      assert_true(error > 0 && error < 1);
      if (at == 0 && !solve) magnitude = error;
      else if (solve) assert_true(error < magnitude);
      for (int l = 0; l < N_LAYERS; l++) {
        const laci_pruned_layer *layer = &p->layers[l];
        assert_true(layer->calibrated && (solve || !layer->solved));
        assert_true(layer->error_before > 0 && layer->error_after <= layer->error_before);
      }
      laci_pruning_destroy(p);
    }
    rig_clear(&r);
  }
}

static void threads_change_no_byte(void **state) {
  (void)state;
  rig r;
  laci_pool *pool = NULL;
  rig_init(&r, "alps");
  r.calibration.keep_dense = 1;
  r.calibration.curve = true;
  laci_pruning *alone = prune(&r);
  assert_int_equal(laci_pool_create(3, &pool, NULL), LAC_OK);
  laci_pruning *shared = prune_with(&r, pool);
  check_same(alone, shared);
  laci_pruning_destroy(shared);
  laci_pruning_destroy(alone);
  laci_pool_destroy(pool);
  rig_clear(&r);
}

/** Calibrating after the search is calibrating the network that was reordered before. */
static void the_order_comes_first(void **state) {
  (void)state;
  rig r, again;
  rig_init(&r, "wanda");
  r.options.permute = true;
  laci_pruning *p = prune(&r), *moved = NULL;
  check_layers(p);
  int n_moved = 0;
  for (int g = 0; g < r.n.a->n_groups; g++) n_moved += laci_plan_moves_channels(p->plan, g);
  assert_true(n_moved > 0);
  rig_init(&again, "wanda");
  laci_prune_options order = r.options;
  order.mask = false;
  assert_int_equal(laci_pruning_create(again.n.a, order.pattern, &moved, NULL), LAC_OK);
  for (int g = 0; g < r.n.a->n_groups; g++) {
    for (int c = 0; c < r.n.a->groups[g].n_channels; c++)
      moved->plan->found[g].order[c] = p->plan->found[g].order[c];
  }
  assert_int_equal(laci_plan_make_value_orders(moved->plan, NULL), LAC_OK);
  assert_int_equal(laci_pruning_make_weights(moved, &order, NULL, NULL), LAC_OK);
  laci_pruning_commit(moved, again.n.graph);
  laci_pruning_destroy(moved);
  for (int l = 0; l < N_LAYERS; l++) { /* views of what was committed */
    laci_layer *layer = &again.n.a->layers[l];
    layer->view.bytes = again.n.graph->stored[layer->stored].bytes;
  }
  laci_pruning *q = prune(&again);
  for (int k = 0; k < p->n_masks; k++) {
    int s = p->masks[k].stored;
    assert_memory_equal(p->weights[s], q->weights[s], r.n.graph->stored[s].size_bytes);
  }
  assert_true(p->calibration.outputs.relative == q->calibration.outputs.relative);
  laci_pruning_destroy(p);
  laci_pruning_destroy(q);
  rig_clear(&r);
  rig_clear(&again);
}

/** On what is held back, no order is worse than the file's. */
static void orders_stay_only_where_they_help(void **state) {
  (void)state;
  int n_kept = 0, n_taken_back = 0;
  for (int at = 0; at < 6; at++) {
    rig r;
    *net_salt() = (uint64_t)at;
    rig_init(&r, at % 2 ? "wanda" : "magnitude");
    r.calibration.solve = at % 3 > 0;
    laci_pruning *file = prune(&r);
    assert_null(file->orders);
    r.options.permute = true;
    laci_pruning *p = prune(&r);
    check_layers(p);
    assert_null(p->fitted);
    assert_true(p->calibration.outputs.relative <= file->calibration.outputs.relative);
    bool any = false;
    for (int g = 0; g < r.n.a->n_groups; g++) any = any || laci_plan_moves_channels(p->plan, g);
    for (int g = 0; p->orders && g < r.n.a->n_groups; g++) {
      const laci_pruned_order *order = &p->orders[g];
      bool moves = laci_plan_moves_channels(p->plan, g);
      if (moves) assert_true(order->judged && order->error_after < order->error_before);
      n_kept += moves;
      n_taken_back += order->judged && !moves;
    }
    if (!any) check_same(p, file);
    laci_pruning_destroy(p);
    laci_pruning_destroy(file);
    rig_clear(&r);
  }
  *net_salt() = 0;
  assert_true(n_kept > 0 && n_taken_back > 0);
}

static void as_many_judge_as_are_held_back(void **state) {
  (void)state;
  rig r;
  rig_init(&r, "wanda");
  r.samples.held_back = 6;
  laci_pruning *p = prune(&r);
  assert_int_equal(p->calibration.n_held_back, 6);
  assert_int_equal(p->calibration.n_fitted, COUNT - 6);
  laci_pruning_destroy(p);
  rig_clear(&r);
}

static void what_is_pruned_already_keeps_its_mask(void **state) {
  (void)state;
  rig r;
  rig_init(&r, "alps");
  laci_layer *kept = &r.n.a->layers[2];
  laci_stored *stored = &r.n.graph->stored[kept->stored];
  uint8_t *mask = calloc((size_t)kept->view.outer * 16 * 9, 1),
          *bytes = laci_stored_writable_bytes(stored);
  assert_true(mask && bytes);
  kept->view.bytes = bytes;
  assert_int_equal(laci_mask_choose(&kept->view, r.options.pattern, NULL, mask, NULL), LAC_OK);
  laci_mask_apply(&kept->view, mask, bytes);
  r.options.keep_pruned = true;
  laci_pruning *p = prune(&r);
  check_layers(p);
  assert_int_equal(count_pruned(p), N_LAYERS);
  assert_true(p->layers[2].was_pruned && !p->layers[2].calibrated);
  assert_memory_equal(p->weights[kept->stored], bytes, stored->size_bytes);
  assert_true(p->layers[1].calibrated);
  laci_pruning_destroy(p);
  free(mask);
  rig_clear(&r);
}

/* ---- Layers that stay dense ---- */

static void the_most_harmful_layers_stay_dense(void **state) {
  (void)state;
  double before = INFINITY, all = 0;
  for (int dense = 0; dense <= N_LAYERS + 1; dense++) {
    rig r;
    rig_init(&r, "wanda");
    r.calibration.keep_dense = dense;
    laci_pruning *p = prune(&r);
    int n_dense = dense < N_LAYERS ? dense : N_LAYERS;
    check_layers(p);
    assert_int_equal(count_pruned(p), N_LAYERS - n_dense);
    assert_int_equal(p->calibration.n_kept_dense, n_dense);
    for (int l = 0; l < N_LAYERS; l++) {
      assert_true(p->layers[l].effect > 0 || dense == 0);
      if (!p->layers[l].pruned) assert_non_null(strstr(p->layers[l].reason, "left dense"));
      for (int m = 0; m < N_LAYERS && !p->layers[l].pruned; m++) {
        if (p->layers[m].pruned) assert_true(p->layers[m].effect <= p->layers[l].effect);
      }
    }
    /* a fit without one more layer may err a little more, as its others make up for less */
    assert_true(p->calibration.outputs.relative < 1.05 * before);
    if (n_dense == 0) all = p->calibration.outputs.relative;
    else assert_true(p->calibration.outputs.relative < 0.8 * all);
    if (n_dense == N_LAYERS) assert_true(p->calibration.outputs.relative == 0);
    else before = p->calibration.outputs.relative;
    laci_pruning_destroy(p);
    rig_clear(&r);
  }
}

/** With so many layers left dense, and a limit. */
static laci_pruning *prune_within(rig *r, int dense, double limit) {
  rig_init(r, "wanda");
  r->calibration.keep_dense = dense;
  r->calibration.max_drop = limit;
  return prune(r);
}

static void a_loss_is_kept_by_as_few_dense_layers_as_it_takes(void **state) {
  (void)state;
  rig r;
  double most[N_LAYERS + 1];
  for (int dense = 0; dense <= N_LAYERS; dense++) {
    laci_pruning *p = prune_within(&r, dense, 100);
    assert_int_equal(p->calibration.drop.measure, LACI_DROP_ANSWERS);
    assert_int_equal(p->calibration.drop.n, JUDGING);
    most[dense] = p->calibration.drop.most;
    assert_true(most[dense] > p->calibration.drop.found);
    laci_pruning_destroy(p);
    rig_clear(&r);
  }
  assert_true(most[N_LAYERS] < most[0]);
  for (int want = 0; want < N_LAYERS; want++) {
    laci_pruning *p = prune_within(&r, 0, most[want]);
    int fewest = 0;
    while (most[fewest] > most[want]) fewest++;
    assert_int_equal(N_LAYERS - count_pruned(p), fewest);
    assert_true(p->calibration.drop.most <= most[want]);
    laci_pruning_destroy(p);
    rig_clear(&r);
  }
}

/** What is fitted, ranked and held back is read from the first samples, the loss from the others.
 */
static void a_loss_is_judged_by_samples_that_nothing_else_reads(void **state) {
  (void)state;
  rig r;
  laci_pruning *free = prune_within(&r, 0, -1);
  const laci_output_difference outputs = free->calibration.outputs;
  assert_int_equal(free->calibration.drop.n, 0);
  laci_pruning_destroy(free);
  rig_clear(&r);
  laci_pruning *p = prune_within(&r, 0, 100);
  assert_true(p->calibration.outputs.relative == outputs.relative);
  assert_int_equal(p->calibration.outputs.n_samples, outputs.n_samples);
  assert_true(outputs.n_samples < COUNT);
  laci_pruning_destroy(p);
  rig_clear(&r);
}

static void a_loss_that_the_samples_cannot_show_is_refused(void **state) {
  (void)state;
  rig r;
  laci_pruning *p = NULL;
  lac_error err = {0};
  char least[32];
  const double limits[] = {0.1, 1, 5};
  const int64_t counts[] = {0, 8, 64};
  for (int k = 0; k < 3; k++) {
    rig_init(&r, "magnitude");
    r.samples.judging = counts[k];
    r.calibration.max_drop = limits[k];
    assert_int_equal(laci_prune(r.n.a, &r.options, NULL, &p, &err), LAC_BAD_VALUE);
    assert_null(p);
    (void)snprintf(least, sizeof least, "%d", (int)laci_drop_least_samples(limits[k], true));
    if (counts[k] > 0) assert_non_null(strstr(err.text, least));
    rig_clear(&r);
  }
  assert_int_equal(laci_drop_least_samples(1, true), 574);
  assert_true(laci_drop_least_samples(0, true) == INT64_MAX);
}

/* Whatever batches they are run in: most exported networks take one sample at a time. */
static void samples_that_say_nothing_judge_no_loss(void **state) {
  (void)state;
  static const struct {
    source from;
    const char *words;
  } cases[] = {{{-1, true, 0}, "the samples are all the same"},
               {{-1, false, COUNT + 1}, "outputs are not finite"},
               {{-1, false, COUNT + JUDGING - 1}, "outputs are not finite"}};
  char one[sizeof net];
  memcpy(one, net, sizeof net);
  *strchr(one, 'N') = '1';
  for (int fixed = 0; fixed < 2; fixed++) {
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
      rig r;
      laci_pruning *p = NULL;
      lac_error err = {0};
      rig_init(&r, "magnitude");
      if (fixed) analysed_clear(&r.n);
      if (fixed) r.n = analyse(one);
      r.from = cases[k].from;
      r.calibration.max_drop = 100;
      lac_status st = laci_prune(r.n.a, &r.options, NULL, &p, &err);
      if (st != LAC_BAD_VALUE || !strstr(err.text, cases[k].words))
        fail_msg("%d %zu: %d '%s'", fixed, k, (int)st, err.text);
      assert_null(p);
      rig_clear(&r);
    }
  }
}

/* The probability that `lost` and `won` of n come out so. */
static double chance(int n, int lost, int won, double of_lost, double of_won) {
  double log_p =
      lgamma(n + 1.0) - lgamma(lost + 1.0) - lgamma(won + 1.0) - lgamma(n - lost - won + 1.0);
  return exp(log_p + lost * log(of_lost) + won * log(of_won) +
             (n - lost - won) * log(1 - of_lost - of_won));
}

/** Over all that may come out: the bound is below the truth as rarely as it promises. */
static void a_bound_is_wrong_as_rarely_as_it_promises(void **state) {
  (void)state;
  const double rates[][2] = {{0.02, 0.001}, {0.1, 0.02}, {0.1, 0.1}, {0.3, 0.05}, {0.4, 0.4}};
  const double doubt = (1 - LACI_DROP_CONFIDENCE) / LACI_DROP_TRIES;
  enum { N = 80 };
  for (size_t k = 0; k < sizeof rates / sizeof *rates; k++) {
    double wrong = 0, wrong_changed = 0;
    for (int lost = 0; lost <= N; lost++) {
      for (int won = 0; lost + won <= N; won++) {
        double p = chance(N, lost, won, rates[k][0], rates[k][1]);
        laci_output_difference d = {.n_samples = N,
                                    .n_answers = N,
                                    .n_agree = N - lost - won,
                                    .n_lost = lost,
                                    .n_won = won};
        laci_judged_drop drop;
        if (p < 1e-9) continue;
        laci_drop_compute_bound(&d, &drop);
        assert_int_equal(drop.measure, LACI_DROP_ANSWERS);
        wrong_changed += drop.most < 100 * (rates[k][0] + rates[k][1]) ? p : 0;
        d.n_labelled = N;
        laci_drop_compute_bound(&d, &drop);
        assert_int_equal(drop.measure, LACI_DROP_TOP1);
        wrong += drop.most < 100 * (rates[k][0] - rates[k][1]) ? p : 0;
      }
    }
    assert_true(wrong <= doubt);
    assert_true(wrong_changed <= doubt + 1e-6);
  }
}

/** Without answers: errors of samples that scatter, whose mean ratio is known. */
static void a_bound_of_outputs_holds_for_errors_that_scatter(void **state) {
  (void)state;
  enum { N = 200, DRAWS = 2000 };
  int wrong = 0;
  for (uint64_t draw = 0; draw < DRAWS; draw++) {
    laci_output_difference d = {.n_samples = N};
    for (uint64_t k = 0; k < N; k++) {
      double s = 0.5 + laci_rng_unit_interval(3, draw, 2 * k);
      double e = 0.04 * s * laci_rng_unit_interval(3, draw, 2 * k + 1); /* 2 % on the average */
      d.sums.n++;
      d.sums.e += e, d.sums.s += s, d.sums.ee += e * e, d.sums.es += e * s, d.sums.ss += s * s;
    }
    d.relative = d.sums.e / d.sums.s;
    laci_judged_drop drop;
    laci_drop_compute_bound(&d, &drop);
    assert_int_equal(drop.measure, LACI_DROP_OUTPUTS);
    assert_true(drop.most < 1.2 * drop.found);
    wrong += drop.most < 2;
  }
  assert_true(wrong <= 2 * DRAWS * (1 - LACI_DROP_CONFIDENCE) / LACI_DROP_TRIES);
}

/** With labels the loss is one of answers: the dense network's own answers are all right. */
static void labels_turn_the_loss_into_points(void **state) {
  (void)state;
  rig r;
  rig_init(&r, "magnitude");
  for (int k = 0; k < COUNT + JUDGING; k++) r.labels[k] = k % CLASSES;
  r.samples.labels = r.labels;
  r.calibration.curve = true;
  r.calibration.max_drop = 100; /* no loss is so large */
  laci_pruning *p = prune(&r);
  const laci_pruning_calibration *c = &p->calibration;
  assert_int_equal(c->n_points, N_LAYERS + 1);
  assert_int_equal(count_pruned(p), N_LAYERS);
  assert_int_equal(c->outputs.n_labelled, c->n_held_back);
  assert_int_equal(c->drop.measure, LACI_DROP_TOP1);
  assert_int_equal(c->drop.n, JUDGING);
  assert_true(c->drop.most > 0 && c->drop.most > c->drop.found && c->drop.most < 100);
  assert_int_equal(c->points[0].layer, -1);
  assert_true(c->points[0].difference.relative == 0);
  for (int k = 1; k <= N_LAYERS; k++) {
    assert_true(c->points[k].difference.relative > 0);
    assert_true(c->points[k].effect == p->layers[c->points[k].layer].effect);
    if (k > 1) assert_true(c->points[k].effect >= c->points[k - 1].effect);
    assert_int_equal(c->points[k].difference.n_right_a, c->points[0].difference.n_right_a);
  }
  /* all of them, by the same weights */
  assert_true(fabs(c->points[N_LAYERS].difference.relative - c->outputs.relative) <=
              1e-6 * c->outputs.relative);
  laci_pruning_destroy(p);
  rig_clear(&r);
}

/* ---- What fails ---- */

static void a_failure_leaves_the_network_as_it_was(void **state) {
  (void)state;
  rig r;
  rig_init(&r, "alps");
  uint64_t before = laci_hash64(r.n.graph->stored[0].bytes, r.n.graph->stored[0].size_bytes, 0);
  for (int64_t at = 0; at < COUNT; at += COUNT - 1) {
    laci_pruning *p = NULL;
    lac_error err = {0};
    r.from.fails_at = at;
    assert_int_equal(laci_prune(r.n.a, &r.options, NULL, &p, &err), LAC_IO);
    assert_null(p);
  }
  r.from.fails_at = -1;
  r.shape.dims[1] = 9;
  laci_pruning *p = NULL;
  lac_error err = {0};
  assert_int_equal(laci_prune(r.n.a, &r.options, NULL, &p, &err), LAC_BAD_SHAPE);
  r.shape.dims[1] = 8;
  r.budget.limit = 1000;
  assert_int_equal(laci_prune(r.n.a, &r.options, NULL, &p, &err), LAC_MEMORY_LIMIT);
  assert_true(before ==
              laci_hash64(r.n.graph->stored[0].bytes, r.n.graph->stored[0].size_bytes, 0));
  rig_clear(&r);
}

/* ---- Time ---- */

/* A plan in which a layer saves as much as the caller says. */
static lac_status predict(void *context, const bool *pruned, double *layers, double *seconds,
                          lac_error *err) {
  const double *saves = context;
  (void)err;
  *seconds = 1;
  for (int l = 0; l < N_LAYERS; l++) {
    layers[l] = 1 - (pruned[l] ? saves[l] : 0);
    *seconds += layers[l];
  }
  return LAC_OK;
}

/* The layer that harms most saves nearly all of the time: it is what a speed needs, and what a
 * limit of the loss leaves dense last. */
static void harm_is_weighed_by_time(void **state) {
  (void)state;
  double saves[N_LAYERS] = {0};
  laci_prune_timing timing = {predict, saves, 0};
  rig r;
  rig_init(&r, "wanda");
  r.calibration.keep_dense = 1;
  laci_pruning *p = prune(&r);
  int worst = 0;
  for (int l = 0; l < N_LAYERS; l++)
    if (!p->layers[l].pruned) worst = l;
  laci_pruning_destroy(p);
  r.options.timing = &timing;
  for (int l = 0; l < N_LAYERS; l++) saves[l] = l == worst ? 0.9 : 1e-6;
  p = prune(&r);
  assert_true(p->layers[worst].pruned);
  assert_int_equal(count_pruned(p), N_LAYERS - 1);
  laci_pruning_destroy(p);
  r.calibration.keep_dense = 0;
  timing.speed = 1.1;
  for (int magnitude = 0; magnitude < 2; magnitude++) {
    p = prune(&r);
    check_layers(p);
    assert_int_equal(count_pruned(p), 1);
    assert_true(p->layers[worst].pruned);
    for (int l = 0; l < N_LAYERS; l++)
      if (l != worst) assert_non_null(strstr(p->layers[l].reason, "predicted to save"));
    laci_pruning_destroy(p);
    r.options.calibration = NULL; /* the same by magnitude */
  }
  lac_error err = {0};
  timing.speed = 60;
  assert_int_equal(laci_prune(r.n.a, &r.options, NULL, &p, &err), LAC_UNSUPPORTED);
  assert_non_null(strstr(err.text, "is the most"));
  rig_clear(&r);
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  rig r;
  rig_init(&r, "wanda");
  r.samples.count = 16;
  r.calibration.keep_dense = 2;
  r.calibration.curve = true;
  laci_pruning *p = prune(&r); /* what is made once for all is there */
  laci_pruning_destroy(p);
  size_t before = 0;
  for (long at = 1;; at += 1 + at * tests_stride(4) / 8) { /* the first ones all, then ever fewer */
    lac_error err = {0};
    laci_memory_fail_from(at);
    lac_status st = laci_prune(r.n.a, &r.options, NULL, &p, &err);
    bool pending = laci_memory_is_failure_pending();
    laci_memory_fail_from(0);
    if (pending) {
      assert_int_equal(st, LAC_OK);
      laci_pruning_destroy(p);
      break;
    }
    if (st != LAC_NO_MEMORY) fail_msg("allocation %ld: %d '%s'", at, st, err.text);
    assert_null(p);
    before++;
  }
  assert_true(before > 20);
  rig_clear(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_score_leaves_masks_and_weights_in_place),
      cmocka_unit_test(threads_change_no_byte),
      cmocka_unit_test(the_order_comes_first),
      cmocka_unit_test(orders_stay_only_where_they_help),
      cmocka_unit_test(as_many_judge_as_are_held_back),
      cmocka_unit_test(what_is_pruned_already_keeps_its_mask),
      cmocka_unit_test(the_most_harmful_layers_stay_dense),
      cmocka_unit_test(a_loss_is_kept_by_as_few_dense_layers_as_it_takes),
      cmocka_unit_test(a_loss_is_judged_by_samples_that_nothing_else_reads),
      cmocka_unit_test(a_loss_that_the_samples_cannot_show_is_refused),
      cmocka_unit_test(samples_that_say_nothing_judge_no_loss),
      cmocka_unit_test(a_bound_is_wrong_as_rarely_as_it_promises),
      cmocka_unit_test(a_bound_of_outputs_holds_for_errors_that_scatter),
      cmocka_unit_test(labels_turn_the_loss_into_points),
      cmocka_unit_test(a_failure_leaves_the_network_as_it_was),
      cmocka_unit_test(harm_is_weighed_by_time),
      cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
