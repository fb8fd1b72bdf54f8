/* SPDX-License-Identifier: Apache-2.0
 * A program that works for us: it reads what we have on its standard input and answers on its
 * standard output, within a time limit. However it ends, the caller goes on.
 *
 * The process is started by posix_spawn, which needs no memory of its own and runs nothing of ours
 * in a copy of this process: other threads may hold any lock. The host program's signals are left
 * alone: SIGCHLD may be handled or ignored (then `end` is not known), and a program that ends
 * while we write to it is no SIGPIPE. */
#ifndef LACI_BASE_CHILD_H
#define LACI_BASE_CHILD_H

#include <stddef.h>

#include "lacuna/status.h"

typedef struct laci_child_job {
  char *const *command; /* path of the program, arguments, NULL */
  const void *input;
  size_t input_bytes;
  double seconds;    /* it may take; > 0 */
  size_t most_bytes; /* it may answer */
} laci_child_job;

typedef enum laci_child_end {
  LACI_CHILD_EXITED,   /* code: its status */
  LACI_CHILD_KILLED,   /* code: the signal */
  LACI_CHILD_LATE,     /* it took longer, and was ended */
  LACI_CHILD_TOO_MUCH, /* it answered more, and was ended */
  LACI_CHILD_UNKNOWN   /* it ended, and the host program took the status */
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
