/* SPDX-License-Identifier: Apache-2.0
 * Runs a helper program: it gets input on its standard input and answers on its standard output,
 * within a time limit. However it ends, the caller can continue.
 *
 * The process is started by posix_spawn, which does not copy this process's memory and runs none of
 * its code in the child, where other threads' locks could be held. Signal settings of the host
 * program are not changed: SIGCHLD may be handled or ignored (the result is then
 * LACI_CHILD_UNKNOWN), and writing to a program that has ended raises no SIGPIPE. */
#ifndef LACI_BASE_CHILD_H
#define LACI_BASE_CHILD_H

#include <stddef.h>

#include "lacuna/status.h"

typedef struct laci_child_job {
  char *const *command; /* path of the program, then its arguments, then NULL */
  const void *input;
  size_t input_bytes;
  double seconds;    /* time limit in seconds, > 0 */
  size_t most_bytes; /* limit of the bytes that the program writes to standard output */
} laci_child_job;

typedef enum laci_child_end {
  LACI_CHILD_EXITED,   /* the program ended by itself; laci_child_result.code is its exit status */
  LACI_CHILD_KILLED,   /* a signal ended the program; laci_child_result.code is the signal's
                          number */
  LACI_CHILD_LATE,     /* the program exceeded the time limit and was killed */
  LACI_CHILD_TOO_MUCH, /* the program wrote more than most_bytes to standard output and was
                          killed */
  /* the program ended, but the host program of this library has collected its exit status
   * already */
  LACI_CHILD_UNKNOWN
} laci_child_end;

typedef struct laci_child_result {
  laci_child_end end;
  int code;
  char *output; /* what the program wrote to standard output, zero-terminated; the caller frees it
                   (laci_free); NULL where the call failed */
  size_t output_bytes;
  char last_message
      [256]; /* last line that the program wrote to standard error, printable; "": it wrote
                     none */
} laci_child_result;

/** Runs the program and waits for its end. Fails LAC_NOT_FOUND and LAC_IO if it cannot be started,
 * and LAC_NO_MEMORY. Fails LAC_INTERRUPTED if SIGINT ended the program, or if lac_interrupt is
 * called during this call; an interrupt that was requested before is left to the caller. After a
 * failure the program does not run any more. Callable from any thread. */
LAC_MUST_CHECK lac_status laci_child_run(const laci_child_job *job, laci_child_result *result,
                                         lac_error *err);

#endif
