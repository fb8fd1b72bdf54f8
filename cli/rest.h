/* SPDX-License-Identifier: Apache-2.0
 * --keep-masks and --prune-rest: what becomes of the layers of a network that are not pruned where
 * others are. */
#ifndef CLI_REST_H
#define CLI_REST_H

#include "args.h"
#include "lacuna/prune.h"

/** LAC_BAD_ARGUMENT where the options contradict each other, or nothing is to be sparse. */
LAC_MUST_CHECK lac_status rest_check(const arguments *args, bool sparse, lac_error *err);

/** Are the others to stay dense? */
bool rest_stays(const arguments *args);

/** Layers of a report of lac_check: which are pruned already, which may be, and which are all zero,
 * so that neither is true. */
typedef struct rest_count {
  int n_pruned, n_rest, n_zero;
} rest_count;
rest_count rest_of(const lac_report *report);

/** A line where a part is pruned already, and a line about what is all zero. */
void rest_tell(const lac_report *report, bool stays);

#endif
