/* SPDX-License-Identifier: Apache-2.0
 * How good a classifier is: top-1, top-5 and loss, from its logits.
 *
 * An image counts as right among the best k where fewer than k classes come before its label; class
 * a comes before b where its logit is greater, or equal and a < b. The loss is the mean softmax
 * cross entropy, log(sum_j exp(z_j - z_label)), in double, images and classes added in their order:
 * the same bits for the same logits. Of rows that are probabilities already (a network that ends in
 * a softmax) it is the mean of -log p_label, where p is taken as the smallest float at least. */
#ifndef LACI_DATA_METRICS_H
#define LACI_DATA_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "lacuna/status.h"

/** What one image scored: all that its part of the metrics follows from. */
typedef struct laci_image_score {
  double loss;
  int64_t before; /* classes that come before its label */
} laci_image_score;

/** Zero-initialised is empty. */
typedef struct laci_metrics {
  int64_t first;      /* the number of the first image that is added */
  int64_t images;     /* that were added */
  int64_t top1, top5; /* images that are right */
  double loss_sum;
  bool of_probabilities;    /* what is added are rows of those, not of logits */
  bool counts_bad;          /* rows that are not finite are counted and not refused: no rate may be
                               given then, see laci_metrics_check */
  int64_t n_bad;            /* of these */
  lac_error bad;            /* what is wrong with the first of them */
  laci_image_score *scores; /* [first + images that are added] by their numbers, where each one's
                               score is written; NULL: nowhere */
} laci_metrics;

/** Adds n images: logits [n, classes] row by row, labels [n]. Fails, with nothing added,
 * LAC_BAD_SHAPE for a label outside the classes and, unless counts_bad, LAC_BAD_VALUE for a logit
 * that is NaN or too large to be one. O(n * classes). */
LAC_MUST_CHECK lac_status laci_metrics_add(laci_metrics *metrics, const float *logits, int64_t n,
                                           int64_t classes, const int32_t *labels, lac_error *err);

/** Adds an image of which the score is known: the same bits as its logits, in the same order. */
void laci_metrics_add_score(laci_metrics *metrics, const laci_image_score *score);

/** After the last image: were all logits numbers? Fails LAC_BAD_VALUE, saying of how many images
 * they were not. */
LAC_MUST_CHECK lac_status laci_metrics_check(const laci_metrics *metrics, lac_error *err);

/** Percent of the images, and the mean; 0 where there are none. */
double laci_metrics_top1(const laci_metrics *metrics);
double laci_metrics_top5(const laci_metrics *metrics);
double laci_metrics_loss(const laci_metrics *metrics);

#endif
