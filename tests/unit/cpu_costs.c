/* SPDX-License-Identifier: Apache-2.0
 * Tables of costs (engine/cpu/native/costs): what is in them, which one serves whom, and tables of
 * files. */
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

#include "cpu/cpu.h"
#include "engine/cpu/native/costs/costs.h"
#include "jit/isa.h"
#include "support/engine_plan.h"

enum { TEXT = 1 << 16 };

static char path[] = "/tmp/lacuna-costs-XXXXXX";

/* By AVX2 at most, so that every x86 processor plans the same. */
static int make_file(void **state) {
  const int file = mkstemp(path);
  (void)state;
  (void)laci_cpu_limit_level(LACI_CPU_AVX2);
  return file < 0 ? -1 : close(file);
}

static int remove_file(void **state) {
  (void)state;
  (void)unsetenv("LAC_COSTS");
  return unlink(path);
}

static void write_file(const char *text) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_true(fputs(text, file) >= 0);
  assert_int_equal(fclose(file), 0);
}

static void write_table(const laci_cost_table *table) {
  char *text = laci_cost_table_text(table, "A test's.\nIn two lines.");
  assert_non_null(text);
  write_file(text);
  laci_free(text);
}

static void assert_same_figures(const laci_cost_table *a, const laci_cost_table *b) {
  const laci_figure *figure;
  for (int at = 0; (figure = laci_figure_at(at)); at++) {
    if (laci_figure_get_value(a, figure) == laci_figure_get_value(b, figure)) continue;
    fail_msg("%s: %s.%s is %.17g and %.17g", a->name, figure->section_name, figure->name,
             laci_figure_get_value(a, figure), laci_figure_get_value(b, figure));
  }
}

/* ---- The list ---- */

static void every_figure_is_a_number_of_its_kind(void **state) {
  const laci_cost_table *table;
  (void)state;
  for (int at = 0; (table = laci_cost_table_at(at)); at++) {
    const laci_figure *figure;
    assert_true(laci_cost_table_has_section(table, LACI_COSTS_f32) && table->margin >= 1);
    assert_int_equal(strlen(table->of.date), strlen("2026-11-28"));
    for (int f = 0; (figure = laci_figure_at(f)); f++) {
      const double value = laci_figure_get_value(table, figure);
      const bool has = laci_cost_table_has_section(table, figure->section);
      const bool fits = !has                                ? value == 0
                        : figure->kind == LACI_FIGURE_SHARE ? value > 0
                                                            : value >= 0;
      if (!fits || !isfinite(value)) fail_msg("%s: %s is %g", table->name, figure->name, value);
    }
  }
  assert_true(laci_cost_table_at(0) != NULL);
}

/* The reader requires all figures of a section, once each. */
static void the_reader_reads_what_the_compiler_did(void **state) {
  const laci_cost_table *table;
  (void)state;
  for (int at = 0; (table = laci_cost_table_at(at)); at++) {
    char source[512];
    laci_cost_table read;
    lac_error err = {0};
    (void)snprintf(source, sizeof source, "%s/src/engine/cpu/native/costs/%s.def", LAC_SOURCE_DIR,
                   table->name);
    if (laci_cost_table_read(source, &read, &err)) fail_msg("%s", err.text);
    assert_same_figures(table, &read);
    assert_memory_equal(&table->of, &read.of, sizeof read.of);
  }
}

/* ---- The choice ---- */

static laci_costs chosen(const char *vendor, int family, const char *instructions) {
  laci_cost_processor of = {.family = family};
  laci_costs costs;
  (void)snprintf(of.vendor, sizeof of.vendor, "%s", vendor);
  (void)snprintf(of.instructions, sizeof of.instructions, "%s", instructions);
  laci_costs_choose_tables(&of, &costs);
  return costs;
}

static void a_processor_has_its_own_table_or_the_nearest(void **state) {
  static const struct {
    const char *vendor, *instructions, *table;
    int family;
    bool own;
  } cases[] = {
      {"AuthenticAMD", "avx2", "zen3", 25, true},
      {"AuthenticAMD", "avx512 vnni bf16", "zen4", 25, true},
      {"AuthenticAMD", "avx512 vnni bf16", "zen4", 26, false},
      {"AuthenticAMD", "avx2", "zen3", 23, false},
      {"GenuineIntel", "avx2", "zen3", 6, false},
      {"GenuineIntel", "avx512", "intel", 6, false},
      {"GenuineIntel", "avx512 vnni", "intel", 6, false},
      {"GenuineIntel", "avx512 vnni bf16 tiles", "intel", 6, true},
      {"", "neon", "neon", 0, true},
      {"GenuineIntel", "none", "zen3", 6, false},
  };
  (void)state;
  for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
    const laci_costs costs = chosen(cases[at].vendor, cases[at].family, cases[at].instructions);
    assert_string_equal(costs.tables[LACI_COSTS_f32]->name, cases[at].table);
    assert_int_equal(costs.own, cases[at].own);
    assert_true(cases[at].own ? costs.margin == 1 : costs.margin == LACI_COST_MARGIN);
  }
}

