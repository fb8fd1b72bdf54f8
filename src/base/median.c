/* SPDX-License-Identifier: Apache-2.0 */
#include "base/median.h"

#include <stdlib.h>

static int compare_doubles(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double laci_median(double *numbers, size_t n) {
  if (n == 0) return 0;
  qsort(numbers, n, sizeof *numbers, compare_doubles);
  return 0.5 * (numbers[(n - 1) / 2] + numbers[n / 2]);
}
