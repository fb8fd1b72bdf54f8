/* SPDX-License-Identifier: Apache-2.0
 * Places all buffers that live between steps, scratchpads included, in one arena.
 *
 * A buffer occupies [offset, offset + bytes) from its first step to its last. The largest buffer is
 * placed first; each goes to the lowest gap among the buffers placed before it that live at the
 * same time. Placed buffers are kept in one compact array, since all of them are visited for each
 * buffer and a Split may have ten thousand outputs. */
#include <stdlib.h>

#include "base/memory.h"
#include "engine/cpu/plan/plan.h"

enum { LINE = 64 };

static size_t round_to_alignment(size_t bytes) { return (bytes + LINE - 1) & ~(size_t)(LINE - 1); }

/* Orders larger buffers first, and buffers of equal size by their index, so that the plan is the
 * same every time. */
static int compare_buffers(const void *a, const void *b) {
  const laci_buffer *x = *(laci_buffer *const *)a, *y = *(laci_buffer *const *)b;
  if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
  if (x->first != y->first) return x->first < y->first ? -1 : 1;
  return x < y ? -1 : x > y;
}

/** Where a placed buffer is: bytes [offset, end) from step `first` to `last`. */
typedef struct span {
  int first, last;
  size_t offset, end;
} span;

/** Returns the lowest offset at which `buffer` fits among the n placed buffers, which are sorted by
 * offset. */
static size_t find_lowest_gap(const laci_buffer *buffer, const span *placed, size_t n) {
  const size_t bytes = round_to_alignment(buffer->bytes);
  size_t at = 0;
  for (size_t i = 0; i < n; i++) {
    if (buffer->first > placed[i].last || placed[i].first > buffer->last) continue;
    if (placed[i].offset >= at + bytes) break;
    if (placed[i].end > at) at = placed[i].end;
  }
  return at;
}

void laci_plan_place_buffers(laci_cpu_plan *plan, laci_buffer *buffers, size_t n_buffers) {
  if (plan->status) return;
  laci_buffer **order = laci_alloc(n_buffers, sizeof *order);
  span *placed = laci_alloc(n_buffers, sizeof *placed);
  size_t n = 0, n_placed = 0;
  if (!order || !placed) {
    laci_plan_fail_no_memory(plan);
    goto out;
  }
  for (size_t at = 0; at < n_buffers; at++) {
    laci_buffer *buffer = &buffers[at];
    if (buffer->place == LACI_PLACE_ARENA && buffer->first >= 0) order[n++] = buffer;
  }
  qsort(order, n, sizeof *order, compare_buffers);
  for (size_t at = 0; at < n; at++) {
    laci_buffer *buffer = order[at];
    buffer->offset = find_lowest_gap(buffer, placed, n_placed);
    size_t end = buffer->offset + round_to_alignment(buffer->bytes), to = n_placed++;
    for (; to > 0 && placed[to - 1].offset > buffer->offset; to--) placed[to] = placed[to - 1];
    placed[to] = (span){buffer->first, buffer->last, buffer->offset, end};
    if (end > plan->arena_bytes) plan->arena_bytes = end;
  }
out:
  laci_free(order);
  laci_free(placed);
}
