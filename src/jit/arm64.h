/* SPDX-License-Identifier: Apache-2.0
 * The instructions of 64-bit ARM that generated kernels are made of, and no others: each is a word
 * of four bytes. Names and the order of operands follow ARM's manual; vectors are four floats.
 * tests/unit/jit_arm64.c compares every form with a disassembler. */
#ifndef LACI_JIT_ARM64_H
#define LACI_JIT_ARM64_H

#include "jit/code.h"

/* General registers are given by number: x0 to x30. A function may overwrite x0 to x17, and its
 * first argument is in x0. Vectors are given by number, too: v0 to v31. A function must preserve
 * the lower halves of v8 to v15. */

/* ---- general registers, 64 bits ---- */
void laci_arm64_load(laci_code *code, int to, int base, int offset); /* offset: a multiple of 8, up
                                                                        to 32760 */
void laci_arm64_add(laci_code *code, int to, int a, int b, int shift); /* a + (b << shift) */
/** to = a + number, for any number below 2^32, by one to three instructions. Where the number is
 * above 2^24, `to` must not be `a`. */
void laci_arm64_add_number(laci_code *code, int to, int a, uint32_t number);
void laci_arm64_compare(laci_code *code, int left, int right); /* compares unsigned numbers, for a
                                                                  branch */
/** Branches if left was below right, to code that is written already; `to` is the value of code->n
 * there. */
void laci_arm64_branch_below(laci_code *code, size_t to);
void laci_arm64_return(laci_code *code);
/** Push v8 to v15 to the stack, and pop them. */
void laci_arm64_save_vectors(laci_code *code);
void laci_arm64_restore_vectors(laci_code *code);
/** Prefetch a cache line of instructions, or of data, into the second-level cache; offset as in a
 * load. */
void laci_arm64_prefetch_code(laci_code *code, int base, int offset);
void laci_arm64_prefetch_data(laci_code *code, int base, int offset);

/* ---- vectors ---- */
void laci_arm64_load_pair(laci_code *code, int first, int base,
                          int offset); /* loads first and first
                                                                                + 1 */
void laci_arm64_store_pair(laci_code *code, int first, int base,
                           int offset);                       /* offset: a multiple of
                                                                                 16, up to 1008 */
void laci_arm64_load_next(laci_code *code, int to, int base); /* loads 16 bytes, then base += 16 */
void laci_arm64_broadcast_next(laci_code *code, int to,
                               int base); /* loads a float into all lanes, then base += 4 */
void laci_arm64_move(laci_code *code, int to, int from);
void laci_arm64_multiply_add(laci_code *code, int sum, int a, int b,
                             int lane); /* sum += a * b[lane] */

#endif
