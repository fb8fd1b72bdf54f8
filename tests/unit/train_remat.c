/* SPDX-License-Identifier: Apache-2.0
 * Training with values computed again, on the fast engine: weights, statistics and losses have the
 * bits of a training without, in f32 and in bf16, and a step takes less memory. One that is
 * continued without recomputation, or with it, ends the same, too. (Every value of a step:
 * engine_remat.c.) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "arch/arch.h"
#include "base/memory.h"
#include "cpu/cpu.h"
#include "engine/engine.h"
#include "base/rng.h"
#include "onnx/onnx.h"
#include "support/block_nets.h"
#include "support/graph_run.h"
#include "support/programs.h"
#include "tensor/buf.h"
#include "train/trainer.h"

/** The same network, trained with and without recomputation, with the same batches. */
typedef struct trainers {
  laci_trainer *once, *again;
  float *images, *labels;
  int64_t n_images, n_labels;
} trainers;

/** False: this processor has no bf16. */
static bool open_trainer(const laci_graph *model, const laci_training_options *graph, bool bf16,
                         bool remat, laci_trainer **trainer) {
  lac_error err = {0};
  laci_trainer_options o = {.graph = *graph,
                            .remat = remat,
                            .optimizer = laci_optimizer_options_default(LACI_OPTIMIZER_SGD),
                            .run.threads = 1,
                            .run.bf16 = bf16};
  lac_status st = laci_trainer_create(model, &o, trainer, &err);
  if (st == LAC_UNSUPPORTED && bf16 && strstr(err.text, "bf16 instructions")) return false;
  if (st) fail_msg("%s", err.text);
  return true;
}

/** Scales that start as zero would keep gradients from what is before them. */
static void open_blocks(laci_trainer *trainer) {
  const laci_training_graph *g = laci_trainer_graph(trainer);
  for (int at = 0; at < g->n_params; at++) {
    const laci_parameter *p = &laci_trainer_parameters(trainer)[at];
    float *w = laci_trainer_weights(trainer) + p->offset;
    for (int64_t i = 0; g->params[at].kind == LACI_PARAM_NORM && i < p->count; i++)
      if (w[i] == 0) w[i] = 0.1f;
  }
}

static bool open_trainers(trainers *p, const laci_graph *model, const laci_training_options *graph,
                          bool bf16) {
  *p = (trainers){.n_labels = 0};
  if (!open_trainer(model, graph, bf16, false, &p->once)) return false;
  assert_true(open_trainer(model, graph, bf16, true, &p->again));
  open_blocks(p->once);
  open_blocks(p->again);
  const laci_training_graph *g = laci_trainer_graph(p->once);
  p->n_images = laci_shape_count(&g->graph->values[g->images].type.shape);
  p->n_labels = g->batch * g->n_classes;
  p->images = laci_alloc((size_t)p->n_images, sizeof *p->images);
  p->labels = laci_alloc((size_t)p->n_labels, sizeof *p->labels);
  return true;
}

static void close_trainers(trainers *p) {
  laci_trainer_destroy(p->once);
  laci_trainer_destroy(p->again);
  laci_free(p->images);
  laci_free(p->labels);
}

static void fill_batch(trainers *p, uint64_t batch) {
  const laci_training_graph *g = laci_trainer_graph(p->once);
  memset(p->labels, 0, (size_t)p->n_labels * sizeof *p->labels);
  for (int64_t n = 0; n < g->batch; n++)
    p->labels[n * g->n_classes + (n + (int64_t)batch) % g->n_classes] = 1;
  for (int64_t i = 0; i < p->n_images; i++)
    p->images[i] = (float)(laci_rng_unit_interval(5, batch, (uint64_t)i) * 2 - 1);
}

static float step(trainers *p, laci_trainer *trainer) {
  lac_error err = {0};
  float loss = 0;
  if (laci_trainer_run_batch(trainer, p->images, p->labels, &loss, NULL, &err))
    fail_msg("%s", err.text);
  assert_int_equal(laci_trainer_update(trainer, 0.01, NULL), LAC_OK);
  return loss;
}

