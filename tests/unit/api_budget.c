/* SPDX-License-Identifier: Apache-2.0
 * Small files that describe huge networks: every function refuses them by what is planned, names
 * the value, and takes next to nothing before that; with memory enough, what a run takes is what
 * was planned.
 *
 * Each network is x -> Conv -> Relu -> Conv -> something huge -> ReduceMean -> y: the second
 * convolution can be permuted and pruned, so that there is something to verify. */
#include "lacuna/array.h"
#include "lacuna/bench.h"
#include "lacuna/engine.h"
#include "lacuna/infer.h"
#include "lacuna/prune.h"
#include "lacuna/session.h"
#include "onnx_build.h"

#include <sys/resource.h>
#include <sys/wait.h>

#include "base/memory.h"
#include "graph/graph.h"
#include "support/load_bytes.h"
#include "support/programs.h"

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

enum { CHANNELS = 16, MOST_RANK = 8 };
static const uint64_t mib = (uint64_t)1 << 20;

/* The nodes between the second convolution ("b") and the mean ("p"). */
typedef struct huge {
  const char *type, *inputs; /* inputs: as build_node takes them */
  const char *stored;        /* the name of an int64 input; NULL: none */
  int64_t numbers[MOST_RANK];
  int n; /* of numbers; 0: a scalar */
  const char *text;
} huge;

static const huge cases[] = {
    {"Pad", "b s", "s", {0, 0, 0, 0, 0, 0, 2999999, 31}, 8, "'p'): 1x16x3000000x32"},
    {"Expand", "b s", "s", {1, 16, 3000000, 32}, 4, "'p'): 1x16x3000000x32"},
    {"Tile", "b s", "s", {1, 1, 3000000, 32}, 4, "'p'): 1x16x3000000x32"},
    {"Tile", "b s", "s", {(int64_t)1 << 40, 1, 1, 1}, 4, "1099511627776"},
    {"Expand", "b s", "s", {(int64_t)1 << 31, 16, 1 << 10, 1}, 4, "2147483648"},
    {"Pad", "b s", "s", {0, 0, 0, 0, 0, 0, (int64_t)1 << 40, 1 << 8}, 8, "p"},
};
enum { N_CASES = sizeof cases / sizeof *cases, FIRST_BEYOND = 3 /* any machine */ };

static void add_conv(build *b, const char *name, const char *in, const char *out) {
  static const int64_t dims[] = {CHANNELS, CHANNELS, 1, 1};
  char *weight = build_alloc(b, 32, 1), *inputs = build_alloc(b, 64, 1);
  float *numbers = build_alloc(b, CHANNELS * CHANNELS, sizeof *numbers);
  for (int at = 0; at < CHANNELS * CHANNELS; at++) numbers[at] = (float)(at * 37 % 101) / 50 - 1;
  (void)snprintf(weight, 32, "%s.weight", name);
  (void)snprintf(inputs, 64, "%s %s", in, weight);
  Onnx__TensorProto *t = build_tensor_shape(b, weight, LAC_DTYPE_F32, 4, dims);
  t->has_raw_data = 1;
  t->raw_data.len = CHANNELS * CHANNELS * sizeof *numbers;
  t->raw_data.data = (uint8_t *)numbers;
  PUSH(b, b->graph, initializer, t);
  build_node(b, b->graph, "Conv", inputs, out)->name = build_text(b, name);
}

static lac_model *make(const huge *h) {
  build b;
  lac_model *model;
  lac_error err = {0};
  size_t size;
  build_init(&b);
  build_input(&b, "x", "1 16 1 1");
  add_conv(&b, "c1", "x", "a");
  build_node(&b, b.graph, "Relu", "a", "r");
  add_conv(&b, "c2", "r", "b");
  PUSH(
      &b, b.graph, initializer,
      build_raw(&b, h->stored, LAC_DTYPE_I64, h->n, h->numbers, (size_t)h->n * sizeof *h->numbers));
  build_node(&b, b.graph, h->type, h->inputs, "p")->name = (char *)"p";
  Onnx__NodeProto *mean = build_node(&b, b.graph, "ReduceMean", "p", "y");
  build_attr(&b, mean, "keepdims", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT)->has_i = 1;
  build_output(&b, "y");
  uint8_t *bytes = build_bytes(&b, &size);
  assert_true(size < 8192);
  if (load_bytes(bytes, size, &model, &err)) fail_msg("%s", err.text);
  build_clear(&b);
  return model;
}

