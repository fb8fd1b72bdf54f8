/* SPDX-License-Identifier: Apache-2.0
 * Random networks in which one size, one attribute or one content is another one: each node runs or
 * refuses with a text that names it, and nothing is read or written beyond what is there (which the
 * sanitizers see). LAC_RANDOM_GRAPHS and LAC_RANDOM_SEED as in analyze_random.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "graph/op.h"
#include "support/random_net.h"

enum { DEFAULT_GRAPHS = 400, CHANGES = 6 };

static long number_from(const char *variable, long otherwise) {
  const char *text = getenv(variable);
  return text && *text ? strtol(text, NULL, 10) : otherwise;
}

/** Replaces one of the numbers of a line, from `at` on. */
static bool change_number(builder *m, char *text, char *at) {
  static char rest[RANDOM_TEXT];
  char *end = at + strcspn(at, "\n"), *found = NULL;
  int n = 0;
  for (char *c = at; c < end; c++) {
    bool starts = isdigit((unsigned char)*c) && !isalnum((unsigned char)c[-1]);
    starts |= isdigit((unsigned char)*c) && c[-1] == 'x' && isdigit((unsigned char)c[-2]);
    if (starts && draw(m, ++n) == 0) found = c;
  }
  if (!found) return false;
  long old = strtol(found, &end, 10), to = chance(m, 50) ? old + 1 : draw(m, 4);
  if (to == old) to = old + 2;
  (void)snprintf(rest, sizeof rest, "%s", end);
  (void)snprintf(found, RANDOM_TEXT - (size_t)(found - text), "%ld%s", to, rest);
  return true;
}

static bool change_line(builder *m, char *text) {
  char *found = NULL;
  int n = 0;
  for (char *at = text; *at; at += strcspn(at, "\n") + 1) {
    if (strchr("so", at[0]) == NULL || strncmp(at, "stored", 6) == 0) {
      if (draw(m, ++n) == 0) found = at;
    }
    if (!at[strcspn(at, "\n")]) break;
  }
  if (!found) return false;
  bool declares = strncmp(found, "stored", 6) == 0 || strncmp(found, "input", 5) == 0;
  char *from = declares ? found + strcspn(found, " ") + 1 : strchr(found, '(');
  if (declares) from += strcspn(from, " ");
  return from && change_number(m, text, from);
}

/* Runs as far as it goes. */
static void run_changed(const char *text, long *n_refused) {
  laci_graph *graph = NULL;
  lac_error err = {0};
  if (net_read(text, &graph, &err)) {
    ++*n_refused;
    return;
  }
  laci_buf **values = laci_alloc((size_t)graph->n_values + 1, sizeof *values);
  assert_non_null(values);
  bool ok = true;
  for (int v = 0; ok && v < graph->n_values; v++) {
    if (graph->values[v].producer >= 0) continue;
    values[v] = run_source(graph, v);
    ok = values[v] != NULL;
  }
  for (int n = 0; ok && n < graph->n_nodes; n++) {
    const laci_node *node = &graph->nodes[n];
    lac_status st = run_node(graph, n, values, &err);
    ok = st == LAC_OK;
    *n_refused += !ok;
    if (st && st != LAC_UNSUPPORTED && !strstr(err.text, node->type))
      fail_msg("%s refuses as '%s'\n%s", node->type, err.text, text);
  }
  run_clear(graph, values);
  laci_graph_destroy(graph);
}

static void what_does_not_fit_is_refused(void **state) {
  (void)state;
  long n = number_from("LAC_RANDOM_GRAPHS", DEFAULT_GRAPHS),
       first = number_from("LAC_RANDOM_SEED", 0), n_refused = 0, n_changed = 0;
  int n_ops;
  const laci_op *const *ops = drawn_ops(&n_ops);
  builder *m = malloc(sizeof *m);
  char *text = malloc(RANDOM_TEXT);
  assert_true(m && text);
  for (long g = first; g < first + n; g++) {
    if (make_net(m, (uint64_t)g, key_of(ops[g % n_ops]).text)) {
      for (int k = 0; k < CHANGES; k++) {
        (void)snprintf(text, RANDOM_TEXT, "%s", m->text);
        if (!change_line(m, text)) continue;
        n_changed++;
        if (getenv("LAC_RANDOM_SHOW")) print_message("%s\n", text);
        run_changed(text, &n_refused);
      }
    }
    builder_clear(m);
  }
  free(text);
  free(m);
  print_message("%ld changed networks, %ld refused\n", n_changed, n_refused);
  assert_true(n_changed > n * 3);
  assert_true(n_refused > n_changed / 10 && n_refused < n_changed);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(what_does_not_fit_is_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
