/* SPDX-License-Identifier: Apache-2.0
 * Chooses the mask of one M x M block that keeps N of every row and N of every column. So a weight
 * and its transpose both hold N:M, as the forward and the backward product read them.
 *
 * A smaller block is treated as M x M with missing scores of 0: it keeps at most N of each row and
 * column, and exactly N of a row that has all M columns.
 *
 *     best    of all patterns with N in every row and column, the one with the largest sum
 *     greedy  scores from the largest on, each one kept while its row and its column have fewer
 *             than N; may end with fewer than N in a row
 *
 * For m <= 4, best compares all patterns (90 for 2:4) and takes the first of the best, in the order
 * of their rows; for larger m it is the exact solution of a transportation problem, by shortest
 * augmenting paths (Ahuja, Magnanti, Orlin, "Network Flows", 1993, chapter 9): exact but for
 * rounding, at about n * m steps an element. greedy: Pool, Yu, "Channel permutations for N:M
 * sparsity" (2021) and its library; ties go to the first element by rows. */
#ifndef LACI_SPARSE_SQUARE_H
#define LACI_SPARSE_SQUARE_H

#include "lacuna/status.h"
#include "sparse/weight_view.h"

/** The list of patterns, and scratch memory. One thread may use it at a time. */
typedef struct laci_square laci_square;

/** Makes the list of patterns for blocks of this pattern. Fails with LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_square_create(laci_pattern pattern, laci_square **square,
                                             lac_error *err);
void laci_square_destroy(laci_square *square); /* square may be NULL */

/** Returns the number of patterns that laci_square_choose_best compares; 0: it does not use a
 * list. */
int laci_square_count_patterns(const laci_square *square);

/** Choose the mask of a block, [rows][columns], 1 = kept. score: [rows][columns], finite, >= 0.
 * rows and columns are at most m. */
void laci_square_choose_greedily(laci_square *square, const double *score, int rows, int columns,
                                 uint8_t *mask);
void laci_square_choose_best(laci_square *square, const double *score, int rows, int columns,
                             uint8_t *mask);

#endif
