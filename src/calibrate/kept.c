/* SPDX-License-Identifier: Apache-2.0
 * A cache of a network's outputs on batches of samples, for the next comparison with it. A batch is
 * identified by its first sample and its size; cached outputs have the bits that a new run gives.
 * Next: outputs.c. */
#include "calibrate/kept_in.h"

#include "base/memory.h"

typedef struct batch {
  int64_t first, n;
  uint8_t *outputs; /* all outputs of the network for the batch, one after the other */
} batch;

struct laci_kept_outputs {
  uint64_t most_bytes, bytes;
  size_t n, capacity, next; /* n: number of batches; next: index after the batch found last, where
                               the next search begins */
  batch *batches;
};

laci_kept_outputs *laci_kept_outputs_create(uint64_t most_bytes) {
  laci_kept_outputs *kept = laci_alloc(1, sizeof *kept);
  if (kept) *kept = (laci_kept_outputs){.most_bytes = most_bytes};
  return kept;
}

void laci_kept_outputs_destroy(laci_kept_outputs *kept) {
  if (!kept) return;
  for (size_t k = 0; k < kept->n; k++) laci_free(kept->batches[k].outputs);
  laci_free(kept->batches);
  laci_free(kept);
}

const uint8_t *laci_kept_outputs_find(laci_kept_outputs *kept, int64_t first, int64_t n) {
  if (!kept) return NULL;
  for (size_t k = 0; k < kept->n; k++) {
    const size_t at = (kept->next + k) % kept->n;
    const batch *b = &kept->batches[at];
    if (b->first != first || b->n != n) continue;
    kept->next = at + 1;
    return b->outputs;
  }
  return NULL;
}

uint8_t *laci_kept_outputs_add(laci_kept_outputs *kept, int64_t first, int64_t n, uint64_t bytes) {
  if (!kept || bytes > kept->most_bytes - kept->bytes) return NULL;
  if (!laci_grow((void **)&kept->batches, kept->n, &kept->capacity, sizeof *kept->batches))
    return NULL;
  uint8_t *outputs = laci_alloc((size_t)bytes + 1, 1);
  if (!outputs) return NULL;
  kept->batches[kept->n++] = (batch){first, n, outputs};
  kept->bytes += bytes;
  return outputs;
}
