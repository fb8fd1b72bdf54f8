/* SPDX-License-Identifier: Apache-2.0
 * include/lacuna/engine.h: shapes at creation, several engines at once, failures, memory. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "lacuna/engine.h"
#include "lacuna/model.h"
#include "lacuna/run.h"
#include "support/forbid.h"

#define DIGITS LAC_SOURCE_DIR "/examples/digits/digits.onnx"

enum { BATCH = 3, MOST_VALUES = 4096 };

static lac_model *load(void) {
  lac_model *model;
  lac_error err = {0};
  if (lac_model_load(DIGITS, NULL, &model, &err)) fail_msg("%s", err.text);
  return model;
}

/** The name of the one input of digits, found by asking an engine for the plain shape. */
static lac_engine *create(const lac_model *model, int batch, int threads) {
  lac_engine *engine;
  lac_error err = {0};
  lac_engine_options options = lac_engine_options_default();
  lac_engine_shape shape = {.name = "image", .rank = 4, .shape = {batch, 1, 8, 8}};
  options.run.threads = threads;
  options.shapes = &shape;
  options.n_shapes = 1;
  if (lac_engine_create(model, &options, &engine, &err)) fail_msg("%s", err.text);
  return engine;
}

static void fill(float *values, size_t n) {
  for (size_t at = 0; at < n; at++) values[at] = (float)((at * 7919) % 17) / 16;
}

static size_t values_of(const lac_engine_port *port) { return port->size_bytes / sizeof(float); }

static void run_once(lac_engine *engine, float *result) {
  static float in[MOST_VALUES];
  lac_error err = {0};
  fill(in, MOST_VALUES);
  if (lac_engine_run(engine, (const void *[]){in}, (void *[]){result}, &err)) {
    fail_msg("%s", err.text);
  }
}

static void reports_its_ports_and_its_plan(void **state) {
  (void)state;
  lac_model *model = load();
  lac_engine *engine = create(model, BATCH, 1);
  const lac_engine_port *in, *out;
  assert_int_equal(lac_engine_inputs(engine, &in), 1);
  assert_int_equal(lac_engine_outputs(engine, &out), 1);
  assert_int_equal(in[0].dtype, LAC_DTYPE_F32);
  assert_int_equal(in[0].shape[0], BATCH);
  assert_int_equal(in[0].size_bytes, BATCH * 64 * sizeof(float));
  assert_int_equal(out[0].shape[0], BATCH);
  assert_non_null(strstr(lac_engine_plan_text(engine), "Conv"));
  assert_non_null(strstr(lac_engine_plan_text(engine), " 0 of them by the plain operator"));
  lac_engine_memory memory = LAC_SIZED(lac_engine_memory);
  assert_int_equal(lac_engine_planned(engine, &memory, NULL), LAC_OK);
  assert_true(memory.arena_bytes > 0 && memory.weight_bytes > 0);
  lac_engine_destroy(engine);
  lac_model_destroy(model);
}

static void agrees_with_the_plain_engine(void **state) {
  (void)state;
  lac_model *model = load();
  lac_engine *engine = create(model, BATCH, 2);
  lac_error err = {0};
  const lac_engine_port *in, *out;
  (void)lac_engine_inputs(engine, &in);
  (void)lac_engine_outputs(engine, &out);
  float values[MOST_VALUES], got[MOST_VALUES];
  fill(values, MOST_VALUES);
  run_once(engine, got);
  lac_engine *exact;
  lac_engine_shape shape = {.name = in[0].name, .rank = in[0].rank};
  memcpy(shape.shape, in[0].shape, sizeof shape.shape);
  lac_engine_options options = lac_engine_options_default();
  options.run.engine = "plain";
  options.shapes = &shape;
  options.n_shapes = 1;
  if (lac_engine_create(model, &options, &exact, &err)) fail_msg("%s", err.text);
  float want[MOST_VALUES];
  if (lac_engine_run(exact, (const void *[]){values}, (void *[]){want}, &err)) {
    fail_msg("%s", err.text);
  }
  for (size_t at = 0; at < values_of(&out[0]); at++) {
    float diff = got[at] - want[at];
    if (!(diff < 1e-4f && diff > -1e-4f)) fail_msg("value %zu differs by %g", at, (double)diff);
  }
  lac_engine_destroy(exact);
  lac_engine_destroy(engine);
  lac_model_destroy(model);
}

typedef struct worker {
  const lac_model *model;
  const float *want;
  size_t n;
  int n_wrong;
} worker;

