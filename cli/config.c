/* SPDX-License-Identifier: Apache-2.0
 * Stores the options of a configuration file, read as a tree (tree.h), and writes options as YAML.
 * The file names options as the command line does, without dashes; `verb` and `operands` are the
 * words that are no options. An option of the command line replaces the same option of the file,
 * and the file's options that exclude it. */
#include "config.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/nearest.h"
#include "lacuna/version.h"
#include "train_options.h"
#include "tree.h"

/* ---- Reading ---- */

/* Options that exclude each other, a row for each set. If the command line gives one of a row, the
 * others of that row are ignored in the file. */
static const char *const alternatives[][3] = {{"epochs", "steps"},
                                              {"keep_masks", "prune_rest"},
                                              {"arch", "resnet_size", "resnext"},
                                              {"calibration", "no_calibration"},
                                              {"apply", "invert"},
                                              {"refine", "refine_steps"},
                                              {"eval_steps", "epochs_between_evals"}};
enum { N_ALTERNATIVES = sizeof alternatives / sizeof alternatives[0] };

/* Options that say how the command line is read, and so cannot be in a file. */
static bool is_command_line_only(const option_row *option) {
  static const char *const names[] = {"config", "print_config", "like",
                                      "help",   "man",          "completion"};
  for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
    if (strcmp(option->name, names[k]) == 0) return true;
  }
  return false;
}

static bool is_option_given(const arguments *args, const option_row *option) {
  return *(const bool *)((const char *)args + option->given);
}

static const option_row *find_option(verb_id verb, const char *key) {
  char word[128];
  if (snprintf(word, sizeof word, "--%s", key) >= (int)sizeof word || strchr(key, '=')) return NULL;
  const option_row *option = option_find(verb, word);
  return option && count_option_prefix(word) == 2 + (strncmp(option->name, "no_", 3) ? 0 : 3)
             ? option
             : NULL;
}

/* Does the command line give this option, or one that excludes it? line: the arguments as the
 * command line gave them, before the file was read. */
static bool is_overridden(const arguments *line, const option_row *option) {
  if (is_option_given(line, option)) return true;
  for (int k = 0; k < N_ALTERNATIVES; k++) {
    bool is_in = false, is_other_given = false;
    for (int at = 0; at < 3 && alternatives[k][at]; at++) {
      const option_row *other = find_option(line->verb, alternatives[k][at]);
      is_in |= other == option;
      is_other_given |= other && is_option_given(line, other);
    }
    if (is_in && is_other_given) return true;
  }
  return false;
}

static lac_status fail_unknown_key(const tree *t, const tree_node *node, verb_id verb,
                                   lac_error *err) {
  const char *names[256], *dashed = option_name_with_dashes(node->key);
  const bool is_no = strncmp(dashed, "no-", 3) == 0;
  int n = 0;
  const option_row *positive = is_no ? find_option(verb, dashed + 3) : NULL;
  if (positive && positive->kind == OPTION_SWITCH) {
    return tree_fail(t, node->line, LAC_BAD_ARGUMENT, err, "%s: wanted \"%s: false\"", node->key,
                     option_name_with_dashes(positive->name));
  }
  for (int k = 0; k < n_options && n < 256; k++) {
    const option_row *option = &option_table[k];
    if (option_is_shown(option, verb) && !is_command_line_only(option) &&
        strcmp(option->name, "force") != 0)
      names[n++] = option->name;
  }
  char key[128];
  (void)snprintf(key, sizeof key, "%s", node->key);
  for (char *at = key; *at; at++) *at = *at == '-' ? '_' : *at;
  const char *nearest = laci_find_nearest_text(key, 0, names, n);
  return tree_fail(t, node->line, LAC_BAD_ARGUMENT, err, "%s: unknown option of %s%s%s%s",
                   node->key, verb_table[verb].name, nearest ? ", did you mean " : "",
                   nearest ? option_name_with_dashes(nearest) : "", nearest ? "?" : "");
}

static const char *describe_found_value(const tree_node *node) {
  static const char *const words[] = {"nothing", "", "", "a list", "a map"};
  return node->kind == TREE_BOOLEAN || node->kind == TREE_TEXT ? node->text : words[node->kind];
}

static lac_status fail_wrong_type(const tree *t, const tree_node *node, const tree_node *value,
                                  const char *wanted, lac_error *err) {
  return tree_fail(t, value->line, LAC_BAD_ARGUMENT, err, "%s: %s; wanted %s", node->key,
                   describe_found_value(value), wanted);
}

/* Stores a value given as text. The text of a failure names the file, the line, and the option
 * without dashes. */
static lac_status store_option_text(const tree *t, const tree_node *node, const option_row *option,
                                    const char *text, arguments *args, lac_error *err) {
  lac_error why = {0};
  lac_status st = arguments_store(args, option, text, &why);
  if (!st) return LAC_OK;
  const char *begin = strncmp(why.text, "--", 2) == 0 ? why.text + 2 : why.text;
  return tree_fail(t, node->line, st, err, "%s", begin);
}

