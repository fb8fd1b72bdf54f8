/* SPDX-License-Identifier: Apache-2.0
 * Functions of a const model, all of them at once and in any order, on a model that none of them
 * has seen before: each finds what it finds alone. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "data/npy.h"
#include "lacuna/engine.h"
#include "lacuna/eval.h"
#include "lacuna/infer.h"
#include "lacuna/mask.h"
#include "lacuna/plan.h"
#include "lacuna/prune.h"
#include "lacuna/session.h"
#include "tensor/shape.h"

#define DIGITS LAC_SOURCE_DIR "/examples/digits"
#define ARRAY "api_const_model.tmp.npy"

enum { IMAGES = 3, PIXELS = 64, SCORES = 10, TEXT = 1 << 16 };

static float images[IMAGES * PIXELS];

/** One thread's work, and what it found: a text. */
typedef struct worker {
  pthread_t thread;
  pthread_barrier_t *barrier;
  const lac_model *model;
  lac_status (*work)(struct worker *w);
  const char *folder; /* of files */
  char text[TEXT];
  lac_error err;
} worker;

static void append(worker *w, const char *text) {
  (void)snprintf(w->text + strlen(w->text), TEXT - strlen(w->text), "%s\n", text);
}

static void append_scores(worker *w, const float *scores) {
  char number[32];
  for (int at = 0; at < IMAGES * SCORES; at++) {
    (void)snprintf(number, sizeof number, "%a", (double)scores[at]);
    append(w, number);
  }
}

static lac_status append_report(worker *w, lac_report *report) {
  char *text = NULL;
  lac_status st = lac_report_json(report, &text, &w->err);
  if (!st) append(w, text);
  lac_text_free(text);
  lac_report_destroy(report);
  return st;
}

static lac_options options_of_one_thread(void) {
  lac_options options = lac_options_default();
  options.threads = 1;
  return options;
}

static lac_status inspects(worker *w) {
  const lac_options options = options_of_one_thread();
  lac_report *report = NULL;
  lac_status st = lac_inspect(w->model, &options, &report, &w->err);
  return st ? st : append_report(w, report);
}

static lac_status checks(worker *w) {
  const lac_options options = options_of_one_thread();
  lac_report *report = NULL;
  lac_status st = lac_check(w->model, NULL, &options, &report, &w->err);
  return st ? st : append_report(w, report);
}

static lac_status reads_masks(worker *w) {
  const lac_options options = options_of_one_thread();
  lac_mask *mask = NULL;
  lac_status st = lac_mask_from_model(w->model, &options, &mask, &w->err);
  append(w, lac_mask_count(mask) == 0 ? "no mask" : "masks");
  lac_mask_destroy(mask);
  return st;
}

static lac_engine_options options_of_engine(lac_engine_shape *shape) {
  lac_engine_options options = lac_engine_options_default();
  *shape = (lac_engine_shape){.name = "image", .rank = 4, .shape = {IMAGES, 1, 8, 8}};
  options.run.threads = 1;
  options.shapes = shape;
  options.n_shapes = 1;
  return options;
}

static lac_status makes_an_engine(worker *w) {
  lac_engine_shape shape;
  const lac_engine_options options = options_of_engine(&shape);
  lac_engine *engine = NULL;
  float scores[IMAGES * SCORES];
  lac_status st = lac_engine_create(w->model, &options, &engine, &w->err);
  if (!st) st = lac_engine_run(engine, (const void *[]){images}, (void *[]){scores}, &w->err);
  if (!st) append_scores(w, scores);
  lac_engine_destroy(engine);
  return st;
}

static lac_status runs_a_session(worker *w) {
  lac_session_options options = lac_session_options_default();
  lac_session *session = NULL;
  float scores[IMAGES * SCORES];
  const lac_array in = {.dtype = LAC_DTYPE_F32,
                        .rank = 4,
                        .shape = {IMAGES, 1, 8, 8},
                        .data = images,
                        .size_bytes = sizeof images};
  lac_array out = {.data = scores, .size_bytes = sizeof scores};
  options.run.threads = 1;
  lac_status st = lac_session_create(w->model, &options, &session, &w->err);
  if (!st) st = lac_session_run(session, &in, 1, &out, 1, &w->err);
  if (!st) append_scores(w, scores);
  lac_session_destroy(session);
  return st;
}