/* No asserts here: cmocka's jumps belong to the main thread. */
static void *work(void *context) {
  worker *w = context;
  float in[MOST_VALUES], got[MOST_VALUES];
  lac_engine_shape shape = {.name = "image", .rank = 4, .shape = {BATCH, 1, 8, 8}};
  lac_engine_options options = lac_engine_options_default();
  options.run.threads = 1;
  options.shapes = &shape;
  options.n_shapes = 1;
  fill(in, MOST_VALUES);
  for (int round = 0; round < 5; round++) {
    lac_engine *engine;
    if (lac_engine_create(w->model, &options, &engine, NULL)) {
      w->n_wrong++;
      continue;
    }
    for (int run = 0; run < 20; run++) {
      if (lac_engine_run(engine, (const void *[]){in}, (void *[]){got}, NULL)) w->n_wrong++;
      else w->n_wrong += memcmp(got, w->want, w->n * sizeof *got) != 0;
    }
    lac_engine_destroy(engine);
  }
  return NULL;
}

static void several_engines_run_at_once(void **state) {
  (void)state;
  enum { WORKERS = 4 };
  lac_model *model = load();
  lac_engine *engine = create(model, BATCH, 1);
  const lac_engine_port *out;
  (void)lac_engine_outputs(engine, &out);
  float want[MOST_VALUES];
  run_once(engine, want);
  worker workers[WORKERS];
  pthread_t threads[WORKERS];
  for (int at = 0; at < WORKERS; at++) {
    workers[at] = (worker){.model = model, .want = want, .n = values_of(&out[0])};
    assert_int_equal(pthread_create(&threads[at], NULL, work, &workers[at]), 0);
  }
  lac_tensor tensor =
      LAC_SIZED(lac_tensor); /* brings the file into memory, under the engines' eyes */
  assert_int_equal(lac_model_tensor(model, 0, &tensor, NULL), LAC_OK);
  for (int at = 0; at < WORKERS; at++) pthread_join(threads[at], NULL);
  for (int at = 0; at < WORKERS; at++) assert_int_equal(workers[at].n_wrong, 0);
  lac_engine_destroy(engine);
  lac_model_destroy(model);
}

static lac_status try_shape(const lac_model *model, lac_engine_shape shape, lac_dtype dtype,
                            lac_error *err) {
  lac_engine *engine;
  lac_engine_options options = lac_engine_options_default();
  options.run.threads = 1;
  options.run.dtype = dtype;
  options.shapes = &shape;
  options.n_shapes = 1;
  lac_status st = lac_engine_create(model, &options, &engine, err);
  if (st) assert_null(engine);
  lac_engine_destroy(engine);
  return st;
}

static void refuses_what_does_not_fit(void **state) {
  (void)state;
  lac_model *model = load();
  lac_error err = {0};
  lac_engine_shape good = {.name = "image", .rank = 4, .shape = {1, 1, 8, 8}}, bad = good;
  assert_int_equal(try_shape(model, good, LAC_DTYPE_F32, &err), LAC_OK);
  assert_int_equal(try_shape(model, good, LAC_DTYPE_F16, &err), LAC_BAD_ARGUMENT);
  bad.name = "nobody";
  assert_int_equal(try_shape(model, bad, LAC_DTYPE_F32, &err), LAC_NOT_FOUND);
  assert_non_null(strstr(err.text, "nobody"));
  bad = good;
  bad.shape[1] = 2;
  assert_int_equal(try_shape(model, bad, LAC_DTYPE_F32, &err), LAC_BAD_SHAPE);
  bad = good;
  bad.rank = 9;
  assert_int_equal(try_shape(model, bad, LAC_DTYPE_F32, &err), LAC_BAD_ARGUMENT);
  bad = good;
  bad.shape[0] = (int64_t)1 << 60;
  assert_int_equal(try_shape(model, bad, LAC_DTYPE_F32, NULL), LAC_BAD_SHAPE);
  lac_engine *engine = create(model, 1, 1);
  float out[MOST_VALUES];
  assert_int_equal(lac_engine_run(engine, (const void *[]){NULL}, (void *[]){out}, &err),
                   LAC_BAD_ARGUMENT);
  lac_engine_destroy(engine);
  lac_engine_destroy(NULL);
  lac_model_destroy(model);
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  lac_model *model = load();
  lac_engine_shape shape = {.name = "image", .rank = 4, .shape = {1, 1, 8, 8}};
  lac_engine_options options = lac_engine_options_default();
  options.run.threads = 1;
  options.shapes = &shape;
  options.n_shapes = 1;
  long n = 1;
  for (;; n += 1 + n / 64) {
    lac_engine *engine;
    lac_error err = {0};
    laci_memory_fail_from(n);
    lac_status st = lac_engine_create(model, &options, &engine, &err);
    laci_memory_fail_from(0);
    lac_engine_destroy(engine);
    if (!st) break;
    if (st != LAC_NO_MEMORY) fail_msg("allocation %ld: %s", n, err.text);
  }
  assert_true(n > 10);
  lac_model_destroy(model);
}

