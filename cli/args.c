/* SPDX-License-Identifier: Apache-2.0
 * The parser of the command line. It reads argv once. Every word is an option, an option's value,
 * or an operand. The rules are those of GNU's getopt_long (--name value, --name=value, -n value,
 * -nvalue, and -- ends the options). In addition -n=value, _ for - in names, and --no- before every
 * switch are accepted. The tables are in args.h; nearest.c finds a similar known word for an
 * unknown one. */
#include "args.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/budget.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/nearest.h"
#include "tree.h"

enum { MOST_PLACES = 1024, MOST_SECONDS = 1000000000, LONGEST_NAME = 64 };

const verb_row verb_table[VERB_COUNT] = {
#define LAC_VERB(id, operands, least, most, summary, description) \
  [VERB_##id] = {#id, operands, least, most, summary, description},
#include "verbs.def"
#undef LAC_VERB
};

const option_row option_table[] = {
#define LAC_OPTION(kind, id, letter, argument, initial, verbs, help) \
  {OPTION_##kind,                                                    \
   #id,                                                              \
   letter,                                                           \
   argument,                                                         \
   initial,                                                          \
   verbs,                                                            \
   help,                                                             \
   offsetof(arguments, id),                                          \
   offsetof(arguments, given.id)},
#define LAC_GROUP(title) {.kind = OPTION_HEAD, .name = title, .help = ""},
#include "options.def"
#undef LAC_OPTION
};
const int n_options = sizeof option_table / sizeof option_table[0];

/* Help texts of options that differ for some verbs. */
static const struct {
  const char *name;
  unsigned verbs;
  const char *argument, *help;
} words_table[] = {
#define LAC_OPTION(kind, id, letter, argument, initial, verbs, help)
#define LAC_WORDS(id, verbs, argument, help) {#id, verbs, argument, help},
#include "options.def"
#undef LAC_OPTION
};
enum { N_WORDS = sizeof words_table / sizeof words_table[0] };

const example_row example_table[] = {
#define LAC_VERB(id, ...)
#define LAC_EXAMPLE(id, command, meaning) {VERB_##id, command, meaning},
#include "verbs.def"
#undef LAC_VERB
};
const int n_examples = sizeof example_table / sizeof example_table[0];

bool option_is_shown(const option_row *option, verb_id verb) {
  return (option->verbs >> verb & 1) && option->help[0];
}

void options_print(FILE *out, verb_id verb, const char *title, option_printer *print) {
  const char *group = NULL;
  for (int i = 0; i < n_options; i++) {
    const option_row *option = &option_table[i];
    if (option->kind == OPTION_HEAD) group = option->name;
    if (!option_is_shown(option, verb)) continue;
    if (group) fprintf(out, title, group);
    group = NULL;
    print(out, option, verb);
  }
}

/* Returns the index in words_table for this option and verb, or -1. */
static int find_help_row_of_verb(const option_row *option, verb_id verb) {
  for (int i = 0; i < N_WORDS; i++) {
    bool same = strcmp(words_table[i].name, option->name) == 0;
    if (same && (words_table[i].verbs >> verb & 1)) return i;
  }
  return -1;
}

const char *option_help_text(const option_row *option, verb_id verb) {
  int words = find_help_row_of_verb(option, verb);
  return words < 0 ? option->help : words_table[words].help;
}

const char *option_value_placeholder(const option_row *option, verb_id verb) {
  int words = find_help_row_of_verb(option, verb);
  return words < 0 ? option->argument : words_table[words].argument;
}

const char *option_name_with_dashes(const char *name) {
  static _Thread_local char texts[4][LONGEST_NAME];
  static _Thread_local unsigned round;
  char *text = texts[round++ % 4];
  size_t i = 0;
  for (; name[i] && i < LONGEST_NAME - 1; i++) text[i] = name[i] == '_' ? '-' : name[i];
  text[i] = 0;
  return text;
}

size_t count_option_prefix(const char *word) {
  size_t n = strspn(word, "-");
  return strncmp(word + n, "no-", 3) == 0 ? n + 3 : n;
}

static bool is_same_option_name(const char *name, const char *typed, size_t n_typed) {
  if (strlen(name) != n_typed) return false;
  for (size_t i = 0; i < n_typed; i++) {
    if (name[i] != (typed[i] == '-' ? '_' : typed[i])) return false;
  }
  return true;
}

/* Aliases of options, which the option's help text mentions. */
static const char *const aliases[][2] = {{"data_dir", "data"}, {"dataset", "data"}};

static const option_row *find_option_by_name(verb_id verb, const char *typed, size_t n_typed) {
  for (size_t k = 0; k < sizeof aliases / sizeof aliases[0]; k++) {
    if (!is_same_option_name(aliases[k][0], typed, n_typed)) continue;
    typed = aliases[k][1];
    n_typed = strlen(typed);
  }
  for (int i = 0; i < n_options; i++) {
    const option_row *option = &option_table[i];
    if ((option->verbs >> verb & 1) && is_same_option_name(option->name, typed, n_typed))
      return option;
  }
  return NULL;
}

static const option_row *find_option_by_letter(verb_id verb, char letter) {
  for (int i = 0; i < n_options; i++) {
    const option_row *option = &option_table[i];
    if ((option->verbs >> verb & 1) && option->letter == letter) return option;
  }
  return NULL;
}

bool option_takes_value(const option_row *option) {
  return option->kind != OPTION_SWITCH && option->kind != OPTION_FLAG &&
         option->kind != OPTION_COUNT;
}

/* Is the value among the choices? "FILE.npz" among the choices stands for any name that ends in
 * .npz. */
static bool is_valid_choice(const char *choices, const char *value) {
  static const char file[] = "FILE";
  size_t n = strlen(value), n_file = sizeof file - 1;
  for (const char *at = choices; at; at = strchr(at, '|')) {
    if (*at == '|') at++;
    size_t length = strcspn(at, "|"), ending = length > n_file ? length - n_file : 0;
    if (n && length == n && memcmp(at, value, n) == 0) return true;
    if (ending && strncmp(at, file, n_file) == 0 && n > ending &&
        memcmp(at + n_file, value + n - ending, ending) == 0)
      return true;
  }
  return false;
}

static lac_status parse_number(const option_row *option, const char *value, uint64_t most,
                               uint64_t *number, lac_error *err) {
  char *end = NULL;
  errno = 0;
  *number = strtoull(value, &end, 10);
  bool is_whole = isdigit((unsigned char)value[0]) && !*end;
  if (!is_whole && most == UINT64_MAX) { /* no limits here: the code that uses the value checks them
                                            */
    return laci_fail(err, LAC_BAD_ARGUMENT, "--%s %s: wanted an integer without sign or unit",
                     option_name_with_dashes(option->name), value);
  }
  if (!is_whole || errno || *number > most) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "--%s %s: wanted an integer from 0 to %llu",
                     option_name_with_dashes(option->name), value, (unsigned long long)most);
  }
  return LAC_OK;
}

