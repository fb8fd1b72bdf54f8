/* SPDX-License-Identifier: Apache-2.0
 * Prints the predicted time of a pruned network. */
#ifndef CLI_PREDICTED_H
#define CLI_PREDICTED_H

#include <stdio.h>

#include "lacuna/report.h"

/** Prints the share of multiplications that are pruned, the predicted time dense and pruned, and
 * how many layers run as sparse; prints nothing if there is no prediction. */
void prediction_print(const lac_report *report, FILE *out);

#endif
