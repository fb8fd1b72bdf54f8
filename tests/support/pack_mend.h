/* SPDX-License-Identifier: Apache-2.0
 * Corrects the checksums of a damaged pack, as an attacker would: a pack that then opens must be
 * safe to read. */
#ifndef TESTS_SUPPORT_PACK_MEND_H
#define TESTS_SUPPORT_PACK_MEND_H

#include <stddef.h>
#include <string.h>

#include "base/hash.h"
#include "pack/format_in.h"

/** Corrects all checksums, except of sections or a directory that are out of bounds. */
static inline void pack_mend(uint8_t *bytes, size_t n) {
  pack_tail tail;
  if (n < sizeof(pack_head) + sizeof tail) return;
  uint64_t hash = laci_hash64(bytes, offsetof(pack_head, hash), 0);
  memcpy(bytes + offsetof(pack_head, hash), &hash, sizeof hash);
  memcpy(&tail, bytes + n - sizeof tail, sizeof tail);
  if (tail.directory_at < n && tail.n_sections <= (n - tail.directory_at) / sizeof(pack_section)) {
    for (uint64_t at = 0; at < tail.n_sections; at++) {
      uint8_t *place = bytes + tail.directory_at + at * sizeof(pack_section);
      pack_section section;
      memcpy(&section, place, sizeof section);
      if (section.offset > n || section.size_bytes > n - section.offset) continue;
      section.hash = laci_hash64(bytes + section.offset, (size_t)section.size_bytes, 0);
      memcpy(place, &section, sizeof section);
    }
    tail.directory_hash =
        laci_hash64(bytes + tail.directory_at, (size_t)tail.n_sections * sizeof(pack_section), 0);
  }
  tail.hash = laci_hash64(&tail, offsetof(pack_tail, hash), 0);
  memcpy(bytes + n - sizeof tail, &tail, sizeof tail);
}

#endif
