/* SPDX-License-Identifier: Apache-2.0
 * Atomic writing of files, and hashes. */
#include "onnx_build.h"

#include "base/hash.h"
#include "base/temporary.h"
#include "base/reader.h"
#include "base/writer.h"
#include "graph/graph.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

static folder dir;

static int make_folder(void **state) {
  (void)state;
  folder_make(&dir);
  return 0;
}

static int remove_folder(void **state) {
  (void)state;
  folder_remove(&dir);
  return 0;
}

static void expect_content(const char *name, const char *text) {
  size_t n;
  uint8_t *bytes = read_bytes(in_folder(&dir, name), &n);
  assert_int_equal(n, strlen(text));
  assert_memory_equal(bytes, text, n);
  laci_free(bytes);
}

static void reads_texts_up_to_a_limit(void **state) {
  (void)state;
  char *text = NULL;
  lac_error err = {0};
  write_bytes(in_folder(&dir, "f"), "text", 4);
  assert_int_equal(laci_file_read_text(in_folder(&dir, "f"), 4, &text, &err), LAC_OK);
  assert_string_equal(text, "text");
  laci_free(text);
  assert_int_equal(laci_file_read_text(in_folder(&dir, "f"), 3, &text, &err), LAC_BAD_FILE);
  assert_null(text);
  write_bytes(in_folder(&dir, "f"), "te\0t", 4);
  assert_int_equal(laci_file_read_text(in_folder(&dir, "f"), 4, &text, &err), LAC_BAD_FILE);
  assert_int_equal(laci_file_read_text(in_folder(&dir, "none"), 4, &text, &err), LAC_NOT_FOUND);
  assert_int_equal(laci_file_read_text(dir.path, 4, &text, &err), LAC_IO);
  assert_int_equal(laci_file_read_text("/dev/zero", 1 << 20, &text, &err), LAC_BAD_FILE);
  size_t n = 300000;
  char *long_text = laci_alloc(n + 1, 1);
  memset(long_text, 'x', n);
  write_bytes(in_folder(&dir, "f"), long_text, n);
  assert_int_equal(laci_file_read_text(in_folder(&dir, "f"), n, &text, &err), LAC_OK);
  assert_string_equal(text, long_text);
  laci_free(text);
  laci_free(long_text);
}

static void a_pipe_without_a_writer_is_refused(void **state) {
  (void)state;
  char *text = NULL;
  lac_error err = {0};
  const char *path = in_folder(&dir, "text-pipe");
  assert_int_equal(mkfifo(path, 0600), 0);
  assert_int_equal(laci_file_read_text(path, 4, &text, &err), LAC_BAD_FILE);
  assert_non_null(strstr(err.text, "text-pipe: a pipe that nobody writes to"));
  assert_int_equal(unlink(path), 0);
}

static void a_pipe_is_read_to_its_end(void **state) {
  (void)state;
  char *text = NULL, path[32];
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  assert_int_equal(write(ends[1], "pipe", 4), 4);
  (void)close(ends[1]);
  (void)snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
  assert_int_equal(laci_file_read_text(path, 4, &text, NULL), LAC_OK);
  assert_string_equal(text, "pipe");
  laci_free(text);
  (void)close(ends[0]);
}

static void a_file_appears_only_when_it_is_whole(void **state) {
  (void)state;
  laci_writer *writer = NULL;
  laci_write_options options = {0};
  lac_error err = {0};
  const char *path = in_folder(&dir, "whole");
  int before = count_files(&dir);
  assert_int_equal(laci_writer_open(path, &options, &writer, &err), LAC_OK);
  assert_int_equal(laci_writer_append(writer, "ab", 2, &err), LAC_OK);
  assert_int_equal(laci_writer_append(writer, "", 0, &err), LAC_OK);
  assert_int_equal(access(path, F_OK), -1);
  assert_int_equal(laci_writer_finish(writer, &err), LAC_OK);
  assert_int_equal(access(path, F_OK), -1);
  assert_int_equal(count_files(&dir), before + 1);
  assert_int_equal(laci_writer_commit(writer, &err), LAC_OK);
  laci_writer_destroy(writer);
  expect_content("whole", "ab");
  assert_int_equal(count_files(&dir), before + 1);
  struct stat info;
  mode_t mask = umask(0);
  (void)umask(mask);
  assert_int_equal(stat(path, &info), 0);
  assert_int_equal(info.st_mode & 0777, 0666 & ~mask);
}

