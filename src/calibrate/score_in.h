/* SPDX-License-Identifier: Apache-2.0
 * A score: one file with a row of functions, and a line of score.def.
 *
 * The simplest only say what a weight is worth (saliency), and the largest n of every block stay.
 * Others choose weights together and change those that stay. All take what the fit offers: H, K,
 * the damping d and the target G = W_d (K + d I). Next: wanda.c (a saliency), sparsegpt.c (more).
 */
#ifndef LACI_CALIBRATE_SCORE_IN_H
#define LACI_CALIBRATE_SCORE_IN_H

#include "calibrate/fit.h"

/** A fit with what all scores derive from it. */
typedef struct laci_sums {
  const laci_fit *fit;
  laci_pool *pool;
  double damping; /* d, in the unit of H; > 0 */
} laci_sums;

struct laci_score {
  const char *name, *title, *paper;
  bool needs_gram;
  /** out [rows, columns]: the larger, the more a weight is worth, >= 0. */
  lac_status (*saliency)(const laci_sums *sums, double *out, lac_error *err);
  /** mask, weight: laci_fit_choose. NULL: the largest of saliency stay as they are. */
  lac_status (*choose)(const laci_sums *sums, uint8_t *mask, double *weight, lac_error *err);
  /** Bytes that choose, or else saliency, allocates at most; NULL: none. */
  uint64_t (*memory)(const laci_fit *fit, int n_threads);
};

#define LACI_SCORE(name) extern const laci_score laci_score_##name;
#include "calibrate/score.def"
#undef LACI_SCORE

/** d of the head of fit.h. 1 where H is all zeros: any would do. */
double laci_fit_damping(const laci_fit *fit);

/** target [rows, columns] = W_d (K + d I). */
void laci_fit_target(const laci_sums *sums, double *target);

/** out [rows, columns] = weight [rows, columns] times matrix [columns, columns]. */
void laci_fit_times(const laci_sums *sums, const double *weight, const double *matrix, double *out);

/** An N:M block of a row: columns [first, first + n_columns). */
typedef struct laci_fit_block {
  int first, n_columns;
} laci_fit_block;

/** Blocks of a row, in the order of columns: ceil(channels / m) of every tap. */
int laci_fit_blocks(const laci_fit *fit);
laci_fit_block laci_fit_block_at(const laci_fit *fit, int at);

/** mask[c] = 1 for the n largest of n_columns scores; ties keep the lowest column. */
void laci_fit_keep_block(const double *score, int n_columns, int n, uint8_t *mask);
/** The same for every block of a row. */
void laci_fit_keep_largest(const laci_fit *fit, const double *score, uint8_t *mask);

/** The same of magnitudes |score|. */
void laci_fit_keep_largest_f32(const laci_fit *fit, const float *score, uint8_t *mask);

#endif
