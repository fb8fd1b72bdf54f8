/* SPDX-License-Identifier: Apache-2.0
 * The x86-64 instructions that generated kernels are made of, and no others.
 *
 * A vector instruction of 512 bits is encoded as EVEX, one of 256 bits as VEX; the names of
 * instructions and the order of operands are the manual's: `laci_x86_vector_op(code, LACI_X86_ZMM,
 * LACI_X86_FMADD231PS, acc, a, b)` is vfmadd231ps acc, a, b: acc += a * b. A displacement is
 * encoded in one byte where possible. In EVEX that byte counts whole operands: units of 64 bytes,
 * or of 4 bytes for a number that is broadcast. tests/unit/jit_x86.c compares every form with a
 * disassembler. */
#ifndef LACI_JIT_X86_H
#define LACI_JIT_X86_H

#include "jit/code.h"

/** General registers; the values are their numbers. A function may overwrite RAX RCX RDX RSI RDI
 * R8-R11; its first argument is in RDI. */
typedef enum laci_x86_reg {
  LACI_X86_RAX,
  LACI_X86_RCX,
  LACI_X86_RDX,
  LACI_X86_RBX,
  LACI_X86_RSP,
  LACI_X86_RBP,
  LACI_X86_RSI,
  LACI_X86_RDI,
  LACI_X86_R8,
  LACI_X86_R9,
  LACI_X86_R10,
  LACI_X86_R11,
  LACI_X86_R12,
  LACI_X86_R13,
  LACI_X86_R14,
  LACI_X86_R15,
  LACI_X86_NONE, /* value of laci_x86_memory.index: there is no index */
} laci_x86_reg;

/** [base + index * scale + displacement]; scale 1, 2, 4 or 8; the index is never RSP. */
typedef struct laci_x86_memory {
  laci_x86_reg base, index;
  int scale;
  int32_t displacement;
} laci_x86_memory;

static inline laci_x86_memory laci_x86_at(laci_x86_reg base, int32_t displacement) {
  return (laci_x86_memory){base, LACI_X86_NONE, 1, displacement};
}

/* ---- general registers, 64 bits ---- */
void laci_x86_load(laci_code *code, laci_x86_reg to, laci_x86_memory from); /* mov to, [from] */
void laci_x86_lea(laci_code *code, laci_x86_reg to, laci_x86_memory address);
void laci_x86_move(laci_code *code, laci_x86_reg to, laci_x86_reg from);
void laci_x86_add(laci_code *code, laci_x86_reg to, int32_t number);
void laci_x86_compare(laci_code *code, laci_x86_reg left, laci_x86_reg right); /* compares unsigned
                                                                                  numbers, for a
                                                                                  jump */
/** Jumps if left was below right, to code that is written already; `to` is the value of code->n
 * there. */
void laci_x86_jump_below(laci_code *code, size_t to);
/** laci_x86_jump_below_forward jumps if left was below right, to code that is written later, and
 * returns the jump. laci_x86_set_jump_target then sets its target to the end of the code. */
size_t laci_x86_jump_below_forward(laci_code *code);
void laci_x86_set_jump_target(laci_code *code, size_t jump);
void laci_x86_return(laci_code *code);
/** Prefetch into all levels of the cache (0), or into all but the first (1). */
void laci_x86_prefetch0(laci_code *code, laci_x86_memory address);
void laci_x86_prefetch1(laci_code *code, laci_x86_memory address);

/* ---- vectors ---- */
typedef enum laci_x86_width { LACI_X86_YMM, LACI_X86_ZMM } laci_x86_width; /* of 256 and 512 bits */

/** Instructions with operands to, a, b. Those from LOAD to CVTPS2DQ have no `a` (pass 0). Those
 * before ADDPS exist in 512 bits only, those from PCMPEQD on in 256 bits only. */