static void an_abandoned_file_leaves_nothing(void **state) {
  (void)state;
  laci_write_options options = {0};
  lac_error err = {0};
  int before = count_files(&dir);
  for (int finished = 0; finished < 2; finished++) {
    laci_writer *writer = NULL;
    assert_int_equal(laci_writer_open(in_folder(&dir, "gone"), &options, &writer, &err), LAC_OK);
    if (finished) assert_int_equal(laci_writer_finish(writer, &err), LAC_OK);
    laci_writer_destroy(writer);
    assert_int_equal(count_files(&dir), before);
  }
  laci_writer_destroy(NULL);
}

/* More writers than can be noted; what is removed is never what has its name. */
static void the_end_of_the_process_leaves_nothing_half_written(void **state) {
  (void)state;
  enum { WRITERS = 80, NOTED = 60 };
  laci_writer *writers[WRITERS];
  const laci_write_options options = {0};
  char name[16];
  struct stat info;
  assert_int_equal(mkdir(in_folder(&dir, "made"), 0777), 0);
  int made = laci_temporary_register(in_folder(&dir, "made"));
  for (int at = 0; at < NOTED; at++) {
    snprintf(name, sizeof name, "made/w%d", at);
    assert_int_equal(laci_writer_open(in_folder(&dir, name), &options, &writers[at], NULL), LAC_OK);
  }
  laci_temporary_remove_registered();
  assert_int_equal(stat(in_folder(&dir, "made"), &info), -1); /* empty, so it went too */
  laci_temporary_unregister(made);
  for (int at = 0; at < NOTED; at++) laci_writer_destroy(writers[at]);
  for (int at = 0; at < WRITERS; at++) {
    snprintf(name, sizeof name, "w%d", at);
    assert_int_equal(laci_writer_open(in_folder(&dir, name), &options, &writers[at], NULL), LAC_OK);
    assert_int_equal(laci_writer_append(writers[at], "whole", 5, NULL), LAC_OK);
    assert_int_equal(laci_writer_finish(writers[at], NULL), LAC_OK);
    assert_int_equal(laci_writer_commit(writers[at], NULL), LAC_OK);
  }
  laci_temporary_remove_registered();
  for (int at = 0; at < WRITERS; at++) {
    snprintf(name, sizeof name, "w%d", at);
    expect_content(name, "whole");
    laci_writer_destroy(writers[at]);
    assert_int_equal(unlink(in_folder(&dir, name)), 0);
  }
}

static void nothing_is_replaced_without_force(void **state) {
  (void)state;
  lac_error err = {0};
  laci_writer *writer = NULL;
  laci_write_options options = {0};
  assert_int_equal(laci_file_write(in_folder(&dir, "g"), "old", 3, false, &err), LAC_OK);
  assert_int_equal(laci_file_write(in_folder(&dir, "g"), "new", 3, false, &err), LAC_EXISTS);
  expect_content("g", "old");
  assert_int_equal(laci_file_write(in_folder(&dir, "g"), "new", 3, true, &err), LAC_OK);
  expect_content("g", "new");
  /* somebody takes the name between opening and committing */
  assert_int_equal(laci_writer_open(in_folder(&dir, "race"), &options, &writer, &err), LAC_OK);
  assert_int_equal(laci_writer_append(writer, "mine", 4, &err), LAC_OK);
  assert_int_equal(laci_writer_finish(writer, &err), LAC_OK);
  write_bytes(in_folder(&dir, "race"), "theirs", 6);
  assert_int_equal(laci_writer_commit(writer, &err), LAC_EXISTS);
  laci_writer_destroy(writer);
  expect_content("race", "theirs");
}

static void inputs_links_and_devices_are_never_replaced(void **state) {
  (void)state;
  lac_error err = {0};
  laci_writer *writer = NULL;
  laci_file_bytes map;
  write_bytes(in_folder(&dir, "input"), "in", 2);
  assert_int_equal(symlink("input", in_folder(&dir, "link")), 0);
  assert_int_equal(symlink("nowhere", in_folder(&dir, "dangling")), 0);
  assert_int_equal(laci_file_bytes_read(in_folder(&dir, "input"), &map, &err), LAC_OK);
  laci_write_options options = {.force = true, .keep = &map.id, .n_keep = 1};
  static const char *const names[] = {"input", "link", "../."};
  for (size_t at = 0; at < 3; at++) {
    lac_status st = laci_writer_open(in_folder(&dir, names[at]), &options, &writer, &err);
    assert_int_equal(st, LAC_BAD_ARGUMENT);
    assert_null(writer);
  }
  laci_file_bytes_clear(&map);
  assert_int_equal(laci_file_write("/dev/null", "x", 1, true, &err), LAC_BAD_ARGUMENT);
  assert_int_equal(laci_file_write("", "x", 1, true, &err), LAC_BAD_ARGUMENT);
  assert_int_equal(laci_file_write(in_folder(&dir, "dangling"), "x", 1, false, &err), LAC_EXISTS);
  assert_int_equal(laci_file_write(in_folder(&dir, "no/file"), "x", 1, false, &err), LAC_NOT_FOUND);
  assert_non_null(strstr(err.text, "no/file: cannot create"));
}

