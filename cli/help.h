/* SPDX-License-Identifier: Apache-2.0
 * Everything that is printed from the tables of verbs and options. The parameter verb is VERB_COUNT
 * for the program as a whole. */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include <stdio.h>

#include "args.h"

/** Prints the text of `lacuna help` or `lacuna help VERB`. */
void help_print(FILE *out, verb_id verb);

/** Prints the manual page lacuna.1 or lacuna-VERB.1 as roff with the man macros. */
void manual_print(FILE *out, verb_id verb);

/** Prints the completion script for a shell: bash, zsh or fish. */
void completion_print(FILE *out, const char *shell);

#endif
