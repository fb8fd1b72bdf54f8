/* SPDX-License-Identifier: Apache-2.0
 * Chooses V:N:M masks, block by block. In a block of V output channels by M input channels, all
 * rows share four columns, and each row keeps N of these four.
 *
 *     maximize the sum over rows of (the N largest of the four)
 *
 * The method is that of Castro, Ivanov, Andrade, Ben-Nun, Fraguela, Hoefler, "VENOM: A vectorized
 * N:M format for unleashing the power of sparse Tensor Cores" (SC 2023). The four columns of a
 * block hold N:4; with the other columns, whose elements are all pruned, every row holds N:M.
 * Smaller blocks at the ends are treated alike; a block of up to four columns keeps N of each
 * row. */
#ifndef LACI_SPARSE_SHARED_COLUMNS_H
#define LACI_SPARSE_SHARED_COLUMNS_H

#include <stdbool.h>
#include <stdint.h>

enum {
  LACI_SHARED_COLUMNS = 4,
  LACI_SHARED_MOST_ROWS = 4096, /* maximum number of rows, V, that may share columns */
  LACI_SHARED_EXACT_COLUMNS = 16,
};

/** Chooses the four columns that the rows of a block share, ascending. From up to
 * LACI_SHARED_EXACT_COLUMNS columns it chooses the best four; of equal sets, the first in
 * lexicographic order. From more columns it chooses one by one, each time the column that adds most
 * to the sum above (the lowest of equal ones). This reaches at least 1 - 1/e of the maximum
 * (Nemhauser, Wolsey, Fisher 1978). score: [rows][columns], finite, >= 0; columns > 4. work: [rows
 * * (columns + 4)]. */
void laci_shared_columns_choose(const double *score, int rows, int columns, int n, double *work,
                                int chosen[LACI_SHARED_COLUMNS]);

/** Chooses the mask of a block, [rows][columns], 1 = kept. Of equal scores in a row the lowest
 * column is kept. columns: any number. work: as in laci_shared_columns_choose. */
void laci_shared_columns_mask(const double *score, int rows, int columns, int n, double *work,
                              uint8_t *mask);

#endif
