/* SPDX-License-Identifier: Apache-2.0
 * Masks as text: `check --show N`. */
#ifndef CLI_MASKS_H
#define CLI_MASKS_H

#include <stdio.h>

#include "lacuna/model.h"
#include "lacuna/report.h"

/** Prints the first n_groups groups of m elements of the layer's weight, in the order of output
 * channels and kernel positions; a digit 1 is an element that is not zero: "conv1.weight 1010
 * 0011". */
LAC_MUST_CHECK lac_status mask_print_groups(const lac_model *model, const lac_report *report,
                                            const lac_layer *layer, int n_groups, FILE *out,
                                            lac_error *err);

#endif
