/* SPDX-License-Identifier: Apache-2.0
 * Translates the options of the script to options of this command with the list in like.def. Then
 * like_scripts.c adds the script's defaults, and options that depend on several options of the
 * script. */
#include "like.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/nearest.h"
#include "like_items.h"
#include "like_scripts.h"
#include "log.h"

typedef enum kind { VALUE, SWITCH, BOOL, MAYBE, IDLE, IDLE_VALUE, IDLE_MAYBE, NONE } kind;

typedef struct row {
  const char *script, *words;
  kind kind;
  const char *to, *text;
} row;

static const row rows[] = {
#define LAC_LIKE(script, words, kind, to, text) {#script, words, kind, to, text},
#include "like.def"
#undef LAC_LIKE
};
enum { N_ROWS = sizeof rows / sizeof rows[0], LONGEST = 64 };

/* ---- Finding options of the script ---- */

static bool is_same_option_name(const char *a, const char *b, size_t n) {
  for (size_t i = 0; i < n; i++) {
    char x = a[i] == '_' ? '-' : a[i], y = b[i] == '_' ? '-' : b[i];
    if (x != y) return false;
  }
  return true;
}

/* Returns the script's row of the translation table whose words include `word` (n bytes); NULL:
 * there is none. */
static const row *find_translation(const char *script, const char *word, size_t n) {
  for (int k = 0; k < N_ROWS; k++) {
    if (strcmp(rows[k].script, script) != 0) continue;
    for (const char *at = rows[k].words; *at;
         at += strcspn(at, "|") + (at[strcspn(at, "|")] == '|')) {
      if (strcspn(at, "|") == n && is_same_option_name(at, word, n)) return &rows[k];
    }
  }
  return NULL;
}

/* Returns the row of the script's flag NAME for a word "--noNAME". */
static const row *find_negated_flag(const char *script, const char *word, size_t n) {
  char name[LONGEST];
  if (n > sizeof name - 1 || n < 5) return NULL;
  (void)snprintf(name, sizeof name, "--%.*s", (int)(n - 4), word + 4);
  const row *r = find_translation(script, name, strlen(name));
  return r && r->kind == BOOL ? r : NULL;
}

/* Returns the option whose name is nearest to a mistyped word, among the options of the script and
 * of the verb; never --force. */
static const char *find_nearest_option(const like *l, const char *word) {
  static char names[2 * N_ROWS + 256][LONGEST];
  const char *candidates[2 * N_ROWS + 256];
  int n = 0;
  for (int k = 0; k < N_ROWS; k++) {
    if (strcmp(rows[k].script, l->script) != 0) continue;
    for (const char *at = rows[k].words; *at;
         at += strcspn(at, "|") + (at[strcspn(at, "|")] == '|')) {
      (void)snprintf(names[n++], LONGEST, "%.*s", (int)strcspn(at, "|"), at);
    }
  }
  for (int k = 0; k < n_options && n < 2 * N_ROWS + 256; k++) {
    /* --force replaces files, so it is not suggested */
    bool destroys = strcmp(option_table[k].name, "force") == 0;
    if (!option_is_shown(&option_table[k], l->verb) || destroys) continue;
    (void)snprintf(names[n++], LONGEST, "--%s", option_name_with_dashes(option_table[k].name));
  }
  for (int k = 0; k < n; k++) candidates[k] = names[k];
  return laci_find_nearest_text(word, count_option_prefix(word), candidates, n);
}

/* ---- Translating the words of the command line ---- */

typedef struct cursor {
  int argc, next;
  char **argv;
} cursor;

static bool is_option(const char *word) { return word[0] == '-' && word[1]; }

/* Returns the next word of the command line and moves past it, if it can be a value; else NULL. */
static char *take_next_value(cursor *at) {
  if (at->next >= at->argc || is_option(at->argv[at->next])) return NULL;
  return at->argv[at->next++];
}

/* Takes the next word as an optional value if it looks like a file's name: "--ONNX net.onnx data"
 * has a value, "--ONNX data" has none. */
