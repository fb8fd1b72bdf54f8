/* SPDX-License-Identifier: Apache-2.0
 * Training on the fast engine against the plain one, in double: loss, logits, every gradient and
 * the running statistics of whole networks; what is fused; that training learns. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "arch/arch.h"
#include "base/memory.h"
#include "engine/engine.h"
#include "engine/stepper.h"
#include "graph/graph.h"
#include "support/light.h"
#include "support/walk.h"
#include "base/rng.h"
#include "tensor/buf.h"
#include "train/trainer.h"

typedef struct pair {
  laci_graph *model;
  laci_trainer *trainer;
  float *images, *labels;
  int64_t n_pixels, n_labels;
} pair;

static void fill(float *to, int64_t n, uint64_t seed) {
  for (int64_t at = 0; at < n; at++) {
    to[at] = (float)(laci_rng_unit_interval(seed, 0, (uint64_t)at) * 2 - 1);
  }
}

/** Scales that start as zero (at the end of every block) would keep gradients from what is before
 * them. */
static void open_blocks(laci_trainer *trainer) {
  const laci_training_graph *g = laci_trainer_graph(trainer);
  const laci_parameter *parameters = laci_trainer_parameters(trainer);
  for (int at = 0; at < g->n_params; at++) {
    float *w = laci_trainer_weights(trainer) + parameters[at].offset;
    size_t n = strlen(g->params[at].name);
    bool scale = g->params[at].kind == LACI_PARAM_NORM && n > 7 &&
                 strcmp(g->params[at].name + n - 7, ".weight") == 0;
    for (int64_t i = 0; scale && i < g->params[at].count; i++) w[i] = w[i] == 0 ? 0.1f : w[i];
  }
}

/** False: this processor has no bf16. */
static bool open_pair(pair *p, const char *arch, int size, laci_training_options graph, bool bf16) {
  const int64_t batch = graph.batch;
  lac_error err = {0};
  laci_arch_options a = {.name = arch, .n_classes = 10, .image_size = size, .seed = 1};
  if (laci_arch_build(&a, &p->model, &err)) fail_msg("%s", err.text);
  laci_trainer_options o = {.graph = graph,
                            .optimizer = laci_optimizer_options_default(LACI_OPTIMIZER_SGD),
                            .run.threads = 2,
                            .run.bf16 = bf16};
  lac_status st = laci_trainer_create(p->model, &o, &p->trainer, &err);
  if (st == LAC_UNSUPPORTED && bf16 && strstr(err.text, "bf16 instructions")) {
    laci_graph_destroy(p->model);
    return false;
  }
  if (st) fail_msg("%s", err.text);
  const laci_training_graph *g = laci_trainer_graph(p->trainer);
  p->n_pixels = laci_shape_count(&g->graph->values[g->images].type.shape);
  p->n_labels = batch * g->n_classes;
  p->images = laci_alloc((size_t)p->n_pixels, sizeof *p->images);
  p->labels = laci_alloc((size_t)p->n_labels, sizeof *p->labels);
  fill(p->images, p->n_pixels, 4); /* no value so near a Relu's zero that rounding decides */
  for (int64_t n = 0; n < batch; n++) p->labels[n * g->n_classes + n % g->n_classes] = 1;
  return true;
}

static void close_pair(pair *p) {
  laci_trainer_destroy(p->trainer);
  laci_graph_destroy(p->model);
  laci_free(p->images);
  laci_free(p->labels);
}

static void set_floats(laci_stepper *run, const laci_graph *graph, int value, const float *from) {
  laci_buf *buf;
  const laci_type *type = &graph->values[value].type;
  assert_int_equal(laci_buf_create(type->dtype, &type->shape, &buf, NULL), LAC_OK);
  for (int64_t at = 0; at < buf->count; at++) buf->f[at] = (double)from[at];
  laci_stepper_set_value(run, value, buf);
}

/** Largest difference over the largest size; both zero: 0. */
static double difference(const laci_buf *want, const float *got) {
  double most = 0, scale = 0;
  for (int64_t at = 0; at < want->count; at++) {
    double d = fabs(want->f[at] - (double)got[at]);
    if (!(d <= most)) most = d;
    scale = fmax(scale, fabs(want->f[at]));
  }
  return scale > 0 ? most / scale : most;
}

