/* SPDX-License-Identifier: Apache-2.0
 * `--like SCRIPT`: the options of a well-known script are translated to options of this command
 * before the parser of args.h reads them. `lacuna --like SCRIPT` takes the script's verb. Options
 * of this command that the script does not have may be given, too. */
#ifndef CLI_LIKE_H
#define CLI_LIKE_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

#include "args.h"

enum { LIKE_MOST = 64, LIKE_MOST_WORDS = 512, LIKE_MOST_TEXTS = LIKE_MOST_WORDS + 4 * LIKE_MOST };

/** An option of this command with its value. */
typedef struct like_item {
  const char *name;  /* name of the option, such as "batch-size"; with a leading *: an option of the
                        script, which script_complete_options replaces by options of this command */
  const char *value; /* the option's value; NULL: the option takes none */
  const char
      *typed; /* the script's option as the user typed it; NULL: the item is a default of the script
                 */
} like_item;

/** A command line with options of a script, and its translation to options of this command.
 * script_clear frees it; zero-initialized: there is nothing to translate. */
typedef struct like {
  const char *script; /* name of the script that --like names; NULL: no --like */
  verb_id verb;
  like_item items[LIKE_MOST];
  int n_items;
  const char *notes[LIKE_MOST]; /* pairs of texts: a word of the command line, and the message about
                                   it */
  int n_notes;
  char *operands[LIKE_MOST_WORDS], *others[LIKE_MOST_WORDS]; /* operands; and options of this
                                                                command with their values, as typed
                                                                */
  int n_operands, n_others;
  char *texts[LIKE_MOST_TEXTS]; /* allocated texts, which script_clear frees */
  int n_texts;
  int argc;
  char *argv[2 * LIKE_MOST + 2 * LIKE_MOST_WORDS + 2]; /* the words for the parser of args.h */
} like;

/** Translates the command line if it has --like as its first word or after a verb that takes it;
 * otherwise l->argv are the words of argv. argv must outlive the translation. Fails
 * LAC_BAD_ARGUMENT for an unknown script or option (the text suggests a similar one), a missing
 * value, or script options that have no equivalent. */
LAC_MUST_CHECK lac_status script_translate(int argc, char **argv, like *l, lac_error *err);
void script_clear(like *l);

/** Prints the script's options and what each of them is translated to. l->script must not be NULL.
 */
void script_print_help(const like *l, FILE *out);

/** Prints a word, quoted for a shell if necessary. */
void print_quoted_word(const char *word, FILE *out);

/** Logs the translated command, and the words that were accepted but have no effect. */
void script_log_translation(const like *l);

/** Replaces the name of an option in the error's text by the script's option that the user typed.
 */
void script_rename_error(const like *l, lac_error *err);

#endif
