/* SPDX-License-Identifier: Apache-2.0
 * The command line: a table of verbs (verbs.def), a table of options (options.def), and the parser
 * that fills struct arguments according to them. help.c, manual.c and completion.c print the same
 * tables. */
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
  OPTION_FLAG, /* a switch like --no-NAME, which has no form --NAME */
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
  OPTION_HEAD, /* a row that is no option: it holds the title of the group of options after it */
} option_kind;

/** The values of an option that may be given several times. The texts point into argv, or into the
 * tree of a configuration file. */
typedef struct text_list {
  const char **items;
  int n;
} text_list;

typedef bool SWITCH_value;
typedef bool FLAG_value;
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
  const char *operand;             /* first operand; NULL: not given */
  const char *second;              /* second operand, of verbs that take two */
  text_list rest;                  /* words that the verb `run` passes on to the program that it
                                      executes */
  struct lac_process_group *group; /* the processes that run this command together, see group.h;
                                      NULL: this process alone */
  char *named;                     /* allocated path of the result, derived from MODEL's path if -o
                                      was not given; NULL: not derived */
  struct tree *tree;               /* what the file of --config holds (tree.h); texts of this struct
                                      may point into it; NULL: no --config */
#define LAC_OPTION(kind, id, letter, argument, initial, verbs, help) kind##_value id;
#include "options.def"
#undef LAC_OPTION
  struct {
#define LAC_OPTION(kind, id, letter, argument, initial, verbs, help) bool id;
#include "options.def"
#undef LAC_OPTION
  } given; /* was the option given on the command line, with any value? */
} arguments;

typedef struct verb_row {
  const char *name, *operands;
  int least, most; /* minimum and maximum number of operands */
  const char *summary, *description;
} verb_row;

typedef struct example_row {
  verb_id verb;
  const char *command, *meaning;
} example_row;

typedef struct option_row {
  option_kind kind;
  const char *name; /* name of the option, with _ for - (option_name_with_dashes); in a row of
                       OPTION_HEAD the title of the group */
  char letter;      /* the option's short form, one letter; 0: it has none */
  const char *argument, *initial;
  unsigned verbs; /* the verbs that take the option, a set of ON(id); OPTION_HEAD has none */
  const char *help;
  size_t offset, given; /* byte offsets in struct arguments: of the option's value, and of its bool
                           in the member `given` */
} option_row;

extern const verb_row verb_table[VERB_COUNT];
extern const option_row option_table[];
extern const int n_options;
extern const example_row example_table[];
extern const int n_examples;

/** Fills args, whose texts point into argv. Fails LAC_BAD_ARGUMENT; the text says what was found
 * and, for an unknown name, which known name is nearest. Operands may be missing. Clear args in any
 * case. */
LAC_MUST_CHECK lac_status arguments_parse(int argc, char **argv, arguments *args, lac_error *err);
void arguments_clear(arguments *args);

/** Are all operands there that the verb wants? --help and --print-config need none. Fails
 * LAC_BAD_ARGUMENT. */
LAC_MUST_CHECK lac_status arguments_check_operands(const arguments *args, lac_error *err);

/** Stores a value as if it had been given on the command line; switches and counters take "yes" and
 * "no". args keeps a pointer to the text. Fails LAC_BAD_ARGUMENT. */
LAC_MUST_CHECK lac_status arguments_store(arguments *args, const option_row *option,
                                          const char *value, lac_error *err);

/** Finds the verb of this name. Fails LAC_BAD_ARGUMENT; the text suggests a similar verb, if there
 * is one. */
LAC_MUST_CHECK lac_status verb_find_by_name(const char *word, verb_id *verb, lac_error *err);

/** Do help, manual and completions show this option under this verb? */
bool option_is_shown(const option_row *option, verb_id verb);
typedef void option_printer(FILE *out, const option_row *option, verb_id verb);
/** Prints the options that the verb shows: it prints the title of each group of options with the
 * printf format `title`, and calls `print` for each option. */
void options_print(FILE *out, verb_id verb, const char *title, option_printer *print);

/** Returns the verb's option for a word "--name", "--name=value", "--no-name" or "-n"; NULL: the
 * verb has no such option. */
const option_row *option_find(verb_id verb, const char *word);
bool option_takes_value(const option_row *option);

/** Returns the option's help text under this verb, and in *value the placeholder for its value
 * (NULL: it takes none). */
const char *option_help_text(const option_row *option, verb_id verb);
const char *option_value_placeholder(const option_row *option, verb_id verb);

/** Returns the name as typed on the command line, with - for _. The text stays valid for three more
 * calls in the same thread. */
const char *option_name_with_dashes(const char *name);
/** Returns the length of the prefix of a typed word that is not part of the option's name: dashes,
 * and "no-". */
size_t count_option_prefix(const char *word);

#endif
