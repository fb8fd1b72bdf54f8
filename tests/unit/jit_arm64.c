/* SPDX-License-Identifier: Apache-2.0
 * jit/arm64: every form of every instruction against a disassembler, on any processor. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "jit/arm64.h"
#include "support/listing.h"

/* The first that knows these instructions; NULL: none does. */
static const char *disassembler(void) {
  static const char *const names[] = {"aarch64-linux-gnu-objdump", "objdump"};
  for (int at = 0; at < 2; at++) {
    char command[96];
    (void)snprintf(command, sizeof command, "%s -i 2>/dev/null | grep -q aarch64", names[at]);
    if (system(command) == 0) return names[at];
  }
  return NULL;
}

static listing begin(void) {
  if (!disassembler()) {
    print_message("no objdump (binutils) that knows 64-bit ARM is installed\n");
    skip();
  }
  return (listing){.code = {.limit_bytes = (size_t)1 << 20}};
}

static void compare(listing *l) {
  char command[96];
  (void)snprintf(command, sizeof command, "%s -D -b binary -m aarch64 -z", disassembler());
  listing_compare(l, command, "//");
}

/* "[x3, #16]" */
static const char *place(int base, int offset, char text[32]) {
  if (offset) (void)snprintf(text, 32, "[x%d, #%d]", base, offset);
  else (void)snprintf(text, 32, "[x%d]", base);
  return text;
}

static void reads_general_instructions(void **state) {
  static const int offsets[] = {0, 8, 64, 4096, 32760};
  char text[32];
  (void)state;
  listing l = begin();
  for (int a = 0; a < 18; a++) {
    for (int b = 0; b < 18; b++) {
      for (int at = 0; at < 5; at++) {
        laci_arm64_load(&l.code, a, b, offsets[at]);
        expect(&l, "ldr x%d, %s", a, place(b, offsets[at], text));
      }
      laci_arm64_add(&l.code, a, b, (a + b) % 18, 2);
      expect(&l, "add x%d, x%d, x%d, lsl #2", a, b, (a + b) % 18);
      laci_arm64_add(&l.code, a, b, (a * b) % 18, 0);
      expect(&l, "add x%d, x%d, x%d", a, b, (a * b) % 18);
      laci_arm64_compare(&l.code, a, b);
      expect(&l, "cmp x%d, x%d", a, b);
    }
    for (int at = 0; at < 5; at++) {
      laci_arm64_prefetch_code(&l.code, a, offsets[at]);
      expect(&l, "prfm plil2keep, %s", place(a, offsets[at], text));
      laci_arm64_prefetch_data(&l.code, a, offsets[at]);
      expect(&l, "prfm pldl2keep, %s", place(a, offsets[at], text));
    }
    laci_arm64_branch_below(&l.code, (size_t)a * 4);
    expect(&l, "b.cc 0x%x", (unsigned)a * 4);
  }
  laci_arm64_return(&l.code);
  expect(&l, "ret");
  compare(&l);
}

static void adds_any_number(void **state) {
  static const uint32_t numbers[] = {0, 1, 24, 4095, 4096, 4097, 0x123456, 0xFFF000, 0xFFFFFF};
  static const uint32_t large[] = {0x1000000, 0x12345678, 0x40000000};
  (void)state;
  listing l = begin();
  for (size_t at = 0; at < sizeof numbers / sizeof *numbers; at++) {
    const uint32_t low = numbers[at] % 4096, high = numbers[at] / 4096;
    laci_arm64_add_number(&l.code, 9, 8, numbers[at]);
    if (high) expect(&l, "add x9, x8, #0x%x, lsl #12", high);
    if (low || !high) expect(&l, "add x9, x%d, #0x%x", high ? 9 : 8, low);
  }
  for (int at = 0; at < 3; at++) {
    laci_arm64_add_number(&l.code, 9, 8, large[at]);
    expect(&l, "mov x9, #0x%x", large[at] & 0xFFFF);
    expect(&l, "movk x9, #0x%x, lsl #16", large[at] >> 16);
    expect(&l, "add x9, x8, x9");
  }
  compare(&l);
}

static void reads_vectors(void **state) {
  static const int offsets[] = {0, 16, 64, 512, 1008};
  char text[32];
  (void)state;
  listing l = begin();
  laci_arm64_save_vectors(&l.code);
  expect(&l, "stp d8, d9, [sp, #-64]!");
  for (int v = 10; v < 16; v += 2) expect(&l, "stp d%d, d%d, [sp, #%d]", v, v + 1, 8 * (v - 8));
  laci_arm64_restore_vectors(&l.code);
  for (int v = 10; v < 16; v += 2) expect(&l, "ldp d%d, d%d, [sp, #%d]", v, v + 1, 8 * (v - 8));
  expect(&l, "ldp d8, d9, [sp], #64");
  for (int a = 0; a < 32; a++) {
    for (int at = 0; at < 5 && a % 2 == 0; at++) {
      laci_arm64_load_pair(&l.code, a, a / 2, offsets[at]);
      expect(&l, "ldp q%d, q%d, %s", a, a + 1, place(a / 2, offsets[at], text));
      laci_arm64_store_pair(&l.code, a, a / 2, offsets[at]);
      expect(&l, "stp q%d, q%d, %s", a, a + 1, place(a / 2, offsets[at], text));
    }
    laci_arm64_load_next(&l.code, a, a / 2);
    expect(&l, "ldr q%d, [x%d], #16", a, a / 2);
    laci_arm64_broadcast_next(&l.code, a, a / 2);
    expect(&l, "ld1r {v%d.4s}, [x%d], #4", a, a / 2);
    for (int b = 0; b < 32; b++) {
      laci_arm64_move(&l.code, a, b);
      expect(&l, "mov v%d.16b, v%d.16b", a, b);
      laci_arm64_multiply_add(&l.code, a, b, (a * 3 + b) % 32, b % 4);
      expect(&l, "fmla v%d.4s, v%d.4s, v%d.s[%d]", a, b, (a * 3 + b) % 32, b % 4);
    }
  }
  compare(&l);
}

static void a_limit_stops_what_grows(void **state) {
  (void)state;
  laci_code code = {.limit_bytes = 10};
  lac_error err = {0};
  for (int at = 0; at < 4; at++) laci_arm64_return(&code);
  assert_int_equal(code.n, 8);
  assert_int_equal(laci_code_status(&code, "conv1", &err), LAC_UNSUPPORTED);
  laci_code_clear(&code);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reads_general_instructions),
      cmocka_unit_test(adds_any_number),
      cmocka_unit_test(reads_vectors),
      cmocka_unit_test(a_limit_stops_what_grows),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
