/* SPDX-License-Identifier: Apache-2.0
 * The command's words for the library's hints: lac_error.hint says what could help, and this file
 * says which option does that. */
#ifndef CLI_HINT_H
#define CLI_HINT_H

#include <stdio.h>

#include "lacuna/status.h"

/** Prints, after the text of a failure on the same line, which options would help; prints nothing
 * if none would. */
void hint_print_options(const lac_error *err, FILE *out);

#endif