/* ---- Refused ---- */

/* By the limit, or since no engine takes as many elements. */
static void expect_refused(const huge *h, const char *who, lac_status st, const lac_error *err) {
  bool named = strstr(err->text, h->text) != NULL;
  if ((st == LAC_MEMORY_LIMIT || st == LAC_BAD_SHAPE) && named) return;
  fail_msg("%s of %s: %d: %s", who, h->type, st, err->text);
}

static lac_options options_of(uint64_t limit) {
  lac_options options = lac_options_default();
  options.threads = 1;
  options.max_memory = limit;
  return options;
}

static void is_refused_before_the_search(void **state) {
  (void)state;
  for (int at = 0; at < N_CASES; at++) {
    lac_options options = options_of(1000 * mib);
    lac_report *report = NULL;
    lac_error err = {0};
    lac_model *model = make(&cases[at]);
    lac_status st = lac_prune(model, &options, &report, &err);
    expect_refused(&cases[at], "prune", st, &err);
    if (st == LAC_MEMORY_LIMIT) assert_non_null(strstr(err.text, "the verification does not fit"));
    assert_null(report);
    st = lac_permute(model, &options, &report, &err);
    expect_refused(&cases[at], "permute", st, &err);
    options.verify = false; /* the cure */
    if (lac_prune(model, &options, &report, &err)) fail_msg("%s: %s", cases[at].type, err.text);
    lac_report_destroy(report);
    lac_model_destroy(model);
  }
}

/* No engine and no file holds as many elements as no number counts. */
static void what_cannot_be_counted_is_refused(void **state) {
  (void)state;
  static const huge beyond[] = {
      {"Expand", "b s", "s", {1 << 30, 16, 1 << 30, 1 << 30}, 4, NULL},
      {"Pad", "b s", "s", {0, 0, 0, 0, 0, 0, INT64_MAX / 2, INT64_MAX / 2}, 8, NULL},
  };
  for (int at = 0; at < 2; at++) {
    lac_options options = options_of(1000 * mib);
    lac_report *report = NULL;
    lac_error err = {0};
    lac_model *model = make(&beyond[at]);
    options.verify = false;
    assert_int_equal(lac_prune(model, &options, &report, &err), LAC_BAD_SHAPE);
    assert_non_null(strstr(err.text, "are too large to be counted"));
    assert_null(report);
    lac_model_destroy(model);
  }
}

static void is_refused_before_the_run(void **state) {
  (void)state;
  static float x[CHANNELS] = {1};
  for (int at = 0; at < N_CASES; at++) {
    lac_model *model = make(&cases[at]);
    lac_error err = {0};
    lac_engine *engine;
    lac_engine_options how = lac_engine_options_default();
    lac_bench_options bench = lac_bench_options_default();
    lac_bench_result *timed;
    lac_session *session;
    lac_session_options plain = lac_session_options_default();
    const lac_array input = {.name = "x",
                             .dtype = LAC_DTYPE_F32,
                             .rank = 4,
                             .shape = {1, CHANNELS, 1, 1},
                             .data = x,
                             .size_bytes = sizeof x};
    how.run.max_memory = bench.run.max_memory = plain.run.max_memory = 1000 * mib;
    plain.run.engine = "plain";
    expect_refused(&cases[at], "engine", lac_engine_create(model, &how, &engine, &err), &err);
    expect_refused(&cases[at], "bench", lac_bench(model, &bench, &timed, &err), &err);
    if (at >= FIRST_BEYOND) {
      assert_int_equal(lac_session_create(model, &plain, &session, NULL), LAC_OK);
      expect_refused(&cases[at], "session", lac_session_run(session, &input, 1, NULL, 0, &err),
                     &err);
      lac_session_destroy(session);
    }
    assert_true(!engine && !timed);
    lac_model_destroy(model);
  }
}

