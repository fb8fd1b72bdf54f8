/* SPDX-License-Identifier: Apache-2.0
 * What each search algorithm reaches in a given time, against what is required.
 *
 *     search_bench [--threads N] [--only ROW]... [--quick] [--json FILE] [--list]
 *
 * All algorithms of a row are run alternately, so that a slow moment of the machine affects all of
 * them alike. Read search_cases.h (the rows), network.h (the classes of ResNet-50), contenders.h
 * (the algorithms) first; search.py plots, compares and keeps the results. */
#include <getopt.h>

#include "cpu/cpu.h"
#include "cpu/pool.h"
#include "network.h"
#include "results.h"
#include "search_cases.h"

enum { MOST_SAMPLES_OF_A_CASE = 64, MOST_ONLY = 16 };

#define TO_THE_END 60.0 /* seconds that an algorithm gets to end by itself */

typedef struct settings {
  int threads;
  bool quick;
  const char *only[MOST_ONLY], *json;
  int n_only;
} settings;

static const algorithm exact = {"exact", "exact", run_strategy, false};
static const algorithm assign = {"assign", "assign", run_strategy, true};
static const algorithm stripes = {"stripes", "stripes", run_strategy, false};
static const algorithm swap = {"swap", "swap", run_strategy, false};
static const algorithm restarts = {"swap, restarted", "swap", run_restarts, true};

/* ---- a matrix ---- */

/* The samples of one row of the table. */
typedef struct plan {
  samples all[MOST_SAMPLES_OF_A_CASE];
  int n;
} plan;

static samples *add(plan *p, const algorithm *w, double seconds, int n_runs) {
  samples *s = &p->all[p->n++];
  *s = (samples){.algorithm = w, .budget = {.seconds = seconds}, .n_wanted = n_runs};
  s->budget.effort = LACI_EFFORT_NORMAL;
  return s;
}

static void add_effort(plan *p, const char *name, laci_effort effort, int n_runs) {
  samples *s = add(p, &assign, 0, n_runs);
  s->effort = name;
  s->budget.effort = effort;
}

/* 40 where that is quick, 10 up to a second, else 5. */
static int seeds_for(double seconds, const settings *set) {
  if (set->quick) return seconds <= 0.02 ? 10 : seconds <= 0.2 ? 3 : 1;
  return seconds <= 0.1 ? 40 : seconds <= 1 ? 10 : 5;
}

static void make_plan(plan *p, const search_case *c, const settings *set) {
  const algorithm *const algorithms[] = {&assign, &restarts, &swap, &stripes};
  const double longest = set->quick ? 1.0 : TO_THE_END;
  const int few = set->quick ? 1 : 3;
  p->n = 0;
  add(p, &exact, 0, 5);
  for (size_t w = 0; w < sizeof algorithms / sizeof *algorithms; w++) {
    for (int i = 0; i < CASE_MOST_LIMITS && c->limits[i] > 0; i++) {
      int n = !algorithms[w]->drawn ? 1 : seeds_for(c->limits[i], set);
      if (algorithms[w] != &assign && n > few) n = few;
      if (c->limits[i] <= longest) add(p, algorithms[w], c->limits[i], n);
    }
    bool had_it =
        p->all[p->n - 1].algorithm == algorithms[w] && p->all[p->n - 1].budget.seconds >= longest;
    if (!algorithms[w]->drawn && !had_it) add(p, algorithms[w], longest, 1);
  }
  add_effort(p, "fast", LACI_EFFORT_FAST, few);
  add_effort(p, "normal", LACI_EFFORT_NORMAL, few);
  if (c->columns <= 256 && !set->quick) add_effort(p, "best", LACI_EFFORT_BEST, few);
}

/* An algorithm without randomness that ended by itself will do the same in more time. */
static bool is_needless(const plan *p, const samples *s) {
  for (const samples *before = p->all; before < s; before++) {
    if (before->algorithm == s->algorithm && !s->algorithm->drawn && before->n > 0 &&
        before->budget.seconds > 0 && before->of[0].seconds < 0.8 * before->budget.seconds) {
      return true;
    }
  }
  return false;
}

