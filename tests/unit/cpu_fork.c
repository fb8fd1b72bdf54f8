/* SPDX-License-Identifier: Apache-2.0
 * A process that is forked after engines have run: an error where threads would be waited for that
 * stayed in the other process, and work as ever where one thread is enough. A hang is the alarm's.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "cpu/pool.h"
#include "lacuna/engine.h"
#include "lacuna/prune.h"
#include "support/programs.h"

#define DIGITS LAC_SOURCE_DIR "/examples/digits/digits.onnx"

enum { HANG_SECONDS = 120, MANY = 4000 };

static lac_model *model;

static lac_status create(int threads, lac_engine **engine, lac_error *err) {
  lac_engine_shape shape = {.name = "image", .rank = 4, .shape = {1, 1, 8, 8}};
  lac_engine_options options = lac_engine_options_default();
  options.run.threads = threads;
  options.shapes = &shape;
  options.n_shapes = 1;
  return lac_engine_create(model, &options, engine, err);
}

static lac_status run(lac_engine *engine, float out[10], lac_error *err) {
  float in[64];
  for (int at = 0; at < 64; at++) in[at] = (float)(at % 17);
  return lac_engine_run(engine, (const void *[]){in}, (void *[]){out}, err);
}

/** Runs body in a forked process; 0: it held. */
static void expect_in_child(int (*body)(void *), void *context) {
  int status = 0;
  if (is_emulated()) skip();
  (void)fflush(NULL);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    (void)alarm(HANG_SECONDS);
    _exit(body(context));
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  if (WIFSIGNALED(status)) fail_msg("signal %d (%d: it hung)", WTERMSIG(status), SIGALRM);
  assert_int_equal(WEXITSTATUS(status), 0);
}

/** An engine cannot get several threads, an old or a new one; both can be destroyed. */
static int wants_threads(void *context) {
  lac_engine *old = context, *new = NULL;
  lac_error err = {0};
  float out[10];
  if (run(old, out, &err) != LAC_UNSUPPORTED || !strstr(err.text, "forked")) return 1;
  if (create(2, &new, &err) != LAC_UNSUPPORTED || !strstr(err.text, "forked") || new) return 2;
  lac_engine_destroy(old);
  return 0;
}

static int takes_one(void *context) {
  lac_engine *engine;
  lac_error err = {0};
  float out[10];
  if (create(1, &engine, &err) || run(engine, out, &err)) return 1;
  lac_engine_destroy(engine);
  return memcmp(out, context, sizeof out) == 0 ? 0 : 2;
}

static void engines_of_several_threads_say_that_they_stayed_after(void **state) {
  (void)state;
  lac_engine *engine, *single;
  lac_error err = {0};
  float out[10], alone[10], again[10];
  if (create(2, &engine, &err) || run(engine, out, &err)) fail_msg("%s", err.text);
  if (create(1, &single, &err) || run(single, alone, &err)) fail_msg("%s", err.text);
  expect_in_child(wants_threads, engine);
  expect_in_child(takes_one, alone);
  assert_int_equal(run(engine, again, &err), LAC_OK); /* here, all is as it was */
  assert_memory_equal(again, out, sizeof out);
  lac_engine_destroy(engine);
  lac_engine_destroy(single);
}

static void mark(int64_t begin, int64_t end, void *context) {
  for (int64_t at = begin; at < end; at++) ((uint8_t *)context)[at]++;
}

static int works_alone(void *context) {
  static uint8_t done[MANY];
  laci_pool *pool = context, *fresh;
  laci_pool_for(pool, MANY, 7, mark, done);
  laci_pool_destroy(pool);
  if (laci_pool_create(3, &fresh, NULL)) return 1;
  laci_pool_for(fresh, MANY, 7, mark, done);
  laci_pool_destroy(fresh);
  for (int at = 0; at < MANY; at++) {
    if (done[at] != 2) return 2;
  }
  return 0;
}

static void pools_work_without_their_threads(void **state) {
  (void)state;
  static uint8_t done[MANY];
  static const int sizes[] = {2, 64}; /* the run time's threads, and of our own */
#ifdef __SANITIZE_ADDRESS__
  skip(); /* its allocator may be inconsistent in a process forked while a thread starts */
#endif
  for (int at = 0; at < 2; at++) {
    laci_pool *pool;
    assert_int_equal(laci_pool_create(sizes[at], &pool, NULL), LAC_OK);
    laci_pool_for(pool, MANY, 7, mark, done);
    expect_in_child(works_alone, pool);
    laci_pool_destroy(pool);
  }
}

static int prunes(void *context) {
  lac_options options = lac_options_default();
  lac_report *report;
  lac_error err = {0};
  (void)context;
  if (lac_prune(model, &options, &report, &err)) {
    fprintf(stderr, "%s\n", err.text);
    return 1;
  }
  lac_report_destroy(report);
  return 0;
}

static void a_network_can_be_pruned_there(void **state) {
  (void)state;
  expect_in_child(prunes, NULL);
}

static int load(void **state) {
  lac_error err;
  (void)state;
  return lac_model_load(DIGITS, NULL, &model, &err);
}

static int unload(void **state) {
  (void)state;
  lac_model_destroy(model);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(engines_of_several_threads_say_that_they_stayed_after),
      cmocka_unit_test(pools_work_without_their_threads),
      cmocka_unit_test(a_network_can_be_pruned_there),
  };
  return cmocka_run_group_tests(tests, load, unload);
}
