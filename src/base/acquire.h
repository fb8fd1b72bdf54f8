/* SPDX-License-Identifier: Apache-2.0
 * Access to bytes that have an address but may not be in memory (base/reader.h): a caller holds
 * them while it reads them. Bytes in memory are used in place; others are copied, and
 * laci_bytes_release frees the copy. So large tensors take memory only while they are used.
 *
 *   laci_acquired_bytes held;
 *   st = laci_bytes_acquire(graph->bytes_from, stored->bytes, stored->size_bytes, stored->name,
 *                        &held, err);
 *   if (!st) look(held.bytes);
 *   laci_bytes_release(&held); */
#ifndef LACI_BASE_ACQUIRE_H
#define LACI_BASE_ACQUIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lacuna/status.h"

/** Where laci_bytes_acquire gets bytes from. Zero-initialized: all bytes are in memory at their
 * addresses. */
typedef struct laci_byte_source {
  /** Copies n bytes to `to`. Several threads may call it at once. */
  lac_status (*fetch)(void *context, const uint8_t *bytes, size_t n, void *to, lac_error *err);
  /** Are the bytes in memory, and will they stay there? Callable from any thread. */
  bool (*is_there)(void *context, const uint8_t *bytes, size_t n);
  void *context;
} laci_byte_source;

/** Bytes that a caller holds (laci_bytes_acquire); zero-initialized, it holds none. */
typedef struct laci_acquired_bytes {
  const uint8_t *bytes;
  void *copy; /* allocated copy that `bytes` points to; NULL: the bytes are used in place */
} laci_acquired_bytes;

/** Gives the caller access to n bytes until laci_bytes_release: in place if they are in memory,
 * else as a copy. from NULL: all bytes are in memory. name: for messages. Fails LAC_NO_MEMORY, and
 * as fetch does; *held is empty then. Callable from any thread. */
LAC_MUST_CHECK lac_status laci_bytes_acquire(const laci_byte_source *from, const uint8_t *bytes,
                                             size_t n, const char *name, laci_acquired_bytes *held,
                                             lac_error *err);
/** Frees the copy, if there is one; *held is empty afterwards. An empty one is fine. */
void laci_bytes_release(laci_acquired_bytes *held);

/** Would laci_bytes_acquire copy the bytes? */
bool laci_bytes_need_copy(const laci_byte_source *from, const uint8_t *bytes, size_t n);

#endif
