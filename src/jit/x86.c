/* SPDX-License-Identifier: Apache-2.0
 * Encodes the instructions of x86.h: a prefix (REX, VEX or EVEX), the opcode, ModRM, SIB,
 * displacement. Prefixes hold the upper bits of register numbers, mostly inverted. Intel's manual
 * describes the formats in volume 2, 2.2 to 2.7. */
#include "jit/x86.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

enum {
  MAP_0F = 1,
  MAP_0F38 = 2,
  PP_NONE = 0,
  PP_66 = 1,
  PP_F3 = 2,
  PP_F2 = 3,
  SIB_NEEDED = 4, /* in ModRM in place of a register: a SIB byte follows, which the bases RSP and
                     R12 need, too */
  MOST = 15,      /* maximum number of bytes of an instruction */
};

/* An instruction under construction; its bytes are written in place, at the end of the code. */
typedef struct instruction {
  uint8_t *bytes;
  int n;
  uint8_t nowhere[MOST]; /* where bytes are written after the code has failed */
} instruction;

static inline void begin_instruction(laci_code *code, instruction *l) {
  l->bytes = laci_code_reserve(code, MOST) ? code->bytes + code->n : l->nowhere;
  l->n = 0;
}

static inline void finish_instruction(laci_code *code, const instruction *l) {
  if (!code->failed) code->n += (size_t)l->n;
}

static inline void append_byte(instruction *l, unsigned byte) {
  assert(l->n < MOST);
  l->bytes[l->n++] = (uint8_t)byte;
}

/* Appends four bytes, the lowest first; this code runs on little-endian processors only. */
static inline void append_word(instruction *l, uint32_t bytes) {
  assert(l->n + 4 <= MOST);
  memcpy(l->bytes + l->n, &bytes, sizeof bytes);
  l->n += 4;
}

static unsigned bit_of_number(int number, int at) { return (unsigned)number >> at & 1U; }
static unsigned inverted_bit_of_number(int number, int at) {
  return bit_of_number(number, at) ^ 1U;
}

static int index_number_or_0(laci_x86_memory m) {
  return m.index == LACI_X86_NONE ? 0 : (int)m.index;
}

/* Appends ModRM, SIB and displacement. unit: the bytes that a step of a one-byte displacement
 * stands for. */
static inline void append_memory_operand(instruction *l, int reg, laci_x86_memory m, int unit) {
  const int base = (int)m.base & 7, steps = m.displacement / unit;
  const bool indexed = m.index != LACI_X86_NONE, sib = indexed || base == SIB_NEEDED;
  const bool is_short = m.displacement % unit == 0 && steps >= -128 && steps <= 127;
  /* With bases RBP and R13, the encoding without displacement means something else. */
  const bool absent = m.displacement == 0 && base != LACI_X86_RBP;
  const unsigned mod = absent ? 0U : is_short ? 1U : 2U;
  append_byte(l, mod << 6 | ((unsigned)reg & 7U) << 3 | (unsigned)(sib ? SIB_NEEDED : base));
  if (sib) {
    const unsigned scale = m.scale == 8 ? 3U : m.scale == 4 ? 2U : m.scale == 2 ? 1U : 0U;
    const unsigned index = indexed ? (unsigned)m.index & 7U : SIB_NEEDED;
    append_byte(l, scale << 6 | index << 3 | (unsigned)base);
  }
  if (mod == 1) append_byte(l, (unsigned)steps & 0xFFU);
  if (mod == 2) append_word(l, (uint32_t)m.displacement);
}

static inline void append_register_operands(instruction *l, int reg, int rm) {
  append_byte(l, 3U << 6 | ((unsigned)reg & 7U) << 3 | ((unsigned)rm & 7U));
}

/* ---- general registers ---- */

static inline void append_rex(instruction *l, bool wide, int reg, int index, int base) {
  unsigned rex = 0x40U | (unsigned)wide << 3 | bit_of_number(reg, 3) << 2 |
                 bit_of_number(index, 3) << 1 | bit_of_number(base, 3);
  if (rex != 0x40U) append_byte(l, rex);
}

