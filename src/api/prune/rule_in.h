/* SPDX-License-Identifier: Apache-2.0
 * Options about masks: the rule of masks, and scores that are random or read from a file. */
#ifndef LACI_API_PRUNE_RULE_IN_H
#define LACI_API_PRUNE_RULE_IN_H

#include "sparse/weight_view.h"

typedef struct lac_options lac_options;
typedef struct laci_job laci_job;

/** Returns the rule of masks for options that laci_check_mask_rule accepts. */
laci_mask_rule laci_mask_rule_of(const lac_options *options);
/** Checks the options about masks. Fails LAC_BAD_ARGUMENT. */
LAC_MUST_CHECK lac_status laci_check_mask_rule(const lac_options *options, lac_error *err);

/** Bytes of a pattern's text, such as "2:4" or "64:2:8". */
enum { LACI_PATTERN_TEXT = 48 };
const char *laci_pattern_text(const lac_options *options, char text[LACI_PATTERN_TEXT]);

/** Does the name mean a file of scores, "FILE.npz"? */
bool laci_score_is_file_name(const char *name);

/** Scores of the weights that may be pruned, for laci_prune_options; empty if the score is the
 * magnitude or one of calibration. */
typedef struct laci_score_arrays {
  int n;
  float **arrays; /* [n stored] scores of each stored tensor, from laci_alloc; NULL: it has none */
} laci_score_arrays;

/** Draws random scores, or reads scores from the options' file, and adds their bytes to the job's
 * budget. Fails LAC_NOT_FOUND for a weight without an array, LAC_BAD_SHAPE, LAC_BAD_VALUE (NaN,
 * infinite, negative), LAC_MEMORY_LIMIT, and as laci_npz_open. */
LAC_MUST_CHECK lac_status laci_score_arrays_open(const lac_options *options, laci_job *job,
                                                 laci_score_arrays *scores, lac_error *err);
void laci_score_arrays_close(laci_score_arrays *scores); /* *scores may be empty */

#endif
