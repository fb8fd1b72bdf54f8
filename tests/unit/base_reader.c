/* SPDX-License-Identifier: Apache-2.0
 * Reading files that others change meanwhile: parts, looks, materialised parts, and what each says
 * when the file is cut, changed or replaced. */
#include "onnx_build.h"

#include "base/reader.h"
#include "graph/graph.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { LONG = 300000 }; /* bytes: many blocks of every kind */

static folder dir;
static uint8_t content[LONG];

static int make_folder(void **state) {
  (void)state;
  folder_make(&dir);
  for (size_t at = 0; at < LONG; at++) content[at] = (uint8_t)(at * 31 >> 3);
  return 0;
}

static int remove_folder(void **state) {
  (void)state;
  folder_remove(&dir);
  return 0;
}

/** A reader of a new file with the first n bytes of `content`. */
static laci_reader *open_file(const char *name, size_t n) {
  laci_reader *reader;
  lac_error err = {0};
  (void)unlink(in_folder(&dir, name));
  write_bytes(in_folder(&dir, name), content, n);
  if (laci_reader_open(in_folder(&dir, name), &reader, &err)) fail_msg("%s", err.text);
  return reader;
}

static void expect_text(const lac_error *err, const char *name, const char *rest) {
  char text[512];
  (void)snprintf(text, sizeof text, "%s: %s", in_folder(&dir, name), rest);
  assert_string_equal(err->text, text);
}

static void reads_regular_files_only(void **state) {
  (void)state;
  laci_file_bytes file;
  lac_error err = {0};
  write_bytes(in_folder(&dir, "f"), "content", 7);
  write_bytes(in_folder(&dir, "empty"), "", 0);
  assert_int_equal(laci_file_bytes_read(in_folder(&dir, "f"), &file, &err), LAC_OK);
  assert_int_equal(file.size_bytes, 7);
  assert_memory_equal(file.bytes, "content", 7);
  laci_file_bytes_clear(&file);
  assert_null(file.bytes);
  laci_file_bytes_clear(&file);
  assert_int_equal(laci_file_bytes_read(in_folder(&dir, "empty"), &file, &err), LAC_OK);
  assert_null(file.bytes);
  laci_file_bytes_clear(&file);
  assert_int_equal(laci_file_bytes_read(dir.path, &file, &err), LAC_BAD_FILE);
  assert_int_equal(laci_file_bytes_read(in_folder(&dir, "none"), &file, &err), LAC_NOT_FOUND);
  assert_int_equal(laci_file_bytes_read("/dev/zero", &file, NULL), LAC_BAD_FILE);
}

/** Every function that reads gives the same bytes, at borders of blocks and across them. */
static void parts_are_parts_of_the_whole(void **state) {
  (void)state;
  static uint8_t part[LONG];
  static const size_t begins[] = {0, 1, 16383, 16384, 65535, 65536, 200000, LONG - 1};
  for (int reader_kind = 0; reader_kind < 4;
       reader_kind++) { /* fetched, watched, looked at, materialised */
    laci_reader *reader = open_file("long", LONG);
    if (reader_kind == 1) assert_int_equal(laci_reader_watch_for_changes(reader, NULL), LAC_OK);
    for (size_t k = 0; k < sizeof begins / sizeof *begins; k++) {
      size_t from = begins[k], n = LONG - from < 70000 ? LONG - from : 70000;
      if (reader_kind == 2) assert_int_equal(laci_reader_load_range(reader, from, n, NULL), LAC_OK);
      if (reader_kind == 3)
        assert_int_equal(laci_reader_materialise_range(reader, from, n, NULL), LAC_OK);
      assert_int_equal(laci_reader_copy_range(reader, from, n, part, NULL), LAC_OK);
      assert_memory_equal(part, content + from, n);
      if (reader_kind >= 2)
        assert_memory_equal(laci_reader_bytes(reader) + from, content + from, n);
    }
    laci_reader_close(reader);
  }
}

