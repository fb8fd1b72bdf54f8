/* SPDX-License-Identifier: Apache-2.0
 * Memory that is released all at once. It holds what is read from a graph of ONNX Runtime during
 * one call. */
#ifndef LAC_ORT_ARENA_H
#define LAC_ORT_ARENA_H

#include <stddef.h>

typedef struct laci_ort_block laci_ort_block;

typedef struct laci_ort_arena {
  laci_ort_block *blocks;
} laci_ort_arena;

/** Returns n elements of `size` bytes, all zero; NULL: not enough memory. n may be 0. */
void *laci_ort_allocate(laci_ort_arena *arena, size_t n, size_t size);
void laci_ort_arena_clear(laci_ort_arena *arena);

#endif
