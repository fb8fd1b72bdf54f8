/* SPDX-License-Identifier: Apache-2.0
 * A program that works for us: whatever it does, the caller goes on, knows how it ended, and has no
 * process, descriptor or signal left of it. The programs are lines for /bin/sh. */
#include "base/child.h"

#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "lacuna/log.h"

enum { LARGE = 4 << 20 };

static int open_descriptors(void) {
  DIR *folder = opendir("/proc/self/fd");
  int n = 0;
  assert_non_null(folder);
  while (readdir(folder)) n++;
  (void)closedir(folder);
  return n;
}

static void nobody_is_left(int descriptors_before) {
  assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
  assert_int_equal(errno, ECHILD);
  assert_int_equal(open_descriptors(), descriptors_before);
}

static lac_status run_shell(char *line, const void *input, size_t n, double seconds,
                            laci_child_result *result, lac_error *err) {
  char *const command[] = {"/bin/sh", "-c", line, NULL};
  laci_child_job job = {command, input, n, seconds, 2 * LARGE};
  int before = open_descriptors();
  lac_status st = laci_child_run(&job, result, err);
  nobody_is_left(before);
  if (st) assert_null(result->output);
  return st;
}

/* For programs that nothing ends before. */
static laci_child_result run(char *line) {
  laci_child_result result;
  lac_error err = {0};
  if (run_shell(line, "abc", 3, 600, &result, &err)) fail_msg("%s", err.text);
  return result;
}

static void its_answer_is_whole(void **state) {
  (void)state;
  char *large = malloc(LARGE);
  laci_child_result result;
  assert_non_null(large);
  for (size_t at = 0; at < LARGE; at++) large[at] = (char)(at * 7 + at / 251);
  assert_int_equal(run_shell("cat", large, LARGE, 600, &result, NULL), LAC_OK);
  assert_int_equal(result.end, LACI_CHILD_EXITED);
  assert_int_equal(result.code, 0);
  assert_int_equal(result.output_bytes, LARGE);
  assert_memory_equal(result.output, large, LARGE);
  assert_int_equal(result.output[LARGE], 0);
  laci_free(result.output);
  /* One that never reads is no SIGPIPE of ours. */
  assert_int_equal(run_shell("echo done", large, LARGE, 600, &result, NULL), LAC_OK);
  assert_string_equal(result.output, "done\n");
  laci_free(result.output);
  free(large);
}

static void how_it_ended_is_known(void **state) {
  (void)state;
  static const struct {
    char *line;
    laci_child_end end;
    int code;
    const char *said, *output;
  } cases[] = {
      {"cat", LACI_CHILD_EXITED, 0, "", "abc"},
      {"cat; exit 7", LACI_CHILD_EXITED, 7, "", "abc"},
      {"echo first >&2; echo 'the last\tone' >&2; echo >&2; exit 1", LACI_CHILD_EXITED, 1,
       "the last?one", ""},
      {"kill -SEGV $$", LACI_CHILD_KILLED, SIGSEGV, "", ""},
      {"echo oh >&2; kill -KILL $$", LACI_CHILD_KILLED, SIGKILL, "oh", ""},
      {"yes 0123456789 | head -n 10000 >&2; echo end >&2", LACI_CHILD_EXITED, 0, "end", ""},
      {"/no/such/program 2> /dev/null", LACI_CHILD_EXITED, 127, "", ""},
  };
  for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
    laci_child_result result = run(cases[at].line);
    assert_int_equal(result.end, cases[at].end);
    assert_int_equal(result.code, cases[at].code);
    assert_string_equal(result.last_message, cases[at].said);
    assert_string_equal(result.output, cases[at].output);
    laci_free(result.output);
  }
}

static void one_that_hangs_is_ended(void **state) {
  (void)state;
  static char *const lines[] = {
      "exec sleep 1000",                                            /* silent */
      "exec sleep 1000 < /dev/null > /dev/null",                    /* one end open */
      "exec > /dev/null 2> /dev/null < /dev/null; exec sleep 1000", /* all closed, but it stays */
      "trap '' TERM INT; cat; exec sleep 1000"};
  for (size_t at = 0; at < sizeof lines / sizeof *lines; at++) {
    laci_child_result result;
    assert_int_equal(run_shell(lines[at], "abc", 3, 0.2, &result, NULL), LAC_OK);
    assert_int_equal(result.end, LACI_CHILD_LATE);
    laci_free(result.output);
  }
  laci_child_result result;
  assert_int_equal(run_shell("yes", "", 0, 600, &result, NULL), LAC_OK);
  assert_int_equal(result.end, LACI_CHILD_TOO_MUCH);
  laci_free(result.output);
}

/* What a host program does with SIGCHLD is its own; the answer is whole all the same. */
static void a_host_that_ignores_its_children(void **state) {
  (void)state;
  struct sigaction ignore = {.sa_handler = SIG_IGN}, old, found;
  assert_int_equal(sigaction(SIGCHLD, &ignore, &old), 0);
  laci_child_result result = run("cat");
  assert_int_equal(result.end, LACI_CHILD_UNKNOWN);
  assert_string_equal(result.output, "abc");
  laci_free(result.output);
  assert_int_equal(run_shell("exec sleep 1000", "", 0, 0.2, &result, NULL), LAC_OK);
  assert_int_equal(result.end, LACI_CHILD_LATE);
  laci_free(result.output);
  assert_int_equal(sigaction(SIGCHLD, &old, &found), 0);
  assert_true(found.sa_handler == SIG_IGN);
}