static char *take_optional_file(cursor *at) {
  const char *word = at->next < at->argc ? at->argv[at->next] : "";
  const char *dot = strrchr(word, '.');
  return dot && dot[1] && !strchr(dot, '/') ? take_next_value(at) : NULL;
}

static const char *const yes[] = {"true", "True", "1", "yes", "t", NULL};
static const char *const no[] = {"false", "False", "0", "no", "f", NULL};

/* Applies --name, --name=true, --name=false or --noname of a flag, as absl's parser does. */
static lac_status apply_flag(like *l, const row *r, const char *typed, const char *value,
                             lac_error *err) {
  if (!value || script_is_in_list(value, yes)) return script_set_option(l, r->to, NULL, typed, err);
  if (!script_is_in_list(value, no))
    return laci_fail(err, LAC_BAD_ARGUMENT, "%s %s: wanted true or false", typed, value);
  script_remove_item(l, r->to);
  return LAC_OK;
}

static lac_status apply_translation(like *l, const row *r, const char *typed, const char *value,
                                    cursor *at, lac_error *err) {
  bool wants = r->kind == VALUE || r->kind == IDLE_VALUE;
  bool may = r->kind == MAYBE || r->kind == IDLE_MAYBE;
  if (r->kind == NONE) return laci_fail(err, LAC_BAD_ARGUMENT, "%s: %s", typed, r->text);
  if (r->kind == BOOL) return apply_flag(l, r, typed, value, err);
  if (value && !wants && !may) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "%s: it takes no value", typed);
  }
  if (!value && wants) value = take_next_value(at);
  if (!value && r->kind == MAYBE) value = take_optional_file(at);
  if (!value && r->kind == IDLE_MAYBE) value = take_next_value(at);
  if (wants && (!value || !value[0])) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "%s: its value is missing", typed);
  }
  if (r->to) return script_set_option(l, r->to, value, typed, err);
  if (r->kind == IDLE_MAYBE && value && script_is_in_list(value, no)) return LAC_OK;
  return script_add_note(l, typed, r->text, err);
}

/* Copies an option of this command, with its value, to the result. */
static lac_status copy_own_option(like *l, const option_row *option, char *word, cursor *at,
                                  lac_error *err) {
  if (l->n_others + 2 > LIKE_MOST_WORDS)
    return laci_fail(err, LAC_BAD_ARGUMENT, "too many options");
  l->others[l->n_others++] = word;
  bool apart = option_takes_value(option) && !strchr(word, '=');
  if (apart && at->next < at->argc) l->others[l->n_others++] = at->argv[at->next++];
  return LAC_OK;
}

static lac_status translate_word(like *l, cursor *at, lac_error *err) {
  char *word = at->argv[at->next++];
  size_t n = strcspn(word, "=");
  if (!is_option(word)) return script_add_operand(l, word, err);
  const row *r = find_translation(l->script, word, n);
  if (r) {
    const char *typed;
    lac_status st = script_format_text(l, &typed, err, "%.*s", (int)n, word);
    return st ? st : apply_translation(l, r, typed, word[n] ? word + n + 1 : NULL, at, err);
  }
  /* a short option with its value: -b256 */
  r = word[1] != '-' ? find_translation(l->script, word, 2) : NULL;
  if (r && r->kind == VALUE) {
    const char *typed;
    lac_status st = script_format_text(l, &typed, err, "%.2s", word);
    return st ? st : apply_translation(l, r, typed, word + 2, at, err);
  }
  r = strncmp(word, "--no", 4) == 0 ? find_negated_flag(l->script, word, n) : NULL;
  if (r) return apply_flag(l, r, word, "false", err);
  const option_row *ours = option_find(l->verb, word);
  if (ours) return copy_own_option(l, ours, word, at, err);
  const char *near = find_nearest_option(l, word);
  return laci_fail(err, LAC_BAD_ARGUMENT, "%.*s: unknown option of --like %s%s%s%s", (int)n, word,
                   l->script, near ? ", did you mean " : "", near ? near : "", near ? "?" : "");
}

