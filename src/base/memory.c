/* SPDX-License-Identifier: Apache-2.0
 * Checked allocation and the arena. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* declares MADV_HUGEPAGE */
#endif
#include "base/memory.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ALIGNMENT = 64, CHUNK_BYTES = 64 * 1024, LARGE_PAGE = 2 << 20 };

static atomic_long fail_countdown; /* 0: off; n: the n-th allocation fails; -1: all fail */
/* value that fail_countdown gets after an allocation was made to fail */
static atomic_long fail_then;

static atomic_size_t taken;

size_t laci_memory_total_allocated(void) { return atomic_load(&taken); }

void laci_memory_fail_from(long n) {
  atomic_store(&fail_then, -1);
  atomic_store(&fail_countdown, n);
}

void laci_memory_fail_once(long n) {
  atomic_store(&fail_then, 0);
  atomic_store(&fail_countdown, n);
}

bool laci_memory_is_failure_pending(void) { return atomic_load(&fail_countdown) > 0; }

static bool should_fail_allocation(void) {
  long left = atomic_load(&fail_countdown);
  if (left == 0) return false;
  if (left < 0) return true;
  if (left == 1) {
    atomic_store(&fail_countdown, atomic_load(&fail_then));
    return true;
  }
  atomic_fetch_sub(&fail_countdown, 1);
  return false;
}

void *laci_alloc(size_t n, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(n, size, &bytes) || bytes > SIZE_MAX / 2 || should_fail_allocation())
    return NULL;
  atomic_fetch_add_explicit(&taken, bytes, memory_order_relaxed);
  /* Large blocks from the system are zeroed already: calloc does not touch their pages. */
  if (bytes >= 1024 * 1024) {
    char *raw = calloc(1, bytes + 2 * ALIGNMENT);
    if (!raw) return NULL;
    char *aligned = (char *)(((uintptr_t)raw + 2 * ALIGNMENT) & ~(uintptr_t)(ALIGNMENT - 1));
    ((void **)aligned)[-1] = raw;
    return aligned;
  }
  char *raw = malloc(bytes + 2 * ALIGNMENT);
  if (!raw) return NULL;
  char *aligned = (char *)(((uintptr_t)raw + 2 * ALIGNMENT) & ~(uintptr_t)(ALIGNMENT - 1));
  ((void **)aligned)[-1] = raw;
  memset(aligned, 0, bytes);
  return aligned;
}

void laci_free(void *memory) {
  if (memory) free(((void **)memory)[-1]);
}

void *laci_resize(void *old, size_t old_n, size_t n, size_t size) {
  void *fresh = laci_alloc(n, size);
  if (!fresh) return NULL;
  if (old) memcpy(fresh, old, (old_n < n ? old_n : n) * size);
  laci_free(old);
  return fresh;
}

bool laci_grow(void **array, size_t n, size_t *capacity, size_t size) {
  if (n < *capacity) return true;
  size_t wanted = *capacity < 8 ? 16 : *capacity * 2;
  void *fresh = laci_resize(*array, n, wanted, size);
  if (!fresh) return false;
  *array = fresh;
  *capacity = wanted;
  return true;
}

void *laci_pages_reserve(size_t size_bytes) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  if (should_fail_allocation()) return NULL;
  void *pages = mmap(NULL, size_bytes, PROT_NONE, flags, -1, 0);
  return pages == MAP_FAILED ? NULL : pages;
}

bool laci_pages_commit(void *part, size_t size_bytes) {
  return !should_fail_allocation() && mprotect(part, size_bytes, PROT_READ | PROT_WRITE) == 0;
}

void laci_pages_free_memory(void *pages, size_t size_bytes) {
  (void)madvise(pages, size_bytes, MADV_DONTNEED);
  (void)mprotect(pages, size_bytes, PROT_NONE);
}

void laci_pages_use_huge(void *part, size_t size_bytes) {
  uintptr_t begin = ((uintptr_t)part + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE;
  uintptr_t end = ((uintptr_t)part + size_bytes) / LARGE_PAGE * LARGE_PAGE;
  if (end > begin) (void)madvise((void *)begin, end - begin, MADV_HUGEPAGE);
}

void laci_pages_destroy(const void *pages, size_t size_bytes) {
  if (pages) (void)munmap((void *)(uintptr_t)pages, size_bytes);
}

bool laci_memory_is_available(size_t size_bytes) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS;
  void *pages = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (pages == MAP_FAILED) return false;
  (void)munmap(pages, size_bytes);
  return true;
}

/* Reads a line such as "VmHWM: 1234 kB" of /proc/self/status. */
static size_t read_process_bytes(const char *key) {
  char line[256];
  unsigned long long kib = 0;
  FILE *status = fopen("/proc/self/status", "re");
  while (status && !kib && fgets(line, sizeof line, status)) {
    if (strncmp(line, key, strlen(key)) == 0) kib = strtoull(line + strlen(key), NULL, 10);
  }
  if (status) (void)fclose(status);
  return (size_t)kib * 1024;
}

/* Does not use getrusage, whose maximum includes the program before exec. */
size_t laci_memory_peak(void) { return read_process_bytes("VmHWM:"); }

size_t laci_memory_resident(void) { return read_process_bytes("VmRSS:"); }

struct laci_arena_chunk {
  struct laci_arena_chunk *next;
  size_t used, size;
  _Alignas(16) char bytes[];
};

void *laci_arena_alloc(laci_arena *arena, size_t n, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(n, size, &bytes) || bytes > SIZE_MAX / 2) return NULL;
  bytes = (bytes + 15) & ~(size_t)15;
  struct laci_arena_chunk *chunk = arena->chunks;
  if (!chunk || chunk->size - chunk->used < bytes) {
    size_t capacity = bytes > CHUNK_BYTES / 4 ? bytes : CHUNK_BYTES;
    struct laci_arena_chunk *fresh = laci_alloc(1, sizeof *fresh + capacity);
    if (!fresh) return NULL;
    fresh->size = capacity;
    if (chunk &&
        capacity == bytes) { /* a chunk for one big block becomes the second in the list, so that
                                the open chunk stays in use */
      fresh->next = chunk->next;
      chunk->next = fresh;
    } else {
      fresh->next = chunk;
      arena->chunks = fresh;
    }
    chunk = fresh;
  }
  void *out = chunk->bytes + chunk->used;
  chunk->used += bytes;
  return out;
}

char *laci_arena_text_n(laci_arena *arena, const char *text, size_t n_bytes) {
  char *copy = laci_arena_alloc(arena, n_bytes + 1, 1);
  if (copy && n_bytes) memcpy(copy, text, n_bytes);
  return copy;
}

char *laci_arena_text(laci_arena *arena, const char *text) {
  return laci_arena_text_n(arena, text, strlen(text));
}

void laci_arena_clear(laci_arena *arena) {
  while (arena->chunks) {
    struct laci_arena_chunk *next = arena->chunks->next;
    laci_free(arena->chunks);
    arena->chunks = next;
  }
}
