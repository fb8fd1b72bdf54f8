/* SPDX-License-Identifier: Apache-2.0
 * Files that appear together or not at all, and what dead processes leave. */
#include "onnx_build.h"

#include "base/file_set.h"
#include "base/temporary.h"
#include "base/writer.h"
#include "graph/graph.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

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

static void put(const char *name, const char *text) {
  write_bytes(in_folder(&dir, name), text, strlen(text));
}

static bool is_there(const char *name) {
  struct stat found;
  return lstat(in_folder(&dir, name), &found) == 0;
}

static lac_status write_file(const char *name, const char *text) {
  return laci_file_write(in_folder(&dir, name), text, strlen(text), true, NULL);
}

static void files_of_a_set_wait_for_its_end(void **state) {
  (void)state;
  laci_file_set outer, inner;
  put("b", "old b");
  laci_file_set_begin(&outer);
  assert_int_equal(write_file("a", "new a"), LAC_OK);
  laci_file_set_begin(&inner);
  assert_int_equal(write_file("b", "new b"), LAC_OK);
  assert_int_equal(laci_file_set_end(&inner, LAC_OK, NULL), LAC_OK);
  assert_false(is_there("a"));
  expect_content("b", "old b");
  assert_int_equal(laci_file_set_end(&outer, LAC_OK, NULL), LAC_OK);
  expect_content("a", "new a");
  expect_content("b", "new b");
  assert_int_equal(count_files(&dir), 2);
}

static void a_set_that_fails_leaves_what_was(void **state) {
  (void)state;
  laci_file_set outer, inner;
  put("b", "old b");
  laci_file_set_begin(&outer);
  assert_int_equal(laci_file_set_make_folder(in_folder(&dir, "made"), NULL), LAC_OK);
  assert_int_equal(write_file("made/a", "new a"), LAC_OK);
  laci_file_set_begin(&inner);
  assert_int_equal(write_file("c", "new c"), LAC_OK);
  assert_int_equal(laci_file_set_end(&inner, LAC_BAD_VALUE, NULL), LAC_BAD_VALUE);
  assert_int_equal(count_files(&dir), 2); /* b and the folder */
  assert_int_equal(write_file("b", "new b"), LAC_OK);
  assert_int_equal(laci_file_set_end(&outer, LAC_IO, NULL), LAC_IO);
  expect_content("b", "old b");
  assert_int_equal(count_files(&dir), 1);
}

/* The third name cannot be given: the first two are as they were, whatever was there. */
static void a_name_that_cannot_be_given_takes_all_back(void **state) {
  (void)state;
  static const char *const obstacles[] = {"a folder", "a file without force"};
  for (int k = 0; k < 2; k++) {
    lac_error err = {0};
    laci_file_set set;
    put("over", "old");
    laci_file_set_begin(&set);
    assert_int_equal(write_file("new", "1"), LAC_OK);
    assert_int_equal(write_file("over", "2"), LAC_OK);
    assert_int_equal(laci_file_write(in_folder(&dir, "third"), "3", 1, k == 0, NULL), LAC_OK);
    if (k == 0) assert_int_equal(mkdir(in_folder(&dir, "third"), 0777), 0);
    else put("third", "theirs");
    lac_status st = laci_file_set_end(&set, LAC_OK, &err);
    assert_int_equal(st, k == 0 ? LAC_IO : LAC_EXISTS);
    if (!strstr(err.text, "/third: ")) fail_msg("%s: %s", obstacles[k], err.text);
    assert_null(strstr(err.text, ".lacuna"));
    expect_content("over", "old");
    assert_false(is_there("new"));
    assert_int_equal(count_files(&dir), 2);
    if (k == 0) assert_int_equal(rmdir(in_folder(&dir, "third")), 0);
  }
}

static void a_link_that_is_replaced_comes_back_as_a_link(void **state) {
  (void)state;
  laci_file_set set;
  char target[16] = {0};
  put("target", "text");
  assert_int_equal(symlink("target", in_folder(&dir, "link")), 0);
  assert_int_equal(mkdir(in_folder(&dir, "z"), 0777), 0);
  laci_file_set_begin(&set);
  assert_int_equal(write_file("link", "new"), LAC_OK);
  put("from", "whole");
  assert_int_equal(
      laci_file_set_add_move(in_folder(&dir, "from"), in_folder(&dir, "z"), true, NULL), LAC_OK);
  assert_int_equal(laci_file_set_end(&set, LAC_OK, NULL), LAC_IO);
  assert_int_equal(readlink(in_folder(&dir, "link"), target, sizeof target - 1), 6);
  assert_string_equal(target, "target");
  expect_content("target", "text");
  assert_int_equal(count_files(&dir), 3);
}

