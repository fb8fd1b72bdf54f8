/* SPDX-License-Identifier: Apache-2.0
 * Memory of a bench that times kernels: as the engine's arena has it. */
#ifndef BENCH_LARGE_PAGES_H
#define BENCH_LARGE_PAGES_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { LARGE_PAGE = 2 << 20 };

static inline size_t large_pages_bytes(size_t n, size_t size) {
  return (n * size / LARGE_PAGE + 1) * LARGE_PAGE;
}

/* In large pages where the system has them: CHW reads channels far apart. The zeros are written,
 * since pages never written to would all be the same page. Freed at the end of the program; without
 * memory the program ends here. */
static inline void *large_pages(size_t n, size_t size) {
  const size_t bytes = large_pages_bytes(n, size);
  char *pages = laci_pages_reserve(bytes + LARGE_PAGE);
  if (pages) pages += LARGE_PAGE - (uintptr_t)pages % LARGE_PAGE;
  if (!pages || !laci_pages_commit(pages, bytes)) {
    (void)fprintf(stderr, "not enough memory\n");
    exit(1);
  }
  laci_pages_use_huge(pages, bytes);
  memset(pages, 0, bytes);
  return pages;
}

/* Before that. */
static inline void large_pages_give_back(const void *pages, size_t n, size_t size) {
  laci_pages_destroy(pages, large_pages_bytes(n, size));
}

#endif
