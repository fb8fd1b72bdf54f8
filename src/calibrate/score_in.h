/* SPDX-License-Identifier: Apache-2.0
 * A score: one file with a struct of functions, and a line of score.def.
 *
 * The simplest scores only rate each weight (saliency); in every block, the n weights of highest
 * saliency are kept. Others choose weights jointly and update those that they keep. All may use H,
 * K and the damping d (fit.h), and the target G = W_d (K + d I), where W_d are the dense weights.
 * Next: wanda.c (a saliency alone), sparsegpt.c (chooses the mask and updates weights). */
#ifndef LACI_CALIBRATE_SCORE_IN_H
#define LACI_CALIBRATE_SCORE_IN_H

#include "calibrate/fit.h"

/** The input of a score, and of the solution for a mask (solve.c): the layer to prune with its sums
 * H and K, and the damping d that all of them use (fit.h). */
typedef struct laci_score_input {
  const laci_fit *fit;
  laci_pool *pool;
  double damping; /* damping > 0 that is added to the diagonals of the products of inputs (d in
                     fit.h) */
} laci_score_input;

struct laci_score {
  const char *name, *title, *paper;
  bool needs_gram;
  /** Computes the saliency of each weight, out [rows, columns], >= 0: the larger, the more the
   * weight matters. */
  lac_status (*saliency)(const laci_score_input *input, double *out, lac_error *err);
  /** Computes mask and weight as laci_fit_choose_mask says. NULL: in each block, the weights of
   * largest saliency are kept unchanged. */
  lac_status (*choose)(const laci_score_input *input, uint8_t *mask, double *weight,
                       lac_error *err);
  /** Returns the peak number of bytes that `choose` allocates (or `saliency`, if choose is NULL).
   * NULL: none are allocated. */
  uint64_t (*memory)(const laci_fit *fit, int n_threads);
};

#define LACI_SCORE(name) extern const laci_score laci_score_##name;
#include "calibrate/score.def"
#undef LACI_SCORE

/** Returns the damping of a fit, d in fit.h; 1 where all inputs are zero, since any damping > 0 is
 * right there. */
double laci_fit_compute_damping(const laci_fit *fit);

/** Computes the right-hand side of the least-squares fit, target [rows, columns] = W_d (K + d I),
 * from the dense weights W_d. */
void laci_fit_compute_target(const laci_score_input *input, double *target);

/** Computes out [rows, columns] = weight [rows, columns] times matrix [columns, columns]. */
void laci_fit_multiply_matrix(const laci_score_input *input, const double *weight,
                              const double *matrix, double *out);

/** An N:M block of a row: columns [first, first + n_columns). */
typedef struct laci_fit_block {
  int first, n_columns;
} laci_fit_block;

/** laci_fit_count_blocks returns the number of N:M blocks of a row: ceil(channels / m) for every
 * tap (kernel position). laci_fit_find_block returns the block with index `at`, in the order of
 * columns. */
int laci_fit_count_blocks(const laci_fit *fit);
laci_fit_block laci_fit_find_block(const laci_fit *fit, int at);

/** Sets mask[c] to 1 for the n largest of n_columns scores, else to 0; of equal scores the one with
 * the lower index is kept. */
void laci_fit_mask_block(const double *score, int n_columns, int n, uint8_t *mask);
/** Calls laci_fit_mask_block for every N:M block of a row. */
void laci_fit_mask_row(const laci_fit *fit, const double *score, uint8_t *mask);

/** Chooses a row's mask like laci_fit_mask_row, by the absolute values of the scores. */
void laci_fit_mask_row_by_magnitude(const laci_fit *fit, const float *score, uint8_t *mask);

#endif