static lac_status asks(worker *w) {
  lac_engine_shape shape;
  const lac_engine_options options = options_of_engine(&shape);
  lac_plan_answer *answer = NULL;
  lac_plan_facts facts = LAC_SIZED(lac_plan_facts);
  char text[64];
  lac_status st = lac_plan_ask(w->model, &options, &answer, &w->err);
  if (!st) st = lac_plan_about(answer, &facts, &w->err);
  (void)snprintf(text, sizeof text, "%d of %d fast", facts.n_fast, facts.n_nodes);
  append(w, text);
  lac_plan_answer_destroy(answer);
  return st;
}

static lac_status infers(worker *w) {
  lac_infer_options options = lac_infer_options_default();
  const lac_infer_input input = {.name = "image", .path = ARRAY};
  laci_npy array;
  options.run.threads = 1;
  options.force = true;
  lac_status st = lac_infer(w->model, &input, 1, w->folder, &options, NULL, &w->err);
  char path[256];
  (void)snprintf(path, sizeof path, "%s/scores.npy", w->folder);
  if (!st) st = laci_npy_read(path, &array, &w->err);
  if (st) return st;
  append_scores(w, (const float *)(const void *)array.bytes);
  laci_npy_clear(&array);
  return st;
}

static lac_status evaluates(worker *w) {
  lac_eval_options options = lac_eval_options_default();
  lac_eval_result result = LAC_SIZED(lac_eval_result);
  char text[64];
  options.run.threads = 1;
  options.limit = 100;
  lac_status st = lac_eval(w->model, DIGITS, &options, &result, &w->err);
  (void)snprintf(text, sizeof text, "%a %a", result.top1, result.loss);
  append(w, text);
  return st;
}

static lac_status (*const all[])(worker *) = {
    inspects, evaluates, checks, infers, makes_an_engine, reads_masks, asks, runs_a_session,
};
enum { N = sizeof all / sizeof *all };

static lac_model *load(void) {
  lac_model *model = NULL;
  lac_error err = {0};
  if (lac_model_load(DIGITS "/digits.onnx", NULL, &model, &err)) fail_msg("%s", err.text);
  return model;
}

static void *begin(void *context) {
  worker *w = context;
  (void)pthread_barrier_wait(w->barrier);
  (void)w->work(w); /* a failure is in err */
  return NULL;
}

static void all_at_once_find_what_each_finds_alone(void **state) {
  (void)state;
  enum { ROUNDS = 3 };
  worker *alone = calloc(N, sizeof *alone), *together = calloc(N, sizeof *together);
  assert_true(alone && together);
  for (int k = 0; k < N; k++) {
    lac_model *model = load();
    alone[k] = (worker){.model = model, .folder = "api_const_model.tmp.0"};
    if (all[k](&alone[k])) fail_msg("%s", alone[k].err.text);
    lac_model_destroy(model);
  }
  for (int round = 0; round < ROUNDS; round++) {
    lac_model *model = load();
    pthread_barrier_t barrier;
    assert_int_equal(pthread_barrier_init(&barrier, NULL, N), 0);
    for (int k = 0; k < N; k++) {
      together[k] = (worker){
          .barrier = &barrier, .model = model, .work = all[k], .folder = "api_const_model.tmp.1"};
      assert_int_equal(pthread_create(&together[k].thread, NULL, begin, &together[k]), 0);
    }
    for (int k = 0; k < N; k++) assert_int_equal(pthread_join(together[k].thread, NULL), 0);
    for (int k = 0; k < N; k++) {
      if (together[k].err.status) fail_msg("%s", together[k].err.text);
      assert_string_equal(together[k].text, alone[k].text);
    }
    (void)pthread_barrier_destroy(&barrier);
    lac_model_destroy(model);
  }
  free(alone);
  free(together);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(all_at_once_find_what_each_finds_alone)};
  const laci_type type = {LAC_DTYPE_F32, laci_shape_of(4, (int64_t[]){IMAGES, 1, 8, 8})};
  for (int at = 0; at < IMAGES * PIXELS; at++) images[at] = (float)(at % 17) / 16;
  if (laci_npy_write(ARRAY, &type, images, true, NULL)) return 1;
  return cmocka_run_group_tests(tests, NULL, NULL);
}
