/* SPDX-License-Identifier: Apache-2.0
 * A network fitted to another: which values are blocks; the loss and its gradients against numbers
 * computed one after the other; masks stay; the same bytes again; what is kept is better on samples
 * that no step saw; refusals. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "arch/arch.h"
#include "base/budget.h"
#include "cpu/cpu.h"
#include "cpu/pool.h"
#include "distill/blocks.h"
#include "distill/reconstruct.h"
#include "distill/refine.h"
#include "graph/training_graph.h"
#include "graph/view.h"
#include "lacuna/log.h"
#include "support/graph_build.h"
#include "train/trainer.h"

/* ---- Networks ---- */

enum { SIZE = 8, IMAGE = 3 * SIZE * SIZE, BATCH = 8 };

/** A dense network, and one whose weights are masked 2:4. */
typedef struct pair {
  laci_graph *graph;
  uint8_t **masks, **weights; /* [n_stored] */
} pair;

static void make_pair(pair *p, laci_graph *graph) {
  const size_t n = (size_t)graph->n_stored;
  *p = (pair){.graph = graph,
              .masks = laci_alloc(n + 1, sizeof *p->masks),
              .weights = laci_alloc(n + 1, sizeof *p->weights)};
  for (size_t s = 0; s < n; s++) {
    const laci_stored *stored = &graph->stored[s];
    if (stored->shape.rank < 2 || stored->shape.dims[1] % 4 != 0) continue;
    const int64_t count = laci_shape_count(&stored->shape);
    const int64_t taps = count / (stored->shape.dims[0] * stored->shape.dims[1]);
    float *weight = laci_alloc(stored->size_bytes, 1);
    p->masks[s] = laci_alloc((size_t)count, 1);
    for (int64_t i = 0; i < count; i++) {
      const int64_t in = i / taps % stored->shape.dims[1];
      p->masks[s][i] = (in + i / taps / stored->shape.dims[1]) % 4 < 2;
      weight[i] = p->masks[s][i] ? ((const float *)(const void *)stored->bytes)[i] : 0;
    }
    p->weights[s] = (uint8_t *)weight;
  }
}

static void clear_pair(pair *p) {
  for (int s = 0; s < p->graph->n_stored; s++) {
    laci_free(p->masks[s]);
    laci_free(p->weights[s]);
  }
  laci_free(p->masks);
  laci_free(p->weights);
  laci_graph_destroy(p->graph);
}

static laci_graph *read_net(const char *text) {
  lac_error err = {0};
  laci_graph *graph = NULL;
  if (net_read(text, &graph, &err)) fail_msg("%s", err.text);
  return graph;
}

static laci_graph *build_arch(const char *name) {
  const laci_arch_options arch = {.name = name, .image_size = SIZE, .n_classes = 10, .seed = 3};
  lac_error err = {0};
  laci_graph *graph = NULL;
  if (laci_arch_build(&arch, &graph, &err)) fail_msg("%s", err.text);
  return graph;
}

/* ---- Blocks ---- */

static void expect_blocks(const char *text, const char *want) {
  laci_graph *graph = read_net(text);
  char got[512] = "";
  int *blocks, n;
  assert_int_equal(laci_block_outputs_find(graph, &blocks, &n, NULL), LAC_OK);
  for (int at = 0; at < n; at++) {
    (void)snprintf(got + strlen(got), sizeof got - strlen(got), "%s%s", at ? " " : "",
                   graph->values[blocks[at]].name);
  }
  assert_string_equal(got, want);
  laci_free(blocks);
  laci_graph_destroy(graph);
}

static void blocks_end_in_sums_or_every_few_layers(void **state) {
  (void)state;
  expect_blocks(
      "input x 2x4x3x3\nstored w 4x4x1x1\nstored b 4x1x1\nh = Conv(x, w)\n"
      "k = Add(h, b)\ns = Add(k, x)\nr = Relu(s)\nu = Conv(r, w)\nt = Add(u, r)\n"
      "v = Conv(t, w)\np = Conv(r, w)\nq = Add(p, r)\n"
      "y = GlobalAveragePool(v)\noutput y\noutput q\n",
      "r t"); /* a bias is no block, nor is what the logits do not depend on; t has two
                 readers */
  expect_blocks(
      "input x 2x4\nstored a 4x4\nstored m 4\nstored v 4 positive\n"
      "b = MatMul(x, a)\nc = BatchNormalization(b, m, m, m, v)\nd = Relu(c)\n"
      "e = MatMul(d, a)\nf = Tanh(e)\ng = MatMul(f, a)\ny = Softmax(g)\noutput y\n",
      "d f");
  expect_blocks("input x 2x4\nstored a 4x4\ny = MatMul(x, a)\noutput y\n", "");
  expect_blocks("input x 2x4\nstored a 4x4\nb = MatMul(x, a)\ny = Add(x, b)\noutput y\n", "");
}

