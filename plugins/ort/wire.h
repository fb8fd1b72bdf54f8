/* SPDX-License-Identifier: Apache-2.0
 * Writes protobuf's wire format into a growing buffer. After a failure (no memory, more than 2 GB)
 * later calls do nothing, so that the caller checks for it once, at the end. */
#ifndef LAC_ORT_WIRE_H
#define LAC_ORT_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct laci_wire {
  uint8_t *bytes;
  size_t n, capacity;
  bool failed;
} laci_wire;

void laci_wire_clear(laci_wire *wire);
void laci_wire_write_int(laci_wire *wire, int field, int64_t value);
void laci_wire_write_float(laci_wire *wire, int field, float value);
void laci_wire_write_bytes(laci_wire *wire, int field, const void *bytes, size_t n);
void laci_wire_write_text(laci_wire *wire, int field, const char *text);
/** Begins a message inside of a message; the result is the argument of laci_wire_end_message. */
size_t laci_wire_begin_message(laci_wire *wire, int field);
void laci_wire_end_message(laci_wire *wire, size_t begin);

#endif