static lac_status parse_seconds(const option_row *option, const char *value, double *seconds,
                                lac_error *err) {
  char *end = NULL;
  *seconds = strtod(value, &end);
  if (!(isdigit((unsigned char)value[0]) || value[0] == '.') || *end ||
      !(*seconds <= MOST_SECONDS)) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "--%s %s: wanted seconds, 0 to %d, such as 2.5",
                     option_name_with_dashes(option->name), value, MOST_SECONDS);
  }
  return LAC_OK;
}

static lac_status parse_real_number(const option_row *option, const char *value, double *number,
                                    lac_error *err) {
  char *end = NULL;
  *number = strtod(value, &end);
  if (!(isdigit((unsigned char)value[0]) || value[0] == '.') || end == value || *end ||
      !isfinite(*number)) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "--%s %s: wanted a number from 0 on, such as 0.1",
                     option_name_with_dashes(option->name), value);
  }
  return LAC_OK;
}

static lac_status append_to_list(text_list *list, const char *value, lac_error *err) {
  const char **items =
      laci_resize(list->items, (size_t)list->n, (size_t)list->n + 1, sizeof *items);
  if (!items) return laci_fail_memory(err, "the command line");
  list->items = items;
  list->items[list->n++] = value;
  return LAC_OK;
}

/* Parses a value into the option's field of args. Values of switches and counters are "yes" and
 * "no". */
