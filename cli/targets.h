/* SPDX-License-Identifier: Apache-2.0
 * Prints which layers of a network the targets run as sparse, as tables and summary lines. */
#ifndef CLI_TARGETS_H
#define CLI_TARGETS_H

#include <stdio.h>

#include "lacuna/report.h"

/** Prints for each target a table (layer, type, shape, sparse, gain, remark) and a summary line,
 * for `lacuna check`. */
LAC_MUST_CHECK lac_status targets_print(const lac_report *report, FILE *out, lac_error *err);

/** Prints the summary lines alone: "tensorrt takes 12 of 12 pruned layers, 2 are dense". */
void targets_print_summaries(const lac_report *report, FILE *out);

/** Do all targets run all pruned layers as sparse? If not, err says how many layers a target
 * refuses, and names the first. */
bool targets_are_all_accepted(const char *model, const lac_report *report, lac_error *err);

#endif