static void is_inspected_within_the_limit(void **state) {
  (void)state; /* or refused by it: 3000000 places of channels are 366 MB of analysis */
  static const huge channels = {"Pad", "b s", "s", {0, 0, 0, 0, 0, 2999984, 0, 0}, 8, "p (Pad)"};
  lac_options options = options_of(100 * mib);
  lac_report *report;
  lac_error err = {0};
  lac_model *model = make(&channels);
  assert_int_equal(lac_inspect(model, &options, &report, &err), LAC_MEMORY_LIMIT);
  assert_non_null(strstr(err.text, "p (Pad): axes of 3000000 positions, 366.2 MB"));
  assert_null(report);
  lac_model_destroy(model);
}

/* ---- As planned ---- */

enum { MOST_BEYOND = 50 * 1000 * 1000 };

/* In a child, since the most that a process has had never falls: 0 where that is what was planned
 * and 50 MB, and not much less. */
static int measure(const huge *h, uint64_t (*needs)(lac_model *model, bool run)) {
  lac_model *model = make(h);
  uint64_t planned = needs(model, false);
  uint64_t peak = needs(model, true) ? laci_memory_peak() : UINT64_MAX;
  if (planned > 0 && peak <= planned + MOST_BEYOND && planned < peak + peak / 4) return 0;
  fprintf(stderr, "%s: planned %llu, took %llu\n", h->type, (unsigned long long)planned,
          (unsigned long long)peak);
  return 1;
}

static void expect_as_planned(const huge *h, uint64_t (*needs)(lac_model *model, bool run)) {
  int status = -1;
  pid_t child = fork();
  if (child == 0) _exit(measure(h, needs));
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* "the run needs 610.4 MB, 1.0 MB are allowed" */
static uint64_t bytes_needed(const lac_error *err) {
  const char *needs = strstr(err->text, " needs ");
  return needs ? (uint64_t)(strtod(needs + 7, NULL) * (double)mib) : 0;
}

/* Each returns what is planned, or runs and takes it; 0: it failed. */
static uint64_t bench_needs(lac_model *model, bool run) {
  lac_bench_options options = lac_bench_options_default();
  lac_bench_result *result;
  lac_error err = {0};
  options.run.threads = options.runs = 1;
  options.run.max_memory = run ? 0 : 97 * mib;
  lac_status st = lac_bench(model, &options, &result, &err);
  if (!run) return bytes_needed(&err);
  lac_bench_result_destroy(result);
  return !st;
}

static uint64_t prune_needs(lac_model *model, bool run) {
  lac_options options = options_of(run ? 0 : mib);
  lac_report *report;
  lac_error err = {0};
  lac_status st = lac_prune(model, &options, &report, &err);
  if (!run) return bytes_needed(&err);
  if (!st) lac_report_destroy(report);
  return !st;
}

static void a_run_takes_what_was_planned(void **state) {
  (void)state;
  static const huge moderate[] = {
      {"Pad", "b s", "s", {0, 0, 0, 0, 0, 0, 1999, 999}, 8, "p"},
      {"Expand", "b s", "s", {1, 16, 2000, 1000}, 4, "p"},
      {"Tile", "b s", "s", {1, 1, 2000, 1000}, 4, "p"},
  };
  if (WATCHED || is_emulated()) skip();
  for (size_t at = 0; at < sizeof moderate / sizeof *moderate; at++) {
    expect_as_planned(&moderate[at], bench_needs);
    expect_as_planned(&moderate[at], prune_needs);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(is_refused_before_the_search),
      cmocka_unit_test(what_cannot_be_counted_is_refused),
      cmocka_unit_test(is_refused_before_the_run),
      cmocka_unit_test(is_inspected_within_the_limit),
      cmocka_unit_test(a_run_takes_what_was_planned),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  bool cheap = WATCHED || laci_memory_peak() < 500 * mib;
  if (!cheap) fprintf(stderr, "refusing took %zu bytes\n", laci_memory_peak());
  return failed || !cheap;
}
