/* SPDX-License-Identifier: Apache-2.0
 * The memory of cache.h. The pages of code are made readable and executable in one step. */
#include "jit/cache.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/error.h"
#include "base/memory.h"

enum { LINE = 64 }; /* bytes of a cache line */

struct laci_code_cache {
  laci_code code, data;
  bool sealed;
};

lac_status laci_code_cache_create(size_t limit_bytes, laci_code_cache **cache, lac_error *err) {
  *cache = laci_alloc(1, sizeof **cache);
  if (!*cache) return laci_fail_memory(err, "a cache of generated code");
  (*cache)->code.limit_bytes = (*cache)->data.limit_bytes = limit_bytes;
  return LAC_OK;
}

void laci_code_cache_destroy(laci_code_cache *cache) {
  if (!cache) return;
  laci_code_clear(&cache->code);
  laci_code_clear(&cache->data);
  laci_free(cache);
}

laci_code *laci_code_cache_get_writable(laci_code_cache *cache) {
  return cache->sealed ? NULL : &cache->code;
}

lac_status laci_code_cache_alloc_data(laci_code_cache *cache, size_t bytes, void **data,
                                      lac_error *err) {
  const size_t rounded = (bytes / LINE + 1) * LINE;
  *data = NULL;
  if (laci_code_reserve(&cache->data, rounded)) {
    *data = cache->data.bytes + cache->data.n;
    cache->data.n += rounded;
  }
  return laci_code_status(&cache->data, "data of generated code", err);
}

lac_status laci_code_cache_seal(laci_code_cache *cache, lac_error *err) {
  const laci_code *code = &cache->code;
  lac_status st = laci_code_status(code, "generated code", err);
  if (st) return st;
  /* All pages are made executable at once, since a limit inside a large page would split it into
   * many small ones. */
  if (code->n && mprotect(code->bytes, code->capacity, PROT_READ | PROT_EXEC) != 0) {
    return laci_fail(err, LAC_UNSUPPORTED, "generated code: memory cannot be made executable: %s",
                     strerror(errno));
  }
  __builtin___clear_cache((char *)code->bytes, (char *)code->bytes + code->n);
  cache->sealed = true;
  return LAC_OK;
}

void *laci_code_cache_find_function(const laci_code_cache *cache, size_t entry) {
  return cache->code.bytes + entry;
}

size_t laci_code_cache_code_bytes(const laci_code_cache *cache) { return cache->code.n; }
size_t laci_code_cache_data_bytes(const laci_code_cache *cache) { return cache->data.n; }