static void a_file_that_is_cut_is_an_error_with_its_sizes(void **state) {
  (void)state;
  lac_error err = {0};
  char part[8] = {0};
  laci_reader *reader = open_file("f", 7);
  assert_int_equal(laci_reader_copy_range(reader, 3, 4, part, &err), LAC_OK);
  assert_memory_equal(part, content + 3, 4);
  assert_int_equal(laci_reader_copy_range(reader, 7, 0, part, &err), LAC_OK);
  assert_int_equal(truncate(in_folder(&dir, "f"), 5), 0);
  assert_int_equal(laci_reader_copy_range(reader, 3, 4, part, &err), LAC_IO);
  expect_text(&err, "f", "was 7 bytes long, and was cut to 5 meanwhile");
  assert_int_equal(laci_reader_copy_range(reader, 0, 1, part, &err),
                   LAC_IO); /* what is left, too */
  assert_int_equal(laci_reader_load_range(reader, 0, 1, &err), LAC_IO);
  assert_int_equal(laci_reader_materialise_range(reader, 0, 7, &err), LAC_IO);
  expect_text(&err, "f", "was 7 bytes long, and was cut to 5 meanwhile");
  laci_reader_close(reader);
}

static void a_file_that_is_written_again_is_an_error(void **state) {
  (void)state;
  lac_error err = {0};
  char part[8];
  laci_reader *reader = open_file("f", 7);
  write_bytes(in_folder(&dir, "f"), content, 9); /* in place: cut, and longer again */
  assert_int_equal(laci_reader_copy_range(reader, 0, 7, part, &err), LAC_IO);
  expect_text(&err, "f", "was changed meanwhile");
  laci_reader_close(reader);
}

static void a_file_that_another_replaces_is_read_to_its_end(void **state) {
  (void)state;
  char part[8];
  laci_reader *reader = open_file("f", 7);
  write_bytes(in_folder(&dir, "other"), "another", 7);
  assert_int_equal(rename(in_folder(&dir, "other"), in_folder(&dir, "f")), 0);
  assert_int_equal(laci_reader_copy_range(reader, 0, 7, part, NULL), LAC_OK);
  assert_memory_equal(part, content, 7);
  laci_reader_close(reader);
}

static void a_parked_one_has_to_be_the_same_file(void **state) {
  (void)state;
  lac_error err = {0};
  char part[8];
  laci_reader *reader = open_file("f", 7);
  laci_reader_close_descriptor(reader);
  assert_int_equal(laci_reader_copy_range(reader, 0, 7, part, &err), LAC_OK);
  assert_memory_equal(part, content, 7);
  write_bytes(in_folder(&dir, "other"), content, 7);
  assert_int_equal(rename(in_folder(&dir, "other"), in_folder(&dir, "f")), 0);
  assert_int_equal(laci_reader_copy_range(reader, 0, 7, part, &err), LAC_IO);
  expect_text(&err, "f", "was replaced by another file meanwhile");
  assert_int_equal(unlink(in_folder(&dir, "f")), 0);
  assert_int_equal(laci_reader_copy_range(reader, 0, 7, part, &err), LAC_NOT_FOUND);
  laci_reader_close(reader);
}

static void what_is_materialised_stays(void **state) {
  (void)state;
  lac_error err = {0};
  char part[8] = {0};
  laci_reader *reader = open_file("f", 7);
  const uint8_t *bytes = laci_reader_bytes(reader);
  laci_memory_fail_from(1);
  assert_int_equal(laci_reader_materialise_range(reader, 0, 7, &err), LAC_NO_MEMORY);
  laci_memory_fail_from(0);
  assert_int_equal(laci_reader_materialise_range(reader, 0, 7, &err), LAC_OK);
  assert_int_equal(truncate(in_folder(&dir, "f"), 0), 0);
  laci_reader_release_loaded(reader); /* is none: nothing could bring the bytes back */
  assert_memory_equal(bytes, content, 7);
  assert_int_equal(laci_reader_copy_range(reader, 3, 4, part, &err), LAC_OK);
  assert_memory_equal(part, content + 3, 4);
  assert_int_equal(laci_reader_materialise_range(reader, 0, 7, &err), LAC_OK);
  laci_reader_close(reader);
}

