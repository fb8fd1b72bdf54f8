/* SPDX-License-Identifier: Apache-2.0
 * What loading and planning a network takes: the memory that the plan says and 50 MB, no more; none
 * in a run; and a model's file that changes meanwhile is an error, never the end of the process.
 *
 * The network is resnet50 with weights (tests/tools/fill_model). Each measurement is a process of
 * its own, since the most that a process has had never falls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "lacuna/bench.h"
#include "lacuna/engine.h"
#include "lacuna/pack.h"
#include "lacuna/prune.h"
#include "support/programs.h"

#define EMPTY LAC_SOURCE_DIR "/tests/fixtures/zoo/resnet50_ts.onnx"
#define DIGITS LAC_SOURCE_DIR "/examples/digits/digits.onnx"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WATCHED 1 /* by a sanitizer, which takes memory of its own */
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define WATCHED 1
#endif
#endif
#ifndef WATCHED
#define WATCHED 0
#endif

enum { MOST_BEYOND = 50 * 1000 * 1000, THREADS = 2 };

static char folder[] = "api_memory_plan_XXXXXX";

static const char *path_of(const char *name) {
  static char paths[4][256];
  static int next;
  char *path = paths[next++ % 4];
  (void)snprintf(path, sizeof paths[0], "%s/%s", folder, name);
  return path;
}

/** Runs the program; its standard output goes nowhere. */
static int run_program(const char *const *arguments) {
  int status = -1;
  pid_t child = fork();
  if (child == 0) {
    if (!freopen("/dev/null", "w", stdout)) _exit(127);
    execv(arguments[0], (char *const *)(uintptr_t)arguments);
    _exit(127);
  }
  if (child > 0) (void)waitpid(child, &status, 0);
  return status;
}

static float *zeros(const lac_engine_port *port) { return laci_alloc(port->size_bytes, 1); }

/** In a child: loads, plans, runs once; exit code 0 where the peak is what was planned. */
static int measure(const char *path) {
  lac_model *model;
  lac_engine *engine;
  lac_error err = {0};
  const lac_engine_port *in, *out;
  lac_engine_options options = lac_engine_options_default();
  options.run.threads = THREADS;
  if (lac_model_load(path, NULL, &model, &err) ||
      lac_engine_create(model, &options, &engine, &err)) {
    fprintf(stderr, "%s\n", err.text);
    return 2;
  }
  (void)lac_engine_inputs(engine, &in);
  (void)lac_engine_outputs(engine, &out);
  float *from = zeros(&in[0]), *to = zeros(&out[0]);
  if (lac_engine_run(engine, (const void *[]){from}, (void *[]){to}, &err)) return 2;
  lac_engine_memory planned = LAC_SIZED(lac_engine_memory);
  if (lac_engine_planned(engine, &planned, &err)) return 2;
  size_t most = planned.arena_bytes + planned.weight_bytes + MOST_BEYOND, peak = laci_memory_peak();
  if (peak > 0 && peak <= most) return 0;
  fprintf(stderr, "%s: %zu bytes at most, wanted %zu: weights %zu, arena %zu\n", path, peak, most,
          planned.weight_bytes, planned.arena_bytes);
  return 1;
}

/* A program of its own: forked from this one it would start with this one's pages. */
static void expect_planned(const char *path) {
  char self[4096];
  ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  assert_true(n > 0);
  self[n] = 0;
  int status = run_program((const char *const[]){self, "--measure", path, NULL});
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
}

static const char *fill_model_path(void) {
  static char path[4096];
  const char *build = getenv("LAC_BUILD_DIR");
  (void)snprintf(path, sizeof path, "%s/tests/tools/fill_model", build ? build : "..");
  return access(path, X_OK) == 0 ? path : NULL;
}

static void a_network_takes_what_was_planned(void **state) {
  (void)state;
  const char *tool = fill_model_path(), *full = path_of("resnet50.onnx");
  if (WATCHED || is_emulated() || !tool) skip();
  int status = run_program((const char *const[]){tool, EMPTY, full, "1", NULL});
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  expect_planned(full);
}

static void a_packed_network_does_too(void **state) {
  (void)state;
  const char *full = path_of("resnet50.onnx"), *packed = path_of("resnet50.pack");
  lac_model *model;
  lac_report *report = NULL;
  lac_error err = {0};
  if (WATCHED || access(full, R_OK) != 0) skip();
  lac_options options = lac_options_default();
  options.permute = false;
  options.verify = false;
  if (lac_model_load(full, NULL, &model, &err) || lac_prune(model, &options, &report, &err)) {
    fail_msg("%s", err.text);
  }
  lac_report_destroy(report);
  if (lac_pack_save(model, packed, &options, true, NULL, &err)) fail_msg("%s", err.text);
  lac_model_destroy(model);
  expect_planned(packed);
}

