/* SPDX-License-Identifier: Apache-2.0
 * Encodes the instructions of arm64.h. Each is a word, whose fields are register numbers at bits 0
 * (the result), 5 and 16, and an immediate number. */
#include "jit/arm64.h"

#include <assert.h>

enum { SP = 31, NO_RESULT = 31, MOST_SHORT = 1 << 12, MOST_TWO = 1 << 24 };

static void append_word(laci_code *code, uint32_t word) {
  const uint8_t bytes[] = {(uint8_t)word, (uint8_t)(word >> 8), (uint8_t)(word >> 16),
                           (uint8_t)(word >> 24)};
  laci_code_append(code, bytes, sizeof bytes);
}

static uint32_t place_field_at_bit(int number, int bit) { return (uint32_t)number << bit; }

/* Returns an offset in units of `step` bytes, as a field of `bits` bits. */
static uint32_t encode_scaled_offset(int offset, int step, int bits) {
  assert(offset % step == 0);
  return (uint32_t)(offset / step) & ((1U << bits) - 1);
}

void laci_arm64_load(laci_code *code, int to, int base, int offset) {
  append_word(code, 0xF9400000 | encode_scaled_offset(offset, 8, 12) << 10 |
                        place_field_at_bit(base, 5) | place_field_at_bit(to, 0));
}

void laci_arm64_add(laci_code *code, int to, int a, int b, int shift) {
  append_word(code, 0x8B000000 | place_field_at_bit(b, 16) | place_field_at_bit(shift, 10) |
                        place_field_at_bit(a, 5) | place_field_at_bit(to, 0));
}

static void append_add_immediate(laci_code *code, int to, int a, uint32_t number, bool shifted) {
  append_word(code, 0x91000000 | (shifted ? 1U << 22 : 0) | number << 10 |
                        place_field_at_bit(a, 5) | place_field_at_bit(to, 0));
}

void laci_arm64_add_number(laci_code *code, int to, int a, uint32_t number) {
  const uint32_t low = number % MOST_SHORT, high = number / MOST_SHORT;
  if (number >= MOST_TWO) {
    append_word(code, 0xD2800000 | (number & 0xFFFF) << 5 | place_field_at_bit(to, 0));
    append_word(code, 0xF2A00000 | number >> 16 << 5 | place_field_at_bit(to, 0));
    laci_arm64_add(code, to, a, to, 0);
    return;
  }
  if (high) append_add_immediate(code, to, a, high, true);
  if (low || !high) append_add_immediate(code, to, high ? to : a, low, false);
}

void laci_arm64_compare(laci_code *code, int left, int right) {
  append_word(code, 0xEB000000 | place_field_at_bit(right, 16) | place_field_at_bit(left, 5) |
                        place_field_at_bit(NO_RESULT, 0));
}

void laci_arm64_branch_below(laci_code *code, size_t to) {
  const int64_t words = ((int64_t)to - (int64_t)code->n) / 4;
  append_word(code, 0x54000003 | ((uint32_t)words & 0x7FFFF) << 5);
}

void laci_arm64_return(laci_code *code) { append_word(code, 0xD65F03C0); }

/* Stores the lower halves of v8 to v15 in four pairs; the first store also moves the stack
 * pointer. */
void laci_arm64_save_vectors(laci_code *code) {
  append_word(code, 0x6D800000 | encode_scaled_offset(-64, 8, 7) << 15 | place_field_at_bit(9, 10) |
                        place_field_at_bit(SP, 5) | place_field_at_bit(8, 0));
  for (int v = 10; v < 16; v += 2) {
    append_word(code, 0x6D000000 | encode_scaled_offset(8 * (v - 8), 8, 7) << 15 |
                          place_field_at_bit(v + 1, 10) | place_field_at_bit(SP, 5) |
                          place_field_at_bit(v, 0));
  }
}

void laci_arm64_restore_vectors(laci_code *code) {
  for (int v = 10; v < 16; v += 2) {
    append_word(code, 0x6D400000 | encode_scaled_offset(8 * (v - 8), 8, 7) << 15 |
                          place_field_at_bit(v + 1, 10) | place_field_at_bit(SP, 5) |
                          place_field_at_bit(v, 0));
  }
  append_word(code, 0x6CC00000 | encode_scaled_offset(64, 8, 7) << 15 | place_field_at_bit(9, 10) |
                        place_field_at_bit(SP, 5) | place_field_at_bit(8, 0));
}

static void append_prefetch(laci_code *code, int what, int base, int offset) {
  append_word(code, 0xF9800000 | encode_scaled_offset(offset, 8, 12) << 10 |
                        place_field_at_bit(base, 5) | place_field_at_bit(what, 0));
}

void laci_arm64_prefetch_code(laci_code *code, int base, int offset) {
  append_prefetch(code, 10, base, offset);
}
void laci_arm64_prefetch_data(laci_code *code, int base, int offset) {
  append_prefetch(code, 2, base, offset);
}

static void append_vector_pair_access(laci_code *code, uint32_t word, int first, int base,
                                      int offset) {
  append_word(code, word | encode_scaled_offset(offset, 16, 7) << 15 |
                        place_field_at_bit(first + 1, 10) | place_field_at_bit(base, 5) |
                        place_field_at_bit(first, 0));
}

void laci_arm64_load_pair(laci_code *code, int first, int base, int offset) {
  append_vector_pair_access(code, 0xAD400000, first, base, offset);
}
void laci_arm64_store_pair(laci_code *code, int first, int base, int offset) {
  append_vector_pair_access(code, 0xAD000000, first, base, offset);
}

void laci_arm64_load_next(laci_code *code, int to, int base) {
  append_word(code,
              0x3CC00400 | 16U << 12 | place_field_at_bit(base, 5) | place_field_at_bit(to, 0));
}

void laci_arm64_broadcast_next(laci_code *code, int to, int base) {
  append_word(code, 0x4DDFC800 | place_field_at_bit(base, 5) | place_field_at_bit(to, 0));
}

void laci_arm64_move(laci_code *code, int to, int from) {
  append_word(code, 0x4EA01C00 | place_field_at_bit(from, 16) | place_field_at_bit(from, 5) |
                        place_field_at_bit(to, 0));
}

/* The lane's number is encoded in two separate bits. */
void laci_arm64_multiply_add(laci_code *code, int sum, int a, int b, int lane) {
  const uint32_t index = (uint32_t)(lane & 1) << 21 | (uint32_t)(lane >> 1) << 11;
  append_word(code, 0x4F801000 | index | place_field_at_bit(b, 16) | place_field_at_bit(a, 5) |
                        place_field_at_bit(sum, 0));
}
