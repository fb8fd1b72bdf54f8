/* SPDX-License-Identifier: Apache-2.0
 * Training under masks that stay, on the fast engine: by sparse kernels it takes the steps that it
 * takes by dense ones but for rounding, the same bits again each time, also with values computed
 * again; what the masks leave out stays zero, and has no gradient. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "arch/arch.h"
#include "base/memory.h"
#include "base/rng.h"
#include "cpu/cpu.h"
#include "engine/engine.h"
#include "graph/graph.h"
#include "train/trainer.h"

enum { STEPS = 3, BATCH = 16, SIZE = 8 };

/** A network with masks of 2:4, and a batch. */
typedef struct fixture {
  laci_graph *model;
  uint8_t **masks; /* [n_stored]; NULL: none */
  laci_engine_weight *known;
  int n_known;
  float *images, *labels;
} fixture;

typedef struct variant {
  bool dense_only, remat, bf16;
  bool fixed; /* statistics stay */
  int threads;
} variant;

/* Windows of 3x3 and of one pixel that strides, sums of blocks, batch norms with a Relu and
 * without. */
static void set_up_of(fixture *f, const char *arch_name, int size) {
  const laci_arch_options arch = {.name = arch_name, .image_size = size, .conv_shortcut = true};
  lac_error err = {0};
  *f = (fixture){.model = NULL};
  if (laci_arch_build(&arch, &f->model, &err)) fail_msg("%s", err.text);
  const int n = f->model->n_stored;
  f->masks = (uint8_t **)laci_alloc((size_t)n, sizeof *f->masks);
  f->known = laci_alloc((size_t)n, sizeof *f->known);
  f->images = laci_alloc((size_t)(BATCH * 3 * size * size), sizeof *f->images);
  f->labels = laci_alloc(BATCH * 10, sizeof *f->labels);
  for (int s = 0; s < n; s++) {
    const laci_shape *shape = &f->model->stored[s].shape;
    if (shape->rank != 4 || shape->dims[1] % 4 != 0) continue;
    const int64_t taps = shape->dims[2] * shape->dims[3], count = laci_shape_count(shape);
    f->masks[s] = laci_alloc((size_t)count, 1);
    for (int64_t block = 0; block < count / 4; block++) {
      const uint64_t two = laci_rng_integer_below(7, (uint64_t)s, (uint64_t)block, 4);
      const int64_t first = block / taps * 4 * taps + block % taps;
      f->masks[s][first + (int64_t)two * taps] = 1;
      f->masks[s][first + (int64_t)((two + 1 + block % 3) % 4) * taps] = 1;
    }
    f->known[f->n_known++] =
        (laci_engine_weight){.value = f->model->stored[s].value, .mask = f->masks[s]};
  }
  for (int i = 0; i < BATCH * 3 * size * size; i++) {
    f->images[i] = (float)(laci_rng_unit_interval(5, 0, (uint64_t)i) * 2 - 1);
  }
  for (int i = 0; i < BATCH; i++) f->labels[i * 10 + i % 10] = 1;
}

static void set_up(fixture *f) { set_up_of(f, "cifar-resnet20", SIZE); }

static void clear(fixture *f) {
  for (int s = 0; s < f->model->n_stored; s++) laci_free(f->masks[s]);
  laci_free((void *)f->masks);
  laci_free(f->known);
  laci_free(f->images);
  laci_free(f->labels);
  laci_graph_destroy(f->model);
}

static laci_trainer *open_trainer(const fixture *f, variant w) {
  lac_error err = {0};
  laci_trainer *t;
  const laci_trainer_options o = {.graph = {.batch = BATCH, .keep_statistics = w.fixed},
                                  .optimizer = laci_optimizer_options_default(LACI_OPTIMIZER_SGD),
                                  .run.threads = w.threads,
                                  .run.bf16 = w.bf16,
                                  .run.dense_only = w.dense_only,
                                  .remat = w.remat,
                                  .weights = f->known,
                                  .n_weights = f->n_known};
  if (laci_trainer_create(f->model, &o, &t, &err)) fail_msg("%s", err.text);
  const laci_training_graph *g = laci_trainer_graph(t);
  for (int p = 0; p < g->n_params; p++) {
    const uint8_t *mask = f->masks[g->params[p].stored];
    if (!mask) continue;
    laci_optimizer_set_mask(laci_trainer_optimizer(t), p, mask, laci_trainer_weights(t));
  }
  return t;
}

