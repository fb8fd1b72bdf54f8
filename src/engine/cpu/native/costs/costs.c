/* SPDX-License-Identifier: Apache-2.0
 * Chooses the table of costs for a processor. */
#include "engine/cpu/native/costs/costs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/words.h"
#include "cpu/cpu.h"
#include "cpu/model.h"
#include "jit/isa.h"

/* ---- This processor ---- */

static void append_word_to_list(char *text, size_t size, const char *word) {
  const size_t used = strlen(text);
  (void)snprintf(text + used, size - used, "%s%s", used ? " " : "", word);
}

laci_cost_processor laci_costs_this_processor(void) {
  laci_cost_processor p = {.date = ""};
  const laci_jit_isa isa = laci_jit_isa_in_force();
  laci_cpu_read_vendor(p.vendor, sizeof p.vendor, &p.family);
  append_word_to_list(p.instructions, sizeof p.instructions, laci_jit_isa_name(isa));
  if (laci_jit_isa_for_int8(isa) != LACI_JIT_NONE)
    append_word_to_list(p.instructions, sizeof p.instructions, "vnni");
  if (laci_cpu_has_avx512bf16()) append_word_to_list(p.instructions, sizeof p.instructions, "bf16");
  if (laci_cpu_has_bf16_tiles())
    append_word_to_list(p.instructions, sizeof p.instructions, "tiles");
  return p;
}

/* ---- The distance between processors ---- */

/** Do both processors generate code for the same instruction set? */
static bool has_same_instructions(const laci_cost_processor *a, const laci_cost_processor *b) {
  const char *x = a->instructions, *y = b->instructions;
  const size_t n = laci_next_word(&x);
  return n > 0 && laci_next_word(&y) == n && strncmp(x, y, n) == 0;
}

/** Returns how many words of the list `of` are missing in the list `in`. */
static int count_missing_words(const char *of, const char *in) {
  int n_missing = 0;
  for (size_t n; (n = laci_next_word(&of)) > 0; of += n) n_missing += !laci_has_word(in, of, n);
  return n_missing;
}

static int count_processor_differences(const laci_cost_processor *a, const laci_cost_processor *b) {
  return count_missing_words(a->instructions, b->instructions) +
         count_missing_words(b->instructions, a->instructions);
}

/** Are both processors of one kind? A family may have members of many years (Intel's 6), which
 * differ in their extensions. */
static bool is_same_processor(const laci_cost_processor *a, const laci_cost_processor *b) {
  return strcmp(a->vendor, b->vendor) == 0 && a->family == b->family &&
         has_same_instructions(a, b) && count_processor_differences(a, b) == 0;
}

static int rate_similarity(const laci_cost_processor *a, const laci_cost_processor *b) {
  enum { CODE = 1000, VENDOR = 100, FAMILY = 10 };
  const bool code = has_same_instructions(a, b);
  const bool vendor = code && strcmp(a->vendor, b->vendor) == 0;
  return code * CODE + vendor * VENDOR + (vendor && a->family == b->family) * FAMILY -
         count_processor_differences(a, b);
}

/** Returns the table, among those that have the section, of the processor nearest to this one;
 * among equally near ones, the first. */
static const laci_cost_table *find_nearest_table(const laci_cost_processor *processor,
                                                 laci_cost_section section) {
  const laci_cost_table *best = NULL;
  for (int at = 0; laci_cost_table_at(at); at++) {
    const laci_cost_table *table = laci_cost_table_at(at);
    if (!laci_cost_table_has_section(table, section)) continue;
    if (!best || rate_similarity(processor, &table->of) > rate_similarity(processor, &best->of))
      best = table;
  }
  return best;
}

/* ---- The choice of tables ---- */

void laci_costs_use_table(const laci_cost_table *table, const laci_cost_processor *processor,
                          laci_costs *costs) {
  for (int section = 0; section < LACI_N_COST_SECTIONS; section++) {
    const bool has = laci_cost_table_has_section(table, section);
    costs->tables[section] = has ? table : find_nearest_table(processor, section);
  }
  costs->own = is_same_processor(processor, &table->of);
  costs->margin = costs->own ? 1 : table->margin;
}

void laci_costs_choose_tables(const laci_cost_processor *processor, laci_costs *costs) {
  laci_costs_use_table(find_nearest_table(processor, LACI_COSTS_f32), processor, costs);
}

static const laci_cost_table *find_table_by_name(const char *name) {
  for (int at = 0; laci_cost_table_at(at); at++) {
    if (strcmp(laci_cost_table_at(at)->name, name) == 0) return laci_cost_table_at(at);
  }
  return NULL;
}

lac_status laci_costs_load(laci_costs *costs, lac_error *err) {
  const laci_cost_processor processor = laci_costs_this_processor();
  const char *wanted = getenv("LAC_COSTS");
  if (!wanted || !*wanted) {
    laci_costs_choose_tables(&processor, costs);
    return LAC_OK;
  }
  const laci_cost_table *table = find_table_by_name(wanted);
  if (!table) {
    lac_status st = laci_cost_table_read(wanted, &costs->read, err);
    if (st) return st;
    table = &costs->read;
  }
  laci_costs_use_table(table, &processor, costs);
  return LAC_OK;
}
