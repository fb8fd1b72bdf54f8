/* SPDX-License-Identifier: Apache-2.0
 * train: log.jsonl goes on where a checkpoint was made; event files are framed as TFRecords (the
 * tensorboard package reads them back in tests/interop). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/crc32c.h"
#include "base/memory.h"
#include "train/events.h"
#include "train/log.h"
#include "unit/data_folder.h"

static char *text_of(const folder *f, const char *name) {
  char path[FOLDER_PATH], *text = NULL;
  path_in(path, f, name);
  assert_int_equal(laci_file_read_text(path, 1 << 20, &text, NULL), LAC_OK);
  return text;
}

static void write_steps(laci_train_log *log, int from, int to) {
  for (int step = from; step <= to; step++) {
    laci_log_line line = {
        .step = step, .epoch = step / 3, .loss = 1.0 / step, .rate = 0.1, .images_per_second = 100};
    assert_int_equal(laci_train_log_write(log, &line, NULL), LAC_OK);
    if (step % 3) continue;
    line = (laci_log_line){.is_eval = true, .step = step, .top1 = 91.25, .top5 = 99, .loss = 0.5};
    assert_int_equal(laci_train_log_write(log, &line, NULL), LAC_OK);
  }
}

static void lines_are_those_of_the_interface(void **state) {
  (void)state;
  folder f = make_folder();
  laci_train_log *log = NULL;
  assert_int_equal(laci_train_log_open(f.path, -1, &log, NULL), LAC_OK);
  write_steps(log, 2, 3);
  laci_log_line bad = {.step = 4, .epoch = 1, .loss = (double)NAN, .rate = 1e-4};
  assert_int_equal(laci_train_log_write(log, &bad, NULL), LAC_OK);
  assert_int_equal(laci_train_log_close(log, NULL), LAC_OK);
  char *text = text_of(&f, "log.jsonl");
  assert_string_equal(
      text,
      "{\"step\": 2, \"epoch\": 0, \"loss\": 0.5, \"lr\": 0.1, \"images_per_second\": 100, "
      "\"top1\": 0}\n"
      "{\"step\": 3, \"epoch\": 1, \"loss\": 0.333333333, \"lr\": 0.1, \"images_per_second\": "
      "100, \"top1\": 0}\n"
      "{\"eval\": true, \"step\": 3, \"top1\": 91.25, \"top5\": 99, \"loss\": 0.5}\n"
      "{\"step\": 4, \"epoch\": 1, \"loss\": null, \"lr\": 0.0001, \"images_per_second\": 0, "
      "\"top1\": 0}\n");
  laci_free(text);
  remove_folder(&f);
}

static void a_run_that_goes_on_drops_what_came_after_its_checkpoint(void **state) {
  (void)state;
  folder f = make_folder(), whole = make_folder();
  laci_train_log *log = NULL;
  int64_t n;
  assert_int_equal(laci_train_log_open(whole.path, -1, &log, NULL), LAC_OK);
  write_steps(log, 1, 12);
  assert_int_equal(laci_train_log_close(log, NULL), LAC_OK);
  assert_int_equal(laci_train_log_open(f.path, -1, &log, NULL), LAC_OK);
  write_steps(log, 1, 8);
  assert_int_equal(laci_train_log_close(log, NULL), LAC_OK);
  char path[FOLDER_PATH];
  path_in(path, &f, "log.jsonl"); /* killed in the middle of a line */
  FILE *file = fopen(path, "a");
  assert_non_null(file);
  assert_true(fputs("{\"step\": 9, \"epo", file) >= 0 && fclose(file) == 0);
  assert_int_equal(laci_train_log_open(f.path, 6, &log, NULL), LAC_OK);
  const laci_log_line *lines = laci_train_log_lines(log, &n);
  assert_int_equal(n, 8);
  assert_true(lines[7].is_eval && lines[7].step == 6 && lines[7].top1 == 91.25);
  write_steps(log, 7, 12);
  assert_int_equal(laci_train_log_close(log, NULL), LAC_OK);
  char *found = text_of(&f, "log.jsonl"), *want = text_of(&whole, "log.jsonl");
  assert_string_equal(found, want);
  laci_free(found);
  laci_free(want);
  assert_int_equal(laci_train_log_open(f.path, -1, &log, NULL), LAC_OK); /* starts anew */
  (void)laci_train_log_lines(log, &n);
  assert_int_equal(n, 0);
  assert_int_equal(laci_train_log_close(log, NULL), LAC_OK);
  remove_folder(&f);
  remove_folder(&whole);
}

static void foreign_lines_do_no_harm(void **state) {
  (void)state;
  folder f = make_folder();
  laci_train_log *log = NULL;
  int64_t n;
  add_text(&f, "log.jsonl",
           "\n[1]\nhello\n{\"step\": \"x\"}\n{\"step\": 1, \"loss\": {}}\n\xff\xfe\n{");
  assert_int_equal(laci_train_log_open(f.path, 5, &log, NULL), LAC_OK);
  const laci_log_line *lines = laci_train_log_lines(log, &n);
  assert_int_equal(n, 1);
  assert_true(isnan(lines[0].loss));
  assert_int_equal(laci_train_log_close(log, NULL), LAC_OK);
  assert_int_equal(laci_train_log_open("no/such/folder", 0, &log, NULL), LAC_NOT_FOUND);
  assert_null(log);
  assert_int_equal(laci_train_log_close(NULL, NULL), LAC_OK);
  remove_folder(&f);
}

