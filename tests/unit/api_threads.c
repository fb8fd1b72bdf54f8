/* SPDX-License-Identifier: Apache-2.0
 * Several threads in one process: what may be shared is shared, and nothing else is. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "lacuna/array.h"
#include "lacuna/context.h"
#include "lacuna/engine.h"
#include "lacuna/mask.h"
#include "lacuna/prune.h"
#include "lacuna/session.h"
#include "lacuna/train.h"

#define DIGITS LAC_SOURCE_DIR "/examples/digits"

/* cmocka's assertions are for the main thread: the others leave what they found. */

static lac_model *load(void) {
  lac_model *model = NULL;
  lac_error err = {0};
  if (lac_model_load(DIGITS "/digits.onnx", NULL, &model, &err)) fail_msg("%s", err.text);
  return model;
}

typedef struct reader {
  pthread_t thread;
  const lac_model *model;
  char *text; /* the report of lac_inspect */
  int n_masks;
  lac_error err;
} reader;

static void *read_model(void *context) {
  reader *r = context;
  lac_options options = lac_options_default();
  lac_report *report = NULL;
  lac_mask *mask = NULL;
  options.threads = 1;
  r->n_masks = -1;
  if (lac_mask_from_model(r->model, &options, &mask, &r->err)) return NULL;
  r->n_masks = lac_mask_count(mask);
  lac_mask_destroy(mask);
  if (lac_inspect(r->model, &options, &report, &r->err)) return NULL;
  if (lac_report_json(report, &r->text, &r->err)) r->text = NULL;
  lac_report_destroy(report);
  return NULL;
}

static void threads_share_a_model_that_is_only_read(void **state) {
  (void)state;
  enum { N = 4 };
  lac_model *model = load();
  reader readers[N];
  for (int t = 0; t < N; t++) {
    readers[t] = (reader){.model = model};
    assert_int_equal(pthread_create(&readers[t].thread, NULL, read_model, &readers[t]), 0);
  }
  for (int t = 0; t < N; t++) assert_int_equal(pthread_join(readers[t].thread, NULL), 0);
  for (int t = 0; t < N; t++) {
    if (!readers[t].text) fail_msg("%s", readers[t].err.text);
    assert_string_equal(readers[t].text, readers[0].text);
    assert_int_equal(readers[t].n_masks, 0);
  }
  for (int t = 0; t < N; t++) lac_text_free(readers[t].text);
  lac_model_destroy(model);
}

/* ---- Jobs side by side ---- */

enum { LOG_BYTES = 64 << 10 };

/* A job with a context of its own, that of its options: it prunes, or it trains. */
typedef struct job {
  pthread_t thread;
  lac_context *context;
  bool trains;
  const char *stop_at; /* the progress that interrupts it; NULL: none */
  int64_t stop_step;   /* of a training; 0: none */
  lac_status status;
  lac_error err;
  bool ended_early; /* the search, or the training */
  bool left;        /* the thread is in no context afterwards */
  int64_t steps;    /* of the training */
  char *tensor;     /* bytes of a weight afterwards */
  size_t n_bytes;
  char log[LOG_BYTES];
} job;

static void log_line(lac_log_level level, const char *line, void *user) {
  job *j = user;
  size_t used = strlen(j->log);
  (void)level;
  (void)snprintf(j->log + used, sizeof j->log - used, "%s\n", line);
}

static void watch(const char *what, int64_t done, int64_t total, void *user) {
  job *j = user;
  (void)done;
  (void)total;
  if (!j->stop_at || strcmp(what, j->stop_at) != 0) return;
  lac_context_interrupt(j->context, true);
  j->stop_at = NULL;
}

static void listen(const lac_train_event *event, void *user) {
  job *j = user;
  bool due = event->kind == LAC_TRAIN_STEP && event->step == j->stop_step;
  if (due) lac_context_interrupt(j->context, true);
}

