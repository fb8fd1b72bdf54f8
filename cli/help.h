/* SPDX-License-Identifier: Apache-2.0
 * Everything that is printed from the tables of verbs and options. VERB_COUNT stands for the
 * program as a whole. */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include <stdio.h>

#include "args.h"

/** What `lacuna help` and `lacuna help VERB` print. */
void help_print(FILE *out, verb_id verb);

/** lacuna.1, lacuna-VERB.1 as roff with the man macros. */
void manual_print(FILE *out, verb_id verb);

/** The completion script of a shell: bash, zsh or fish. */
void completion_print(FILE *out, const char *shell);

#endif
