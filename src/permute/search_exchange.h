/* SPDX-License-Identifier: Apache-2.0
 * The best exchange between two blocks: one column for one, or two for two.
 *
 * For blocks of up to five columns that covers all splits of their columns: three for three gives
 * the same two blocks as exchanging the other two for two. Two blocks of 2:4 have the 35 splits of
 * the classic method, of which 34 change something: 16 exchanges of one column and 18 of two. Next:
 * strategy_stripes.c, the reader. */
#ifndef LACI_PERMUTE_SEARCH_EXCHANGE_H
#define LACI_PERMUTE_SEARCH_EXCHANGE_H

#include <stddef.h>
#include <stdint.h>

enum { LACI_EXCHANGE_BLOCK = 16 }; /* most columns of a block */

/** A block's columns: i16 of search_matrix.h, rows padded. */
typedef struct laci_exchange_block {
  int n;
  const int16_t *column[LACI_EXCHANGE_BLOCK];
} laci_exchange_block;

typedef struct laci_exchange {
  int64_t gain;                /* of both blocks, in the integers of the columns; 0: none helps */
  int n;                       /* columns of each block, 0 to 2 */
  int8_t from_a[2], from_b[2]; /* which ones */
} laci_exchange;

/** Working memory of a search for exchanges: laci_alloc(1, sizeof), one a thread. */
typedef struct laci_exchange_scratch laci_exchange_scratch;
laci_exchange_scratch *laci_exchange_scratch_create(void); /* NULL: no memory; laci_free */

/** The exchange that gains most, the first of those that gain the same. `keep` is the pattern's n;
 * rows % LACI_MAXSUM_ROWS == 0. */
laci_exchange laci_exchange_best(const laci_exchange_block *a, const laci_exchange_block *b,
                                 int keep, size_t rows, laci_exchange_scratch *scratch);

#endif