/* ---- The loss, one number after the other ---- */

enum { ROWS = 3, WIDTH = 4 };

static const char sums[] =
    "input x -1x4\nstored a 4x4\nstored b 4x4\n"
    "h = MatMul(x, a)\ns = Add(h, x)\nr = Relu(s)\ny = MatMul(r, b)\n"
    "output y\n";

static const double *input_of(double x[ROWS * WIDTH]) {
  for (int i = 0; i < ROWS * WIDTH; i++) x[i] = (double)(float)net_number("x", i);
  return x;
}

static void run_sums(const double *a, const double *b, double r[ROWS * WIDTH],
                     double y[ROWS * WIDTH]) {
  double x[ROWS * WIDTH];
  (void)input_of(x);
  for (int at = 0; at < ROWS * WIDTH; at++) {
    double sum = x[at];
    for (int i = 0; i < WIDTH; i++) sum += x[at / WIDTH * WIDTH + i] * a[i * WIDTH + at % WIDTH];
    r[at] = fmax(sum, 0);
  }
  for (int at = 0; at < ROWS * WIDTH; at++) {
    y[at] = 0;
    for (int i = 0; i < WIDTH; i++) y[at] += r[at / WIDTH * WIDTH + i] * b[i * WIDTH + at % WIDTH];
  }
}

/** Of the student's weights a, b; the teacher's are those that are stored. */
static double loss_of(const laci_graph *graph, const double *a, const double *b) {
  double r[ROWS * WIDTH], y[ROWS * WIDTH], rt[ROWS * WIDTH], yt[ROWS * WIDTH];
  double dense[2][WIDTH * WIDTH], ends = 0, block = 0, energy = 0;
  for (int k = 0; k < 2; k++)
    for (int i = 0; i < WIDTH * WIDTH; i++)
      dense[k][i] = (double)((const float *)(const void *)graph->stored[k].bytes)[i];
  run_sums(a, b, r, y);
  run_sums(dense[0], dense[1], rt, yt);
  for (int i = 0; i < ROWS * WIDTH; i++) {
    ends += (y[i] - yt[i]) * (y[i] - yt[i]) / ROWS;
    block += (r[i] - rt[i]) * (r[i] - rt[i]);
    energy += rt[i] * rt[i];
  }
  return ends + block / energy;
}

static void open_views(const pair *p, laci_graph *views[2]) {
  const uint8_t *const *weights = (const uint8_t *const *)p->weights;
  assert_int_equal(laci_graph_view_create(p->graph, weights, &views[0], NULL), LAC_OK);
  assert_int_equal(laci_graph_view_create(p->graph, NULL, &views[1], NULL), LAC_OK);
}

static void close_views(laci_graph *views[2]) {
  laci_graph_view_destroy(views[0]);
  laci_graph_view_destroy(views[1]);
}

static laci_reconstruct *open_reconstruct(const pair *p, laci_graph *views[2],
                                          laci_reconstruct_options how) {
  lac_error err = {0};
  laci_reconstruct *r;
  how.masks = (const uint8_t *const *)p->masks;
  if (how.threads == 0) how.threads = 2;
  if (laci_reconstruct_create(views[0], views[1], &how, &r, &err)) fail_msg("%s", err.text);
  return r;
}

