/* SPDX-License-Identifier: Apache-2.0
 * Runs tests in a child process in which no memory can be made executable, as under seccomp or
 * SELinux. */
#ifndef TESTS_SUPPORT_FORBID_H
#define TESTS_SUPPORT_FORBID_H

#include <stdbool.h>
#include <unistd.h>
#include <sys/wait.h>

#if defined(__x86_64__) && defined(__linux__)
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

enum { NOTHING_FORBIDDEN = 2 };

#if defined(__x86_64__) && defined(__linux__)
/* Makes mprotect and mmap with PROT_EXEC fail with EACCES from now on, as SELinux does. */
static bool forbid_execution(void) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}
#else
static bool forbid_execution(void) { return false; }
#endif

/* Runs a function in a child process and expects its result to be 0; NOTHING_FORBIDDEN skips the
 * test. */
static void expect_of_child(int (*run)(void)) {
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) _exit(run());
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  if (WEXITSTATUS(status) == NOTHING_FORBIDDEN) {
    print_message("this system lets nothing be forbidden\n");
    skip();
  }
  assert_int_equal(WEXITSTATUS(status), 0);
}

#endif
