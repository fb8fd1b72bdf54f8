/* SPDX-License-Identifier: Apache-2.0
 * The x86-64 instructions that generated kernels are made of, and no others.
 *
 * A vector instruction of 512 bits is encoded as EVEX, one of 256 bits as VEX; the names of
 * instructions and the order of operands are the manual's: `laci_x86_vector(code, LACI_X86_ZMM,
 * LACI_X86_FMADD231PS, acc, a, b)` is vfmadd231ps acc, a, b: acc += a * b. A displacement takes one
 * byte where it can: in EVEX that byte counts whole operands, so of 64 bytes, or of 4 for a number
 * that is broadcast. tests/unit/jit_x86.c compares every form with a disassembler. */
#ifndef LACI_JIT_X86_H
#define LACI_JIT_X86_H

#include "jit/code.h"

/** General registers by their numbers. A function may overwrite RAX RCX RDX RSI RDI R8-R11; its
 * first argument comes in RDI. */
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
  LACI_X86_NONE, /* as an index: there is none */
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
void laci_x86_compare(laci_code *code, laci_x86_reg left, laci_x86_reg right); /* unsigned, for: */
/** Jumps where left was below right, to a place that is written already: its `code->n` then. */
void laci_x86_jump_below(laci_code *code, size_t to);
/** The same to a place that is written later, and named then: here. */
size_t laci_x86_jump_below_ahead(laci_code *code);
void laci_x86_jump_lands(laci_code *code, size_t jump);
void laci_x86_return(laci_code *code);
/** Into all levels of the cache, or all but the first. */
void laci_x86_prefetch0(laci_code *code, laci_x86_memory address);
void laci_x86_prefetch1(laci_code *code, laci_x86_memory address);

/* ---- vectors ---- */
typedef enum laci_x86_width { LACI_X86_YMM, LACI_X86_ZMM } laci_x86_width; /* 256, 512 bits */

/** to, a, b; those from LOAD to CVTPS2DQ have no `a` (0), those from PCMPEQD on are of 256 bits
 * only, those before ADDPS of 512. */
typedef enum laci_x86_op {
  LACI_X86_DPBF16PS,      /* of each lane's two bf16: to += a's high * b's, then += a's low * b's */
  LACI_X86_CVTNE2PS2BF16, /* words of `to`: b's 16 floats, then a's */
  LACI_X86_DPBUSD,        /* of each lane's four bytes: to += a's u8 * b's s8 */
  LACI_X86_PERMW,         /* word i of `to` is word a[i] of b */
  LACI_X86_PSHUFB,        /* byte i of each 16: of a, the one that b's byte i says */
  LACI_X86_PACKSSDW,      /* of each 16 bytes: a's words, then b's, held in what s16 can be */
  LACI_X86_PACKUSWB,      /* the same of words into u8 */
  LACI_X86_PADDSW,        /* a + b, held in what s16 can be */
  LACI_X86_PSUBD,         /* a - b */
  LACI_X86_PMAXUB,
  LACI_X86_MULPS,
  LACI_X86_ADDPS,
  LACI_X86_MAXPS, /* a > b ? a : b, so that b's NaN stays */
  LACI_X86_MINPS,
  LACI_X86_FMADD231PS,
  LACI_X86_PXOR, /* vpxord in 512 bits */
  LACI_X86_PAND, /* vpandd in 512 bits */
  LACI_X86_LOAD, /* vmovups */
  LACI_X86_STORE,
  LACI_X86_BROADCASTSS,
  LACI_X86_CVTDQ2PS,
  LACI_X86_CVTPS2DQ, /* to the nearest, to even; what does not fit is the lowest number */
  LACI_X86_PCMPEQD,
  LACI_X86_MASKLOAD,  /* vmaskmovps to, a, [b]: where the sign of a's number is set */
  LACI_X86_MASKSTORE, /* vmaskmovps [b], a, from */
  LACI_X86_PBROADCASTD,
  LACI_X86_N_OPS,
} laci_x86_op;

/** All operands in registers, 0 to 15, or to 31 in 512 bits. */
void laci_x86_vector(laci_code *code, laci_x86_width width, laci_x86_op op, int to, int a, int b);
/** The last operand in memory. */
void laci_x86_vector_memory(laci_code *code, laci_x86_width width, laci_x86_op op, int to, int a,
                            laci_x86_memory b);
/** acc += a * [b], four bytes for all 16 lanes; FMADD231PS, DPBF16PS or DPBUSD. MULPS: acc = a *
 * [b].
 */
void laci_x86_broadcast(laci_code *code, laci_x86_op op, int acc, int a, laci_x86_memory b);
/** The same for every acc whose bit is set, in ascending order, by consecutive numbers in memory.
 * Nearly all code is this: writing it so is several times as fast. */
void laci_x86_broadcasts(laci_code *code, laci_x86_op op, uint32_t accs, int a, laci_x86_memory b);
/** Only the lanes of mask register k, 1 to 7; others of a loaded register become zero. */
void laci_x86_load_masked(laci_code *code, int to, int k, laci_x86_memory from);
void laci_x86_store_masked(laci_code *code, int from, int k, laci_x86_memory to);
void laci_x86_load_mask(laci_code *code, int k, laci_x86_memory from); /* kmovw: 16 lanes */

/* ---- vectors of 32 words or 64 bytes, 512 bits ---- */
void laci_x86_load_byte_mask(laci_code *code, int k, laci_x86_memory from); /* kmovq */
/** Bytes of b where mask register k has a bit, of a elsewhere. */
void laci_x86_blend_bytes(laci_code *code, int to, int k, int a, int b);
void laci_x86_load_word_mask(laci_code *code, int k, laci_x86_memory from); /* kmovd */
/** Words of b where mask register k has a bit, of a elsewhere. */
void laci_x86_blend_words(laci_code *code, int to, int k, int a, int b);
/** Words of `from` where mask register k has a bit, zeros elsewhere. */
void laci_x86_keep_words(laci_code *code, int to, int k, int from);
/** Each lane's 32 bits, by so many. */
void laci_x86_rotate_left(laci_code *code, int to, int from, int bits);
void laci_x86_shift_left(laci_code *code, int to, int from, int bits);
void laci_x86_shift_right(laci_code *code, int to, int from, int bits); /* zeros come in */

/** Before a return: code of older instruction sets runs slower after wide vectors without it. */
void laci_x86_zero_upper(laci_code *code);

#endif
