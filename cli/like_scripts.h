/* SPDX-License-Identifier: Apache-2.0
 * For each script of --like: its defaults, and options whose meaning depends on other options. */
#ifndef CLI_LIKE_SCRIPTS_H
#define CLI_LIKE_SCRIPTS_H

#include "like.h"

/** Checks the script's name. Fails LAC_BAD_ARGUMENT for an unknown script. */
LAC_MUST_CHECK lac_status like_check_script(const char *script, lac_error *err);

/** Formats a text that is freed with the translation. */
LAC_MUST_CHECK lac_status like_format_text(like *l, const char **text, lac_error *err,
                                           const char *format, ...) LAC_PRINTF(4, 5);
/** Sets the option's value; a later call replaces it. */
LAC_MUST_CHECK lac_status like_set_option(like *l, const char *name, const char *value,
                                          const char *typed, lac_error *err);
/** Was this option given as an option of this command, not of the script? */
bool like_has_own_option(const like *l, const char *name);
/** Notes once that the word `typed` is accepted without effect; `text` says why. */
LAC_MUST_CHECK lac_status like_add_note(like *l, const char *typed, const char *text,
                                        lac_error *err);

/** After all words were read: sets defaults, and options that depend on several others. Fails
 * LAC_BAD_ARGUMENT. */
LAC_MUST_CHECK lac_status like_complete(like *l, lac_error *err);

#endif