static lac_status store_option_value(arguments *args, const option_row *option, const char *value,
                                     lac_error *err) {
  void *field = (char *)args + option->offset;
  bool yes = strcmp(value, "yes") == 0;
  uint64_t number = 0;
  lac_status st = LAC_OK;
  switch (option->kind) {
    case OPTION_SWITCH:
    case OPTION_FLAG: *(bool *)field = yes; return LAC_OK;
    case OPTION_COUNT: *(int *)field = yes ? *(int *)field + 1 : 0; return LAC_OK;
    case OPTION_TEXT:
    case OPTION_FILE: break;
    case OPTION_CHOICE:
      if (!is_valid_choice(option->argument, value)) {
        return laci_fail(err, LAC_BAD_ARGUMENT, "--%s %s: wanted %s",
                         option_name_with_dashes(option->name), value, option->argument);
      }
      break;
    case OPTION_LIST: return append_to_list(field, value, err);
    case OPTION_NUMBER: return parse_number(option, value, UINT64_MAX, field, err);
    case OPTION_PLACES:
      st = parse_number(option, value, MOST_PLACES, &number, err);
      if (!st) *(int *)field = (int)number;
      return st;
    case OPTION_SECONDS: return parse_seconds(option, value, field, err);
    case OPTION_REAL: return parse_real_number(option, value, field, err);
    case OPTION_HEAD: return LAC_OK;
    case OPTION_SIZE:
      if (laci_size_parse(value, field)) return LAC_OK;
      return laci_fail(err, LAC_BAD_ARGUMENT,
                       "--%s %s: wanted a size in bytes, such as 800M or 16G",
                       option_name_with_dashes(option->name), value);
  }
  if (!value[0]) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "--%s: its value %s is empty",
                     option_name_with_dashes(option->name),
                     option_value_placeholder(option, args->verb));
  }
  *(const char **)field = value;
  return LAC_OK;
}

lac_status arguments_store(arguments *args, const option_row *option, const char *value,
                           lac_error *err) {
  *(bool *)((char *)args + option->given) = true;
  return store_option_value(args, option, value, err);
}

/* Extracts the option's name from a word: "--effort" from "--effort=best", "-x" from "-xVALUE". */
static void copy_option_name(const char *word, char name[LONGEST_NAME]) {
  snprintf(name, LONGEST_NAME, "%.*s", (int)strcspn(word, "="), word);
}

/* Returns the verb's option of this name, or the switch for a name with --no-; NULL: there is none.
 */
static const option_row *find_option_or_switch(verb_id verb, const char *name) {
  if (name[1] != '-') return name[1] && !name[2] ? find_option_by_letter(verb, name[1]) : NULL;
  const option_row *option = find_option_by_name(verb, name + 2, strlen(name + 2));
  if (option || strlen(name) < 5 || !is_same_option_name("__no_", name, 5)) return option;
  option = find_option_by_name(verb, name + 5, strlen(name + 5));
  return option && option->kind == OPTION_SWITCH ? option : NULL;
}

const option_row *option_find(verb_id verb, const char *word) {
  char name[LONGEST_NAME];
  copy_option_name(word, name);
  return find_option_or_switch(verb, name);
}

/* Lists the verbs that have an option of this name: "train, finetune"; empty: none. */
static void list_verbs_with_option(const char *name, char text[256]) {
  size_t used = 0;
  text[0] = 0;
  for (int verb = 0; verb < VERB_COUNT && used < 200; verb++) {
    const option_row *option = find_option_or_switch(verb, name);
    if (!option || !option_is_shown(option, verb)) continue;
    used +=
        (size_t)snprintf(text + used, 256 - used, "%s%s", used ? ", " : "", verb_table[verb].name);
  }
}

/* Returns the verb's option whose name is nearest to this one, in any of its forms. It never
 * returns an option that destroys data, which should not be suggested. */
