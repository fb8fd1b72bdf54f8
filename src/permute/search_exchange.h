/* SPDX-License-Identifier: Apache-2.0
 * The best exchange between two blocks: one column for one, or two for two.
 *
 * For blocks of up to five columns these are all possible exchanges: exchanging three for three
 * gives the same two blocks as exchanging the remaining two for two. Two blocks of 2:4 have the 35
 * splits of the classic method, of which 34 change something: 16 exchanges of one column and 18 of
 * two. Strategy stripes uses it (strategy_stripes.c). */
#ifndef LACI_PERMUTE_SEARCH_EXCHANGE_H
#define LACI_PERMUTE_SEARCH_EXCHANGE_H

#include <stddef.h>
#include <stdint.h>

enum { LACI_EXCHANGE_BLOCK = 16 }; /* maximum number of columns in a block */

/** A block of n columns. column[k]: the 16-bit integers of column k, whose number of rows is padded
 * (search_matrix.h). */
typedef struct laci_exchange_block {
  int n;
  const int16_t *column[LACI_EXCHANGE_BLOCK];
} laci_exchange_block;

typedef struct laci_exchange {
  int64_t gain;                /* gain of both blocks together, in the integers of the columns; 0:
                                  no exchange helps */
  int n;                       /* number of columns that each block gives to the other, 0 to 2 */
  int8_t from_a[2], from_b[2]; /* from_a: indices in block a of the columns that it gives to b.
                                  from_b: those that b gives to a */
} laci_exchange;

/** Working memory for laci_exchange_find_best; one per thread. */
typedef struct laci_exchange_scratch laci_exchange_scratch;
laci_exchange_scratch *laci_exchange_scratch_create(void); /* NULL: no memory; free with laci_free
                                                              */

/** Returns the exchange with the largest gain; among equals the first. keep: the pattern's n. rows:
 * a multiple of LACI_MAXSUM_ROWS. */
laci_exchange laci_exchange_find_best(const laci_exchange_block *a, const laci_exchange_block *b,
                                      int keep, size_t rows, laci_exchange_scratch *scratch);

#endif