static void append_instruction_with_memory(laci_code *code, unsigned opcode, laci_x86_reg reg,
                                           laci_x86_memory m) {
  instruction l;
  begin_instruction(code, &l);
  append_rex(&l, true, (int)reg, index_number_or_0(m), (int)m.base);
  append_byte(&l, opcode);
  append_memory_operand(&l, (int)reg, m, 1);
  finish_instruction(code, &l);
}

static void append_instruction_with_registers(laci_code *code, unsigned opcode, int reg, int rm) {
  instruction l;
  begin_instruction(code, &l);
  append_rex(&l, true, reg, 0, rm);
  append_byte(&l, opcode);
  append_register_operands(&l, reg, rm);
  finish_instruction(code, &l);
}

void laci_x86_load(laci_code *code, laci_x86_reg to, laci_x86_memory from) {
  append_instruction_with_memory(code, 0x8B, to, from);
}

void laci_x86_lea(laci_code *code, laci_x86_reg to, laci_x86_memory address) {
  append_instruction_with_memory(code, 0x8D, to, address);
}

void laci_x86_move(laci_code *code, laci_x86_reg to, laci_x86_reg from) {
  append_instruction_with_registers(code, 0x8B, (int)to, (int)from);
}

void laci_x86_compare(laci_code *code, laci_x86_reg left, laci_x86_reg right) {
  append_instruction_with_registers(code, 0x3B, (int)left, (int)right);
}

void laci_x86_add(laci_code *code, laci_x86_reg to, int32_t number) {
  const bool is_short = number >= -128 && number <= 127;
  instruction l;
  begin_instruction(code, &l);
  append_rex(&l, true, 0, 0, (int)to);
  append_byte(&l, is_short ? 0x83 : 0x81);
  append_register_operands(&l, 0, (int)to);
  if (is_short) append_byte(&l, (unsigned)number & 0xFFU);
  else append_word(&l, (uint32_t)number);
  finish_instruction(code, &l);
}

enum {
  JUMP_BYTES = 6,
  JUMP_DISTANCE = 4 /* number of bytes of a jump's distance: its last bytes; the distance counts
                       from the jump's end */
};

void laci_x86_jump_below(laci_code *code, size_t to) {
  instruction l;
  begin_instruction(code, &l);
  append_byte(&l, 0x0F);
  append_byte(&l, 0x82);
  append_word(&l, (uint32_t)((int64_t)to - (int64_t)code->n - JUMP_BYTES));
  finish_instruction(code, &l);
}

size_t laci_x86_jump_below_forward(laci_code *code) {
  const size_t jump = code->n;
  laci_x86_jump_below(code, jump);
  return jump;
}

void laci_x86_set_jump_target(laci_code *code, size_t jump) {
  const size_t after = jump + JUMP_BYTES;
  if (code->failed) return;
  const uint32_t distance = (uint32_t)(code->n - after);
  memcpy(code->bytes + after - JUMP_DISTANCE, &distance, sizeof distance);
}

void laci_x86_return(laci_code *code) { laci_code_append(code, "\xC3", 1); }

static void append_prefetch(laci_code *code, int level, laci_x86_memory address) {
  instruction l;
  begin_instruction(code, &l);
  append_rex(&l, false, 0, index_number_or_0(address), (int)address.base);
  append_byte(&l, 0x0F);
  append_byte(&l, 0x18);
  append_memory_operand(&l, level, address, 1);
  finish_instruction(code, &l);
}

void laci_x86_prefetch0(laci_code *code, laci_x86_memory address) {
  append_prefetch(code, 1, address);
}
void laci_x86_prefetch1(laci_code *code, laci_x86_memory address) {
  append_prefetch(code, 2, address);
}

/* ---- vectors ---- */

typedef struct encoding {
  uint8_t pp, map, opcode;
  uint8_t unit; /* bytes of the memory operand in 512-bit instructions */
  uint8_t w;    /* EVEX.W, an additional bit of the opcode */
} encoding;