/* ---- Translating the whole command line ---- */

/* Returns the value of --like, from the word *first on, and the words [*first, *first + *n_words)
 * that --like and its value take; NULL: --like was not given. */
static const char *find_like_option(int argc, char **argv, int *first, int *n_words) {
  for (int k = *first; k < argc && strcmp(argv[k], "--") != 0; k++) {
    *first = k;
    *n_words = 1;
    if (strncmp(argv[k], "--like=", 7) == 0) return argv[k] + 7;
    *n_words = 2;
    if (strcmp(argv[k], "--like") == 0) return k + 1 < argc ? argv[k + 1] : "";
  }
  return NULL;
}

static void append_word(like *l, char *word) { l->argv[l->argc++] = word; }

static lac_status append_item_words(like *l, const like_item *item, lac_error *err) {
  const char *made;
  lac_status st = script_format_text(l, &made, err, "--%s", item->name);
  if (st) return st;
  append_word(l, l->texts[l->n_texts - 1]);
  if (!item->value) return LAC_OK;
  st = script_format_text(l, &made, err, "%s", item->value);
  if (!st) append_word(l, l->texts[l->n_texts - 1]);
  return st;
}

/* Writes the translated command line, with the most important words first. */
static lac_status write_translated_line(like *l, char **argv, lac_error *err) {
  static const char *const order[] = {"arch",       "recipe", "data", "dtype",
                                      "batch-size", "epochs", "steps"};
  enum { N_FIRST = sizeof order / sizeof order[0] };
  bool written[LIKE_MOST] = {false};
  const char *verb;
  lac_status st = script_format_text(l, &verb, err, "%s", verb_table[l->verb].name);
  if (st) return st;
  append_word(l, argv[0]);
  append_word(l, l->texts[l->n_texts - 1]);
  for (int k = 0; k < l->n_operands; k++) append_word(l, l->operands[k]);
  for (int pass = 0; pass <= N_FIRST; pass++) {
    for (int k = 0; k < l->n_items && !st; k++) {
      if (written[k] || l->items[k].name[0] == '*') continue;
      if (pass < N_FIRST && strcmp(l->items[k].name, order[pass]) != 0) continue;
      written[k] = true;
      st = append_item_words(l, &l->items[k], err);
    }
  }
  for (int k = 0; k < l->n_others; k++) append_word(l, l->others[k]);
  return st;
}

/* Is the first word the verb of a script, or --like itself? *first is then the first word after the
 * verb. */
static bool has_like_option(int argc, char **argv, bool *has_verb, verb_id *verb, int *first) {
  if (argc < 2) return false;
  *has_verb = strcmp(argv[1], "--like") != 0 && strncmp(argv[1], "--like=", 7) != 0;
  *first = *has_verb ? 2 : 1;
  for (int k = 0; *has_verb && k < VERB_COUNT; k++) {
    if (strcmp(argv[1], verb_table[k].name) != 0) continue;
    *verb = k;
    return option_find(k, "--like") != NULL;
  }
  return !*has_verb;
}

static lac_status translate_words(like *l, cursor at, int first, int n_words, lac_error *err) {
  lac_status st = LAC_OK;
  while (!st && at.next < at.argc) {
    if (at.next == first) at.next += n_words;
    else st = translate_word(l, &at, err);
  }
  return st;
}

lac_status script_translate(int argc, char **argv, like *l, lac_error *err) {
  int first = 0, n_words = 0;
  bool has_verb = false;
  *l = (like){0};
  if (!has_like_option(argc, argv, &has_verb, &l->verb, &first)) return LAC_OK;
  const cursor at = {.argc = argc, .next = first, .argv = argv};
  l->script = find_like_option(argc, argv, &first, &n_words);
  if (!l->script) return LAC_OK;
  lac_status st = script_check_name(l->script, has_verb, &l->verb, err);
  if (st) l->script = NULL;
  if (!st && argc > LIKE_MOST_WORDS) st = laci_fail(err, LAC_BAD_ARGUMENT, "too many words");
  if (!st) st = translate_words(l, at, first, n_words, err);
  if (!st && !script_has_own_option(l, "help")) st = script_complete_options(l, err);
  return st ? st : write_translated_line(l, argv, err);
}

