/* SPDX-License-Identifier: Apache-2.0
 * Finds the figures for which the estimates of all algorithms are nearest to the measured times, by
 * the logarithm of estimate / time. A unit of cost is the time that dense kernels need for a
 * multiply-add, on large layers without groups.
 *
 * It tries to change one figure after the other by a step up and a step down, and keeps changes
 * that decrease the sum of squares. Steps become smaller and smaller. The formulas contain maxima,
 * limits and cases, so a gradient would not help. The distance from the initial figures adds a
 * small penalty, so that figures on which no time depends do not change. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/median.h"
#include "base/memory.h"
#include "engine/cpu/native/algorithms/algorithm.h"
#include "engine/cpu/native/measure/measure.h"

typedef struct fit {
  const laci_observation *observations;
  size_t n;
  double unit; /* seconds that a unit of cost takes */
} fit;

/** Weight, in the sum to be minimized, of the squared distance of a figure from its initial value;
 * the weight of an observation's squared error is 1. */
static const double distance_weight = 0.1;
/** Penalty for a figure that was 0 initially and is not 0 any more. */
static const double new_figure_penalty = 0.5;

/* ---- The error of estimates ---- */

static double estimated_cost(const laci_observation *o) {
  if (!o->layer) return laci_cost_figures_of(o->net, NULL)->reorder;
  return laci_algorithm_by_id(o->algorithm)->cost(o->net, o->layer);
}

/** Returns ln(estimated time / measured time), or 0 if there is no estimate. */
static double log_of_ratio(const fit *f, const laci_observation *o) {
  const double cost = estimated_cost(o);
  return isfinite(cost) && cost > 0 ? log(cost * f->unit / o->seconds) : 0;
}

static double sum_of_squares(const fit *f) {
  double sum = 0;
  for (size_t at = 0; at < f->n; at++) {
    const double off = log_of_ratio(f, &f->observations[at]);
    sum += off * off;
  }
  return sum;
}

/** Is it the time of a large layer without groups, computed by dense kernels? These define the unit
 * of cost. */
static bool is_large_dense_layer(const laci_observation *o) {
  enum { MANY = 1 << 24 };
  const laci_native_layer *l = o->layer;
  if (!l || o->algorithm != LACI_ALGORITHM_dense || l->kind != LACI_NATIVE_PRODUCT) return false;
  return l->window.groups == 1 && laci_cost_n_results(l) * laci_cost_n_terms(&l->window) >= MANY;
}

static double seconds_of_cost_unit(const laci_observation *observations, size_t n) {
  double *x = laci_alloc(n, sizeof *x), unit;
  size_t n_plain = 0;
  for (size_t at = 0; x && at < n; at++) {
    const laci_observation *o = &observations[at];
    if (!is_large_dense_layer(o)) continue;
    x[n_plain++] =
        o->seconds / (laci_cost_n_results(o->layer) * laci_cost_n_terms(&o->layer->window));
  }
  unit = x ? laci_median(x, n_plain) : 0;
  laci_free(x);
  return unit;
}

/** Begins a fit: makes all nets read the table, and finds the unit of cost. */
static fit begin_fit(const laci_measured *m, const laci_cost_table *table) {
  m->costs->tables[LACI_COSTS_f32] = table;
  return (fit){m->observations, m->n, seconds_of_cost_unit(m->observations, m->n)};
}

/* ---- The search ---- */

/** May the figure be fitted? Only figures with certain units may (figures.def). Others are limits,
 * or depend on memory or on waiting for threads, which times of parts of networks on one thread do
 * not. */
static bool is_fitted_figure(const laci_figure *figure) {
  static const char *const units[] = {"share:", "cost:", "factor:", "units:"};
  if (figure->section != LACI_COSTS_f32) return false;
  for (size_t at = 0; at < sizeof units / sizeof *units; at++) {
    if (strncmp(figure->text, units[at], strlen(units[at])) == 0) return true;
  }
  return false;
}

