/* SPDX-License-Identifier: Apache-2.0
 * Gradients that are told of while backward goes on: buckets cover the buffer, each is final when
 * it is told, to the byte and with the batches before added to it, and training that is watched
 * takes the steps of training that is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "arch/arch.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/rng.h"
#include "engine/engine.h"
#include "graph/graph.h"
#include "lacuna/log.h"
#include "train/trainer.h"
#include "support/light.h"

enum { CLASSES = 10, BATCHES = 3 };

/* ---- A network and its batches ---- */

typedef struct fixture {
  laci_graph *model;
  int batch;
  size_t sample; /* floats of an image */
  float *images[BATCHES], *labels;
} fixture;

static void set_up(fixture *f, const char *name, int size, int batch) {
  const laci_arch_options arch = {
      .name = name, .n_classes = CLASSES, .image_size = size, .seed = 3};
  lac_error err = {0};
  *f = (fixture){.batch = batch};
  if (laci_arch_build(&arch, &f->model, &err)) fail_msg("%s", err.text);
  const laci_shape *image = &f->model->values[f->model->inputs[0]].type.shape;
  f->sample = (size_t)(image->dims[1] * image->dims[2] * image->dims[3]);
  for (int k = 0; k < BATCHES; k++) {
    f->images[k] = laci_alloc((size_t)batch * f->sample, sizeof(float));
    for (size_t i = 0; i < (size_t)batch * f->sample; i++)
      f->images[k][i] = (float)(2 * laci_rng_unit_interval(9, (uint64_t)k, i) - 1);
  }
  f->labels = laci_alloc((size_t)batch * CLASSES, sizeof(float));
  for (int i = 0; i < batch; i++) f->labels[i * CLASSES + i % CLASSES] = 1;
}

static void clear(fixture *f) {
  for (int k = 0; k < BATCHES; k++) laci_free(f->images[k]);
  laci_free(f->labels);
  laci_graph_destroy(f->model);
}

/** NULL: no bf16 here. */
static laci_trainer *open_trainer(const fixture *f, const char *engine, int threads, bool bf16) {
  lac_error err = {0};
  laci_trainer *t;
  const laci_trainer_options o = {.graph = {.batch = f->batch},
                                  .optimizer = laci_optimizer_options_default(LACI_OPTIMIZER_SGD),
                                  .run.engine = engine,
                                  .run.threads = threads,
                                  .run.bf16 = bf16};
  const lac_status st = laci_trainer_create(f->model, &o, &t, &err);
  if (st == LAC_UNSUPPORTED && bf16 && strstr(err.text, "bf16 instructions")) return NULL;
  if (st) fail_msg("%s", err.text);
  return t;
}

static int64_t size_of(laci_trainer *t) {
  return laci_optimizer_count_floats(laci_trainer_optimizer(t));
}

/* ---- Who watches ---- */

typedef struct witness {
  laci_trainer *trainer;
  laci_bucket *buckets; /* [n] */
  int n;
  int64_t size;
  float *seen;           /* [size] each bucket when it was told */
  size_t *at;            /* [n] of each, the steps that had passed */
  int n_ready, fails_at; /* fails_at: a bucket; -1: none */
  size_t n_between;
  bool changes; /* what it is told of becomes twice as much */
} witness;

static lac_status ready(void *context, int bucket, lac_error *err) {
  witness *w = context;
  const laci_bucket *b = &w->buckets[bucket];
  float *g = laci_trainer_gradients(w->trainer);
  assert_true(bucket == w->n_ready && bucket < w->n);
  w->at[w->n_ready++] = w->n_between;
  if (bucket == w->fails_at) return laci_fail(err, LAC_IO, "enough of bucket %d", bucket);
  for (int64_t at = b->offset; at < b->offset + b->count; at++) {
    if (w->changes) g[at] *= 2;
    w->seen[at] = g[at];
  }
  return LAC_OK;
}

static void between(void *context) {
  witness *w = context;
  w->n_between++;
}

/** Buckets of `bytes`. */
static void open_witness(witness *w, laci_trainer *t, size_t bytes) {
  lac_error err = {0};
  *w = (witness){.trainer = t, .size = size_of(t), .fails_at = -1};
  if (laci_trainer_make_buckets(t, bytes, &w->buckets, &w->n, &err)) fail_msg("%s", err.text);
  w->seen = laci_alloc((size_t)w->size, sizeof *w->seen);
  w->at = laci_alloc((size_t)w->n, sizeof *w->at);
}

static void close_witness(witness *w) {
  laci_free(w->buckets);
  laci_free(w->seen);
  laci_free(w->at);
}

static lac_status run(const fixture *f, laci_trainer *t, int batch, witness *w, lac_error *err) {
  float loss;
  if (!w) return laci_trainer_run_batch(t, f->images[batch], f->labels, &loss, NULL, err);
  const laci_batch_watch watch = {.buckets = w->buckets,
                                  .n_buckets = w->n,
                                  .ready = ready,
                                  .after_step = between,
                                  .context = w};
  w->n_ready = 0;
  w->n_between = 0;
  return laci_trainer_run_batch_watched(t, f->images[batch], f->labels, &loss, &watch, err);
}

