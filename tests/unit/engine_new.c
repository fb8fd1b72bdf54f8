/* SPDX-License-Identifier: Apache-2.0
 * A new engine through the one door: registered at run time and chosen by name, it does all that
 * the library does with engines: run, infer, eval, bench, and training. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "arch/arch.h"
#include "base/budget.h"
#include "base/memory.h"
#include "data/npy.h"
#include "engine/engine.h"
#include "lacuna/bench.h"
#include "lacuna/engine.h"
#include "lacuna/eval.h"
#include "lacuna/infer.h"
#include "lacuna/mask.h"
#include "lacuna/pack.h"
#include "lacuna/prune.h"
#include "lacuna/report.h"
#include "lacuna/train.h"
#include "sparse/pack.h"
#include "support/counting_engine.h"
#include "train/trainer.h"
#include "unit/data_folder.h"

#define DIGITS LAC_SOURCE_DIR "/examples/digits"

enum { PIXELS = 64, CLASSES = 10 };

static int set_up(void **state) {
  (void)state;
  lac_error err = {0};
  for (int again = 0; again < 2; again++) { /* twice is once */
    if (laci_engine_register(&laci_engine_counting, &err)) return -1;
  }
  return 0;
}

/* It has not run yet, and what is made from now on goes away. */
static int begin(void **state) {
  (void)state;
  counting = (counts){0};
  return 0;
}

static void expect_used(int least_runs) {
  assert_true(counting.created > 0 && counting.nodes >= counting.runs);
  assert_int_equal(counting.created, counting.destroyed);
  if (counting.runs < least_runs) fail_msg("%d runs, wanted %d", counting.runs, least_runs);
}

static lac_model *digits(void) {
  lac_model *model;
  lac_error err = {0};
  if (lac_model_load(DIGITS "/digits.onnx", NULL, &model, &err)) fail_msg("%s", err.text);
  return model;
}

static void fill(float *pixels, int n) {
  for (int k = 0; k < n; k++) pixels[k] = (float)(k * 5 % 17) / 16;
}

static void expect_close(const float *a, const float *b, int64_t n, float tolerance) {
  for (int64_t k = 0; k < n; k++) {
    if (!(fabsf(a[k] - b[k]) <= tolerance)) {
      fail_msg("element %d: %g and %g", (int)k, (double)a[k], (double)b[k]);
    }
  }
}

/* ---- The list ---- */

static void it_is_in_the_list_and_its_name_is_taken(void **state) {
  (void)state;
  static laci_engine_row other;
  const char *names[8] = {0};
  lac_error err = {0};
  assert_int_equal(laci_engine_names(names, 8), 4);
  assert_string_equal(names[3], "counting");
  other = laci_engine_counting;
  assert_int_equal(laci_engine_register(&other, &err), LAC_EXISTS);
  other.name = "cpu";
  assert_int_equal(laci_engine_register(&other, &err), LAC_EXISTS);
  assert_string_equal(err.text, "there is an engine 'cpu' already");
}

/* ---- What the library does with engines ---- */

static void run_model(const lac_model *model, const char *name, const float *in, float *out) {
  lac_engine *engine;
  lac_error err = {0};
  lac_engine_shape shape = {.name = "image", .rank = 4, .shape = {2, -1, -1, -1}};
  lac_engine_options o = lac_engine_options_default();
  o.run.engine = name;
  o.shapes = &shape;
  o.n_shapes = 1;
  if (lac_engine_create(model, &o, &engine, &err)) fail_msg("%s: %s", name, err.text);
  if (lac_engine_run(engine, (const void *[]){in}, (void *[]){out}, &err)) {
    fail_msg("%s: %s", name, err.text);
  }
  assert_non_null(lac_engine_plan_text(engine));
  lac_engine_destroy(engine);
}

static void a_model_is_run(void **state) {
  (void)state;
  lac_model *model = digits();
  float in[2 * PIXELS], fast[2 * CLASSES], plain[2 * CLASSES], new[2 * CLASSES];
  fill(in, 2 * PIXELS);
  run_model(model, NULL, in, fast);
  run_model(model, "plain", in, plain);
  assert_int_equal(counting.runs, 0);
  run_model(model, "counting", in, new);
  assert_memory_equal(plain, new, sizeof plain);
  expect_close(fast, new, 2 * CLASSES, 1e-4f);
  assert_int_equal(counting.runs, 1);
  expect_used(1);
  lac_model_destroy(model);
}