static const encoding encodings[LACI_X86_N_OPS] = {
    [LACI_X86_DPBF16PS] = {PP_F3, MAP_0F38, 0x52, 64, 0},
    [LACI_X86_CVTNE2PS2BF16] = {PP_F2, MAP_0F38, 0x72, 64, 0},
    [LACI_X86_DPBUSD] = {PP_66, MAP_0F38, 0x50, 64, 0},
    [LACI_X86_PSHUFB] = {PP_66, MAP_0F38, 0x00, 64, 0},
    [LACI_X86_PACKSSDW] = {PP_66, MAP_0F, 0x6B, 64, 0},
    [LACI_X86_PACKUSWB] = {PP_66, MAP_0F, 0x67, 64, 0},
    [LACI_X86_PADDSW] = {PP_66, MAP_0F, 0xED, 64, 0},
    [LACI_X86_PSUBD] = {PP_66, MAP_0F, 0xFA, 64, 0},
    [LACI_X86_PMAXUB] = {PP_66, MAP_0F, 0xDE, 64, 0},
    [LACI_X86_MULPS] = {PP_NONE, MAP_0F, 0x59, 64, 0},
    [LACI_X86_CVTDQ2PS] = {PP_NONE, MAP_0F, 0x5B, 64, 0},
    [LACI_X86_CVTPS2DQ] = {PP_66, MAP_0F, 0x5B, 64, 0},
    [LACI_X86_PERMW] = {PP_66, MAP_0F38, 0x8D, 64, 1},
    [LACI_X86_ADDPS] = {PP_NONE, MAP_0F, 0x58, 64, 0},
    [LACI_X86_MAXPS] = {PP_NONE, MAP_0F, 0x5F, 64, 0},
    [LACI_X86_MINPS] = {PP_NONE, MAP_0F, 0x5D, 64, 0},
    [LACI_X86_FMADD231PS] = {PP_66, MAP_0F38, 0xB8, 64, 0},
    [LACI_X86_PXOR] = {PP_66, MAP_0F, 0xEF, 64, 0},
    [LACI_X86_LOAD] = {PP_NONE, MAP_0F, 0x10, 64, 0},
    [LACI_X86_STORE] = {PP_NONE, MAP_0F, 0x11, 64, 0},
    [LACI_X86_BROADCASTSS] = {PP_66, MAP_0F38, 0x18, 4, 0},
    [LACI_X86_PAND] = {PP_66, MAP_0F, 0xDB, 64, 0},
    [LACI_X86_PCMPEQD] = {PP_66, MAP_0F, 0x76, 0, 0},
    [LACI_X86_MASKLOAD] = {PP_66, MAP_0F38, 0x2C, 0, 0},
    [LACI_X86_MASKSTORE] = {PP_66, MAP_0F38, 0x2E, 0, 0},
    [LACI_X86_PBROADCASTD] = {PP_66, MAP_0F38, 0x58, 0, 0},
};

/* The bits of the three register operands that a prefix holds. x and b belong to the last operand,
 * or to the index and base of a memory operand. */
typedef struct operands {
  int reg, a;
  unsigned not_x, not_b;
} operands;

static inline void append_vex(instruction *l, const encoding *e, operands o, bool wide) {
  const unsigned first =
      inverted_bit_of_number(o.reg, 3) << 7 | o.not_x << 6 | o.not_b << 5 | e->map;
  const unsigned second =
      (unsigned)e->w << 7 | (~(unsigned)o.a & 15U) << 3 | (unsigned)wide << 2 | e->pp;
  append_word(l, 0xC4U | first << 8 | second << 16 | (unsigned)e->opcode << 24);
}

/* What EVEX adds: k: only the lanes of mask register k are written (0: all), zero: the others
 * become zero; broadcast: one number of memory for all lanes. */
typedef struct extras {
  int k;
  bool zero, broadcast;
} extras;

static inline void append_evex(instruction *l, const encoding *e, operands o, extras how) {
  const unsigned first = inverted_bit_of_number(o.reg, 3) << 7 | o.not_x << 6 | o.not_b << 5 |
                         inverted_bit_of_number(o.reg, 4) << 4 | e->map;
  const unsigned second = (unsigned)e->w << 7 | (~(unsigned)o.a & 15U) << 3 | 4U | e->pp;
  const unsigned third = (unsigned)how.zero << 7 | 2U << 5 | (unsigned)how.broadcast << 4 |
                         inverted_bit_of_number(o.a, 4) << 3 | (unsigned)how.k;
  append_word(l, 0x62U | first << 8 | second << 16 | third << 24);
  append_byte(l, e->opcode);
}

