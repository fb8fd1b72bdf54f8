/* SPDX-License-Identifier: Apache-2.0
 * Structs that grow: callers with fewer fields than the library are served, and callers with more
 * are refused where they use them. */
#include "api/model/structs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lacuna/lacuna.h"

#define DIGITS LAC_SOURCE_DIR "/examples/digits/digits.onnx"

/* A struct of options before and after it grew. */
typedef struct older {
  size_t size;
  int threads, runs;
} older;

typedef struct newer {
  size_t size;
  int threads, runs;
  double seconds;
  const char *engine;
} newer;

static const laci_struct_type of_older = {"lac_shape", sizeof(older), sizeof(older), true};
static const laci_struct_type of_newer = {"lac_shape", sizeof(newer), sizeof(older), true};

static void a_newer_library_serves_an_older_caller(void **state) {
  (void)state;
  const older given = {.size = sizeof given, .threads = 3, .runs = 7};
  newer own = {.size = sizeof own, .threads = 1, .runs = 1, .seconds = 5, .engine = "cpu"};
  assert_int_equal(laci_struct_copy_from_caller(&of_newer, &given, &own, NULL), LAC_OK);
  assert_true(own.threads == 3 && own.runs == 7);
  assert_true(own.seconds == 5 && own.engine[0] == 'c' && own.size == sizeof own);
}

static void an_older_library_refuses_what_it_does_not_know(void **state) {
  (void)state;
  newer given = {.size = sizeof given, .threads = 3, .runs = 7};
  older own = {.size = sizeof own, .threads = 1};
  lac_error err = {0};
  assert_int_equal(laci_struct_copy_from_caller(&of_older, &given, &own, &err), LAC_OK);
  assert_true(own.threads == 3 && own.runs == 7 && own.size == sizeof own);
  given.engine = "gpu";
  assert_int_equal(laci_struct_copy_from_caller(&of_older, &given, &own, &err), LAC_UNSUPPORTED);
  assert_non_null(strstr(err.text, "lac_shape: the field at byte 2"));
  assert_non_null(strstr(err.text, "a newer library is needed"));
}

static void a_result_has_the_callers_size(void **state) {
  (void)state;
  const newer own = {.size = sizeof own, .threads = 2, .runs = 9, .seconds = 1};
  struct {
    older result;
    uint64_t after;
  } small = {{.size = sizeof(older)}, 0x5a5a5a5a5a5a5a5a};
  laci_struct_copy_to_caller(&of_newer, &own, &small.result);
  assert_true(small.result.threads == 2 && small.result.runs == 9);
  assert_true(small.result.size == sizeof(older) && small.after == 0x5a5a5a5a5a5a5a5a);
  const older less = {.size = sizeof less, .runs = 4};
  newer large = {.size = sizeof large, .seconds = 8, .engine = "old"};
  laci_struct_copy_to_caller(&of_older, &less, &large);
  assert_true(large.runs == 4 && large.seconds == 0 && !large.engine);
  assert_int_equal(large.size, sizeof large);
}

static void a_size_that_is_none_is_refused(void **state) {
  (void)state;
  const size_t sizes[] = {0, 1, sizeof(older) - 1, (size_t)1 << 40, SIZE_MAX};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    const older given = {.size = sizes[i]};
    lac_error err = {0};
    assert_int_equal(laci_struct_check(&of_newer, &given, &err), LAC_BAD_ARGUMENT);
    assert_non_null(strstr(err.text, "wanted sizeof(lac_shape): begin with lac_shape_default()"));
  }
}

/* The functions of the library do the same: a caller of tomorrow has one field more. */
static void the_library_checks_sizes(void **state) {
  (void)state;
  lac_model *model = NULL;
  lac_report *report = NULL;
  lac_error err = {0};
  struct {
    lac_options today;
    int64_t tomorrow;
  } options = {.today = lac_options_default()};
  options.today.size = sizeof options;
  assert_int_equal(lac_model_load(DIGITS, NULL, &model, &err), LAC_OK);
  assert_int_equal(lac_inspect(model, &options.today, &report, &err), LAC_OK);
  lac_report_destroy(report);
  options.tomorrow = 1;
  assert_int_equal(lac_inspect(model, &options.today, &report, &err), LAC_UNSUPPORTED);
  assert_non_null(strstr(err.text, "lac_options: the field at byte "));
  options.today.size = 0;
  assert_int_equal(lac_inspect(model, &options.today, &report, &err), LAC_BAD_ARGUMENT);
  assert_non_null(strstr(err.text, "lac_options.size is 0"));
  /* structs that options point to */
  lac_calibration calibration = lac_calibration_default();
  lac_options pruning = lac_options_default();
  calibration.size = 0;
  pruning.calibration = &calibration;
  assert_int_equal(lac_prune(model, &pruning, &report, &err), LAC_BAD_ARGUMENT);
  assert_non_null(strstr(err.text, "lac_calibration.size is 0"));
  /* a result */
  lac_tensor tensor = {0};
  assert_int_equal(lac_model_tensor(model, 0, &tensor, &err), LAC_BAD_ARGUMENT);
  assert_non_null(strstr(err.text, "begin with LAC_SIZED(lac_tensor)"));
  lac_model_destroy(model);
}

