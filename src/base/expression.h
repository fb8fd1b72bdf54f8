/* SPDX-License-Identifier: Apache-2.0
 * Regular expressions that callers write: Perl's syntax, by PCRE2. An expression is hostile input:
 * its compiled size, its steps and its memory are limited, so that it is answered or refused. */
#ifndef LACI_BASE_EXPRESSION_H
#define LACI_BASE_EXPRESSION_H

#include <stdbool.h>

#include "base/error.h"

typedef struct laci_expression laci_expression;

/** what: what the expression is to its caller, for messages. text and what must outlive it. Fails
 * LAC_BAD_ARGUMENT for what is no expression or a too large one, LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_expression_open(const char *what, const char *text,
                                               laci_expression **expression, lac_error *err);
void laci_expression_close(laci_expression *expression); /* NULL is fine */

/** *found: some part of the name matches. Fails LAC_BAD_ARGUMENT where that takes more steps or
 * memory than any sensible expression needs. One call at a time. */
LAC_MUST_CHECK lac_status laci_expression_find(const laci_expression *expression, const char *name,
                                               bool *found, lac_error *err);

#endif
