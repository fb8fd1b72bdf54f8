/* SPDX-License-Identifier: Apache-2.0
 * Memory that is released all at once: a list of blocks, each an allocation of its own. */
#include "arena.h"

#include <stdint.h>
#include <stdlib.h>

struct laci_ort_block {
  laci_ort_block *next;
  max_align_t data[];
};

void *laci_ort_allocate(laci_ort_arena *arena, size_t n, size_t size) {
  if (size && n > (SIZE_MAX / 2 - sizeof(laci_ort_block)) / size) return NULL;
  laci_ort_block *block = calloc(1, sizeof *block + n * size);
  if (!block) return NULL;
  block->next = arena->blocks;
  arena->blocks = block;
  return block->data;
}

void laci_ort_arena_clear(laci_ort_arena *arena) {
  while (arena->blocks) {
    laci_ort_block *next = arena->blocks->next;
    free(arena->blocks);
    arena->blocks = next;
  }
}
