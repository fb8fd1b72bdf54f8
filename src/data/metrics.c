/* SPDX-License-Identifier: Apache-2.0
 * Counts the images that a classifier got right. metrics.h has the definitions. */
#include "data/metrics.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>

#include "base/error.h"

/** Checks the logits of one image, and sets *most to the largest of them. A logit of -inf is valid:
 * the class is impossible. Fails LAC_BAD_VALUE if a logit is NaN or inf, or all are -inf. */
static lac_status check_logits_row(const float *row, int64_t classes, int64_t image, float *most,
                                   lac_error *err) {
  *most = -INFINITY;
  for (int64_t j = 0; j < classes; j++) {
    if (!(row[j] < INFINITY)) {
      return laci_fail(err, LAC_BAD_VALUE,
                       "image %" PRId64 ", class %" PRId64
                       ": a logit of %g, wanted a finite number",
                       image, j, isnan(row[j]) ? (double)NAN : (double)row[j]);
    }
    if (row[j] > *most) *most = row[j];
  }
  if (*most > -INFINITY) return LAC_OK;
  return laci_fail(err, LAC_BAD_VALUE, "image %" PRId64 ": all logits are -inf", image);
}

/** Returns the softmax cross entropy of one image. most: its largest logit, which is subtracted
 * first, so that the sum of exponentials is between 1 and the number of classes and cannot
 * overflow. */
static double cross_entropy(const float *row, int64_t classes, float most, int64_t label) {
  double sum = 0;
  for (int64_t j = 0; j < classes; j++) sum += exp((double)row[j] - (double)most);
  return log(sum) + ((double)most - (double)row[label]);
}

static double loss_of_row(const laci_metrics *metrics, const float *row, int64_t classes,
                          float most, int64_t label) {
  if (!metrics->of_probabilities) return cross_entropy(row, classes, most, label);
  return -log(fmax((double)row[label], (double)FLT_TRUE_MIN));
}

static int64_t count_classes_before_label(const float *row, int64_t classes, int64_t label) {
  int64_t n = 0;
  for (int64_t j = 0; j < classes; j++) {
    n += row[j] > row[label] || (row[j] == row[label] && j < label);
  }
  return n;
}

void laci_metrics_add_score(laci_metrics *metrics, const laci_image_score *score) {
  metrics->images++;
  metrics->top1 += score->before < 1;
  metrics->top5 += score->before < 5;
  metrics->loss_sum += score->loss;
}

lac_status laci_metrics_add(laci_metrics *metrics, const float *logits, int64_t n, int64_t classes,
                            const int32_t *labels, lac_error *err) {
  laci_metrics sum = *metrics;
  for (int64_t i = 0; i < n; i++) {
    const float *row = logits + i * classes;
    const int64_t image = sum.first + sum.images;
    float most;
    if (labels[i] < 0 || labels[i] >= classes) {
      return laci_fail(err, LAC_BAD_SHAPE,
                       "image %" PRId64 " is of class %" PRId32 ", but the network has %" PRId64
                       " classes",
                       image, labels[i], classes);
    }
    lac_error bad = {0};
    lac_status st = check_logits_row(row, classes, image, &most, &bad);
    if (st && sum.counts_bad) {
      if (sum.n_bad++ == 0) sum.bad = bad;
      sum.images++;
      continue;
    }
    if (st && err) *err = bad;
    if (st) return st;
    const laci_image_score score = {.loss = loss_of_row(metrics, row, classes, most, labels[i]),
                                    .before = count_classes_before_label(row, classes, labels[i])};
    if (sum.scores) sum.scores[image] = score;
    laci_metrics_add_score(&sum, &score);
  }
  *metrics = sum;
  return LAC_OK;
}

lac_status laci_metrics_check_all_finite(const laci_metrics *metrics, lac_error *err) {
  if (metrics->n_bad == 0) return LAC_OK;
  return laci_fail(err, LAC_BAD_VALUE,
                   "%" PRId64 " of %" PRId64
                   " images have an answer that is not finite, so that no rate can be given; the "
                   "first is %s",
                   metrics->n_bad, metrics->images, metrics->bad.text);
}

static double mean_per_image(double sum, int64_t images) {
  return images > 0 ? sum / (double)images : 0;
}

double laci_metrics_top1(const laci_metrics *metrics) {
  return mean_per_image(100.0 * (double)metrics->top1, metrics->images);
}

double laci_metrics_top5(const laci_metrics *metrics) {
  return mean_per_image(100.0 * (double)metrics->top5, metrics->images);
}

double laci_metrics_loss(const laci_metrics *metrics) {
  return mean_per_image(metrics->loss_sum, metrics->images);
}