static void expect_same(const float *a, const float *b, int64_t n, const char *name) {
  if (memcmp(a, b, (size_t)n * sizeof *a) != 0) fail_msg("%s differs", name);
}

static void compare(const trainers *p, const char *name) {
  int64_t n;
  const laci_training_graph *g = laci_trainer_graph(p->once);
  for (int at = 0; at < g->n_params; at++) {
    const laci_parameter *q = &laci_trainer_parameters(p->once)[at];
    expect_same(laci_trainer_gradients(p->once) + q->offset,
                laci_trainer_gradients(p->again) + q->offset, q->count, q->name);
    expect_same(laci_trainer_weights(p->once) + q->offset,
                laci_trainer_weights(p->again) + q->offset, q->count, q->name);
  }
  const float *a = laci_trainer_statistics(p->once, &n);
  expect_same(a, laci_trainer_statistics(p->again, &n), n, name);
}

/** share: of the memory of values that a step without takes, at most; less is saved in bf16 and by
 * AVX-512, where scratch memory (and, in bf16, gradients of weights) stays as large. */
static void check(const laci_graph *model, laci_training_options graph, bool bf16, double share,
                  const char *name) {
  trainers p;
  if (!open_trainers(&p, model, &graph, bf16)) return;
  const laci_engine_memory once = laci_engine_planned_memory(laci_trainer_engine(p.once));
  const laci_engine_memory again = laci_engine_planned_memory(laci_trainer_engine(p.again));
  size_t more = once.arena_bytes, less = again.arena_bytes;
  assert_int_equal(once.n_recomputed, 0);
  if (again.n_recomputed == 0) fail_msg("%s: nothing is computed again", name);
  double most = bf16 || laci_cpu_has_avx512f() ? (1 + share) / 2 : share;
  if (!((double)less <= most * (double)more))
    fail_msg("%s%s: %zu bytes of values, %zu without", name, bf16 ? ", bf16" : "", less, more);
  for (uint64_t batch = 0; batch < 3; batch++) {
    fill_batch(&p, batch);
    float a = step(&p, p.once), b = step(&p, p.again);
    expect_same(&a, &b, 1, "loss");
    compare(&p, name);
  }
  close_trainers(&p);
}

static void check_arch(const char *name, int size, int64_t batch, double share) {
  lac_error err = {0};
  laci_graph *model;
  laci_arch_options o = {.name = name, .n_classes = 10, .image_size = size, .seed = 3};
  if (laci_arch_build(&o, &model, &err)) fail_msg("%s", err.text);
  check(model, (laci_training_options){.batch = batch}, false, share, name);
  check(model, (laci_training_options){.batch = batch}, true, share, name);
  check(model, (laci_training_options){.batch = batch, .keep_statistics = true}, false, share,
        name);
  laci_graph_destroy(model);
}

static void check_blocks(block_kind kind, int n_blocks, int64_t batch, double share) {
  static block_text net;
  lac_error err = {0};
  laci_graph *model;
  block_net(kind, n_blocks, &net);
  if (net_read(net.text, &model, &err)) fail_msg("%s", err.text);
  check(model, (laci_training_options){.batch = batch}, false, share, net.text);
  check(model, (laci_training_options){.batch = batch}, true, share, net.text);
  laci_graph_destroy(model);
}

/** A network of tests/fixtures/zoo, filled. */
static void check_file(const char *name, int size, int64_t batch, double share) {
  char path[] = "/tmp/lacuna_remat_XXXXXX";
  lac_error err = {0};
  laci_onnx *file;
  laci_graph *model;
  int made = mkstemp(path);
  assert_true(made >= 0);
  (void)close(made);
  if (fill_network(name, path) != 0) fail_msg("%s", name);
  if (laci_onnx_load(path, &file, &model, &err) || laci_onnx_materialise(file, &err)) {
    fail_msg("%s", err.text);
  }
  if (laci_graph_infer(model, NULL, 0, &err)) fail_msg("%s", err.text);
  laci_training_options graph = {.batch = batch, .image = {3, {3, size, size}}};
  check(model, graph, false, share, name);
  check(model, graph, true, share, name);
  laci_graph_destroy(model);
  laci_onnx_destroy(file);
  (void)unlink(path);
}

