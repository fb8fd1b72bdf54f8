/* SPDX-License-Identifier: Apache-2.0
 * Loss and accuracy over the steps of a training as an SVG drawing: two panels, one above the
 * other, which share the axis of steps and epochs; without losses, one large panel. Evaluations are
 * marked, and the last value of each series is printed next to its end. No other program is needed.
 */
#ifndef LACI_REPORT_CURVE_H
#define LACI_REPORT_CURVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lacuna/status.h"

typedef struct laci_curve_point {
  int64_t step; /* number of the step; steps of a series ascend */
  double value; /* a value that is not finite leaves a gap in the line */
} laci_curve_point;

typedef struct laci_curve_series {
  const char *label;
  const laci_curve_point *points;
  size_t n;
  bool is_marked; /* points are also drawn as dots, unless there are many */
} laci_curve_series;

enum { LACI_CURVE_MAX_SERIES = 4 };

typedef struct laci_curve {
  const char *title;                             /* name of the network */
  const char *data;                              /* name of the training data, for a second line;
                                                    NULL: none */
  laci_curve_series loss[LACI_CURVE_MAX_SERIES]; /* training, evaluation ... */
  laci_curve_series accuracy[LACI_CURVE_MAX_SERIES]; /* accuracies in percent: top-1, top-5 */
  int n_loss, n_accuracy;
  const char *axis;       /* name of the horizontal axis; NULL: "step" */
  const char *loss_name;  /* name of the upper panel, whose values are then percent; NULL: "loss" */
  double steps_per_epoch; /* 0: not known, the axis has steps only */
  double dense;           /* accuracy of the dense network in percent, drawn as a dashed line; 0:
                             not known */
  bool has_starts; /* the first value of each series is printed next to it, too, and the drop of
                             the accuracy from `dense` to there is drawn */
} laci_curve;

/** Draws the curves; the caller frees *svg with laci_free. The same points give the same bytes.
 * Long series are reduced to two points per pixel, the least and the largest value. Fails
 * LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_curve_svg(const laci_curve *curve, char **svg, size_t *size_bytes,
                                         lac_error *err);

#endif
