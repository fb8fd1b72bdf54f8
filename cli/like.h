/* SPDX-License-Identifier: Apache-2.0
 * `--like SCRIPT`: the options of a well-known script, translated to ours before the parser of
 * args.h sees them. Options of ours that the script has not may be given along with them. */
#ifndef CLI_LIKE_H
#define CLI_LIKE_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

#include "args.h"

enum { LIKE_MOST = 64, LIKE_MOST_WORDS = 512, LIKE_MOST_TEXTS = LIKE_MOST_WORDS + 4 * LIKE_MOST };

/** An option of ours with its value. */
typedef struct like_item {
  const char *name;  /* "batch-size"; with a leading *: not ours, looked at at the end */
  const char *value; /* NULL: it takes none */
  const char *typed; /* as the user typed it; NULL: a default of the script */
} like_item;

/** A translation; cleared by like_clear. Zero-initialised is empty: nothing was to be translated.
 */
typedef struct like {
  const char *script; /* NULL: no --like */
  verb_id verb;
  like_item items[LIKE_MOST];
  int n_items;
  const char *notes[LIKE_MOST]; /* in pairs: the word, what it says */
  int n_notes;
  char *operands[LIKE_MOST_WORDS],
      *others[LIKE_MOST_WORDS]; /* options of ours as they were typed */
  int n_operands, n_others;
  char *texts[LIKE_MOST_TEXTS]; /* that were made: freed at the end */
  int n_texts;
  int argc;
  char *argv[2 * LIKE_MOST + 2 * LIKE_MOST_WORDS + 2]; /* what the parser gets */
} like;

/** Translates where `train` and `finetune` are given --like; else the result's argv is the caller's
 * words. They must stay. Fails LAC_BAD_ARGUMENT: an unknown script or option (with the nearest
 * one), a value that is missing, what the script's options cannot mean here. */
LAC_MUST_CHECK lac_status like_translate(int argc, char **argv, like *l, lac_error *err);
void like_clear(like *l);

/** The script's own options, and what each becomes; words.script is there. */
void like_print_help(const like *l, FILE *out);

/** Logs the command in our words, and what was accepted without effect. */
void like_log(const like *l);

/** A failure names the option as it was typed. */
void like_rename_error(const like *l, lac_error *err);

#endif
