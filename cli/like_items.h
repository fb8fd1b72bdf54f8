/* SPDX-License-Identifier: Apache-2.0
 * The items of a translation. like.c makes them from words; like_scripts.c, like_runners.c and
 * like_tools.c make them from other items. */
#ifndef CLI_LIKE_ITEMS_H
#define CLI_LIKE_ITEMS_H

#include <inttypes.h>

#include "like.h"

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

/** Returns the item of this name; NULL: there is none. */
like_item *like_find_item(like *l, const char *name);
/** Returns the item's value, or `usual` where there is no item or it has no value. */
const char *like_item_value(like *l, const char *name, const char *usual);
void like_remove_item(like *l, const char *name);
/** Was it given, in the words of the script or as an option of this command? */
bool like_is_option_given(like *l, const char *name);
/** Sets an option that was not given. */
LAC_MUST_CHECK lac_status like_set_default(like *l, const char *name, const char *value,
                                           lac_error *err);
/** Adds an operand of this command. */
LAC_MUST_CHECK lac_status like_add_operand(like *l, const char *word, lac_error *err);

/** Is the translation only shown (--help, --print), so that required words may be missing? */
bool like_is_only_printed(const like *l);
/** Fails: "-d fp: wanted fp32 or bf16". */
lac_status like_fail_value(like *l, const char *name, const char *wanted, lac_error *err);
/** Reads the option's value, an integer >= 1. */
LAC_MUST_CHECK lac_status like_read_count(like *l, const char *name, uint64_t *count,
                                          lac_error *err);
bool like_is_in_list(const char *text, const char *const *list);

/** Sets the network: `train` needs --arch, `finetune` needs a MODEL. */
LAC_MUST_CHECK lac_status like_set_network_or_model(like *l, bool resnext, lac_error *err);

#endif