static void run_plan(plan *p, const matrix *m, laci_pool *pool) {
  for (int round = 0; round < SAMPLES_MOST; round++) {
    for (samples *s = p->all; s < p->all + p->n; s++) {
      if (round >= s->n_wanted || is_needless(p, s)) continue;
      s->budget.seed = (uint64_t)round;
      if (s->algorithm->run(m, s->algorithm->strategy, s->budget, pool, &s->of[s->n])) s->n++;
      else s->n_wanted = 0;
    }
  }
}

/* Mean efficacy of an algorithm that had `seconds`, or that ended by itself in less; -1: it did not
 * run. */
static double mean_of(const plan *p, const algorithm *w, double seconds) {
  double best = -1;
  for (const samples *s = p->all; s < p->all + p->n; s++) {
    if (s->algorithm != w || s->n == 0 || s->effort || s->budget.seconds > seconds) continue;
    double mean = summarise(s).efficacy;
    best = mean > best ? mean : best;
  }
  return best;
}

static const samples *samples_of(const plan *p, const algorithm *w, double seconds) {
  for (const samples *s = p->all; s < p->all + p->n; s++) {
    if (s->algorithm == w && s->n > 0 && !s->effort && s->budget.seconds == seconds) return s;
  }
  return NULL;
}

static void judge_bound(const samples *s, const case_bound *bound, json_t *list) {
  char limit[24];
  (void)time_text(bound->seconds, limit);
  wanted w = {.bound = bound->efficacy, .tolerance = 0.02};
  if (bound->share > 0) {
    int n = 0;
    for (int i = 0; i < s->n; i++) n += s->of[i].efficacy >= bound->efficacy;
    (void)snprintf(w.text, sizeof w.text, "share of seeds that reach %g in %s", bound->efficacy,
                   limit);
    w.bound = bound->share;
    w.measured = (double)n / s->n;
  } else {
    (void)snprintf(w.text, sizeof w.text, "efficacy in %s", limit);
    w.measured = summarise(s).efficacy;
  }
  report_wanted(&w, list);
  wanted kept = {.bound = bound->seconds, .measured = summarise(s).seconds, .tolerance = 0.1};
  kept.at_most = true;
  (void)snprintf(kept.text, sizeof kept.text, "seconds that a limit of %s takes", limit);
  report_wanted(&kept, list);
}

static void judge_rival(const plan *p, const algorithm *rival, double seconds, json_t *list) {
  char limit[24];
  wanted w = {.bound = mean_of(p, rival, seconds), .measured = mean_of(p, &assign, seconds)};
  if (w.bound < 0) return;
  (void)snprintf(w.text, sizeof w.text, "efficacy in %s against %s", time_text(seconds, limit),
                 rival->name);
  report_wanted(&w, list);
}

static void judge(const plan *p, const search_case *c, json_t *list) {
  for (int i = 0; i < CASE_MOST_BOUNDS && c->bounds[i].seconds > 0; i++) {
    const samples *s = samples_of(p, &assign, c->bounds[i].seconds);
    if (s) judge_bound(s, &c->bounds[i], list);
  }
  if (c->bound_ms > 0) {
    const samples *s = samples_of(p, &exact, 0);
    wanted proven = {.text = "proven", .bound = 1, .measured = s && s->of[0].proven};
    wanted took = {.text = "milliseconds of exact", .bound = c->bound_ms, .at_most = true};
    took.measured = s ? 1e3 * summarise(s).seconds : INFINITY;
    report_wanted(&proven, list);
    report_wanted(&took, list);
  }
  if (c->beats) {
    judge_rival(p, &stripes, c->limits[0], list);
    judge_rival(p, &restarts, c->limits[0], list);
  }
}

