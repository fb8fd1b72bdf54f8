/* SPDX-License-Identifier: Apache-2.0
 * A process group: several processes, started by a launcher (mpirun, srun), that do one job
 * together.
 *
 *     lac_process_group_options o = lac_process_group_options_default();
 *     st = lac_process_group_open(&o, &group, &err);        NULL: this process is alone
 *     pruning.group = training.group = group;               all processes call the same
 *     if (!st) st = lac_prune(model, &pruning, &report, &err);
 *     if (lac_process_group_rank(group) == 0) ...           one of them writes the files
 *     lac_process_group_close(group, st);
 *
 * A group that is NULL stands for one process alone: all functions accept it, and so do options
 * with a field `group`. Every process calls the same functions in the same order with the same
 * arguments, except for paths, which may differ. A function that was given a group ends with the
 * same status in all processes. If one process fails, all return its status and text. The text
 * begins with "process 2: " if that process is not process 0 but 2. If a process dies, the others
 * fail LAC_PEER: within a second if it ran on the same machine, else after timeout_seconds. After
 * LAC_PEER only lac_process_group_close may be called. While a process works on files, the others
 * wait without a limit as long as it lives.
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
  size_t size;            /* sizeof of this struct, set by lac_process_group_options_init */
  double timeout_seconds; /* how long to wait for another process's answer; > 0, at most 1e9
                             (default 300) */
} lac_process_group_options;

/** Fills the first `size` bytes of *options with the defaults, which the comments of the fields
 * name. size: sizeof(lac_process_group_options). */
LAC_API void lac_process_group_options_init(lac_process_group_options *options, size_t size);
LAC_DEFAULT(lac_process_group_options)

/** Joins the group in which this process was started, according to the environment; *group is NULL
 * if the process was started alone. Call it once per process. If it fails after other processes
 * were joined, *group is not NULL: report the failure, and then call lac_process_group_close, which
 * ends all processes. Fails LAC_BAD_ARGUMENT, LAC_UNSUPPORTED (the MPI plug-in cannot be used;
 * without this failure each process would do the whole job), LAC_PEER, LAC_NO_MEMORY. */
LAC_API LAC_MUST_CHECK lac_status lac_process_group_open(const lac_process_group_options *options,
                                                         lac_process_group **group, lac_error *err);

/** Leaves and frees the group. ended: the status of this process's work. If the work failed and the
 * other processes do not know it or cannot be reached, all processes are ended at once, this one
 * included. The call then does not return. After LAC_PEER process 0 gets time first
 * (lac_process_group_leave_to_first). Otherwise the call waits until the others close the group,
 * too. After success it waits as long as they live. After a failure that all know of it waits for
 * the timeout, at most 30 s, and then all are ended. */
LAC_API void lac_process_group_close(lac_process_group *group, lac_status ended);

/** Returns this process's rank according to the launcher's environment, without joining the group;
 * 0 if the process is alone. For work that only one process should do. */
LAC_API int lac_process_group_launched_rank(void);

LAC_API int lac_process_group_rank(const lac_process_group *group); /* rank of this process; 0 if it
                                                                       is alone */
LAC_API int lac_process_group_size(const lac_process_group *group); /* number of processes; 1 for
                                                                       one alone */
/** Sets timeout_seconds for all later calls. Fails LAC_BAD_ARGUMENT. */
LAC_API LAC_MUST_CHECK lac_status lac_process_group_set_timeout(lac_process_group *group,
                                                                double seconds, lac_error *err);

/** Compares the status `mine` of all processes: all return the same status, LAC_OK only if every
 * process passed LAC_OK. Fails LAC_PEER, too. */
LAC_API LAC_MUST_CHECK lac_status lac_process_group_agree(lac_process_group *group, lac_status mine,
                                                          lac_error *err);
/** After LAC_PEER, gives process 0 time to report the failure, to save its state and to end all
 * processes. Other processes wait here as long as process 0 lives, at most for the timeout. Process
 * 0 returns at once. */
LAC_API void lac_process_group_leave_to_first(lac_process_group *group);
/** Do all processes know of the last failure, so that they return the same status? */
LAC_API bool lac_process_group_agreed(const lac_process_group *group);

/** Copies bytes [n] of process 0 to all other processes. Fails LAC_PEER. */
LAC_API LAC_MUST_CHECK lac_status lac_process_group_broadcast(lac_process_group *group, void *bytes,
                                                              size_t n, lac_error *err);

#ifdef __cplusplus
}
#endif
#endif
