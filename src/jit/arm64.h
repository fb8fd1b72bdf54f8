/* SPDX-License-Identifier: Apache-2.0
 * The instructions of 64-bit ARM that generated kernels are made of, and no others: each is a word
 * of four bytes. Their names and the order of their operands are the manual's; vectors are four
 * floats. tests/unit/jit_arm64.c compares every form with a disassembler. */
#ifndef LACI_JIT_ARM64_H
#define LACI_JIT_ARM64_H

#include "jit/code.h"

/* General registers are numbers: x0 to x30. A function may overwrite x0 to x17 and finds its first
 * argument in x0. Vectors are numbers, too: v0 to v31; of v8 to v15 a function gives the lower
 * halves back as they were. */

/* ---- general registers, 64 bits ---- */
void laci_arm64_load(laci_code *code, int to, int base, int offset); /* a multiple of 8, to 32760 */
void laci_arm64_add(laci_code *code, int to, int a, int b, int shift); /* a + (b << shift) */
/** Of any number below 2^32, in one to three instructions; `to` is not `a` where it is above 2^24.
 */
void laci_arm64_add_number(laci_code *code, int to, int a, uint32_t number);
void laci_arm64_compare(laci_code *code, int left, int right); /* unsigned, for: */
/** Branches where left was below right, to a place that is written already: its `code->n` then. */
void laci_arm64_branch_below(laci_code *code, size_t to);
void laci_arm64_return(laci_code *code);
/** v8 to v15 onto the stack, and back. */
void laci_arm64_save_vectors(laci_code *code);
void laci_arm64_restore_vectors(laci_code *code);
/** A line of instructions, or of what is read, into the second cache; offset as of a load. */
void laci_arm64_prefetch_code(laci_code *code, int base, int offset);
void laci_arm64_prefetch_data(laci_code *code, int base, int offset);

/* ---- vectors ---- */
void laci_arm64_load_pair(laci_code *code, int first, int base, int offset);  /* and first + 1; a */
void laci_arm64_store_pair(laci_code *code, int first, int base, int offset); /* multiple of 16,
                                                                                 to 1008 */
void laci_arm64_load_next(laci_code *code, int to, int base);                 /* base += 16 */
void laci_arm64_spread_next(laci_code *code, int to,
                            int base); /* a float to all lanes; base += 4 */
void laci_arm64_move(laci_code *code, int to, int from);
void laci_arm64_multiply_add(laci_code *code, int sum, int a, int b, int lane); /* += a * b[lane] */

#endif
