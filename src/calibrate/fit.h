/* SPDX-License-Identifier: Apache-2.0
 * Chooses an N:M mask for one layer and new values for the kept weights, such that the layer's
 * outputs on calibration inputs change little.
 *
 *     E(W) = sum_p |W_d x_d + c - W x_p|^2 = energy - 2 <W, G> + <W H, W>,    G = W_d K + C
 *
 * x_d are the layer's inputs in the dense network, x_p those in the network whose layers before
 * this one are pruned. c is 0, or what the layer makes up for (residual_in.h). H = sum x_p x_p',
 * K = sum x_d x_p', C = sum c x_p'. A score (score.def) chooses the mask; laci_fit_solve_weights
 * then minimizes E over the weights that stay, exactly. Both see H and K with
 *
 *     d = max(1 %, 25 % * columns / positions) * mean(diag H)
 *
 * added to their diagonals. With few positions, E has minima that do not hold for other inputs; d
 * draws the solution towards the dense weights. Layers that read the same inputs are one fit with
 * more rows. Next: score_in.h (what a score is), solve.c, sums.c. */
#ifndef LACI_CALIBRATE_FIT_H
#define LACI_CALIBRATE_FIT_H

#include <stdbool.h>
#include <stdint.h>

#include "lacuna/status.h"
#include "sparse/weight_view.h"

typedef struct laci_pool laci_pool;

/** A layer, or one group of a grouped convolution, with the sums H and K over its inputs. All
 * pointers are borrowed. */
typedef struct laci_fit {
  const char *name;  /* for messages */
  int rows, columns; /* number of the layer's outputs (rows) and inputs (columns = taps * channels,
                        ordered by tap, then by channel) */
  int channels;      /* number of channels of a tap (kernel position); N:M blocks run along them,
                        and the last block may be partial */
  laci_pattern pattern;
  laci_mask_form form;  /* form of the mask (sparse/mask.h), whose rows are the fit's rows */
  int v;                /* V of the pattern V:N:M; 0 for other patterns */
  uint64_t seed;        /* random seed, for scores that draw random numbers */
  const double *h;      /* [columns, columns] Gram matrix H of the inputs in the pruned network,
                           both triangles; NULL: the score needs no inputs */
  const double *k;      /* [columns, columns] K, the products of the dense network's inputs (rows)
                           with the pruned network's (columns); NULL: K equals H (symmetric form) */
  const double *c;      /* [rows, columns] C = sum c x_p', where the outputs are fitted to
                           W_d x_d + c (residual_in.h); NULL: c is 0 */
  double positions;     /* number of inputs (positions) over which the products were summed */
  double damping;       /* the damping d divided by mean(diag H); 0: d follows from the rule at the
                           top of this file */
  const double *weight; /* [rows, columns] W_d, the dense weights */
} laci_fit;

/** A method that chooses a mask: a line of score.def. */
typedef struct laci_score laci_score;

/** Returns the score of that name, or NULL where there is none. */
const laci_score *laci_score_find(const char *name);
/** Returns score number `at` of score.def, counted from 0, or NULL beyond the last one. */
const laci_score *laci_score_at(int at);
const char *laci_score_name(const laci_score *score);  /* returns the score's name as options give
                                                          it: "alps" */
const char *laci_score_title(const laci_score *score); /* returns the score's name as texts write
                                                          it: "ALPS" */
const char *laci_score_paper(const laci_score *score); /* returns the paper that defines the score:
                                                          authors, title, where, year */
/** Does the score read the Gram matrix of the layer's inputs? If not, it needs no calibration
 * samples. */
bool laci_score_needs_gram(const laci_score *score);

/** Does the score rate every weight by itself, so that masks of any form can be chosen by it? Other
 * scores choose 1-D masks only, row by row. */
bool laci_score_is_saliency(const laci_score *score);

/** Chooses the score's mask and the weights that the score's definition gives: W_d under the mask
 * for magnitude, random, wanda and ria; sparsegpt, obs and alps update the kept weights.
 *  mask    out  [rows, columns] bytes, 1 = kept: min(n, b) of every block of b columns
 *  weight  out  [rows, columns]; 0 where the mask is 0
 *  Fails LAC_BAD_VALUE for a NaN or Inf in weight, H or K, LAC_BAD_SHAPE, LAC_BAD_ARGUMENT,
 *  LAC_UNSUPPORTED (a form that the score does not choose), LAC_NO_MEMORY, LAC_INTERRUPTED; mask
 *  and weight are then undefined. Called from a task of a pool, it works serially. The result has
 *  the same bytes for any pool. */
LAC_MUST_CHECK lac_status laci_fit_choose_mask(const laci_fit *fit, const laci_score *score,
                                               laci_pool *pool, uint8_t *mask, double *weight,
                                               lac_error *err);

/** Computes the weights under `mask` (any mask) that minimize the damped error E. For a row with
 * the kept columns s they are w[s] = G[s] (H + d I)[s, s]^-1. Rows with the same s share one
 * factorization. Large ones are factorized in float and refined in double until |G[s] - w H[s, s]|
 * is 1e-8 |G[s]|. mask, weight, failures: as laci_fit_choose_mask. */
LAC_MUST_CHECK lac_status laci_fit_solve_weights(const laci_fit *fit, const uint8_t *mask,
                                                 laci_pool *pool, double *weight, lac_error *err);

/** Computes E, the squared error of the layer's outputs with these weights, without damping.
 * Negative results of rounding become 0. energy: the sum of |W_d x_d|^2; it is not read where k is
 * NULL: E is then <(W - W_d) H, W - W_d>. */
LAC_MUST_CHECK lac_status laci_fit_compute_error(const laci_fit *fit, const double *weight,
                                                 double energy, laci_pool *pool, double *error,
                                                 lac_error *err);

/** Computes how much each weight matters by itself, for a search over orders of channels, in the
 * unit of |w|: |w| for magnitude, the score itself for wanda and ria, |w| / sqrt((H + d I)^-1_jj)
 * for the others.
 *  saliency  out  [rows, columns]. Fails as laci_fit_choose_mask. */
LAC_MUST_CHECK lac_status laci_fit_compute_saliency(const laci_fit *fit, const laci_score *score,
                                                    laci_pool *pool, double *saliency,
                                                    lac_error *err);

/** Returns the peak bytes of choosing and then solving, without the fit and the outputs; score
 * NULL: of solving alone. */
uint64_t laci_fit_memory_bytes(const laci_fit *fit, const laci_score *score, int n_threads);

#endif
