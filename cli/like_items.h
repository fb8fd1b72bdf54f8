/* SPDX-License-Identifier: Apache-2.0
 * The items of a `--like` translation (like.h): each is an option of this command that an option of
 * the script was translated to.
 * like.c makes them from words of the command line. like_scripts.c, like_runners.c and like_tools.c
 * make further items from these. */
#ifndef CLI_LIKE_ITEMS_H
#define CLI_LIKE_ITEMS_H

#include <inttypes.h>

#include "like.h"

/** Formats a text, printf-style. The text is freed with the translation. */
LAC_MUST_CHECK lac_status script_format_text(like *l, const char **text, lac_error *err,
                                             const char *format, ...) LAC_PRINTF(4, 5);
/** Adds an item, or replaces the item of this name. typed: the word that the user typed; NULL: the
 * item is a default. */
LAC_MUST_CHECK lac_status script_set_option(like *l, const char *name, const char *value,
                                            const char *typed, lac_error *err);
/** Was this option given as an option of this command, not of the script? */
bool script_has_own_option(const like *l, const char *name);
/** Adds the message `text` on a word `typed` of the command line that has no effect; a second word
 * with the same text is left out. */
LAC_MUST_CHECK lac_status script_add_note(like *l, const char *typed, const char *text,
                                          lac_error *err);

/** Returns the translation's item of this name; NULL: the translation has no such item. */
like_item *script_find_item(like *l, const char *name);
/** Returns the value of the item of this name, or `usual` where there is no such item or the item
 * has no value. */
const char *script_find_value(like *l, const char *name, const char *usual);
void script_remove_item(like *l, const char *name);
/** Was the option of this command given, in the words of the script or in its own? */
bool script_is_option_given(like *l, const char *name);
/** Sets an option of this command to a default, if it was not given. */
LAC_MUST_CHECK lac_status script_set_default(like *l, const char *name, const char *value,
                                             lac_error *err);
/** Adds an operand of this command. */
LAC_MUST_CHECK lac_status script_add_operand(like *l, const char *word, lac_error *err);

/** Is the translation only shown (--help, --print), so that required words may be missing? */
bool script_is_only_printed(const like *l);
/** Fails LAC_BAD_ARGUMENT for an option with a value that is not accepted: "-d fp: wanted fp32 or
 * bf16". */
lac_status script_fail_value(like *l, const char *name, const char *wanted, lac_error *err);
/** Reads the option's value, an integer >= 1. */
LAC_MUST_CHECK lac_status script_read_count(like *l, const char *name, uint64_t *count,
                                            lac_error *err);
bool script_is_in_list(const char *text, const char *const *list);

/** Sets --arch of `train` from the script's size of the network. resnext: a ResNeXt, else a ResNet.
 * Fails for `finetune` if a size was given, since MODEL says which network is trained. */
LAC_MUST_CHECK lac_status script_set_architecture(like *l, bool resnext, lac_error *err);

#endif
