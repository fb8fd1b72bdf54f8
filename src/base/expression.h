/* SPDX-License-Identifier: Apache-2.0
 * Regular expressions of users, in Perl's syntax, by PCRE2. An expression may be malicious: its
 * compiled size, its steps and its memory are limited. */
#ifndef LACI_BASE_EXPRESSION_H
#define LACI_BASE_EXPRESSION_H

#include <stdbool.h>

#include "base/error.h"

typedef struct laci_expression laci_expression;

/** Compiles the regular expression `text`. what: its purpose, for messages. `text` and `what` must
 * outlive the expression. Fails LAC_BAD_ARGUMENT if the expression is invalid or too large, and
 * LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_expression_open(const char *what, const char *text,
                                               laci_expression **expression, lac_error *err);
void laci_expression_close(laci_expression *expression); /* NULL is fine */

/** Sets *found to whether some part of the name matches. Fails LAC_BAD_ARGUMENT where that takes
 * more steps or memory than allowed. Not for two threads at once. */
LAC_MUST_CHECK lac_status laci_expression_match(const laci_expression *expression, const char *name,
                                                bool *found, lac_error *err);

#endif