static void files_that_are_read_back_have_their_names_at_once(void **state) {
  (void)state;
  laci_file_set outer, apart;
  laci_file_set_begin(&outer);
  laci_file_set_begin_separate(&apart);
  assert_int_equal(write_file("a", "now"), LAC_OK);
  assert_int_equal(laci_file_set_end(&apart, LAC_OK, NULL), LAC_OK);
  expect_content("a", "now");
  assert_int_equal(laci_file_set_end(&outer, LAC_IO, NULL), LAC_IO);
  expect_content("a", "now");
}

static void no_memory_for_the_set_leaves_nothing(void **state) {
  (void)state;
  lac_status st = LAC_NO_MEMORY;
  put("b", "old b");
  for (int at = 1; st == LAC_NO_MEMORY; at++) {
    laci_file_set set;
    laci_memory_fail_from(at);
    laci_file_set_begin(&set);
    st = write_file("a", "new a");
    if (!st) st = laci_file_set_hide_old_file(in_folder(&dir, "b"), NULL);
    if (!st) st = write_file("b", "new b");
    st = laci_file_set_end(&set, st, NULL);
    laci_memory_fail_from(0);
    if (!st) break;
    expect_content("b", "old b");
    assert_int_equal(count_files(&dir), 1);
  }
  assert_int_equal(st, LAC_OK);
  expect_content("a", "new a");
  expect_content("b", "new b");
  assert_int_equal(count_files(&dir), 2);
}

/* ---- What is there when the process is killed ---- */

/* A child that ends after every system call that changes the folder would need a tracer; one that
 * is killed with its files waiting does not. */
static pid_t leave_waiting(const char *name) {
  int ready[2];
  char byte;
  assert_int_equal(pipe(ready), 0);
  pid_t child = fork();
  if (child == 0) {
    laci_writer *writer = NULL;
    const laci_write_options options = {.force = true};
    lac_status st = laci_writer_open(in_folder(&dir, name), &options, &writer, NULL);
    if (!st) st = laci_writer_append(writer, "half", 4, NULL);
    if (!st) st = laci_writer_finish(writer, NULL);
    (void)!write(ready[1], st ? "x" : "o", 1);
    for (;;) (void)pause();
  }
  assert_true(child > 0);
  assert_int_equal(read(ready[0], &byte, 1), 1);
  assert_int_equal(byte, 'o');
  (void)close(ready[0]);
  (void)close(ready[1]);
  return child;
}

static void end_child(pid_t child) {
  assert_int_equal(kill(child, SIGKILL), 0);
  assert_int_equal(waitpid(child, NULL, 0), child);
}

static void the_next_writer_removes_what_the_dead_left_and_nothing_else(void **state) {
  (void)state;
  pid_t living = leave_waiting("a"), dead = leave_waiting("a"), other = leave_waiting("b");
  assert_int_equal(count_files(&dir), 3);
  end_child(dead);
  end_child(other);
  assert_int_equal(write_file("a", "whole"), LAC_OK);
  assert_int_equal(count_files(&dir), 3); /* a, the living writer's, and that of b */
  end_child(living);
  assert_int_equal(write_file("a", "again"), LAC_OK);
  assert_int_equal(count_files(&dir), 2);
  assert_int_equal(write_file("b", "b"), LAC_OK);
  assert_int_equal(count_files(&dir), 2);
  expect_content("a", "again");
}

static void folders_of_the_dead_go_with_what_is_in_them(void **state) {
  (void)state;
  char path[256], second[300];
  int lock = laci_temporary_create_folder(dir.path, path, sizeof path);
  assert_true(lock >= 0);
  (void)snprintf(second, sizeof second, "%s/inner", path);
  assert_int_equal(mkdir(second, 0777), 0);
  (void)snprintf(second, sizeof second, "%s/inner/file", path);
  write_bytes(second, "x", 1);
  int mine = laci_temporary_create_folder(dir.path, second, sizeof second);
  assert_true(mine >= 0);
  assert_int_equal(count_files(&dir), 2); /* the first one lives */
  laci_temporary_remove_folder(second, mine);
  (void)close(lock); /* as the end of its process would */
  put(".lacuna-0123456789abcdef.tmp", "dead");
  put(".lacuna-notes", "somebody's");
  mine = laci_temporary_create_folder(dir.path, second, sizeof second);
  assert_int_equal(count_files(&dir), 2);
  laci_temporary_remove_folder(second, mine);
  assert_int_equal(count_files(&dir), 1);
  assert_int_equal(laci_temporary_create_folder("no/such", path, sizeof path), -1);
}

