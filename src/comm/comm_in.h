/* SPDX-License-Identifier: Apache-2.0
 * A comm as the files of this room share it: launch.c finds the transport, comm.c opens and closes,
 * meet.c lets all processes meet, sum.c begins and ends sums, phases.c carries them on and add.c is
 * their arithmetic, wait.c waits, and peers.c finds out who has died. */
#ifndef LACI_COMM_COMM_IN_H
#define LACI_COMM_COMM_IN_H

#include "comm/comm.h"

/** Where a process runs. Numbers of processes mean something inside one machine and name space. */
typedef struct laci_peer {
  int64_t pid;
  uint64_t place;
} laci_peer;

enum { CHANNEL_MEETING, CHANNEL_EXCHANGE, CHANNEL_GATHER };

/** What a failure is, as it travels. */
typedef struct laci_ending {
  int status, hint;
  char text[sizeof((lac_error *)0)->text];
} laci_ending;

struct laci_comm {
  const lac_transport *transport;
  int rank, size;
  double timeout;
  bool agreed; /* on the last failure, and there was no meeting since */
  bool left;   /* to process 0, as laci_comm_leave_to_first has it */

  int64_t n_meetings;          /* that this process came to */
  int64_t *heard;              /* [size], of process 0: the last meeting that each came to */
  laci_peer *peers;            /* [size]: where they run */
  size_t *begin;               /* [size + 1]: parts of a meeting */
  uint32_t *votes;             /* [size] */
  struct laci_ending *endings; /* [size]: how all fared */
  void *vote;                  /* request; NULL: no question is open */

  laci_comm_sum *first, *last; /* begun and not done, in order */
  bool broken;                 /* a sum failed; the transport says why */
};

/** How far a sum is. */
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
  int64_t first, count; /* our chunk */
  uint16_t *packed;     /* [most], bf16 only */
  void *chunks;         /* [size of the group, our chunk] */
  size_t *begin;        /* [size + 1]: everybody's chunks in bytes */
  void *request;
  laci_comm_times times;
  laci_comm_sum *next;
};

/* ---- peers.c ---- */

laci_peer laci_peer_of_this(void);
/** Has that process died, as far as this machine knows? */
bool laci_comm_has_died(const laci_comm *comm, int rank);
/** LAC_PEER where a process of this machine has died. */
LAC_MUST_CHECK lac_status laci_comm_find_dead(const laci_comm *comm, lac_error *err);

/* ---- wait.c ---- */

/** Waits until the request is done; meanwhile sums go on. Fails LAC_PEER. */
LAC_MUST_CHECK lac_status laci_comm_wait(laci_comm *comm, void **request, lac_error *err);
/** Waits until the sum is done. Fails LAC_PEER. */
LAC_MUST_CHECK lac_status laci_comm_wait_sum(laci_comm *comm, const laci_comm_sum *sum,
                                             lac_error *err);
/** Tells process 0 that this one came to another meeting or sum; there, takes what others told. */
void laci_comm_begin_meeting(laci_comm *comm);
/** The transport's own failure. */
lac_status laci_comm_fail(const laci_comm *comm, lac_error *err);

/* ---- phases.c ---- */

/** Carries sums on as far as they go now. True where anything moved. */
bool laci_comm_advance(laci_comm *comm);
/** Puts the sum after those that are in progress. */
void laci_comm_add_sum(laci_comm *comm, laci_comm_sum *sum);
/** Bytes of a float as it is sent. */
size_t laci_wire_element(laci_wire wire);
/** Floats of the largest chunk, where a range of n is cut into one for each process. */
int64_t laci_comm_chunk(int64_t n, int size);

/* ---- launch.c ---- */

/** *transport is NULL where this process was started alone. Fails LAC_UNSUPPORTED. */
LAC_MUST_CHECK lac_status laci_comm_launched(const lac_transport **transport, lac_error *err);

/* ---- add.c ---- */

/** sum [n] = the n numbers of part 0 + those of part 1 ..., in this order; parts [n_parts * n]. */
void laci_comm_add(const float *parts, int n_parts, int64_t n, float *sum);
/** The same of numbers in bf16, added in f32 and rounded once. */
void laci_comm_add_bf16(const uint16_t *parts, int n_parts, int64_t n, uint16_t *sum);
void laci_comm_to_bf16(const float *from, int64_t n, uint16_t *to);
void laci_comm_from_bf16(const uint16_t *from, int64_t n, float *to);

#endif