/* What cannot be fused for want of memory is not left unfused: the numbers would be others. */
static void one_failed_allocation_changes_no_result(void **state) {
  (void)state;
  lac_model *model = load();
  lac_engine_shape shape = {.name = "image", .rank = 4, .shape = {1, 1, 8, 8}};
  lac_engine_options options = lac_engine_options_default();
  options.run.threads = 1;
  options.shapes = &shape;
  options.n_shapes = 1;
  float in[64], want[10], out[10];
  lac_engine *engine;
  lac_error err = {0};
  for (int at = 0; at < 64; at++) in[at] = (float)(at % 17) / 16;
  if (lac_engine_create(model, &options, &engine, &err)) fail_msg("%s", err.text);
  assert_int_equal(lac_engine_run(engine, (const void *[]){in}, (void *[]){want}, &err), LAC_OK);
  lac_engine_destroy(engine);
  long n = 1;
  for (bool pending = false; !pending; n++) {
    laci_memory_fail_once(n);
    lac_status st = lac_engine_create(model, &options, &engine, &err);
    pending = laci_memory_is_failure_pending();
    laci_memory_fail_from(0);
    if (st && st != LAC_NO_MEMORY) fail_msg("allocation %ld: %s", n, err.text);
    if (st) continue;
    assert_int_equal(lac_engine_run(engine, (const void *[]){in}, (void *[]){out}, &err), LAC_OK);
    if (memcmp(out, want, sizeof out) != 0) fail_msg("allocation %ld: other numbers", n);
    lac_engine_destroy(engine);
  }
  assert_true(n > 100);
  lac_model_destroy(model);
}

/* oneDNN's kernels are generated code, too: the fast engine says what is forbidden, the plain one
 * runs, and so does the default, all of it exactly. */
static int plan_where_forbidden(void) {
  lac_model *model = load();
  lac_engine *engine;
  lac_error err = {0};
  lac_engine_options options = lac_engine_options_default();
  const lac_engine_shape shape = {.name = "image", .rank = 4, .shape = {1, 1, 8, 8}};
  static float in[MOST_VALUES], out[MOST_VALUES];
  if (!forbid_execution()) return NOTHING_FORBIDDEN;
  options.run.threads = 1;
  options.shapes = &shape;
  options.n_shapes = 1;
  options.run.engine = "cpu";
  const char *want = "generated code: memory cannot be made executable: ";
  bool good = lac_engine_create(model, &options, &engine, &err) == LAC_UNSUPPORTED &&
              strncmp(err.text, want, strlen(want)) == 0 && strstr(err.text, "'plain'");
  options.run.engine = "plain";
  good = good && lac_engine_create(model, &options, &engine, &err) == LAC_OK &&
         lac_engine_run(engine, (const void *[]){in}, (void *[]){out}, &err) == LAC_OK;
  options.run.engine = NULL;
  good = good && lac_engine_create(model, &options, &engine, &err) == LAC_OK &&
         lac_engine_run(engine, (const void *[]){in}, (void *[]){out}, &err) == LAC_OK;
  lac_engine_facts about = LAC_SIZED(lac_engine_facts);
  good = good && lac_engine_about(engine, &about, &err) == LAC_OK;
  good = good && about.n_exact == about.n_nodes && strstr(about.exact_reason, "executable");
  return good ? 0 : 1;
}

static void says_where_generated_code_is_forbidden(void **state) {
  (void)state;
  expect_of_child(plan_where_forbidden);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reports_its_ports_and_its_plan),
      cmocka_unit_test(agrees_with_the_plain_engine),
      cmocka_unit_test(several_engines_run_at_once),
      cmocka_unit_test(refuses_what_does_not_fit),
      cmocka_unit_test(says_where_generated_code_is_forbidden),
      cmocka_unit_test(every_allocation_may_fail),
      cmocka_unit_test(one_failed_allocation_changes_no_result),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
