/* SPDX-License-Identifier: Apache-2.0
 * What a call of lac_session_run costs above lac_engine_run, of a network that computes next to
 * nothing: by one thread, by several with a shape each, and by several with one shape that have
 * copies of its plan. Wanted: at most 10 us.
 *
 *     session_bench [--threads N] [--rounds N] */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/model/model_in.h"
#include "base/clock.h"
#include "lacuna/engine.h"
#include "lacuna/model.h"
#include "lacuna/session.h"
#include "support/graph_build.h"

enum { CALLS = 2000, MOST_ROUNDS = 1000, MOST_THREADS = 64, WIDTH = 16 };

static const double wanted_us = 10;

typedef struct caller {
  pthread_t thread;
  lac_engine *engine; /* NULL: by the session */
  lac_session *session;
  int rows, rounds;
  double us[MOST_ROUNDS]; /* of a call, a round each */
  lac_error err;
  int failed;
} caller;

static float values[MOST_THREADS * WIDTH];

static int call_engine(caller *c, float *out) {
  return lac_engine_run(c->engine, (const void *[]){values}, (void *[]){out}, &c->err) != LAC_OK;
}

static int call_session(caller *c, float *out) {
  const size_t size_bytes = (size_t)c->rows * WIDTH * sizeof *values;
  const lac_array x = {.name = "x",
                       .dtype = LAC_DTYPE_F32,
                       .rank = 2,
                       .shape = {c->rows, WIDTH},
                       .data = values,
                       .size_bytes = size_bytes};
  lac_array y = {.name = "y", .data = out, .size_bytes = size_bytes};
  return lac_session_run(c->session, &x, 1, &y, 1, &c->err) != LAC_OK;
}

static void *call_often(void *context) {
  caller *c = context;
  float out[MOST_THREADS * WIDTH];
  for (int round = 0; round < c->rounds && !c->failed; round++) {
    const double begin = laci_clock_seconds();
    for (int call = 0; call < CALLS && !c->failed; call++)
      c->failed = c->engine ? call_engine(c, out) : call_session(c, out);
    c->us[round] = 1e6 * (laci_clock_seconds() - begin) / CALLS;
  }
  return NULL;
}

static int compare(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/** Prints the least and the median time of a call of all callers; returns the median. */
static double print_times(const char *what, caller *callers, int n) {
  double *all = malloc((size_t)n * MOST_ROUNDS * sizeof *all);
  size_t count = 0;
  if (!all) return -1;
  for (int at = 0; at < n; at++) {
    memcpy(all + count, callers[at].us, (size_t)callers[at].rounds * sizeof *all);
    count += (size_t)callers[at].rounds;
  }
  qsort(all, count, sizeof *all, compare);
  const double median = all[count / 2];
  printf("%-44s %8.2f %8.2f us\n", what, all[0], median);
  free(all);
  return median;
}

static int run_callers(caller *callers, int n) {
  int failed = 0;
  for (int at = 0; at < n; at++)
    if (pthread_create(&callers[at].thread, NULL, call_often, &callers[at])) return 1;
  for (int at = 0; at < n; at++) {
    pthread_join(callers[at].thread, NULL);
    if (callers[at].failed) fprintf(stderr, "session_bench: %s\n", callers[at].err.text);
    failed += callers[at].failed;
  }
  return failed;
}

/** Times n callers at once; shapes: each has its own. */
static double time_session(const char *what, lac_session *session, int n, bool shapes, int rounds) {
  double median = -1;
  caller *callers = calloc((size_t)n, sizeof *callers);
  for (int at = 0; callers && at < n; at++) {
    callers[at].session = session;
    callers[at].rows = shapes ? at + 1 : 1;
    callers[at].rounds = rounds;
  }
  if (callers && !run_callers(callers, n)) median = print_times(what, callers, n);
  free(callers);
  return median;
}

static double time_engine(const lac_model *model, int rounds) {
  lac_engine_options o = lac_engine_options_default();
  const lac_engine_shape shape = {"x", 2, {1, WIDTH}};
  static caller c;
  o.run.threads = 1;
  o.shapes = &shape;
  o.n_shapes = 1;
  c.rounds = rounds;
  if (lac_engine_create(model, &o, &c.engine, &c.err)) {
    fprintf(stderr, "session_bench: %s\n", c.err.text);
    return -1;
  }
  const double median = run_callers(&c, 1) ? -1 : print_times("lac_engine_run", &c, 1);
  lac_engine_destroy(c.engine);
  return median;
}

static int measure(const lac_model *model, int threads, int rounds) {
  lac_session_options o = lac_session_options_default();
  lac_session *session = NULL;
  lac_error err = {0};
  o.run.threads = 1;
  o.n_plans = o.n_copies = threads;
  if (lac_session_create(model, &o, &session, &err)) {
    fprintf(stderr, "session_bench: %s\n", err.text);
    return 1;
  }
  char several[64], copies[64];
  (void)snprintf(several, sizeof several, "lac_session_run, %d threads, a shape each", threads);
  (void)snprintf(copies, sizeof copies, "lac_session_run, %d threads, one shape", threads);
  printf("%-44s %8s %8s\n", "time of a call", "least", "median");
  const double engine = time_engine(model, rounds);
  const double one = time_session("lac_session_run", session, 1, false, rounds);
  const double each = time_session(several, session, threads, true, rounds);
  const double same = time_session(copies, session, threads, false, rounds);
  lac_session_destroy(session);
  if (engine < 0 || one < 0 || each < 0 || same < 0) return 1;
  printf("overhead of a call: %.2f us, wanted %g: %s\n", one - engine, wanted_us,
         one - engine <= wanted_us ? "yes" : "no");
  return one - engine <= wanted_us ? 0 : 1;
}

int main(int argc, char **argv) {
  int threads = 8, rounds = 50, failed = 1;
  lac_model *model = NULL;
  lac_error err = {0};
  for (int at = 1; at + 1 < argc; at += 2) {
    if (strcmp(argv[at], "--threads") == 0) threads = atoi(argv[at + 1]);
    if (strcmp(argv[at], "--rounds") == 0) rounds = atoi(argv[at + 1]);
  }
  if (argc % 2 == 0 || threads < 1 || threads > MOST_THREADS || rounds < 1 ||
      rounds > MOST_ROUNDS) {
    fprintf(stderr, "usage: session_bench [--threads 1..%d] [--rounds 1..%d]\n", MOST_THREADS,
            MOST_ROUNDS);
    return 2;
  }
  for (int at = 0; at < MOST_THREADS * WIDTH; at++) values[at] = (float)(at % 7) - 3;
  lac_status st = laci_model_create_empty("(bench)", &model, &err);
  if (!st) st = net_read("input x 1x16\ny = Relu(x)\noutput y", &model->graph, &err);
  if (!st) { /* any number of rows */
    laci_graph *graph = model->graph;
    graph->values[graph->inputs[0]].type.shape.dims[0] = laci_graph_add_symbol(graph);
  }
  if (!st) failed = measure(model, threads, rounds);
  else fprintf(stderr, "session_bench: %s\n", err.text);
  lac_model_destroy(model);
  return failed;
}