static const char *find_nearest_option(verb_id verb, const char *name) {
  static _Thread_local char names[sizeof option_table / sizeof option_table[0] * 2][LONGEST_NAME];
  const char *candidates[sizeof names / sizeof names[0]];
  int n = 0;
  for (int i = 0; i < n_options; i++) {
    const option_row *option = &option_table[i];
    if (!option_is_shown(option, verb) || strcmp(option->name, "force") == 0) continue;
    const char *const forms[] = {"--", "--no-"};
    for (int form = 0; form < (option->kind == OPTION_SWITCH ? 2 : 1); form++) {
      snprintf(names[n], sizeof names[n], "%s%s", forms[form],
               option_name_with_dashes(option->name));
      candidates[n] = names[n];
      n++;
    }
  }
  const char *dashed = option_name_with_dashes(name);
  return laci_find_nearest_text(dashed, count_option_prefix(dashed), candidates, n);
}

static lac_status fail_unknown_option(verb_id verb, const char *word, lac_error *err) {
  char name[LONGEST_NAME], others[256];
  const char *of = verb_table[verb].name;
  copy_option_name(word, name);
  list_verbs_with_option(name, others);
  const option_row *valued = strlen(name) > 5 && is_same_option_name("__no_", name, 5)
                                 ? find_option_by_name(verb, name + 5, strlen(name + 5))
                                 : NULL;
  if (valued) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "%s: --%s takes a value, %s, and has no --no- form",
                     name, option_name_with_dashes(valued->name),
                     option_value_placeholder(valued, verb));
  }
  const char *nearest = find_nearest_option(verb, name);
  if (others[0]) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "%s: no option of %s, but of %s%s%s%s", name, of,
                     others, nearest ? "; did you mean " : "", nearest ? nearest : "",
                     nearest ? "?" : "");
  }
  if (nearest) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "%s: unknown option of %s, did you mean %s?", name, of,
                     nearest);
  }
  return laci_fail(err, LAC_BAD_ARGUMENT, "%s: unknown option of %s (see lacuna help %s)", name, of,
                   of);
}

/* Position of the parser. `next` is the index of the word after the current one. */
typedef struct cursor {
  int argc, next;
  char **argv;
} cursor;

/* Takes the next word as the option's value, even if it begins with a dash. But if it is an option
 * of the verb, the value was forgotten, and the call fails. */
static lac_status take_option_value(cursor *at, const option_row *option, verb_id verb,
                                    const char **value, lac_error *err) {
  const char *word = at->next < at->argc ? at->argv[at->next] : NULL;
  bool is_option = word && word[0] == '-' && word[1] == '-' && word[2] &&
                   find_option_by_name(verb, word + 2, strcspn(word + 2, "="));
  if (!word || is_option) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "--%s: its value %s is missing%s%s%s",
                     option_name_with_dashes(option->name), option_value_placeholder(option, verb),
                     word ? " before " : "", word ? word : "",
                     word ? " (--NAME=VALUE takes any)" : "");
  }
  *value = at->argv[at->next++];
  return LAC_OK;
}

/* Parses a long option: --name, --name=value, --name value or --no-name. */
static lac_status parse_long_option(cursor *at, const char *word, arguments *args, lac_error *err) {
  const char *name = word + 2;
  size_t n_name = strcspn(name, "=");
  const char *value = name[n_name] ? name + n_name + 1 : NULL;
  const option_row *option = find_option_by_name(args->verb, name, n_name);
  const char *plain = "yes";
  if (!option && n_name > 3 && memcmp(name, "no", 2) == 0 && (name[2] == '-' || name[2] == '_')) {
    option = find_option_by_name(args->verb, name + 3, n_name - 3);
    if (option && (option_takes_value(option) || option->kind == OPTION_FLAG)) option = NULL;
    plain = "no";
  }
  if (!option) return fail_unknown_option(args->verb, word, err);
  if (!option_takes_value(option)) {
    if (value) return laci_fail(err, LAC_BAD_ARGUMENT, "%s: it takes no value", word);
    return arguments_store(args, option, plain, err);
  }
  lac_status st = value ? LAC_OK : take_option_value(at, option, args->verb, &value, err);
  return st ? st : arguments_store(args, option, value, err);
}

/* Refuses "-output", which would mean -o with the value "utput": a dash was forgotten. */
static lac_status check_forgotten_dash(const char *word, const arguments *args, lac_error *err) {
  const option_row *option = find_option_by_name(args->verb, word + 1, strcspn(word + 1, "="));
  if (!option || !word[2]) return LAC_OK;
  return laci_fail(err, LAC_BAD_ARGUMENT, "%s: unknown option of %s, did you mean --%s?", word,
                   verb_table[args->verb].name, option_name_with_dashes(option->name));
}