/* Neither is a link followed, nor is what somebody else puts at a temporary name removed. */
static void links_at_temporary_names_are_left_alone(void **state) {
  (void)state;
  char temporary[LACI_TEMPORARY_NAME], again[LACI_TEMPORARY_NAME];
  int at = open(dir.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int fd = laci_temporary_create_file(at, "", "name", temporary);
  assert_true(fd >= 0);
  (void)close(fd);
  assert_int_equal(unlinkat(at, temporary, 0), 0);
  put("target", "text");
  assert_int_equal(symlinkat("target", at, temporary), 0);
  fd = laci_temporary_create_file(at, "", "name", again);
  assert_true(fd >= 0);
  assert_string_not_equal(temporary, again);
  assert_int_equal(write(fd, "x", 1), 1);
  expect_content("target", "text");
  assert_true(is_there(temporary));
  (void)close(fd);
  (void)close(at);
}

/* ---- A model and its data ---- */

static void a_second_name_lasts_as_long_as_the_set(void **state) {
  (void)state;
  for (int fails = 0; fails < 2; fails++) {
    laci_file_set set;
    laci_writer *writer = NULL;
    char *name = NULL;
    const laci_write_options options = {.force = true};
    laci_file_set_begin(&set);
    assert_int_equal(laci_writer_open(in_folder(&dir, "d"), &options, &writer, NULL), LAC_OK);
    assert_int_equal(laci_writer_append(writer, "data", 4, NULL), LAC_OK);
    assert_int_equal(laci_writer_finish(writer, NULL), LAC_OK);
    assert_int_equal(laci_writer_second_name(writer, &name, NULL), LAC_OK);
    assert_non_null(name);
    expect_content(name, "data");
    assert_int_equal(laci_writer_commit(writer, NULL), LAC_OK);
    laci_writer_destroy(writer);
    assert_int_equal(laci_file_set_end(&set, fails ? LAC_IO : LAC_OK, NULL),
                     fails ? LAC_IO : LAC_OK);
    assert_false(is_there(name));
    assert_int_equal(count_files(&dir), 1);
    laci_free(name);
  }
  expect_content("d", "data");
}

static void second_names_of_the_dead_go_last(void **state) {
  (void)state;
  laci_file_set set;
  laci_writer *writer = NULL;
  char *name = NULL, old[LACI_TEMPORARY_NAME];
  const laci_write_options options = {.force = true};
  laci_format_second_name("d", 0, old);
  put(old, "in use");
  laci_file_set_begin(&set);
  assert_int_equal(laci_writer_open(in_folder(&dir, "d"), &options, &writer, NULL), LAC_OK);
  assert_int_equal(laci_writer_finish(writer, NULL), LAC_OK);
  assert_int_equal(laci_writer_second_name(writer, &name, NULL), LAC_OK);
  assert_string_not_equal(name, old);
  assert_int_equal(laci_writer_commit(writer, NULL), LAC_OK);
  laci_writer_destroy(writer);
  expect_content(old, "in use");
  assert_int_equal(laci_file_set_end(&set, LAC_OK, NULL), LAC_OK);
  assert_false(is_there(old));
  assert_int_equal(count_files(&dir), 1);
  laci_free(name);
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)
      IN_FOLDER(files_of_a_set_wait_for_its_end),
      IN_FOLDER(a_set_that_fails_leaves_what_was),
      IN_FOLDER(a_name_that_cannot_be_given_takes_all_back),
      IN_FOLDER(a_link_that_is_replaced_comes_back_as_a_link),
      IN_FOLDER(files_that_are_read_back_have_their_names_at_once),
      IN_FOLDER(no_memory_for_the_set_leaves_nothing),
      IN_FOLDER(the_next_writer_removes_what_the_dead_left_and_nothing_else),
      IN_FOLDER(folders_of_the_dead_go_with_what_is_in_them),
      IN_FOLDER(links_at_temporary_names_are_left_alone),
      IN_FOLDER(a_second_name_lasts_as_long_as_the_set),
      IN_FOLDER(second_names_of_the_dead_go_last),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