static void append_evex_with_memory(laci_code *code, laci_x86_op op, operands o, laci_x86_memory m,
                                    extras how) {
  const encoding *e = &encodings[op];
  instruction l;
  begin_instruction(code, &l);
  o.not_x = inverted_bit_of_number(index_number_or_0(m), 3);
  o.not_b = inverted_bit_of_number((int)m.base, 3);
  append_evex(&l, e, o, how);
  append_memory_operand(&l, o.reg, m, how.broadcast ? 4 : e->unit);
  finish_instruction(code, &l);
}

static void append_evex_with_registers(laci_code *code, const encoding *e, operands o, int rm,
                                       extras how) {
  instruction l;
  begin_instruction(code, &l);
  o.not_x = inverted_bit_of_number(rm, 4);
  o.not_b = inverted_bit_of_number(rm, 3);
  append_evex(&l, e, o, how);
  append_register_operands(&l, o.reg, rm);
  finish_instruction(code, &l);
}

void laci_x86_vector_op(laci_code *code, laci_x86_width width, laci_x86_op op, int to, int a,
                        int b) {
  const operands o = {to, a, 1, inverted_bit_of_number(b, 3)};
  if (width == LACI_X86_ZMM) {
    append_evex_with_registers(code, &encodings[op], o, b, (extras){0});
    return;
  }
  instruction l;
  begin_instruction(code, &l);
  append_vex(&l, &encodings[op], o, true);
  append_register_operands(&l, to, b);
  finish_instruction(code, &l);
}

void laci_x86_vector_op_with_memory(laci_code *code, laci_x86_width width, laci_x86_op op, int to,
                                    int a, laci_x86_memory b) {
  operands o = {to, a, inverted_bit_of_number(index_number_or_0(b), 3),
                inverted_bit_of_number((int)b.base, 3)};
  if (width == LACI_X86_ZMM) {
    append_evex_with_memory(code, op, o, b, (extras){0});
    return;
  }
  instruction l;
  begin_instruction(code, &l);
  append_vex(&l, &encodings[op], o, true);
  append_memory_operand(&l, to, b, 1);
  finish_instruction(code, &l);
}

void laci_x86_multiply_add_broadcast(laci_code *code, laci_x86_op op, int acc, int a,
                                     laci_x86_memory b) {
  append_evex_with_memory(code, op, (operands){.reg = acc, .a = a}, b, (extras){.broadcast = true});
}

/* Returns the bits that differ between a multiply-add into register acc and one into register 0:
 * bits of EVEX's first byte and of ModRM. */
static uint64_t encode_accumulator(int acc) {
  const unsigned prefix = bit_of_number(acc, 3) << 7 | bit_of_number(acc, 4) << 4;
  return (uint64_t)prefix << 8 | ((uint64_t)acc & 7U) << (40 + 3);
}

/* Multiply-adds differ only in a few bits, and in their last byte if all displacements are short.
 * So one is encoded, and each of them is made from it and written by one store of eight bytes. */
void laci_x86_multiply_add_broadcasts(laci_code *code, laci_x86_op op, uint32_t accs, int a,
                                      laci_x86_memory b) {
  const int n = __builtin_popcount(accs), first = b.displacement / 4, last = first + n - 1;
  const bool absent = first <= 0 && last >= 0;
  if (n == 0) return;
  if (b.displacement % 4 || first < -128 || last > 127 || absent) {
    for (; accs; accs &= accs - 1, b.displacement += 4) {
      laci_x86_multiply_add_broadcast(code, op, __builtin_ctz(accs), a, b);
    }
    return;
  }
  instruction l;
  begin_instruction(code, &l);
  uint64_t same = 0;
  append_evex(&l, &encodings[op],
              (operands){0, a, inverted_bit_of_number(index_number_or_0(b), 3),
                         inverted_bit_of_number((int)b.base, 3)},
              (extras){.broadcast = true});
  append_memory_operand(&l, 0, b, 4);
  const int step_at = 8 * (l.n - 1);
  for (int at = 0; at < l.n - 1; at++) same |= (uint64_t)l.bytes[at] << 8 * at;
  if (!laci_code_reserve(code, (size_t)n * sizeof same)) return;
  uint8_t *to = code->bytes + code->n;
  for (uint64_t step = (uint64_t)first; accs; accs &= accs - 1, step++, to += l.n) {
    const uint64_t bytes = (same ^ encode_accumulator(__builtin_ctz(accs))) | (step & 0xFFU)
                                                                                  << step_at;
    memcpy(to, &bytes, sizeof bytes);
  }
  code->n = (size_t)(to - code->bytes);
}

