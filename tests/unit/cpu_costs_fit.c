/* SPDX-License-Identifier: Apache-2.0
 * Measuring costs (engine/cpu/native/measure): figures are found again that made-up times were
 * computed with, and what is written is a table of this processor. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/rng.h"
#include "cpu/cpu.h"
#include "engine/cpu/native/algorithms/algorithm.h"
#include "engine/cpu/native/measure/measure.h"
#include "engine/cpu/trial.h"
#include "graph/graph.h"
#include "jit/isa.h"

enum { MOST_NETS = 32 };

/** Networks of the list, once, and all layers of them, which take what a made-up table says. */
static struct {
  laci_graph *graphs[MOST_NETS];
  laci_trial trials[MOST_NETS];
  int n;
  laci_costs costs;
  const laci_cost_table *first; /* of this processor */
  laci_measured measured;
} all = {.measured = {.costs = &all.costs}};

static void add_network(int network, int64_t batch) {
  const laci_engine_options options = {.threads = 1};
  const laci_native_use listed = {LACI_NATIVE_USE_LISTED, 0};
  laci_trial *t = &all.trials[all.n];
  lac_error err = {0};
  if (laci_measured_build_network(network, batch, &all.graphs[all.n], &err))
    fail_msg("%s", err.text);
  if (laci_trial_begin(all.graphs[all.n++], &options, listed, t, &err)) fail_msg("%s", err.text);
  assert_int_equal(laci_measured_add_net(&all.measured, t->net, false, &err), LAC_OK);
}

/* By AVX2 at most, so that every x86 processor has the same layers. */
static int begin(void **state) {
  (void)state;
  (void)laci_cpu_limit_level(LACI_CPU_AVX2);
  const laci_cost_processor here = laci_costs_this_processor();
  laci_costs_choose_tables(&here, &all.costs);
  all.first = all.costs.tables[LACI_COSTS_f32];
  if (laci_jit_isa_allowed() == LACI_JIT_NONE) return 0;
  for (int at = 0; at < laci_measured_n_networks(); at++) {
    add_network(at, at % 2 ? 1 : LACI_SPARSE_LANES);
  }
  return 0;
}

static int end(void **state) {
  (void)state;
  for (int at = 0; at < all.n; at++) {
    laci_trial_end(&all.trials[at]);
    laci_graph_destroy(all.graphs[at]);
  }
  laci_free(all.measured.observations);
  return 0;
}

/** Times by a table whose figures of these units are up to 1.6 times as large or small. */
static void take_times(const char *unit) {
  static laci_cost_table truth;
  const laci_figure *figure;
  truth = *all.first;
  for (int at = 0; (figure = laci_figure_at(at)); at++) {
    const double factor = pow(1.6, 2 * laci_rng_unit_interval(7, 0, (uint64_t)at) - 1);
    if (figure->section != LACI_COSTS_f32 || strncmp(figure->text, unit, strlen(unit)) != 0)
      continue;
    laci_figure_set_value(&truth, figure, factor * laci_figure_get_value(all.first, figure));
  }
  all.costs.tables[LACI_COSTS_f32] = &truth;
  for (size_t at = 0; at < all.measured.n; at++) {
    laci_observation *o = &all.measured.observations[at];
    o->seconds = 1e-9 * laci_algorithm_by_id(o->algorithm)->cost(o->net, o->layer);
  }
  laci_measured_drop_untimed(&all.measured);
}

static void figures_are_found_that_times_were_made_of(void **state) {
  static const char *const units[] = {"share:", "cost:", "factor:"};
  (void)state;
  if (all.n == 0) skip();
  for (size_t at = 0; at < sizeof units / sizeof *units; at++) {
    laci_cost_table table = *all.first;
    int n = 0, n_all = 0;
    take_times(units[at]);
    laci_costs_fit_figures(&all.measured, &table);
    for (int id = 0; id < LACI_N_ALGORITHMS; id++) {
      const double off = laci_costs_median_error(&all.measured, &table, id, &n);
      if (off > 0.04)
        fail_msg("%s %s is off by %g", units[at], laci_algorithm_by_id(id)->name, off);
      n_all += n;
    }
    assert_true(n_all > 100);
  }
}

/* No time says anything of limits, and none of what a whole network has to gain. */
static void what_no_time_depends_on_stays(void **state) {
  (void)state;
  if (all.n == 0) skip();
  laci_cost_table table = *all.first;
  take_times("share:");
  laci_costs_fit_figures(&all.measured, &table);
  const laci_cost_figures *a = &all.first->figures[LACI_COSTS_f32],
                          *b = &table.figures[LACI_COSTS_f32];
  assert_true(a->least_gain == b->least_gain && a->step == b->step &&
              a->most_kept == b->most_kept && a->vector_weights == b->vector_weights &&
              a->tiles_held == b->tiles_held);
  assert_memory_equal(&all.first->figures[LACI_COSTS_int8], &table.figures[LACI_COSTS_int8],
                      sizeof *a);
}

static void what_is_written_is_this_processors_table(void **state) {
  char path[] = "/tmp/lacuna-costs-XXXXXX", *text = NULL;
  laci_costs costs;
  lac_error err = {0};
  (void)state;
  if (all.n == 0) skip();
  take_times("share:");
  all.costs.tables[LACI_COSTS_f32] = all.first;
  assert_int_equal(laci_measured_write_table(&all.measured, 1, &text, &err), LAC_OK);
  const int file = mkstemp(path);
  assert_true(file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text));
  assert_int_equal(close(file), 0);
  assert_int_equal(setenv("LAC_COSTS", path, 1), 0);
  if (laci_costs_load(&costs, &err)) fail_msg("%s", err.text);
  assert_true(costs.own && costs.margin == 1);
  assert_ptr_equal(costs.tables[LACI_COSTS_f32], &costs.read);
  assert_int_equal(strlen(costs.read.of.date), strlen("2026-11-28"));
  assert_int_equal(unsetenv("LAC_COSTS"), 0);
  assert_int_equal(unlink(path), 0);
  laci_free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(figures_are_found_that_times_were_made_of),
      cmocka_unit_test(what_no_time_depends_on_stays),
      cmocka_unit_test(what_is_written_is_this_processors_table),
  };
  return cmocka_run_group_tests(tests, begin, end);
}