static void run_case(const search_case *c, const settings *set, laci_pool *pool, json_t *rows) {
  static plan p;
  matrix m;
  matrix_form form = {.weights = c->weights, .pattern = c->pattern, .channels = c->columns};
  form.n_consumers = 1;
  form.consumers[0].outer = c->rows;
  form.consumers[0].inner = 1;
  form.seed = 1;
  (void)snprintf(form.name, sizeof form.name, "%s", c->name);
  printf("%s: %d rows, %d channels, %s weights, %d:%d\n", c->name, c->rows, c->columns,
         matrix_weights_names[c->weights], c->pattern.n, c->pattern.m);
  (void)fflush(stdout);
  matrix_init(&m, &form);
  make_plan(&p, c, set);
  run_plan(&p, &m, pool);
  json_t *algorithms = json_array(), *list = json_array();
  report_heading();
  for (const samples *s = p.all; s < p.all + p.n; s++) {
    if (s->n > 0) report_samples(s, algorithms);
  }
  judge(&p, c, list);
  char pattern[16];
  (void)snprintf(pattern, sizeof pattern, "%d:%d", c->pattern.n, c->pattern.m);
  json_array_append_new(
      rows, json_pack("{s:s, s:i, s:i, s:s, s:s, s:o, s:o}", "row", c->name, "rows", c->rows,
                      "columns", c->columns, "weights", matrix_weights_names[c->weights], "pattern",
                      pattern, "methods", algorithms, "wanted", list));
  matrix_clear(&m);
}

/* ---- the network ---- */

typedef struct network {
  int n;
  matrix classes[NETWORK_MOST_CLASSES];
  laci_problem problems[NETWORK_MOST_CLASSES];
} network;

/* One search of all classes. */
typedef struct network_run {
  const char *name, *strategy;
  laci_effort effort;
  double seconds_limit;
  int threads, n_runs;
  double seconds_least, seconds_most, mean; /* out; mean efficacy */
  laci_search_result found[NETWORK_MOST_CLASSES];
} network_run;

static void network_init(network *net) {
  static matrix_form forms[NETWORK_MOST_CLASSES];
  net->n = network_classes(forms);
  for (int i = 0; i < net->n; i++) {
    matrix_init(&net->classes[i], &forms[i]);
    net->problems[i] = net->classes[i].problem;
  }
}

static void network_clear(network *net) {
  for (int i = 0; i < net->n; i++) matrix_clear(&net->classes[i]);
}

static void run_network_once(const network *net, network_run *run) {
  laci_pool *pool = NULL;
  lac_error err = {0};
  laci_search_options options = {.strategy = run->strategy, .effort = run->effort};
  options.seconds = run->seconds_limit;
  lac_status st = laci_pool_create(run->threads, &pool, &err);
  double start = laci_clock_seconds();
  if (!st) st = laci_search_all(net->problems, net->n, &options, pool, run->found, &err);
  double seconds = laci_clock_seconds() - start;
  laci_pool_destroy(pool);
  if (st) {
    (void)fprintf(stderr, "bench: %s\n", err.text);
    exit(1);
  }
  if (run->seconds_most == 0 || seconds < run->seconds_least) run->seconds_least = seconds;
  if (seconds > run->seconds_most) run->seconds_most = seconds;
  run->mean = 0;
  for (int i = 0; i < net->n; i++) {
    run->mean += efficacy_of(run->found[i].kept, &run->found[i]) / net->n;
  }
}

static bool same_orders(const network *net, const network_run *a, const network_run *b) {
  for (int i = 0; i < net->n; i++) {
    size_t size = (size_t)net->problems[i].n_channels * sizeof(int32_t);
    if (memcmp(a->found[i].order, b->found[i].order, size) != 0) return false;
  }
  return true;
}

/* Classes in which a keeps more than b. */
static int better_classes(const network *net, const network_run *a, const network_run *b) {
  int n = 0;
  for (int i = 0; i < net->n; i++) n += a->found[i].kept > b->found[i].kept;
  return n;
}

static void show_worse_classes(const network *net, const network_run *a, const network_run *b) {
  for (int i = 0; i < net->n; i++) {
    const laci_search_result *x = &a->found[i], *y = &b->found[i];
    if (x->kept > y->kept) continue;
    printf("    %s: %.3f, %s %.3f\n", net->classes[i].form.name, efficacy_of(x->kept, x), b->name,
           efficacy_of(y->kept, y));
  }
}

