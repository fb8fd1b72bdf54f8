/* SPDX-License-Identifier: Apache-2.0
 * The interface of sums. Next: phases.c, which advances them between begin and end. */
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "comm/comm_in.h"
#include "lacuna/plugin.h"

/* ---- Creating ---- */

static lac_status alloc_sum_buffers(laci_comm_sum *s, lac_error *err) {
  const size_t size = (size_t)s->comm->size;
  s->begin = laci_alloc(size + 1, sizeof *s->begin);
  s->chunks = laci_alloc((size_t)laci_comm_chunk_size(s->most, s->comm->size) * size,
                         laci_wire_element_bytes(s->wire));
  bool made = s->begin && s->chunks;
  if (s->wire == LACI_WIRE_BF16) {
    s->packed = laci_alloc((size_t)s->most, sizeof *s->packed);
    made = made && s->packed;
  }
  return made ? LAC_OK : laci_fail_memory(err, "a sum over all processes");
}

lac_status laci_comm_sum_create(laci_comm *comm, int64_t most, laci_wire wire, laci_comm_sum **sum,
                                lac_error *err) {
  *sum = NULL;
  if (comm && most > (int64_t)(LAC_TRANSPORT_MOST / 2 / sizeof(float))) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "a sum of %lld floats: wanted %zu or less",
                     (long long)most, LAC_TRANSPORT_MOST / 2 / sizeof(float));
  }
  laci_comm_sum *s = laci_alloc(1, sizeof *s);
  if (!s) return laci_fail_memory(err, "a sum over all processes");
  s->comm = comm;
  s->most = most;
  s->wire = wire;
  lac_status st = comm ? alloc_sum_buffers(s, err) : LAC_OK;
  if (st) laci_comm_sum_destroy(s);
  else *sum = s;
  return st;
}

/* Drops all sums in progress, and marks the comm as broken. The memory of this sum stays allocated,
 * since the transport may still write to it. */
static void abandon_sums(laci_comm_sum *s) {
  laci_comm *comm = s->comm;
  comm->first = comm->last = NULL;
  comm->broken = true;
}

void laci_comm_sum_destroy(laci_comm_sum *s) {
  if (!s) return;
  if (s->phase != LACI_PHASE_IDLE && s->phase != LACI_PHASE_DONE) {
    abandon_sums(s);
    return;
  }
  laci_free(s->packed);
  laci_free(s->chunks);
  laci_free(s->begin);
  laci_free(s);
}

laci_comm_times laci_comm_sum_times(const laci_comm_sum *sum) { return sum->times; }

/* ---- Functions that the caller uses ---- */

void laci_comm_sum_begin(laci_comm_sum *s, float *x, int64_t n) {
  laci_comm *comm = s->comm;
  s->times.begun = laci_clock_seconds();
  s->x = x;
  s->n = n;
  if (!comm) {
    s->times.exchanged = s->times.done = s->times.begun;
    return;
  }
  laci_comm_announce_operation(comm);
  laci_comm_append_sum_in_progress(comm, s);
}

void laci_comm_advance_sums(laci_comm *comm) {
  if (!comm || !comm->first) return;
  (void)laci_comm_advance_sum_phases(comm);
}

lac_status laci_comm_sum_end(laci_comm_sum *s, lac_error *err) {
  return s->comm ? laci_comm_wait_sum(s->comm, s, err) : LAC_OK;
}
