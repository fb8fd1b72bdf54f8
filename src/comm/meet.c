/* SPDX-License-Identifier: Apache-2.0
 * Operations in which all processes take part: broadcasts, gathers, agreement on a status, votes.
 * Next: wait.c. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "comm/comm_in.h"
#include "lacuna/plugin.h"

/* ---- Meeting ---- */

/* Waits for an operation of the transport. begun: what the transport returned when the operation
 * was begun; not 0: that failed. */
static lac_status wait_for_started_request(laci_comm *c, int begun, void **request,
                                           lac_error *err) {
  return begun ? laci_comm_fail_transport(c, err) : laci_comm_wait_request(c, request, err);
}

lac_status laci_comm_broadcast(laci_comm *c, void *bytes, size_t n, lac_error *err) {
  lac_status st = LAC_OK;
  for (size_t at = 0; c && at < n && !st;) {
    size_t part = n - at < LAC_TRANSPORT_MOST ? n - at : LAC_TRANSPORT_MOST;
    void *request = NULL;
    laci_comm_announce_operation(c);
    int begun = c->transport->broadcast(c->transport->self, CHANNEL_MEETING, (char *)bytes + at,
                                        part, &request);
    st = wait_for_started_request(c, begun, &request, err);
    at += part;
  }
  return st;
}

lac_status laci_comm_gather_parts(laci_comm *c, void *all, const size_t *begin, lac_error *err) {
  void *request = NULL;
  if (!c) return LAC_OK;
  if (begin[c->size] > LAC_TRANSPORT_MOST) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "%zu bytes of all processes: wanted %zu or less",
                     begin[c->size], LAC_TRANSPORT_MOST);
  }
  laci_comm_announce_operation(c);
  int begun = c->transport->gather(c->transport->self, CHANNEL_MEETING, all, begin, &request);
  return wait_for_started_request(c, begun, &request, err);
}

lac_status laci_comm_gather(laci_comm *c, const void *mine, size_t n, void *all, lac_error *err) {
  char *place = (char *)all + (size_t)(c ? c->rank : 0) * n;
  if (place != mine) memcpy(place, mine, n);
  if (!c) return LAC_OK;
  for (int k = 0; k <= c->size; k++) c->begin[k] = (size_t)k * n;
  return laci_comm_gather_parts(c, all, c->begin, err);
}

/* ---- Agreement ---- */

/* Exchanges statuses and texts, and fails with those of process `from`, which is one of those that
 * failed. mine: this process's status. */
static lac_status fail_with_status_of_process(laci_comm *c, lac_status mine, int from,
                                              lac_error *err) {
  laci_process_status e = {.status = (int)mine};
  if (mine && err) {
    e.hint = (int)err->hint;
    memcpy(e.text, err->text, sizeof e.text);
  }
  lac_status st = laci_comm_gather(c, &e, sizeof e, c->statuses, err);
  if (!st) {
    e = c->statuses[from];
    st = (lac_status)e.status;
    c->agreed = true;
    if (from == 0) (void)laci_fail(err, st, "%s", e.text);
    else (void)laci_fail(err, st, "process %d: %.*s", from, (int)sizeof e.text - 16, e.text);
    (void)laci_hint(err, (lac_hint)e.hint, st);
  }
  return st;
}

lac_status laci_comm_agree_on_status(laci_comm *c, lac_status mine, lac_error *err) {
  if (!c || mine == LAC_PEER) return mine; /* after LAC_PEER there is no process to agree with */
  uint32_t own = (uint32_t)mine;
  lac_status st = laci_comm_gather(c, &own, sizeof own, c->votes, err);
  for (int k = 0; k < c->size && !st; k++) {
    if (c->votes[k]) return fail_with_status_of_process(c, mine, k, err);
  }
  return st;
}

lac_status laci_comm_agree_without_timeout(laci_comm *c, lac_status mine, lac_error *err) {
  if (!c) return mine;
  const double timeout = c->timeout;
  c->timeout = INFINITY;
  lac_status st = laci_comm_agree_on_status(c, mine, err);
  c->timeout = timeout;
  return st;
}

/* ---- Votes ---- */

lac_status laci_comm_vote_begin(laci_comm *c, uint32_t bits, lac_error *err) {
  if (!c) return LAC_OK;
  c->votes[c->rank] = bits;
  for (int k = 0; k <= c->size; k++) c->begin[k] = (size_t)k * sizeof *c->votes;
  laci_comm_announce_operation(c);
  int begun =
      c->transport->gather(c->transport->self, CHANNEL_MEETING, c->votes, c->begin, &c->vote);
  return begun ? laci_comm_fail_transport(c, err) : LAC_OK;
}

lac_status laci_comm_vote_wait(laci_comm *c, int times, lac_error *err) {
  if (!c) return LAC_OK;
  const double timeout = c->timeout;
  c->timeout = timeout * times;
  lac_status st = laci_comm_wait_request(c, &c->vote, err);
  c->timeout = timeout;
  return st;
}

lac_status laci_comm_vote_end(laci_comm *c, uint32_t *any, lac_error *err) {
  /* The vote's request is NULL if laci_comm_vote_wait has already waited for the vote. */
  if (!c) return LAC_OK; /* without a comm *any stays unchanged: it has the caller's own bits */
  lac_status st = c->vote ? laci_comm_wait_request(c, &c->vote, err) : LAC_OK;
  *any = 0;
  for (int k = 0; k < c->size && !st; k++) *any |= c->votes[k];
  return st;
}
