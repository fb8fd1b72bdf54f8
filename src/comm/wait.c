/* SPDX-License-Identifier: Apache-2.0
 * Waits for other processes, and finds out which one is late or has died.
 *
 * Every process counts its meetings and sums and tells process 0, which so knows which process is
 * late. When the comm is opened, all exchange where they run: during a wait, processes of the same
 * machine are checked, so that a death is noticed at once and not after the timeout. */
#include <sched.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "comm/comm_in.h"
#include "lacuna/plugin.h"

enum {
  YIELDS = 200,
  NAP_NS = 50 * 1000,
  LONGEST_NAP_NS = 1000 * 1000,
  LEAVING_NAP_NS = 20 * 1000 * 1000,
  ENDING_NAPS = 250, /* number of naps after which an order to end all processes has reached all of
                        them */
  RANK_NAPS = 10     /* number of naps between the ends of two processes with neighbouring ranks */
};
static const double LOOK_EVERY_S = 0.25,
                    HEAD_START_S = 2; /* seconds by which process 0 reports a timeout earlier, since
                                         it knows best which process is late */

/* ---- Finding the process that is late ---- */

static void receive_meeting_numbers(laci_comm *comm) {
  const lac_transport *t = comm->transport;
  int64_t word;
  int from;
  while (comm->rank == 0 && t->hear(t->self, &from, &word) == 1) comm->heard[from] = word;
}

void laci_comm_announce_operation(laci_comm *comm) {
  const lac_transport *t = comm->transport;
  comm->n_meetings++;
  comm->agreed = false; /* a new operation shows that the caller has handled the earlier failure */
  receive_meeting_numbers(comm); /* process 0 must receive these messages, or they would
                                    accumulate */
  if (comm->rank != 0 && t->tell(t->self, comm->n_meetings)) comm->broken = true;
}

/* Fails LAC_PEER because a process is late. Process 0 knows which one, unless all have entered the
 * same number of meetings (operations of all processes). The other processes only know that nothing
 * arrived, not even a message of process 0. */
static lac_status fail_late_process(const laci_comm *comm, lac_error *err) {
  char who[128] = "";
  int n_late = 0, at = 0;
  for (int k = 1; k < comm->size && comm->rank == 0; k++) {
    if (comm->heard[k] >= comm->n_meetings && comm->size > 2) continue;
    if (n_late++ < 4) at += snprintf(who + at, sizeof who - (size_t)at, "%s%d", at ? ", " : "", k);
  }
  if (comm->rank == 0 && n_late > 0) {
    return laci_fail(err, LAC_PEER, "process%s %s%s has not answered for %g s",
                     n_late > 1 ? "es" : "", who, n_late > 4 ? " ..." : "", comm->timeout);
  }
  if (comm->rank != 0 && comm->size == 2) {
    return laci_fail(err, LAC_PEER, "process 0 has not answered for %g s", comm->timeout);
  }
  return laci_fail(err, LAC_PEER, "process %d got no answer for %g s%s", comm->rank, comm->timeout,
                   comm->rank == 0 ? ", though all others had come as far"
                                   : ", and no word of process 0 about it");
}

lac_status laci_comm_fail_transport(const laci_comm *comm, lac_error *err) {
  const lac_transport *t = comm->transport;
  return laci_fail(err, LAC_PEER, "process %d: %s", comm->rank, t->why(t->self));
}

/* ---- Waiting ---- */

typedef struct wait_state {
  double started, last_check;
  int n_iterations;
} wait_state;

static void yield_or_sleep(wait_state *p) {
  if (++p->n_iterations <= YIELDS) {
    (void)sched_yield();
    return;
  }
  long nap = (long)NAP_NS * (1 + (p->n_iterations - YIELDS) / 20);
  const struct timespec time = {0, nap < LONGEST_NAP_NS ? nap : LONGEST_NAP_NS};
  (void)nanosleep(&time, NULL);
}

/* Sleeps a little, after a poll in which nothing arrived. From time to time checks for dead
 * processes and for the timeout, and fails LAC_PEER then. */
static lac_status nap_and_check_timeout(laci_comm *comm, wait_state *p, lac_error *err) {
  double now = laci_clock_seconds();
  yield_or_sleep(p);
  if (now - p->last_check < LOOK_EVERY_S) return LAC_OK;
  p->last_check = now;
  lac_status st = laci_comm_check_processes_alive(comm, err);
  if (st) return st;
  receive_meeting_numbers(comm);
  double most = comm->timeout + (comm->rank == 0 ? 0 : HEAD_START_S);
  return now - p->started > most ? fail_late_process(comm, err) : LAC_OK;
}

/* Waits for a request or for a sum; the parameter for the other is NULL. Fails LAC_PEER. */
static lac_status wait_for_request_or_sum(laci_comm *comm, void **request, const laci_comm_sum *sum,
                                          lac_error *err) {
  const lac_transport *t = comm->transport;
  wait_state p = {.started = laci_clock_seconds()};
  p.last_check = p.started;
  for (;;) {
    bool moved = laci_comm_advance_sum_phases(comm);
    int answer = sum ? sum->phase == LACI_PHASE_DONE : t->test(t->self, request);
    bool failed = answer < 0 || comm->broken;
    if (failed) break;
    if (answer == 1) return LAC_OK;
    if (moved) {
      p.started = laci_clock_seconds();
      p.n_iterations = 0;
      continue;
    }
    lac_status st = nap_and_check_timeout(comm, &p, err);
    if (st) return st;
  }
  /* checks first whether a process of this machine died, which explains more than the transport's
   * message */
  lac_status st = laci_comm_check_processes_alive(comm, err);
  return st ? st : laci_comm_fail_transport(comm, err);
}

static void sleep_naps(int n) {
  const struct timespec time = {0, LEAVING_NAP_NS};
  for (int k = 0; k < n; k++) (void)nanosleep(&time, NULL);
}

void laci_comm_wait_for_process_0(laci_comm *comm) {
  const double begin = laci_clock_seconds();
  if (!comm || comm->rank == 0 || comm->left) return;
  comm->left = true;
  if (comm->size == 2) return; /* of two processes, the lost one is process 0 */
  const bool was_there = !laci_comm_has_process_died(comm, 0);
  while (!laci_comm_has_process_died(comm, 0) && laci_clock_seconds() - begin < comm->timeout)
    sleep_naps(1);
  /* If process 0 has ended during the wait, it has also ordered all others to end, which takes a
   * moment to arrive. Otherwise the remaining processes return one after the other by rank, and the
   * first one ends the rest. */
  if (was_there && laci_comm_has_process_died(comm, 0)) sleep_naps(ENDING_NAPS);
  const int late = (comm->rank - 1) * RANK_NAPS;
  sleep_naps(late < ENDING_NAPS ? late : ENDING_NAPS);
}

lac_status laci_comm_wait_request(laci_comm *comm, void **request, lac_error *err) {
  return wait_for_request_or_sum(comm, request, NULL, err);
}

lac_status laci_comm_wait_sum(laci_comm *comm, const laci_comm_sum *sum, lac_error *err) {
  return wait_for_request_or_sum(comm, NULL, sum, err);
}