static json_t *report_network_run(const network *net, const network_run *run) {
  char least[24], most[24];
  printf("  %-26s %7d %10.3f %10s %10s\n", run->name, run->threads, run->mean,
         time_text(run->seconds_least, least), time_text(run->seconds_most, most));
  json_t *classes = json_array();
  for (int i = 0; i < net->n; i++) {
    const matrix_form *form = &net->classes[i].form;
    json_array_append_new(classes,
                          json_pack("{s:s, s:i, s:i, s:f}", "class", form->name, "rows",
                                    (int)matrix_rows(form), "columns", form->channels, "efficacy",
                                    efficacy_of(run->found[i].kept, &run->found[i])));
  }
  return json_pack("{s:s, s:i, s:f, s:f, s:f, s:o}", "method", run->name, "threads", run->threads,
                   "efficacy", run->mean, "seconds_least", run->seconds_least, "seconds_most",
                   run->seconds_most, "classes", classes);
}

enum { FAST, NORMAL, NORMAL_2, LIMIT, LIMIT_2, STRIPES, N_NETWORK_RUNS };

static void judge_network(const network *net, const network_run *runs, json_t *list) {
  wanted one = {.text = "seconds, normal effort, one thread", .bound = 2.0, .at_most = true};
  wanted two = {.text = "seconds, normal effort, two threads", .bound = 1.1, .at_most = true};
  wanted same = {.text = "one thread and two: same orders", .bound = 1};
  one.measured = runs[NORMAL].seconds_least;
  two.measured = runs[NORMAL_2].seconds_least;
  same.measured = same_orders(net, &runs[NORMAL], &runs[NORMAL_2]);
  report_wanted(&one, list);
  report_wanted(&two, list);
  report_wanted(&same, list);
  for (int i = NORMAL; i < STRIPES && runs[STRIPES].n_runs > 0; i++) {
    wanted better = {.bound = net->n, .measured = better_classes(net, &runs[i], &runs[STRIPES])};
    (void)snprintf(better.text, sizeof better.text, "classes better than stripes: %s, %d thread%s",
                   runs[i].name, runs[i].threads, runs[i].threads > 1 ? "s" : "");
    report_wanted(&better, list);
    show_worse_classes(net, &runs[i], &runs[STRIPES]);
  }
}

static void run_network(const settings *set, json_t *rows) {
  static network net;
  static network_run runs[N_NETWORK_RUNS] = {
      [FAST] = {"assign, fast", "assign", LACI_EFFORT_FAST, 0, 1, 3, 0, 0, 0, {{0}}},
      [NORMAL] = {"assign, normal", "assign", LACI_EFFORT_NORMAL, 0, 1, 3, 0, 0, 0, {{0}}},
      [NORMAL_2] = {"assign, normal", "assign", LACI_EFFORT_NORMAL, 0, 2, 3, 0, 0, 0, {{0}}},
      [LIMIT] = {"assign, in 2 s", "assign", LACI_EFFORT_NORMAL, 2.0, 1, 1, 0, 0, 0, {{0}}},
      [LIMIT_2] = {"assign, in 1.1 s", "assign", LACI_EFFORT_NORMAL, 1.1, 2, 1, 0, 0, 0, {{0}}},
      [STRIPES] = {"stripes", "stripes", LACI_EFFORT_NORMAL, 0, 1, 1, 0, 0, 0, {{0}}},
  };
  network_init(&net);
  double weights = 0;
  for (int i = 0; i < net.n; i++) {
    weights += 1e-6 * (double)matrix_rows(&net.classes[i].form) * net.problems[i].n_channels;
  }
  printf("resnet50: %d classes, %.1f million weights, heterogeneous, 2:4\n", net.n, weights);
  (void)fflush(stdout);
  if (set->quick) runs[STRIPES].n_runs = 0;
  for (int i = 0; i < N_NETWORK_RUNS; i++) {
    for (int c = 0; c < net.n; c++) {
      runs[i].found[c].order = need((size_t)net.problems[c].n_channels, sizeof(int32_t));
    }
  }
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < N_NETWORK_RUNS; i++) {
      if (round < runs[i].n_runs && !(set->quick && round > 0)) run_network_once(&net, &runs[i]);
    }
  }
  json_t *algorithms = json_array(), *list = json_array();
  printf("  %-26s %7s %10s %10s %10s\n", "algorithm", "threads", "efficacy", "fastest", "slowest");
  for (int i = 0; i < N_NETWORK_RUNS; i++) {
    if (runs[i].n_runs > 0) json_array_append_new(algorithms, report_network_run(&net, &runs[i]));
  }
  judge_network(&net, runs, list);
  json_array_append_new(rows, json_pack("{s:s, s:i, s:s, s:s, s:o, s:o}", "row", "resnet50",
                                        "classes", net.n, "weights", "heterogeneous", "pattern",
                                        "2:4", "network_methods", algorithms, "wanted", list));
  for (int i = 0; i < N_NETWORK_RUNS; i++) {
    for (int c = 0; c < net.n; c++) free(runs[i].found[c].order);
  }
  network_clear(&net);
}