/* Zen 3 has no instructions for bf16; who asks all the same gets another's figures. */
static void a_section_that_a_table_lacks_is_anothers(void **state) {
  const laci_costs costs = chosen("AuthenticAMD", 25, "avx2");
  (void)state;
  for (int section = 0; section < LACI_N_COST_SECTIONS; section++) {
    assert_true(laci_cost_table_has_section(costs.tables[section], section));
  }
  assert_string_equal(costs.tables[LACI_COSTS_int8]->name, "zen3");
  assert_string_equal(costs.tables[LACI_COSTS_bf16]->name, "zen4");
}

/* ---- Files ---- */

static void a_written_file_is_the_same_table(void **state) {
  laci_cost_table table = *laci_cost_table_at(0), read;
  const laci_figure *figure;
  lac_error err = {0};
  (void)state;
  for (int at = 0; (figure = laci_figure_at(at)); at++) {
    laci_figure_set_value(&table, figure, (at + 1) * 0.1 * pow(10, at % 9 - 2));
  }
  write_table(&table);
  if (laci_cost_table_read(path, &read, &err)) fail_msg("%s", err.text);
  assert_same_figures(&table, &read);
  assert_memory_equal(&table.of, &read.of, sizeof read.of);
}

/** The file with `from` replaced by `to`, once. */
static void write_damaged(const char *from, const char *to) {
  char *text = laci_cost_table_text(laci_cost_table_at(0), "A test's."), damaged[TEXT];
  assert_non_null(text);
  const char *at = strstr(text, from);
  assert_non_null(at);
  (void)snprintf(damaged, sizeof damaged, "%.*s%s%s", (int)(at - text), text, to,
                 at + strlen(from));
  write_file(damaged);
  laci_free(text);
}

static void a_damaged_file_is_refused_with_its_line(void **state) {
  static const struct {
    const char *from, *to, *line, *said;
  } cases[] = {
      {"f32, reorder,", "f32, reordr,", ":11:", "with a figure's section and name"},
      {"f32, reorder,", "f64, reorder,", ":11:", "with a figure's section and name"},
      {"f32, reorder, 50", "f32, reorder, -50", ":11:", "a number of 0 or more"},
      {"f32, reorder, 50", "f32, reorder, inf", ":11:", "a number of 0 or more"},
      {"f32, reorder, 50", "f32, reorder, 1e999", ":11:", "a number of 0 or more"},
      {"f32, reorder, 50", "f32, reorder, 50x", ":11:", "a number of 0 or more"},
      {"f32, reorder, 50", "f32, reorder, \"50", ":11:", "a comment"},
      {"generated_share, 0.8", "generated_share, 0", ":8:", "above 0"},
      {"LAC_COST(f32, reorder, 50", "LAC_COST(f32, step, 50", ":11:", "each figure once"},
      {"LAC_COST(f32, reorder", "LAC_COSTS(f32, reorder", ":11:", "LAC_COST(...)"},
      {"LAC_COST(f32, reorder, 50,", "/* LAC_COST(f32, reorder, 50,", ":", "comment does not end"},
      {"LAC_COST(f32, reorder", "\n/* no reorder */ // LAC_COST(f32, reorder", ":12:", "a comment"},
      {"LAC_PROCESSOR", "LAC_COST", ":3:", "with a figure's section and name"},
      {"25,", "twenty,", ":3:", "LAC_PROCESSOR(vendor, family"},
      {"int8, light, 15", "f32, light, 15", ":", "each figure once"},
  };
  (void)state;
  for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
    laci_cost_table table;
    lac_error err = {0};
    write_damaged(cases[at].from, cases[at].to);
    assert_int_equal(laci_cost_table_read(path, &table, &err), LAC_BAD_FILE);
    if (strstr(err.text, path) && strstr(err.text, cases[at].line) &&
        strstr(err.text, cases[at].said) && strstr(err.text, "wanted"))
      continue;
    fail_msg("%s: %s", cases[at].to, err.text);
  }
}

