/* SPDX-License-Identifier: Apache-2.0
 * Pages for cache.h: reserved, written, then turned to read and execute in one step. */
#include "jit/cache.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/error.h"
#include "base/memory.h"

enum { PAGE = 4096, LARGE_PAGE = 2 << 20 };

struct laci_code_cache {
  laci_code code; /* until it is sealed */
  uint8_t *pages, *begin;
  size_t pages_bytes, n;
};

lac_status laci_code_cache_create(size_t limit_bytes, laci_code_cache **cache, lac_error *err) {
  *cache = laci_alloc(1, sizeof **cache);
  if (!*cache) return laci_fail_memory(err, "a cache of generated code");
  (*cache)->code.limit_bytes = limit_bytes;
  return LAC_OK;
}

void laci_code_cache_destroy(laci_code_cache *cache) {
  if (!cache) return;
  laci_code_clear(&cache->code);
  laci_pages_destroy(cache->pages, cache->pages_bytes);
  laci_free(cache);
}

laci_code *laci_code_cache_open(laci_code_cache *cache) {
  return cache->begin ? NULL : &cache->code;
}

/* Much code begins with a large page: a core looks up few pages of instructions quickly. */
static lac_status take_pages(laci_code_cache *cache, lac_error *err) {
  const size_t n = cache->code.n, bytes = (n + PAGE - 1) / PAGE * PAGE + (n == 0 ? PAGE : 0);
  const size_t aligned = bytes >= LARGE_PAGE ? LARGE_PAGE : PAGE;
  uint8_t *pages = laci_pages_reserve(bytes + aligned);
  if (!pages) return laci_fail_memory(err, "generated code");
  cache->pages = pages;
  cache->pages_bytes = bytes + aligned;
  uint8_t *begin = pages + (aligned - (uintptr_t)pages % aligned) % aligned;
  if (!laci_pages_allow(begin, bytes)) return laci_fail_memory(err, "generated code");
  laci_pages_enlarge(begin, bytes);
  if (n) memcpy(begin, cache->code.bytes, n);
  if (mprotect(begin, bytes, PROT_READ | PROT_EXEC) != 0) {
    return laci_fail(err, LAC_UNSUPPORTED, "generated code: memory cannot be made executable: %s",
                     strerror(errno));
  }
  __builtin___clear_cache((char *)begin, (char *)begin + n);
  cache->begin = begin;
  cache->n = n;
  return LAC_OK;
}

lac_status laci_code_cache_seal(laci_code_cache *cache, lac_error *err) {
  lac_status st = laci_code_status(&cache->code, "generated code", err);
  if (!st) st = take_pages(cache, err);
  if (!st) laci_code_clear(&cache->code);
  return st;
}

void *laci_code_cache_at(const laci_code_cache *cache, size_t entry) {
  return cache->begin + entry;
}

size_t laci_code_cache_size(const laci_code_cache *cache) {
  return cache->begin ? cache->n : cache->code.n;
}