static float step(const fixture *f, laci_trainer *t) {
  lac_error err = {0};
  float loss;
  if (laci_trainer_run_batch(t, f->images, f->labels, &loss, NULL, &err)) fail_msg("%s", err.text);
  return loss;
}

static int sparse_steps(const laci_trainer *t) {
  return laci_engine_sparse_step_count(laci_trainer_engine(t));
}

/** How far two tensors are apart, as a share of the larger one's length. */
static double distance(const float *a, const float *b, int64_t n) {
  double off = 0, length = 0;
  for (int64_t i = 0; i < n; i++) {
    off += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
    length += (double)a[i] * (double)a[i];
  }
  return length > 0 ? sqrt(off / length) : sqrt(off);
}

/** What the masks leave out is zero. */
static void expect_zeros(const fixture *f, const laci_trainer *t, const float *all) {
  const laci_training_graph *g = laci_trainer_graph(t);
  for (int p = 0; p < g->n_params; p++) {
    const laci_parameter *q = &laci_trainer_parameters(t)[p];
    const uint8_t *mask = f->masks[g->params[p].stored];
    for (int64_t i = 0; mask && i < q->count; i++) {
      if (!mask[i] && all[q->offset + i] != 0) fail_msg("%s: what the mask leaves out", q->name);
    }
  }
}

/* ---- Tests ---- */

/* Of the first step, before rounding tells one Relu from another; in f32. */
static void expect_gradients(int size, bool fixed) {
  fixture f;
  set_up_of(&f, "cifar-resnet20", size);
  laci_trainer *dense =
      open_trainer(&f, (variant){.dense_only = true, .threads = 1, .fixed = fixed});
  laci_trainer *sparse = open_trainer(&f, (variant){.threads = 1, .fixed = fixed});
  const laci_training_graph *g = laci_trainer_graph(dense);
  assert_int_equal(sparse_steps(dense), 0);
  /* forward, input and weight: all convolutions but the first one, whose channels are three */
  assert_int_equal(sparse_steps(sparse), 3 * f.n_known);
  assert_true(fabsf(step(&f, dense) - step(&f, sparse)) < 1e-5F);
  for (int p = 0; p < g->n_params; p++) {
    const laci_parameter *q = &laci_trainer_parameters(dense)[p];
    const float *a = laci_trainer_gradients(dense) + q->offset;
    const float *b = laci_trainer_gradients(sparse) + q->offset;
    const uint8_t *mask = f.masks[g->params[p].stored];
    float *kept = laci_alloc((size_t)q->count, sizeof *kept);
    for (int64_t i = 0; i < q->count; i++) kept[i] = mask && !mask[i] ? 0 : a[i];
    const double off = distance(kept, b, q->count);
    if (!(off < 2e-4)) fail_msg("%s: %g", q->name, off);
    laci_free(kept);
  }
  expect_zeros(&f, sparse, laci_trainer_gradients(sparse));
  laci_trainer_destroy(dense);
  laci_trainer_destroy(sparse);
  clear(&f);
}

/* Windows that stride over images of even and of odd sides. */
static void gradients_are_those_of_dense_kernels(void **state) {
  (void)state;
  for (int fixed = 0; fixed < 2; fixed++) {
    expect_gradients(SIZE, fixed);
    expect_gradients(SIZE + 1, fixed);
  }
}

/* All gradients as one vector, of what is kept. */
static double distance_of_gradients(const fixture *f, laci_trainer *a, laci_trainer *b) {
  const laci_training_graph *g = laci_trainer_graph(a);
  double off = 0, length = 0;
  for (int p = 0; p < g->n_params; p++) {
    const laci_parameter *q = &laci_trainer_parameters(a)[p];
    const uint8_t *mask = f->masks[g->params[p].stored];
    for (int64_t i = 0; i < q->count; i++) {
      if (mask && !mask[i]) continue;
      const double x = (double)laci_trainer_gradients(a)[q->offset + i];
      const double y = (double)laci_trainer_gradients(b)[q->offset + i];
      off += (x - y) * (x - y);
      length += x * x;
    }
  }
  return sqrt(off / length);
}

