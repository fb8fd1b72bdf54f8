/* SPDX-License-Identifier: Apache-2.0
 * The chart: what it shows, any names, many bars, every format. How it looks is for eyes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "graph/graph.h"
#include "onnx_build.h"
#include "report/chart.h"

static const laci_chart_kind kinds[] = {{"Conv", 0.75, "3 ms", "2 steps"},
                                        {"Relu", 0.25, "1 ms", ""}};
static const laci_chart_bar bars[] = {
    {"first", 2, 0, 0, "2 ms, 50%", "fast kernel"},
    {"a/very/long/name/of/a/layer/that/goes/on/and/on/until/the/end/Conv", 1, 0, 1, "1 ms, 25%",
     NULL},
    {"<&>\"\\\xFF", 0, 0, 0, "0 ms", ""},
    {"7 others", 900, 0, -1, "rest", ""}};
static const laci_chart chart = {.title = "net <1>",
                                 .summary = "two & two",
                                 .bars = bars,
                                 .n_bars = 4,
                                 .kinds = kinds,
                                 .n_kinds = 2};

static char *drawn(const laci_chart *what, const char *name) {
  folder f;
  lac_error err = {0};
  char *text = NULL;
  folder_make(&f);
  if (laci_chart_write(what, in_folder(&f, name), false, &err)) fail_msg("%s", err.text);
  assert_int_equal(laci_chart_write(what, in_folder(&f, name), false, &err), LAC_EXISTS);
  assert_int_equal(laci_chart_write(what, in_folder(&f, name), true, &err), LAC_OK);
  FILE *file = fopen(in_folder(&f, name), "rb");
  assert_non_null(file);
  text = calloc(1, 1 << 21);
  assert_non_null(text);
  assert_true(fread(text, 1, (1 << 21) - 1, file) > 0);
  (void)fclose(file);
  (void)unlink(in_folder(&f, name));
  (void)rmdir(f.path);
  return text;
}

static int count_text(const char *text, const char *wanted) {
  int n = 0;
  for (const char *at = strstr(text, wanted); at; at = strstr(at + 1, wanted)) n++;
  return n;
}

static void says_what_each_bar_is(void **state) {
  (void)state;
  char *dot = drawn(&chart, "a.dot");
  static const char *const wanted[] = {
      "net &lt;1&gt;",       "two &amp; two", "first",         "2 ms, 50%", "fast kernel",
      "/until/the/end/Conv", "...",           "&lt;&amp;&gt;", "7 others",  "Relu"};
  for (size_t at = 0; at < sizeof wanted / sizeof *wanted; at++) {
    if (!strstr(dot, wanted[at])) fail_msg("no '%s' in the chart", wanted[at]);
  }
  assert_null(strstr(dot, "/name/of/")); /* the middle of a long name */
  free(dot);
}

static void the_longest_bar_is_a_kinds_own(void **state) {
  (void)state;
  char *dot = drawn(&chart, "a.dot");
  assert_int_equal(count_text(dot, "WIDTH=\"320\" HEIGHT=\"12\" BGCOLOR"), 1); /* first */
  assert_int_equal(count_text(dot, "WIDTH=\"160\" HEIGHT=\"12\" BGCOLOR"), 1);
  assert_int_equal(count_text(dot, "WIDTH=\"1\" HEIGHT=\"12\" BGCOLOR"), 1); /* nothing: a line */
  assert_int_equal(count_text(dot, "WIDTH=\"320\" HEIGHT=\"12\"></TD>"), 1); /* the rest: no bar */
  free(dot);
}

/* 320 for the longer one, of which half is the bar's own; the shorter one is hidden by its bar. */
static void a_paler_bar_goes_on_after(void **state) {
  (void)state;
  static const laci_chart_bar two[] = {
      {.label = "a", .value = 1, .pale_value = 2, .kind = 0, .text = ""},
      {.label = "b", .value = 1.5, .pale_value = 1, .kind = 0, .text = ""}};
  laci_chart c = chart;
  c.bars = two;
  c.n_bars = 2;
  c.n_kinds = 0;
  char *dot = drawn(&c, "a.dot");
  assert_int_equal(count_text(dot, "WIDTH=\"160\" HEIGHT=\"12\" BGCOLOR=\"#DDDDDD\""), 1);
  assert_int_equal(count_text(dot, "BGCOLOR=\"#DDDDDD\""), 1);
  assert_int_equal(count_text(dot, "WIDTH=\"240\" HEIGHT=\"12\" BGCOLOR"), 1);
  free(dot);
}

static void every_format_is_drawn(void **state) {
  (void)state;
  static const char *const starts[][2] = {
      {"a.svg", "<?xml"}, {"b.PDF", "%PDF-"}, {"c.png", "\x89PNG"}, {"d.e.dot", "digraph"}};
  for (size_t at = 0; at < sizeof starts / sizeof *starts; at++) {
    char *bytes = drawn(&chart, starts[at][0]);
    if (strncmp(bytes, starts[at][1], strlen(starts[at][1])) != 0) fail_msg("%s", starts[at][0]);
    free(bytes);
  }
  lac_error err = {0};
  assert_int_equal(laci_chart_write(&chart, "/tmp/a.gif", false, &err), LAC_BAD_ARGUMENT);
}

static void hundreds_of_bars_and_none_at_all(void **state) {
  (void)state;
  enum { N = 300 };
  static laci_chart_bar many[N];
  for (int at = 0; at < N; at++) many[at] = (laci_chart_bar){"layer", N - at, 0, at % 12, "x", "y"};
  char *svg =
      drawn(&(laci_chart){.title = "t", .summary = "s", .bars = many, .n_bars = N}, "a.svg");
  assert_int_equal(count_text(svg, ">layer<"), N);
  free(svg);
  free(drawn(&(laci_chart){.title = "t", .summary = ""}, "a.svg"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(says_what_each_bar_is),
      cmocka_unit_test(the_longest_bar_is_a_kinds_own),
      cmocka_unit_test(a_paler_bar_goes_on_after),
      cmocka_unit_test(every_format_is_drawn),
      cmocka_unit_test(hundreds_of_bars_and_none_at_all),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