/* Parses short options: -q, -vv, -qv, -o FILE, -oFILE or -o=FILE. */
static lac_status parse_short_options(cursor *at, const char *word, arguments *args,
                                      lac_error *err) {
  lac_status st = check_forgotten_dash(word, args, err);
  for (const char *letter = word + 1; !st && *letter; letter++) {
    const option_row *option = find_option_by_letter(args->verb, *letter);
    if (!option) {
      const char one[] = {'-', *letter, 0};
      bool is_ascii = (unsigned char)*letter < 0x80;
      return fail_unknown_option(args->verb, is_ascii ? one : word, err);
    }
    if (!option_takes_value(option)) {
      st = arguments_store(args, option, "yes", err);
      continue;
    }
    const char *value = letter + 1;
    const bool is_set = *value == '='; /* -o=FILE means the same as --output=FILE */
    if (is_set) value++;
    if (!*value && !is_set) st = take_option_value(at, option, args->verb, &value, err);
    return st ? st : arguments_store(args, option, value, err);
  }
  return st;
}

/* ---- Parsing operands and the verb ---- */

/* Returns a hint on what a surplus word was probably meant for. */
static const char *find_hint_for_surplus_word(const arguments *args) {
  switch (args->verb) {
    case VERB_prune:
    case VERB_permute:
    case VERB_plot:
    case VERB_pack:
    case VERB_unpack: return args->given.output ? NULL : "-o ";
    case VERB_check: return args->given.against ? NULL : "--against ";
    case VERB_finetune:
    case VERB_eval: return args->given.data ? NULL : "--data ";
    case VERB_infer: return args->given.input ? NULL : "--input NAME=";
    default: return NULL;
  }
}

static lac_status fail_surplus_operand(const arguments *args, const char *word, lac_error *err) {
  const verb_row *row = &verb_table[args->verb];
  const char *hint = find_hint_for_surplus_word(args);
  if (args->verb == VERB_train) {
    return laci_fail(err, LAC_BAD_ARGUMENT,
                     "%s: one argument too many: train begins with fresh weights (finetune MODEL "
                     "trains on from a network)",
                     word);
  }
  if (hint) {
    return laci_fail(err, LAC_BAD_ARGUMENT,
                     "%s: one argument too many after %s; did you mean %s%s?", word, args->operand,
                     hint, word);
  }
  return laci_fail(err, LAC_BAD_ARGUMENT, "%s: one argument too many; wanted lacuna %s%s%s", word,
                   row->name, row->operands[0] ? " [options] " : "", row->operands);
}

/* Stores an operand. A surplus one is only remembered, since the hint for it depends on options
 * that may follow. */
static lac_status parse_operand(const char *word, arguments *args, const char **surplus,
                                lac_error *err) {
  const verb_row *row = &verb_table[args->verb];
  const bool is_second = args->operand && row->most > 1;
  if (is_second ? args->second != NULL : args->operand || row->most == 0) {
    if (!*surplus) *surplus = word;
    return LAC_OK;
  }
  if (!word[0])
    return laci_fail(err, LAC_BAD_ARGUMENT, "%s is an empty name; wanted lacuna %s [options] %s",
                     row->operands, row->name, row->operands);
  *(is_second ? &args->second : &args->operand) = word;
  return LAC_OK;
}

static bool find_verb_named(const char *word, verb_id *verb) {
  for (int i = 0; i < VERB_COUNT; i++) {
    if (strcmp(word, verb_table[i].name) != 0) continue;
    *verb = i;
    return true;
  }
  return false;
}

lac_status verb_find_by_name(const char *word, verb_id *verb, lac_error *err) {
  const char *names[VERB_COUNT];
  if (find_verb_named(word, verb)) return LAC_OK;
  for (int i = 0; i < VERB_COUNT; i++) names[i] = verb_table[i].name;
  const char *nearest = laci_find_nearest_text(word, count_option_prefix(word), names, VERB_COUNT);
  if (nearest) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "%s: unknown verb, did you mean %s?", word, nearest);
  }
  return laci_fail(err, LAC_BAD_ARGUMENT, "%s: unknown verb (see lacuna help)",
                   word[0] ? word : "an empty word");
}

