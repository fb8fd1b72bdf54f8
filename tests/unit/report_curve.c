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
                      .loss = {{"training", loss, 50}},
                      .accuracy = {{"top-1", top1, 3}},
                      .n_loss = 1,
                      .n_accuracy = 1};
  char *svg = draw(&curve), *again = draw(&curve);
  assert_string_equal(svg, again);
  assert_non_null(strstr(svg, "a &lt; b &amp; c"));
  assert_non_null(strstr(svg, ">training</tspan>"));
  assert_non_null(strstr(svg, ">top-1</tspan>"));
  assert_int_equal(count(svg, "stroke-width=\"1.5\""), 2);
  laci_free(svg);
  laci_free(again);
}

static void long_series_are_thinned_but_keep_their_extremes(void **state) {
  (void)state;
  enum { N = 200000 };
  laci_curve_point *points = malloc(N * sizeof *points);
  assert_non_null(points);
  for (int k = 0; k < N; k++) points[k] = (laci_curve_point){k, k % 7};
  points[123456].value = 100; /* the top of the frame is there: y = 44 */
  laci_curve curve = {.title = "", .loss = {{"x", points, N}}, .n_loss = 1};
  char *svg = draw(&curve);
  assert_true(strlen(svg) < 40000);
  assert_non_null(strstr(svg, " 44.0L"));
  laci_free(svg);
  free(points);
}

/** The first and the last grid line across are the frame's edges: 44 and 254. */
static void the_frame_ends_at_its_first_and_last_tick(void **state) {
  (void)state;
  for (int k = 0; k < 2000; k++) {
    double low = 0.137 * (k % 97), high = low + 0.0031 * (1 + k);
    laci_curve_point points[2] = {{1, low}, {2, high}};
    laci_curve curve = {.title = "", .loss = {{"x", points, 2}}, .n_loss = 1};
    char *svg = draw(&curve);
    double least = 1e9, most = -1e9, x, y;
    for (const char *at = svg; (at = strstr(at, "<path d=\"M64 ")) != NULL; at++) {
      if (sscanf(at, "<path d=\"M%lf %lfH", &x, &y) != 2 || y > 260) continue; /* the upper one */
      least = fmin(least, y);
      most = fmax(most, y);
    }
    if (least != 44 || most != 254)
      fail_msg("%g to %g: lines from %g to %g", low, high, least, most);
    laci_free(svg);
  }
}

static void strange_values_are_drawn_or_left_out(void **state) {
  (void)state;
  laci_curve_point gap[4] = {{1, 1}, {2, (double)NAN}, {3, (double)INFINITY}, {4, 2}};
  laci_curve_point same[2] = {{1, 5}, {9, 5}}, one = {7, 0}, huge[2] = {{0, 1e300}, {1, -1e300}};
  laci_curve_point nothing = {1, (double)NAN};
  const laci_curve_series series[] = {{"gap", gap, 4},   {"same", same, 2}, {"one", &one, 1},
                                      {"huge", huge, 2}, {"none", NULL, 0}, {"nan", &nothing, 1}};
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
  laci_memory_fail_at(1);
  assert_int_equal(laci_curve_svg(&(laci_curve){.title = ""}, &svg, &n, NULL), LAC_NO_MEMORY);
  laci_memory_fail_at(0);
  assert_null(svg);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(both_panels_have_their_series),
      cmocka_unit_test(long_series_are_thinned_but_keep_their_extremes),
      cmocka_unit_test(the_frame_ends_at_its_first_and_last_tick),
      cmocka_unit_test(strange_values_are_drawn_or_left_out),
      cmocka_unit_test(without_memory_it_fails),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
