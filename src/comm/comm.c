/* SPDX-License-Identifier: Apache-2.0
 * Opens and closes a comm. Next: meet.c, sum.c, launch.c. */
#include "comm/comm.h"

#include <math.h>

#include "base/error.h"
#include "base/memory.h"
#include "comm/comm_in.h"
#include "lacuna/plugin.h"

/* ---- Opening ---- */

static lac_status alloc_comm_buffers(laci_comm *c, lac_error *err) {
  const size_t size = (size_t)c->size;
  c->heard = laci_alloc(size, sizeof *c->heard);
  c->peers = laci_alloc(size, sizeof *c->peers);
  c->begin = laci_alloc(size + 1, sizeof *c->begin);
  c->votes = laci_alloc(size, sizeof *c->votes);
  c->statuses = laci_alloc(size, sizeof *c->statuses);
  bool made = c->heard && c->peers && c->begin && c->votes && c->statuses;
  return made ? LAC_OK : laci_fail_memory(err, "a list of all processes");
}

/* Exchanges with all processes the identity of each: its process id, and the machine on which it
 * runs. */
static lac_status exchange_process_ids(laci_comm *c, lac_error *err) {
  const laci_peer ours = laci_peer_describe_self();
  return laci_comm_gather(c, &ours, sizeof ours, c->peers, err);
}

static void clear_comm(laci_comm *c) {
  laci_free(c->heard);
  laci_free(c->statuses);
  laci_free(c->peers);
  laci_free(c->begin);
  laci_free(c->votes);
  laci_free(c);
}

lac_status laci_comm_open_transport(const lac_transport *transport,
                                    const laci_comm_options *options, laci_comm **comm,
                                    lac_error *err) {
  *comm = NULL;
  laci_comm *c = laci_alloc(1, sizeof *c);
  if (!c) {
    transport->end(transport->self, 1);
    return laci_fail_memory(err, "a group of processes");
  }
  c->transport = transport;
  c->rank = transport->rank;
  c->size = transport->size;
  c->timeout = options->timeout;
  lac_status st = alloc_comm_buffers(c, err);
  if (!st) st = exchange_process_ids(c, err);
  *comm = c;
  return st;
}

lac_status laci_comm_open(const laci_comm_options *options, laci_comm **comm, lac_error *err) {
  const lac_transport *transport;
  *comm = NULL;
  lac_status st = laci_comm_find_launched_transport(&transport, err);
  return st || !transport ? st : laci_comm_open_transport(transport, options, comm, err);
}

/* Waits until all processes close the comm (this group of processes). True: all do, so that the
 * transport can be closed in order. The wait is here, with a timeout, since the transport itself
 * would wait forever for a lost process. */
static bool wait_for_close(laci_comm *c, lac_status ended) {
  static const double MOST_S = 30; /* limit of the wait after a failure, in seconds; the other
                                      processes then only have to report the failure */
  void *request = NULL;
  c->timeout = !ended ? INFINITY : c->timeout < MOST_S ? c->timeout : MOST_S;
  for (int k = 0; k <= c->size; k++) c->begin[k] = (size_t)k * sizeof *c->votes;
  int begun =
      c->transport->gather(c->transport->self, CHANNEL_MEETING, c->votes, c->begin, &request);
  return !begun && laci_comm_wait_request(c, &request, NULL) == LAC_OK;
}

void laci_comm_close(laci_comm *c, lac_status ended) {
  if (!c) return;
  if (ended == LAC_PEER) laci_comm_wait_for_process_0(c);
  bool all_know = !ended || (c->agreed && ended != LAC_PEER);
  bool in_order = all_know && wait_for_close(c, ended);
  c->transport->end(c->transport->self, in_order ? 0 : 1);
  clear_comm(c);
}

int laci_comm_rank(const laci_comm *c) { return c ? c->rank : 0; }
int laci_comm_size(const laci_comm *c) { return c ? c->size : 1; }
const char *laci_comm_transport(const laci_comm *c) { return c ? c->transport->name : "none"; }
bool laci_comm_is_failure_known_to_all(const laci_comm *c) { return !c || c->agreed; }

void laci_comm_set_timeout(laci_comm *c, double seconds) {
  if (c) c->timeout = seconds;
}
