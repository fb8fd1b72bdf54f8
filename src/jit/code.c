/* SPDX-License-Identifier: Apache-2.0
 * The buffer of code.h. */
#include "jit/code.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"

enum { LEAST_BYTES = 4096, NOP = 0x90 };

void laci_code_clear(laci_code *code) {
  laci_free(code->bytes);
  *code = (laci_code){.limit_bytes = code->limit_bytes};
}

/* Doubles, lest a layer of megabytes be copied at every instruction. */
static bool has_capacity(laci_code *code, size_t more) {
  if (code->failed) return false;
  if (more > code->limit_bytes || code->n > code->limit_bytes - more) {
    code->failed = LAC_UNSUPPORTED;
    return false;
  }
  if (code->n + more <= code->capacity) return true;
  size_t capacity = code->capacity ? 2 * code->capacity : LEAST_BYTES;
  if (capacity < code->n + more) capacity = code->n + more;
  uint8_t *bytes = laci_resize(code->bytes, code->n, capacity, 1);
  if (!bytes) {
    code->failed = LAC_NO_MEMORY;
    return false;
  }
  code->bytes = bytes;
  code->capacity = capacity;
  return true;
}

void laci_code_append(laci_code *code, const void *bytes, size_t n) {
  if (!has_capacity(code, n)) return;
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
    return laci_fail(err, code->failed, "%s: more than %zu bytes of code, the limit", what,
                     code->limit_bytes);
  }
  return LAC_OK;
}
