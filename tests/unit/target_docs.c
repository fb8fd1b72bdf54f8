/* SPDX-License-Identifier: Apache-2.0
 * docs/reference/targets.md between its two marks is what the data of targets says. With --update
 * as its argument this program writes that part; review the diff. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "target/target.h"

#define PAGE LAC_SOURCE_DIR "/docs/reference/targets.md"
#define BEGIN "<!-- targets: written by tests/unit/target_docs.c (--update) -->\n"
#define END "<!-- end of targets -->\n"

static FILE *out;

/* ---- Cells ---- */

static void say_words(const char *words, const char *between) {
  for (const char *at = words; *at;) {
    const size_t n = strcspn(at, " ");
    fprintf(out, "%s%.*s", at == words ? "" : between, (int)n, at);
    at += n + (at[n] == ' ');
  }
}

static void say_multiple(int multiple) {
  if (multiple == 0) fputs("not stated", out);
  else if (multiple == 1) fputs("any", out);
  else fprintf(out, "multiple of %d", multiple);
}

static const char *stance_text(laci_target_stance stance) {
  return stance == LACI_TARGET_YES ? "yes" : stance == LACI_TARGET_NO ? "no" : "not stated";
}

static void say_zeros(const laci_target_rule *rule) {
  if (rule->pattern.m) fprintf(out, "%d:%d", rule->pattern.n, rule->pattern.m);
  else if (rule->least_zeros) fprintf(out, "anywhere, %d %%", rule->least_zeros);
  else fputs("anywhere", out);
}

static void say_axes(const laci_target_rule *rule) {
  if (!rule->least_rank) fputs("any", out);
  else if (rule->least_rank == rule->most_rank) fprintf(out, "%d", rule->least_rank);
  else fprintf(out, "%d to %d", rule->least_rank, rule->most_rank);
  if (rule->least_rank && rule->other_rank != LACI_TARGET_NO)
    fprintf(out, " (others: %s)", stance_text(rule->other_rank));
}

static void say_kernel(const laci_target_rule *rule) {
  if (!strstr(rule->ops, "Conv")) {
    fputs("", out);
    return;
  }
  if (rule->most_positions == 1) fputs("1x1", out);
  else fputs("any", out);
  fprintf(out, "; groups: %s", stance_text(rule->groups));
  if (rule->unshared) fputs("; not shared", out);
}

static void say_pays(const laci_target_rule *rule) {
  if (rule->pays_in) fprintf(out, "%d x %d", rule->pays_in, rule->pays_out);
  else fputs("not stated", out);
}

/* ---- A target ---- */

static void say_rules(const laci_target *target) {
  fprintf(out,
          "\n| operators | types | zeros | input channels | output channels | axes of the weight | "
          "convolutions | pays from | source |\n|---|---|---|---|---|---|---|---|---|\n");
  for (int r = 0; r < target->n_rules; r++) {
    const laci_target_rule *rule = &target->rules[r];
    fputs("| ", out);
    say_words(rule->ops, ", ");
    if (rule->by) fprintf(out, " (%s)", rule->by);
    fputs(" | ", out);
    say_words(rule->types, " ");
    fputs(" | ", out);
    say_zeros(rule);
    fputs(" | ", out);
    say_multiple(rule->in_multiple);
    fputs(" | ", out);
    say_multiple(rule->out_multiple);
    fputs(" | ", out);
    say_axes(rule);
    fputs(" | ", out);
    say_kernel(rule);
    fputs(" | ", out);
    say_pays(rule);
    fputs(" | ", out);
    say_words(rule->source, ", ");
    fputs(" |\n", out);
  }
}

static void say_gains(const laci_target *target) {
  if (!target->n_gains) {
    fputs("\nGains of single layers are not stated.\n", out);
    return;
  }
  fputs(
      "\n| gain | operator | type | positions | channels | measured | source |\n"
      "|---|---|---|---|---|---|---|\n",
      out);
  for (int g = 0; g < target->n_gains; g++) {
    const laci_target_gain *gain = &target->gains[g];
    fprintf(out, "| %.2f | %s | %s | %d | %lld -> %lld | %s | %s |\n", gain->times, gain->op,
            gain->type, gain->positions, (long long)gain->in, (long long)gain->out, gain->of,
            gain->source);
  }
}

static void say_target(const laci_target *target, const char *name) {
  fprintf(out, "\n### %s\n\n%s.", name, target->title);
  if (target->needs) fprintf(out, " Needs %s.", target->needs);
  if (target->never) fprintf(out, " Takes nothing: %s (%s).", target->never, target->never_source);
  fputs("\n", out);
  if (target->n_rules) {
    say_rules(target);
    say_gains(target);
  }
  if (target->unstated) fprintf(out, "\nNot stated: %s.\n", target->unstated);
  fprintf(out, "\n%s\n\nSources:\n\n", target->remarks);
  for (int s = 0; s < target->n_sources; s++)
    fprintf(out, "- *%s*: %s, %s\n", target->sources[s].key, target->sources[s].title,
            target->sources[s].section);
}

/* What the data says; free it. */
static char *part(void) {
  char *text = NULL;
  size_t size = 0;
  int n;
  const char *const *names = laci_target_names(&n);
  out = open_memstream(&text, &size);
  assert_non_null(out);
  for (int t = 0; t < n; t++) say_target(laci_targets[t], names[t]);
  fputs("\n", out);
  assert_int_equal(fclose(out), 0);
  return text;
}

/* ---- The page ---- */

static char *read_page(void) {
  FILE *file = fopen(PAGE, "r");
  if (!file) fail_msg("%s: not there", PAGE);
  char *text = calloc(1, 1 << 18);
  assert_non_null(text);
  assert_true(fread(text, 1, (1 << 18) - 1, file) > 0);
  assert_int_equal(fclose(file), 0);
  return text;
}

/* Where the part begins and ends. */
static char *find_part(char *page, char **end) {
  char *begin = strstr(page, BEGIN);
  assert_non_null(begin);
  begin += strlen(BEGIN);
  *end = strstr(begin, END);
  assert_non_null(*end);
  return begin;
}

static void the_page_says_what_the_data_says(void **state) {
  (void)state;
  char *page = read_page(), *wanted = part(), *end, *begin = find_part(page, &end);
  const size_t n = (size_t)(end - begin);
  size_t at = 0;
  while (at < n && wanted[at] && wanted[at] == begin[at]) at++;
  if (at != n || wanted[at])
    fail_msg(
        "docs/reference/targets.md differs from the data (target_docs --update writes it): "
        "\"%.60s\", "
        "wanted \"%.60s\"",
        begin + at, wanted + at);
  free(wanted);
  free(page);
}

static int update(void) {
  char *page = read_page(), *text = part(), *end, *begin = find_part(page, &end);
  FILE *file = fopen(PAGE, "w");
  if (!file) return 1;
  fwrite(page, 1, (size_t)(begin - page), file);
  fputs(text, file);
  fputs(end, file);
  free(text);
  free(page);
  return fclose(file) != 0;
}

int main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "--update") == 0) return update();
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_page_says_what_the_data_says)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
