/* SPDX-License-Identifier: Apache-2.0
 * Makes plans use a cost table as if it were measured on this processor. For a processor without a
 * table, the engine uses the nearest table with a margin, so it would choose other algorithms than
 * tests expect. */
#ifndef LAC_TESTS_OWN_COSTS_H
#define LAC_TESTS_OWN_COSTS_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "engine/cpu/native/costs/costs.h"

static char own_costs_path[] = "/tmp/lacuna-own-XXXXXX";

/** Set-up of a test group: unless this processor has a table or LAC_COSTS is set, writes the
 * nearest table to a file under this processor's name and sets LAC_COSTS to it. */
static inline int own_costs_begin(void **state) {
  const laci_cost_processor here = laci_costs_this_processor();
  laci_costs costs;
  (void)state;
  laci_costs_choose_tables(&here, &costs);
  if (costs.own || getenv("LAC_COSTS")) return 0;
  laci_cost_table table = *costs.tables[LACI_COSTS_f32];
  (void)snprintf(table.of.vendor, sizeof table.of.vendor, "%s", here.vendor);
  (void)snprintf(table.of.instructions, sizeof table.of.instructions, "%s", here.instructions);
  table.of.family = here.family;
  char *text = laci_cost_table_text(&table, "Another processor's figures, for tests.");
  const int file = text ? mkstemp(own_costs_path) : -1;
  const size_t n = text ? strlen(text) : 0;
  const bool written = file >= 0 && write(file, text, n) == (ssize_t)n && close(file) == 0;
  laci_free(text);
  return written && setenv("LAC_COSTS", own_costs_path, 1) == 0 ? 0 : -1;
}

/** Tear-down of a test group: undoes own_costs_begin. */
static inline int own_costs_end(void **state) {
  const char *path = getenv("LAC_COSTS");
  (void)state;
  if (!path || strcmp(path, own_costs_path) != 0) return 0;
  return unlink(path) == 0 && unsetenv("LAC_COSTS") == 0 ? 0 : -1;
}

#endif
