/* SPDX-License-Identifier: Apache-2.0
 * The data of a comm, shared by the files of this room. launch.c finds the transport, comm.c opens
 * and closes, meet.c runs operations of all processes, sum.c begins and ends sums, phases.c
 * advances sums, add.c adds numbers, wait.c waits, and peers.c finds processes that have died. */
#ifndef LACI_COMM_COMM_IN_H
#define LACI_COMM_COMM_IN_H

#include "comm/comm.h"

/** Identifies a process. A pid is meaningful only on one machine and in one pid namespace, which
 * `place` identifies. */
typedef struct laci_peer {
  int64_t pid;
  uint64_t place;
} laci_peer;

enum { CHANNEL_MEETING, CHANNEL_EXCHANGE, CHANNEL_GATHER };

/** The status and error text of a process, as sent to other processes. */
typedef struct laci_process_status {
  int status, hint;
  char text[sizeof((lac_error *)0)->text];
} laci_process_status;

struct laci_comm {
  const lac_transport *transport;
  int rank, size;
  double timeout;
  bool agreed; /* all processes know of the last failure, and no operation has begun since */
  bool left;   /* laci_comm_wait_for_process_0 was called */

  int64_t n_meetings; /* number of meetings (operations of all processes) that this process has
                         entered so far */
  int64_t *heard;     /* [size] in process 0: the number of meetings that each process has entered
                         so far */
  laci_peer *peers;   /* [size] the identity of each process */
  size_t *begin;      /* [size + 1] offset in bytes of each process's part in a gathered buffer */
  uint32_t *votes;    /* [size] the bits that each process has voted */
  struct laci_process_status *statuses; /* [size] the status of each process */
  void *vote;                           /* request of the vote in progress; NULL: none */

  laci_comm_sum *first, *last; /* list of sums in progress, in the order in which they were begun */
  bool broken;                 /* a sum failed; the transport has the reason */
};

/** The phases that a sum over all processes passes through. */
typedef enum laci_phase {
  LACI_PHASE_IDLE,
  LACI_PHASE_EXCHANGING,
  LACI_PHASE_EXCHANGED,
  LACI_PHASE_GATHERING,
  LACI_PHASE_DONE
} laci_phase;

struct laci_comm_sum {
  laci_comm *comm;
  laci_wire wire;
  laci_phase phase;
  float *x;
  int64_t n, most;
  int64_t first, count; /* the floats [first, first + count) that this process adds up for all */
  uint16_t *packed;     /* [most] the numbers in bf16, as they are sent; NULL: they are sent as
                           f32 */
  void *chunks;         /* [size, count] what each process sent of the floats that this process adds
                           up */
  size_t *begin;        /* [size + 1] offset in bytes of the chunk that each process adds up */
  void *request;
  laci_comm_times times;
  laci_comm_sum *next;
};

/* ---- peers.c ---- */

laci_peer laci_peer_describe_self(void);
/** Has the process of this rank died? False if this cannot be known, as for a process on another
 * machine. */
bool laci_comm_has_process_died(const laci_comm *comm, int rank);
/** Fails LAC_PEER where a process of this machine has died. */
LAC_MUST_CHECK lac_status laci_comm_check_processes_alive(const laci_comm *comm, lac_error *err);

/* ---- wait.c ---- */

/** Waits until the request is done; sums in progress are advanced meanwhile. Fails LAC_PEER. */
LAC_MUST_CHECK lac_status laci_comm_wait_request(laci_comm *comm, void **request, lac_error *err);
/** Waits until the sum is done. Fails LAC_PEER. */
LAC_MUST_CHECK lac_status laci_comm_wait_sum(laci_comm *comm, const laci_comm_sum *sum,
                                             lac_error *err);
/** Tells process 0 that this process has entered another operation of all processes. In process 0:
 * receives these messages. */
void laci_comm_announce_operation(laci_comm *comm);
/** Fails LAC_PEER with the transport's text about its last failure. */
lac_status laci_comm_fail_transport(const laci_comm *comm, lac_error *err);

/* ---- phases.c ---- */

/** Advances all sums in progress as far as possible without waiting. Returns true if any of them
 * advanced. */
bool laci_comm_advance_sum_phases(laci_comm *comm);
/** Appends the sum to the comm's list of sums in progress. */
void laci_comm_append_sum_in_progress(laci_comm *comm, laci_comm_sum *sum);
/** Returns the number of bytes in which a float is sent. */
size_t laci_wire_element_bytes(laci_wire wire);
/** Returns the number of floats of the largest chunk if n floats are divided among `size`
 * processes. */
int64_t laci_comm_chunk_size(int64_t n, int size);

/* ---- launch.c ---- */

/** Finds the transport to the other processes that a launcher (mpirun, srun) started with this one;
 * *transport is NULL if this one was started alone. Fails LAC_UNSUPPORTED if there are others, but
 * the plug-in for MPI cannot be loaded or started, or joins another number of processes. */
LAC_MUST_CHECK lac_status laci_comm_find_launched_transport(const lac_transport **transport,
                                                            lac_error *err);

/* ---- add.c ---- */

/** Adds the numbers of several processes: sum [n] = parts[0] + parts[1] + ..., in this order.
 * parts: [n_parts, n]. */
void laci_comm_sum_parts_f32(const float *parts, int n_parts, int64_t n, float *sum);
/** Does the same as laci_comm_sum_parts_f32 for bf16 numbers, which are added in f32 and rounded
 * once. */
void laci_comm_sum_parts_bf16(const uint16_t *parts, int n_parts, int64_t n, uint16_t *sum);
void laci_comm_to_bf16(const float *from, int64_t n, uint16_t *to);
void laci_comm_from_bf16(const uint16_t *from, int64_t n, float *to);

#endif