static void loss_and_gradients_are_those_of_single_numbers(void **state) {
  pair p;
  laci_graph *views[2];
  lac_error err = {0};
  double x[ROWS * WIDTH], w[2][WIDTH * WIDTH];
  float images[ROWS * WIDTH], logits[ROWS * WIDTH], block[ROWS * WIDTH], loss;
  (void)state;
  make_pair(&p, read_net(sums));
  open_views(&p, views);
  laci_reconstruct *r = open_reconstruct(&p, views, (laci_reconstruct_options){.batch = ROWS});
  assert_int_equal(laci_reconstruct_count_targets(r), 2);
  (void)input_of(x);
  for (int i = 0; i < ROWS * WIDTH; i++) images[i] = (float)x[i];
  for (int k = 0; k < 2; k++)
    for (int i = 0; i < WIDTH * WIDTH; i++)
      w[k][i] = (double)((const float *)(void *)p.weights[k])[i];
  if (laci_reconstruct_run_teacher(r, images, (float *const[]){logits, block}, &err))
    fail_msg("%s", err.text);
  laci_trainer *t = laci_reconstruct_trainer(r);
  if (laci_trainer_run_match_batch(t, images, (const float *const[]){logits, block}, &loss, &err))
    fail_msg("%s", err.text);
  double want = loss_of(p.graph, w[0], w[1]);
  if (!(fabs((double)loss - want) <= 1e-5 * want)) fail_msg("%g, want %g", (double)loss, want);
  for (int k = 0; k < 2; k++) {
    const laci_parameter *q = &laci_trainer_parameters(t)[k];
    for (int i = 0; i < WIDTH * WIDTH; i++) {
      const double kept = w[k][i], h = 1e-4;
      w[k][i] = kept + h;
      double slope = loss_of(p.graph, w[0], w[1]);
      w[k][i] = kept - h;
      slope = (slope - loss_of(p.graph, w[0], w[1])) / (2 * h);
      w[k][i] = kept;
      const double got = (double)laci_trainer_gradients(t)[q->offset + i];
      if (!p.masks[k][i]) continue; /* may be anything until the update */
      if (!(fabs(got - slope) <= 1e-3 * (1 + fabs(slope))))
        fail_msg("%s[%d]: %g, want %g", q->name, i, got, slope);
    }
  }
  laci_reconstruct_destroy(r);
  close_views(views);
  clear_pair(&p);
}

/* ---- Steps ---- */

static void expect_masks(const pair *p, const laci_graph *graph) {
  for (int s = 0; s < graph->n_stored; s++) {
    const float *w = (const float *)(const void *)graph->stored[s].bytes;
    for (int64_t i = 0; p->masks[s] && i < laci_shape_count(&graph->stored[s].shape); i++)
      if (!p->masks[s][i] && w[i] != 0)
        fail_msg("%s: what the mask leaves out", graph->stored[s].name);
  }
}

/** Ten steps on one batch make the loss smaller; the network that comes of it. */
static laci_graph *fit_one_batch(const pair *p, laci_reconstruct_options how) {
  laci_graph *views[2];
  lac_error err = {0};
  float images[BATCH * IMAGE], first = 0, loss = 0;
  float *targets[32];
  for (int i = 0; i < BATCH * IMAGE; i++) images[i] = (float)net_number("images", i);
  open_views(p, views);
  laci_reconstruct *r = open_reconstruct(p, views, how);
  const int n = laci_reconstruct_count_targets(r);
  assert_true(n <= 32);
  assert_int_equal(laci_reconstruct_floats_of_image(r), IMAGE);
  for (int k = 0; k < n; k++)
    targets[k] =
        laci_alloc((size_t)(BATCH * laci_reconstruct_floats_of_target(r, k)), sizeof(float));
  if (laci_reconstruct_run_teacher(r, images, targets, &err)) fail_msg("%s", err.text);
  for (int step = 0; step < 10; step++) {
    if (laci_reconstruct_train_step(r, images, (const float *const *)targets, 3e-3,
                                    step == 0 ? &first : &loss, &err))
      fail_msg("%s", err.text);
  }
  if (!(loss < 0.8F * first)) fail_msg("%g after %g", (double)loss, (double)first);
  if (laci_reconstruct_store_student(r, views[0], &err)) fail_msg("%s", err.text);
  expect_masks(p, views[0]);
  for (int k = 0; k < n; k++) laci_free(targets[k]);
  laci_reconstruct_destroy(r);
  laci_graph_view_destroy(views[1]);
  return views[0];
}