/* Values in between are rounded to bf16, other ones by each kind of kernels (the dense ones'
 * windows of 3x3 round transformed values, too), and values near 0 pass a Relu in one run and not
 * in the other. So the test is that sparse kernels are as near to f32 as dense ones of bf16 are. */
static void gradients_of_bf16_are_as_near_as_those_of_dense_kernels(void **state) {
  const variant variants[] = {{.dense_only = true, .threads = 1},
                              {.dense_only = true, .threads = 1, .bf16 = true},
                              {.threads = 1, .bf16 = true}};
  laci_trainer *of[3];
  fixture f;
  (void)state;
  if (!laci_cpu_has_avx512bf16()) skip();
  for (int size = SIZE; size <= SIZE + 1; size++) {
    set_up_of(&f, "cifar-resnet20", size);
    float loss[3];
    for (int at = 0; at < 3; at++) {
      of[at] = open_trainer(&f, variants[at]);
      loss[at] = step(&f, of[at]);
    }
    assert_int_equal(sparse_steps(of[1]), 0);
    assert_int_equal(sparse_steps(of[2]), 3 * f.n_known);
    const double dense = distance_of_gradients(&f, of[0], of[1]);
    const double sparse = distance_of_gradients(&f, of[0], of[2]);
    if (!(sparse <= 1.25 * dense)) fail_msg("%g, dense kernels %g", sparse, dense);
    if (!(fabsf(loss[2] - loss[0]) < 0.01F)) fail_msg("%g", (double)fabsf(loss[2] - loss[0]));
    expect_zeros(&f, of[2], laci_trainer_gradients(of[2]));
    for (int at = 0; at < 3; at++) laci_trainer_destroy(of[at]);
    clear(&f);
  }
}

static void steps_are_those_of_dense_kernels(void **state) {
  fixture f;
  (void)state;
  set_up(&f);
  laci_trainer *dense = open_trainer(&f, (variant){.dense_only = true, .threads = 2});
  laci_trainer *sparse = open_trainer(&f, (variant){.threads = 2});
  const laci_training_graph *g = laci_trainer_graph(dense);
  for (int at = 0; at < STEPS; at++) {
    const float a = step(&f, dense), b = step(&f, sparse);
    if (!(fabsf(a - b) < 1e-4F))
      fail_msg("step %d: losses %.7f and %.7f", at, (double)a, (double)b);
    assert_int_equal(laci_trainer_update(dense, 1e-3, NULL), LAC_OK);
    assert_int_equal(laci_trainer_update(sparse, 1e-3, NULL), LAC_OK);
  }
  for (int p = 0; p < g->n_params; p++) {
    const laci_parameter *q = &laci_trainer_parameters(dense)[p];
    const float *b = laci_trainer_weights(sparse) + q->offset;
    const double off = distance(laci_trainer_weights(dense) + q->offset, b, q->count);
    if (!q->is_vector && !(off < 1e-5)) fail_msg("%s: %g", q->name, off);
  }
  expect_zeros(&f, sparse, laci_trainer_weights(sparse));
  laci_trainer_destroy(dense);
  laci_trainer_destroy(sparse);
  clear(&f);
}

static void expect_same_steps(const fixture *f, variant a, variant b) {
  laci_trainer *one = open_trainer(f, a), *other = open_trainer(f, b);
  const laci_training_graph *g = laci_trainer_graph(one);
  for (int at = 0; at < STEPS; at++) {
    assert_true(step(f, one) == step(f, other));
    assert_int_equal(laci_trainer_update(one, 0.01, NULL), LAC_OK);
    assert_int_equal(laci_trainer_update(other, 0.01, NULL), LAC_OK);
  }
  for (int p = 0; p < g->n_params; p++) {
    const laci_parameter *q = &laci_trainer_parameters(one)[p];
    assert_memory_equal(laci_trainer_weights(one) + q->offset,
                        laci_trainer_weights(other) + q->offset, (size_t)q->count * sizeof(float));
  }
  laci_trainer_destroy(one);
  laci_trainer_destroy(other);
}

static void the_same_steps_again_have_the_same_bits(void **state) {
  fixture f;
  (void)state;
  set_up(&f);
  expect_same_steps(&f, (variant){.threads = 3}, (variant){.threads = 3});
  if (laci_cpu_has_avx512bf16()) {
    expect_same_steps(&f, (variant){.threads = 3, .bf16 = true},
                      (variant){.threads = 3, .bf16 = true});
  }
  clear(&f);
}

