/* SPDX-License-Identifier: Apache-2.0
 * One loop of poll writes the program's input, reads its answer and its messages, and checks the
 * time limit and interruption. The program's standard input is a socket and not a pipe, since a
 * write to a socket can be told not to raise SIGPIPE. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* declares pipe2 */
#endif
#include "base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"

enum { LOOK_MS = 50, CHUNK_BYTES = 1 << 16, COMPLAINT_BYTES = 2048 };

/* The three standard streams of the program. */
typedef enum stream { STREAM_INPUT, STREAM_OUTPUT, STREAM_ERROR, N_STREAMS } stream;

typedef struct child {
  const laci_child_job *job;
  laci_child_result *result;
  int ours[N_STREAMS], its[N_STREAMS];
  pid_t pid;
  size_t sent, capacity;
  char complaint[COMPLAINT_BYTES]; /* the last bytes that the program wrote to standard error */
  size_t n_complaint;
  double deadline;
  bool was_interrupted; /* lac_interrupt was called before this job */
} child;

static void close_stream(int *fd) {
  if (*fd >= 0) (void)close(*fd);
  *fd = -1;
}

/* ---- Starting ---- */

/* Moves a descriptor above 0, 1 and 2. A host program may have closed its standard streams, so that
 * new descriptors get these numbers, which the child needs for its own streams. False: no
 * descriptor is left. */
static bool move_above_standard_streams(int *fd) {
  if (*fd > STDERR_FILENO) return true;
  int raised = fcntl(*fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (raised < 0) return false;
  (void)close(*fd);
  *fd = raised;
  return true;
}

static bool open_streams(child *c) {
  for (int at = 0; at < N_STREAMS; at++) {
    int pair[2];
    int failed = at == STREAM_INPUT ? socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)
                                    : pipe2(pair, O_CLOEXEC);
    if (failed) return false;
    c->ours[at] = pair[0]; /* for a pipe, pair[0] is the end for reading */
    c->its[at] = pair[1];
    if (!move_above_standard_streams(&c->ours[at]) || !move_above_standard_streams(&c->its[at]))
      return false;
    if (fcntl(c->ours[at], F_SETFL, O_NONBLOCK)) return false;
  }
  return true;
}

/* Makes the child handle some signals in the default manner, on which programs rely, and unblocks
 * all signals, since the host program may ignore or block them. */
static int set_child_signals(posix_spawnattr_t *attributes) {
  static const int usual[] = {SIGPIPE, SIGALRM, SIGCHLD, SIGXCPU, SIGXFSZ};
  sigset_t reset, none;
  (void)sigemptyset(&reset);
  (void)sigemptyset(&none);
  for (size_t at = 0; at < sizeof usual / sizeof *usual; at++) (void)sigaddset(&reset, usual[at]);
  int failed = posix_spawnattr_setsigdefault(attributes, &reset);
  if (!failed) failed = posix_spawnattr_setsigmask(attributes, &none);
  if (failed) return failed;
  return posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
}

static int spawn_child(child *c) {
  posix_spawn_file_actions_t streams;
  posix_spawnattr_t attributes;
  int failed = posix_spawn_file_actions_init(&streams);
  if (failed) return failed;
  failed = posix_spawnattr_init(&attributes);
  if (failed) {
    (void)posix_spawn_file_actions_destroy(&streams);
    return failed;
  }
  failed = set_child_signals(&attributes);
  for (int at = 0; at < N_STREAMS && !failed; at++) {
    /* All these descriptors are above 2, so that none is overwritten before its use. */
    failed = posix_spawn_file_actions_adddup2(&streams, c->its[at], at);
  }
  char *const *command = c->job->command;
  if (!failed) {
    failed = posix_spawn(&c->pid, command[0], &streams, &attributes, command, environ);
  }
  (void)posix_spawnattr_destroy(&attributes);
  (void)posix_spawn_file_actions_destroy(&streams);
  return failed;
}

