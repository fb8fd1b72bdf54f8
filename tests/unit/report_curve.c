/* SPDX-License-Identifier: Apache-2.0
 * report: the curves of a training: well-formed, thinned, and drawn for empty, single, constant and
 * not finite values alike. */
#include "report/curve.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/utf8.h"

static char *draw(const laci_curve *curve) {
  char *svg = NULL;
  size_t n = 0;
  assert_int_equal(laci_curve_svg(curve, &svg, &n, NULL), LAC_OK);
  assert_int_equal(strlen(svg), n);
  assert_true(strncmp(svg, "<svg ", 5) == 0 && strcmp(svg + n - 7, "</svg>\n") == 0);
  assert_null(strstr(svg, "nan"));
  assert_null(strstr(svg, "inf"));
  return svg;
}

static int count(const char *text, const char *part) {
  int n = 0;
  for (const char *at = text; (at = strstr(at, part)) != NULL; at++) n++;
  return n;
}

static void both_panels_have_their_series(void **state) {
  (void)state;
  laci_curve_point loss[50], top1[3] = {{10, 40}, {20, 75.5}, {49, 91}};
  for (int k = 0; k < 50; k++) loss[k] = (laci_curve_point){k, 2.5 / (1 + k)};
  laci_curve curve = {.title = "a < b & c",
                      .loss = {{"training", loss, 50, false}},
                      .accuracy = {{"top-1", top1, 3, false}},
                      .n_loss = 1,
                      .n_accuracy = 1};
  char *svg = draw(&curve), *again = draw(&curve);
  assert_string_equal(svg, again);
  assert_non_null(strstr(svg, "a &lt; b &amp; c"));
  assert_non_null(strstr(svg, ">training</text>"));
  assert_non_null(strstr(svg, ">top-1</text>"));
  assert_int_equal(count(svg, "stroke-width=\"1.5\""), 2);
  assert_int_equal(count(svg, "<circle"), 0);
  laci_free(svg);
  laci_free(again);
}

/** The y of the text that holds `words`. */
static double height_of(const char *svg, const char *words) {
  const char *found = strstr(svg, words), *at = svg;
  double y = NAN;
  if (!found) fail_msg("no '%s' in the drawing", words);
  for (const char *next; (next = strstr(at, "<text ")) && next < found;) at = next + 1;
  assert_int_equal(sscanf(strstr(at, " y=\""), " y=\"%lf\"", &y), 1);
  return y;
}

/** Dense, pruned, fine-tuned, twice: one large panel, with a mark and a value for what counts. */
static void a_recovery_shows_its_values(void **state) {
  (void)state;
  laci_curve_point a[3] = {{0, 81.25}, {45, 97.5}, {90, 98.11}},
                   b[3] = {{0, 81.5}, {45, 96}, {90, 98.12}};
  laci_curve curve = {.title = "t",
                      .data = "digits",
                      .accuracy = {{"one", a, 3, true}, {"two", b, 3, true}},
                      .n_accuracy = 2,
                      .steps_per_epoch = 45,
                      .dense = 98.13,
                      .has_starts = true};
  char *svg = draw(&curve);
  static const char *const wanted[] = {
      ">81.25 %<", ">81.50 %<", ">98.11 %<", ">98.12 %<", ">dense 98.13 %<",
      ">digits<",  ">epoch<",   ">step<",    ">90<",      ">dense<"};
  for (size_t k = 0; k < sizeof wanted / sizeof *wanted; k++) {
    if (!strstr(svg, wanted[k])) fail_msg("no '%s' in the drawing", wanted[k]);
  }
  assert_int_equal(count(svg, "<circle"), 7);                  /* six scores, and the dense one */
  assert_int_equal(count(svg, "stroke-dasharray=\"6 4\""), 2); /* the line, and in the legend */
  assert_null(strstr(svg, ">loss<"));
  assert_null(strstr(svg, ">-0<"));
  /* Values as good as equal do not overlap. */
  double last[] = {height_of(svg, ">dense 98.13"), height_of(svg, ">98.12 %"),
                   height_of(svg, ">98.11 %")};
  for (int k = 1; k < 3; k++) assert_true(last[k] - last[k - 1] >= 11);
  assert_true(fabs(height_of(svg, ">81.25 %") - height_of(svg, ">81.50 %")) >= 11);
  laci_free(svg);
}

static void steps_are_epochs_where_these_are_known(void **state) {
  (void)state;
  laci_curve_point points[2] = {{1, 3}, {1000, 1}};
  laci_curve curve = {.title = "", .loss = {{"x", points, 2, false}}, .n_loss = 1};
  char *svg = draw(&curve);
  assert_non_null(strstr(svg, ">1000</text>"));
  assert_non_null(strstr(svg, "font-weight=\"bold\">step<"));
  assert_null(strstr(svg, "epoch"));
  laci_free(svg);
  curve.steps_per_epoch = 100;
  svg = draw(&curve);
  assert_non_null(strstr(svg, ">10</text>"));
  assert_non_null(strstr(svg, "fill=\"#888\">1000</text>"));
  laci_free(svg);
}

