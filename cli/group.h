/* SPDX-License-Identifier: Apache-2.0
 * The command run as several processes (mpirun, srun). All processes together run the verbs with
 * long work (group.c says which); process 0 alone runs the others. Only process 0 prints, logs
 * and writes files: standard output of the others is /dev/null, and they plan no outputs. */
#ifndef CLI_GROUP_H
#define CLI_GROUP_H

#include "args.h"

/** Does this process have nothing to do, because process 0 runs this verb alone? */
bool group_has_no_work_here(const arguments *args);

/** If all processes run the verb together, joins them and sets args->group. st: the status of
 * parsing the command line; if it failed in one process, the call fails in all. */
LAC_MUST_CHECK lac_status group_join(arguments *args, lac_status st, lac_error *err);

/** Is this process 0, the one that prints, logs and writes files? */
bool group_is_first_process(const arguments *args);

/** Returns the number of processes; 1: this process works alone. */
int group_size(const arguments *args);

/** Makes the processes agree on a status. All processes call it at the same points of a verb, each
 * with its own status, and all return the same status. If all processes agreed on a failure before,
 * that failure is returned at once. */
LAC_MUST_CHECK lac_status group_agree_on_status(const arguments *args, lac_status st,
                                                lac_error *err);

/** Does group_agree_on_status after work on files, which may take one process much longer than the
 * others: it waits as long as the other processes live. At the end of a verb, call it only if no
 * library call failed: after such a failure other processes may not get here. */
LAC_MUST_CHECK lac_status group_agree_on_status_without_timeout(const arguments *args,
                                                                lac_status st, lac_error *err);

/** Should this process print the failure `err`? Process 0 prints failures on which all agreed. A
 * process whose failure the others do not know prints it; "process N" is then put before the text.
 * If a process was lost, or the group could not be joined, other processes wait first, so that
 * process 0 can report it and end them. */
bool group_should_print_failure(const arguments *args, lac_error *err);

/** Leaves the group, as the last step, after all messages were printed. May end the process instead
 * of returning. */
void group_close(arguments *args, lac_status ended);

#endif