static lac_status start_child(child *c, lac_error *err) {
  const char *program = c->job->command[0];
  if (!open_streams(c)) {
    return laci_fail(err, LAC_IO, "%s: no pipe to it: %s", program, strerror(errno));
  }
  int failed = spawn_child(c);
  if (!failed) return LAC_OK;
  c->pid = -1;
  return laci_fail(err, failed == ENOENT ? LAC_NOT_FOUND : LAC_IO,
                   "%s: it could not be started: %s", program, strerror(failed));
}

/* ---- Exchanging data with the program ---- */

static void send_input(child *c) {
  const char *rest = (const char *)c->job->input + c->sent;
  ssize_t n = send(c->ours[STREAM_INPUT], rest, c->job->input_bytes - c->sent, MSG_NOSIGNAL);
  if (n > 0) c->sent += (size_t)n;
  bool later = n < 0 && (errno == EAGAIN || errno == EINTR);
  /* a program that reads no more input may still answer */
  if ((n < 0 && !later) || c->sent == c->job->input_bytes) close_stream(&c->ours[STREAM_INPUT]);
}

static lac_status read_output(child *c, lac_error *err) {
  laci_child_result *r = c->result;
  if (c->capacity - r->output_bytes < CHUNK_BYTES) {
    size_t capacity = 2 * c->capacity + CHUNK_BYTES;
    char *grown = laci_resize(r->output, r->output_bytes, capacity, 1);
    if (!grown) return laci_fail_memory(err, "a program's answer");
    r->output = grown;
    c->capacity = capacity;
  }
  ssize_t n = read(c->ours[STREAM_OUTPUT], r->output + r->output_bytes, CHUNK_BYTES - 1);
  if (n > 0) r->output_bytes += (size_t)n;
  r->output[r->output_bytes] = '\0';
  if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) close_stream(&c->ours[STREAM_OUTPUT]);
  return LAC_OK;
}

/* Reads from the program's standard error, and keeps only the last bytes. */
static void read_stderr(child *c) {
  char chunk[COMPLAINT_BYTES / 2];
  ssize_t n = read(c->ours[STREAM_ERROR], chunk, sizeof chunk);
  if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) close_stream(&c->ours[STREAM_ERROR]);
  if (n <= 0) return;
  size_t over = c->n_complaint + (size_t)n;
  over = over > sizeof c->complaint ? over - sizeof c->complaint : 0;
  memmove(c->complaint, c->complaint + over, c->n_complaint - over);
  c->n_complaint -= over;
  memcpy(c->complaint + c->n_complaint, chunk, (size_t)n);
  c->n_complaint += (size_t)n;
}

static bool is_job_interrupted(const child *c) { return !c->was_interrupted && laci_interrupted(); }

static lac_status fail_interrupted(lac_error *err) {
  return laci_fail(err, LAC_INTERRUPTED, "interrupted");
}

/* Writes the input and reads both outputs until the program has closed them. If the answer becomes
 * too long or the time is over, sets *is_ended and result->end, and returns; the caller then kills
 * the program. */
static lac_status exchange_data(child *c, bool *is_ended, lac_error *err) {
  static const short events[N_STREAMS] = {POLLOUT, POLLIN, POLLIN};
  lac_status st = LAC_OK;
  if (c->job->input_bytes == 0) close_stream(&c->ours[STREAM_INPUT]);
  while (!st && (c->ours[STREAM_OUTPUT] >= 0 || c->ours[STREAM_ERROR] >= 0)) {
    struct pollfd streams[N_STREAMS];
    for (int at = 0; at < N_STREAMS; at++) {
      streams[at] = (struct pollfd){.fd = c->ours[at], .events = events[at]};
    }
    int n = poll(streams, N_STREAMS, LOOK_MS);
    if (is_job_interrupted(c)) return fail_interrupted(err);
    if (n > 0 && streams[STREAM_INPUT].revents) send_input(c);
    if (n > 0 && streams[STREAM_OUTPUT].revents) st = read_output(c, err);
    if (n > 0 && streams[STREAM_ERROR].revents) read_stderr(c);
    if (c->result->output_bytes > c->job->most_bytes) {
      c->result->end = LACI_CHILD_TOO_MUCH;
      *is_ended = true;
      return st;
    }
    if (laci_clock_seconds() > c->deadline) {
      c->result->end = LACI_CHILD_LATE;
      *is_ended = true;
      return st;
    }
  }
  return st;
}