static void run_ok(const fixture *f, laci_trainer *t, int batch, witness *w) {
  lac_error err = {0};
  if (run(f, t, batch, w, &err)) fail_msg("%s", err.text);
}

/* ---- Where the cuts are ---- */

/** Every bucket is whole parameters, and no larger than is asked where it is several. */
static void expect_cover(const witness *w, size_t bytes) {
  const int n_params = laci_trainer_graph(w->trainer)->n_params;
  const laci_parameter *p = laci_trainer_parameters(w->trainer);
  const size_t n_steps = laci_engine_step_count(laci_trainer_engine(w->trainer));
  int n_met = 0;
  for (int at = 0; at < w->n; at++) {
    const laci_bucket *b = &w->buckets[at];
    int64_t floats = 0;
    int inside = 0;
    for (int k = 0; k < n_params; k++) {
      const int64_t end = p[k].offset + p[k].count, last = b->offset + b->count;
      if (p[k].offset >= last || end <= b->offset) continue;
      assert_true(p[k].offset >= b->offset && end <= last);
      floats += p[k].count;
      inside++;
    }
    assert_true(inside >= 1 && (inside == 1 || (size_t)floats * sizeof(float) <= bytes));
    assert_true(at == 0 || b[-1].step <= b->step);
    assert_true(b->step <= n_steps);
    for (int other = 0; other < at; other++) {
      const laci_bucket *o = &w->buckets[other];
      assert_true(b->offset + b->count <= o->offset || o->offset + o->count <= b->offset);
    }
    n_met += inside;
  }
  assert_int_equal(n_met, n_params);
}

static void buckets_cover_the_gradients(void **state) {
  (void)state;
  static const size_t sizes[] = {0, 1, 4000, 20000, 80000, 400000, SIZE_MAX / 4};
  fixture f;
  set_up(&f, "cifar-resnet20", 8, 2);
  laci_trainer *t = open_trainer(&f, NULL, 1, false);
  for (int k = 0; k < 7; k++) {
    witness w;
    open_witness(&w, t, sizes[k]);
    expect_cover(&w, sizes[k]);
    if (k < 2) assert_int_equal(w.n, laci_trainer_graph(t)->n_params);
    if (k == 6) assert_true(w.n > 1 && w.n < 9); /* the last is small all the same */
    close_witness(&w);
  }
  laci_trainer_destroy(t);
  clear(&f);
}

/** The buffer's end first, each nearer to its start; most of them long before the end. */
static void buckets_become_final_from_the_end(void **state) {
  (void)state;
  static const char *const names[] = {"cifar-resnet20", "resnet50", "resnext50_32x4d"};
  for (int k = 0; k < 3; k += tests_stride(3)) {
    fixture f;
    witness w;
    int n_early = 0;
    set_up(&f, names[k], k == 0 ? 8 : 32, 2);
    laci_trainer *t = open_trainer(&f, NULL, 2, false);
    open_witness(&w, t, (size_t)size_of(t) / 20 * sizeof(float));
    const laci_bucket *b = w.buckets;
    const size_t n_steps = laci_engine_step_count(laci_trainer_engine(t));
    assert_true(w.n >= 15);
    for (int at = 1; at < w.n; at++) assert_true(b[at].offset < b[at - 1].offset);
    for (int at = 0; at < w.n; at++) n_early += b[at].step < n_steps * 9 / 10;
    if (n_early < w.n * 3 / 4) fail_msg("%s: %d of %d buckets come early", names[k], n_early, w.n);
    assert_true(b[0].step < n_steps * 2 / 3);
    assert_true(b[w.n - 1].offset == 0 && b[w.n - 1].count <= 1 << 14);
    close_witness(&w);
    laci_trainer_destroy(t);
    clear(&f);
  }
}

/* ---- Final is final ---- */

static void expect_same_gradients(laci_trainer *a, laci_trainer *b) {
  assert_memory_equal(laci_trainer_gradients(a), laci_trainer_gradients(b),
                      (size_t)size_of(a) * sizeof(float));
}

static void expect_same(laci_trainer *a, laci_trainer *b) {
  int64_t n;
  const float *x = laci_trainer_statistics(a, &n), *y = laci_trainer_statistics(b, &n);
  assert_memory_equal(x, y, (size_t)n * sizeof *x);
  expect_same_gradients(a, b);
}

