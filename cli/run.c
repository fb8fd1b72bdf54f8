/* SPDX-License-Identifier: Apache-2.0
 * `lacuna run`: runs the training that a configuration file of a model runner describes. The file's
 * parameters become options of `lacuna train --like MODEL`, and words of this command line follow
 * them. The program is executed again with the environment that the file sets, under mpirun if the
 * file wants several processes. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "input.h"
#include "like.h"
#include "log.h"
#include "tree.h"
#include "verbs.h"

enum { MOST_WORDS = 512, USUAL_WORKERS = 8, MOST_WORKERS = 65536 };

/* The command line that is being built, and what it is built from. */
typedef struct runner {
  const arguments *args;
  tree file;
  laci_arena arena;
  const char *words[MOST_WORDS + 1]; /* words of the command line that is built; the last one is
                                        NULL */
  int n_words;
  bool uses_workers;
  uint64_t n_workers; /* number of processes; 0: not given */
} runner;

static lac_status append_word(runner *r, const char *word, lac_error *err) {
  if (!word) return laci_fail_memory(err, "the command line");
  if (r->n_words == MOST_WORDS) return laci_fail(err, LAC_BAD_ARGUMENT, "too many words");
  r->words[r->n_words++] = word;
  r->words[r->n_words] = NULL;
  return LAC_OK;
}

/* Appends one word to the command line, made of two parts. */
static lac_status append_joined_word(runner *r, const char *first, const char *second,
                                     lac_error *err) {
  const size_t n = strlen(first) + strlen(second) + 1;
  char *word = laci_arena_alloc(&r->arena, n, 1);
  if (word) (void)snprintf(word, n, "%s%s", first, second);
  return append_word(r, word, err);
}

/* ---- Processes ---- */

static bool is_parameter_name(const char *word, const char *name) {
  for (word += strspn(word, "-"); *name; word++, name++) {
    if (*name != (*word == '-' ? '_' : *word)) return false;
  }
  return !*word || *word == '=';
}

/* Reads a parameter that sets the number of processes. *is_one: it was such a parameter. value
 * NULL: a flag without a value. */
static lac_status read_process_count(runner *r, const char *name, const char *value, bool *is_one,
                                     lac_error *err) {
  const bool is_use = is_parameter_name(name, "use_horovod"),
             is_type = is_parameter_name(name, "hls_type");
  *is_one = is_use || is_type || is_parameter_name(name, "num_workers_per_hls");
  if (!*is_one) return LAC_OK;
  if (is_type) { /* the type of machine: with eight accelerator cards, or with four */
    if (r->n_workers == 0) r->n_workers = value && strcmp(value, "HLS1-H") == 0 ? 4 : USUAL_WORKERS;
    return LAC_OK;
  }
  char *end = NULL;
  const uint64_t n = value ? strtoull(value, &end, 10) : 0;
  const bool is_number = value && value[0] >= '0' && value[0] <= '9' && !*end;
  if (is_number && n > MOST_WORKERS) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "%s %s: wanted at most %d", name, value,
                     (int)MOST_WORKERS);
  }
  if (is_use) {
    r->uses_workers = is_number ? n > 0 : !value || strcasecmp(value, "true") == 0;
    if (is_number && n > 1) r->n_workers = n;
    return LAC_OK;
  }
  if (!is_number || n == 0)
    return laci_fail(err, LAC_BAD_ARGUMENT, "%s %s: wanted an integer from 1 on", name,
                     value ? value : "");
  r->n_workers = n;
  return LAC_OK;
}

/* ---- The file ---- */

/* Returns a value as the runner would write it: true and false with a capital letter. */
static const char *format_runner_value(const tree_node *node) {
  if (node->kind == TREE_BOOLEAN) return node->yes ? "True" : "False";
  return node->text;
}

/* Joins the values of a list to a text: "a,b". */
static lac_status join_list_with_commas(runner *r, const tree_node *list, const char **text,
                                        lac_error *err) {
  size_t n = 1;
  for (const tree_node *item = list->first; item; item = item->next) {
    if (!format_runner_value(item) || item->kind == TREE_NULL)
      return tree_fail(&r->file, item->line, LAC_BAD_ARGUMENT, err, "%s: wanted a list of values",
                       list->key);
    n += strlen(format_runner_value(item)) + 1;
  }
  char *joined = laci_arena_alloc(&r->arena, n, 1), *at = joined;
  if (!joined) return laci_fail_memory(err, "the command line");
  for (const tree_node *item = list->first; item; item = item->next)
    at += snprintf(at, n - (size_t)(at - joined), "%s%s", item == list->first ? "" : ",",
                   format_runner_value(item));
  *text = joined;
  return LAC_OK;
}