static void large_files_are_written_whole(void **state) {
  (void)state;
  lac_error err = {0};
  laci_writer *writer = NULL;
  laci_write_options options = {0};
  size_t n = (5u << 20) + 3;
  uint8_t *bytes = laci_alloc(n, 1);
  for (size_t at = 0; at < n; at++) bytes[at] = (uint8_t)(at * 31 + (at >> 9));
  assert_int_equal(laci_writer_open(in_folder(&dir, "large"), &options, &writer, &err), LAC_OK);
  size_t parts[] = {1, 1000, (1 << 20) - 1001, 1, 3 << 20, (1 << 20) + 2};
  size_t at = 0;
  for (size_t part = 0; part < sizeof parts / sizeof *parts; part++) {
    assert_int_equal(laci_writer_append(writer, bytes + at, parts[part], &err), LAC_OK);
    at += parts[part];
  }
  assert_int_equal(at, n);
  assert_int_equal(laci_writer_finish(writer, &err), LAC_OK);
  assert_int_equal(laci_writer_commit(writer, &err), LAC_OK);
  laci_writer_destroy(writer);
  size_t n_read;
  uint8_t *read = read_bytes(in_folder(&dir, "large"), &n_read);
  assert_int_equal(n_read, n);
  assert_memory_equal(read, bytes, n);
  laci_free(read);
  laci_free(bytes);
}

/** A limit on the size of files stands for a full disk. */
static void a_write_that_fails_leaves_nothing(void **state) {
  (void)state;
  lac_error err = {0};
  struct rlimit old, small;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
  small = old;
  small.rlim_cur = 100000;
  uint8_t *bytes = laci_alloc(1 << 22, 1);
  int before = count_files(&dir);
  (void)signal(SIGXFSZ, SIG_IGN);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
  lac_status st = laci_file_write(in_folder(&dir, "full"), bytes, 1 << 22, false, &err);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
  assert_int_equal(st, LAC_IO);
  assert_non_null(strstr(err.text, "full: cannot write: "));
  assert_int_equal(count_files(&dir), before);
  laci_free(bytes);
}

static void folder_part_of_a_path(void **state) {
  (void)state;
  assert_int_equal(laci_path_folder_length("name"), 0);
  assert_int_equal(laci_path_folder_length("/name"), 1);
  assert_int_equal(laci_path_folder_length("a/name"), 1);
  assert_int_equal(laci_path_folder_length("/a/b/name"), 4);
}

static void hashes_depend_on_bytes_and_seed_only(void **state) {
  (void)state;
  char text[33];
  assert_int_equal(laci_hash64("abc", 3, 0), UINT64_C(0x78af5f94892f3950));
  assert_int_not_equal(laci_hash64("abc", 3, 0), laci_hash64("abc", 3, 1));
  assert_string_equal(laci_hash128_text(laci_hash128_of("", 0, 0), text),
                      "99aa06d3014798d86001c324468d497f");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reads_texts_up_to_a_limit),
      cmocka_unit_test(a_pipe_without_a_writer_is_refused),
      cmocka_unit_test(a_pipe_is_read_to_its_end),
      cmocka_unit_test(a_file_appears_only_when_it_is_whole),
      cmocka_unit_test(an_abandoned_file_leaves_nothing),
      cmocka_unit_test(the_end_of_the_process_leaves_nothing_half_written),
      cmocka_unit_test(nothing_is_replaced_without_force),
      cmocka_unit_test(inputs_links_and_devices_are_never_replaced),
      cmocka_unit_test(large_files_are_written_whole),
      cmocka_unit_test(a_write_that_fails_leaves_nothing),
      cmocka_unit_test(folder_part_of_a_path),
      cmocka_unit_test(hashes_depend_on_bytes_and_seed_only),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
