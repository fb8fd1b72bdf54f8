/* SPDX-License-Identifier: Apache-2.0
 * What targets make of a network's layers, as tables and closing lines. */
#ifndef CLI_TARGETS_H
#define CLI_TARGETS_H

#include <stdio.h>

#include "lacuna/report.h"

/** check: for each target a table (layer, shape, sparse, gain, remark) and a closing line. */
LAC_MUST_CHECK lac_status targets_print(const lac_report *report, FILE *out, lac_error *err);

/** The closing lines alone: "tensorrt takes 12 of 12 pruned layers, 2 are dense". */
void targets_print_sums(const lac_report *report, FILE *out);

/** False where a target refuses a layer that is pruned: err says how many, and the first. */
bool targets_take_all(const char *model, const lac_report *report, lac_error *err);

#endif