static void prune_and_log(job *j, lac_model *model) {
  lac_options options = lac_options_default();
  lac_report *report = NULL;
  options.threads = 2;
  options.all_sizes = true;
  options.context = j->context;
  j->status = lac_prune(model, &options, &report, &j->err);
  j->ended_early = report && report->summary.interrupted;
  lac_report_destroy(report);
}

static void train_and_log(job *j, lac_model *model) {
  lac_train_options options = lac_train_options_default();
  lac_train_result result = LAC_SIZED(lac_train_result);
  options.run.threads = 2;
  options.run.context = j->context;
  options.recipe = "cifar";
  options.batch = 24;
  options.steps = 12;
  options.listener = listen;
  options.context = j;
  j->status = lac_train(model, DIGITS, NULL, &options, &result, &j->err);
  j->ended_early = result.interrupted;
  j->steps = result.steps;
}

static void *run_job(void *user) {
  job *j = user;
  lac_model *model = NULL;
  lac_tensor tensor = LAC_SIZED(lac_tensor);
  lac_load_options from = lac_load_options_default();
  from.context = j->context;
  j->status = lac_model_load(DIGITS "/digits.onnx", &from, &model, &j->err);
  if (j->status) return NULL;
  if (j->trains) train_and_log(j, model);
  else prune_and_log(j, model);
  j->left = laci_context_entered_by_thread() == NULL;
  if (!lac_model_find_tensor(model, "layer2.0.conv1.weight", &tensor, NULL)) {
    j->tensor = malloc(tensor.size_bytes);
    j->n_bytes = tensor.size_bytes;
    if (j->tensor) memcpy(j->tensor, tensor.bytes, tensor.size_bytes);
  }
  lac_model_destroy(model);
  return NULL;
}

static job *begin(bool trains, const char *stop_at, int64_t stop_step) {
  job *j = calloc(1, sizeof *j);
  assert_non_null(j);
  j->trains = trains;
  j->stop_at = stop_at;
  j->stop_step = stop_step;
  assert_int_equal(lac_context_create(&j->context, NULL), LAC_OK);
  lac_context_set_log(j->context, LAC_LOG_DEBUG, log_line, j);
  lac_context_set_progress(j->context, watch, j);
  return j;
}

static void end(job *j) {
  lac_context_destroy(j->context);
  free(j->tensor);
  free(j);
}

/* Both at the same time, or one after the other. */
static void run_both(job *a, job *b, bool together) {
  assert_int_equal(pthread_create(&a->thread, NULL, run_job, a), 0);
  if (!together) assert_int_equal(pthread_join(a->thread, NULL), 0);
  assert_int_equal(pthread_create(&b->thread, NULL, run_job, b), 0);
  if (together) assert_int_equal(pthread_join(a->thread, NULL), 0);
  assert_int_equal(pthread_join(b->thread, NULL), 0);
}

/* Each logs its own, and nothing of the other's. */
static void assert_own_logs(const job *pruning, const job *training) {
  assert_non_null(strstr(pruning->log, "verified: all outputs"));
  assert_null(strstr(pruning->log, "memory of training"));
  assert_non_null(strstr(training->log, "memory of training"));
  assert_null(strstr(training->log, "verified: all outputs"));
}

static void two_jobs_do_what_each_does_alone(void **state) {
  (void)state;
  job *a = begin(false, NULL, 0), *b = begin(true, NULL, 0);
  job *c = begin(false, NULL, 0), *d = begin(true, NULL, 0);
  run_both(a, b, false);
  run_both(c, d, true);
  assert_true(!a->status && !b->status && !c->status && !d->status);
  assert_true(a->left && b->left && c->left && d->left);
  assert_own_logs(a, b);
  assert_own_logs(c, d);
  assert_memory_equal(a->tensor, c->tensor, a->n_bytes);
  assert_memory_equal(b->tensor, d->tensor, b->n_bytes);
  end(a);
  end(b);
  end(c);
  end(d);
}

