/* SPDX-License-Identifier: Apache-2.0
 * A pruned network fitted to the dense one for so many seconds, or steps, and judged on samples
 * that no step saw.
 *
 *   rate(s) = rate * min((s + 1) / 20, (1 + cos(pi s / T)) / 2)     step s of T
 *
 * Of seconds, T follows from the first steps, whose rates do not depend on it: the same number of
 * steps, asked for as such, gives the same bytes. Adam (Kingma and Ba, 2015) without decay. Batch
 * normalization is as deployed in steps, too: statistics of a batch are noise that the dense
 * network's outputs do not have. Next: reconstruct.h (the loss). */
#ifndef LACI_DISTILL_REFINE_H
#define LACI_DISTILL_REFINE_H

#include "calibrate/samples.h"

typedef struct laci_refine_options {
  double seconds;              /* > 0: that all of it may take, about */
  int64_t steps;               /* > 0: exactly so many, whatever they take */
  int64_t n_fitted;            /* samples [0, n_fitted) are for steps ... */
  int64_t first_held, n_held;  /* ... and these to judge by */
  const uint8_t *const *masks; /* [n_stored] as in laci_reconstruct_options */
  int64_t batch;               /* samples a step, of fewer samples all; 0: 128 */
  double rate;                 /* 0: 1e-3 */
  uint64_t seed;               /* of the samples' order */
  bool bf16, dense_only;
  laci_pool *pool;           /* as many threads as it has; NULL: one */
  const laci_budget *budget; /* NULL: no limit */
} laci_refine_options;

typedef struct laci_refined {
  bool kept; /* it errs less on the samples held back; else there are no weights */
  int64_t steps;
  double seconds, step_seconds;         /* all of it; one step, in the middle */
  double loss_first, loss_last;         /* of steps */
  laci_output_difference before, after; /* on the samples held back */
  int n_stored;
  uint8_t **weights; /* [n_stored] new bytes in the type of the stored tensor, laci_alloc; NULL: as
                        they were. A taker sets NULL */
} laci_refined;

/** Student and teacher are of one graph. The graph and all weights stay as they are. The same bytes
 * each time for the same number of steps and of threads. Fails LAC_BAD_ARGUMENT (neither seconds
 * nor steps, no samples), as laci_reconstruct_create, laci_compare_outputs, samples->fetch;
 * LAC_BAD_VALUE where the loss is no number any more; LAC_INTERRUPTED. */
LAC_MUST_CHECK lac_status laci_refine(const laci_weighted_graph *student,
                                      const laci_weighted_graph *teacher,
                                      const laci_calibration_samples *samples,
                                      const laci_refine_options *options, laci_refined *refined,
                                      lac_error *err);
void laci_refined_clear(laci_refined *refined);

#endif
