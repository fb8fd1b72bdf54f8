/* SPDX-License-Identifier: Apache-2.0
 * The command's words for the library's hints: lac_error.hint says what could help, and this file
 * says which option does that. */
#ifndef CLI_HINT_H
#define CLI_HINT_H

#include <stdio.h>

#include "lacuna/status.h"

/** Prints what follows a failure's text on the same line: the options that help, or nothing. */
void hint_print(const lac_error *err, FILE *out);

#endif