/* ---- the command line ---- */

enum { N_CASES = sizeof search_cases / sizeof *search_cases };

static bool is_wanted(const settings *set, const char *row) {
  for (int i = 0; i < set->n_only; i++) {
    if (!strcmp(set->only[i], row)) return true;
  }
  return set->n_only == 0;
}

static bool is_row(const char *name) {
  bool known = strcmp(name, "resnet50") == 0;
  for (int i = 0; i < N_CASES; i++) known |= strcmp(name, search_cases[i].name) == 0;
  return known;
}

static void list_rows(void) {
  for (int i = 0; i < N_CASES; i++) puts(search_cases[i].name);
  puts("resnet50");
}

/* 0: go on; 1: done; 2: misuse */
static int read_options(int argc, char **argv, settings *set) {
  static const struct option options[] = {
      {"threads", required_argument, NULL, 't'}, {"only", required_argument, NULL, 'o'},
      {"quick", no_argument, NULL, 'q'},         {"json", required_argument, NULL, 'j'},
      {"list", no_argument, NULL, 'l'},          {NULL, 0, NULL, 0}};
  for (int option; (option = getopt_long(argc, argv, "", options, NULL)) >= 0;) {
    if (option == 'l') return list_rows(), 1;
    if (option == '?') return 2;
    if (option == 'q') set->quick = true;
    if (option == 't') set->threads = atoi(optarg);
    if (option == 'j') set->json = optarg;
    if (option != 'o') continue;
    if (set->n_only == MOST_ONLY || !is_row(optarg)) {
      (void)fprintf(stderr, "search_bench: --only %s: not a row; --list names them\n", optarg);
      return 2;
    }
    set->only[set->n_only++] = optarg;
  }
  return optind < argc ? 2 : 0;
}

static int write_json(json_t *rows, const settings *set) {
  json_t *all = json_pack("{s:s, s:s, s:i, s:b, s:O}", "bench", "search", "cpu",
                          laci_cpu_level_name(laci_cpu_level_in_force()), "threads", set->threads,
                          "quick", (int)set->quick, "rows", rows);
  int failed = json_dump_file(all, set->json, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
  if (failed) (void)fprintf(stderr, "search_bench: %s cannot be written\n", set->json);
  json_decref(all);
  return failed != 0;
}

int main(int argc, char **argv) {
  settings set = {.threads = 1};
  laci_pool *pool = NULL;
  int end = read_options(argc, argv, &set);
  if (end) return end == 1 ? 0 : 2;
  if (laci_pool_create(set.threads, &pool, NULL)) return 1;
  set.threads = laci_pool_threads(pool);
  printf("%s, %d thread%s\n", laci_cpu_level_name(laci_cpu_level_in_force()), set.threads,
         set.threads > 1 ? "s" : "");
  json_t *rows = json_array();
  for (int i = 0; i < N_CASES; i++) {
    const search_case *c = &search_cases[i];
    bool leave_out = set.quick && c->large && set.n_only == 0;
    if (is_wanted(&set, c->name) && !leave_out) run_case(c, &set, pool, rows);
  }
  if (is_wanted(&set, "resnet50")) run_network(&set, rows);
  int failed = set.json ? write_json(rows, &set) : 0;
  json_decref(rows);
  laci_pool_destroy(pool);
  return failed;
}