static void an_interrupted_training_leaves_the_pruning_alone(void **state) {
  (void)state;
  job *a = begin(false, NULL, 0), *b = begin(true, NULL, 3);
  run_both(a, b, true);
  assert_true(a->status == LAC_OK && !a->ended_early);
  assert_true(b->status == LAC_INTERRUPTED && b->ended_early && b->steps == 3);
  assert_own_logs(a, b);
  end(a);
  end(b);
}

static void an_interrupted_search_leaves_the_training_alone(void **state) {
  (void)state;
  job *a = begin(false, "search", 0), *b = begin(true, NULL, 0);
  run_both(a, b, true);
  assert_true(a->status == LAC_OK && a->ended_early); /* with the best so far */
  assert_non_null(strstr(a->log, "search interrupted: going on"));
  assert_true(b->status == LAC_OK && b->steps == 12);
  assert_null(strstr(b->log, "interrupted"));
  end(a);
  end(b);
}

static void the_process_own_interrupt_is_for_those_without_a_context(void **state) {
  (void)state;
  job *a = begin(false, NULL, 0), *b = begin(true, NULL, 0);
  lac_model *model = load();
  lac_options options = lac_options_default();
  lac_report *report = NULL;
  lac_error err = {0};
  lac_interrupt(true);
  run_both(a, b, true);
  assert_true(!a->status && !a->ended_early && !b->status && b->steps == 12);
  assert_int_equal(lac_prune(model, &options, &report, &err), LAC_INTERRUPTED);
  assert_string_equal(err.text, "interrupted before the search");
  lac_interrupt(false);
  lac_model_destroy(model);
  end(a);
  end(b);
}

/* ---- What calls without a context of their own belong to ---- */

/* Gives the context, or with NULL the process, a log of its own. */
static void set_log(lac_context *context, job *j) {
  lac_context_set_log(context, LAC_LOG_DEBUG, log_line, j);
}

static void prune_in(lac_context *context) {
  lac_model *model = load();
  lac_report *report = NULL;
  lac_error err = {0};
  lac_options options = lac_options_default();
  options.context = context;
  options.all_sizes = true;
  if (lac_prune(model, &options, &report, &err)) fail_msg("%s", err.text);
  lac_report_destroy(report);
  lac_model_destroy(model);
}

static void options_come_before_the_process(void **state) {
  (void)state;
  job *a = begin(false, NULL, 0), *of_process = calloc(1, sizeof *a);
  assert_non_null(of_process);
  set_log(NULL, of_process);
  prune_in(a->context);
  assert_true(strstr(a->log, "verified: all outputs") && !of_process->log[0]);
  a->log[0] = '\0';
  prune_in(NULL);
  assert_true(strstr(of_process->log, "verified: all outputs") && !a->log[0]);
  lac_log_set(LAC_LOG_ERROR, NULL, NULL);
  free(of_process);
  end(a);
}

/* A call within another one: of a listener. */
typedef struct inner_call {
  lac_context *context;
} inner_call;

static void prune_in_listener(const lac_train_event *event, void *user) {
  const inner_call *inner = user;
  if (event->kind == LAC_TRAIN_BEGIN) prune_in(inner->context);
}

static void train_and_prune(lac_context *of_training, lac_context *of_pruning) {
  lac_model *model = load();
  lac_train_options options = lac_train_options_default();
  lac_train_result result = LAC_SIZED(lac_train_result);
  lac_error err = {0};
  inner_call inner = {of_pruning};
  options.run.context = of_training;
  options.recipe = "cifar";
  options.batch = 24, options.steps = 1;
  options.evaluate = false;
  options.listener = prune_in_listener, options.context = &inner;
  if (lac_train(model, DIGITS, NULL, &options, &result, &err)) fail_msg("%s", err.text);
  lac_model_destroy(model);
}