static void reserved_bytes_are_zero(void **state) {
  (void)state;
  lac_model *model = NULL;
  lac_engine *engine = NULL;
  lac_error err = {0};
  lac_engine_options options = lac_engine_options_default();
  options.run.reserved[2] = 1;
  assert_int_equal(lac_model_load(DIGITS, NULL, &model, &err), LAC_OK);
  assert_int_equal(lac_engine_create(model, &options, &engine, &err), LAC_UNSUPPORTED);
  assert_null(engine);
  assert_non_null(strstr(err.text, "lac_run_options.reserved[2] is set"));
  options.run.reserved[2] = 0;
  options.run.reserved_flags[1] = 1;
  assert_int_equal(lac_engine_create(model, &options, &engine, &err), LAC_UNSUPPORTED);
  lac_model_destroy(model);
}

/* Defaults fill a struct of any size, and nothing after it. */
static void init_fills_what_there_is(void **state) {
  (void)state;
  struct {
    lac_bench_options options;
    uint64_t tomorrow, after;
  } wide;
  memset(&wide, 0x5a, sizeof wide);
  lac_bench_options_init(&wide.options, sizeof wide.options + sizeof wide.tomorrow);
  assert_true(wide.options.size == sizeof wide.options + sizeof wide.tomorrow);
  assert_true(wide.options.runs == 1000 && wide.tomorrow == 0);
  assert_true(wide.after == 0x5a5a5a5a5a5a5a5a);
  lac_bench_options_init(NULL, sizeof wide.options);
  memset(&wide, 0x5a, sizeof wide);
  lac_bench_options_init(&wide.options, 2); /* has no room for the size */
  assert_true(wide.after == 0x5a5a5a5a5a5a5a5a && ((unsigned char *)&wide)[0] == 0x5a);
}

static void a_program_can_check_the_version(void **state) {
  (void)state;
  lac_error err = {0};
  assert_int_equal(lac_version_number(), LAC_VERSION);
  assert_int_equal(lac_version_check(LAC_VERSION, &err), LAC_OK);
  assert_int_equal(lac_version_check(LAC_VERSION + 1, &err), LAC_UNSUPPORTED);
  assert_non_null(strstr(err.text, lac_version()));
  assert_int_equal(lac_version_check(LAC_VERSION_NUMBER(7, 0, 0), &err), LAC_UNSUPPORTED);
  assert_int_equal(lac_version_check(-1, NULL), LAC_UNSUPPORTED);
}

/* Every hint but the first says what helps; a value that is none says nothing. */
static void every_hint_has_a_text(void **state) {
  (void)state;
  assert_string_equal(lac_hint_text(LAC_HINT_NONE), "");
  for (int hint = 1; hint < LAC_HINT_COUNT; hint++) {
    assert_true(lac_hint_text((lac_hint)hint)[0] != 0);
  }
  assert_string_equal(lac_hint_text(LAC_HINT_MAX_MEMORY), "options.max_memory");
  assert_string_equal(lac_hint_text(LAC_HINT_COUNT), "");
  assert_string_equal(lac_hint_text((lac_hint)-1), "");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_newer_library_serves_an_older_caller),
      cmocka_unit_test(an_older_library_refuses_what_it_does_not_know),
      cmocka_unit_test(a_result_has_the_callers_size),
      cmocka_unit_test(a_size_that_is_none_is_refused),
      cmocka_unit_test(the_library_checks_sizes),
      cmocka_unit_test(reserved_bytes_are_zero),
      cmocka_unit_test(init_fills_what_there_is),
      cmocka_unit_test(a_program_can_check_the_version),
      cmocka_unit_test(every_hint_has_a_text),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