static void a_file_that_ends_early_is_refused(void **state) {
  laci_cost_table table;
  lac_error err = {0};
  char *text = laci_cost_table_text(laci_cost_table_at(0), "A test's.");
  (void)state;
  assert_non_null(text);
  for (char *end; (end = strrchr(text, '\n'));) {
    *end = 0; /* line by line from the end */
    if (!strstr(text, "LAC_PROCESSOR")) break;
    if (strstr(text, "LAC_COST(int8") == NULL && strstr(text, "vector_weights")) continue;
    if (strstr(text, "LAC_COST(bf16") == NULL && strstr(text, "int8, light")) continue;
    if (strstr(text, "bf16, depthwise_images")) continue;
    write_file(text);
    assert_int_equal(laci_cost_table_read(path, &table, &err), LAC_BAD_FILE);
    assert_non_null(strstr(err.text, "it ends without LAC_"));
  }
  laci_free(text);
  assert_int_equal(laci_cost_table_read("/tmp/there-is-none", &table, &err), LAC_NOT_FOUND);
}

static void a_plan_fails_with_the_file_that_it_was_to_read(void **state) {
  laci_engine *engine;
  laci_graph *graph;
  lac_error err = {0};
  (void)state;
  write_file("LAC_COST(f32, step, 1)\n");
  assert_int_equal(setenv("LAC_COSTS", path, 1), 0);
  assert_int_equal(net_read("input x 1x4x4x4\ny = Relu(x)\noutput y\n", &graph, &err), LAC_OK);
  assert_int_equal(laci_engine_create(graph, &(laci_engine_options){0}, &engine, &err),
                   LAC_BAD_FILE);
  assert_non_null(strstr(err.text, ":1: LAC_COST(f32, step, 1): wanted"));
  laci_graph_destroy(graph);
  assert_int_equal(unsetenv("LAC_COSTS"), 0);
}

/* ---- The margin ---- */

/** Generated code takes so much of the dense kernels' time, and nothing else gains. */
static laci_cost_table made_up(double share_of_dense) {
  static const struct {
    const char *name;
    double value;
  } figures[] = {{"least_gain", 0},    {"step", 0},   {"reorder", 0},    {"stream", 0},
                 {"first", 0},         {"result", 0}, {"csr", 0.01},     {"winograd", 0},
                 {"csr_window", 0.01}, {"small", 1},  {"grouped", 0.01}, {"grouped_window", 0.01}};
  const laci_figure *figure;
  laci_cost_table table = *laci_cost_table_at(0);
  table.of = laci_costs_this_processor();
  for (int at = 0; (figure = laci_figure_at(at)); at++) {
    const bool code = strncmp(figure->name, "generated", strlen("generated")) == 0;
    if (figure->section != LACI_COSTS_f32) continue;
    if (code) laci_figure_set_value(&table, figure, 0.5 / share_of_dense);
    for (size_t f = 0; f < sizeof figures / sizeof *figures; f++) {
      if (strcmp(figure->name, figures[f].name) == 0)
        laci_figure_set_value(&table, figure, figures[f].value);
    }
  }
  return table;
}

static int sparse_layers_by(const laci_cost_table *table) {
  static const char text[] =
      "input x 1x64x32x32\nstored v 64x64x1x1 pruned\na = Conv(x, v)\nb = Conv(a, v)\n"
      "y = Conv(b, v)\noutput y\n";
  write_table(table);
  assert_int_equal(setenv("LAC_COSTS", path, 1), 0);
  planned p = plan_text(text, (laci_engine_options){.threads = 1});
  const int n = planned_steps(p.engine, "sparse-1x1");
  planned_clear(&p);
  assert_int_equal(unsetenv("LAC_COSTS"), 0);
  return n;
}

/* Of another processor's table, an algorithm must be faster by the margin. */
static void another_processors_table_must_promise_more(void **state) {
  (void)state;
  if (laci_jit_isa_allowed() == LACI_JIT_NONE) skip();
  for (int own = 1; own >= 0; own--) {
    laci_cost_table little = made_up(0.9), much = made_up(0.7), none = made_up(1.1);
    if (!own) little.of.family = much.of.family = none.of.family = 1 + little.of.family;
    assert_int_equal(sparse_layers_by(&little), own ? 3 : 0);
    assert_int_equal(sparse_layers_by(&much), 3);
    assert_int_equal(sparse_layers_by(&none), 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_figure_is_a_number_of_its_kind),
      cmocka_unit_test(the_reader_reads_what_the_compiler_did),
      cmocka_unit_test(a_processor_has_its_own_table_or_the_nearest),
      cmocka_unit_test(a_section_that_a_table_lacks_is_anothers),
      cmocka_unit_test(a_written_file_is_the_same_table),
      cmocka_unit_test(a_damaged_file_is_refused_with_its_line),
      cmocka_unit_test(a_file_that_ends_early_is_refused),
      cmocka_unit_test(a_plan_fails_with_the_file_that_it_was_to_read),
      cmocka_unit_test(another_processors_table_must_promise_more),
  };
  return cmocka_run_group_tests(tests, make_file, remove_file);
}
