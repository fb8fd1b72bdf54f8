/* SPDX-License-Identifier: Apache-2.0
 * jit/x86: every form with every register and displacements at the edges of their encodings, as a
 * disassembler (objdump) reads them. */
#include "jit/x86.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/listing.h"

static const char *const names[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
                                    "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};
/* Around the limits of a byte that counts 1, 4 and 64 bytes. */
static const int32_t displacements[] = {
    0,    1,     -1,  4,   -4,   127,  128,  -128,       -129,
    508,  512,   516, -64, -512, -516, 64,   8128,       -8192,
    8192, -8256, 100, 65,  260,  -508, 4096, 0x7FFFFFFF, (int32_t)0x80000000};
enum { N_DISPLACEMENTS = sizeof displacements / sizeof *displacements };

/* "-0x40(%rax,%rcx,4)" */
static const char *text_of(laci_x86_memory m, char text[64]) {
  char number[24] = "", index[24] = "";
  const int64_t d = m.displacement;
  if (d != 0) {
    (void)snprintf(number, sizeof number, "%s0x%llx", d < 0 ? "-" : "",
                   (unsigned long long)(d < 0 ? -d : d));
  }
  if (m.index != LACI_X86_NONE) {
    (void)snprintf(index, sizeof index, ",%%%s,%d", names[m.index], m.scale);
  }
  /* Where the encoding needs a displacement of zero, it is shown. */
  if (d == 0 && (m.base & 7) == LACI_X86_RBP) (void)snprintf(number, sizeof number, "0x0");
  (void)snprintf(text, 64, "%s(%%%s%s)", number, names[m.base], index);
  return text;
}

static void compare(listing *l) { listing_compare(l, "objdump -D -b binary -m i386:x86-64", "#"); }

static listing begin(void) {
  if (system("objdump --version >/dev/null 2>&1") != 0) {
    print_message("objdump (binutils) is not installed\n");
    skip();
  }
  return (listing){.code = {.limit_bytes = (size_t)1 << 26}};
}

static void memory_forms(listing *l, laci_x86_reg reg, laci_x86_memory m) {
  char text[64];
  (void)text_of(m, text);
  laci_x86_load(&l->code, reg, m);
  expect(l, "mov %s,%%%s", text, names[reg]);
  laci_x86_lea(&l->code, reg, m);
  expect(l, "lea %s,%%%s", text, names[reg]);
  laci_x86_prefetch0(&l->code, m);
  expect(l, "prefetcht0 %s", text);
  laci_x86_prefetch1(&l->code, m);
  expect(l, "prefetcht1 %s", text);
  laci_x86_load_mask(&l->code, 1 + (int)reg % 7, m);
  expect(l, "kmovw %s,%%k%d", text, 1 + (int)reg % 7);
  laci_x86_load_word_mask(&l->code, 1 + (int)reg % 7, m);
  expect(l, "kmovd %s,%%k%d", text, 1 + (int)reg % 7);
  laci_x86_load_byte_mask(&l->code, 1 + (int)reg % 7, m);
  expect(l, "kmovq %s,%%k%d", text, 1 + (int)reg % 7);
}

static void reads_general_instructions(void **state) {
  (void)state;
  listing l = begin();
  for (int a = 0; a < 16; a++) {
    for (int b = 0; b < 16; b++) {
      laci_x86_move(&l.code, (laci_x86_reg)a, (laci_x86_reg)b);
      expect(&l, "mov %%%s,%%%s", names[b], names[a]);
      laci_x86_compare(&l.code, (laci_x86_reg)a, (laci_x86_reg)b);
      expect(&l, "cmp %%%s,%%%s", names[b], names[a]);
      for (int d = 0; d < N_DISPLACEMENTS; d++) {
        memory_forms(&l, (laci_x86_reg)a, laci_x86_at((laci_x86_reg)b, displacements[d]));
      }
      for (int index = 0; index < 16; index++) {
        if (index == LACI_X86_RSP) continue;
        laci_x86_memory m = {(laci_x86_reg)b, (laci_x86_reg)index, 1 << index % 4,
                             displacements[(a + b + index) % N_DISPLACEMENTS]};
        memory_forms(&l, (laci_x86_reg)a, m);
      }
    }
  }
  compare(&l);
}

static void reads_additions_and_jumps(void **state) {
  static const int32_t numbers[] = {1, 127, 128, 1024, 0x7FFFFFFF};
  (void)state;
  listing l = begin();
  laci_x86_return(&l.code);
  expect(&l, "ret");
  laci_x86_zero_upper(&l.code);
  expect(&l, "vzeroupper");
  for (int a = 0; a < 16; a++) {
    for (int n = 0; n < 5; n++) {
      laci_x86_add(&l.code, (laci_x86_reg)a, numbers[n]);
      /* objdump knows rax's own form of an addition only by its bytes: ours is the general one */
      expect(&l, "add $0x%x,%%%s", (unsigned)numbers[n], names[a]);
    }
    laci_x86_add(&l.code, (laci_x86_reg)a, -128);
    expect(&l, "add $0xffffffffffffff80,%%%s", names[a]);
    laci_x86_jump_below(&l.code, (size_t)a);
    expect(&l, "jb 0x%x", (unsigned)a);
    const size_t jump = laci_x86_jump_below_forward(&l.code);
    const size_t line = l.n;
    expect(&l, "its place is known later");
    for (int n = 0; n < a; n++) {
      laci_x86_return(&l.code);
      expect(&l, "ret");
    }
    laci_x86_set_jump_target(&l.code, jump);
    (void)snprintf(l.lines[line], LISTING_LINE, "jb 0x%zx", l.code.n);
  }
  compare(&l);
}

typedef struct form {
  laci_x86_op op;
  const char *name512, *name256;
  bool three, in_registers, in_memory, store;
} form;

static const form forms[] = {
    {LACI_X86_DPBF16PS, "vdpbf16ps", NULL, true, true, true, false},
    {LACI_X86_CVTNE2PS2BF16, "vcvtne2ps2bf16", NULL, true, true, true, false},
    {LACI_X86_DPBUSD, "vpdpbusd", NULL, true, true, true, false},
    {LACI_X86_PSHUFB, "vpshufb", NULL, true, true, true, false},
    {LACI_X86_PACKSSDW, "vpackssdw", NULL, true, true, true, false},
    {LACI_X86_PACKUSWB, "vpackuswb", NULL, true, true, true, false},
    {LACI_X86_PADDSW, "vpaddsw", NULL, true, true, true, false},
    {LACI_X86_PSUBD, "vpsubd", NULL, true, true, true, false},
    {LACI_X86_PMAXUB, "vpmaxub", NULL, true, true, true, false},
    {LACI_X86_MULPS, "vmulps", NULL, true, true, true, false},
    {LACI_X86_CVTDQ2PS, "vcvtdq2ps", NULL, false, true, true, false},
    {LACI_X86_CVTPS2DQ, "vcvtps2dq", NULL, false, true, true, false},
    {LACI_X86_PERMW, "vpermw", NULL, true, true, true, false},
    {LACI_X86_ADDPS, "vaddps", "vaddps", true, true, true, false},
    {LACI_X86_MAXPS, "vmaxps", "vmaxps", true, true, true, false},
    {LACI_X86_MINPS, "vminps", "vminps", true, true, true, false},
    {LACI_X86_FMADD231PS, "vfmadd231ps", "vfmadd231ps", true, true, true, false},
    {LACI_X86_PXOR, "vpxord", "vpxor", true, true, true, false},
    {LACI_X86_LOAD, "vmovups", "vmovups", false, true, true, false},
    {LACI_X86_STORE, "vmovups", "vmovups", false, false, true, true},
    {LACI_X86_BROADCASTSS, "vbroadcastss", "vbroadcastss", false, false, true, false},
    {LACI_X86_PAND, "vpandd", "vpand", true, true, true, false},
    {LACI_X86_PCMPEQD, NULL, "vpcmpeqd", true, true, true, false},
    {LACI_X86_MASKLOAD, NULL, "vmaskmovps", true, false, true, false},
    {LACI_X86_MASKSTORE, NULL, "vmaskmovps", true, false, true, true},
    {LACI_X86_PBROADCASTD, NULL, "vpbroadcastd", false, false, true, false},
};

/* A form with the vector registers to, a and b, and memory m. */
static void vector_forms(listing *l, const form *f, laci_x86_width width, const int reg[3],
                         laci_x86_memory m) {
  const char v = width == LACI_X86_ZMM ? 'z' : 'y';
  const char *name = width == LACI_X86_ZMM ? f->name512 : f->name256;
  char text[64], middle[24] = "";
  const int a = f->three ? reg[1] : 0;
  if (!name) return;
  if (f->three) (void)snprintf(middle, sizeof middle, "%%%cmm%d,", v, a);
  if (f->in_registers) {
    laci_x86_vector_op(&l->code, width, f->op, reg[0], a, reg[2]);
    expect(l, "%s %%%cmm%d,%s%%%cmm%d", name, v, reg[2], middle, v, reg[0]);
  }
  if (f->in_memory) {
    (void)text_of(m, text);
    laci_x86_vector_op_with_memory(&l->code, width, f->op, reg[0], a, m);
    if (f->store) expect(l, "%s %%%cmm%d,%s%s", name, v, reg[0], middle, text);
    else expect(l, "%s %s,%s%%%cmm%d", name, text, middle, v, reg[0]);
  }
}

static const struct {
  laci_x86_op op;
  const char *name;
} products[] = {{LACI_X86_FMADD231PS, "vfmadd231ps"},
                {LACI_X86_DPBF16PS, "vdpbf16ps"},
                {LACI_X86_DPBUSD, "vpdpbusd"},
                {LACI_X86_MULPS, "vmulps"}};

static void word_forms(listing *l, const int reg[3]) {
  const int k = 1 + reg[2] % 7, bits = 1 + reg[1];
  laci_x86_blend_words(&l->code, reg[0], k, reg[1], reg[2]);
  expect(l, "vpblendmw %%zmm%d,%%zmm%d,%%zmm%d{%%k%d}", reg[2], reg[1], reg[0], k);
  laci_x86_blend_bytes(&l->code, reg[0], k, reg[1], reg[2]);
  expect(l, "vpblendmb %%zmm%d,%%zmm%d,%%zmm%d{%%k%d}", reg[2], reg[1], reg[0], k);
  laci_x86_keep_words(&l->code, reg[0], k, reg[2]);
  expect(l, "vmovdqu16 %%zmm%d,%%zmm%d{%%k%d}{z}", reg[2], reg[0], k);
  laci_x86_rotate_left(&l->code, reg[0], reg[2], bits);
  expect(l, "vprold $0x%x,%%zmm%d,%%zmm%d", (unsigned)bits, reg[2], reg[0]);
  laci_x86_shift_left(&l->code, reg[0], reg[2], bits);
  expect(l, "vpslld $0x%x,%%zmm%d,%%zmm%d", (unsigned)bits, reg[2], reg[0]);
  laci_x86_shift_right(&l->code, reg[0], reg[2], bits);
  expect(l, "vpsrld $0x%x,%%zmm%d,%%zmm%d", (unsigned)bits, reg[2], reg[0]);
}

static void special_forms(listing *l, const int reg[3], laci_x86_memory m) {
  char text[64];
  const int k = 1 + reg[2] % 7;
  (void)text_of(m, text);
  for (size_t at = 0; at < sizeof products / sizeof *products; at++) {
    laci_x86_multiply_add_broadcast(&l->code, products[at].op, reg[0], reg[1], m);
    expect(l, "%s %s{1to16},%%zmm%d,%%zmm%d", products[at].name, text, reg[1], reg[0]);
  }
  laci_x86_load_masked(&l->code, reg[0], k, m);
  expect(l, "vmovups %s,%%zmm%d{%%k%d}{z}", text, reg[0], k);
  laci_x86_store_masked(&l->code, reg[0], k, m);
  expect(l, "vmovups %%zmm%d,%s{%%k%d}", reg[0], text, k);
}

static void vectors_of(laci_x86_width width, int n_registers) {
  listing l = begin();
  for (int to = 0; to < n_registers; to++) {
    for (int b = 0; b < n_registers; b++) {
      const int reg[3] = {to, (5 * to + 3 * b + 1) % n_registers, b};
      for (int at = 0; at < 3; at++) {
        const int32_t d = displacements[(7 * to + b + 9 * at) % N_DISPLACEMENTS];
        laci_x86_memory m = laci_x86_at((laci_x86_reg)(b % 16), d);
        if (at == 2 && to % 16 != LACI_X86_RSP) {
          m.index = (laci_x86_reg)(to % 16);
          m.scale = 4;
        }
        for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
          vector_forms(&l, &forms[f], width, reg, m);
        }
        if (width == LACI_X86_ZMM) special_forms(&l, reg, m);
      }
      if (width == LACI_X86_ZMM) word_forms(&l, reg);
    }
  }
  compare(&l);
}