/** The plain engine with the trainer's inputs, run. */
static laci_stepper *run_plain(const pair *p) {
  lac_error err = {0};
  laci_stepper *run;
  const laci_training_graph *g = laci_trainer_graph(p->trainer);
  const laci_parameter *parameters = laci_trainer_parameters(p->trainer);
  int64_t n_statistics, at_statistic = 0;
  assert_int_equal(walk_open(g->graph, NULL, &run, &err), LAC_OK);
  set_floats(run, g->graph, g->images, p->images);
  set_floats(run, g->graph, g->labels, p->labels);
  for (int at = 0; at < g->n_params; at++) {
    set_floats(run, g->graph, g->params[at].input,
               laci_trainer_weights(p->trainer) + parameters[at].offset);
  }
  const float *statistics = laci_trainer_statistics(p->trainer, &n_statistics);
  for (int at = 0; at < g->n_stats; at++) {
    set_floats(run, g->graph, g->stats[at].input, statistics + at_statistic);
    at_statistic += g->stats[at].count;
  }
  if (walk_all(run, g->graph, &err)) fail_msg("%s", err.text);
  return run;
}

static float run_fast(const pair *p) {
  lac_error err = {0};
  float loss;
  if (laci_trainer_run_batch(p->trainer, p->images, p->labels, &loss, NULL, &err)) {
    fail_msg("%s", err.text);
  }
  return loss;
}

static void check_steps(const pair *p, const char *arch) {
  const laci_engine *engine = laci_trainer_engine(p->trainer);
  for (size_t at = 0; at < laci_engine_step_count(engine); at++) {
    laci_engine_step info = laci_engine_step_info(engine, at);
    if (info.plain) fail_msg("%s: no fast form of %s (%s)", arch, info.name, info.kernel);
  }
}

static void check_statistics(const pair *p, const laci_stepper *run, double tolerance) {
  const laci_training_graph *g = laci_trainer_graph(p->trainer);
  int64_t n, at_statistic = 0;
  const float *statistics = laci_trainer_statistics(p->trainer, &n);
  for (int at = 0; at < g->n_stats; at++) {
    double d = difference(laci_stepper_value(run, g->stats[at].update), statistics + at_statistic);
    if (!(d <= tolerance)) fail_msg("%s differs by %g", g->stats[at].name, d);
    at_statistic += g->stats[at].count;
  }
  assert_int_equal(at_statistic, n);
}

/** Every gradient, element by element. */
static void check_graph(const char *arch, int size, laci_training_options graph, double tolerance) {
  pair p;
  assert_true(open_pair(&p, arch, size, graph, false));
  const laci_training_graph *g = laci_trainer_graph(p.trainer);
  const laci_parameter *parameters = laci_trainer_parameters(p.trainer);
  check_steps(&p, arch);
  laci_stepper *run = run_plain(&p);
  float loss = run_fast(&p);
  if (!(difference(laci_stepper_value(run, g->loss), &loss) <= 1e-5)) {
    fail_msg("loss %.9g, wanted %.9g", (double)loss, laci_stepper_value(run, g->loss)->f[0]);
  }
  const float *gradients = laci_trainer_gradients(p.trainer);
  for (int at = 0; at < g->n_params; at++) {
    double d = difference(laci_stepper_value(run, g->params[at].gradient),
                          gradients + parameters[at].offset);
    if (!(d <= tolerance)) fail_msg("%s: %s differs by %g", arch, g->params[at].name, d);
  }
  check_statistics(&p, run, tolerance);
  laci_stepper_destroy(run);
  close_pair(&p);
}

static void check(const char *arch, int size, int64_t batch, double tolerance) {
  check_graph(arch, size, (laci_training_options){.batch = batch}, tolerance);
}

/** All gradients together, with every block open. A value near zero before a Relu may round to its
 * other side, in bf16 a few in a thousand do, and its gradient comes or goes: the directions must
 * agree. */