typedef enum laci_x86_op {
  LACI_X86_DPBF16PS,      /* on the two bf16 of each lane: to += a's high * b's, then to += a's low
                             * b's */
  LACI_X86_CVTNE2PS2BF16, /* words of `to`: b's 16 floats, then a's */
  LACI_X86_DPBUSD,        /* on the four bytes of each lane: to += a's u8 * b's s8 */
  LACI_X86_PERMW,         /* word i of `to` is word a[i] of b */
  LACI_X86_PSHUFB,        /* in each 16 bytes: byte i of `to` is the byte of a with the number in
                             b's byte i */
  LACI_X86_PACKSSDW,      /* in each 16 bytes: a's, then b's 32-bit numbers as words, saturated to
                             s16 */
  LACI_X86_PACKUSWB,      /* in each 16 bytes: a's, then b's words as bytes, saturated to u8 */
  LACI_X86_PADDSW,        /* a + b of words, saturated to s16 */
  LACI_X86_PSUBD,         /* a - b */
  LACI_X86_PMAXUB,
  LACI_X86_MULPS,
  LACI_X86_ADDPS,
  LACI_X86_MAXPS, /* a > b ? a : b; if b is NaN, the result is NaN */
  LACI_X86_MINPS,
  LACI_X86_FMADD231PS,
  LACI_X86_PXOR, /* vpxord in 512 bits */
  LACI_X86_PAND, /* vpandd in 512 bits */
  LACI_X86_LOAD, /* vmovups */
  LACI_X86_STORE,
  LACI_X86_BROADCASTSS,
  LACI_X86_CVTDQ2PS,
  LACI_X86_CVTPS2DQ, /* rounds to the nearest, halves to even; numbers that do not fit become the
                        lowest integer */
  LACI_X86_PCMPEQD,
  LACI_X86_MASKLOAD,  /* vmaskmovps to, a, [b]: loads the lanes where a's sign bit is set */
  LACI_X86_MASKSTORE, /* vmaskmovps [b], a, from: stores the lanes where a's sign bit is set */
  LACI_X86_PBROADCASTD,
  LACI_X86_N_OPS,
} laci_x86_op;

/** Appends an instruction with all operands in registers 0 to 15, or in 512 bits 0 to 31. */
void laci_x86_vector_op(laci_code *code, laci_x86_width width, laci_x86_op op, int to, int a,
                        int b);
/** Appends an instruction whose last operand is in memory. */
void laci_x86_vector_op_with_memory(laci_code *code, laci_x86_width width, laci_x86_op op, int to,
                                    int a, laci_x86_memory b);
/** Appends acc += a * [b], with four bytes of memory broadcast to all 16 lanes: FMADD231PS,
 * DPBF16PS or DPBUSD. With MULPS, acc = a * [b]. */
void laci_x86_multiply_add_broadcast(laci_code *code, laci_x86_op op, int acc, int a,
                                     laci_x86_memory b);
/** Appends laci_x86_multiply_add_broadcast for every acc whose bit is set, in ascending order, with
 * consecutive four-byte numbers in memory. Most code consists of these; appending them together is
 * several times as fast. */
void laci_x86_multiply_add_broadcasts(laci_code *code, laci_x86_op op, uint32_t accs, int a,
                                      laci_x86_memory b);
/** Load or store only the lanes of mask register k, 1 to 7; the other lanes of a loaded register
 * become zero. */
void laci_x86_load_masked(laci_code *code, int to, int k, laci_x86_memory from);
void laci_x86_store_masked(laci_code *code, int from, int k, laci_x86_memory to);
void laci_x86_load_mask(laci_code *code, int k, laci_x86_memory from); /* kmovw: 16 lanes */

/* ---- vectors of 32 words or 64 bytes, 512 bits ---- */
void laci_x86_load_byte_mask(laci_code *code, int k, laci_x86_memory from); /* kmovq */
/** Selects bytes of b where mask register k has a bit, and bytes of a elsewhere. */
void laci_x86_blend_bytes(laci_code *code, int to, int k, int a, int b);
void laci_x86_load_word_mask(laci_code *code, int k, laci_x86_memory from); /* kmovd */
/** Selects words of b where mask register k has a bit, and words of a elsewhere. */
void laci_x86_blend_words(laci_code *code, int to, int k, int a, int b);
/** Keeps words of `from` where mask register k has a bit; the others become zero. */
void laci_x86_keep_words(laci_code *code, int to, int k, int from);
/** Rotate or shift the 32 bits of each lane by `bits`. */
void laci_x86_rotate_left(laci_code *code, int to, int from, int bits);
void laci_x86_shift_left(laci_code *code, int to, int from, int bits);
void laci_x86_shift_right(laci_code *code, int to, int from, int bits); /* shifts in zeros */

/** To be appended before a return: otherwise code of older instruction sets runs slower after wide
 * vectors. */
void laci_x86_zero_upper(laci_code *code);

#endif
