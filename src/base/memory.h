/* SPDX-License-Identifier: Apache-2.0
 * Memory: checked allocation of arrays, and an arena for things that live and die together.
 *
 * All heap memory of the library comes through here, so that tests can make each allocation fail
 * (laci_memory_fail_at). Counts are checked for overflow; results are zeroed. Free with
 * laci_free. */
#ifndef LACI_BASE_MEMORY_H
#define LACI_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/** n elements of `size` bytes, zeroed, 64-byte aligned; NULL when there is no memory or n * size
 * overflows. n == 0 gives a valid pointer. */
void *laci_alloc(size_t n, size_t size);

/** Memory for n elements, of which the first old_n are kept; the rest is zeroed. The old
 * block is freed on success only. */
void *laci_resize(void *old, size_t old_n, size_t n, size_t size);

void laci_free(void *memory);

/** Are n bytes all 0? */
static inline bool laci_is_zero(const uint8_t *bytes, size_t n) {
  return n == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, n - 1) == 0);
}

/** Makes sure of memory for one more element: doubles *capacity when n == *capacity. False when
 * there is no memory. */
bool laci_grow(void **array, size_t n, size_t *capacity, size_t size);

/** Addresses without memory, which can neither be read nor written yet; NULL: no memory. */
void *laci_pages_reserve(size_t size_bytes);
/** A part of what was reserved, which begins with a page, may be read (zeros) and written. False:
 * no memory. */
bool laci_pages_allow(void *part, size_t size_bytes);
/** All that was reserved is as it was at first. */
void laci_pages_withdraw(void *pages, size_t size_bytes);
/** Asks for large pages (2 MiB) where they fit into the part wholly and nothing was written yet: a
 * core remembers where a few thousand pages are, and with small ones that is a few megabytes. The
 * system may decline. */
void laci_pages_enlarge(void *part, size_t size_bytes);
/** NULL is fine. */
void laci_pages_destroy(const void *pages, size_t size_bytes);

/** Could so much be taken just now? Asked before work is handed to libraries that end the process
 * where they get no memory. It holds for as long as no other process takes any. */
bool laci_memory_is_available(size_t size_bytes);

/** The most memory that this process has had so far, in bytes; 0: the system does not say. */
size_t laci_memory_peak(void);

/** The n-th allocation from now fails (1 = the next), and all after it; 0 switches this off. For
 * tests. */
void laci_memory_fail_at(long n);
/** The n-th allocation from now fails, and none after it: what goes on as if it had not shows. For
 * tests. */
void laci_memory_fail_once(long n);
/** Bytes that laci_alloc has given so far, those freed since among them: what work costs grows with
 * it, and it is the same every time. For tests. */
size_t laci_memory_taken(void);
/** Is the failure still to come? False where none was asked for. */
bool laci_memory_fail_pending(void);

/** Chunks of memory that are freed together. Zero-initialised is empty. Not for several threads. */
typedef struct laci_arena {
  struct laci_arena_chunk *chunks;
} laci_arena;

void *laci_arena_alloc(laci_arena *arena, size_t n,
                       size_t size); /* zeroed, 16-byte aligned; NULL: no memory */
char *laci_arena_text(laci_arena *arena, const char *text); /* copy; NULL: no memory */
char *laci_arena_text_n(laci_arena *arena, const char *text, size_t n_bytes);
void laci_arena_clear(laci_arena *arena);

#endif
