/* SPDX-License-Identifier: Apache-2.0
 * A group of processes that work on one job: ranks, broadcasts from process 0, gathers from all to
 * all, one common ending, and sums of floats during which the caller can compute.
 *
 *     st = laci_comm_open(&options, &comm, err);            NULL: this process is alone
 *     st = laci_comm_broadcast(comm, masks, n, err);
 *     st = laci_comm_agree_on_status(comm, st, err);                  all fail where one does
 *     laci_comm_sum_begin(sum, gradients, n);  ...  laci_comm_advance_sums(comm);
 *     st = laci_comm_sum_end(sum, err);
 *
 * A comm that is NULL means a single process: all functions accept it, and nothing is sent. All
 * processes must call the same functions in the same order. The bytes are sent by a transport
 * (lacuna/plugin.h), which an MPI plug-in provides.
 *
 * **The sum** is direct: every process receives its chunk of the ranges of all others, adds them in
 * the order of ranks, and sends the result to all. So all hold the same bytes with any transport,
 * and each process sends and receives 2 (P - 1) / P of the range, as in a ring, in 2 (P - 1)
 * messages.
 *
 * **Waiting.** If a process of the same machine dies, processes that wait for it notice within a
 * second; any other one that does not answer is noticed after `timeout` seconds. Then functions
 * fail LAC_PEER, with a text that names it, and only laci_comm_close may be called, which ends all
 * processes. Not for several threads. */
#ifndef LACI_COMM_COMM_H
#define LACI_COMM_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lacuna/status.h"

typedef struct lac_transport lac_transport;

typedef struct laci_comm laci_comm;

typedef struct laci_comm_options {
  double timeout; /* seconds after which a process that has not answered counts as lost; > 0 */
} laci_comm_options;

/** Opens the group of processes in which a launcher (mpirun, srun) started this one, according to
 * the environment. *comm is NULL if there is only one process or no launcher. Call it once in a
 * process. Fails as laci_comm_open_transport, and LAC_UNSUPPORTED if the plug-in cannot be loaded
 * or started: otherwise each of several processes would do the whole job. */
LAC_MUST_CHECK lac_status laci_comm_open(const laci_comm_options *options, laci_comm **comm,
                                         lac_error *err);
/** Opens a comm over a given transport, which laci_comm_close ends. Fails as laci_comm_broadcast,
 * LAC_NO_MEMORY. After a failure the caller reports it and then closes *comm, which ends this
 * process. *comm NULL: memory ran out, and all processes are ended. */
LAC_MUST_CHECK lac_status laci_comm_open_transport(const lac_transport *transport,
                                                   const laci_comm_options *options,
                                                   laci_comm **comm, lac_error *err);
/** Waits for process 0, after this process has lost another one. Process 0 may have to report and
 * save before it ends all processes, this one included. The wait lasts while process 0 lives, and
 * for `timeout` seconds at most. Does nothing in process 0, or in a second call. */
void laci_comm_wait_for_process_0(laci_comm *comm);
/** Closes the comm. ended: the status of this process's work. After a failure that the others do
 * not know (laci_comm_is_failure_known_to_all), it ends all processes at once, this one included,
 * and does not return; after LAC_PEER it first calls laci_comm_wait_for_process_0. Otherwise it
 * waits for the others to close: after a success as long as they live, since one may still write a
 * common result; after a failure for `timeout` seconds, at most 30, and then ends all. */
void laci_comm_close(laci_comm *comm, lac_status ended);

/** Returns the rank from the launcher's environment, without opening a comm; 0 for a single
 * process. */
int laci_comm_rank_from_environment(void);

int laci_comm_rank(const laci_comm *comm);              /* returns this process's rank; 0 for a
                                                           single process */
int laci_comm_size(const laci_comm *comm);              /* returns the number of processes; 1 for a
                                                           single process */
const char *laci_comm_transport(const laci_comm *comm); /* returns the name of the transport; "none"
                                                           for a single process */
/** Sets the timeout, in seconds, of all later waits. */
void laci_comm_set_timeout(laci_comm *comm, double seconds);

/* ---- Operations of all processes, which wait for each other; each fails LAC_PEER ---- */

/** Copies n bytes from process 0 to all. */
LAC_MUST_CHECK lac_status laci_comm_broadcast(laci_comm *comm, void *bytes, size_t n,
                                              lac_error *err);
