/* SPDX-License-Identifier: Apache-2.0
 * Makes a mask rule (laci_mask_rule) from the caller's options. */
#include "api/prune/rule_in.h"

#include <stdio.h>
#include <string.h>

#include "api/prune/calibration_in.h"
#include "base/error.h"
#include "calibrate/fit.h"
#include "lacuna/prune.h"
#include "sparse/mask.h"

laci_mask_rule laci_mask_rule_of(const lac_options *options) {
  laci_mask_rule rule = {.pattern = {options->n, options->m}};
  if (options->v) {
    rule.form = LACI_MASK_SHARED;
    rule.v = options->v;
  } else if (options->mask) {
    (void)laci_mask_form_find(options->mask, &rule.form);
  }
  return rule;
}

const char *laci_pattern_text(const lac_options *options, char text[LACI_PATTERN_TEXT]) {
  const int n = options->v ? snprintf(text, LACI_PATTERN_TEXT, "%d:", options->v) : 0;
  (void)snprintf(text + n, (size_t)(LACI_PATTERN_TEXT - n), "%d:%d", options->n, options->m);
  return text;
}

/* Checks score and mask: scores that choose several weights together work only on rows ("1d"). */
static lac_status check_score(const lac_options *options, const laci_mask_rule *rule,
                              lac_error *err) {
  const laci_score *score = options->calibration ? laci_score_of_options(options) : NULL;
  char text[LACI_PATTERN_TEXT];
  if (!score || rule->form == LACI_MASK_1D || laci_score_is_saliency(score)) return LAC_OK;
  return laci_fail(err, LAC_BAD_ARGUMENT,
                   "%s %s with score %s: it chooses masks along input channels alone; wanted "
                   "magnitude, random, wanda or ria",
                   rule->v ? "pattern" : "mask",
                   rule->v ? laci_pattern_text(options, text) : options->mask,
                   laci_score_name(score));
}

lac_status laci_check_mask_rule(const lac_options *options, lac_error *err) {
  laci_mask_form form = LACI_MASK_1D;
  char text[LACI_PATTERN_TEXT];
  if (options->mask && !laci_mask_form_find(options->mask, &form)) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "mask %s: wanted 1d, 2d-greedy or 2d-best",
                     options->mask);
  }
  if (!options->v &&
      (options->m < 2 || options->m > 64 || options->n < 1 || options->n >= options->m)) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "pattern %d:%d: wanted N:M with 1 <= N < M <= 64",
                     options->n, options->m);
  }
  if (options->v && form != LACI_MASK_1D) {
    return laci_fail(
        err, LAC_BAD_ARGUMENT,
        "mask %s with pattern %s: wanted N:M, whose blocks have as many rows as columns",
        options->mask, laci_pattern_text(options, text));
  }
  const laci_mask_rule rule = laci_mask_rule_of(options);
  lac_status st = laci_mask_rule_check(&rule, err);
  return st ? st : check_score(options, &rule, err);
}