static lac_status store_option_list(const tree *t, const tree_node *node, const option_row *option,
                                    arguments *args, lac_error *err) {
  lac_status st = LAC_OK;
  if (node->kind == TREE_TEXT) return store_option_text(t, node, option, node->text, args, err);
  if (node->kind != TREE_LIST) return fail_wrong_type(t, node, node, "a list", err);
  for (const tree_node *item = node->first; item && !st; item = item->next) {
    if (item->kind != TREE_TEXT) st = fail_wrong_type(t, node, item, "a list of texts", err);
    else st = store_option_text(t, item, option, item->text, args, err);
  }
  return st;
}

/* Stores the value of an option. Fails if it is not of the kind that the option takes. */
static lac_status store_option(const tree *t, const tree_node *node, const option_row *option,
                               arguments *args, lac_error *err) {
  char wanted[256];
  switch (option->kind) {
    case OPTION_SWITCH:
    case OPTION_FLAG:
      if (node->kind != TREE_BOOLEAN) return fail_wrong_type(t, node, node, "true or false", err);
      if (option->kind == OPTION_FLAG && !node->yes) return LAC_OK;
      return store_option_text(t, node, option, node->yes ? "yes" : "no", args, err);
    case OPTION_COUNT:
      if (node->kind != TREE_TEXT || !isdigit((unsigned char)node->text[0]) || node->text[1])
        return fail_wrong_type(t, node, node, "an integer from 0 to 9", err);
      for (int k = atoi(node->text); k > 0; k--) {
        lac_status st = store_option_text(t, node, option, "yes", args, err);
        if (st) return st;
      }
      return LAC_OK;
    case OPTION_LIST: return store_option_list(t, node, option, args, err);
    default: break;
  }
  /* YAML reads a plain `off` as a boolean */
  const bool is_word = node->kind == TREE_BOOLEAN && option->kind == OPTION_CHOICE;
  if (node->kind == TREE_TEXT || is_word)
    return store_option_text(t, node, option, node->text, args, err);
  (void)snprintf(wanted, sizeof wanted, "%s%s", option_value_placeholder(option, args->verb),
                 node->kind == TREE_BOOLEAN ? ", in quotes where it is this word" : "");
  return fail_wrong_type(t, node, node, wanted, err);
}

static lac_status check_verb_of_file(const tree *t, const tree_node *node, const arguments *args,
                                     lac_error *err) {
  const char *name = verb_table[args->verb].name;
  if (node->kind == TREE_TEXT && strcmp(node->text, name) == 0) return LAC_OK;
  return tree_fail(t, node->line, LAC_BAD_ARGUMENT, err, "verb: %s; but the command line says %s",
                   describe_found_value(node), name);
}

/* Takes from the file those operands that the command line did not give. */
static lac_status store_operands(const tree *t, const tree_node *node, arguments *args,
                                 lac_error *err) {
  const int most = verb_table[args->verb].most;
  const char *words[2] = {NULL, NULL};
  int n = 0;
  const tree_node *item = node->kind == TREE_LIST ? node->first : node;
  for (; item; item = node->kind == TREE_LIST ? item->next : NULL) {
    if (item->kind != TREE_TEXT || !item->text[0])
      return fail_wrong_type(t, node, item, "a list of names", err);
    if (n == most) {
      return tree_fail(t, item->line, LAC_BAD_ARGUMENT, err, "operands: %s is one too many for %s",
                       item->text, verb_table[args->verb].name);
    }
    words[n++] = item->text;
  }
  if (args->operand) return LAC_OK;
  args->operand = words[0];
  args->second = words[1];
  return LAC_OK;
}

static lac_status apply_config_node(const tree *t, const tree_node *node, const arguments *line,
                                    arguments *args, lac_error *err) {
  if (strcmp(node->key, "verb") == 0) return check_verb_of_file(t, node, args, err);
  if (node->kind == TREE_NULL) return LAC_OK;
  if (strcmp(node->key, "operands") == 0) return store_operands(t, node, args, err);
  const option_row *option = find_option(args->verb, node->key);
  if (!option) return fail_unknown_key(t, node, args->verb, err);
  if (is_command_line_only(option)) {
    return tree_fail(t, node->line, LAC_BAD_ARGUMENT, err,
                     "%s: wanted on the command line, as --%s", node->key,
                     option_name_with_dashes(option->name));
  }
  if (is_overridden(line, option)) return LAC_OK;
  for (const tree_node *before = t->root->first; before != node; before = before->next) {
    if (find_option(args->verb, before->key) == option) {
      return tree_fail(t, node->line, LAC_BAD_ARGUMENT, err,
                       "%s: it occurs twice, first in line %d as %s", node->key, before->line,
                       before->key);
    }
  }
  return store_option(t, node, option, args, err);
}

lac_status config_apply_file(arguments *args, lac_error *err) {
  const arguments line = *args; /* what the command line gave */
  tree *t = laci_alloc(1, sizeof *t);
  if (!t) return laci_fail_memory(err, args->config);
  args->tree = t;
  lac_status st = tree_read_file(args->config, t, err);
  for (const tree_node *node = st ? NULL : t->root->first; node && !st; node = node->next) {
    st = apply_config_node(t, node, &line, args, err);
  }
  return st;
}

