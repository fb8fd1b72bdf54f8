/* SPDX-License-Identifier: Apache-2.0
 * One head of attention:
 *
 *     s = scale * q k' + mask          [n_queries, n_keys]
 *     y = softmax(s) v                 [n_queries, width], the softmax along the keys
 *
 * It computes a few queries at a time, so that scores never leave the cache. Rows may be at any
 * distance from each other; the elements of a row are contiguous. Sums are float32 in an order that
 * differs between variants: they agree to 1e-5 of the largest |v| (f32), and to bf16's own rounding
 * where the elements are bf16. attention_isa.c is the common source of all variants; the scalar
 * variant is the reference. Caller: engine/cpu/lower/attention.c. */
#ifndef LACI_KERNEL_ATTENTION_H
#define LACI_KERNEL_ATTENTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/variants.h"

typedef struct laci_attention {
  int64_t n_queries, n_keys, depth, width; /* number of queries, of keys, of elements in a query or
                                              key, and of elements in a value; all >= 1 */
  int64_t q_row, k_row, v_row, y_row;      /* row strides of q, k, v and y, in elements */
  int64_t mask_row,
      mask_column; /* row stride and column stride of the mask, in elements; 0: one row, or one
                      column, for all */
  float scale;
  bool bf16;     /* elements of q, k, v and y are bf16; false: f32 */
  bool zero_nan; /* a row of y whose keys are all masked by -inf becomes zeros instead of NaN */
} laci_attention;

/** The operands of a head: q [n_queries, depth], k [n_keys, depth], v [n_keys, width], y
 * [n_queries, width]. The mask is f32, or NULL for none. scratch has laci_attention_scratch_bytes
 * bytes, aligned to 64. */
typedef struct laci_attention_head {
  const void *q, *k, *v;
  const float *mask;
  void *y, *scratch;
} laci_attention_head;

/** Computes y of one head. Returns false where a row of y is NaN because its mask holds a NaN or
 * masks every key. A NaN or an overflow of the products is not reported: it shows in y alone.
 * Callable from any thread. */
typedef bool laci_attend(const laci_attention *a, const laci_attention_head *head);

#define LACI_ATTENTION_DECLARE(name, level) laci_attend laci_attend_##name;
LACI_KERNEL_VARIANTS(LACI_ATTENTION_DECLARE)
#undef LACI_ATTENTION_DECLARE
#if defined(__x86_64__)
laci_attend laci_attend_avx512bf16; /* for bf16 only; uses instructions that multiply bf16 pairs */
#endif

/** Returns the fastest variant for elements of this type on this processor, within the SIMD level
 * in force (cpu/cpu.h). */
laci_attend *laci_attend_variant(bool bf16);

enum {
  LACI_ATTENTION_ROWS = 6,
  LACI_ATTENTION_COLUMNS = 64
}; /* number of queries, and of keys, in the largest block of scores of any variant */

/** Returns the bytes of scratch memory that one thread needs, with any variant; 0: the size
 * overflows. */
size_t laci_attention_scratch_bytes(const laci_attention *a);

#endif
