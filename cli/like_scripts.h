/* SPDX-License-Identifier: Apache-2.0
 * What each script of --like has by default, and what its options mean together. */
#ifndef CLI_LIKE_SCRIPTS_H
#define CLI_LIKE_SCRIPTS_H

#include "like.h"

/** Fails LAC_BAD_ARGUMENT for a script that is not known. */
LAC_MUST_CHECK lac_status like_check_script(const char *script, lac_error *err);

/** A text that lives as long as the translation. */
LAC_MUST_CHECK lac_status like_text(like *l, const char **text, lac_error *err, const char *format,
                                    ...) LAC_PRINTF(4, 5);
/** The option's value is now this one; the last one counts. */
LAC_MUST_CHECK lac_status like_set(like *l, const char *name, const char *value, const char *typed,
                                   lac_error *err);
/** Was this option given in our own words? */
bool like_has(const like *l, const char *name);
/** A word that is accepted without effect, and why; once. */
LAC_MUST_CHECK lac_status like_note(like *l, const char *typed, const char *text, lac_error *err);

/** When all words are known: defaults, and options that others decide. Fails LAC_BAD_ARGUMENT. */
LAC_MUST_CHECK lac_status like_complete(like *l, lac_error *err);

#endif
