/* SPDX-License-Identifier: Apache-2.0
 * base/log and base/clock: levels, sinks, progress, the wish to stop. */
#include "base/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"

static char last_line[4096];
static int n_lines;
static int64_t last_done, last_total;

static void keep_line(lac_log_level level, const char *line, void *context) {
  (void)level;
  assert_ptr_equal(context, &n_lines);
  n_lines++;
  (void)strncpy(last_line, line, sizeof last_line - 1);
}

static void keep_progress(const char *what, int64_t done, int64_t total, void *context) {
  assert_string_equal(what, "search");
  assert_null(context);
  last_done = done;
  last_total = total;
}

static void makes_only_lines_that_are_wanted(void **state) {
  (void)state;
  laci_log(LAC_LOG_ERROR, "nobody listens");
  lac_log_set(LAC_LOG_INFO, keep_line, &n_lines);
  assert_true(laci_log_is_enabled(LAC_LOG_WARNING) && laci_log_is_enabled(LAC_LOG_INFO));
  assert_false(laci_log_is_enabled(LAC_LOG_DEBUG));
  laci_log(LAC_LOG_DEBUG, "too deep");
  laci_log(LAC_LOG_INFO, "%s has %d channels", "conv1", 64);
  assert_int_equal(n_lines, 1);
  assert_string_equal(last_line, "conv1 has 64 channels");
  lac_log_set(LAC_LOG_TRACE, NULL, NULL);
  assert_false(laci_log_is_enabled(LAC_LOG_ERROR));
  laci_log(LAC_LOG_ERROR, "nobody listens");
  assert_int_equal(n_lines, 1);
}

static void cuts_lines_that_are_too_long(void **state) {
  (void)state;
  static char text[8000];
  memset(text, 'x', sizeof text - 1);
  lac_log_set(LAC_LOG_INFO, keep_line, &n_lines);
  laci_log(LAC_LOG_INFO, "%s", text);
  assert_in_range(strlen(last_line), 100, 4000);
  lac_log_set(LAC_LOG_INFO, NULL, NULL);
}

static void passes_progress_on(void **state) {
  (void)state;
  laci_progress("search", 1, 2);
  lac_progress_set(keep_progress, NULL);
  laci_progress("search", 3, 7);
  assert_int_equal(last_done, 3);
  assert_int_equal(last_total, 7);
  lac_progress_set(NULL, NULL);
  laci_progress("search", 4, 7);
  assert_int_equal(last_done, 3);
}

static void a_wish_to_stop_can_be_taken_back(void **state) {
  (void)state;
  assert_false(laci_interrupted());
  lac_interrupt(true);
  assert_true(laci_interrupted());
  lac_interrupt(false);
  assert_false(laci_interrupted());
}

static void the_clock_does_not_go_back(void **state) {
  (void)state;
  double before = laci_clock_seconds();
  for (int i = 0; i < 1000; i++) {
    double now = laci_clock_seconds();
    assert_true(now >= before);
    before = now;
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(makes_only_lines_that_are_wanted),
      cmocka_unit_test(cuts_lines_that_are_too_long),
      cmocka_unit_test(passes_progress_on),
      cmocka_unit_test(a_wish_to_stop_can_be_taken_back),
      cmocka_unit_test(the_clock_does_not_go_back),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
