/* SPDX-License-Identifier: Apache-2.0
 * Bytes of machine code as they are being made: a buffer that grows up to a limit.
 *
 * A failure (no memory, beyond the limit) stays: nothing more is written, and whoever finishes asks
 * once, laci_code_status. These bytes are data; what runs is a copy (memory.h). Next: x86.h. */
#ifndef LACI_JIT_CODE_H
#define LACI_JIT_CODE_H

#include <stddef.h>
#include <stdint.h>

#include "lacuna/status.h"

/** Zero-initialised with a limit it is empty. Not for several threads. */
typedef struct laci_code {
  uint8_t *bytes;
  size_t n, capacity;
  size_t limit_bytes;
  lac_status failed; /* LAC_OK so far, or why nothing more is written */
} laci_code;

/** Frees the bytes; the limit stays, and so the buffer can be used again. */
void laci_code_clear(laci_code *code);

void laci_code_append(laci_code *code, const void *bytes, size_t n);
/** Fills up with one-byte instructions that do nothing until n is a multiple of `bytes`. */
void laci_code_align(laci_code *code, size_t bytes);

/** LAC_OK, LAC_NO_MEMORY, or LAC_UNSUPPORTED beyond the limit, with a text that begins with
 * `what`. */
LAC_MUST_CHECK lac_status laci_code_status(const laci_code *code, const char *what, lac_error *err);

#endif