/** Gathers n bytes of each process at all processes: the bytes of process k begin at all[k * n],
 * and `all` has size * n bytes. `mine`, the bytes of this process, may already be in its place
 * there. */
LAC_MUST_CHECK lac_status laci_comm_gather(laci_comm *comm, const void *mine, size_t n, void *all,
                                           lac_error *err);
/** Gathers parts of different sizes in `all`. The part of process k is at bytes [begin[k], begin[k
 * + 1]); each process has its own part there before the call. begin [size + 1] is the same in all
 * processes. At most LAC_TRANSPORT_MOST bytes in all. */
LAC_MUST_CHECK lac_status laci_comm_gather_parts(laci_comm *comm, void *all, const size_t *begin,
                                                 lac_error *err);
/** Agrees on a status: LAC_OK if all processes pass it, else the failure of the first process (by
 * rank) that has one, with "process K: " before its text unless that is process 0. */
LAC_MUST_CHECK lac_status laci_comm_agree_on_status(laci_comm *comm, lac_status mine,
                                                    lac_error *err);
/** Does the same as laci_comm_agree_on_status, but waits as long as the other processes live: after
 * work that takes some of them much longer than others. */
LAC_MUST_CHECK lac_status laci_comm_agree_without_timeout(laci_comm *comm, lac_status mine,
                                                          lac_error *err);
/** Do all processes know of the last failure, because laci_comm_agree_on_status reported it? */
bool laci_comm_is_failure_known_to_all(const laci_comm *comm);

/* ---- Operations during which the caller can work ---- */

/** Begins a vote: an OR of 32 bits over all processes. One vote at a time. Fails LAC_PEER. */
LAC_MUST_CHECK lac_status laci_comm_vote_begin(laci_comm *comm, uint32_t bits, lac_error *err);
/** Waits until all processes have begun the vote, at most `times` timeouts: for a caller that votes
 * early, while others still have up to `times` steps of work to do. The vote must still be ended.
 * Fails LAC_PEER. */
LAC_MUST_CHECK lac_status laci_comm_vote_wait(laci_comm *comm, int times, lac_error *err);
/** Ends a vote. *any: set to the bits that are set in at least one process; a NULL comm leaves it
 * as it is. Fails LAC_PEER. */
LAC_MUST_CHECK lac_status laci_comm_vote_end(laci_comm *comm, uint32_t *any, lac_error *err);

/** The format in which the floats of a sum are sent. */
typedef enum laci_wire {
  LACI_WIRE_F32,
  LACI_WIRE_BF16, /* each process's numbers and the sums are rounded to bf16; the addition is in
                     f32 */
} laci_wire;

/** Creates a sum over all processes of up to `most` floats, about four bytes of memory for each, in
 * either format. Fails LAC_NO_MEMORY, LAC_BAD_ARGUMENT (more than a transport can send at a time).
 * comm NULL: creates a sum that does nothing. */
typedef struct laci_comm_sum laci_comm_sum;
LAC_MUST_CHECK lac_status laci_comm_sum_create(laci_comm *comm, int64_t most, laci_wire wire,
                                               laci_comm_sum **sum, lac_error *err);
/** Destroys a sum; NULL is fine. If the sum is still in progress, after a failure, the comm cannot
 * be used any more, and the sum's memory is not freed, since the transport may still write to
 * it. */
void laci_comm_sum_destroy(laci_comm_sum *sum);
/** Begins to replace x [n] by the sum of all processes' x. x may not be accessed until
 * laci_comm_sum_end, which also reports failures. Several sums may be in progress; all processes
 * must begin them in the same order. */
void laci_comm_sum_begin(laci_comm_sum *sum, float *x, int64_t n);
/** Advances the sums in progress without waiting. Cheap: call it often during computation. */
void laci_comm_advance_sums(laci_comm *comm);
/** Waits for a sum to finish; sums must be ended in the order in which they were begun. Fails
 * LAC_PEER. */
LAC_MUST_CHECK lac_status laci_comm_sum_end(laci_comm_sum *sum, lac_error *err);

/** The times of a sum, by laci_clock_seconds: when it was begun (begun), when all chunks had
 * arrived (exchanged), and when it was done (done). */
typedef struct laci_comm_times {
  double begun, exchanged, done;
} laci_comm_times;
laci_comm_times laci_comm_sum_times(const laci_comm_sum *sum);

#endif
