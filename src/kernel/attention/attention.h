/* SPDX-License-Identifier: Apache-2.0
 * One head of attention:
 *
 *     s = scale * q k' + mask          [n_queries, n_keys]
 *     y = softmax(s) v                 [n_queries, width], the softmax along the keys
 *
 * a few queries at a time, so that scores never leave the cache. Rows may be anywhere in memory;
 * the elements of a row are contiguous. Sums are float32 in an order that differs between variants:
 * they agree to 1e-5 of the largest |v| (f32), and to bf16's own rounding where the elements are
 * bf16. attention_isa.c is the one text of all variants; the scalar one is the definition of right.
 * Next: engine/cpu/lower/attention.c, the reader. */
#ifndef LACI_KERNEL_ATTENTION_H
#define LACI_KERNEL_ATTENTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/variants.h"

typedef struct laci_attention {
  int64_t n_queries, n_keys, depth, width; /* all >= 1 */
  int64_t q_row, k_row, v_row, y_row; /* elements from a row to the next row of q, k, v and y */
  int64_t mask_row,
      mask_column; /* elements to the next row and column of the mask; 0: one row or column for
                      all */
  float scale;
  bool bf16;     /* elements of q, k, v and y: bf16 instead of f32 */
  bool zero_nan; /* a row of NaN (all its keys masked by -inf) is zeros instead */
} laci_attention;

/** q [n_queries, depth], k [n_keys, depth], v [n_keys, width], y [n_queries, width]; mask of f32,
 * or NULL; scratch: laci_attention_scratch bytes, aligned to 64. Any thread. */
typedef struct laci_attention_head {
  const void *q, *k, *v;
  const float *mask;
  void *y, *scratch;
} laci_attention_head;

/** False: a row of y is NaN, as its mask holds a NaN or leaves no key. Products show in y alone. */
typedef bool laci_attend(const laci_attention *a, const laci_attention_head *head);

#define LACI_ATTENTION_DECLARE(name, level) laci_attend laci_attend_##name;
LACI_KERNEL_VARIANTS(LACI_ATTENTION_DECLARE)
#undef LACI_ATTENTION_DECLARE
#if defined(__x86_64__)
laci_attend laci_attend_avx512bf16; /* bf16 only, by instructions that multiply bf16 pairs */
#endif

/** The variant for elements of this type, by the processor and the level in force (cpu/cpu.h). */
laci_attend *laci_attend_now(bool bf16);

enum {
  LACI_ATTENTION_ROWS = 6,
  LACI_ATTENTION_COLUMNS = 64
}; /* the largest block of any variant */

/** Bytes that one thread needs, whatever the variant; 0: more than can be counted. */
size_t laci_attention_scratch(const laci_attention *a);

#endif