static double distance_from_first_figures(const laci_cost_table *first,
                                          const laci_cost_table *table) {
  const laci_figure *figure;
  double sum = 0;
  for (int at = 0; (figure = laci_figure_at(at)); at++) {
    const double from = laci_figure_get_value(first, figure),
                 to = laci_figure_get_value(table, figure);
    if (from == to) continue;
    sum +=
        from > 0 && to > 0 ? distance_weight * log(to / from) * log(to / from) : new_figure_penalty;
  }
  return sum;
}

/** Returns the largest value that the figure has in any table: the search begins there if the
 * figure was 0. */
static double largest_figure_in_tables(const laci_figure *figure) {
  double most = 0;
  for (int at = 0; laci_cost_table_at(at); at++) {
    most = fmax(most, laci_figure_get_value(laci_cost_table_at(at), figure));
  }
  return most;
}

/** Sets the figure to the value if that decreases the sum *best, which it then updates. Returns
 * whether it did. */
static bool set_figure_if_better(const fit *f, const laci_cost_table *first, laci_cost_table *table,
                                 const laci_figure *figure, double value, double *best) {
  const double before = laci_figure_get_value(table, figure);
  laci_figure_set_value(table, figure, value);
  const double now = sum_of_squares(f) + distance_from_first_figures(first, table);
  if (now < *best) {
    *best = now;
    return true;
  }
  laci_figure_set_value(table, figure, before);
  return false;
}

static bool improve_figures_by_step(const fit *f, const laci_cost_table *first,
                                    laci_cost_table *table, double step, double *best) {
  const laci_figure *figure;
  bool better = false;
  for (int at = 0; (figure = laci_figure_at(at)); at++) {
    const double value = laci_figure_get_value(table, figure);
    if (!is_fitted_figure(figure)) continue;
    if (value == 0)
      better |=
          set_figure_if_better(f, first, table, figure, largest_figure_in_tables(figure), best);
    else if (set_figure_if_better(f, first, table, figure, value * step, best)) better = true;
    else better |= set_figure_if_better(f, first, table, figure, value / step, best);
  }
  return better;
}

static double round_to_3_digits(double value) {
  char text[32];
  (void)snprintf(text, sizeof text, "%.3g", value);
  return strtod(text, NULL);
}

void laci_costs_fit_figures(const laci_measured *m, laci_cost_table *table) {
  enum { MOST_SWEEPS = 40 };
  static const double steps[] = {1.5, 1.2, 1.08, 1.03, 1.01};
  const laci_cost_table first = *table;
  const laci_figure *figure;
  const fit f = begin_fit(m, table);
  const double picoseconds = 1e12;
  double best = sum_of_squares(&f);
  if (!(f.unit > 0)) return;
  for (size_t at = 0; at < sizeof steps / sizeof *steps; at++) {
    for (int sweep = 0; sweep < MOST_SWEEPS; sweep++) {
      if (!improve_figures_by_step(&f, &first, table, steps[at], &best)) break;
    }
  }
  for (int at = 0; (figure = laci_figure_at(at)); at++) {
    if (is_fitted_figure(figure)) {
      laci_figure_set_value(table, figure, round_to_3_digits(laci_figure_get_value(table, figure)));
    }
  }
  table->figures[LACI_COSTS_f32].unit = round_to_3_digits(f.unit * picoseconds);
}

double laci_costs_median_error(const laci_measured *m, const laci_cost_table *table,
                               laci_algorithm_id algorithm, int *n_times) {
  double *x = laci_alloc(m->n, sizeof *x), error;
  const fit f = begin_fit(m, table);
  size_t n_of = 0;
  for (size_t at = 0; x && f.unit > 0 && at < m->n; at++) {
    const laci_observation *o = &m->observations[at];
    if (!o->layer || o->algorithm != algorithm) continue;
    x[n_of++] = exp(fabs(log_of_ratio(&f, o))) - 1;
  }
  *n_times = (int)n_of;
  error = x ? laci_median(x, n_of) : 0;
  laci_free(x);
  return error;
}
