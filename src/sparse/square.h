/* SPDX-License-Identifier: Apache-2.0
 * The mask of one M x M block that keeps N of every row and N of every column: for a weight and its
 * transpose at once, as forward and backward products read it.
 *
 * A block of fewer rows or columns is one of M x M whose missing scores are 0: it keeps at most N
 * of each row and column, and of a row that is whole, exactly N.
 *
 *     best    of all patterns with N in every row and column, the one with the largest sum
 *     greedy  scores from the largest on, each one kept while its row and its column have fewer
 *             than N; may end with fewer than N in a row
 *
 * best for m <= 4 looks at all patterns (2:4: 90) and takes the first of the best, in the order of
 * their rows; for larger m it is the exact solution of a transportation problem, by shortest
 * augmenting paths (Ahuja, Magnanti, Orlin, "Network Flows", 1993, chapter 9): exact but for
 * rounding, at about n * m steps an element. greedy: Pool, Yu, "Channel permutations for N:M
 * sparsity" (2021) and its library; ties go to the first element by rows. */
#ifndef LACI_SPARSE_SQUARE_H
#define LACI_SPARSE_SQUARE_H

#include "lacuna/status.h"
#include "sparse/weight_view.h"

/** Patterns and working memory; of one thread. */
typedef struct laci_square laci_square;

/** Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_square_create(laci_pattern pattern, laci_square **square,
                                             lac_error *err);
void laci_square_destroy(laci_square *square); /* NULL is fine */

/** How many patterns best chooses among; 0: it does not list them. */
int laci_square_patterns(const laci_square *square);

/** score [rows, columns], both at most m, finite, >= 0; mask [rows, columns], 1 = kept. */
void laci_square_greedy(laci_square *square, const double *score, int rows, int columns,
                        uint8_t *mask);
void laci_square_best(laci_square *square, const double *score, int rows, int columns,
                      uint8_t *mask);

#endif
