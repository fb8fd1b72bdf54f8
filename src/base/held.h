/* SPDX-License-Identifier: Apache-2.0
 * Bytes that have an address, but may not be in memory (base/reader.h): whoever wants them holds
 * them for a while. What is in memory anyway is held where it is; else it is a copy, which goes
 * with laci_let_go. So large tensors take memory while they are looked at, and no longer.
 *
 *   laci_held held;
 *   st = laci_hold_bytes(graph->bytes_from, stored->bytes, stored->size_bytes, stored->name,
 *                        &held, err);
 *   if (!st) look(held.bytes);
 *   laci_let_go(&held); */
#ifndef LACI_BASE_HELD_H
#define LACI_BASE_HELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lacuna/status.h"

/** Who knows where bytes are. All zero: they are in memory, where their address says. */
typedef struct laci_byte_source {
  /** Copies n bytes. Any thread, and several at once. */
  lac_status (*fetch)(void *context, const uint8_t *bytes, size_t n, void *to, lac_error *err);
  /** Are they in memory, and stay there? Any thread. */
  bool (*is_there)(void *context, const uint8_t *bytes, size_t n);
  void *context;
} laci_byte_source;

/** Zero-initialised holds nothing. */
typedef struct laci_held {
  const uint8_t *bytes;
  void *copy; /* NULL: they are where they were */
} laci_held;

/** from NULL: all is in memory. name: for messages. Fails LAC_NO_MEMORY, and as fetch does; *held
 * is empty then. Any thread. */
LAC_MUST_CHECK lac_status laci_hold_bytes(const laci_byte_source *from, const uint8_t *bytes,
                                          size_t n, const char *name, laci_held *held,
                                          lac_error *err);
/** An empty one is fine, and it is empty afterwards. */
void laci_let_go(laci_held *held);

/** Would holding them be a copy? */
bool laci_must_be_fetched(const laci_byte_source *from, const uint8_t *bytes, size_t n);

#endif
