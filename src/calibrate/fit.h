/* SPDX-License-Identifier: Apache-2.0
 * One layer's weights under an N:M mask, so that its outputs on calibration inputs stay: which
 * weights go, and what the others become.
 *
 *     E(W) = sum_p |W_d x_d - W x_p|^2 = energy - 2 <W, G> + <W H, W>,    G = W_d K
 *
 * x_d are the layer's inputs in the dense network, x_p those in the network whose layers before
 * this one are pruned; H = sum x_p x_p', K = sum x_d x_p'. A score (score.def) chooses the mask;
 * laci_fit_solve then minimises E over the weights that stay, exactly. Both see H and K with
 *
 *     d = max(1 %, 25 % * columns / positions) * mean(diag H)
 *
 * on their diagonals: with few positions E has minima that other inputs know nothing of, and d
 * draws towards the dense weights. Layers that read the same inputs are one fit with more rows.
 * Next: score_in.h (what a score is), solve.c, sums.c. */
#ifndef LACI_CALIBRATE_FIT_H
#define LACI_CALIBRATE_FIT_H

#include <stdbool.h>
#include <stdint.h>

#include "lacuna/status.h"
#include "sparse/weight_view.h"

typedef struct laci_pool laci_pool;

/** A layer, or one group of it, with its sums. All borrowed. */
typedef struct laci_fit {
  const char *name;  /* for messages */
  int rows, columns; /* outputs; inputs: taps * channels, tap-major, then channel */
  int channels;      /* of a tap: N:M blocks are along them, the last one may be partial */
  laci_pattern pattern;
  laci_mask_form form; /* of masks (sparse/mask.h); rows are its rows */
  int v;               /* of V:N:M; else 0 */
  uint64_t seed;       /* of a score that draws */
  const double *h;     /* [columns, columns] H, all of it; NULL where only magnitude is asked for */
  const double *k;     /* [columns, columns] K, row: dense input; NULL: H (symmetric form) */
  double positions;    /* how many x were summed */
  double damping;      /* d as a part of mean(diag H); 0: the rule above */
  const double *weight; /* [rows, columns] W_d */
} laci_fit;

/** A method to choose a mask: a line of score.def. */
typedef struct laci_score laci_score;

/** NULL: no such score. */
const laci_score *laci_score_find(const char *name);
/** The score at `at` of score.def, 0, 1, ...; NULL: no more. */
const laci_score *laci_score_at(int at);
const char *laci_score_name(const laci_score *score);  /* "alps" */
const char *laci_score_title(const laci_score *score); /* "ALPS" */
const char *laci_score_paper(const laci_score *score); /* authors, title, where, year */
/** Does it read H? If not, it needs no calibration inputs. */
bool laci_score_needs_gram(const laci_score *score);

/** Does it say what each weight is worth, so that masks of any form can be made of it? Others
 * choose by the row, along the inputs. */
bool laci_score_is_saliency(const laci_score *score);

/** The score's mask and the weights that its own definition leaves: those of wanda, ria and
 *  magnitude are W_d under the mask; sparsegpt, obs and alps update what they keep.
 *  mask    out  [rows, columns] bytes, 1 = kept: min(n, b) of every block of b columns
 *  weight  out  [rows, columns]; 0 where the mask is
 *  Fails LAC_BAD_VALUE for a NaN or Inf in weight, H or K, LAC_BAD_SHAPE, LAC_BAD_ARGUMENT,
 *  LAC_UNSUPPORTED (a form that the score does not choose),
 *  LAC_NO_MEMORY, LAC_INTERRUPTED; the outputs are then not to be read. Inside a body of a pool it
 * works serially. Same bytes for any pool. */
LAC_MUST_CHECK lac_status laci_fit_choose(const laci_fit *fit, const laci_score *score,
                                          laci_pool *pool, uint8_t *mask, double *weight,
                                          lac_error *err);

/** The weights under `mask` (any mask) with the least damped E: for every row
 *  w[s] = G[s] (H + d I)[s, s]^-1. Rows that share their support are one factorisation. Large
 *  supports are factorised in float and refined in double until |G[s] - w H[s, s]| is
 *  1e-8 |G[s]|. mask, weight, failures: as laci_fit_choose. */
LAC_MUST_CHECK lac_status laci_fit_solve(const laci_fit *fit, const uint8_t *mask, laci_pool *pool,
                                         double *weight, lac_error *err);

/** E of these weights, undamped, at least 0.  energy: sum |W_d x_d|^2; where k is NULL it is not
 *  looked at, and E is <(W - W_d) H, W - W_d>. */
LAC_MUST_CHECK lac_status laci_fit_error(const laci_fit *fit, const double *weight, double energy,
                                         laci_pool *pool, double *error, lac_error *err);

/** What each weight is worth by itself, for a search over orders of channels, in the unit of |w|:
 *  magnitude |w|, wanda and ria their score, the others |w| / sqrt((H + d I)^-1_jj).
 *  saliency  out  [rows, columns]. Fails as laci_fit_choose. */
LAC_MUST_CHECK lac_status laci_fit_saliency(const laci_fit *fit, const laci_score *score,
                                            laci_pool *pool, double *saliency, lac_error *err);

/** Peak bytes of choosing and then solving, without the fit and the outputs; score NULL: of solving
 *  alone. */
uint64_t laci_fit_memory(const laci_fit *fit, const laci_score *score, int n_threads);

#endif
