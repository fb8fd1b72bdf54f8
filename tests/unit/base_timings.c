/* SPDX-License-Identifier: Apache-2.0
 * base/timings: what one process keeps, the next one finds; what is broken or of another machine
 * holds nothing and is replaced. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/timings.h"
#include "base/writer.h"

static char folder[] = "/tmp/lacuna-timings-XXXXXX", path[128];

static int make_folder(void **state) {
  (void)state;
  assert_non_null(mkdtemp(folder));
  (void)snprintf(path, sizeof path, "%s/a/b/timings.json", folder);
  return 0;
}

static int remove_folder(void **state) {
  char command[128];
  (void)state;
  (void)snprintf(command, sizeof command, "rm -rf %s", folder);
  return system(command);
}

static laci_timings *opened(const char *at, const char *machine) {
  laci_timings *timings;
  lac_error err;
  assert_int_equal(laci_timings_open(at, machine, &timings, &err), LAC_OK);
  return timings;
}

static void expect_time(const char *machine, const char *name, double want) {
  laci_timings *timings = opened(path, machine);
  double seconds = -1;
  assert_int_equal(laci_timings_find(timings, name, &seconds), want > 0);
  if (want > 0) assert_true(fabs(seconds - want) < 1e-5 * want);
  laci_timings_close(timings);
}

static void keeps_times_for_the_next_process(void **state) {
  lac_error err;
  (void)state;
  laci_timings *timings = opened(path, "here");
  assert_int_equal(laci_timings_set(timings, "a layer", 0.25, &err), LAC_OK);
  assert_int_equal(laci_timings_set(timings, "another, \"quoted\"", 1.5e-7, &err), LAC_OK);
  assert_int_equal(laci_timings_set(timings, "a layer", 0.5, &err), LAC_OK);
  assert_int_equal(laci_timings_save(timings, &err), LAC_OK);
  laci_timings_close(timings);
  expect_time("here", "a layer", 0.5);
  expect_time("here", "another, \"quoted\"", 1.5e-7);
  expect_time("here", "a third", 0);
  expect_time("elsewhere", "a layer", 0);
}

static void takes_broken_files_as_empty_ones(void **state) {
  static const char *const texts[] = {"", "{", "[]", "{\"timings\": 2}",
                                      "{\"timings\": 1, \"version\": 3, \"seconds\": {}}"};
  lac_error err;
  (void)state;
  for (size_t at = 0; at < sizeof texts / sizeof *texts; at++) {
    assert_int_equal(laci_file_write(path, texts[at], strlen(texts[at]), true, &err), LAC_OK);
    expect_time("here", "a layer", 0);
    laci_timings *timings = opened(path, "here");
    assert_int_equal(laci_timings_set(timings, "a layer", 2, &err), LAC_OK);
    assert_int_equal(laci_timings_save(timings, &err), LAC_OK);
    laci_timings_close(timings);
    expect_time("here", "a layer", 2);
  }
}

static void writes_nothing_without_a_path_or_a_time(void **state) {
  lac_error err;
  (void)state;
  laci_timings *timings = opened(NULL, "here");
  assert_int_equal(laci_timings_set(timings, "a layer", 1, &err), LAC_OK);
  assert_int_equal(laci_timings_save(timings, &err), LAC_OK);
  laci_timings_close(timings);
  (void)unlink(path);
  timings = opened(path, "here");
  assert_int_equal(laci_timings_save(timings, &err), LAC_OK);
  laci_timings_close(timings);
  assert_int_not_equal(access(path, F_OK), 0);
}

static void what_cannot_be_replaced_is_refused_at_once(void **state) {
  lac_error err;
  laci_timings *timings;
  char pipe[160];
  (void)state;
  (void)snprintf(pipe, sizeof pipe, "%s/pipe", folder);
  assert_int_equal(mkfifo(pipe, 0600), 0);
  const char *const places[] = {pipe, folder, "/dev/null"};
  for (int k = 0; k < 3; k++) {
    assert_int_equal(laci_timings_open(places[k], "here", &timings, &err), LAC_BAD_ARGUMENT);
    assert_non_null(strstr(err.text, "found no regular file, wanted a file of timings"));
    assert_null(timings);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(keeps_times_for_the_next_process),
      cmocka_unit_test(takes_broken_files_as_empty_ones),
      cmocka_unit_test(writes_nothing_without_a_path_or_a_time),
      cmocka_unit_test(what_cannot_be_replaced_is_refused_at_once),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