void laci_x86_load_masked(laci_code *code, int to, int k, laci_x86_memory from) {
  append_evex_with_memory(code, LACI_X86_LOAD, (operands){.reg = to}, from,
                          (extras){.k = k, .zero = true});
}

void laci_x86_store_masked(laci_code *code, int from, int k, laci_x86_memory to) {
  append_evex_with_memory(code, LACI_X86_STORE, (operands){.reg = from}, to, (extras){.k = k});
}

static void append_mask_load(laci_code *code, const encoding *e, int k, laci_x86_memory from) {
  instruction l;
  begin_instruction(code, &l);
  append_vex(&l, e,
             (operands){k, 0, inverted_bit_of_number(index_number_or_0(from), 3),
                        inverted_bit_of_number((int)from.base, 3)},
             false);
  append_memory_operand(&l, k, from, 1);
  finish_instruction(code, &l);
}

void laci_x86_load_mask(laci_code *code, int k, laci_x86_memory from) {
  append_mask_load(code, &(const encoding){PP_NONE, MAP_0F, 0x90, 0, 0}, k, from);
}

void laci_x86_load_word_mask(laci_code *code, int k, laci_x86_memory from) {
  append_mask_load(code, &(const encoding){PP_66, MAP_0F, 0x90, 0, 1}, k, from);
}

void laci_x86_load_byte_mask(laci_code *code, int k, laci_x86_memory from) {
  append_mask_load(code, &(const encoding){PP_NONE, MAP_0F, 0x90, 0, 1}, k, from);
}

void laci_x86_blend_bytes(laci_code *code, int to, int k, int a, int b) {
  append_evex_with_registers(code, &(const encoding){PP_66, MAP_0F38, 0x66, 0, 0},
                             (operands){.reg = to, .a = a}, b, (extras){.k = k});
}

void laci_x86_blend_words(laci_code *code, int to, int k, int a, int b) {
  append_evex_with_registers(code, &(const encoding){PP_66, MAP_0F38, 0x66, 0, 1},
                             (operands){.reg = to, .a = a}, b, (extras){.k = k});
}

void laci_x86_keep_words(laci_code *code, int to, int k, int from) {
  append_evex_with_registers(code, &(const encoding){PP_F2, MAP_0F, 0x6F, 0, 1},
                             (operands){.reg = to}, from, (extras){.k = k, .zero = true});
}

/* Encodes a shift or rotation: ModRM's register field says which one, and the prefix field of
 * operand a is the target. */
static void append_shift(laci_code *code, int which, int to, int from, int bits) {
  instruction l;
  begin_instruction(code, &l);
  append_evex(&l, &(const encoding){PP_66, MAP_0F, 0x72, 0, 0},
              (operands){0, to, inverted_bit_of_number(from, 4), inverted_bit_of_number(from, 3)},
              (extras){0});
  append_register_operands(&l, which, from);
  append_byte(&l, (unsigned)bits);
  finish_instruction(code, &l);
}

void laci_x86_rotate_left(laci_code *code, int to, int from, int bits) {
  append_shift(code, 1, to, from, bits);
}

void laci_x86_shift_left(laci_code *code, int to, int from, int bits) {
  append_shift(code, 6, to, from, bits);
}

void laci_x86_shift_right(laci_code *code, int to, int from, int bits) {
  append_shift(code, 2, to, from, bits);
}

void laci_x86_zero_upper(laci_code *code) { laci_code_append(code, "\xC5\xF8\x77", 3); }