/* ---- Ending ---- */

/* Collects the program's exit status into the result. False: it still runs. flags: as for
 * waitpid. */
static bool collect_exit_status(child *c, int flags) {
  int status = 0;
  pid_t ended;
  do ended = waitpid(c->pid, &status, flags);
  while (ended < 0 && errno == EINTR);
  if (ended == 0) return false;
  c->pid = -1;
  if (ended < 0) {
    c->result->end = LACI_CHILD_UNKNOWN;
  } else if (WIFSIGNALED(status)) {
    c->result->end = LACI_CHILD_KILLED;
    c->result->code = WTERMSIG(status);
  } else {
    c->result->end = LACI_CHILD_EXITED;
    c->result->code = WEXITSTATUS(status);
  }
  return true;
}

/* Kills the program unless it has ended. Once its exit status was collected, also by the host
 * program, its pid may belong to another process and is not used. */
static void kill_child(child *c) {
  if (c->pid < 0 || collect_exit_status(c, WNOHANG)) return;
  (void)kill(c->pid, SIGKILL);
  (void)collect_exit_status(c, 0);
}

/* Waits until the program ends, which should be soon, since it has closed its outputs. Kills it
 * when the time is over. */
static void wait_for_child_end(child *c) {
  while (!collect_exit_status(c, WNOHANG)) {
    if (laci_clock_seconds() > c->deadline) {
      kill_child(c);
      c->result->end = LACI_CHILD_LATE;
      return;
    }
    (void)poll(NULL, 0, 1);
  }
}

static void keep_last_stderr_line(child *c) {
  size_t end = c->n_complaint, begin;
  while (end > 0 && strchr("\n\r ", c->complaint[end - 1])) end--;
  for (begin = end; begin > 0 && c->complaint[begin - 1] != '\n';) begin--;
  size_t n = end - begin, most = sizeof c->result->last_message - 1;
  if (n > most) n = most;
  for (size_t at = 0; at < n; at++) {
    char letter = c->complaint[begin + at];
    c->result->last_message[at] = letter >= ' ' && letter <= '~' ? letter : '?';
  }
  c->result->last_message[n] = '\0';
}

lac_status laci_child_run(const laci_child_job *job, laci_child_result *result, lac_error *err) {
  child c = {.job = job,
             .result = result,
             .ours = {-1, -1, -1},
             .its = {-1, -1, -1},
             .pid = -1,
             .deadline = laci_clock_seconds() + job->seconds,
             .was_interrupted = laci_interrupted()};
  bool is_ended = false;
  *result = (laci_child_result){.end = LACI_CHILD_UNKNOWN};
  lac_status st = start_child(&c, err);
  for (int at = 0; at < N_STREAMS; at++) close_stream(&c.its[at]);
  if (!st) st = exchange_data(&c, &is_ended, err);
  laci_child_end why = result->end;
  for (int at = 0; at < N_STREAMS; at++) close_stream(&c.ours[at]);
  if (st || is_ended) kill_child(&c);
  else wait_for_child_end(&c);
  if (is_ended) result->end = why;
  keep_last_stderr_line(&c);
  bool at_keyboard = result->end == LACI_CHILD_KILLED && result->code == SIGINT;
  if (!st && (at_keyboard || is_job_interrupted(&c))) st = fail_interrupted(err);
  if (!st) return LAC_OK;
  laci_free(result->output);
  result->output = NULL;
  return st;
}
