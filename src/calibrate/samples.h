/* SPDX-License-Identifier: Apache-2.0
 * Samples as calibration reads them, how they are cut into batches, and how the outputs of two
 * networks on the same samples differ. */
#ifndef LACI_CALIBRATE_SAMPLES_H
#define LACI_CALIBRATE_SAMPLES_H

#include "tensor/shape.h"

typedef struct laci_budget laci_budget;
typedef struct laci_graph laci_graph;
typedef struct laci_pool laci_pool;

/** Copies samples [first, first + n), which have one shape set, into to[i] for every input i of the
 * graph. Layout: row-major, the samples along the input's axis of samples, f32 for float types, i64
 * for integers and booleans. A sample has the same content in every call. Called from one thread at
 * a time. */
typedef lac_status laci_calibration_fetch(void *context, int64_t first, int64_t n, void *const *to,
                                          lac_error *err);

typedef struct laci_calibration_samples {
  int64_t count;
  int64_t held_back; /* number of samples, the last of all, that are held back to judge the fits, in
                        whole batches, at least one; 0: an eighth of all samples */
  int64_t judging;   /* number of additional samples, [count, count + judging). They are read only
                        to judge a loss of quality; no fit and no choice reads them */
  const laci_shape *shapes; /* [graph->n_inputs] the shape of each input; the size of the axis along
                               which samples are is not read */
  const int *axes;          /* [graph->n_inputs] the axis of each input along which samples are; -1:
                               its content does not depend on the number of samples. NULL: axis 0 of
                               every input */
  const void *const *constants; /* [graph->n_inputs] the content of an input that is the same for
                                   all samples, as fetch copies it; NULL entry: the input differs
                                   between samples. NULL: all inputs differ */
  bool single;                  /* each batch has one sample */
  int n_shape_sets; /* number of shape sets. A shape set has a shape for every input; samples of
                       equal shapes have the same shape set. If there are several, `single` is set.
                       0: one shape set, whose shapes are `shapes` */
  const laci_shape *const *shape_sets; /* [n_shape_sets][graph->n_inputs] the input shapes of each
                                          shape set */
  const int *shape_set_of;             /* [count + judging] the number of each sample's shape set */
  const int64_t *labels;               /* [count + judging] class of each sample; NULL: there are no
                                          labels */
  laci_calibration_fetch *fetch;
  void *context;
  const char *engine; /* name of the engine that runs networks on the samples; NULL: the fast
                         engine */
} laci_calibration_samples;

/** How samples are cut into batches of equal size. The first n_fitted batches are for fitting. The
 * rest, an eighth of all batches and at least one if there are two, are held back to judge the
 * fits. Samples that do not fill a batch are left out; they are fewer than the batches, unless the
 * network fixes its batch size. */
typedef struct laci_calibration_cut {
  int64_t batch; /* number of samples in each batch */
  int64_t n_batches, n_fitted;
  bool fixed;            /* the network accepts only this batch size */
  int64_t judging_batch; /* batch size for the samples on which outputs are only compared */
} laci_calibration_cut;

/** Returns the batch size that the network or the samples require; 0: any size is possible. */
int64_t laci_calibration_required_batch(const laci_graph *graph,
                                        const laci_calibration_samples *samples);
/** Returns why samples cannot be concatenated along axis 0 of every input (constants, other axes,
 * several shape sets), a static text; NULL: they can. */
const char *laci_calibration_explain_unstackable_samples(const laci_calibration_samples *samples,
                                                         int n_inputs);

static inline int laci_calibration_sample_axis(const laci_calibration_samples *s, int input) {
  return s->axes ? s->axes[input] : 0;
}
static inline int laci_calibration_count_shape_sets(const laci_calibration_samples *s) {
  return s->n_shape_sets > 0 ? s->n_shape_sets : 1;
}
static inline int laci_calibration_shape_set_of(const laci_calibration_samples *s, int64_t sample) {
  return s->n_shape_sets > 1 ? s->shape_set_of[sample] : 0;
}

/** Cuts `count` samples into batches. most: limit of the batch size; fixed: the batch size that the
 * network requires, 0: any. Fails LAC_BAD_SHAPE where there are fewer samples than one batch
 * needs. */
LAC_MUST_CHECK lac_status laci_calibration_cut_samples(int64_t count, int64_t most, int64_t fixed,
                                                       laci_calibration_cut *cut, lac_error *err);

/** A graph, and contents that replace those of some of its stored tensors. */
typedef struct laci_weighted_graph {
  const laci_graph *graph;
  const uint8_t *const *weights; /* [n_stored] for each stored tensor, the bytes to use instead of
                                    the graph's; NULL, or a NULL entry: the graph's bytes are
                                    used */
} laci_weighted_graph;