static void infer_writes_its_outputs(void **state) {
  (void)state;
  folder f = make_folder();
  lac_model *model = digits();
  char in[FOLDER_PATH], out[FOLDER_PATH];
  float pixels[PIXELS], wanted[2 * CLASSES], both[2 * PIXELS];
  laci_type type = {LAC_DTYPE_F32, {4, {1, 1, 8, 8}}};
  laci_npy got;
  lac_error err = {0};
  fill(both, 2 * PIXELS);
  memcpy(pixels, both, sizeof pixels);
  path_in(in, &f, "x.npy");
  path_in(out, &f, "out");
  assert_int_equal(laci_npy_write(in, &type, pixels, true, NULL), LAC_OK);
  lac_infer_options o = lac_infer_options_default();
  o.run.engine = "counting";
  lac_infer_input input = {"image", in};
  lac_infer_result *result;
  if (lac_infer(model, &input, 1, out, &o, &result, &err)) fail_msg("%s", err.text);
  expect_used(1);
  run_model(model, "plain", both, wanted);
  assert_int_equal(laci_npy_read(result->outputs[0].path, &got, NULL), LAC_OK);
  expect_close((const float *)(const void *)got.bytes, wanted, CLASSES, 0);
  laci_npy_clear(&got);
  assert_int_equal(result->batch, 1);
  assert_true(result->n_sparse > 0);
  lac_infer_result_destroy(result);
  o.run.dense_only = o.force = true;
  if (lac_infer(model, &input, 1, out, &o, &result, &err)) fail_msg("%s", err.text);
  assert_int_equal(result->n_sparse, 0);
  lac_infer_result_destroy(result);
  o.run.engine = "gpu";
  assert_int_equal(lac_infer(model, &input, 1, out, &o, NULL, &err), LAC_NOT_FOUND);
  lac_model_destroy(model);
  remove_folder(&f);
}

static void eval_counts_as_the_default_does(void **state) {
  (void)state;
  lac_model *model = digits();
  lac_eval_result fast = LAC_SIZED(lac_eval_result), new = LAC_SIZED(lac_eval_result);
  lac_error err = {0};
  lac_eval_options o = lac_eval_options_default();
  o.limit = 40;
  o.batch = 20;
  if (lac_eval(model, DIGITS, &o, &fast, &err)) fail_msg("%s", err.text);
  o.run.engine = "counting";
  if (lac_eval(model, DIGITS, &o, &new, &err)) fail_msg("%s", err.text);
  assert_int_equal(new.images, fast.images);
  assert_true(new.top1 == fast.top1 &&new.top5 == fast.top5);
  assert_true(fabs(new.loss - fast.loss) < 1e-4);
  assert_true(new.n_sparse > 0);
  o.run.dense_only = true;
  if (lac_eval(model, DIGITS, &o, &new, &err)) fail_msg("%s", err.text);
  assert_int_equal(new.n_sparse, 0);
  expect_used(4);
  lac_model_destroy(model);
}

static void bench_has_a_row_a_step(void **state) {
  (void)state;
  lac_model *model = digits();
  lac_bench_result *result;
  lac_error err = {0};
  lac_bench_options o = lac_bench_options_default();
  o.run.engine = "counting";
  o.runs = 3;
  if (lac_bench(model, &o, &result, &err)) fail_msg("%s", err.text);
  assert_int_equal(result->runs, 3);
  assert_true(result->n_layers > 0 && result->threads == 1);
  for (int at = 0; at < result->n_layers; at++) {
    assert_string_equal(result->layers[at].kernel, "counting");
    assert_true(result->layers[at].seconds >= 0);
  }
  lac_bench_result_destroy(result);
  expect_used(3);
  lac_model_destroy(model);
}

/* Its convolutions are sparse: a plan without them runs alternately, as often, unless only that one
 * is asked for. */
static void bench_runs_a_dense_plan_next_to_a_sparse_one(void **state) {
  (void)state;
  lac_model *model = digits();
  lac_bench_result *r;
  lac_error err = {0};
  lac_bench_options o = lac_bench_options_default();
  o.run.engine = "counting";
  o.runs = 4;
  if (lac_bench(model, &o, &r, &err)) fail_msg("%s", err.text);
  assert_int_equal(counting.created, 2);
  assert_true(r->has_sparse && r->runs == 4 && r->sparse.min > 0 && r->dense.min > 0);
  assert_true(r->items_per_second * r->sparse.median > 0.999 && r->dense_plan_seconds > 0);
  assert_true(r->dense_step_seconds > 0 && r->dense_rest_seconds == 0);
  assert_int_equal(r->n_dense_layers, r->n_layers);
  int n_sparse = 0;
  for (int at = 0; at < r->n_layers; at++) {
    n_sparse += r->layers[at].sparse;
    assert_int_equal(r->layers[at].sparse, strcmp(r->layers[at].op, "Conv") == 0);
    assert_true(r->layers[at].dense_seconds == r->dense_layers[at].seconds);
    assert_false(r->dense_layers[at].sparse);
  }
  assert_int_equal(r->n_sparse, n_sparse);
  lac_bench_result_destroy(r);
  o.run.dense_only = true;
  if (lac_bench(model, &o, &r, &err)) fail_msg("%s", err.text);
  assert_int_equal(counting.created, 3);
  assert_true(!r->has_sparse && r->n_sparse == 0 && r->dense.min > 0);
  lac_bench_result_destroy(r);
  expect_used(12);
  lac_model_destroy(model);
}

