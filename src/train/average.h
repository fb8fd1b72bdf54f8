/* SPDX-License-Identifier: Apache-2.0
 * Computes the exponential moving average of numbers that training changes (Polyak and Juditsky,
 * 1992). Decay and warm-up are those of TensorFlow's ExponentialMovingAverage:
 *
 *     d = min(decay, (1 + t) / (10 + t)),    average = d * average + (1 - d) * now
 *
 * Early in a training the decay is small, so that the average does not depend on the initial
 * weights for long. Where a number is always zero, so is its average. The result has the same bits
 * for any number of threads. */
#ifndef LACI_TRAIN_AVERAGE_H
#define LACI_TRAIN_AVERAGE_H

#include <stdint.h>

typedef struct laci_pool laci_pool;

/** Returns d, the weight of the old average in an update, by the formula above. t: number of
 * earlier updates. 0 <= decay < 1. */
double laci_average_decay(double decay, int64_t t);

/** Updates n averages: average = d * average + (1 - d) * now. Computes in double, and rounds
 * once. */
void laci_average_update(laci_pool *pool, double d, const float *now, float *average, int64_t n);

/** Exchanges the elements of a and b, n each. */
void laci_average_swap(laci_pool *pool, float *a, float *b, int64_t n);

#endif
