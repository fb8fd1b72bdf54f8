/* SPDX-License-Identifier: Apache-2.0
 * Checked allocation of arrays, and an arena for objects that are freed together.
 *
 * All heap memory of the library is allocated here, so that tests can make each allocation fail
 * (laci_memory_fail_from). Counts are checked for overflow; memory is zeroed. Free with laci_free.
 * */
#ifndef LACI_BASE_MEMORY_H
#define LACI_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/** Allocates n elements of `size` bytes, zeroed, 64-byte aligned; NULL when there is no memory or n
 * * size overflows. n == 0 gives a valid pointer. */
void *laci_alloc(size_t n, size_t size);

/** Reallocates an array to n elements, of which the first old_n are kept; the rest is zeroed. The
 * old block is freed on success only. */
void *laci_resize(void *old, size_t old_n, size_t n, size_t size);

void laci_free(void *memory);

/** Are n bytes all 0? */
static inline bool laci_is_zero(const uint8_t *bytes, size_t n) {
  return n == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, n - 1) == 0);
}

/** Makes space for one more element: doubles *capacity when n == *capacity. False when there is no
 * memory. */
bool laci_grow(void **array, size_t n, size_t *capacity, size_t size);

/** Reserves addresses without memory, which can be neither read nor written yet; NULL: no
 * memory. */
void *laci_pages_reserve(size_t size_bytes);
/** Makes a part of a reservation, which begins at a page, readable (as zeros) and writable. False:
 * no memory. */
bool laci_pages_commit(void *part, size_t size_bytes);
/** Frees the memory of a whole reservation, but keeps its addresses reserved. */
void laci_pages_free_memory(void *pages, size_t size_bytes);
/** Asks the system for large pages (2 MiB) where they fit wholly into the part and nothing was
 * written yet; the system may decline. The TLB of a CPU core holds the addresses of a few thousand
 * pages, and small pages of that number cover only a few megabytes. */
void laci_pages_use_huge(void *part, size_t size_bytes);
/** Frees a reservation, addresses and memory; NULL is fine. */
void laci_pages_destroy(const void *pages, size_t size_bytes);

/** Could so much memory be allocated now? Call this before libraries that end the process when they
 * get no memory. The answer holds only as long as no other process allocates memory. */
bool laci_memory_is_available(size_t size_bytes);

/** Returns the peak memory of this process so far, in bytes; 0: the system does not say. */
size_t laci_memory_peak(void);
/** Returns the memory that this process takes now, in bytes; 0: the system does not say. */
size_t laci_memory_resident(void);

/** Makes the n-th allocation from now (1 = the next) and all later ones fail; 0 switches this off.
 * For tests. */
void laci_memory_fail_from(long n);
/** Makes only the n-th allocation from now fail, so that code that ignores the failure is found.
 * For tests. */
void laci_memory_fail_once(long n);
/** Returns the bytes that laci_alloc has allocated so far, freed ones included: a measure of work
 * that is the same in every run. For tests. */
size_t laci_memory_total_allocated(void);
/** Is a requested failure still to come? False where none was requested. */
bool laci_memory_is_failure_pending(void);

/** Chunks of memory that are freed together. Zero-initialized is empty. Not for several threads. */
typedef struct laci_arena {
  struct laci_arena_chunk *chunks;
} laci_arena;

void *laci_arena_alloc(laci_arena *arena, size_t n,
                       size_t size); /* returns n elements of `size` bytes, zeroed, 16-byte aligned;
                                        NULL: no memory */
char *laci_arena_text(laci_arena *arena, const char *text); /* returns a copy of the text; NULL: no
                                                               memory */
char *laci_arena_text_n(laci_arena *arena, const char *text, size_t n_bytes);
void laci_arena_clear(laci_arena *arena);

#endif