/* ---- Writing ---- */

/* Would YAML read this word as itself, without quotes? */
static bool is_plain_yaml_word(const char *text) {
  static const char letters[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-";
  static const char *const words[] = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"};
  if (!text[0] || text[0] == '-' || text[strspn(text, letters)]) return false;
  for (size_t k = 0; k < sizeof words / sizeof words[0]; k++) {
    if (strcasecmp(text, words[k]) == 0) return false;
  }
  return true;
}

static void print_text(FILE *out, const char *text) {
  if (is_plain_yaml_word(text)) {
    fputs(text, out);
    return;
  }
  fputc('"', out);
  for (const char *at = text; *at; at++) {
    const unsigned char c = (unsigned char)*at;
    if (c == '"' || c == '\\') fprintf(out, "\\%c", c);
    else if (c < ' ' || c == 0x7f) fprintf(out, "\\x%02x", c);
    else fputc(c, out);
  }
  fputc('"', out);
}

static void print_list(FILE *out, const text_list *list) {
  fputc('[', out);
  for (int k = 0; k < list->n; k++) {
    if (k) fputs(", ", out);
    print_text(out, list->items[k]);
  }
  fputc(']', out);
}

/* Writes a number with the fewest digits that are read back as the same number. */
static void print_real(FILE *out, double value) {
  char text[64];
  for (int digits = 6; digits <= 17; digits++) {
    (void)snprintf(text, sizeof text, "%.*g", digits, value);
    const double again = strtod(text, NULL);
    if (!(again < value) && !(again > value)) break;
  }
  fputs(text, out);
}

static void print_value(FILE *out, const arguments *args, const option_row *option) {
  const void *field = (const char *)args + option->offset;
  switch (option->kind) {
    case OPTION_SWITCH:
    case OPTION_FLAG: fputs(*(const bool *)field ? "true" : "false", out); break;
    case OPTION_COUNT:
    case OPTION_PLACES: fprintf(out, "%d", *(const int *)field); break;
    case OPTION_NUMBER:
    case OPTION_SIZE: fprintf(out, "%llu", (unsigned long long)*(const uint64_t *)field); break;
    case OPTION_SECONDS:
    case OPTION_REAL: print_real(out, *(const double *)field); break;
    case OPTION_LIST: print_list(out, field); break;
    default: print_text(out, *(const char *const *)field); break;
  }
}

static void print_option(FILE *out, const arguments *args, const option_row *option) {
  const bool has_value =
      is_option_given(args, option) || (option->initial && option->kind != OPTION_COUNT);
  fprintf(out, "%s%s:", is_option_given(args, option) ? "" : "# ",
          option_name_with_dashes(option->name));
  if (has_value) {
    fputc(' ', out);
    print_value(out, args, option);
  }
  fputc('\n', out);
}

static void print_options(const arguments *args, FILE *out) {
  const char *name = verb_table[args->verb].name, *group = NULL;
  fprintf(out,
          "# lacuna %s. Run it by: lacuna %s --config FILE\n"
          "# What begins with # was not given; its value is the default.\n"
          "verb: %s\n",
          lac_version(), name, name);
  if (args->operand) {
    const char *words[] = {args->operand, args->second};
    const text_list list = {.items = words, .n = args->second ? 2 : 1};
    fputs("operands: ", out);
    print_list(out, &list);
    fputc('\n', out);
  }
  for (int k = 0; k < n_options; k++) {
    const option_row *option = &option_table[k];
    if (option->kind == OPTION_HEAD) group = option->name;
    if (!option_is_shown(option, args->verb) || is_command_line_only(option)) continue;
    if (group) fprintf(out, "\n# %s\n", group);
    group = NULL;
    print_option(out, args, option);
  }
}

/* Writes the settings of a training, which follow from its recipe and options, to an allocated
 * text. */
static lac_status format_training_settings(const arguments *args, char **text, lac_error *err) {
  arguments shown = *args;
  train_options options;
  size_t size = 0;
  shown.print = true;
  lac_status st = train_options_read(&shown, &options, err);
  if (st) return st;
  FILE *lines = open_memstream(text, &size);
  if (!lines) return laci_fail_memory(err, "the settings");
  st = train_options_print_recipe(&options, NULL, lines, err);
  return fclose(lines) && !st ? laci_fail_memory(err, "the settings") : st;
}

lac_status config_print_yaml(const arguments *args, FILE *out, lac_error *err) {
  const bool trains = args->verb == VERB_train || args->verb == VERB_finetune;
  char *settings = NULL, *rest = NULL;
  lac_status st = trains ? format_training_settings(args, &settings, err) : LAC_OK;
  if (!st) print_options(args, out);
  if (!st && settings) {
    fputs("\n# The settings that follow from these:\n", out);
    for (char *line = strtok_r(settings, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
      fprintf(out, "#   %s\n", line);
  }
  free(settings); /* by free, since the text comes from open_memstream */
  return st;
}
