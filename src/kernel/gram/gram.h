/* SPDX-License-Identifier: Apache-2.0
 * Gram matrices of a layer's inputs (unfold.h): sums over positions of
 *
 *     H = sum x_p x_p',    K = sum x_d x_p'
 *
 * for each group. x_p is an input vector from the pruned network's value, x_d from the dense
 * network's value of the same shape.
 *
 * Chunks of positions are summed in float32 (dots.h), and the chunks in double, in a fixed order:
 * results are the same bytes for any pool. Patches of a convolution with stride 1 overlap. There,
 * the product of two columns depends only on the distance of their taps, except for positions that
 * a border cuts off; correlate.c uses this. For other layers, gram.c writes the input vectors out
 * block by block. */
#ifndef LACI_KERNEL_GRAM_GRAM_H
#define LACI_KERNEL_GRAM_GRAM_H

#include "kernel/gram/unfold.h"

typedef struct laci_pool laci_pool;

/** One addition: which inputs are summed, and to which matrices. */
typedef struct laci_gram {
  const laci_unfold *unfold;
  const float *pruned, *dense; /* the layer's input in the pruned network (x_p), and in the dense
                                  one (x_d); dense NULL: k is not computed */
  const int64_t *positions;    /* [n] positions that are added; NULL: all positions */
  int64_t n;
  double *h;     /* [groups, columns, columns] the matrix H; only its upper triangle is valid until
                    laci_gram_mirror_upper */
  double *k;     /* [groups, columns, columns] the matrix K, whose rows are columns of x_d; NULL if
                    dense is NULL */
  void *scratch; /* laci_gram_scratch_bytes bytes, aligned to 64 */
} laci_gram;

/** Returns the bytes of scratch memory, which do not depend on the number of threads or of
 * positions. */
uint64_t laci_gram_scratch_bytes(const laci_unfold *unfold, bool with_dense);

void laci_gram_add_positions(const laci_gram *gram, laci_pool *pool);

/** Copies the upper triangle of one group's h to the lower triangle. */
void laci_gram_mirror_upper(double *h, int64_t columns, laci_pool *pool);

/** Can correlate.c sum all positions together, by tap distances? That costs about as much as
 * summing a third of them one by one. */
bool laci_gram_can_correlate(const laci_unfold *unfold);

#endif
