/* SPDX-License-Identifier: Apache-2.0
 * One function per verb, each in a separate file; main.c calls them. The declarations are made from
 * verbs.def. */
#ifndef CLI_VERBS_H
#define CLI_VERBS_H

#include "args.h"

/** Exit status of the program. */
typedef enum exit_code { EXIT_DONE, EXIT_FAILED, EXIT_MISUSE } exit_code;

/** Returns the exit status for a status: EXIT_MISUSE for LAC_BAD_ARGUMENT, EXIT_FAILED for any
 * other failure. */
exit_code exit_code_of_status(lac_status status);

/** Does the verb's work and prints the result. If it does not return EXIT_DONE, err has the reason
 * in one line, which main prints. */
#define LAC_VERB(id, ...) exit_code verb_##id(const arguments *args, lac_error *err);
#include "verbs.def"
#undef LAC_VERB

#endif
