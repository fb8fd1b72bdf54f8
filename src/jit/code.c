/* SPDX-License-Identifier: Apache-2.0
 * The buffer of code.h. */
#include "jit/code.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "cpu/pool.h"

enum { STEP = 64 << 10, LARGE_PAGE = 2 << 20, NOP = 0x90 };

/* Returns the number of addresses to reserve: the limit, and enough more to let the bytes begin at
 * a large page. */
static size_t count_addresses_to_reserve(const laci_code *code) {
  return code->limit_bytes + LARGE_PAGE;
}

void laci_code_clear(laci_code *code) {
  laci_pages_destroy(code->pages, count_addresses_to_reserve(code));
  *code = (laci_code){.limit_bytes = code->limit_bytes};
}

static bool record_failure(laci_code *code, lac_status why) {
  code->failed = why;
  code->capacity = code->n;
  return false;
}

static bool reserve_addresses(laci_code *code) {
  if (code->limit_bytes > SIZE_MAX / 2) return false;
  uint8_t *pages = laci_pages_reserve(count_addresses_to_reserve(code));
  if (!pages) return false;
  code->pages = pages;
  code->bytes = pages + (LARGE_PAGE - (uintptr_t)pages % LARGE_PAGE) % LARGE_PAGE;
  return true;
}

/* Makes more of the reserved memory usable. Large amounts of code get large pages, since a
 * processor core caches the addresses of few instruction pages. */
static bool make_memory_usable(laci_code *code) {
  const size_t left = code->limit_bytes - code->capacity;
  const size_t step = code->capacity < LARGE_PAGE ? STEP : LARGE_PAGE;
  const size_t more = left < step ? left : step;
  laci_pages_use_huge(code->bytes + code->capacity, more);
  if (!laci_pages_commit(code->bytes + code->capacity, more)) return false;
  code->capacity += more;
  return true;
}

bool laci_code_grow(laci_code *code, size_t more) {
  if (code->failed) return false;
  if (more > code->limit_bytes - code->n) return record_failure(code, LAC_UNSUPPORTED);
  if (!code->pages && !reserve_addresses(code)) return record_failure(code, LAC_NO_MEMORY);
  while (code->capacity - code->n < more) {
    if (!make_memory_usable(code)) return record_failure(code, LAC_NO_MEMORY);
  }
  return true;
}

typedef struct touching {
  uint8_t *bytes;
  size_t first, last;
} touching;

/* Writes a byte to every small page of large pages [begin, end); each large page is touched by one
 * thread. */
static void write_to_each_page(int64_t begin, int64_t end, void *context) {
  enum { PAGE = 4096 };
  const touching *t = context;
  size_t at = (size_t)begin * LARGE_PAGE, last = (size_t)end * LARGE_PAGE;
  if (at < t->first) at = t->first;
  if (last > t->last) last = t->last;
  for (; at < last; at += PAGE) t->bytes[at] = 0;
}

void laci_code_prepare_memory(laci_code *code, size_t more, laci_pool *pool) {
  if (!laci_code_reserve(code, more)) return;
  touching t = {code->bytes, code->n, code->n + more};
  const size_t first = t.first / LARGE_PAGE, last = (t.last + LARGE_PAGE - 1) / LARGE_PAGE;
  t.bytes += first * LARGE_PAGE; /* t.bytes: the first large page; t.first and t.last are offsets
                                    from it */
  t.first -= first * LARGE_PAGE;
  t.last -= first * LARGE_PAGE;
  laci_pool_for(pool, (int64_t)(last - first), 1, write_to_each_page, &t);
}

void laci_code_append(laci_code *code, const void *bytes, size_t n) {
  if (!laci_code_reserve(code, n)) return;
  memcpy(code->bytes + code->n, bytes, n);
  code->n += n;
}

void laci_code_align(laci_code *code, size_t bytes) {
  const uint8_t nop = NOP;
  while (!code->failed && code->n % bytes) laci_code_append(code, &nop, 1);
}

lac_status laci_code_status(const laci_code *code, const char *what, lac_error *err) {
  if (code->failed == LAC_NO_MEMORY) return laci_fail_memory(err, what);
  if (code->failed) {
    return laci_fail(err, code->failed, "%s: more than %zu bytes, the limit", what,
                     code->limit_bytes);
  }
  return LAC_OK;
}
