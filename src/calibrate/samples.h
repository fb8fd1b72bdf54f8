/* SPDX-License-Identifier: Apache-2.0
 * Samples as calibration reads them, how they are cut into batches, and what two networks make of
 * them. */
#ifndef LACI_CALIBRATE_SAMPLES_H
#define LACI_CALIBRATE_SAMPLES_H

#include "tensor/shape.h"

typedef struct laci_budget laci_budget;
typedef struct laci_graph laci_graph;
typedef struct laci_pool laci_pool;

/** Copies samples [first, first + n) into to[i], for input i of the graph: row-major, the samples
 * along axis 0, f32 for float types, i64 for integers and booleans. The same samples whenever it is
 * asked; from one thread. */
typedef lac_status laci_calibration_fetch(void *context, int64_t first, int64_t n, void *const *to,
                                          lac_error *err);

typedef struct laci_calibration_samples {
  int64_t count;
  int64_t held_back; /* the last so many judge, in whole batches, one at least; 0: an eighth */
  int64_t judging;   /* so many more, [count, count + judging), are fetched by who judges a loss: no
                        fit and no choice looks at them */
  const laci_shape *shapes; /* [graph->n_inputs] of every input; axis 0 stands for the samples, its
                               size is not read */
  const int64_t *labels;    /* [count + judging] classes; NULL: there are none */
  laci_calibration_fetch *fetch;
  void *context;
} laci_calibration_samples;

/** Batches of equal size, the first n_fitted to fit, the others held back to judge: an eighth of
 * them, at least one where there are two. What does not fill a batch is left out: fewer samples
 * than there are batches, unless the network fixes its batch size. */
typedef struct laci_calibration_cut {
  int64_t batch; /* samples in each */
  int64_t n_batches, n_fitted;
  bool fixed;            /* the network takes no other batches */
  int64_t judging_batch; /* of samples that are only compared */
} laci_calibration_cut;

/** most: samples in a batch, at most; fixed: the network's own batch size, 0: open. Fails
 * LAC_BAD_SHAPE where there are fewer samples than one batch needs. */
LAC_MUST_CHECK lac_status laci_calibration_cut_of(int64_t count, int64_t most, int64_t fixed,
                                                  laci_calibration_cut *cut, lac_error *err);

/** A graph with other weights. */
typedef struct laci_weighted_graph {
  const laci_graph *graph;
  const uint8_t *const *weights; /* [n_stored] bytes in the place of the graph's; entries and all
                                    may be NULL: as they are */
} laci_weighted_graph;

/** Of units that are independent: samples, or batches where an output has no axis for them. With
 * e = |a - b|^2 and s = |a|^2 of a unit; a spread of `relative` follows from these sums. */
typedef struct laci_error_sums {
  int64_t n;
  double e, s, ee, es, ss;
} laci_error_sums;

/** Outputs of two networks on the same samples. */
typedef struct laci_output_difference {
  int64_t n_samples;
  double relative; /* sum |a - b|^2 / sum |a|^2 over all float outputs; 0 where there is none */
  int64_t n_answers, n_agree; /* places of the first output's last axis, and those where the largest
                                 element is the same one; 0: it has no axis of two or more */
  int64_t n_labelled, n_right_a, n_right_b; /* with labels, and one answer a sample */
  int64_t n_lost, n_won; /* of the labelled: right in a and wrong in b; wrong in a and right in b */
  laci_error_sums sums;
  const char *doubt; /* why this says nothing of other samples (they are all the same, outputs are
                        not finite); static; NULL: it does */
} laci_output_difference;

/** Outputs of a network on batches of samples, for further comparisons of it on the same samples.
 * For one thread at a time. create gives NULL without memory. */
typedef struct laci_kept_outputs laci_kept_outputs;
laci_kept_outputs *laci_kept_outputs_create(uint64_t most_bytes);
void laci_kept_outputs_destroy(laci_kept_outputs *kept); /* NULL is fine */

typedef struct laci_compare_options {
  int64_t first, n; /* samples; n is a multiple of batch */
  int64_t batch;
  laci_pool *pool;
  const laci_budget *budget;
  laci_kept_outputs *kept; /* of the first network: what is there is not computed again, and what is
                              not is added where memory allows. NULL: nothing is kept */
} laci_compare_options;

/** Runs both on the same samples; inputs and outputs of both are alike in order and shape. Fails as
 * laci_engine_create, laci_engine_run and samples->fetch do, LAC_BAD_SHAPE where outputs differ in
 * shape. */
LAC_MUST_CHECK lac_status laci_compare_outputs(const laci_weighted_graph *a,
                                               const laci_weighted_graph *b,
                                               const laci_calibration_samples *samples,
                                               const laci_compare_options *options,
                                               laci_output_difference *difference, lac_error *err);

#endif
