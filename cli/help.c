/* SPDX-License-Identifier: Apache-2.0
 * `lacuna help`: the table of verbs, or one verb with its options, as plain text of 80 columns. */
#include "help.h"

#include <string.h>

#include "lacuna/version.h"
#include "terminal.h"
#include "verbs.h"

enum { WIDTH = 80, HELP_COLUMN = 32, NARROW = 64, NARROW_COLUMN = 8, EXAMPLE_INDENT = 4 };

/* Returns the width of help texts, which are for people: 80 columns, or fewer on a narrower
 * terminal. */
static int help_columns(FILE *out) {
  int columns = terminal_columns_ignoring_wide(out);
  return columns && columns < WIDTH ? columns : WIDTH;
}

static void print_wrapped(FILE *out, const char *text) {
  text_print_wrapped(out, text, help_columns(out), 0, 0);
}

/* Prints a long list of values below the option's name, with line breaks only after |. Ends the
 * line. */
static void print_choices_wrapped(FILE *out, const char *values, int columns) {
  int column = fprintf(out, "\n%*s", NARROW_COLUMN, "") - 1;
  for (size_t n; *values; values += n) {
    n = strcspn(values, "|") + (strchr(values, '|') != NULL);
    if (column > NARROW_COLUMN && column + (int)n > columns)
      column = fprintf(out, "\n%*s", NARROW_COLUMN, "") - 1;
    column += fprintf(out, "%.*s", (int)n, values);
  }
  fputc('\n', out);
}

/* Prints the option and its value, and then spaces up to text_column. */
static void print_option_and_value(FILE *out, const option_row *option, verb_id verb,
                                   int text_column) {
  bool is_on = option->kind == OPTION_SWITCH && strcmp(option->initial, "yes") == 0;
  const char *argument = option_value_placeholder(option, verb);
  char letter[] = {'-', option->letter, ',', ' ', 0};
  int columns = help_columns(out);
  int column = fprintf(out, "  %s--%s%s", option->letter ? letter : "    ", is_on ? "[no-]" : "",
                       option_name_with_dashes(option->name));
  if (argument && column + 1 + (int)strlen(argument) > columns) {
    print_choices_wrapped(out, argument, columns);
    column = 0;
  } else if (argument) {
    column += fprintf(out, " %s", argument);
  }
  if (column > text_column - 2) column = fprintf(out, "\n") - 1;
  fprintf(out, "%*s", text_column - column, "");
}

static void print_option(FILE *out, const option_row *option, verb_id verb) {
  int columns = help_columns(out), text_column = columns < NARROW ? NARROW_COLUMN : HELP_COLUMN;
  bool has_default = option->initial && strcmp(option->initial, "no") != 0;
  char text[512];
  print_option_and_value(out, option, verb, text_column);
  snprintf(text, sizeof text, "%s%s%s%s", option_help_text(option, verb),
           has_default ? " (default " : "", has_default ? option->initial : "",
           has_default ? ")" : "");
  text_print_wrapped(out, text, columns, text_column, text_column);
}

/* Prints the examples of the verb, each with its meaning. */
static void print_examples(FILE *out, verb_id verb) {
  int columns = help_columns(out);
  fprintf(out, "\nExamples:\n");
  for (int i = 0; i < n_examples; i++) {
    const example_row *example = &example_table[i];
    if (example->verb != verb) continue;
    fprintf(out, "  ");
    text_print_wrapped(out, example->command, columns, 2, EXAMPLE_INDENT + 2);
    fprintf(out, "%*s", EXAMPLE_INDENT, "");
    text_print_wrapped(out, example->meaning, columns, EXAMPLE_INDENT, EXAMPLE_INDENT);
  }
}

static void print_program_help(FILE *out) {
  char title[128];
  snprintf(title, sizeof title, "lacuna %s: N:M structured sparsity for trained neural networks",
           lac_version());
  print_wrapped(out, title);
  fprintf(out, "\nusage: lacuna VERB [options] MODEL\n\n");
  for (int i = 0; i < VERB_COUNT; i++) {
    fprintf(out, "  %-9s ", verb_table[i].name);
    text_print_wrapped(out, verb_table[i].summary, help_columns(out), 12, 12);
  }
  fprintf(out, "\n");
  print_wrapped(out,
                "lacuna help VERB explains a verb and its options.\n"
                "Standard output carries the result, standard error the log.\n"
                "Status: 0 done, 1 failed or a check did not hold, 2 misuse.");
}

void help_print(FILE *out, verb_id verb) {
  if (verb == VERB_COUNT) {
    print_program_help(out);
    return;
  }
  const verb_row *row = &verb_table[verb];
  char usage[128];
  snprintf(usage, sizeof usage, "usage: lacuna %s [options]%s%s", row->name,
           row->operands[0] ? " " : "", row->operands);
  text_print_wrapped(out, usage, help_columns(out), 0, EXAMPLE_INDENT);
  fputc('\n', out);
  print_wrapped(out, row->description);
  options_print(out, verb, "\n%s:\n", print_option);
  print_examples(out, verb);
  fprintf(out, "\n");
  print_wrapped(out,
                "--NAME VALUE is --NAME=VALUE, _ in names is -, every switch has a --no- form,\n"
                "-- ends the options.");
}

exit_code verb_help(const arguments *args, lac_error *err) {
  verb_id topic = VERB_COUNT;
  lac_status st = args->operand ? verb_find_by_name(args->operand, &topic, err) : LAC_OK;
  if (st) return exit_code_of_status(st);
  if (args->completion) completion_print(stdout, args->completion);
  else if (args->man) manual_print(stdout, topic);
  else help_print(stdout, topic);
  return EXIT_DONE;
}
