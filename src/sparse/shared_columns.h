/* SPDX-License-Identifier: Apache-2.0
 * V:N:M masks, block by block: V output channels by M input channels share four columns, and each
 * row keeps N of these.
 *
 *     sum over rows of (the N largest of the four)   is to be the largest
 *
 * Castro, Ivanov, Andrade, Ben-Nun, Fraguela, Hoefler, "VENOM: A vectorized N:M format for
 * unleashing the power of sparse Tensor Cores" (SC 2023). Packed without the other columns, a block
 * is V x 4 of N:4; with them, every row holds N:M. A block of fewer rows or columns is chosen among
 * what it has; one of up to four columns keeps N of each row. */
#ifndef LACI_SPARSE_SHARED_COLUMNS_H
#define LACI_SPARSE_SHARED_COLUMNS_H

#include <stdbool.h>
#include <stdint.h>

enum {
  LACI_SHARED_COLUMNS = 4,
  LACI_SHARED_MOST_ROWS = 4096, /* V */
  LACI_SHARED_EXACT_COLUMNS = 16,
};

/** The four columns, ascending. Up to LACI_SHARED_EXACT_COLUMNS columns: the best four, of equal
 * ones the first by their lowest columns. More: one after the other, each time the one that adds
 * most to the sum above (the lowest of equal ones), which comes within a factor 1 - 1/e of it
 * (Nemhauser, Wolsey, Fisher 1978). score [rows, columns], finite, >= 0, columns > 4; work
 * [rows * (columns + 4)]. */
void laci_shared_choose(const double *score, int rows, int columns, int n, double *work,
                        int chosen[LACI_SHARED_COLUMNS]);

/** mask [rows, columns], 1 = kept; ties of a row keep the lowest column. Any number of columns;
 * work as above. */
void laci_shared_mask(const double *score, int rows, int columns, int n, double *work,
                      uint8_t *mask);

#endif