/** Sums over n units that are independent of each other: samples, or batches where an output has no
 * axis of samples. Each unit has an error e = |a - b|^2 and a size s = |a|^2, where a and b are the
 * outputs of two networks. The fields are the sums of e, s, e * e, e * s and s * s. The standard
 * error of (sum e / sum s) follows from them. */
typedef struct laci_error_sums {
  int64_t n;
  double e, s, ee, es, ss;
} laci_error_sums;

/** What the numbers in a part of the outputs are, as found from the first network's outputs for the
 * first batch. */
typedef enum laci_output_part_kind {
  LACI_OUTPUT_PART_NUMBERS, /* all numbers of an output; if it has two scales, only the larger ones:
                               of boxes and scores, the boxes */
  LACI_OUTPUT_PART_SMALL,   /* the smaller numbers of an output with two scales: of boxes and
                               scores, the scores */
  LACI_OUTPUT_PART_ANSWERS, /* rows of probabilities or logits: e counts the rows whose largest
                               element has another index in b than in a, s counts all rows */
} laci_output_part_kind;

/** A part of the outputs whose error is measured relative to its own size. */
typedef struct laci_output_part {
  int output; /* index of the output among the graph's outputs */
  laci_output_part_kind kind;
  laci_error_sums sums;
  double shift; /* answers: sum over rows of 1 - sum_j sqrt(p_j q_j), for the probabilities p of a
                   and q of b: 0 where they agree, 1 where they have nothing in common. Else 0 */
} laci_output_part;

enum { LACI_MOST_PARTS = 24 };

/** How the outputs of two networks, a and b, differ on the same samples. */
typedef struct laci_output_difference {
  int64_t n_samples;
  double relative; /* sum |a - b|^2 / sum |a|^2 over all float outputs; 0 where there is none */
  int64_t n_answers, n_agree; /* n_answers: number of answers, which are rows along the last axis of
                                 the first output; n_agree: how many have their largest element at
                                 the same index in a and b. Both are 0 if that axis has fewer than
                                 two elements */
  int64_t n_labelled, n_right_a, n_right_b; /* n_labelled: number of samples with a label;
                                               n_right_a, n_right_b: how many of them network a and
                                               network b classify correctly. All are 0 if there are
                                               no labels, or not one answer for each sample */
  int64_t n_lost, n_won; /* number of labelled samples that only a classifies correctly (lost), and
                            that only b does (won) */
  laci_error_sums sums;
  int n_parts; /* number of entries of `parts`; outputs beyond LACI_MOST_PARTS parts have none */
  laci_output_part parts[LACI_MOST_PARTS];
  const char *doubt; /* why the result does not carry over to other samples (they are all the same,
                        outputs are not finite), a static text; NULL: it does */
} laci_output_difference;

void laci_error_sums_add(laci_error_sums *to, const laci_error_sums *from);
/** Returns the relative error e / s of the sums; 0 if both are 0, infinity if only s is 0. */
double laci_error_sums_ratio(const laci_error_sums *sums);
/** Returns the largest relative error e / s of all parts; `relative` if there are no parts. */
double laci_worst_part_error(const laci_output_difference *difference);
/** As laci_worst_part_error, but answers count by how far their probabilities shift. This tells two
 * networks apart that give the same answers on few samples. */
double laci_worst_part_shift(const laci_output_difference *difference);

/** A cache of a network's outputs on batches of samples, for later comparisons with that network on
 * the same samples. One thread at a time may use it. laci_output_cache_create returns NULL if
 * memory is short; most_bytes: limit of the cached bytes. */
typedef struct laci_output_cache laci_output_cache;
laci_output_cache *laci_output_cache_create(uint64_t most_bytes);
void laci_output_cache_destroy(laci_output_cache *cache); /* NULL is fine */

typedef struct laci_compare_options {
  int64_t first, n; /* samples on which both networks are run: n samples from sample `first` on; n
                       is a multiple of batch */
  int64_t batch;
  laci_pool *pool;
  const laci_budget *budget;
  laci_output_cache *cache; /* cache of the first network's outputs: those found there are not
                               computed again, and new ones are added while memory allows. NULL: no
                               cache */
} laci_compare_options;

/** Runs both networks on the same samples; their inputs and outputs must agree in order and shape.
 * Fails as laci_engine_create, laci_engine_run and samples->fetch do, LAC_BAD_SHAPE where outputs
 * differ in shape. */
LAC_MUST_CHECK lac_status laci_compare_outputs(const laci_weighted_graph *a,
                                               const laci_weighted_graph *b,
                                               const laci_calibration_samples *samples,
                                               const laci_compare_options *options,
                                               laci_output_difference *difference, lac_error *err);

#endif
