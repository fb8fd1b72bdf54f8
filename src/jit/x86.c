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
  MOST = 15,      /* most bytes of an instruction */
};

/* An instruction under construction; its bytes are written in place, at the end of the code. */
typedef struct line {
  uint8_t *bytes;
  int n;
  uint8_t nowhere[MOST]; /* takes the bytes after the code has failed */
} line;

static inline void begin(laci_code *code, line *l) {
  l->bytes = laci_code_reserve(code, MOST) ? code->bytes + code->n : l->nowhere;
  l->n = 0;
}

static inline void finish(laci_code *code, const line *l) {
  if (!code->failed) code->n += (size_t)l->n;
}

static inline void put(line *l, unsigned byte) {
  assert(l->n < MOST);
  l->bytes[l->n++] = (uint8_t)byte;
}

/* Appends four bytes, the lowest first; this code runs on little-endian processors only. */
static inline void put_word(line *l, uint32_t bytes) {
  assert(l->n + 4 <= MOST);
  memcpy(l->bytes + l->n, &bytes, sizeof bytes);
  l->n += 4;
}

static unsigned bit(int number, int at) { return (unsigned)number >> at & 1U; }
static unsigned not_bit(int number, int at) { return bit(number, at) ^ 1U; }

static int index_of(laci_x86_memory m) { return m.index == LACI_X86_NONE ? 0 : (int)m.index; }

/* Appends ModRM, SIB and displacement. unit: the bytes that a step of a one-byte displacement
 * stands for. */
static inline void put_memory(line *l, int reg, laci_x86_memory m, int unit) {
  const int base = (int)m.base & 7, steps = m.displacement / unit;
  const bool indexed = m.index != LACI_X86_NONE, sib = indexed || base == SIB_NEEDED;
  const bool is_short = m.displacement % unit == 0 && steps >= -128 && steps <= 127;
  /* With bases RBP and R13, the encoding without displacement means something else. */
  const bool absent = m.displacement == 0 && base != LACI_X86_RBP;
  const unsigned mod = absent ? 0U : is_short ? 1U : 2U;
  put(l, mod << 6 | ((unsigned)reg & 7U) << 3 | (unsigned)(sib ? SIB_NEEDED : base));
  if (sib) {
    const unsigned scale = m.scale == 8 ? 3U : m.scale == 4 ? 2U : m.scale == 2 ? 1U : 0U;
    const unsigned index = indexed ? (unsigned)m.index & 7U : SIB_NEEDED;
    put(l, scale << 6 | index << 3 | (unsigned)base);
  }
  if (mod == 1) put(l, (unsigned)steps & 0xFFU);
  if (mod == 2) put_word(l, (uint32_t)m.displacement);
}

static inline void put_registers(line *l, int reg, int rm) {
  put(l, 3U << 6 | ((unsigned)reg & 7U) << 3 | ((unsigned)rm & 7U));
}

/* ---- general registers ---- */

static inline void put_rex(line *l, bool wide, int reg, int index, int base) {
  unsigned rex = 0x40U | (unsigned)wide << 3 | bit(reg, 3) << 2 | bit(index, 3) << 1 | bit(base, 3);
  if (rex != 0x40U) put(l, rex);
}

static void memory_form(laci_code *code, unsigned opcode, laci_x86_reg reg, laci_x86_memory m) {
  line l;
  begin(code, &l);
  put_rex(&l, true, (int)reg, index_of(m), (int)m.base);
  put(&l, opcode);
  put_memory(&l, (int)reg, m, 1);
  finish(code, &l);
}

static void register_form(laci_code *code, unsigned opcode, int reg, int rm) {
  line l;
  begin(code, &l);
  put_rex(&l, true, reg, 0, rm);
  put(&l, opcode);
  put_registers(&l, reg, rm);
  finish(code, &l);
}

void laci_x86_load(laci_code *code, laci_x86_reg to, laci_x86_memory from) {
  memory_form(code, 0x8B, to, from);
}

void laci_x86_lea(laci_code *code, laci_x86_reg to, laci_x86_memory address) {
  memory_form(code, 0x8D, to, address);
}

void laci_x86_move(laci_code *code, laci_x86_reg to, laci_x86_reg from) {
  register_form(code, 0x8B, (int)to, (int)from);
}

void laci_x86_compare(laci_code *code, laci_x86_reg left, laci_x86_reg right) {
  register_form(code, 0x3B, (int)left, (int)right);
}

void laci_x86_add(laci_code *code, laci_x86_reg to, int32_t number) {
  const bool is_short = number >= -128 && number <= 127;
  line l;
  begin(code, &l);
  put_rex(&l, true, 0, 0, (int)to);
  put(&l, is_short ? 0x83 : 0x81);
  put_registers(&l, 0, (int)to);
  if (is_short) put(&l, (unsigned)number & 0xFFU);
  else put_word(&l, (uint32_t)number);
  finish(code, &l);
}

enum {
  JUMP_BYTES = 6,
  JUMP_DISTANCE = 4 /* the last four bytes: relative to the end of the jump */
};