static void check_graph_direction(const char *arch, int size, laci_training_options graph,
                                  bool bf16, double least_cosine) {
  pair p;
  if (!open_pair(&p, arch, size, graph, bf16)) return;
  open_blocks(p.trainer);
  const laci_training_graph *g = laci_trainer_graph(p.trainer);
  const laci_parameter *parameters = laci_trainer_parameters(p.trainer);
  double dot = 0, left = 0, right = 0;
  check_steps(&p, arch);
  laci_stepper *run = run_plain(&p);
  float loss = run_fast(&p);
  double wanted = laci_stepper_value(run, g->loss)->f[0];
  if (!(fabs((double)loss - wanted) <= 2e-2 * wanted))
    fail_msg("loss %g, wanted %g", (double)loss, wanted);
  for (int at = 0; at < g->n_params; at++) {
    const laci_buf *want = laci_stepper_value(run, g->params[at].gradient);
    const float *got = laci_trainer_gradients(p.trainer) + parameters[at].offset;
    for (int64_t i = 0; i < want->count; i++) {
      dot += want->f[i] * (double)got[i];
      left += want->f[i] * want->f[i];
      right += (double)got[i] * (double)got[i];
    }
  }
  double cosine = dot / sqrt(left * right);
  if (!(cosine >= least_cosine)) fail_msg("%s: cosine %g of the gradients", arch, cosine);
  check_statistics(&p, run, 5e-2);
  laci_stepper_destroy(run);
  close_pair(&p);
}

static void check_direction(const char *arch, int size, int64_t batch, bool bf16,
                            double least_cosine) {
  check_graph_direction(arch, size, (laci_training_options){.batch = batch}, bf16, least_cosine);
}

static void cifar_resnet_has_the_plain_engines_gradients(void **state) {
  (void)state;
  check("cifar-resnet20", 16, 6, 2e-3);
}

static void resnet18_has_the_plain_engines_gradients(void **state) {
  (void)state;
  check("resnet18", 48, 4, 2e-3);
}

static void resnet50_has_the_plain_engines_gradients(void **state) {
  (void)state;
  check("resnet50", 40, 4, 2e-3);
}

static void resnext_has_the_plain_engines_gradients(void **state) {
  (void)state;
  check("resnext50_32x4d", 40, 4, 2e-3);
}

static void digits_has_the_plain_engines_gradients(void **state) {
  (void)state;
  check("digits", 8, 16, 1e-4);
}

static void open_blocks_follow_the_plain_engine(void **state) {
  (void)state;
  check_direction("resnet18", 48, 4, false, 0.9999);
  if (tests_are_light()) return;
  check_direction("resnet50", 40, 4, false, 0.9999);
  check_direction("resnext50_32x4d", 40, 4, false, 0.9999);
}

static void bf16_follows_the_plain_engine(void **state) {
  (void)state;
  check_direction("digits", 8, 16, true, 0.98);
  check_direction("cifar-resnet20", 16, 6, true, 0.95);
  check_direction("resnet18", 48, 4, true, 0.95);
  if (tests_are_light()) return;
  check_direction("resnet50", 40, 4, true, 0.9);
  check_direction("resnext50_32x4d", 40, 4, true, 0.9);
}

static void statistics_that_stay_have_the_plain_engines_gradients(void **state) {
  (void)state;
  const laci_training_options graph = {.batch = 6, .keep_statistics = true};
  check_graph("cifar-resnet20", 16, graph, 2e-3);
  if (tests_are_light()) return;
  check_graph("resnet18", 48, graph, 2e-3);
  check_graph_direction("resnet50", 40, graph, false, 0.9999);
  check_graph_direction("cifar-resnet20", 16, graph, true, 0.95);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(digits_has_the_plain_engines_gradients),
      cmocka_unit_test(cifar_resnet_has_the_plain_engines_gradients),
      cmocka_unit_test(resnet18_has_the_plain_engines_gradients),
      cmocka_unit_test(resnet50_has_the_plain_engines_gradients),
      cmocka_unit_test(resnext_has_the_plain_engines_gradients),
      cmocka_unit_test(open_blocks_follow_the_plain_engine),
      cmocka_unit_test(bf16_follows_the_plain_engine),
      cmocka_unit_test(statistics_that_stay_have_the_plain_engines_gradients),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
