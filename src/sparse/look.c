/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse/measure.h"

lac_status laci_weight_measure(const laci_weight_view *weight, const laci_mask_rule *rule,
                               laci_pool *pool, laci_weight_measurement *look, lac_error *err) {
  laci_mask_rule by = *rule;
  laci_mask_scores scores;
  if (by.form != LACI_MASK_SHARED)
    by.form = LACI_MASK_1D; /* whether a weight holds N:M does not depend on how masks are chosen */
  *look = (laci_weight_measurement){.is_pruned = false};
  lac_status st = laci_mask_measure_by_rule(weight, &by, pool, &look->stats, &scores, err);
  if (st) return st;
  look->is_pruned = laci_mask_stats_are_pruned(&look->stats, weight->run, by.pattern.n);
  return laci_weight_has_pattern_along_rows(weight, by.pattern, pool, &look->holds_rows, err);
}
