/* SPDX-License-Identifier: Apache-2.0
 * A cache of a network's outputs on batches of samples, for the next comparison with it. A batch is
 * identified by its first sample and its size; cached outputs have the bits that a new run gives.
 * Next: outputs.c. */
#include "calibrate/output_cache_in.h"

#include "base/memory.h"

typedef struct batch {
  int64_t first, n;
  uint8_t *outputs; /* all outputs of the network for the batch, one after the other */
} batch;

struct laci_output_cache {
  uint64_t most_bytes, bytes;
  size_t n, capacity, next; /* n: number of batches; next: index after the batch found last, where
                               the next search begins */
  batch *batches;
};

laci_output_cache *laci_output_cache_create(uint64_t most_bytes) {
  laci_output_cache *cache = laci_alloc(1, sizeof *cache);
  if (cache) *cache = (laci_output_cache){.most_bytes = most_bytes};
  return cache;
}

void laci_output_cache_destroy(laci_output_cache *cache) {
  if (!cache) return;
  for (size_t k = 0; k < cache->n; k++) laci_free(cache->batches[k].outputs);
  laci_free(cache->batches);
  laci_free(cache);
}

const uint8_t *laci_output_cache_find(laci_output_cache *cache, int64_t first, int64_t n) {
  if (!cache) return NULL;
  for (size_t k = 0; k < cache->n; k++) {
    const size_t at = (cache->next + k) % cache->n;
    const batch *b = &cache->batches[at];
    if (b->first != first || b->n != n) continue;
    cache->next = at + 1;
    return b->outputs;
  }
  return NULL;
}

uint8_t *laci_output_cache_add(laci_output_cache *cache, int64_t first, int64_t n, uint64_t bytes) {
  if (!cache || bytes > cache->most_bytes - cache->bytes) return NULL;
  if (!laci_grow((void **)&cache->batches, cache->n, &cache->capacity, sizeof *cache->batches))
    return NULL;
  uint8_t *outputs = laci_alloc((size_t)bytes + 1, 1);
  if (!outputs) return NULL;
  cache->batches[cache->n++] = (batch){first, n, outputs};
  cache->bytes += bytes;
  return outputs;
}
