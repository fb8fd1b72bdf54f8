/* SPDX-License-Identifier: Apache-2.0
 * The library says what failed, and by a hint what could help; which options do that is ours. */
#ifndef CLI_HINT_H
#define CLI_HINT_H

#include <stdio.h>

#include "lacuna/status.h"

/** What follows the failure's text on its line: nothing, or the options that help. */
void hint_print(const lac_error *err, FILE *out);

#endif
