/* SPDX-License-Identifier: Apache-2.0
 * Joins and leaves the group, and makes its processes agree on a status. Process 0 prints a failure
 * on which all processes agreed. A failure that only one process knows is printed by that process;
 * when it leaves the group, all processes end. */
#include "group.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/error.h"
#include "lacuna/process_group.h"

/* Seconds that other processes wait, so that process 0 can report its failure first and end all of
 * them. */
enum { HEAD_START_S = 2 };

/* Do all processes run this verb together? The other verbs are short, or measure this machine. */
static bool is_verb_run_by_all_processes(const arguments *args) {
  if (args->help || args->print_config) return false;
  switch (args->verb) {
    case VERB_prune: return true;
    case VERB_permute: return !args->apply && !args->invert;
    case VERB_train:
    case VERB_finetune: return !args->print;
    default: return false;
  }
}

bool group_has_no_work_here(const arguments *args) {
  return !is_verb_run_by_all_processes(args) && lac_process_group_launched_rank() > 0;
}

bool group_is_first_process(const arguments *args) {
  return lac_process_group_rank(args->group) == 0;
}

int group_size(const arguments *args) { return lac_process_group_size(args->group); }

/* Redirects this process's standard output to /dev/null, since process 0 prints the same. */
static lac_status silence_stdout(lac_error *err) {
  int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  bool done = nowhere >= 0 && dup2(nowhere, STDOUT_FILENO) >= 0;
  if (nowhere >= 0) (void)close(nowhere);
  return done ? LAC_OK : laci_fail(err, LAC_IO, "/dev/null: it cannot be written to");
}

lac_status group_join(arguments *args, lac_status st, lac_error *err) {
  lac_process_group_options options = lac_process_group_options_default();
  lac_error other = {0};
  if (!is_verb_run_by_all_processes(args)) return st;
  if (!st && !(args->timeout > 0))
    st =
        laci_fail(err, LAC_BAD_ARGUMENT, "--timeout %g: wanted more than 0 seconds", args->timeout);
  if (!st) options.timeout_seconds = args->timeout;
  lac_status opened = lac_process_group_open(&options, &args->group, st ? &other : err);
  if (opened) return st ? st : opened;
  if (!st && !group_is_first_process(args)) st = silence_stdout(err);
  return group_agree_on_status(args, st, err);
}

lac_status group_agree_on_status(const arguments *args, lac_status st, lac_error *err) {
  if (st && lac_process_group_agreed(args->group)) return st;
  return lac_process_group_agree(args->group, st, err);
}

lac_status group_agree_on_status_without_timeout(const arguments *args, lac_status st,
                                                 lac_error *err) {
  static const double VERY_LONG_S = 1e9;
  if (!args->group) return st;
  lac_status set = lac_process_group_set_timeout(args->group, VERY_LONG_S, st ? NULL : err);
  st = group_agree_on_status(args, st ? st : set, err);
  set = lac_process_group_set_timeout(args->group, args->timeout, st ? NULL : err);
  return st ? st : set;
}

bool group_should_print_failure(const arguments *args, lac_error *err) {
  int rank = is_verb_run_by_all_processes(args) ? lac_process_group_launched_rank() : 0;
  if (rank == 0) return true;
  if (args->group && lac_process_group_agreed(args->group)) return false;
  /* if joining failed, it usually failed in all processes, and process 0 reports first */
  if (!args->group) (void)sleep(HEAD_START_S);
  if (err->status == LAC_PEER) lac_process_group_leave_to_first(args->group);
  else (void)laci_fail_with_prefix(err, err->status, "process %d", rank);
  return true;
}

void group_close(arguments *args, lac_status ended) {
  lac_process_group *group = args->group;
  args->group = NULL;
  lac_process_group_close(group, ended);
}
