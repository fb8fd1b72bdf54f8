/* SPDX-License-Identifier: Apache-2.0
 * Implements acquire.h. */
#include "base/acquire.h"

#include "base/error.h"
#include "base/memory.h"

bool laci_bytes_need_copy(const laci_byte_source *from, const uint8_t *bytes, size_t n) {
  return n > 0 && from && from->fetch && !from->is_there(from->context, bytes, n);
}

lac_status laci_bytes_acquire(const laci_byte_source *from, const uint8_t *bytes, size_t n,
                              const char *name, laci_acquired_bytes *held, lac_error *err) {
  *held = (laci_acquired_bytes){.bytes = bytes};
  if (!laci_bytes_need_copy(from, bytes, n)) return LAC_OK;
  *held = (laci_acquired_bytes){.copy = laci_alloc(n, 1)};
  if (!held->copy) return laci_fail_memory(err, name);
  held->bytes = held->copy;
  lac_status st = from->fetch(from->context, bytes, n, held->copy, err);
  if (st) laci_bytes_release(held);
  return st;
}

void laci_bytes_release(laci_acquired_bytes *held) {
  laci_free(held->copy);
  *held = (laci_acquired_bytes){0};
}
