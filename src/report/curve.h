/* SPDX-License-Identifier: Apache-2.0
 * Draws loss and accuracy over the steps of a training, in SVG. There are two panels, one above the
 * other, which share the axis of steps and epochs; without losses, one large panel. Evaluations are
 * marked, and the last value of each series is printed next to its end. No other program is
 * needed. */
#ifndef LACI_REPORT_CURVE_H
#define LACI_REPORT_CURVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lacuna/status.h"

typedef struct laci_curve_point {
  int64_t step; /* number of the training step; the steps of a series ascend */
  double value; /* loss, or accuracy; a value that is not finite leaves a gap in the line */
} laci_curve_point;

typedef struct laci_curve_series {
  const char *label;
  const laci_curve_point *points;
  size_t n;
  bool is_marked; /* true: points are also drawn as dots, unless there are many */
} laci_curve_series;

enum { LACI_CURVE_MAX_SERIES = 4 };

typedef struct laci_curve {
  const char *title;                             /* name of the network, the heading of the
                                                    drawing */
  const char *data;                              /* name of the training data, printed below the
                                                    title; NULL: it is not known */
  laci_curve_series loss[LACI_CURVE_MAX_SERIES]; /* series of losses: in training, in evaluation,
                                                    ... */
  laci_curve_series accuracy[LACI_CURVE_MAX_SERIES]; /* series of accuracies in percent: top-1,
                                                        top-5 */
  int n_loss, n_accuracy;
  const char *axis;       /* name of the horizontal axis; NULL: it is "step" */
  const char *loss_name;  /* name of the upper panel. Its values are then in percent; NULL: the name
                             is "loss", and its values are losses */
  double steps_per_epoch; /* number of steps in an epoch; 0: it is not known, and the axis has steps
                             only */
  double dense;           /* accuracy of the dense network in percent, drawn as a dashed line; 0:
                             not known */
  bool has_starts; /* true: the first value of each series is printed, too, and a line shows how
                      much lower the accuracy begins than `dense` */
} laci_curve;

/** Draws the curves. The caller frees *svg with laci_free. The same points give the same bytes.
 * Long series are reduced to two points for each column of pixels, the lowest and the highest.
 * Fails with LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_curve_svg(const laci_curve *curve, char **svg, size_t *size_bytes,
                                         lac_error *err);

#endif
