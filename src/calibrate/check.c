/* SPDX-License-Identifier: Apache-2.0
 * Checks the input of a fit: shapes, pattern, and that all numbers are finite. */
#include <math.h>

#include "base/error.h"
#include "calibrate/solve_in.h"
#include "sparse/mask.h"
#include "sparse/score.h"

static lac_status check_all_finite(const laci_fit *fit, const char *what, const double *values,
                                   int rows, lac_error *err) {
  const int64_t count = (int64_t)rows * fit->columns;
  const int64_t at = laci_find_first_not_finite(LAC_DTYPE_F64, (const uint8_t *)values, count);
  if (at < 0) return LAC_OK;
  return laci_fail(err, LAC_BAD_VALUE, "%s: %s[%lld, %lld]: found %s, wanted a finite number",
                   fit->name, what, (long long)(at / fit->columns), (long long)(at % fit->columns),
                   isnan(values[at]) ? "NaN" : "an infinity");
}

lac_status laci_fit_check_input(const laci_fit *fit, bool needs_gram, lac_error *err) {
  lac_status st = laci_pattern_check(fit->pattern, err);
  if (st) return st;
  if (fit->rows < 1 || fit->columns < 1 || fit->channels < 1 || fit->columns % fit->channels) {
    return laci_fail(err, LAC_BAD_SHAPE,
                     "%s: %d x %d weights of %d channels, wanted taps times channels of them",
                     fit->name, fit->rows, fit->columns, fit->channels);
  }
  st = check_all_finite(fit, "weight", fit->weight, fit->rows, err);
  if (st || !needs_gram) return st;
  if (!fit->h || !(fit->positions > 0)) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "%s: no inputs were summed", fit->name);
  }
  st = check_all_finite(fit, "sum of products", fit->h, fit->columns, err);
  if (st || !fit->k) return st;
  return check_all_finite(fit, "sum of products with dense inputs", fit->k, fit->columns, err);
}