void laci_x86_jump_below(laci_code *code, size_t to) {
  line l;
  begin(code, &l);
  put(&l, 0x0F);
  put(&l, 0x82);
  put_word(&l, (uint32_t)((int64_t)to - (int64_t)code->n - JUMP_BYTES));
  finish(code, &l);
}

size_t laci_x86_jump_below_ahead(laci_code *code) {
  const size_t jump = code->n;
  laci_x86_jump_below(code, jump);
  return jump;
}

void laci_x86_jump_lands(laci_code *code, size_t jump) {
  const size_t after = jump + JUMP_BYTES;
  if (code->failed) return;
  const uint32_t distance = (uint32_t)(code->n - after);
  memcpy(code->bytes + after - JUMP_DISTANCE, &distance, sizeof distance);
}

void laci_x86_return(laci_code *code) { laci_code_append(code, "\xC3", 1); }

static void prefetch(laci_code *code, int level, laci_x86_memory address) {
  line l;
  begin(code, &l);
  put_rex(&l, false, 0, index_of(address), (int)address.base);
  put(&l, 0x0F);
  put(&l, 0x18);
  put_memory(&l, level, address, 1);
  finish(code, &l);
}

void laci_x86_prefetch0(laci_code *code, laci_x86_memory address) { prefetch(code, 1, address); }
void laci_x86_prefetch1(laci_code *code, laci_x86_memory address) { prefetch(code, 2, address); }

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

static inline void put_vex(line *l, const encoding *e, operands o, bool wide) {
  const unsigned first = not_bit(o.reg, 3) << 7 | o.not_x << 6 | o.not_b << 5 | e->map;
  const unsigned second =
      (unsigned)e->w << 7 | (~(unsigned)o.a & 15U) << 3 | (unsigned)wide << 2 | e->pp;
  put_word(l, 0xC4U | first << 8 | second << 16 | (unsigned)e->opcode << 24);
}

/* What EVEX adds: k: only the lanes of mask register k are written (0: all), zero: the others
 * become zero; broadcast: one number of memory for all lanes. */
typedef struct extras {
  int k;
  bool zero, broadcast;
} extras;

static inline void put_evex(line *l, const encoding *e, operands o, extras how) {
  const unsigned first =
      not_bit(o.reg, 3) << 7 | o.not_x << 6 | o.not_b << 5 | not_bit(o.reg, 4) << 4 | e->map;
  const unsigned second = (unsigned)e->w << 7 | (~(unsigned)o.a & 15U) << 3 | 4U | e->pp;
  const unsigned third = (unsigned)how.zero << 7 | 2U << 5 | (unsigned)how.broadcast << 4 |
                         not_bit(o.a, 4) << 3 | (unsigned)how.k;
  put_word(l, 0x62U | first << 8 | second << 16 | third << 24);
  put(l, e->opcode);
}

static void memory_evex(laci_code *code, laci_x86_op op, operands o, laci_x86_memory m,
                        extras how) {
  const encoding *e = &encodings[op];
  line l;
  begin(code, &l);
  o.not_x = not_bit(index_of(m), 3);
  o.not_b = not_bit((int)m.base, 3);
  put_evex(&l, e, o, how);
  put_memory(&l, o.reg, m, how.broadcast ? 4 : e->unit);
  finish(code, &l);
}

static void register_evex(laci_code *code, const encoding *e, operands o, int rm, extras how) {
  line l;
  begin(code, &l);
  o.not_x = not_bit(rm, 4);
  o.not_b = not_bit(rm, 3);
  put_evex(&l, e, o, how);
  put_registers(&l, o.reg, rm);
  finish(code, &l);
}

void laci_x86_vector(laci_code *code, laci_x86_width width, laci_x86_op op, int to, int a, int b) {
  const operands o = {to, a, 1, not_bit(b, 3)};
  if (width == LACI_X86_ZMM) {
    register_evex(code, &encodings[op], o, b, (extras){0});
    return;
  }
  line l;
  begin(code, &l);
  put_vex(&l, &encodings[op], o, true);
  put_registers(&l, to, b);
  finish(code, &l);
}

void laci_x86_vector_memory(laci_code *code, laci_x86_width width, laci_x86_op op, int to, int a,
                            laci_x86_memory b) {
  operands o = {to, a, not_bit(index_of(b), 3), not_bit((int)b.base, 3)};
  if (width == LACI_X86_ZMM) {
    memory_evex(code, op, o, b, (extras){0});
    return;
  }
  line l;
  begin(code, &l);
  put_vex(&l, &encodings[op], o, true);
  put_memory(&l, to, b, 1);
  finish(code, &l);
}

void laci_x86_broadcast(laci_code *code, laci_x86_op op, int acc, int a, laci_x86_memory b) {
  memory_evex(code, op, (operands){.reg = acc, .a = a}, b, (extras){.broadcast = true});
}

/* Returns the bits that differ between a multiply-add into register acc and one into register 0:
 * bits of EVEX's first byte and of ModRM. */