static void a_materialised_part_stays_and_the_rest_may_not(void **state) {
  (void)state;
  lac_error err = {0};
  uint8_t part[8];
  laci_reader *reader = open_file("long", LONG);
  assert_int_equal(laci_reader_materialise_range(reader, 100000, 8, &err), LAC_OK);
  assert_int_equal(truncate(in_folder(&dir, "long"), 10), 0);
  assert_int_equal(laci_reader_copy_range(reader, 100000, 8, part, &err), LAC_OK);
  assert_memory_equal(part, content + 100000, 8);
  assert_int_equal(laci_reader_copy_range(reader, 200000, 8, part, &err), LAC_IO);
  expect_text(&err, "long", "was 300000 bytes long, and was cut to 10 meanwhile");
  laci_reader_close(reader);
}

/** True where reading the byte ends a process. */
static bool is_out_of_reach(const uint8_t *byte) {
  int status = 0;
  pid_t child = fork();
  if (child == 0) {
    (void)signal(SIGSEGV, SIG_DFL);
    _exit(*(const volatile uint8_t *)byte == 0 ? 0 : 1);
  }
  assert_true(child > 0 && waitpid(child, &status, 0) == child);
  return !WIFEXITED(status);
}

static void what_was_not_brought_cannot_be_read_by_mistake(void **state) {
  (void)state;
  laci_reader *reader = open_file("long", LONG);
  const uint8_t *bytes = laci_reader_bytes(reader);
  assert_true(is_out_of_reach(bytes));
  assert_int_equal(laci_reader_load_range(reader, 0, 100, NULL), LAC_OK);
  assert_false(is_out_of_reach(bytes));
  laci_reader_release_loaded(reader);
  assert_true(is_out_of_reach(bytes));
  assert_int_equal(laci_reader_load_range(reader, 0, 100, NULL), LAC_OK);
  assert_memory_equal(bytes, content, 100);
  laci_reader_close(reader);
}

/** As many bytes, and a time as before: only the content tells. */
static void a_watched_file_has_to_stay_what_it_was(void **state) {
  (void)state;
  lac_error err = {0};
  uint8_t part[16];
  struct stat before;
  laci_reader *reader = open_file("long", LONG);
  assert_int_equal(laci_reader_watch_for_changes(reader, &err), LAC_OK);
  assert_int_equal(laci_reader_copy_range(reader, 70000, 16, part, &err), LAC_OK);
  int fd = open(in_folder(&dir, "long"), O_WRONLY);
  assert_int_equal(fstat(fd, &before), 0);
  assert_int_equal(pwrite(fd, "!", 1, 70002), 1);
  assert_int_equal(futimens(fd, (struct timespec[]){before.st_atim, before.st_mtim}), 0);
  assert_int_equal(close(fd), 0);
  assert_int_equal(laci_reader_copy_range(reader, 0, 16, part, &err), LAC_OK); /* another block */
  assert_int_equal(laci_reader_copy_range(reader, 70008, 8, part, &err), LAC_IO);
  expect_text(&err, "long", "was changed meanwhile");
  laci_reader_close(reader);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reads_regular_files_only),
      cmocka_unit_test(parts_are_parts_of_the_whole),
      cmocka_unit_test(a_file_that_is_cut_is_an_error_with_its_sizes),
      cmocka_unit_test(a_file_that_is_written_again_is_an_error),
      cmocka_unit_test(a_file_that_another_replaces_is_read_to_its_end),
      cmocka_unit_test(a_parked_one_has_to_be_the_same_file),
      cmocka_unit_test(what_is_materialised_stays),
      cmocka_unit_test(a_materialised_part_stays_and_the_rest_may_not),
      cmocka_unit_test(what_was_not_brought_cannot_be_read_by_mistake),
      cmocka_unit_test(a_watched_file_has_to_stay_what_it_was),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
