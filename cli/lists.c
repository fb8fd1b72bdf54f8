/* SPDX-License-Identifier: Apache-2.0
 * `lacuna archs` and `lacuna recipes`: what train can build, and by which recipes it trains. */
#include <stdio.h>
#include <string.h>

#include "lacuna/train.h"
#include "table.h"
#include "verbs.h"

exit_code verb_archs(const arguments *args, lac_error *err) {
  (void)args;
  int n;
  const char *const *names = lac_network_names(&n);
  text_table table = {0};
  table_begin(&table, "arch|images|classes|recipe");
  for (int k = 0; k < n; k++) {
    const bool is_digits = strcmp(names[k], "digits") == 0;
    const bool is_cifar = strncmp(names[k], "cifar-", strlen("cifar-")) == 0;
    table_add_cell(&table, "%s", names[k]);
    table_add_cell(&table, "%s", is_digits ? "8 x 8, grey" : is_cifar ? "32 x 32" : "224 x 224");
    table_add_cell(&table, "%s", is_digits || is_cifar ? "10" : "1000");
    table_add_cell(&table, "%s", lac_network_recipe(names[k]));
  }
  lac_status st = table_print(&table, stdout, err);
  table_clear(&table);
  return exit_code_of_status(st);
}

/* Returns the value of a recipe's setting; empty: it has none. */
static const char *find_setting_value(const lac_train_setting *rows, int n, const char *name) {
  for (int k = 0; k < n; k++) {
    if (strcmp(rows[k].name, name) == 0) return rows[k].value;
  }
  return "";
}

static lac_status add_recipe_row(text_table *table, const char *name, lac_error *err) {
  static const char *const columns[] = {"optimizer", "rate", "schedule", "epochs"};
  lac_train_setting rows[LAC_TRAIN_MOST_SETTINGS];
  lac_train_options options = lac_train_options_default();
  int n = 0;
  options.recipe = name;
  lac_status st = lac_train_settings(&options, rows, &n, err);
  if (st) return st;
  table_add_cell(table, "%s", name);
  for (size_t k = 0; k < sizeof columns / sizeof columns[0]; k++) {
    const char *value = find_setting_value(rows, n, columns[k]);
    table_add_cell(table, "%.*s", (int)strcspn(value, ",:"), value);
  }
  return LAC_OK;
}

exit_code verb_recipes(const arguments *args, lac_error *err) {
  (void)args;
  const char *names = option_value_placeholder(option_find(VERB_train, "--recipe"), VERB_train);
  text_table table = {0};
  lac_status st = LAC_OK;
  table_begin(&table, "recipe|optimizer|rate|schedule|epochs");
  for (const char *at = names; *at && !st;) {
    char name[64];
    const size_t n = strcspn(at, "|");
    (void)snprintf(name, sizeof name, "%.*s", (int)n, at);
    st = add_recipe_row(&table, name, err);
    at += n + (at[n] == '|');
  }
  if (!st) st = table_print(&table, stdout, err);
  table_clear(&table);
  return exit_code_of_status(st);
}
