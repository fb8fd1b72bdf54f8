/* SPDX-License-Identifier: Apache-2.0
 * Several processes that do one job together, as a launcher (mpirun, srun) started them.
 *
 *     lac_process_group_options o = lac_process_group_options_default();
 *     st = lac_process_group_open(&o, &group, &err);        NULL: this process is alone
 *     pruning.group = training.group = group;               all processes call the same
 *     if (!st) st = lac_prune(model, &pruning, &report, &err);
 *     if (lac_process_group_rank(group) == 0) ...           one of them writes the files
 *     lac_process_group_close(group, st);
 *
 * A group that is NULL is a process alone: all functions take it, and so do the options that have a
 * field `group`. Every process calls the same functions in the same order with the same arguments,
 * its own paths excepted. A function that was given a group ends with the same status in all
 * processes, the failure of one of them, with "process 2: " before its text where that is not
 * process 0. A process of the same machine that has died is noticed within a second, any other
 * after timeout_seconds: LAC_PEER. Then only lac_process_group_close is left. Work on files is
 * waited for as long as its process lives.
 *
 * Threads. A group belongs to the thread that opened it. */
#ifndef LACUNA_PROCESS_GROUP_H
#define LACUNA_PROCESS_GROUP_H

#include <stdbool.h>
#include <stddef.h>

#include "lacuna/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Processes that work together; opaque. */
typedef struct lac_process_group lac_process_group;

/** Start from lac_process_group_options_default() and set fields. */
typedef struct lac_process_group_options {
  double timeout_seconds; /* without an answer of another process; > 0, at most 1e9 (300) */
} lac_process_group_options;

/** Every field's default, which its line names. */
LAC_API lac_process_group_options lac_process_group_options_default(void);

/** The group that this process was started in, as the environment says; *group is NULL where it is
 * alone. Once a process. Where it fails after others were joined, *group is there, and only
 * lac_process_group_close is left, which ends all: tell the failure before. Fails LAC_BAD_ARGUMENT,
 * LAC_UNSUPPORTED (the MPI plug-in cannot be used: processes that know nothing of each other would
 * each do the whole job), LAC_PEER, LAC_NO_MEMORY. */
LAC_API LAC_MUST_CHECK lac_status lac_process_group_open(const lac_process_group_options *options,
                                                         lac_process_group **group, lac_error *err);

/** ended: the status that this process's work ended with. Where it failed and the others do not
 * know of it, or cannot be reached, all processes are ended at once, this one too, without a
 * return; after LAC_PEER once process 0 had its time (lac_process_group_leave_to_first). Else it
 * waits for the others to close: after a success for as long as they live, after a failure that all
 * know of for the timeout, at most 30 s, before all are ended. */
LAC_API void lac_process_group_close(lac_process_group *group, lac_status ended);

/** The rank that the launcher's environment says this process has, without joining the others;
 * alone: 0. For work that one process does. */
LAC_API int lac_process_group_launched_rank(void);

LAC_API int lac_process_group_rank(const lac_process_group *group); /* alone: 0 */
LAC_API int lac_process_group_size(const lac_process_group *group); /* alone: 1 */
/** From now on waiting has this limit. Fails LAC_BAD_ARGUMENT. */
LAC_API LAC_MUST_CHECK lac_status lac_process_group_set_timeout(lac_process_group *group,
                                                                double seconds, lac_error *err);

/** `mine` is how this process fared: all end with the same status, LAC_OK where all came with it.
 * Fails LAC_PEER, too. */
LAC_API LAC_MUST_CHECK lac_status lac_process_group_agree(lac_process_group *group, lac_status mine,
                                                          lac_error *err);
/** Where this process has lost another one (LAC_PEER), process 0 has most to say and to save: waits
 * for it to end all processes, this one too, for as long as it lives and for the timeout at most.
 * Nothing is done by process 0. */
LAC_API void lac_process_group_leave_to_first(lac_process_group *group);
/** Do all processes know of the last failure? */
LAC_API bool lac_process_group_agreed(const lac_process_group *group);

/** bytes [n] of process 0, at all. Fails LAC_PEER. */
LAC_API LAC_MUST_CHECK lac_status lac_process_group_broadcast(lac_process_group *group, void *bytes,
                                                              size_t n, lac_error *err);

#ifdef __cplusplus
}
#endif
#endif
