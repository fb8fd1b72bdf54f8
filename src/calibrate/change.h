/* SPDX-License-Identifier: Apache-2.0
 * How a change of a convolution's weight changes mean and variance of its outputs, by the moments
 * of its input channels (moments.h).
 *
 *   mean      sum over channels c and taps t of w[c, t] s[t] E[x_c]
 *   variance  a * sum of w[c, t]^2 s[t] Var[x_c]  +  b * sum over c of (sum over t of ..)^2
 *
 * s[t] is the share of positions at which a tap reads the input, not its padding. a and b, not
 * negative, say how far the taps of a channel are independent (a) or the same (b). They are fitted
 * to the variances of the layer's outputs that the next batch normalization stores. */
#ifndef LACI_CALIBRATE_CHANGE_H
#define LACI_CALIBRATE_CHANGE_H

#include "lacuna/status.h"

#include <stdint.h>

typedef struct laci_channel_moments laci_channel_moments;
typedef struct laci_graph laci_graph;

/** A convolution whose weight [rows, columns, taps] changes. */
typedef struct laci_changed_layer {
  const laci_graph *graph;
  int node;                     /* index of the Conv */
  const double *before, *after; /* the weight as it is stored, in the file's order of channels */
  const laci_channel_moments *inputs;
  /* [rows] what is known of the outputs for the weight before; NULL: nothing */
  const double *mean, *variance;
  const double *bias; /* [rows] the convolution's own bias; NULL: none */
} laci_changed_layer;

/** What changes. Arrays are the caller's, [rows]. */
typedef struct laci_output_change {
  double *mean;  /* the mean after less the mean before */
  double *ratio; /* the variance after as a part of the variance before; 1 where nothing is known */
  /* the part of the known means that the moments do not explain, as a ratio of sums of squares in
   * units of the known variances; 0: no means are known */
  double unexplained;
} laci_output_change;

/** Computes the change. Fails LAC_NO_MEMORY; LAC_UNSUPPORTED for windows of more than three
 * axes. */
LAC_MUST_CHECK lac_status laci_predict_change(const laci_changed_layer *layer,
                                              laci_output_change *change, lac_error *err);

#endif
