/* SPDX-License-Identifier: Apache-2.0
 * `lacuna help`: the table of verbs, or one verb with its options, as plain text of 80 columns. */
#include "help.h"

#include <string.h>

#include "base/error.h"
#include "lacuna/prune.h"
#include "verbs.h"

enum { WIDTH = 80, HELP_COLUMN = 32 };

/* Words of text from `column` on; every line but the first starts at `indent`. \n is kept. Ends the
 * line. */
static void print_wrapped(FILE *out, const char *text, int column, int indent) {
  bool at_start = true;
  while (*text) {
    int n_word = (int)strcspn(text, " \n");
    if (!at_start && column + 1 + n_word > WIDTH) {
      fprintf(out, "\n%*s", indent, "");
      column = indent;
      at_start = true;
    }
    column += fprintf(out, "%s%.*s", at_start ? "" : " ", n_word, text);
    at_start = false;
    text += n_word;
    for (; *text == ' ' || *text == '\n'; text++) {
      if (*text != '\n') continue;
      fprintf(out, "\n%*s", text[1] == '\n' ? 0 : indent, "");
      column = indent;
      at_start = true;
    }
  }
  fputc('\n', out);
}

static void print_option(FILE *out, const option_row *option) {
  bool is_on = option->kind == OPTION_SWITCH && strcmp(option->initial, "yes") == 0;
  char letter[] = {'-', option->letter, ',', ' ', 0};
  int column = fprintf(out, "  %s--%s%s%s%s", option->letter ? letter : "    ",
                       is_on ? "[no-]" : "", text_dashed(option->name), option->argument ? " " : "",
                       option->argument ? option->argument : "");
  if (column > HELP_COLUMN - 2) column = fprintf(out, "\n") - 1;
  fprintf(out, "%*s", HELP_COLUMN - column, "");
  char text[512];
  bool has_default = option->initial && strcmp(option->initial, "no") != 0;
  snprintf(text, sizeof text, "%s%s%s%s", option->help, has_default ? " (default " : "",
           has_default ? option->initial : "", has_default ? ")" : "");
  print_wrapped(out, text, HELP_COLUMN, HELP_COLUMN);
}

static void print_program(FILE *out) {
  fprintf(out, "lacuna %s: N:M structured sparsity for trained neural networks\n\n", lac_version());
  fprintf(out, "usage: lacuna VERB [options] MODEL\n\n");
  for (int i = 0; i < VERB_COUNT; i++) {
    fprintf(out, "  %-9s ", verb_table[i].name);
    print_wrapped(out, verb_table[i].summary, 12, 12);
  }
  fprintf(out,
          "\nlacuna help VERB explains a verb and its options.\n"
          "Standard output carries the result, standard error the story.\n"
          "Status: 0 done, 1 failed or a check did not hold, 2 misuse.\n");
}

void help_print(FILE *out, verb_id verb) {
  if (verb == VERB_COUNT) {
    print_program(out);
    return;
  }
  const verb_row *row = &verb_table[verb];
  fprintf(out, "usage: lacuna %s [options]%s%s\n\n", row->name, row->operands[0] ? " " : "",
          row->operands);
  print_wrapped(out, row->description, 0, 0);
  fprintf(out, "\n");
  for (int i = 0; i < n_options; i++) {
    if (option_shown(&option_table[i], verb)) print_option(out, &option_table[i]);
  }
  fprintf(out,
          "\n--NAME VALUE is --NAME=VALUE, _ in names is -, every switch has a --no- form,\n"
          "-- ends the options.\n");
}

exit_code verb_help(const arguments *args, lac_error *err) {
  verb_id topic = VERB_COUNT;
  for (int i = 0; i < VERB_COUNT; i++) {
    if (args->operand && strcmp(args->operand, verb_table[i].name) == 0) topic = i;
  }
  if (args->operand && topic == VERB_COUNT) {
    (void)laci_fail(err, LAC_BAD_ARGUMENT, "%s: unknown verb (see lacuna help)", args->operand);
    return EXIT_MISUSE;
  }
  if (args->completion) completion_print(stdout, args->completion);
  else if (args->man) manual_print(stdout, topic);
  else help_print(stdout, topic);
  return EXIT_DONE;
}