static uint64_t acc_bits(int acc) {
  const unsigned prefix = bit(acc, 3) << 7 | bit(acc, 4) << 4;
  return (uint64_t)prefix << 8 | ((uint64_t)acc & 7U) << (40 + 3);
}

/* Multiply-adds differ only in a few bits, and in their last byte if all displacements are short.
 * So one is encoded, and each of them is made from it and written by one store of eight bytes. */
void laci_x86_broadcasts(laci_code *code, laci_x86_op op, uint32_t accs, int a, laci_x86_memory b) {
  const int n = __builtin_popcount(accs), first = b.displacement / 4, last = first + n - 1;
  const bool absent = first <= 0 && last >= 0;
  if (n == 0) return;
  if (b.displacement % 4 || first < -128 || last > 127 || absent) {
    for (; accs; accs &= accs - 1, b.displacement += 4) {
      laci_x86_broadcast(code, op, __builtin_ctz(accs), a, b);
    }
    return;
  }
  line l;
  begin(code, &l);
  uint64_t same = 0;
  put_evex(&l, &encodings[op], (operands){0, a, not_bit(index_of(b), 3), not_bit((int)b.base, 3)},
           (extras){.broadcast = true});
  put_memory(&l, 0, b, 4);
  const int step_at = 8 * (l.n - 1);
  for (int at = 0; at < l.n - 1; at++) same |= (uint64_t)l.bytes[at] << 8 * at;
  if (!laci_code_reserve(code, (size_t)n * sizeof same)) return;
  uint8_t *to = code->bytes + code->n;
  for (uint64_t step = (uint64_t)first; accs; accs &= accs - 1, step++, to += l.n) {
    const uint64_t bytes = (same ^ acc_bits(__builtin_ctz(accs))) | (step & 0xFFU) << step_at;
    memcpy(to, &bytes, sizeof bytes);
  }
  code->n = (size_t)(to - code->bytes);
}

void laci_x86_load_masked(laci_code *code, int to, int k, laci_x86_memory from) {
  memory_evex(code, LACI_X86_LOAD, (operands){.reg = to}, from, (extras){.k = k, .zero = true});
}

void laci_x86_store_masked(laci_code *code, int from, int k, laci_x86_memory to) {
  memory_evex(code, LACI_X86_STORE, (operands){.reg = from}, to, (extras){.k = k});
}

static void load_mask(laci_code *code, const encoding *e, int k, laci_x86_memory from) {
  line l;
  begin(code, &l);
  put_vex(&l, e, (operands){k, 0, not_bit(index_of(from), 3), not_bit((int)from.base, 3)}, false);
  put_memory(&l, k, from, 1);
  finish(code, &l);
}

void laci_x86_load_mask(laci_code *code, int k, laci_x86_memory from) {
  load_mask(code, &(const encoding){PP_NONE, MAP_0F, 0x90, 0, 0}, k, from);
}

void laci_x86_load_word_mask(laci_code *code, int k, laci_x86_memory from) {
  load_mask(code, &(const encoding){PP_66, MAP_0F, 0x90, 0, 1}, k, from);
}

void laci_x86_load_byte_mask(laci_code *code, int k, laci_x86_memory from) {
  load_mask(code, &(const encoding){PP_NONE, MAP_0F, 0x90, 0, 1}, k, from);
}

void laci_x86_blend_bytes(laci_code *code, int to, int k, int a, int b) {
  register_evex(code, &(const encoding){PP_66, MAP_0F38, 0x66, 0, 0}, (operands){.reg = to, .a = a},
                b, (extras){.k = k});
}

void laci_x86_blend_words(laci_code *code, int to, int k, int a, int b) {
  register_evex(code, &(const encoding){PP_66, MAP_0F38, 0x66, 0, 1}, (operands){.reg = to, .a = a},
                b, (extras){.k = k});
}

void laci_x86_keep_words(laci_code *code, int to, int k, int from) {
  register_evex(code, &(const encoding){PP_F2, MAP_0F, 0x6F, 0, 1}, (operands){.reg = to}, from,
                (extras){.k = k, .zero = true});
}

/* Encodes a shift or rotation: ModRM's register field says which one, and the prefix field of
 * operand a is the target. */
static void shift(laci_code *code, int which, int to, int from, int bits) {
  line l;
  begin(code, &l);
  put_evex(&l, &(const encoding){PP_66, MAP_0F, 0x72, 0, 0},
           (operands){0, to, not_bit(from, 4), not_bit(from, 3)}, (extras){0});
  put_registers(&l, which, from);
  put(&l, (unsigned)bits);
  finish(code, &l);
}

void laci_x86_rotate_left(laci_code *code, int to, int from, int bits) {
  shift(code, 1, to, from, bits);
}

void laci_x86_shift_left(laci_code *code, int to, int from, int bits) {
  shift(code, 6, to, from, bits);
}

void laci_x86_shift_right(laci_code *code, int to, int from, int bits) {
  shift(code, 2, to, from, bits);
}

void laci_x86_zero_upper(laci_code *code) { laci_code_append(code, "\xC5\xF8\x77", 3); }
