/* SPDX-License-Identifier: Apache-2.0
 * Samples of an algorithm, the lines of the table, and the same as JSON.
 *
 * A *wanted* line is one sentence with a bound and what was measured against it, the same for every
 * kind of row, so that whoever reads the JSON needs no knowledge of the rows. Next: search_bench.c.
 */
#ifndef BENCH_RESULTS_H
#define BENCH_RESULTS_H

#include <jansson.h>
#include <stdlib.h>

#include "contenders.h"

enum { SAMPLES_MOST = 40 };

/** One algorithm with one budget, run n times. */
typedef struct samples {
  const algorithm *algorithm;
  budget budget;
  const char *effort; /* its name where the budget is one */
  int n_wanted, n;
  outcome of[SAMPLES_MOST];
} samples;

typedef struct summary {
  double efficacy, efficacy_least;             /* mean, worst */
  double seconds, seconds_least, seconds_most; /* median, fastest, slowest */
  double iterations;                           /* mean */
} summary;

static inline int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static inline summary summarise(const samples *s) {
  double seconds[SAMPLES_MOST];
  summary sum = {.efficacy_least = s->of[0].efficacy};
  for (int i = 0; i < s->n; i++) {
    sum.efficacy += s->of[i].efficacy / s->n;
    sum.iterations += (double)s->of[i].iterations / s->n;
    if (s->of[i].efficacy < sum.efficacy_least) sum.efficacy_least = s->of[i].efficacy;
    seconds[i] = s->of[i].seconds;
  }
  qsort(seconds, (size_t)s->n, sizeof *seconds, by_value);
  sum.seconds = seconds[s->n / 2];
  sum.seconds_least = seconds[0];
  sum.seconds_most = seconds[s->n - 1];
  return sum;
}

/** "2 ms", "0.5 ms", "10 s" */
static inline const char *time_text(double seconds, char text[24]) {
  bool small = seconds < 0.9995;
  (void)snprintf(text, 24, "%.3g %s", small ? 1e3 * seconds : seconds, small ? "ms" : "s");
  return text;
}

/** Prints a line of the table and appends the same to `algorithms`. */
static inline void report_samples(const samples *s, json_t *algorithms) {
  summary sum = summarise(s);
  char limit[24] = "", took[24], most[24];
  if (s->budget.seconds > 0) (void)time_text(s->budget.seconds, limit);
  else (void)snprintf(limit, sizeof limit, "%s", s->effort ? s->effort : "-");
  printf("  %-16s %8s %5d %10.3f %10.3f %10s %10s %10.0f%s\n", s->algorithm->name, limit, s->n,
         sum.efficacy, sum.efficacy_least, time_text(sum.seconds, took),
         time_text(sum.seconds_most, most), sum.iterations, s->of[0].proven ? "  proven" : "");
  (void)fflush(stdout);
  json_t *one = json_pack(
      "{s:s, s:o, s:o, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:b}", "method", s->algorithm->name,
      "limit", s->budget.seconds > 0 ? json_real(s->budget.seconds) : json_null(), "effort",
      s->effort ? json_string(s->effort) : json_null(), "runs", s->n, "efficacy", sum.efficacy,
      "efficacy_least", sum.efficacy_least, "seconds", sum.seconds, "seconds_least",
      sum.seconds_least, "seconds_most", sum.seconds_most, "iterations", sum.iterations, "proven",
      (int)s->of[0].proven);
  json_array_append_new(algorithms, one);
}

static inline void report_heading(void) {
  printf("  %-16s %8s %5s %10s %10s %10s %10s %10s\n", "algorithm", "limit", "runs", "efficacy",
         "least", "median", "slowest", "iterations");
}

/** A bound and what was measured against it. at_most: the bound is a ceiling. tolerance: how far
 * beyond it is still near, as a part of it. */
typedef struct wanted {
  char text[96];
  double bound, measured, tolerance;
  bool at_most;
} wanted;

static inline const char *wanted_verdict(const wanted *w) {
  double slack = w->tolerance * w->bound;
  if (w->at_most ? w->measured <= w->bound : w->measured >= w->bound) return "yes";
  if (w->at_most ? w->measured <= w->bound + slack : w->measured >= w->bound - slack) return "near";
  return "no";
}

static inline void report_wanted(const wanted *w, json_t *list) {
  const char *verdict = wanted_verdict(w), *relation = w->at_most ? "<=" : ">=";
  printf("  %-66s %s %7.4g: %9.5g  %s\n", w->text, relation, w->bound, w->measured, verdict);
  (void)fflush(stdout);
  json_array_append_new(
      list, json_pack("{s:s, s:s, s:f, s:f, s:s}", "text", w->text, "relation", relation, "bound",
                      w->bound, "measured", w->measured, "verdict", verdict));
}

#endif
