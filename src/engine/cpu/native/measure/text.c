/* SPDX-License-Identifier: Apache-2.0
 * Writes a measured table as text: its processor, and how well its figures fit the times. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/log.h"
#include "cpu/model.h"
#include "engine/cpu/native/algorithms/algorithm.h"
#include "engine/cpu/native/measure/measure.h"

enum { HEAD = 4096 };

/** Copies text for use in a C string and a comment: characters that would need an escape become
 * spaces. */
static void copy_without_escapes(const char *from, char *to, size_t size) {
  size_t n = 0;
  for (; from[n] && n + 1 < size; n++) {
    const bool plain = from[n] >= ' ' && from[n] <= '~' && !strchr("\"\\*/", from[n]);
    to[n] = from[n];
    if (!plain) to[n] = ' ';
  }
  to[n] = 0;
}

static void describe_processor(laci_cost_processor *of) {
  char model[LACI_CPU_MODEL];
  const time_t now = time(NULL);
  struct tm day = {0};
  *of = laci_costs_this_processor();
  laci_cpu_read_model(model);
  copy_without_escapes(model, of->machine, sizeof of->machine);
  (void)gmtime_r(&now, &day);
  (void)strftime(of->date, sizeof of->date, "%Y-%m-%d", &day);
}

/** Writes "dense 5 % (8 %)": the median error of estimates by the new table, and in brackets by the
 * table from which the fit began. */
static void write_median_errors(const laci_measured *m, const laci_cost_table *before,
                                const laci_cost_table *table, char *text, size_t size) {
  enum { PERCENT = 100 };
  size_t used = strlen(text);
  const char *between = "";
  for (int id = 0; id < LACI_N_ALGORITHMS; id++) {
    int n;
    const double old = laci_costs_median_error(m, before, id, &n);
    const double now = laci_costs_median_error(m, table, id, &n);
    if (n == 0 || used >= size) continue;
    used += (size_t)snprintf(text + used, size - used, "%s%s %.0f %% (%.0f %%) of %d", between,
                             laci_algorithm_by_id(id)->name, PERCENT * now, PERCENT * old, n);
    between = ",\n";
  }
}

lac_status laci_measured_write_table(const laci_measured *m, int n_runs, char **text,
                                     lac_error *err) {
  const laci_cost_table *before = m->costs->tables[LACI_COSTS_f32];
  laci_cost_table table = {.name = "measured"};
  char head[HEAD];
  table.figures[LACI_COSTS_f32] = before->figures[LACI_COSTS_f32];
  describe_processor(&table.of);
  laci_costs_fit_figures(m, &table);
  (void)snprintf(head, sizeof head,
                 "What layers of f32 cost on one thread of %s with %s, measured on %s:\n"
                 "%zu times of layers by algorithms, the least of %d runs of networks.\n"
                 "How far estimates are from times in the middle (by %s, where this began):\n",
                 table.of.machine, table.of.instructions, table.of.date, m->n, n_runs,
                 before->name);
  write_median_errors(m, before, &table, head, sizeof head);
  laci_log(LAC_LOG_INFO, "%s", head);
  *text = laci_cost_table_text(&table, head);
  return *text ? LAC_OK : laci_fail_memory(err, "a table of costs");
}