/* ---- Small networks ---- */

static lac_model *load(const char *path) {
  lac_model *model;
  lac_error err = {0};
  if (lac_model_load(path, NULL, &model, &err)) fail_msg("%s", err.text);
  return model;
}

static lac_status create(const lac_model *model, lac_engine **engine, lac_error *err) {
  lac_engine_shape shape = {.name = "image", .rank = 4, .shape = {1, 1, 8, 8}};
  lac_engine_options options = lac_engine_options_default();
  options.run.threads = 1;
  options.shapes = &shape;
  options.n_shapes = 1;
  return lac_engine_create(model, &options, engine, err);
}

static void a_run_takes_no_memory(void **state) {
  (void)state;
  lac_model *model = load(DIGITS);
  lac_engine *engine;
  lac_error err = {0};
  float in[64] = {1}, out[64];
  assert_int_equal(create(model, &engine, &err), LAC_OK);
  laci_memory_fail_from(1);
  lac_status st = lac_engine_run(engine, (const void *[]){in}, (void *[]){out}, &err);
  laci_memory_fail_from(0);
  assert_int_equal(st, LAC_OK);
  lac_engine_destroy(engine);
  lac_model_destroy(model);
}

static void copy_file(const char *from, const char *to) {
  lac_error err = {0};
  lac_model *model = load(from);
  if (lac_model_save(model, to, true, &err)) fail_msg("%s", err.text);
  lac_model_destroy(model);
}

static void a_file_that_is_cut_is_an_error(void **state) {
  (void)state;
  const char *path = path_of("cut.onnx");
  lac_engine *engine;
  lac_tensor weight = LAC_SIZED(lac_tensor);
  lac_error err = {0};
  copy_file(DIGITS, path);
  lac_model *model = load(path);
  assert_int_equal(truncate(path, 4096), 0);
  assert_int_equal(create(model, &engine, &err), LAC_IO);
  assert_non_null(strstr(err.text, "meanwhile"));
  assert_int_equal(lac_model_find_tensor(model, "fc.weight", &weight, &err), LAC_IO);
  assert_int_equal(lac_model_tensor(model, 0, &weight, NULL), LAC_IO);
  lac_model_destroy(model);
}

static void a_bench_reads_the_file_as_an_engine_does(void **state) {
  (void)state; /* it says why, and is not the end of the process */
  const char *path = path_of("cut.onnx");
  lac_bench_result *result;
  lac_error err = {0};
  lac_bench_options options = lac_bench_options_default();
  options.run.threads = options.runs = 1;
  copy_file(DIGITS, path);
  lac_model *model = load(path);
  assert_int_equal(truncate(path, 4096), 0);
  assert_int_equal(lac_bench(model, &options, &result, &err), LAC_IO);
  assert_non_null(strstr(err.text, "meanwhile"));
  assert_null(result);
  lac_model_destroy(model);
}

static void an_engine_does_not_need_the_file(void **state) {
  (void)state;
  const char *path = path_of("cut.onnx");
  lac_engine *engine;
  lac_error err = {0};
  float in[64] = {1}, before[64] = {0}, after[64] = {0};
  copy_file(DIGITS, path);
  lac_model *model = load(path);
  assert_int_equal(create(model, &engine, &err), LAC_OK);
  assert_int_equal(lac_engine_run(engine, (const void *[]){in}, (void *[]){before}, &err), LAC_OK);
  assert_int_equal(truncate(path, 0), 0);
  assert_int_equal(lac_engine_run(engine, (const void *[]){in}, (void *[]){after}, &err), LAC_OK);
  assert_memory_equal(before, after, sizeof before);
  lac_engine_destroy(engine);
  lac_model_destroy(model);
}

static int make_folder(void **state) {
  (void)state;
  return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
  (void)state;
  static const char *const names[] = {"resnet50.onnx", "resnet50.pack", "cut.onnx"};
  for (int k = 0; k < 3; k++) (void)unlink(path_of(names[k]));
  return rmdir(folder);
}

int main(int argc, char **argv) {
  if (argc == 3 && strcmp(argv[1], "--measure") == 0) return measure(argv[2]);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_network_takes_what_was_planned),
      cmocka_unit_test(a_packed_network_does_too),
      cmocka_unit_test(a_run_takes_no_memory),
      cmocka_unit_test(a_file_that_is_cut_is_an_error),
      cmocka_unit_test(a_bench_reads_the_file_as_an_engine_does),
      cmocka_unit_test(an_engine_does_not_need_the_file),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