static void expect_same_stored(const laci_graph *a, const laci_graph *b) {
  for (int s = 0; s < a->n_stored; s++)
    assert_memory_equal(a->stored[s].bytes, b->stored[s].bytes, a->stored[s].size_bytes);
}

static void steps_come_nearer_under_masks_that_stay(void **state) {
  (void)state;
  for (int bf16 = 0; bf16 <= laci_cpu_has_avx512bf16(); bf16++) {
    const laci_reconstruct_options how = {.batch = BATCH, .bf16 = bf16 != 0};
    pair p;
    make_pair(&p, build_arch("cifar-resnet20"));
    laci_graph *one = fit_one_batch(&p, how), *other = fit_one_batch(&p, how);
    expect_same_stored(one, other);
    laci_graph_view_destroy(one);
    laci_graph_view_destroy(other);
    clear_pair(&p);
  }
}

/* ---- Refinement ---- */

enum { SAMPLES = 40, HELD = 8 };

typedef struct source {
  laci_shape shape;
  int64_t n_fetched, interrupt_at; /* -1: never */
} source;

static lac_status fetch(void *context, int64_t first, int64_t n, void *const *to, lac_error *err) {
  source *s = context;
  float *images = to[0];
  (void)err;
  if (s->n_fetched++ == s->interrupt_at) lac_interrupt(true);
  for (int64_t k = 0; k < n * IMAGE; k++)
    images[k] = (float)net_number("samples", first * IMAGE + k);
  return LAC_OK;
}

static lac_status refine(const pair *p, source *from, laci_refine_options how, laci_refined *to,
                         lac_error *err) {
  const laci_weighted_graph student = {p->graph, (const uint8_t *const *)p->weights};
  const laci_weighted_graph teacher = {.graph = p->graph};
  from->shape = laci_shape_of(4, (int64_t[]){1, 3, SIZE, SIZE});
  const laci_calibration_samples samples = {
      .count = SAMPLES, .shapes = &from->shape, .fetch = fetch, .context = from};
  laci_pool *pool;
  assert_int_equal(laci_pool_create(2, &pool, err), LAC_OK);
  how.n_fitted = SAMPLES - HELD;
  how.first_held = SAMPLES - HELD;
  how.n_held = HELD;
  if (how.batch == 0) how.batch = BATCH;
  how.masks = (const uint8_t *const *)p->masks;
  how.pool = pool;
  lac_status st = laci_refine_towards_teacher(&student, &teacher, &samples, &how, to, err);
  laci_pool_destroy(pool);
  return st;
}

static void refined_networks_err_less_and_are_the_same_again(void **state) {
  (void)state;
  pair p;
  source from = {.interrupt_at = -1};
  lac_error err = {0};
  laci_refined one, other;
  laci_graph *view;
  const laci_refine_options how = {.steps = 30, .rate = 3e-3};
  make_pair(&p, build_arch("cifar-resnet20"));
  if (refine(&p, &from, how, &one, &err)) fail_msg("%s", err.text);
  if (refine(&p, &from, how, &other, &err)) fail_msg("%s", err.text);
  assert_true(one.kept);
  assert_int_equal(one.steps, 30);
  assert_int_equal(one.before.n_samples, HELD);
  if (!(one.after.relative < one.before.relative)) fail_msg("no better");
  assert_true(one.loss_last < one.loss_first);
  for (int s = 0; s < p.graph->n_stored; s++) {
    assert_int_equal(one.weights[s] == NULL, other.weights[s] == NULL);
    if (one.weights[s])
      assert_memory_equal(one.weights[s], other.weights[s], p.graph->stored[s].size_bytes);
  }
  assert_int_equal(
      laci_graph_view_create(p.graph, (const uint8_t *const *)one.weights, &view, &err), LAC_OK);
  expect_masks(&p, view);
  laci_graph_view_destroy(view);
  laci_refined_clear(&one);
  laci_refined_clear(&other);
  clear_pair(&p);
}

/** Steps that lead away are not kept: at a rate that is far too high. */
static void what_errs_more_is_not_kept(void **state) {
  pair p;
  source from = {.interrupt_at = -1};
  lac_error err = {0};
  laci_refined to;
  (void)state;
  make_pair(&p, build_arch("cifar-resnet20"));
  if (refine(&p, &from, (laci_refine_options){.steps = 6, .rate = 0.3}, &to, &err))
    fail_msg("%s", err.text);
  assert_false(to.kept);
  for (int s = 0; s < p.graph->n_stored; s++) assert_null(to.weights[s]);
  laci_refined_clear(&to);
  clear_pair(&p);
}

