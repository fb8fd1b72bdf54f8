/* SPDX-License-Identifier: Apache-2.0
 * Fits images to a network: changes their pixels until the statistics of the values in the network
 * are those that its batch normalizations store, which are those of the images it was trained on.
 *
 *   loss of a batch = mean over normalizations and channels of
 *                     (m - mean)^2 / variance + (s / deviation - 1)^2   + total variation
 *
 * m and s are the mean and the deviation of the normalization's input over the batch. Steps of Adam
 * (Kingma and Ba, 2015) on the pixels lower it; the network stays as it is. Every fourth
 * normalization is held back from the loss, and judges. (Cai and others, "ZeroQ", 2020; Yin and
 * others, "Dreaming to Distill", 2020.) */
#ifndef LACI_CALIBRATE_IMAGES_H
#define LACI_CALIBRATE_IMAGES_H

#include "tensor/shape.h"

typedef struct laci_budget laci_budget;
typedef struct laci_graph laci_graph;
typedef struct laci_pool laci_pool;

typedef struct laci_fit_images_options {
  laci_shape shape;          /* shape of one image, [1, C, H, W] or [1, H, W, C] */
  bool channels_last;        /* the layout is [1, H, W, C] */
  float low[3], high[3];     /* range of each channel's pixels */
  int64_t n, batch;          /* n: number of images, a multiple of `batch`; batch: number of images
                                over which statistics are computed together */
  int steps;                 /* number of optimization steps for each batch */
  laci_pool *pool;           /* threads; each fits another batch */
  const laci_budget *budget; /* memory budget; NULL: no limit */
} laci_fit_images_options;

/** Distances between the statistics and those that the network stores: the loss without total
 * variation (top of this file). */
typedef struct laci_fitted_images {
  int n_norms;                    /* number of batch normalizations whose statistics are compared;
                                     0: the network stores none, and the images stay as they are */
  double before, after;           /* distance for the normalizations in the loss, before and after
                                     the steps */
  double held_before, held_after; /* distance for the normalizations held back from the loss, before
                                     and after the steps */
} laci_fitted_images;

/** Fits the images [n, ...] in place. The result is the same for any number of threads. Fails
 * LAC_UNSUPPORTED where an operator has no gradient, LAC_MEMORY_LIMIT, LAC_INTERRUPTED,
 * LAC_NO_MEMORY, and as laci_engine_run; the images must then not be used. */
LAC_MUST_CHECK lac_status laci_fit_images(const laci_graph *graph,
                                          const laci_fit_images_options *options, float *images,
                                          laci_fitted_images *result, lac_error *err);

#endif
