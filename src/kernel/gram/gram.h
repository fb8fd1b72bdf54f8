/* SPDX-License-Identifier: Apache-2.0
 * Gram matrices of a layer's inputs (unfold.h): sums over positions of
 *
 *     H = sum x_p x_p',    K = sum x_d x_p'
 *
 * of one group each, x_p from one value and x_d from another of the same shape.
 *
 * Positions are summed in float32 by chunks (dots.h), the chunks in double and in their order: the
 * same bytes for any pool. Patches of a convolution with stride 1 overlap: the product of two of
 * their columns depends on how far their taps are apart, but for what a border cuts off
 * (correlate.c); others are laid out block by block (gram.c). */
#ifndef LACI_KERNEL_GRAM_GRAM_H
#define LACI_KERNEL_GRAM_GRAM_H

#include "kernel/gram/unfold.h"

typedef struct laci_pool laci_pool;

/** What is added to what. */
typedef struct laci_gram {
  const laci_unfold *unfold;
  const float *pruned, *dense; /* dense NULL: no K */
  const int64_t *positions;    /* [n] that are summed; NULL: all */
  int64_t n;
  double *h;     /* [groups, columns, columns]; until laci_gram_finish only the upper triangle is
                valid */
  double *k;     /* K: rows are columns of x_d; NULL if dense is NULL */
  void *scratch; /* laci_gram_scratch bytes, aligned to 64 */
} laci_gram;

/** Bytes; the same for any number of threads and of positions. */
uint64_t laci_gram_scratch(const laci_unfold *unfold, bool with_dense);

void laci_gram_add(const laci_gram *gram, laci_pool *pool);

/** Makes h of one group whole: the lower triangle becomes the upper one. */
void laci_gram_finish(double *h, int64_t columns, laci_pool *pool);

/** Are all positions together summed by displacements? That costs about as much as a third of them
 * one by one. */
bool laci_gram_correlates(const laci_unfold *unfold);

#endif