/* Adds the flags of the file's list `store_true`, which take no values. */
static lac_status append_flags(runner *r, const tree_node *list, lac_error *err) {
  lac_status st = LAC_OK;
  if (list->kind != TREE_LIST)
    return tree_fail(&r->file, list->line, LAC_BAD_ARGUMENT, err,
                     "store_true: wanted a list of flags");
  for (const tree_node *item = list->first; item && !st; item = item->next) {
    bool is_one = false;
    if (item->kind != TREE_TEXT)
      return tree_fail(&r->file, item->line, LAC_BAD_ARGUMENT, err,
                       "store_true: wanted a list of flags");
    st = read_process_count(r, item->text, NULL, &is_one, err);
    if (!st && !is_one) st = append_joined_word(r, "--", item->text, err);
  }
  return st;
}

/* Adds --key=value; for a map, adds each of its members. */
static lac_status append_parameter(runner *r, const tree_node *node, lac_error *err) {
  const char *value = format_runner_value(node);
  bool is_workers = false;
  lac_status st = LAC_OK;
  if (node->kind == TREE_NULL) return LAC_OK;
  if (strcmp(node->key, "store_true") == 0) return append_flags(r, node, err);
  if (node->kind == TREE_MAP) {
    for (const tree_node *member = node->first; member && !st; member = member->next)
      st = append_parameter(r, member, err);
    return st;
  }
  if (node->kind == TREE_LIST) st = join_list_with_commas(r, node, &value, err);
  if (!st) st = read_process_count(r, node->key, value, &is_workers, err);
  if (st || is_workers) return st;
  const size_t n = strlen(node->key) + 4;
  char *name = laci_arena_alloc(&r->arena, n, 1);
  if (!name) return laci_fail_memory(err, "the command line");
  (void)snprintf(name, n, "--%s=", node->key);
  return append_joined_word(r, name, value, err);
}

/* Is it LD_PRELOAD with a library that cannot be read? The dynamic loader would print an error in
 * every program. */
static bool is_missing_preload(const char *name, const char *value) {
  return strcmp(name, "LD_PRELOAD") == 0 && access(value, R_OK) != 0;
}

/* Do the words for `train` contain -q or --quiet? */
static bool is_quiet_run(const runner *r) {
  for (int k = 0; k < r->args->rest.n; k++) {
    const char *word = r->args->rest.items[k];
    if (strcmp(word, "-q") == 0 || strcmp(word, "--quiet") == 0) return true;
  }
  return false;
}

/* Sets an environment variable. The variable by which the scripts choose bf16 also becomes an
 * option of `train`. */
static lac_status set_environment_variable(runner *r, const tree_node *node, lac_error *err) {
  const char *value = format_runner_value(node);
  if (node->kind == TREE_NULL) return LAC_OK;
  if (!value || strchr(node->key, '='))
    return tree_fail(&r->file, node->line, LAC_BAD_ARGUMENT, err, "%s: wanted a text", node->key);
  if (is_missing_preload(node->key, value)) {
    if (!is_quiet_run(r)) log_line("%s: %s is not there, and is left out", node->key, value);
    return LAC_OK;
  }
  if (r->args->print) printf("%s=%s ", node->key, value);
  else if (setenv(node->key, value, 1))
    return laci_fail_errno(err, node->key, "setting the variable");
  const bool is_on = strcmp(value, "1") == 0 || strcasecmp(value, "true") == 0;
  return is_on && strcmp(node->key, "TF_ENABLE_BF16_CONVERSION") == 0
             ? append_word(r, "--dtype=bf16", err)
             : LAC_OK;
}

static lac_status check_is_map(const runner *r, const tree_node *node, lac_error *err) {
  if (node->kind == TREE_MAP || node->kind == TREE_NULL) return LAC_OK;
  return tree_fail(&r->file, node->line, LAC_BAD_ARGUMENT, err, "%s: wanted a map", node->key);
}

static lac_status check_runner_file(const runner *r, lac_error *err) {
  static const char *const known[] = {"model", "env_variables", "parameters"};
  const tree_node *model = tree_find(r->file.root, "model");
  const char *wanted = r->args->model;
  lac_status st = LAC_OK;
  for (const tree_node *node = r->file.root->first; node && !st; node = node->next) {
    bool is_known = false;
    for (size_t k = 0; k < sizeof known / sizeof known[0]; k++)
      is_known |= strcmp(node->key, known[k]) == 0;
    if (!is_known)
      st = tree_fail(&r->file, node->line, LAC_BAD_ARGUMENT, err,
                     "%s: unknown; wanted model, env_variables and parameters", node->key);
    else if (node != model) st = check_is_map(r, node, err);
  }
  if (st) return st;
  if (!model)
    return tree_fail(&r->file, 1, LAC_BAD_ARGUMENT, err, "model is missing; wanted \"model: %s\"",
                     wanted);
  if (model->kind == TREE_TEXT && strcmp(model->text, wanted) == 0) return LAC_OK;
  return tree_fail(&r->file, model->line, LAC_BAD_ARGUMENT, err,
                   "model: %s; but the command line says %s",
                   format_runner_value(model) ? format_runner_value(model) : "no text", wanted);
}

static lac_status visit_members_of_map(runner *r, const char *name,
                                       lac_status (*visit)(runner *, const tree_node *,
                                                           lac_error *),
                                       lac_error *err) {
  const tree_node *map = tree_find(r->file.root, name);
  lac_status st = LAC_OK;
  for (const tree_node *node = map ? map->first : NULL; node && !st; node = node->next)
    st = visit(r, node, err);
  return st;
}

