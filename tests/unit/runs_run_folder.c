/* SPDX-License-Identifier: Apache-2.0
 * Which folders are a training run's, which files are, and that no link is followed there. */
#include "onnx_build.h"

#include "base/error.h"
#include "base/folder.h"
#include "runs/run_folder.h"
#include "graph/graph.h"

#include <fcntl.h>
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

static void put(const char *name) { write_bytes(in_folder(&dir, name), "x", 1); }

static void a_folder_is_a_runs_or_empty_or_refused(void **state) {
  (void)state;
  lac_error err = {0};
  assert_int_equal(laci_run_folder_check_usable(dir.path, &err), LAC_OK);
  assert_int_equal(laci_run_folder_check_usable(in_folder(&dir, "none"), &err), LAC_OK);
  put(".lacuna-0123456789abcdef.tmp"); /* ours */
  assert_int_equal(laci_run_folder_check_usable(dir.path, &err), LAC_OK);
  put("log.jsonl");
  put("curves.svg");
  assert_int_equal(laci_run_folder_check_usable(dir.path, &err), LAC_EXISTS);
  assert_non_null(strstr(err.text, ": it holds curves.svg and no run.json"));
  put("run.json");
  assert_int_equal(laci_run_folder_check_usable(dir.path, &err), LAC_OK);
  assert_int_equal(unlink(in_folder(&dir, "run.json")), 0);
  put("checkpoint-000000000001.lac"); /* of before run.json */
  assert_int_equal(laci_run_folder_check_usable(dir.path, &err), LAC_OK);
  assert_int_equal(laci_run_folder_check_usable(in_folder(&dir, "log.jsonl"), &err), LAC_IO);
  assert_int_equal(unlink(in_folder(&dir, "log.jsonl")), 0);
  assert_int_equal(symlink("nowhere", in_folder(&dir, "log.jsonl")), 0);
  assert_int_equal(laci_run_folder_check_usable(dir.path, &err), LAC_BAD_FILE);
  assert_non_null(strstr(err.text, "/log.jsonl: it is a link"));
  assert_int_equal(unlink(in_folder(&dir, "log.jsonl")), 0);
  assert_int_equal(mkfifo(in_folder(&dir, "log.jsonl"), 0600), 0);
  assert_int_equal(laci_run_folder_check_usable(dir.path, &err), LAC_BAD_FILE);
  assert_non_null(strstr(err.text, "/log.jsonl: not a regular file"));
  assert_int_equal(unlink(in_folder(&dir, "log.jsonl")), 0);
}

static void files_of_a_run_are_known_by_place_and_by_what_they_are(void **state) {
  (void)state;
  static const struct {
    const char *path;
    bool written;
  } cases[] = {{"run/log.jsonl", true},
               {"run/run.json", true},
               {"run/order.json", true},
               {"run/curves.svg", true},
               {"run/checkpoint-000000000001.lac", true},
               {"run/events.out.tfevents.12.lacuna", true},
               {"run/best/checkpoint-000000000001.lac", true},
               {"run/../run/./log.jsonl", true},
               {"link", true},         /* leads to run/log.jsonl */
               {"hard", true},         /* is the same file */
               {"by/log.jsonl", true}, /* by is a link to the folder */
               {"run/model.onnx", false},
               {"run/sub/log.jsonl", false},
               {"run/.log.jsonl", false},
               {"log.jsonl", false},
               {"runner/log.jsonl", false},
               {"nowhere/log.jsonl", false}};
  assert_int_equal(mkdir(in_folder(&dir, "run"), 0777), 0);
  assert_int_equal(mkdir(in_folder(&dir, "run/best"), 0777), 0);
  assert_int_equal(mkdir(in_folder(&dir, "run/sub"), 0777), 0);
  assert_int_equal(mkdir(in_folder(&dir, "runner"), 0777), 0);
  put("run/log.jsonl");
  assert_int_equal(symlink("run/log.jsonl", in_folder(&dir, "link")), 0);
  assert_int_equal(link(in_folder(&dir, "run/log.jsonl"), in_folder(&dir, "hard")), 0);
  assert_int_equal(symlink("run", in_folder(&dir, "by")), 0);
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    bool written = laci_run_may_write_path(in_folder(&dir, "run"), in_folder(&dir, cases[k].path));
    if (written != cases[k].written) fail_msg("%s", cases[k].path);
  }
  assert_false(laci_run_may_write_path(in_folder(&dir, "none"), in_folder(&dir, "link")));
}

static void a_link_is_not_followed_and_a_pipe_not_waited_for(void **state) {
  (void)state;
  lac_error err = {0};
  int in, fd;
  assert_int_equal(laci_folder_enter(in_folder(&dir, "none"), &in, &err), LAC_NOT_FOUND);
  assert_int_equal(laci_folder_enter(dir.path, &in, &err), LAC_OK);
  put("target");
  assert_int_equal(symlink("target", in_folder(&dir, "link")), 0);
  assert_int_equal(mkfifo(in_folder(&dir, "pipe"), 0666), 0);
  const int flags = O_RDWR | O_CREAT | O_TRUNC;
  assert_int_equal(laci_folder_open_file(in, "link", "d/link", flags, &fd, &err), LAC_BAD_FILE);
  assert_string_equal(err.text, "d/link: it is a link, which is not followed");
  assert_int_equal(fd, -1);
  assert_int_equal(laci_folder_open_file(in, "pipe", "d/pipe", O_RDWR, &fd, &err), LAC_BAD_FILE);
  assert_int_equal(laci_folder_open_file(in, "none", "d/none", O_RDWR, &fd, &err), LAC_NOT_FOUND);
  assert_int_equal(laci_folder_open_file(in, "new", "d/new", flags, &fd, &err), LAC_OK);
  (void)close(fd);
  (void)close(in);
  size_t n;
  laci_free(read_bytes(in_folder(&dir, "target"), &n));
  assert_int_equal(n, 1);
}

static void a_failure_is_told_by_another_name(void **state) {
  (void)state;
  lac_error err = {0};
  (void)laci_fail(&err, LAC_IO, "d/.tmp/a: not d/.tmp/b");
  laci_error_replace_text(&err, "d/.tmp/", "d/");
  assert_string_equal(err.text, "d/a: not d/b");
  laci_error_replace_text(&err, "none", "x");
  assert_string_equal(err.text, "d/a: not d/b");
  char longer[sizeof err.text + 8];
  memset(longer, 'y', sizeof longer - 1);
  longer[sizeof longer - 1] = 0;
  laci_error_replace_text(&err, "d/", longer);
  assert_int_equal(strlen(err.text), sizeof err.text - 1);
  laci_error_replace_text(NULL, "a", "b");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_folder_is_a_runs_or_empty_or_refused, make_folder,
                                      remove_folder),
      cmocka_unit_test_setup_teardown(files_of_a_run_are_known_by_place_and_by_what_they_are,
                                      make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(a_link_is_not_followed_and_a_pipe_not_waited_for, make_folder,
                                      remove_folder),
      cmocka_unit_test(a_failure_is_told_by_another_name),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