static void reads_vectors_of_256_bits(void **state) {
  (void)state;
  vectors_of(LACI_X86_YMM, 16);
}

static void reads_vectors_of_512_bits(void **state) {
  (void)state;
  vectors_of(LACI_X86_ZMM, 32);
}

static void every_displacement_of_a_broadcast_reads_right(void **state) {
  (void)state;
  listing l = begin();
  for (int32_t d = -600; d <= 600; d++) {
    const int reg[3] = {d & 31, 7, 9};
    special_forms(&l, reg, laci_x86_at(LACI_X86_R10, d));
  }
  for (int32_t d = -9000; d <= 9000; d += 4) {
    special_forms(&l, (const int[3]){d & 31, 7, 9}, laci_x86_at(LACI_X86_RAX, d));
  }
  compare(&l);
}

/* Registers of all kinds, displacements of all lengths and their edges, with and without a SIB. */
static void many_broadcasts_read_as_one_by_one(void **state) {
  static const uint32_t accs[] = {0,          1,          0x80000000U, 0x40000200U,
                                  0x3FFFFFFF, 0x12345678, UINT32_MAX};
  static const laci_x86_reg bases[] = {LACI_X86_R10, LACI_X86_RSP, LACI_X86_RBP, LACI_X86_R12};
  (void)state;
  listing l = begin();
  char text[64];
  for (int32_t d = -640; d <= 520; d += d % 4 || d % 96 ? 1 : 3) {
    for (int at = 0; at < 28; at++) {
      const int a = (d + 7 * at) & 31;
      laci_x86_memory m = laci_x86_at(bases[at % 4], d);
      if (at % 3 == 0) {
        m.index = LACI_X86_R9;
        m.scale = 4;
      }
      laci_x86_multiply_add_broadcasts(&l.code, products[at % 4].op, accs[at % 7], a, m);
      for (int acc = 0; acc < 32; acc++) {
        if (!(accs[at % 7] >> acc & 1)) continue;
        (void)text_of(m, text);
        expect(&l, "%s %s{1to16},%%zmm%d,%%zmm%d", products[at % 4].name, text, a, acc);
        m.displacement += 4;
      }
    }
  }
  compare(&l);
}

static void a_limit_stops_what_grows(void **state) {
  (void)state;
  laci_code code = {.limit_bytes = 10};
  lac_error err = {0};
  for (int at = 0; at < 4; at++) laci_x86_zero_upper(&code);
  assert_int_equal(code.n, 9);
  assert_int_equal(laci_code_status(&code, "conv1", &err), LAC_UNSUPPORTED);
  assert_string_equal(err.text, "conv1: more than 10 bytes, the limit");
  laci_code_clear(&code);
  assert_int_equal(laci_code_status(&code, "conv1", &err), LAC_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reads_general_instructions),
      cmocka_unit_test(reads_additions_and_jumps),
      cmocka_unit_test(reads_vectors_of_256_bits),
      cmocka_unit_test(reads_vectors_of_512_bits),
      cmocka_unit_test(every_displacement_of_a_broadcast_reads_right),
      cmocka_unit_test(many_broadcasts_read_as_one_by_one),
      cmocka_unit_test(a_limit_stops_what_grows),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
