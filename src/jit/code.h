/* SPDX-License-Identifier: Apache-2.0
 * Bytes of machine code, or of what it reads, as they are being made: a buffer that grows up to a
 * limit.
 *
 * Addresses are reserved for all of the limit at once and pages are taken as code grows into them,
 * so that bytes never move: what is to run is not copied (cache.h). A failure (no memory, beyond
 * the limit) stays: nothing more is written, and whoever finishes asks once, laci_code_status.
 * Next: x86.h. */
#ifndef LACI_JIT_CODE_H
#define LACI_JIT_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lacuna/status.h"

typedef struct laci_pool laci_pool;

/** Zero-initialised with a limit it is empty. Not for several threads. */
typedef struct laci_code {
  uint8_t *bytes;
  size_t n, capacity; /* after a failure there is no capacity left */
  size_t limit_bytes;
  void *pages;       /* reserved; bytes begin with a large one of them */
  lac_status failed; /* LAC_OK so far, or why nothing more is written */
} laci_code;

/** Gives the bytes back; the limit stays, and so the buffer can be used again. */
void laci_code_clear(laci_code *code);

bool laci_code_grow(laci_code *code, size_t more);
/** May so many more bytes be written after the n that are there? False: it failed. */
static inline bool laci_code_reserve(laci_code *code, size_t more) {
  return more <= code->capacity - code->n || laci_code_grow(code, more);
}

/** Takes memory for so many more bytes at once, cleared by all threads of the pool; for who will
 * write as much at least. That is most of what code costs: it is written faster than the system
 * clears pages for it. */
void laci_code_prepare(laci_code *code, size_t more, laci_pool *pool);

void laci_code_append(laci_code *code, const void *bytes, size_t n);
/** Fills up with one-byte instructions that do nothing until n is a multiple of `bytes`. */
void laci_code_align(laci_code *code, size_t bytes);

/** LAC_OK, LAC_NO_MEMORY, or LAC_UNSUPPORTED beyond the limit, with a text that begins with
 * `what`. */
LAC_MUST_CHECK lac_status laci_code_status(const laci_code *code, const char *what, lac_error *err);

#endif