static void residual_networks_keep_their_bits(void **state) {
  (void)state;
  check_arch("digits", 8, 32, 0.96);
  check_arch("cifar-resnet20", 32, 8, 0.5);
  check_arch("resnet18", 64, 8, 0.95);
  check_arch("resnet50", 64, 8, 0.85);
}

static void joins_keep_their_bits(void **state) {
  (void)state;
  check_blocks(BLOCK_JOINS, 6, 16, 0.6);
}

static void gates_keep_their_bits(void **state) {
  (void)state;
  check_blocks(BLOCK_GATES, 6, 16, 0.5);
}

static void branches_keep_their_bits(void **state) {
  (void)state;
  check_blocks(BLOCK_BRANCHES, 6, 16, 0.5);
}

static void attention_keeps_its_bits(void **state) {
  (void)state;
  check_blocks(BLOCK_ATTENTION, 6, 16, 0.4);
}

static void networks_from_files_keep_their_bits(void **state) {
  (void)state;
  check_file("densenet121_ts", 224, 1, 0.4);
  check_file("regnet_y_400mf_ts", 224, 2, 0.45);
  check_file("shufflenet_v2_x1_5_ts", 224, 2, 0.5);
}

/** What a checkpoint holds goes from one to the other after every step. */
static void the_other_setting_goes_on_with_the_same_bits(void **state) {
  (void)state;
  lac_error err = {0};
  laci_graph *model;
  laci_trainer *mixed[2];
  laci_arch_options o = {.name = "cifar-resnet20", .n_classes = 10, .image_size = 16, .seed = 3};
  if (laci_arch_build(&o, &model, &err)) fail_msg("%s", err.text);
  trainers p;
  laci_training_options graph = {.batch = 16};
  assert_true(open_trainers(&p, model, &graph, false));
  mixed[0] = p.again;
  assert_true(open_trainer(model, &graph, false, false, &mixed[1]));
  for (uint64_t batch = 0; batch < 4; batch++) {
    laci_trainer *now = mixed[batch % 2], *next = mixed[(batch + 1) % 2];
    fill_batch(&p, batch);
    (void)step(&p, p.once);
    (void)step(&p, now);
    laci_optimizer *from = laci_trainer_optimizer(now), *to = laci_trainer_optimizer(next);
    size_t n = (size_t)laci_optimizer_count_floats(from);
    int64_t n_statistics;
    expect_same(laci_trainer_weights(p.once), laci_trainer_weights(now), (int64_t)n, "weights");
    memcpy(laci_trainer_weights(next), laci_trainer_weights(now), n * sizeof(float));
    float *statistics = laci_trainer_statistics(now, &n_statistics);
    memcpy(laci_trainer_statistics(next, &n_statistics), statistics,
           (size_t)n_statistics * sizeof(float));
    laci_optimizer_set_steps(to, laci_optimizer_steps(from));
    for (int slot = 0; slot < laci_optimizer_count_slots(from); slot++)
      memcpy(laci_optimizer_slot(to, slot), laci_optimizer_slot(from, slot), n * sizeof(float));
  }
  laci_trainer_destroy(mixed[1]);
  close_trainers(&p);
  laci_graph_destroy(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(residual_networks_keep_their_bits),
      cmocka_unit_test(joins_keep_their_bits),
      cmocka_unit_test(gates_keep_their_bits),
      cmocka_unit_test(branches_keep_their_bits),
      cmocka_unit_test(attention_keeps_its_bits),
      cmocka_unit_test(networks_from_files_keep_their_bits),
      cmocka_unit_test(the_other_setting_goes_on_with_the_same_bits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
