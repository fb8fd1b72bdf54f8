/* SPDX-License-Identifier: Apache-2.0
 * Runs a helper program: it gets input on its standard input and answers on its standard output,
 * within a time limit. However it ends, the caller can continue.
 *
 * The process is started by posix_spawn, which does not copy this process's memory and runs none of
 * its code in the child, where other threads' locks could be held. Signal settings of the host
 * program are not changed: SIGCHLD may be handled or ignored (then `end` is not known), and writing
 * to a program that has ended raises no SIGPIPE. */
#ifndef LACI_BASE_CHILD_H
#define LACI_BASE_CHILD_H

#include <stddef.h>

#include "lacuna/status.h"

typedef struct laci_child_job {
  char *const *command; /* path of the program, arguments, NULL */
  const void *input;
  size_t input_bytes;
  double seconds;    /* time limit; > 0 */
  size_t most_bytes; /* limit of the answer's size */
} laci_child_job;

typedef enum laci_child_end {
  LACI_CHILD_EXITED,   /* code: its status */
  LACI_CHILD_KILLED,   /* code: the signal */
  LACI_CHILD_LATE,     /* it exceeded the time limit and was killed */
  LACI_CHILD_TOO_MUCH, /* it exceeded the answer's limit and was killed */
  LACI_CHILD_UNKNOWN   /* it ended, but the host program has collected its status */
} laci_child_end;

typedef struct laci_child_result {
  laci_child_end end;
  int code;
  char *output; /* zero-terminated, the caller's (laci_free); NULL where the call failed */
  size_t output_bytes;
  char said[256]; /* the last line of its standard error, printable; "": nothing */
} laci_child_result;

/** Runs the program and waits for it. Fails LAC_NOT_FOUND and LAC_IO where it cannot be started,
 * LAC_NO_MEMORY, LAC_INTERRUPTED at lac_interrupt from now on (one that was asked for before is
 * another owner's) and where SIGINT ended it; no process is left then. Any thread. */
LAC_MUST_CHECK lac_status laci_child_run(const laci_child_job *job, laci_child_result *result,
                                         lac_error *err);

#endif
