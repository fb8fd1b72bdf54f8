/* SPDX-License-Identifier: Apache-2.0
 * Prints completion scripts from the tables: `lacuna help --completion bash|zsh|fish`. The scripts
 * offer a verb's options after the verb; the values of an option with a fixed set of values; and
 * file names for options that take files and for operands. */
#include <string.h>

#include "help.h"
#include "lacuna/engine.h"
#include "lacuna/train.h"

/* Does the option have a fixed set of values? */
static bool has_choices(const option_row *option) {
  return option->kind == OPTION_CHOICE || strcmp(option->name, "arch") == 0 ||
         strcmp(option->name, "engine") == 0;
}

/* Returns choice number `at` of an option whose choices the library lists; NULL: there are not so
 * many. */
static const char *find_choice_of_library(const option_row *option, int at) {
  int n = 0;
  if (strcmp(option->name, "engine") == 0) return lac_engine_name(at);
  const char *const *names = lac_network_names(&n);
  return at < n ? names[at] : NULL;
}

/* Prints the choices of an option, separated by spaces. For some options the library lists the
 * choices. */
static void print_choices(FILE *out, const option_row *option) {
  const bool listed = option->kind != OPTION_CHOICE;
  for (int i = 0; listed && find_choice_of_library(option, i); i++) {
    fprintf(out, "%s%s", i ? " " : "", find_choice_of_library(option, i));
  }
  for (const char *at = listed ? "" : option->argument; *at;) {
    const int length = (int)strcspn(at, "|");
    const bool is_file = strncmp(at, "FILE.", 5) == 0; /* the choice stands for any file with this
                                                          ending */
    if (!is_file) fprintf(out, "%s%.*s", at == option->argument ? "" : " ", length, at);
    at += length + (at[length] == '|');
  }
}

/* Prints text in single quotes for zsh and fish, with a backslash before each character in
 * `special`. */
static void print_quoted(FILE *out, const char *text, const char *special) {
  for (; *text; text++) {
    if (*text == '\'') fputs("'\\''", out);
    else if (strchr(special, *text)) fprintf(out, "\\%c", *text);
    else fputc(*text, out);
  }
}

/* Prints --name, and --no-name for a switch; each followed by a space. */
static void print_option_spellings(FILE *out, const option_row *option) {
  if (option->letter) fprintf(out, "-%c ", option->letter);
  fprintf(out, "--%s ", option_name_with_dashes(option->name));
  if (option->kind == OPTION_SWITCH)
    fprintf(out, "--no-%s ", option_name_with_dashes(option->name));
}

static void print_verb_names(FILE *out) {
  for (int i = 0; i < VERB_COUNT; i++) fprintf(out, "%s%s", i ? " " : "", verb_table[i].name);
}

static void print_bash_completion(FILE *out) {
  fprintf(out,
          "# bash completion for lacuna\n"
          "_lacuna() {\n"
          "  local now=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} options=\n"
          "  COMPREPLY=()\n"
          "  if [ \"$now\" = = ]; then now=\n" /* bash splits "--effort=" into two words, "--effort"
                                                  and "=" */
          "  elif [ \"$before\" = = ]; then before=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
          "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
          "    COMPREPLY=($(compgen -W \"");
  print_verb_names(out);
  fprintf(out, "\" -- \"$now\"))\n    return\n  fi\n  case $before in\n");
  for (int i = 0; i < n_options; i++) {
    const option_row *option = &option_table[i];
    if (!has_choices(option) || !option->help[0]) continue;
    fprintf(out, "    --%s) COMPREPLY=($(compgen -W \"", option_name_with_dashes(option->name));
    print_choices(out, option);
    fprintf(out, "\" -- \"$now\")); return ;;\n");
  }
  fprintf(out, "  esac\n  case ${COMP_WORDS[1]} in\n    help) options=\"");
  print_verb_names(out);
  fprintf(out, "\" ;;\n");
  for (int verb = 0; verb < VERB_COUNT; verb++) {
    if (verb == VERB_help) continue;
    fprintf(out, "    %s) options=\"", verb_table[verb].name);
    for (int i = 0; i < n_options; i++) {
      if (option_is_shown(&option_table[i], verb)) print_option_spellings(out, &option_table[i]);
    }
    fprintf(out, "\" ;;\n");
  }
  fprintf(out,
          "  esac\n"
          "  if [[ $now == -* || ${COMP_WORDS[1]} == help ]]; then\n"
          "    COMPREPLY=($(compgen -W \"$options\" -- \"$now\"))\n"
          "  else\n"
          "    COMPREPLY=($(compgen -f -- \"$now\"))\n"
          "  fi\n"
          "}\n"
          "complete -o filenames -F _lacuna lacuna\n");
}

