/* SPDX-License-Identifier: Apache-2.0
 * Advances sums through their phases: exchange of chunks, addition, gathering of the results. Each
 * phase begins when the one before is done, during any call that polls.
 *
 * Exchanges begin in the order in which the caller begins the sums, and gatherings begin in that
 * order, too: a sum whose chunks arrive early waits for the sums before it. So each channel has the
 * same order of messages on all processes, however fast each of them is. */
#include "base/clock.h"
#include "comm/comm_in.h"
#include "lacuna/plugin.h"

enum { CHUNK_ALIGNMENT = 16 }; /* number of floats in a cache line, at which chunks begin */

int64_t laci_comm_chunk_size(int64_t n, int size) {
  int64_t each = (n + size - 1) / size;
  return (each + CHUNK_ALIGNMENT - 1) / CHUNK_ALIGNMENT * CHUNK_ALIGNMENT;
}

size_t laci_wire_element_bytes(laci_wire wire) {
  return wire == LACI_WIRE_BF16 ? sizeof(uint16_t) : sizeof(float);
}

/* ---- Phases ---- */

static void compute_chunk_ranges(laci_comm_sum *s) {
  const int size = s->comm->size, rank = s->comm->rank;
  const int64_t chunk = laci_comm_chunk_size(s->n, size);
  const size_t each = laci_wire_element_bytes(s->wire);
  for (int k = 0; k <= size; k++) {
    s->begin[k] = (size_t)(k * chunk < s->n ? k * chunk : s->n) * each;
  }
  s->first = (int64_t)(s->begin[rank] / each);
  s->count = (int64_t)(s->begin[rank + 1] / each) - s->first;
}

static void *buffer_in_wire_format(const laci_comm_sum *s) {
  return s->wire == LACI_WIRE_BF16 ? (void *)s->packed : (void *)s->x;
}

static void begin_exchanging_chunks(laci_comm_sum *s) {
  const lac_transport *t = s->comm->transport;
  compute_chunk_ranges(s);
  if (s->wire == LACI_WIRE_BF16) laci_comm_to_bf16(s->x, s->n, s->packed);
  s->phase = LACI_PHASE_EXCHANGING;
  if (t->exchange(t->self, CHANNEL_EXCHANGE, buffer_in_wire_format(s), s->begin, s->chunks,
                  &s->request))
    s->comm->broken = true;
}

static void sum_chunks_of_processes(laci_comm_sum *s) {
  const int size = s->comm->size;
  if (s->wire == LACI_WIRE_BF16) {
    laci_comm_sum_parts_bf16(s->chunks, size, s->count, s->packed + s->first);
  } else {
    laci_comm_sum_parts_f32(s->chunks, size, s->count, s->x + s->first);
  }
}

static void begin_gathering_sums(laci_comm_sum *s) {
  const lac_transport *t = s->comm->transport;
  s->phase = LACI_PHASE_GATHERING;
  if (t->gather(t->self, CHANNEL_GATHER, buffer_in_wire_format(s), s->begin, &s->request))
    s->comm->broken = true;
}

/* Is the request of this sum done now? Marks the comm as broken if it failed. */
static bool is_request_done(laci_comm_sum *s) {
  const lac_transport *t = s->comm->transport;
  int answer = t->test(t->self, &s->request);
  if (answer < 0) s->comm->broken = true;
  return answer == 1;
}

/* Advances a sum by one phase if that needs no waiting; true: it advanced. may_gather: all sums
 * begun before it have begun to gather. */
static bool advance_sum(laci_comm_sum *s, bool may_gather) {
  if (s->phase == LACI_PHASE_EXCHANGING && is_request_done(s)) {
    s->times.exchanged = laci_clock_seconds();
    sum_chunks_of_processes(s);
    s->phase = LACI_PHASE_EXCHANGED;
    if (may_gather) begin_gathering_sums(s);
    return true;
  }
  if (s->phase == LACI_PHASE_EXCHANGED && may_gather) {
    begin_gathering_sums(s);
    return true;
  }
  if (s->phase == LACI_PHASE_GATHERING && is_request_done(s)) {
    if (s->wire == LACI_WIRE_BF16) laci_comm_from_bf16(s->packed, s->n, s->x);
    s->times.done = laci_clock_seconds();
    s->phase = LACI_PHASE_DONE;
    return true;
  }
  return false;
}

bool laci_comm_advance_sum_phases(laci_comm *comm) {
  bool moved = false, may_gather = true;
  for (laci_comm_sum *s = comm->first; s && !comm->broken; s = s->next) {
    moved = advance_sum(s, may_gather) || moved;
    may_gather = may_gather && s->phase >= LACI_PHASE_GATHERING;
  }
  while (comm->first && comm->first->phase == LACI_PHASE_DONE) comm->first = comm->first->next;
  if (!comm->first) comm->last = NULL;
  return moved;
}

void laci_comm_append_sum_in_progress(laci_comm *comm, laci_comm_sum *s) {
  s->next = NULL;
  if (comm->last) comm->last->next = s;
  else comm->first = s;
  comm->last = s;
  if (!comm->broken) begin_exchanging_chunks(s);
}