/* One step with this engine on fixed images: the weights after it. */
static float *step(const laci_graph *model, const char *engine, int64_t *n, float *loss) {
  enum { BATCH = 4 };
  float images[BATCH * PIXELS], labels[BATCH * CLASSES] = {0};
  laci_trainer *trainer;
  lac_error err = {0};
  laci_trainer_options o = {.graph = {.batch = BATCH},
                            .optimizer = laci_optimizer_options_default(LACI_OPTIMIZER_SGD),
                            .run.engine = engine,
                            .run.threads = 1};
  if (laci_trainer_create(model, &o, &trainer, &err)) fail_msg("%s: %s", engine, err.text);
  fill(images, BATCH * PIXELS);
  for (int at = 0; at < BATCH; at++) labels[at * CLASSES + at] = 1;
  if (laci_trainer_run_batch(trainer, images, labels, loss, NULL, &err)) {
    fail_msg("%s: %s", engine, err.text);
  }
  assert_int_equal(laci_trainer_update(trainer, 0.1, NULL), LAC_OK);
  *n = laci_optimizer_count_floats(laci_trainer_optimizer(trainer));
  float *weights = laci_alloc((size_t)*n, sizeof *weights);
  memcpy(weights, laci_trainer_weights(trainer), (size_t)*n * sizeof *weights);
  laci_trainer_destroy(trainer);
  return weights;
}

static void a_training_step_has_the_plain_engines_bits(void **state) {
  (void)state;
  laci_graph *model;
  lac_error err = {0};
  int64_t n[3];
  float loss[3];
  laci_arch_options a = {.name = "digits", .seed = 1};
  if (laci_arch_build(&a, &model, &err)) fail_msg("%s", err.text);
  float *fast = step(model, NULL, &n[0], &loss[0]), *plain = step(model, "plain", &n[1], &loss[1]);
  assert_int_equal(counting.runs, 0);
  float *new = step(model, "counting", &n[2], &loss[2]);
  assert_true(n[0] == n[1] && n[1] == n[2] && loss[1] == loss[2]);
  assert_memory_equal(plain, new, (size_t)n[1] * sizeof *plain);
  expect_close(fast, new, n[0], 1e-3f);
  expect_used(1);
  laci_free(fast);
  laci_free(plain);
  laci_free(new);
  laci_graph_destroy(model);
}

static void training_trains_and_evaluates_with_it(void **state) {
  (void)state;
  lac_network_options network = {.size = sizeof(lac_network_options), .name = "digits", .seed = 2};
  lac_model *model;
  lac_train_result result = LAC_SIZED(lac_train_result);
  lac_error err = {0};
  lac_train_options o = lac_train_options_default();
  o.run.engine = "counting";
  o.run.threads = 1;
  o.recipe = "cifar";
  o.batch = 8;
  o.steps = 2;
  o.rate = 0.05;
  assert_int_equal(lac_network_create(&network, &model, &err), LAC_OK);
  if (lac_train(model, DIGITS, NULL, &o, &result, &err)) fail_msg("%s", err.text);
  expect_used(2 + 2);
  o.run.engine = "gpu";
  assert_int_equal(lac_train(model, DIGITS, NULL, &o, &result, &err), LAC_NOT_FOUND);
  lac_model_destroy(model);
}

/* ---- What is known of weights ---- */

static lac_mask *prune(lac_model *model) {
  lac_options o = lac_options_default();
  lac_report *report;
  lac_mask *mask;
  lac_error err = {0};
  o.permute = false;
  if (lac_prune(model, &o, &report, &err)) fail_msg("%s", err.text);
  lac_report_destroy(report);
  if (lac_mask_from_model(model, &o, &mask, &err)) fail_msg("%s", err.text);
  assert_true(lac_mask_count(mask) > 0);
  return mask;
}

static void make(const lac_model *model) {
  lac_engine *engine;
  lac_error err = {0};
  lac_engine_options o = lac_engine_options_default();
  lac_engine_shape shape = {.name = "image", .rank = 4, .shape = {1, -1, -1, -1}};
  o.run.engine = "counting";
  o.shapes = &shape;
  o.n_shapes = 1;
  if (lac_engine_create(model, &o, &engine, &err)) fail_msg("%s", err.text);
  lac_engine_destroy(engine);
}

