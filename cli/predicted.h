/* SPDX-License-Identifier: Apache-2.0
 * The lines on what is predicted of a pruned network's time. */
#ifndef CLI_PREDICTED_H
#define CLI_PREDICTED_H

#include <stdio.h>

#include "lacuna/report.h"

/** Prints the share of multiplications that are pruned, the predicted time dense and pruned, and
 * how many layers run as sparse; nothing where nothing was predicted. */
void prediction_print(const lac_report *report, FILE *out);

#endif