/* Parses the first word, which must be a verb; otherwise the error explains the probable mistake.
 */
static lac_status parse_verb(int argc, char **argv, verb_id *verb, lac_error *err) {
  const char *word = argv[1];
  if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) word = "version";
  if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) word = "help";
  if (find_verb_named(word, verb)) return LAC_OK;
  verb_id later = VERB_COUNT;
  for (int i = 2; i < argc && later == VERB_COUNT; i++) (void)find_verb_named(argv[i], &later);
  if (later != VERB_COUNT && later != VERB_help) {
    return laci_fail(err, LAC_BAD_ARGUMENT,
                     "%s: the verb comes first; wanted lacuna %s [options] %s", word,
                     verb_table[later].name, verb_table[later].operands);
  }
  static const char *const switches[] = {"--version", "--help"};
  const char *nearest = laci_find_nearest_text(word, count_option_prefix(word), switches, 2);
  if (nearest) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "%s: a verb is wanted, or did you mean %s?", word,
                     nearest);
  }
  if (word[0] == '-' || strchr(word, '/') || strchr(word, '.')) {
    return laci_fail(err, LAC_BAD_ARGUMENT,
                     "%s: a verb comes first, such as lacuna inspect MODEL"
                     " (see lacuna help)",
                     word);
  }
  return verb_find_by_name(word, verb, err);
}

static lac_status store_initial_values(arguments *args, lac_error *err) {
  for (int i = 0; i < n_options; i++) {
    if (!option_table[i].initial) continue;
    lac_status st = store_option_value(args, &option_table[i], option_table[i].initial, err);
    if (st) return st;
  }
  return LAC_OK;
}

lac_status arguments_parse(int argc, char **argv, arguments *args, lac_error *err) {
  *args = (arguments){.verb = VERB_help};
  cursor at = {.argc = argc, .next = 2, .argv = argv};
  const char *surplus = NULL;
  bool only_operands = false;
  lac_status st = store_initial_values(args, err);
  if (st) return st;
  if (argc < 2) return laci_fail(err, LAC_BAD_ARGUMENT, "a verb is missing (see lacuna help)");
  st = parse_verb(argc, argv, &args->verb, err);
  while (!st && at.next < argc) {
    const char *word = argv[at.next++];
    if (args->verb == VERB_run && !option_find(VERB_run, word))
      st = append_to_list(&args->rest, word, err);
    else if (only_operands || word[0] != '-' || !word[1])
      st = parse_operand(word, args, &surplus, err);
    else if (strcmp(word, "--") == 0) only_operands = true;
    else if (word[1] == '-') st = parse_long_option(&at, word, args, err);
    else st = parse_short_options(&at, word, args, err);
  }
  if (!st && surplus) st = fail_surplus_operand(args, surplus, err);
  return st;
}

lac_status arguments_check_operands(const arguments *args, lac_error *err) {
  const verb_row *row = &verb_table[args->verb];
  const int n_operands = !args->operand ? 0 : args->second ? 2 : 1;
  if (args->help || args->print_config || n_operands >= row->least) return LAC_OK;
  return laci_fail(err, LAC_BAD_ARGUMENT, "%s is missing; wanted lacuna %s [options] %s",
                   row->operands, row->name, row->operands);
}

void arguments_clear(arguments *args) {
#define CLEAR_SWITCH(field)
#define CLEAR_FLAG(field)
#define CLEAR_COUNT(field)
#define CLEAR_TEXT(field)
#define CLEAR_FILE(field)
#define CLEAR_CHOICE(field)
#define CLEAR_NUMBER(field)
#define CLEAR_PLACES(field)
#define CLEAR_SECONDS(field)
#define CLEAR_REAL(field)
#define CLEAR_SIZE(field)
#define CLEAR_LIST(field) laci_free((void *)(field).items);
#define LAC_OPTION(kind, id, letter, argument, initial, verbs, help) CLEAR_##kind(args->id)
#include "options.def"
#undef LAC_OPTION
  laci_free(args->named);
  laci_free((void *)args->rest.items);
  if (args->tree) tree_clear(args->tree);
  laci_free(args->tree);
  *args = (arguments){.verb = VERB_help};
}