static lac_train_options two_steps(void) {
  lac_train_options o = lac_train_options_default();
  o.run.engine = "counting";
  o.run.threads = 1;
  o.recipe = "cifar";
  o.batch = 8;
  o.steps = 2;
  o.rate = 0.05;
  o.evaluate = false;
  return o;
}

static void a_pack_gives_the_pattern_of_weights_until_they_change(void **state) {
  (void)state;
  folder f = make_folder();
  char path[FOLDER_PATH], pruned[FOLDER_PATH];
  lac_error err = {0};
  lac_model *model = digits(), *saved, *packed;
  lac_mask *mask = prune(model);
  lac_options options = lac_options_default();
  lac_train_options o = two_steps();
  lac_train_result result = LAC_SIZED(lac_train_result);
  path_in(path, &f, "net.lacpack");
  path_in(pruned, &f, "net.onnx");
  make(model);
  assert_int_equal(counting.patterns, 0);
  if (lac_model_save(model, pruned, false, &err)) fail_msg("%s", err.text);
  if (lac_model_load(pruned, NULL, &saved, &err)) fail_msg("%s", err.text);
  if (lac_pack_save(saved, path, &options, false, NULL, &err)) fail_msg("%s", err.text);
  if (lac_model_load(path, NULL, &packed, &err)) fail_msg("%s", err.text);
  make(packed);
  assert_true(counting.patterns > 0);
  assert_int_equal(counting.patterns, lac_mask_count(mask));
  if (lac_train(packed, DIGITS, NULL, &o, &result, &err)) fail_msg("%s", err.text);
  make(packed);
  assert_int_equal(counting.patterns, 0);
  lac_mask_destroy(mask);
  lac_model_destroy(packed);
  lac_model_destroy(saved);
  lac_model_destroy(model);
  remove_folder(&f);
}

static void training_gives_the_masks(void **state) {
  (void)state;
  lac_error err = {0};
  lac_model *model = digits();
  lac_mask *mask = prune(model);
  lac_train_options o = two_steps();
  lac_train_result result = LAC_SIZED(lac_train_result);
  if (lac_train(model, DIGITS, mask, &o, &result, &err)) fail_msg("%s", err.text);
  assert_int_equal(counting.masks, lac_mask_count(mask));
  if (lac_train(model, DIGITS, NULL, &o, &result, &err)) fail_msg("%s", err.text);
  assert_int_equal(counting.masks, 0);
  lac_mask_destroy(mask);
  lac_model_destroy(model);
}

static lac_status no_rows(void *context, int64_t first, int64_t n, const laci_packed *to,
                          lac_error *err) {
  (void)context, (void)first, (void)n, (void)to, (void)err;
  return LAC_IO;
}

static void what_is_said_of_no_weight_is_refused(void **state) {
  (void)state;
  laci_graph *model;
  laci_engine *engine;
  lac_error err = {0};
  laci_arch_options a = {.name = "digits", .seed = 1};
  if (laci_arch_build(&a, &model, &err)) fail_msg("%s", err.text);
  int stored = model->stored[0].value;
  const laci_packing packing = {.pattern = {2, 4}, .outer = 1, .columns = 1, .inner = 1};
  const laci_engine_weight wrong[] = {
      {.value = -1},
      {.value = model->n_values},
      {.value = model->outputs[0]},
      {.value = stored, .rows = no_rows},
      {.value = stored, .packing = &packing},
  };
  for (size_t at = 0; at < sizeof wrong / sizeof *wrong; at++) {
    laci_engine_options o = {.weights = &wrong[at], .n_weights = 1};
    assert_int_equal(laci_engine_create(model, &o, &engine, &err), LAC_BAD_ARGUMENT);
  }
  laci_graph_destroy(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(it_is_in_the_list_and_its_name_is_taken, begin),
      cmocka_unit_test_setup(a_model_is_run, begin),
      cmocka_unit_test_setup(infer_writes_its_outputs, begin),
      cmocka_unit_test_setup(eval_counts_as_the_default_does, begin),
      cmocka_unit_test_setup(bench_has_a_row_a_step, begin),
      cmocka_unit_test_setup(bench_runs_a_dense_plan_next_to_a_sparse_one, begin),
      cmocka_unit_test_setup(a_training_step_has_the_plain_engines_bits, begin),
      cmocka_unit_test_setup(training_trains_and_evaluates_with_it, begin),
      cmocka_unit_test_setup(a_pack_gives_the_pattern_of_weights_until_they_change, begin),
      cmocka_unit_test_setup(training_gives_the_masks, begin),
      cmocka_unit_test_setup(what_is_said_of_no_weight_is_refused, begin),
  };
  return cmocka_run_group_tests(tests, set_up, NULL);
}