/** Of `n_batches` that are added up the last is watched, and all are in what it is told of. */
static void check_batches(const fixture *f, const char *engine, bool bf16, int n_batches) {
  laci_trainer *alone = open_trainer(f, engine, 2, bf16);
  laci_trainer *watched = open_trainer(f, engine, 2, bf16);
  witness w;
  if (!alone || !watched) goto out;
  open_witness(&w, watched, (size_t)size_of(watched) / 12 * sizeof(float));
  for (int step = 0; step < 2; step++) {
    for (int k = 0; k < n_batches; k++) {
      run_ok(f, alone, k, NULL);
      run_ok(f, watched, k, k + 1 == n_batches ? &w : NULL);
    }
    assert_int_equal(w.n_ready, w.n);
    assert_true(w.n_between == laci_engine_step_count(laci_trainer_engine(watched)));
    for (int at = 0; at < w.n; at++) assert_true(w.at[at] == w.buckets[at].step);
    for (int at = 0; at < w.n; at++) {
      const laci_bucket *b = &w.buckets[at];
      assert_memory_equal(w.seen + b->offset, laci_trainer_gradients(watched) + b->offset,
                          (size_t)b->count * sizeof(float));
    }
    expect_same(alone, watched);
    assert_int_equal(laci_trainer_update(alone, 0.1, NULL), LAC_OK);
    assert_int_equal(laci_trainer_update(watched, 0.1, NULL), LAC_OK);
    assert_memory_equal(laci_trainer_weights(alone), laci_trainer_weights(watched),
                        (size_t)w.size * sizeof(float));
  }
  close_witness(&w);
out:
  laci_trainer_destroy(alone);
  laci_trainer_destroy(watched);
}

static void what_is_told_is_final(void **state) {
  (void)state;
  fixture f;
  set_up(&f, "cifar-resnet20", 16, 4);
  for (int bf16 = 0; bf16 < 2; bf16++) {
    check_batches(&f, NULL, bf16, 1);
    check_batches(&f, NULL, bf16, BATCHES);
  }
  clear(&f);
  if (tests_stride(2) > 1) return;
  set_up(&f, "resnext50_32x4d", 32, 2);
  check_batches(&f, NULL, false, 2);
  clear(&f);
}

static void an_engine_that_writes_at_the_end_tells_then(void **state) {
  (void)state;
  fixture f;
  set_up(&f, "digits", 8, 2);
  check_batches(&f, "plain", false, 2);
  clear(&f);
}

/* ---- What is done with it ---- */

/** Who makes them sums over more batches says so, and nothing writes to them any more. */
static void what_is_done_to_a_bucket_stays(void **state) {
  (void)state;
  fixture f;
  witness w;
  set_up(&f, "digits", 8, 4);
  laci_trainer *one = open_trainer(&f, NULL, 1, false), *two = open_trainer(&f, NULL, 1, false);
  open_witness(&w, two, 4000);
  w.changes = true;
  for (int step = 0; step < 3; step++) {
    run_ok(&f, one, 0, NULL);
    run_ok(&f, one, 0, NULL);
    run_ok(&f, two, 0, &w);
    expect_same_gradients(one, two);
    laci_trainer_set_n_batches(two, 2);
    assert_int_equal(laci_trainer_update(one, 0.1, NULL), LAC_OK);
    assert_int_equal(laci_trainer_update(two, 0.1, NULL), LAC_OK);
    assert_memory_equal(laci_trainer_weights(one), laci_trainer_weights(two),
                        (size_t)w.size * sizeof(float));
  }
  close_witness(&w);
  laci_trainer_destroy(one);
  laci_trainer_destroy(two);
  clear(&f);
}

static void a_failure_ends_the_batch(void **state) {
  (void)state;
  fixture f;
  witness w;
  set_up(&f, "digits", 8, 2);
  laci_trainer *t = open_trainer(&f, NULL, 1, false);
  open_witness(&w, t, 8000);
  assert_true(w.n >= 3);
  for (int k = 0; k < w.n; k++) {
    lac_error err = {0};
    w.fails_at = k;
    assert_int_equal(run(&f, t, 0, &w, &err), LAC_IO);
    assert_non_null(strstr(err.text, "enough of bucket"));
    assert_int_equal(w.n_ready, k + 1);
  }
  w.fails_at = -1;
  run_ok(&f, t, 0, &w);
  assert_int_equal(w.n_ready, w.n);
  close_witness(&w);
  laci_trainer_destroy(t);
  clear(&f);
}

static void an_interrupt_ends_a_batch_that_does_not_keep_on(void **state) {
  (void)state;
  fixture f;
  witness w;
  set_up(&f, "digits", 8, 2);
  laci_trainer *t = open_trainer(&f, NULL, 1, false);
  open_witness(&w, t, 8000);
  for (int ignores_interrupt = 0; ignores_interrupt < 2; ignores_interrupt++) {
    lac_error err = {0};
    float loss;
    const laci_batch_watch watch = {.ignores_interrupt = ignores_interrupt};
    lac_interrupt(true);
    const lac_status st =
        laci_trainer_run_batch_watched(t, f.images[0], f.labels, &loss, &watch, &err);
    lac_interrupt(false);
    assert_int_equal(st, ignores_interrupt ? LAC_OK : LAC_INTERRUPTED);
  }
  close_witness(&w);
  laci_trainer_destroy(t);
  clear(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(buckets_cover_the_gradients),
      cmocka_unit_test(buckets_become_final_from_the_end),
      cmocka_unit_test(what_is_told_is_final),
      cmocka_unit_test(an_engine_that_writes_at_the_end_tells_then),
      cmocka_unit_test(what_is_done_to_a_bucket_stays),
      cmocka_unit_test(a_failure_ends_the_batch),
      cmocka_unit_test(an_interrupt_ends_a_batch_that_does_not_keep_on),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