static void print_zsh_option(FILE *out, const option_row *option, verb_id verb) {
  for (int form = 0; form < 3; form++) {
    if (form == 0 && !option->letter) continue;
    if (form == 2 && option->kind != OPTION_SWITCH) continue;
    fprintf(out, " \\\n        '%s",
            option->kind == OPTION_LIST || option->kind == OPTION_COUNT ? "*" : "");
    if (form == 0) fprintf(out, "-%c", option->letter);
    else fprintf(out, "--%s%s", form == 2 ? "no-" : "", option_name_with_dashes(option->name));
    bool has_value = option->argument != NULL;
    fprintf(out, "%s[", has_value && form ? "=" : "");
    if (form == 2) fputs("not: ", out);
    print_quoted(out, option_help_text(option, verb), "[]:\\");
    fputc(']', out);
    if (option->kind == OPTION_FILE) fputs(":file:_files", out);
    else if (has_choices(option))
      fputs(":value:(", out), print_choices(out, option), fputc(')', out);
    else if (has_value) fputs(":value:", out);
    fputc('\'', out);
  }
}

static void print_zsh_completion(FILE *out) {
  fprintf(out,
          "#compdef lacuna\n"
          "_lacuna() {\n"
          "  local -a verbs=(\n");
  for (int i = 0; i < VERB_COUNT; i++) {
    fprintf(out, "    '%s:", verb_table[i].name);
    print_quoted(out, verb_table[i].summary, ":\\");
    fprintf(out, "'\n");
  }
  fprintf(out,
          "  )\n"
          "  if (( CURRENT == 2 )); then\n"
          "    _describe verb verbs\n"
          "    return\n"
          "  fi\n"
          "  local verb=$words[2]\n"
          "  shift words\n"
          "  (( CURRENT-- ))\n"
          "  case $verb in\n"
          "    help) _describe verb verbs ;;\n");
  for (int verb = 0; verb < VERB_COUNT; verb++) {
    if (verb == VERB_help) continue;
    fprintf(out, "    %s)\n      _arguments", verb_table[verb].name);
    for (int i = 0; i < n_options; i++) {
      if (option_is_shown(&option_table[i], verb)) print_zsh_option(out, &option_table[i], verb);
    }
    if (verb_table[verb].most) fprintf(out, " \\\n        '1:file:_files'");
    fprintf(out, " ;;\n");
  }
  fprintf(out, "  esac\n}\n_lacuna \"$@\"\n");
}

static void print_fish_completion(FILE *out) {
  fprintf(out, "# fish completion for lacuna\n");
  for (int verb = 0; verb < VERB_COUNT; verb++) {
    fprintf(out, "complete -c lacuna -n __fish_use_subcommand -f -a %s -d '",
            verb_table[verb].name);
    print_quoted(out, verb_table[verb].summary, "\\");
    fprintf(out, "'\ncomplete -c lacuna -n '__fish_seen_subcommand_from help' -f -a %s\n",
            verb_table[verb].name);
    for (int i = 0; i < n_options; i++) {
      const option_row *option = &option_table[i];
      if (!option_is_shown(option, verb)) continue;
      for (int form = 0; form < (option->kind == OPTION_SWITCH ? 2 : 1); form++) {
        fprintf(out, "complete -c lacuna -n '__fish_seen_subcommand_from %s' -l %s%s",
                verb_table[verb].name, form ? "no-" : "", option_name_with_dashes(option->name));
        if (option->letter && !form) fprintf(out, " -s %c", option->letter);
        if (option->kind == OPTION_FILE) fprintf(out, " -r -F");
        else if (has_choices(option))
          fprintf(out, " -x -a '"), print_choices(out, option), fputc('\'', out);
        else if (option->argument) fprintf(out, " -x");
        fprintf(out, " -d '%s", form ? "not: " : "");
        print_quoted(out, option_help_text(option, verb), "\\");
        fprintf(out, "'\n");
      }
    }
  }
}

void completion_print(FILE *out, const char *shell) {
  if (strcmp(shell, "zsh") == 0) print_zsh_completion(out);
  else if (strcmp(shell, "fish") == 0) print_fish_completion(out);
  else print_bash_completion(out);
}