static void its_signals_are_usual_ones(void **state) {
  (void)state;
  sigset_t all, old;
  (void)sigfillset(&all);
  assert_int_equal(sigprocmask(SIG_BLOCK, &all, &old), 0);
  void (*pipes)(int) = signal(SIGPIPE, SIG_IGN);
  laci_child_result result = run("grep -E 'SigBlk|SigIgn' /proc/self/status | sort");
  assert_int_equal(sigprocmask(SIG_SETMASK, &old, NULL), 0);
  assert_true(signal(SIGPIPE, pipes) == SIG_IGN);
  unsigned long long blocked = 1, ignored = ~0ull;
  assert_int_equal(sscanf(result.output, "SigBlk: %llx SigIgn: %llx", &blocked, &ignored), 2);
  assert_true(blocked == 0);
  assert_true((ignored & 1ull << (SIGPIPE - 1)) == 0);
  laci_free(result.output);
}

static void on_signal(int signal) {
  (void)signal;
  lac_interrupt(true);
}

static void an_interruption_ends_it(void **state) {
  (void)state;
  laci_child_result result;
  lac_error err = {0};
  void (*old)(int) = signal(SIGUSR1, on_signal);
  assert_int_equal(run_shell("kill -USR1 $PPID; exec sleep 1000", "", 0, 600, &result, &err),
                   LAC_INTERRUPTED);
  /* It was asked for before: somebody else has obeyed, and this goes on. */
  assert_int_equal(run_shell("cat", "abc", 3, 600, &result, &err), LAC_OK);
  assert_string_equal(result.output, "abc");
  laci_free(result.output);
  lac_interrupt(false);
  /* Ctrl-C reaches all processes of a terminal. */
  assert_int_equal(run_shell("kill -INT $$", "", 0, 600, &result, &err), LAC_INTERRUPTED);
  (void)signal(SIGUSR1, old);
}

static void one_that_cannot_start_says_why(void **state) {
  (void)state;
  static const struct {
    char *program;
    const char *text;
    lac_status status;
  } cases[] = {{"/no/such/program", "/no/such/program: it could not be started: No such file",
                LAC_NOT_FOUND},
               {"/etc/passwd", "/etc/passwd: it could not be started: Permission denied", LAC_IO}};
  for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
    char *const command[] = {cases[at].program, NULL};
    laci_child_job job = {command, "", 0, 600, LARGE};
    laci_child_result result;
    lac_error err = {0};
    int before = open_descriptors();
    assert_int_equal(laci_child_run(&job, &result, &err), cases[at].status);
    assert_non_null(strstr(err.text, cases[at].text));
    nobody_is_left(before);
  }
}

static void without_memory_or_descriptors_it_fails(void **state) {
  (void)state;
  laci_child_result result;
  lac_error err = {0};
  laci_memory_fail_from(1);
  lac_status st = run_shell("cat", "abc", 3, 600, &result, &err);
  laci_memory_fail_from(0);
  assert_int_equal(st, LAC_NO_MEMORY);
  struct rlimit old, few;
  int failures = 0;
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
  for (rlim_t n = 3; n < 24; n++) {
    char *const command[] = {"/bin/sh", "-c", "cat", NULL};
    laci_child_job job = {command, "abc", 3, 600, LARGE};
    int before = open_descriptors();
    few = (struct rlimit){n, old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    st = laci_child_run(&job, &result, &err);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_true(st == LAC_OK || st == LAC_IO);
    failures += st == LAC_IO;
    nobody_is_left(before);
    laci_free(result.output);
  }
  assert_true(failures > 3);
}

/* A daemon has none of the three; the first descriptors it gets have their numbers. */
static void a_host_without_standard_streams(void **state) {
  (void)state;
  int kept[3];
  for (int fd = 0; fd < 3; fd++) {
    kept[fd] = dup(fd);
    assert_true(kept[fd] > 2);
  }
  for (int fd = 0; fd < 3; fd++) (void)close(fd);
  laci_child_result result;
  char *const command[] = {"/bin/sh", "-c", "cat; echo said >&2", NULL};
  laci_child_job job = {command, "abc", 3, 600, LARGE};
  lac_status st = laci_child_run(&job, &result, NULL);
  for (int fd = 0; fd < 3; fd++) {
    (void)dup2(kept[fd], fd);
    (void)close(kept[fd]);
  }
  assert_int_equal(st, LAC_OK);
  assert_string_equal(result.output, "abc");
  assert_string_equal(result.last_message, "said");
  laci_free(result.output);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(its_answer_is_whole),
      cmocka_unit_test(how_it_ended_is_known),
      cmocka_unit_test(one_that_hangs_is_ended),
      cmocka_unit_test(a_host_that_ignores_its_children),
      cmocka_unit_test(its_signals_are_usual_ones),
      cmocka_unit_test(an_interruption_ends_it),
      cmocka_unit_test(one_that_cannot_start_says_why),
      cmocka_unit_test(without_memory_or_descriptors_it_fails),
      cmocka_unit_test(a_host_without_standard_streams),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
