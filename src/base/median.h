/* SPDX-License-Identifier: Apache-2.0
 * The median. */
#ifndef LACI_BASE_MEDIAN_H
#define LACI_BASE_MEDIAN_H

#include <stddef.h>

/** Sorts n numbers and returns their median, the mean of the two in the middle where n is even; 0:
 * there are none. */
double laci_median(double *numbers, size_t n);

#endif
