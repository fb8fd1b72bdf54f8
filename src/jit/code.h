/* SPDX-License-Identifier: Apache-2.0
 * A buffer in which machine code, or the data it reads, is built; it grows up to a limit.
 *
 * Addresses are reserved for the whole limit at once, and pages are used as code grows into them.
 * So bytes never move, and code does not have to be copied before it runs (cache.h). A failure (no
 * memory, or beyond the limit) is permanent: nothing more is written, and the caller asks once at
 * the end, by laci_code_status. Read next: x86.h. */
#ifndef LACI_JIT_CODE_H
#define LACI_JIT_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lacuna/status.h"

typedef struct laci_pool laci_pool;

/** The buffer. Initialize it to zeros with a limit; it is then empty. Not for use by several
 * threads at once. */
typedef struct laci_code {
  uint8_t *bytes;
  size_t n, capacity; /* bytes that are written; bytes that can be written, 0 after a failure */
  size_t limit_bytes;
  void *pages;       /* the reserved memory; `bytes` begins at its first large page */
  lac_status failed; /* LAC_OK, or why nothing more is written */
} laci_code;

/** Frees the memory; the limit stays, so that the buffer can be used again. */
void laci_code_clear(laci_code *code);

bool laci_code_grow(laci_code *code, size_t more);
/** Makes room for `more` bytes after the n bytes that are written. Returns false after a failure.
 */
static inline bool laci_code_reserve(laci_code *code, size_t more) {
  return more <= code->capacity - code->n || laci_code_grow(code, more);
}

/** Makes at least `more` bytes usable at once, for callers that will write about that much; all
 * threads of the pool clear the pages. Clearing is most of the time that writing code takes: the
 * system clears pages more slowly than code is written. */
void laci_code_prepare_memory(laci_code *code, size_t more, laci_pool *pool);

void laci_code_append(laci_code *code, const void *bytes, size_t n);
/** Appends one-byte no-operations until the number of written bytes is a multiple of `bytes`. */
void laci_code_align(laci_code *code, size_t bytes);

/** Returns LAC_OK, LAC_NO_MEMORY, or LAC_UNSUPPORTED if the limit was exceeded. The error's text
 * begins with `what`. */
LAC_MUST_CHECK lac_status laci_code_status(const laci_code *code, const char *what, lac_error *err);

#endif