static void lines_of_steps_before_the_first_do_no_harm(void **state) {
  (void)state;
  folder f = make_folder();
  laci_train_log *log = NULL;
  int64_t n;
  char path[FOLDER_PATH];
  path_in(path, &f, "log.jsonl");
  static const char text[] = "{\"step\": -9000000000000000000, \"loss\": 1}\n{\"step\": 1}\n";
  assert_int_equal(laci_file_write(path, text, sizeof text - 1, true, NULL), LAC_OK);
  assert_int_equal(laci_train_log_open(f.path, 6, &log, NULL), LAC_OK);
  const laci_log_line *lines = laci_train_log_lines(log, &n);
  assert_int_equal(n, 1);
  assert_int_equal(lines[0].step, 1);
  assert_int_equal(laci_train_log_close(log, NULL), LAC_OK);
  remove_folder(&f);
}

static uint32_t unmask(uint32_t masked) {
  uint32_t rotated = masked - 0xA282EAD8U;
  return rotated >> 17 | rotated << 15;
}

static void events_are_framed(void **state) {
  (void)state;
  folder f = make_folder();
  laci_events *events = NULL, *second = NULL;
  static const laci_scalar scalars[2] = {{"loss", 0.25}, {"lr", 0.1}};
  assert_int_equal(laci_events_create(f.path, &events, NULL), LAC_OK);
  assert_int_equal(laci_events_create(f.path, &second, NULL), LAC_OK); /* a name of its own */
  assert_string_not_equal(laci_events_path(events), laci_events_path(second));
  for (int step = 1; step <= 3; step++) {
    assert_int_equal(laci_events_write(events, step, scalars, 2, NULL), LAC_OK);
  }
  laci_file_bytes map;
  assert_int_equal(laci_file_bytes_read(laci_events_path(events), &map, NULL), LAC_OK);
  int n = 0;
  for (size_t at = 0; at < map.size_bytes; n++) {
    uint64_t length;
    uint32_t crc[2];
    assert_true(map.size_bytes - at >= 16);
    memcpy(&length, map.bytes + at, 8);
    memcpy(&crc[0], map.bytes + at + 8, 4);
    assert_true(length <= map.size_bytes - at - 16);
    memcpy(&crc[1], map.bytes + at + 12 + length, 4);
    assert_int_equal(unmask(crc[0]), laci_crc32c(map.bytes + at, 8));
    assert_int_equal(unmask(crc[1]), laci_crc32c(map.bytes + at + 12, length));
    at += 16 + length;
  }
  assert_int_equal(n, 4);
  laci_file_bytes_clear(&map);
  assert_int_equal(laci_events_close(events, NULL), LAC_OK);
  assert_int_equal(laci_events_close(second, NULL), LAC_OK);
  assert_int_equal(laci_events_create("no/such/folder", &events, NULL), LAC_NOT_FOUND);
  assert_null(events);
  remove_folder(&f);
}

static void without_memory_they_fail_cleanly(void **state) {
  (void)state;
  folder f = make_folder();
  static const laci_scalar scalar = {"loss", 1};
  for (long n = 1; n < 16; n++) {
    laci_events *events = NULL;
    laci_train_log *log = NULL;
    laci_log_line line = {.step = 1};
    laci_memory_fail_from(n);
    lac_status st = laci_train_log_open(f.path, 3, &log, NULL);
    if (!st) st = laci_train_log_write(log, &line, NULL);
    if (!st) st = laci_events_create(f.path, &events, NULL);
    if (!st) st = laci_events_write(events, 1, &scalar, 1, NULL);
    laci_memory_fail_from(0);
    assert_true(st == LAC_OK || st == LAC_NO_MEMORY);
    assert_int_equal(laci_events_close(events, NULL), LAC_OK);
    assert_int_equal(laci_train_log_close(log, NULL), LAC_OK);
  }
  remove_folder(&f);
}

/** Memory may end inside jansson, too: no line is taken for a foreign one then. */
static void *json_memory(size_t n) { return laci_alloc(n, 1); }

static void without_memory_no_earlier_line_is_lost(void **state) {
  (void)state;
  folder f = make_folder();
  laci_train_log *log = NULL;
  lac_status st = LAC_NO_MEMORY;
  assert_int_equal(laci_train_log_open(f.path, -1, &log, NULL), LAC_OK);
  write_steps(log, 1, 8);
  assert_int_equal(laci_train_log_close(log, NULL), LAC_OK);
  json_set_alloc_funcs(json_memory, laci_free);
  int tries = 0;
  for (long n = 1; st; n++, tries++) {
    int64_t n_lines;
    laci_memory_fail_from(n);
    st = laci_train_log_open(f.path, 8, &log, NULL);
    laci_memory_fail_from(0);
    assert_true(st == LAC_OK || st == LAC_NO_MEMORY);
    if (st) continue;
    (void)laci_train_log_lines(log, &n_lines);
    assert_int_equal(n_lines, 10);
    assert_int_equal(laci_train_log_close(log, NULL), LAC_OK);
  }
  assert_true(tries > 20);
  json_set_alloc_funcs(malloc, free);
  remove_folder(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lines_are_those_of_the_interface),
      cmocka_unit_test(a_run_that_goes_on_drops_what_came_after_its_checkpoint),
      cmocka_unit_test(foreign_lines_do_no_harm),
      cmocka_unit_test(lines_of_steps_before_the_first_do_no_harm),
      cmocka_unit_test(events_are_framed),
      cmocka_unit_test(without_memory_they_fail_cleanly),
      cmocka_unit_test(without_memory_no_earlier_line_is_lost),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
