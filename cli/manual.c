/* SPDX-License-Identifier: Apache-2.0
 * Prints manual pages from the tables, as roff with the man macros: `lacuna help --man [VERB]`.
 * `make install` installs the pages. */
#include <string.h>

#include "help.h"
#include "lacuna/version.h"

/* Prints text as roff: - becomes a minus sign that can be copied, a backslash is escaped, a blank
 * line starts a paragraph, and no line begins with a control character. */
static void print_escaped_roff(FILE *out, const char *text) {
  if (*text == '.' || *text == '\'') fputs("\\&", out);
  for (; *text; text++) {
    if (*text == '\\') fputs("\\e", out);
    else if (*text == '-') fputs("\\-", out);
    else if (strncmp(text, "\n\n", 2) == 0) fputs("\n.PP\n", out), text++;
    else fputc(*text, out);
  }
}

static void print_section(FILE *out, const char *title, const char *text) {
  fprintf(out, ".SH %s\n", title);
  print_escaped_roff(out, text);
  fputc('\n', out);
}

static void print_option(FILE *out, const option_row *option, verb_id verb) {
  const char *argument = option_value_placeholder(option, verb);
  fprintf(out, ".TP\n");
  if (option->letter) fprintf(out, "\\fB\\-%c\\fR, ", option->letter);
  fprintf(out, "\\fB\\-\\-");
  if (option->kind == OPTION_SWITCH && strcmp(option->initial, "yes") == 0)
    fprintf(out, "\\fR[\\fBno\\-\\fR]\\fB");
  print_escaped_roff(out, option_name_with_dashes(option->name));
  fprintf(out, "\\fR");
  if (argument) {
    fprintf(out, " \\fI");
    print_escaped_roff(out, argument);
    fprintf(out, "\\fR");
  }
  fputc('\n', out);
  print_escaped_roff(out, option_help_text(option, verb));
  if (option->initial && strcmp(option->initial, "no") != 0) {
    fprintf(out, " (default ");
    print_escaped_roff(out, option->initial);
    fputc(')', out);
  }
  fprintf(out, ".\n");
}

static void print_examples(FILE *out, verb_id verb) {
  fprintf(out, ".SH EXAMPLES\n");
  for (int i = 0; i < n_examples; i++) {
    const example_row *example = &example_table[i];
    if (example->verb != verb) continue;
    fprintf(out, ".TP\n\\fB");
    print_escaped_roff(out, example->command);
    fprintf(out, "\\fR\n");
    print_escaped_roff(out, example->meaning);
    fprintf(out, ".\n");
  }
}

static void print_exit_status_and_environment(FILE *out) {
  print_section(out, "EXIT STATUS", "0 done; 1 failed, or a check did not hold; 2 misuse.");
  print_section(out, "ENVIRONMENT",
                "LAC_CPU=scalar|avx2|avx512 caps the instruction sets that are used; LAC_SPARSE=0 "
                "keeps to dense kernels; LAC_COSTS=FILE chooses kernels by a table that bench "
                "--measure-costs "
                "wrote.");
}

static void print_program_manual(FILE *out) {
  fprintf(out, ".TH LACUNA 1 \"\" \"lacuna %s\" \"Lacuna Manual\"\n", lac_version());
  print_section(out, "NAME", "lacuna - N:M structured sparsity for trained neural networks");
  fprintf(out, ".SH SYNOPSIS\n.B lacuna\n.I VERB\n[options]\n.I MODEL\n");
  print_section(
      out, "DESCRIPTION",
      "Lacuna reads a trained ONNX network, finds which of its channels may change "
      "places, searches the "
      "order in which N:M pruning keeps the most of the weights' squares, prunes, verifies that "
      "the reordered network "
      "computes the same, and writes ONNX again.\n\n"
      "A command that fails leaves no output. An output that exists is kept "
      "unless --force is "
      "given; an input is never replaced.");
  fprintf(out, ".SH VERBS\n");
  for (int i = 0; i < VERB_COUNT; i++) {
    fprintf(out, ".TP\n\\fBlacuna\\-%s\\fR(1)\n", verb_table[i].name);
    print_escaped_roff(out, verb_table[i].summary);
    fputc('\n', out);
  }
  print_exit_status_and_environment(out);
}

void manual_print(FILE *out, verb_id verb) {
  if (verb == VERB_COUNT) {
    print_program_manual(out);
    return;
  }
  const verb_row *row = &verb_table[verb];
  fprintf(out, ".TH LACUNA\\-%s 1 \"\" \"lacuna %s\" \"Lacuna Manual\"\n.SH NAME\nlacuna\\-%s \\- ",
          row->name, lac_version(), row->name);
  print_escaped_roff(out, row->summary);
  fprintf(out, "\n.SH SYNOPSIS\n.B lacuna %s\n[options]\n", row->name);
  if (row->operands[0]) fprintf(out, ".I %s\n", row->operands);
  print_section(out, "DESCRIPTION", row->description);
  fprintf(out, ".SH OPTIONS\n");
  options_print(out, verb, ".SS %s\n", print_option);
  fprintf(out, ".PP\n");
  print_escaped_roff(
      out,
      "A value may follow after a space or =, _ in names is -, every switch has a --no- "
      "form, and -- ends the "
      "options.\n");
  print_examples(out, verb);
  print_exit_status_and_environment(out);
  fprintf(out, ".SH SEE ALSO\n\\fBlacuna\\fR(1)\n");
}