/* Adds the words of the command line that are meant for `train`. */
static lac_status append_forwarded_words(runner *r, lac_error *err) {
  const text_list *rest = &r->args->rest;
  lac_status st = LAC_OK;
  for (int k = 0; k < rest->n && !st; k++) {
    const char *word = rest->items[k], *value = strchr(word, '=');
    bool is_workers = false;
    const bool has_next = k + 1 < rest->n && rest->items[k + 1][0] != '-';
    if (word[0] == '-') {
      const char *next = has_next ? rest->items[k + 1] : NULL;
      st = read_process_count(r, word, value ? value + 1 : next, &is_workers, err);
      if (is_workers && !value && has_next) k++;
    }
    if (!st && !is_workers) st = append_word(r, word, err);
  }
  return st;
}

/* ---- The program ---- */

static lac_status find_own_program(char self[PATH_MAX], lac_error *err) {
  const ssize_t n = readlink("/proc/self/exe", self, PATH_MAX - 1);
  if (n <= 0) return laci_fail_errno(err, "/proc/self/exe", "finding this program");
  self[n] = 0;
  return LAC_OK;
}

/* Adds the words of the launcher, mpirun, which come first in the command line. */
static lac_status append_launcher_words(runner *r, uint64_t n, lac_error *err) {
  char *count = laci_arena_alloc(&r->arena, 32, 1);
  if (count) (void)snprintf(count, 32, "%llu", (unsigned long long)n);
  lac_status st = append_word(r, "mpirun", err);
  if (!st && geteuid() == 0) st = append_word(r, "--allow-run-as-root", err);
  if (!st && n > (uint64_t)sysconf(_SC_NPROCESSORS_ONLN))
    st = append_word(r, "--oversubscribe", err);
  if (!st) st = append_word(r, "-np", err);
  return st ? st : append_word(r, count, err);
}

/* Makes the whole command line: the launcher, this program, and the words so far. */
static lac_status build_command_line(runner *r, const char *self, lac_error *err) {
  const uint64_t n = !r->uses_workers ? 1 : r->n_workers ? r->n_workers : USUAL_WORKERS;
  const int n_own = r->n_words;
  const char **own = laci_arena_alloc(&r->arena, MOST_WORDS, sizeof *own);
  if (!own) return laci_fail_memory(err, "the command line");
  memcpy(own, r->words, (size_t)n_own * sizeof *own);
  r->n_words = 0;
  lac_status st = n > 1 ? append_launcher_words(r, n, err) : LAC_OK;
  if (!st) st = append_word(r, r->args->print ? "lacuna" : self, err);
  for (int k = 0; k < n_own && !st; k++) st = append_word(r, own[k], err);
  return st;
}

static lac_status execute_command(runner *r, lac_error *err) {
  if (r->args->print) {
    for (int k = 0; k < r->n_words; k++) {
      if (k) fputc(' ', stdout);
      print_quoted_word(r->words[k], stdout);
    }
    fputc('\n', stdout);
    return LAC_OK;
  }
  fflush(stdout);
  (void)execvp(r->words[0], (char **)(void *)r->words);
  return laci_fail(err, LAC_NOT_FOUND, "%s: %s%s", r->words[0], strerror(errno),
                   strcmp(r->words[0], "mpirun") == 0
                       ? "; Open MPI has it (--num_workers_per_hls=1 does without)"
                       : "");
}

static lac_status check_arguments(const arguments *args, lac_error *err) {
  if (!args->model) {
    return laci_fail(
        err, LAC_BAD_ARGUMENT,
        "--model NAME is missing: resnet_estimator or resnet_keras (lacuna infer runs a "
        "network)");
  }
  if (!args->hb_config)
    return laci_fail(err, LAC_BAD_ARGUMENT, "--hb-config FILE is missing: the runner's YAML file");
  return LAC_OK;
}

exit_code verb_run(const arguments *args, lac_error *err) {
  runner *r = laci_alloc(1, sizeof *r);
  char self[PATH_MAX];
  if (!r) return exit_code_of_status(laci_fail_memory(err, "the command line"));
  r->args = args;
  lac_status st = check_arguments(args, err);
  if (!st) st = tree_read_file(args->hb_config, &r->file, err);
  if (!st) st = check_runner_file(r, err);
  if (!st) st = find_own_program(self, err);
  if (!st) st = append_word(r, "train", err);
  if (!st) st = append_word(r, "--like", err);
  if (!st) st = append_word(r, args->model, err);
  if (!st) st = visit_members_of_map(r, "env_variables", set_environment_variable, err);
  if (!st) st = visit_members_of_map(r, "parameters", append_parameter, err);
  if (!st) st = append_forwarded_words(r, err);
  if (!st) st = build_command_line(r, self, err);
  if (!st) st = execute_command(r, err);
  tree_clear(&r->file);
  laci_arena_clear(&r->arena);
  laci_free(r);
  return exit_code_of_status(st);
}