/* The first layer's is a dense kernel's. */
static void threads_change_no_gradient_of_what_is_pruned(void **state) {
  fixture f;
  (void)state;
  set_up(&f);
  for (int bf16 = 0; bf16 <= laci_cpu_has_avx512bf16(); bf16++) {
    laci_trainer *one = open_trainer(&f, (variant){.threads = 1, .bf16 = bf16});
    const laci_training_graph *g = laci_trainer_graph(one);
    const float loss = step(&f, one);
    for (int threads = 2; threads <= 3; threads++) {
      laci_trainer *more = open_trainer(&f, (variant){.threads = threads, .bf16 = bf16});
      assert_true(step(&f, more) == loss);
      for (int p = 0; p < g->n_params; p++) {
        const laci_parameter *q = &laci_trainer_parameters(one)[p];
        if (!f.masks[g->params[p].stored]) continue;
        assert_memory_equal(laci_trainer_gradients(one) + q->offset,
                            laci_trainer_gradients(more) + q->offset,
                            (size_t)q->count * sizeof(float));
      }
      laci_trainer_destroy(more);
    }
    laci_trainer_destroy(one);
  }
  clear(&f);
}

static void values_computed_again_have_the_same_bits(void **state) {
  (void)state;
  for (int bf16 = 0; bf16 <= laci_cpu_has_avx512bf16(); bf16++) {
    fixture f;
    set_up(&f);
    laci_trainer *t = open_trainer(&f, (variant){.threads = 1, .remat = true, .bf16 = bf16});
    assert_true(sparse_steps(t) > 3 * f.n_known); /* some are recomputed */
    laci_trainer_destroy(t);
    expect_same_steps(&f, (variant){.threads = 1, .bf16 = bf16},
                      (variant){.threads = 1, .remat = true, .bf16 = bf16});
    clear(&f);
  }
}

static int sparse_steps_of(const char *arch_name, const char *use, bool bf16) {
  fixture f;
  if (use) assert_int_equal(setenv("LAC_SPARSE", use, 1), 0);
  else assert_int_equal(unsetenv("LAC_SPARSE"), 0);
  set_up_of(&f, arch_name, SIZE);
  laci_trainer *t = open_trainer(&f, (variant){.threads = 1, .bf16 = bf16});
  const int n = sparse_steps(t);
  laci_trainer_destroy(t);
  clear(&f);
  assert_int_equal(setenv("LAC_SPARSE", "all", 1), 0);
  return n;
}

/* Of f32, Winograd's algorithm is as fast for windows of 3x3 that do not stride; the four others of
 * the smaller network are worth it, those of the larger one too little of it. Of bf16 all of 32
 * channels and more are, but where dense kernels have matrix tiles. */
static void what_gains_nothing_stays_dense(void **state) {
  (void)state;
  assert_int_equal(sparse_steps_of("cifar-resnet20", "0", false), 0);
  if (laci_cpu_level_in_force() != LACI_CPU_AVX512) return;
  assert_int_equal(sparse_steps_of("cifar-resnet20", NULL, false), 3 * 4);
  assert_int_equal(sparse_steps_of("cifar-resnet56", NULL, false), 0);
  if (!laci_cpu_has_avx512bf16()) return;
  const bool tiles = laci_cpu_has_bf16_tiles();
  assert_int_equal(sparse_steps_of("cifar-resnet20", NULL, true), tiles ? 0 : 3 * 12);
}

static int use_all(void **state) {
  (void)state;
  return setenv("LAC_SPARSE", "all", 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gradients_are_those_of_dense_kernels),
      cmocka_unit_test(gradients_of_bf16_are_as_near_as_those_of_dense_kernels),
      cmocka_unit_test(steps_are_those_of_dense_kernels),
      cmocka_unit_test(the_same_steps_again_have_the_same_bits),
      cmocka_unit_test(threads_change_no_gradient_of_what_is_pruned),
      cmocka_unit_test(values_computed_again_have_the_same_bits),
      cmocka_unit_test(what_gains_nothing_stays_dense),
  };
  return cmocka_run_group_tests(tests, use_all, NULL);
}