/** With a number of steps, a step has the samples that were wanted; in too short a time few. */
static void steps_are_of_fewer_samples_in_a_short_time(void **state) {
  pair p;
  source from = {.interrupt_at = -1};
  lac_error err = {0};
  laci_refined to;
  (void)state;
  make_pair(&p, build_arch("cifar-resnet20"));
  if (refine(&p, &from, (laci_refine_options){.steps = 1, .batch = 12}, &to, &err))
    fail_msg("%s", err.text);
  assert_int_equal(to.batch, 12);
  laci_refined_clear(&to);
  if (refine(&p, &from, (laci_refine_options){.seconds = 1e-3, .batch = 12}, &to, &err))
    fail_msg("%s", err.text);
  assert_true(to.steps >= 1 && to.batch == 6);
  laci_refined_clear(&to);
  clear_pair(&p);
}

/** As many as fit into what some took, four times over; more where the machine was held up. */
static void seconds_become_steps(void **state) {
  pair p;
  source from = {.interrupt_at = -1};
  lac_error err = {0};
  laci_refined some, to;
  (void)state;
  make_pair(&p, build_arch("cifar-resnet20"));
  if (refine(&p, &from, (laci_refine_options){.steps = 3}, &some, &err)) fail_msg("%s", err.text);
  int64_t steps = 0;
  for (int times = 4; times <= 64 && steps <= 1; times *= 4) {
    const laci_refine_options how = {.seconds = times * some.seconds};
    if (refine(&p, &from, how, &to, &err)) fail_msg("%s", err.text);
    steps = to.steps;
    laci_refined_clear(&to);
  }
  assert_true(steps > 1);
  laci_refined_clear(&some);
  clear_pair(&p);
}

static void expect_refusal(laci_graph *graph, laci_refine_options how, source from, lac_status want,
                           const char *says) {
  pair p;
  lac_error err = {0};
  laci_refined to;
  make_pair(&p, graph);
  lac_status st = refine(&p, &from, how, &to, &err);
  lac_interrupt(false);
  if (st != want || !strstr(err.text, says)) fail_msg("%d '%s', want '%s'", st, err.text, says);
  assert_null(to.weights);
  clear_pair(&p);
}

static void refusals_say_why(void **state) {
  const source from = {.interrupt_at = -1};
  const laci_refine_options steps = {.steps = 4};
  const laci_budget little = laci_budget_with_limit(4096);
  (void)state;
  expect_refusal(build_arch("cifar-resnet20"), (laci_refine_options){.batch = 4}, from,
                 LAC_BAD_ARGUMENT, "0 seconds and 0 steps");
  expect_refusal(read_net("input x -1x3x8x8\ninput z 1\ny = Mul(x, z)\noutput y\n"), steps, from,
                 LAC_UNSUPPORTED, "2 inputs");
  expect_refusal(read_net("input x -1x3x8x8\nstored w 4x3x1x1\nh = Conv(x, w)\n"
                          "y = Det(h)\noutput y\n"),
                 steps, from, LAC_UNSUPPORTED, "Det");
  expect_refusal(build_arch("cifar-resnet20"), steps, (source){.interrupt_at = 3}, LAC_INTERRUPTED,
                 "interrupted");
  expect_refusal(build_arch("cifar-resnet20"), (laci_refine_options){.steps = 4, .budget = &little},
                 from, LAC_MEMORY_LIMIT, "allowed");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(blocks_end_in_sums_or_every_few_layers),
      cmocka_unit_test(loss_and_gradients_are_those_of_single_numbers),
      cmocka_unit_test(steps_come_nearer_under_masks_that_stay),
      cmocka_unit_test(refined_networks_err_less_and_are_the_same_again),
      cmocka_unit_test(what_errs_more_is_not_kept),
      cmocka_unit_test(steps_are_of_fewer_samples_in_a_short_time),
      cmocka_unit_test(seconds_become_steps),
      cmocka_unit_test(refusals_say_why),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
