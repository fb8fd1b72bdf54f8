/* SPDX-License-Identifier: Apache-2.0
 * Accuracy of a classifier: top-1, top-5 and loss, from its logits.
 *
 * An image counts as right among the best k where fewer than k classes come before its label; class
 * a comes before b where its logit is greater, or equal and a < b. The loss is the mean softmax
 * cross entropy, log(sum_j exp(z_j - z_label)), in double. Images and classes are added in their
 * order, so that the same logits give the same bits. If the rows are probabilities (a network that
 * ends in a softmax), the loss is the mean of -log p_label, where p is taken as the smallest float
 * at least. */
#ifndef LACI_DATA_METRICS_H
#define LACI_DATA_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "lacuna/status.h"

/** What the metrics of a classifier need of one image's logits. */
typedef struct laci_image_score {
  double loss;
  int64_t before; /* number of classes with a higher rank than the image's label */
} laci_image_score;

/** The metrics (accuracy, loss) of the images added so far; zero-initialized, there are none. */
typedef struct laci_metrics {
  int64_t first;      /* index of the first image to be added */
  int64_t images;     /* number of images added */
  int64_t top1, top5; /* number of images whose label is the best class (top1), or among the best
                         five (top5) */
  double loss_sum;
  bool of_probabilities;    /* the rows passed to laci_metrics_add are probabilities, not logits */
  bool counts_bad;          /* true: rows (images) that are not finite are counted instead of
                               failing; no accuracy may be reported then
                               (laci_metrics_check_all_finite) */
  int64_t n_bad;            /* number of rows that are not finite */
  lac_error bad;            /* what is wrong with the first row that is not finite */
  laci_image_score *scores; /* [first + number of images] the score of each image is written here,
                               at the image's index; NULL: scores are not written */
} laci_metrics;

/** Adds n images: logits [n, classes], labels [n]. Fails LAC_BAD_SHAPE for a label outside the
 * classes and, unless counts_bad, LAC_BAD_VALUE for an image whose logits are not valid (NaN, inf,
 * or all -inf); nothing is added then. O(n * classes). */
LAC_MUST_CHECK lac_status laci_metrics_add(laci_metrics *metrics, const float *logits, int64_t n,
                                           int64_t classes, const int32_t *labels, lac_error *err);

/** Adds an image by its score (laci_image_score), with the same resulting bits as by its logits. */
void laci_metrics_add_score(laci_metrics *metrics, const laci_image_score *score);

/** Checks after the last image that all logits were finite. Fails LAC_BAD_VALUE with the number of
 * images whose logits were not. */
LAC_MUST_CHECK lac_status laci_metrics_check_all_finite(const laci_metrics *metrics,
                                                        lac_error *err);

/** Return top-1 and top-5 accuracy in percent of the images, and the mean loss; 0 if there are no
 * images. */
double laci_metrics_top1(const laci_metrics *metrics);
double laci_metrics_top5(const laci_metrics *metrics);
double laci_metrics_loss(const laci_metrics *metrics);

#endif