void script_clear(like *l) {
  for (int k = 0; k < l->n_texts; k++) laci_free(l->texts[k]);
  *l = (like){0};
}

/* ---- Help and messages ---- */

/* Writes how an option of the script is used: "-e, --epochs VALUE". */
static void format_option_usage(const row *r, char text[128]) {
  const bool wants = r->kind == VALUE || r->kind == IDLE_VALUE;
  const bool may = r->kind == MAYBE || r->kind == IDLE_MAYBE;
  size_t n = 0;
  for (const char *at = r->words; *at && n < 100; at++)
    n += (size_t)snprintf(text + n, 128 - n, *at == '|' ? ", " : "%c", *at);
  (void)snprintf(text + n, 128 - n, "%s",
                 wants             ? " VALUE"
                 : may             ? " [VALUE]"
                 : r->kind == BOOL ? "[=BOOL]"
                                   : "");
}

void script_print_help(const like *l, FILE *out) {
  fprintf(out, "Usage: lacuna %s --like %s [options]\n\n", verb_table[l->verb].name, l->script);
  script_print_environment_variables(l->script, out);
  fprintf(out, "Options of %s:\n", l->script);
  for (int k = 0; k < N_ROWS; k++) {
    const row *r = &rows[k];
    char usage[128];
    if (strcmp(r->script, l->script) != 0) continue;
    format_option_usage(r, usage);
    fprintf(out, "  %-38s ", usage);
    if (r->kind == NONE) fprintf(out, "refused: %s\n", r->text);
    else if (r->to && r->to[0] != '*') fprintf(out, "--%s\n", r->to);
    else fprintf(out, "%s%s\n", r->to ? "" : "no effect: ", r->text);
  }
  fprintf(out, "\nOptions of lacuna %s may be given with them (lacuna help %s).\n",
          verb_table[l->verb].name, verb_table[l->verb].name);
}

/* Writes a word, quoted for a shell if necessary; returns its length. */
static size_t quote_for_shell(const char *word, char *text, size_t capacity) {
  static const char plain[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:,=+@%";
  bool is_plain = word[0] && !word[strspn(word, plain)];
  size_t n = 0;
  if (!is_plain) text[n++] = '\'';
  for (const char *at = word; *at && n + 8 < capacity; at++) {
    if (*at == '\'' && !is_plain) n += (size_t)snprintf(text + n, capacity - n, "'\\'");
    text[n++] = *at;
  }
  if (!is_plain) text[n++] = '\'';
  text[n] = 0;
  return n;
}

void print_quoted_word(const char *word, FILE *out) {
  char text[4096];
  (void)quote_for_shell(word, text, sizeof text);
  fputs(text, out);
}

void script_log_translation(const like *l) {
  char text[4096];
  size_t n = 0;
  if (!l->script || script_has_own_option(l, "help")) return;
  for (int k = 1; k < l->argc && n + 64 < sizeof text; k++) {
    text[n++] = ' ';
    n += quote_for_shell(l->argv[k], text + n, sizeof text - n);
  }
  text[n] = 0;
  log_line("lacuna%s", text);
  for (int k = 0; k + 1 < l->n_notes; k += 2) log_line("%s: %s", l->notes[k], l->notes[k + 1]);
}

void script_rename_error(const like *l, lac_error *err) {
  for (int k = 0; k < l->n_items; k++) {
    const like_item *item = &l->items[k];
    char ours[LONGEST], rest[sizeof err->text];
    size_t n = (size_t)snprintf(ours, sizeof ours, "--%s", item->name);
    bool is_it = strncmp(err->text, ours, n) == 0 && strchr(" :", err->text[n]) && err->text[n];
    if (!is_it || !item->typed) continue;
    (void)snprintf(rest, sizeof rest, "%s", err->text + n);
    (void)snprintf(err->text, sizeof err->text, "%s%s", item->typed, rest);
    return;
  }
}
