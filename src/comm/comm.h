/* SPDX-License-Identifier: Apache-2.0
 * A group of processes that do one job together: who is who, bytes from process 0 to all, from all
 * to all, one ending for all, and sums of floats while the caller computes on.
 *
 *     st = laci_comm_open(&options, &comm, err);            NULL: this process is alone
 *     st = laci_comm_broadcast(comm, masks, n, err);
 *     st = laci_comm_agree(comm, st, err);                  all fail where one does
 *     laci_comm_sum_begin(sum, gradients, n);  ...  laci_comm_poll(comm);
 *     st = laci_comm_sum_end(sum, err);
 *
 * A comm that is NULL is a process alone: all functions take it, and nothing is sent. All processes
 * call the same functions in the same order. How the bytes travel is a transport (lacuna/plugin.h),
 * which an MPI plug-in brings.
 *
 * **The sum** is the direct one: every process gets its chunk of all others' ranges, adds them in
 * the order of ranks, and sends the sum to all. So all hold the same bytes, whatever the transport,
 * and each sends and receives 2 (P - 1) / P of the range, as a ring does, in 2 (P - 1) messages.
 *
 * **Waiting.** A process of the same machine that has died is noticed within a second by those that
 * wait for it, any other that does not answer after `timeout` seconds: LAC_PEER, and the text names
 * it. Then only laci_comm_close is left, which ends all processes. Not for several threads. */
#ifndef LACI_COMM_COMM_H
#define LACI_COMM_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lacuna/status.h"

typedef struct lac_transport lac_transport;

typedef struct laci_comm laci_comm;

typedef struct laci_comm_options {
  double timeout; /* seconds without an answer; > 0 */
} laci_comm_options;

/** The group that a launcher (mpirun, srun) started this process in, as the environment says;
 * *comm is NULL where it started one process only, or where there was none. Once a process. Fails
 * LAC_UNSUPPORTED where the plug-in cannot be loaded or started: several processes that know
 * nothing of each other would each do the whole job; as laci_comm_open_over. */
LAC_MUST_CHECK lac_status laci_comm_open(const laci_comm_options *options, laci_comm **comm,
                                         lac_error *err);
/** The same over a given transport, which the comm ends at last. Fails as laci_comm_broadcast,
 * LAC_NO_MEMORY; what is left in *comm then is to be closed once the failure was told, since that
 * ends this process. Where there is no memory for it at all, *comm is NULL, and all are ended. */
LAC_MUST_CHECK lac_status laci_comm_open_over(const lac_transport *transport,
                                              const laci_comm_options *options, laci_comm **comm,
                                              lac_error *err);
/** Where this process has lost another one, process 0 has most to say and to save: waits for it to
 * end all processes, this one too, for as long as it lives and for `timeout` seconds at most.
 * Nothing is done by process 0, or a second time. */
void laci_comm_leave_to_first(laci_comm *comm);
/** The status that this process's work ended with. Where it failed and the others do not know
 * (laci_comm_agreed), all processes are ended at once, this one too, without a return; after
 * LAC_PEER laci_comm_leave_to_first is called before. Else it waits for the others to close: after
 * a success for as long as they live, since one may still write what all have made, after a failure
 * for `timeout` seconds, at most 30; then all are ended. */
void laci_comm_close(laci_comm *comm, lac_status ended);

/** The rank that the launcher's environment says, without joining; alone: 0. */
int laci_comm_launched_rank(void);

int laci_comm_rank(const laci_comm *comm);              /* alone: 0 */
int laci_comm_size(const laci_comm *comm);              /* alone: 1 */
const char *laci_comm_transport(const laci_comm *comm); /* its name; alone: "none" */
/** From now on waiting has this limit. */
void laci_comm_set_timeout(laci_comm *comm, double seconds);

/* ---- All together, waiting. Each fails LAC_PEER ---- */

/** The bytes of process 0, at all. */
LAC_MUST_CHECK lac_status laci_comm_broadcast(laci_comm *comm, void *bytes, size_t n,
                                              lac_error *err);
/** all [size * n] bytes: those of process k from k * n on, its own included; they may be there
 * already. */
LAC_MUST_CHECK lac_status laci_comm_gather(laci_comm *comm, const void *mine, size_t n, void *all,
                                           lac_error *err);
/** Parts of different sizes: begin [size + 1], the same everywhere, the own part is in place. At
 * most LAC_TRANSPORT_MOST bytes in all. */
LAC_MUST_CHECK lac_status laci_comm_gather_parts(laci_comm *comm, void *all, const size_t *begin,
                                                 lac_error *err);
/** All end as one: LAC_OK where all came with it, else the failure of the first process that has
 * one, with "process K: " before its text where that is not process 0. */
LAC_MUST_CHECK lac_status laci_comm_agree(laci_comm *comm, lac_status mine, lac_error *err);
/** The same after work that takes some much longer than others: waits for as long as they live. */
LAC_MUST_CHECK lac_status laci_comm_agree_late(laci_comm *comm, lac_status mine, lac_error *err);
/** Has the last failure been agreed on, so that all processes know of it? */
bool laci_comm_agreed(const laci_comm *comm);

/* ---- Meanwhile ---- */

/** Begins to ask all processes for 32 bits each; one question at a time. Fails LAC_PEER. */
LAC_MUST_CHECK lac_status laci_comm_vote_begin(laci_comm *comm, uint32_t bits, lac_error *err);
/** Waits until all have been asked, `times` as long as otherwise: for who asks before the others
 * have done so many parts of what they do. The vote is still to be ended. Fails LAC_PEER. */
LAC_MUST_CHECK lac_status laci_comm_await_vote(laci_comm *comm, int times, lac_error *err);
/** Waits for all answers; *any: the bits that any process has set; alone: left as it is. Fails
 * LAC_PEER. */
LAC_MUST_CHECK lac_status laci_comm_vote_end(laci_comm *comm, uint32_t *any, lac_error *err);

/** What floats are while they travel. */
typedef enum laci_wire {
  LACI_WIRE_F32,
  LACI_WIRE_BF16, /* each process's numbers and the sums are rounded; added in f32 */
} laci_wire;

/** Memory for sums of up to `most` floats: about four bytes for each, on either wire. Fails
 * LAC_NO_MEMORY, LAC_BAD_ARGUMENT (more than a transport takes at a time). comm NULL: a sum that
 * does nothing. */
typedef struct laci_comm_sum laci_comm_sum;
LAC_MUST_CHECK lac_status laci_comm_sum_create(laci_comm *comm, int64_t most, laci_wire wire,
                                               laci_comm_sum **sum, lac_error *err);
/** Where it is in progress, after a failure, the group is broken from then on, and the sum's memory
 * stays taken, since the transport may still write to it. NULL is fine. */
void laci_comm_sum_destroy(laci_comm_sum *sum);
/** x [n] becomes the sum of all processes' x; it may not be touched until the end. Several sums may
 * be in progress, begun in the same order everywhere. A failure is told by laci_comm_sum_end. */
void laci_comm_sum_begin(laci_comm_sum *sum, float *x, int64_t n);
/** Carries on the sums in progress. Cheap. */
void laci_comm_poll(laci_comm *comm);
/** Waits for it; sums are ended in the order in which they were begun. Fails LAC_PEER. */
LAC_MUST_CHECK lac_status laci_comm_sum_end(laci_comm_sum *sum, lac_error *err);

/** When it was begun, when its chunks were here, when it was done: laci_clock_seconds. */
typedef struct laci_comm_times {
  double begun, exchanged, done;
} laci_comm_times;
laci_comm_times laci_comm_sum_times(const laci_comm_sum *sum);

#endif
