/* SPDX-License-Identifier: Apache-2.0
 * What main.c calls: one function a verb, each in its own file, declared from the list of verbs. */
#ifndef CLI_VERBS_H
#define CLI_VERBS_H

#include "args.h"

/** What the program ends with. */
typedef enum exit_code { EXIT_DONE, EXIT_FAILED, EXIT_MISUSE } exit_code;

/** EXIT_MISUSE for LAC_BAD_ARGUMENT, EXIT_FAILED for any other failure. */
exit_code exit_code_of(lac_status status);

/** Does the work and prints the result. Not EXIT_DONE: err says why, in one line, which main
 * prints. */
#define LAC_VERB(id, ...) exit_code verb_##id(const arguments *args, lac_error *err);
#include "verbs.def"
#undef LAC_VERB

#endif
