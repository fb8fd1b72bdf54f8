/* SPDX-License-Identifier: Apache-2.0
 * The command line as data: one table of verbs (verbs.def) and one of options (options.def), and
 * the parser that fills struct arguments from them. help.c, manual.c and completion.c print the
 * same tables. */
#ifndef CLI_ARGS_H
#define CLI_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "lacuna/status.h"

typedef enum verb_id {
#define LAC_VERB(id, ...) VERB_##id,
#include "verbs.def"
#undef LAC_VERB
  VERB_COUNT
} verb_id;

#define ON(id) (1u << VERB_##id)
#define ALL_VERBS ((1u << VERB_COUNT) - 1)

typedef enum option_kind {
  OPTION_SWITCH,
  OPTION_COUNT,
  OPTION_TEXT,
  OPTION_FILE,
  OPTION_CHOICE,
  OPTION_LIST,
  OPTION_NUMBER,
  OPTION_PLACES,
  OPTION_SECONDS,
  OPTION_REAL,
  OPTION_SIZE,
  OPTION_HEAD, /* no option: the title of those after it */
} option_kind;

/** Values of an option that may be given several times; views of argv. */
typedef struct text_list {
  const char **items;
  int n;
} text_list;

typedef bool SWITCH_value;
typedef int COUNT_value;
typedef const char *TEXT_value;
typedef const char *FILE_value;
typedef const char *CHOICE_value;
typedef text_list LIST_value;
typedef uint64_t NUMBER_value;
typedef int PLACES_value;
typedef double SECONDS_value;
typedef double REAL_value;
typedef uint64_t SIZE_value;

typedef struct arguments {
  verb_id verb;
  const char *operand;             /* NULL: not given */
  const char *second;              /* operand, of verbs that take two */
  struct lac_process_group *group; /* processes that do this together, group.h; NULL: alone */
#define LAC_OPTION(kind, id, letter, argument, initial, verbs, help) kind##_value id;
#include "options.def"
#undef LAC_OPTION
  struct {
#define LAC_OPTION(kind, id, letter, argument, initial, verbs, help) bool id;
#include "options.def"
#undef LAC_OPTION
  } given; /* on the command line, whatever the value */
} arguments;

typedef struct verb_row {
  const char *name, *operands;
  int least, most; /* operands */
  const char *summary, *description;
} verb_row;

typedef struct example_row {
  verb_id verb;
  const char *command, *meaning;
} example_row;

typedef struct option_row {
  option_kind kind;
  const char *name; /* with _; text_dashed shows it. Of a head: the title */
  char letter;      /* 0: none */
  const char *argument, *initial;
  unsigned verbs; /* set of ON(id); a head has none */
  const char *help;
  size_t offset, given; /* in struct arguments: the value, and whether it was given */
} option_row;

extern const verb_row verb_table[VERB_COUNT];
extern const option_row option_table[];
extern const int n_options;
extern const example_row example_table[];
extern const int n_examples;

/** Fills args from argv (views of it). Fails LAC_BAD_ARGUMENT with a text that says what was found
 * and, for an unknown name, what is nearest. After --help nothing more is required. Clear it in any
 * case. */
LAC_MUST_CHECK lac_status arguments_parse(int argc, char **argv, arguments *args, lac_error *err);
void arguments_clear(arguments *args);

/** The verb of that name. Fails LAC_BAD_ARGUMENT with the nearest one, if any is near. */
LAC_MUST_CHECK lac_status verb_find(const char *word, verb_id *verb, lac_error *err);

/** True for options that help, manual and completions show under this verb. */
bool option_shown(const option_row *option, verb_id verb);
typedef void option_printer(FILE *out, const option_row *option, verb_id verb);
/** Every option that the verb shows, by `print`, below the titles of their groups; `title` is the
 * format of a title. */
void options_print(FILE *out, verb_id verb, const char *title, option_printer *print);

/** The verb's option that the word is meant for, "--name", "--name=value", "--no-name" or "-n";
 * NULL: it is none. */
const option_row *option_of_word(verb_id verb, const char *word);
bool option_takes_value(const option_row *option);

/** What this verb's help says of the option, and how it calls its value (NULL: it takes none). */
const char *option_help(const option_row *option, verb_id verb);
const char *option_argument(const option_row *option, verb_id verb);

/** The name as it is typed, with - for _; valid until the fourth next call of the same thread. */
const char *text_dashed(const char *name);
/** How many characters of a word as it was typed are no letters of its name: dashes, and "no-". */
size_t option_mark(const char *word);

#endif