static void a_call_within_another_belongs_to_its_context(void **state) {
  (void)state;
  job *a = begin(false, NULL, 0), *b = begin(false, NULL, 0);
  train_and_prune(a->context, NULL);
  assert_true(strstr(a->log, "verified: all outputs") && strstr(a->log, "memory of training"));
  a->log[0] = '\0';
  train_and_prune(a->context, b->context);
  assert_true(strstr(b->log, "verified: all outputs") && !strstr(b->log, "memory of training"));
  assert_true(strstr(a->log, "memory of training") && !strstr(a->log, "verified: all outputs"));
  end(a);
  end(b);
}

static lac_status run_once(lac_session *session, lac_error *err) {
  float in[64] = {0};
  const lac_array image = {.dtype = LAC_DTYPE_F32,
                           .rank = 4,
                           .shape = {1, 1, 8, 8},
                           .data = in,
                           .size_bytes = sizeof in};
  return lac_session_run(session, &image, 1, NULL, 0, err);
}

static void a_session_keeps_its_context(void **state) {
  (void)state;
  job *a = begin(false, NULL, 0), *b = begin(false, NULL, 0);
  lac_session *of_a = NULL, *of_b = NULL;
  lac_session_options options = lac_session_options_default();
  lac_session_facts facts = LAC_SIZED(lac_session_facts);
  lac_model *model = load();
  lac_error err = {0};
  lac_context_set_threads(a->context, 1);
  options.run.context = a->context;
  assert_int_equal(lac_session_create(model, &options, &of_a, &err), LAC_OK);
  options.run.context = b->context;
  options.run.engine = "plain";
  assert_int_equal(lac_session_create(model, &options, &of_b, &err), LAC_OK);
  assert_int_equal(lac_session_about(of_a, &facts, &err), LAC_OK);
  assert_int_equal(facts.threads, 1); /* what 0 threads means is the context's, too */
  lac_context_interrupt(a->context, true);
  assert_int_equal(run_once(of_a, &err), LAC_INTERRUPTED);
  assert_int_equal(run_once(of_b, NULL), LAC_OK);
  lac_context_interrupt(a->context, false);
  assert_int_equal(run_once(of_a, NULL), LAC_OK);
  lac_session_destroy(of_a);
  lac_session_destroy(of_b);
  lac_model_destroy(model);
  end(a);
  end(b);
}

static void an_engine_keeps_its_context(void **state) {
  (void)state;
  job *a = begin(false, NULL, 0);
  float in[64] = {0}, out[10];
  lac_engine *engine = NULL;
  lac_engine_options options = lac_engine_options_default();
  lac_model *model = load();
  const lac_engine_shape image = {.name = "image", .rank = 4, .shape = {1, 1, 8, 8}};
  options.run.context = a->context;
  options.shapes = &image, options.n_shapes = 1;
  assert_int_equal(lac_engine_create(model, &options, &engine, NULL), LAC_OK);
  lac_context_interrupt(a->context, true);
  assert_int_equal(lac_engine_run(engine, (const void *[]){in}, (void *[]){out}, NULL),
                   LAC_INTERRUPTED);
  lac_context_interrupt(a->context, false);
  lac_interrupt(true); /* is not for it */
  assert_int_equal(lac_engine_run(engine, (const void *[]){in}, (void *[]){out}, NULL), LAC_OK);
  lac_interrupt(false);
  lac_engine_destroy(engine);
  lac_model_destroy(model);
  end(a);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(threads_share_a_model_that_is_only_read),
      cmocka_unit_test(two_jobs_do_what_each_does_alone),
      cmocka_unit_test(an_interrupted_training_leaves_the_pruning_alone),
      cmocka_unit_test(an_interrupted_search_leaves_the_training_alone),
      cmocka_unit_test(the_process_own_interrupt_is_for_those_without_a_context),
      cmocka_unit_test(options_come_before_the_process),
      cmocka_unit_test(a_call_within_another_belongs_to_its_context),
      cmocka_unit_test(a_session_keeps_its_context),
      cmocka_unit_test(an_engine_keeps_its_context),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
