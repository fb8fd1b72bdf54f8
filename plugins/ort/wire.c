/* SPDX-License-Identifier: Apache-2.0
 * Protobuf's wire format. A message's length comes before it, and is written when it ends, in a
 * fixed number of bytes: longer than needed is allowed. */
#include "wire.h"

#include <stdlib.h>
#include <string.h>

enum { LENGTH_BYTES = 5, VARINT_BYTES = 10, AS_VARINT = 0, AS_BYTES = 2, AS_32_BITS = 5 };

static uint8_t *reserve_bytes(laci_wire *wire, size_t n) {
  if (wire->failed || n > (size_t)INT32_MAX - wire->n) {
    wire->failed = true;
    return NULL;
  }
  if (wire->n + n > wire->capacity) {
    size_t capacity = 2 * wire->capacity + n + 1024;
    uint8_t *bytes = realloc(wire->bytes, capacity);
    if (!bytes) {
      wire->failed = true;
      return NULL;
    }
    wire->bytes = bytes;
    wire->capacity = capacity;
  }
  uint8_t *at = wire->bytes + wire->n;
  wire->n += n;
  return at;
}

void laci_wire_clear(laci_wire *wire) {
  free(wire->bytes);
  memset(wire, 0, sizeof *wire);
}

static void put_varint(laci_wire *wire, uint64_t value) {
  uint8_t bytes[VARINT_BYTES];
  size_t n = 0;
  do {
    bytes[n++] = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
    value >>= 7;
  } while (value);
  uint8_t *to = reserve_bytes(wire, n);
  if (to) memcpy(to, bytes, n);
}

static void put_tag(laci_wire *wire, int field, int how) {
  put_varint(wire, (uint64_t)field << 3 | (uint64_t)how);
}

void laci_wire_write_int(laci_wire *wire, int field, int64_t value) {
  put_tag(wire, field, AS_VARINT);
  put_varint(wire, (uint64_t)value);
}

void laci_wire_write_float(laci_wire *wire, int field, float value) {
  put_tag(wire, field, AS_32_BITS);
  uint8_t *to = reserve_bytes(wire, sizeof value);
  if (to) memcpy(to, &value, sizeof value);
}

void laci_wire_write_bytes(laci_wire *wire, int field, const void *bytes, size_t n) {
  put_tag(wire, field, AS_BYTES);
  put_varint(wire, n);
  uint8_t *to = reserve_bytes(wire, n);
  if (to && n) memcpy(to, bytes, n);
}

void laci_wire_write_text(laci_wire *wire, int field, const char *text) {
  laci_wire_write_bytes(wire, field, text, strlen(text));
}

size_t laci_wire_begin_message(laci_wire *wire, int field) {
  put_tag(wire, field, AS_BYTES);
  (void)reserve_bytes(wire, LENGTH_BYTES);
  return wire->n;
}

void laci_wire_end_message(laci_wire *wire, size_t begin) {
  if (wire->failed) return;
  size_t n = wire->n - begin;
  for (size_t k = 0; k < LENGTH_BYTES; k++) {
    wire->bytes[begin - LENGTH_BYTES + k] =
        (uint8_t)((n & 0x7f) | (k + 1 < LENGTH_BYTES ? 0x80 : 0));
    n >>= 7;
  }
}
