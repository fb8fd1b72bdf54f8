/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse/look.h"

lac_status laci_weight_look_at(const laci_weight_view *weight, const laci_mask_rule *rule,
                               laci_pool *pool, laci_weight_look *look, lac_error *err) {
  laci_mask_rule by = *rule;
  laci_mask_scores scores;
  if (by.form != LACI_MASK_SHARED)
    by.form = LACI_MASK_1D; /* holding N:M does not depend on how
                                                              masks are chosen */
  *look = (laci_weight_look){.is_pruned = false};
  lac_status st = laci_mask_measure_by(weight, &by, pool, &look->stats, &scores, err);
  if (st) return st;
  look->is_pruned = laci_look_is_pruned(&look->stats, weight->run, by.pattern.n);
  return laci_mask_holds_rows(weight, by.pattern, pool, &look->holds_rows, err);
}