/** Titles and labels of any bytes and any length. */
static void texts_are_valid_and_have_capacity(void **state) {
  (void)state;
  char name[3000];
  laci_curve_point point = {1, 2};
  for (size_t k = 0; k < sizeof name - 1; k++) name[k] = "ab/\x01\x7f\xff<&>\xc3\xa9"[k % 11];
  name[sizeof name - 1] = 0;
  memcpy(name, "begin ", 6);
  memcpy(name + sizeof name - 5, " end", 4);
  laci_curve curve = {.title = name,
                      .data = name,
                      .accuracy = {{name, &point, 1, true}, {name, &point, 1, true}},
                      .n_accuracy = 2};
  char *svg = draw(&curve);
  assert_true(strlen(svg) < 20000);
  assert_int_equal(count(svg, ">begin "), 4);
  assert_int_equal(count(svg, " end</text>"), 4);
  assert_int_equal(count(svg, "..."), 4);
  for (const char *at = svg; *at;) {
    uint32_t code = 0;
    size_t n = laci_utf8_next(at, &code);
    assert_true(n > 0 && (code >= ' ' || code == '\n') && !(code >= 0x7f && code < 0xa0));
    at += n;
  }
  laci_free(svg);
}

static void long_series_are_thinned_but_keep_their_extremes(void **state) {
  (void)state;
  enum { N = 200000 };
  laci_curve_point *points = malloc(N * sizeof *points);
  assert_non_null(points);
  for (int k = 0; k < N; k++) points[k] = (laci_curve_point){k, k % 7};
  points[123456].value = 100; /* the top of the frame is there: y = 70 */
  laci_curve curve = {.title = "", .loss = {{"x", points, N, false}}, .n_loss = 1};
  char *svg = draw(&curve);
  assert_true(strlen(svg) < 40000);
  assert_non_null(strstr(svg, " 70.0L"));
  laci_free(svg);
  free(points);
}

/** The first and the last grid line across are the frame's edges: 70 and 280. */
static void the_frame_ends_at_its_first_and_last_tick(void **state) {
  (void)state;
  for (int k = 0; k < 2000; k++) {
    double low = 0.137 * (k % 97), high = low + 0.0031 * (1 + k);
    laci_curve_point points[2] = {{1, low}, {2, high}};
    laci_curve curve = {.title = "", .loss = {{"x", points, 2, false}}, .n_loss = 1};
    char *svg = draw(&curve);
    double least = 1e9, most = -1e9, x, y;
    for (const char *at = svg; (at = strstr(at, "<path d=\"M64 ")) != NULL; at++) {
      if (sscanf(at, "<path d=\"M%lf %lfH", &x, &y) != 2 || y > 300) continue; /* the upper one */
      least = fmin(least, y);
      most = fmax(most, y);
    }
    if (least != 70 || most != 280)
      fail_msg("%g to %g: lines from %g to %g", low, high, least, most);
    laci_free(svg);
  }
}

static void strange_values_are_drawn_or_left_out(void **state) {
  (void)state;
  laci_curve_point gap[4] = {{1, 1}, {2, (double)NAN}, {3, (double)INFINITY}, {4, 2}};
  laci_curve_point same[2] = {{1, 5}, {9, 5}}, one = {7, 0}, huge[2] = {{0, 1e300}, {1, -1e300}};
  laci_curve_point nothing = {1, (double)NAN};
  const laci_curve_series series[] = {{"gap", gap, 4, true},    {"same", same, 2, true},
                                      {"one", &one, 1, true},   {"huge", huge, 2, true},
                                      {"none", NULL, 0, false}, {"nan", &nothing, 1, false}};
  for (size_t k = 0; k < sizeof series / sizeof *series; k++) {
    laci_curve curve = {.title = "t", .loss = {series[k]}, .n_loss = 1};
    if (strcmp(series[k].label, "nan") == 0) curve.loss[0].label = "not a number";
    laci_free(draw(&curve));
  }
  laci_free(draw(&(laci_curve){.title = "empty"}));
}

static void without_memory_it_fails(void **state) {
  (void)state;
  char *svg = NULL;
  size_t n;
  laci_memory_fail_from(1);
  assert_int_equal(laci_curve_svg(&(laci_curve){.title = ""}, &svg, &n, NULL), LAC_NO_MEMORY);
  laci_memory_fail_from(0);
  assert_null(svg);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(both_panels_have_their_series),
      cmocka_unit_test(a_recovery_shows_its_values),
      cmocka_unit_test(steps_are_epochs_where_these_are_known),
      cmocka_unit_test(texts_are_valid_and_have_capacity),
      cmocka_unit_test(long_series_are_thinned_but_keep_their_extremes),
      cmocka_unit_test(the_frame_ends_at_its_first_and_last_tick),
      cmocka_unit_test(strange_values_are_drawn_or_left_out),
      cmocka_unit_test(without_memory_it_fails),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
