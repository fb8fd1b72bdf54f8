/* SPDX-License-Identifier: Apache-2.0
 * Lacuna's side of bench/train.py: builds a network, plans its training, then takes steps when it
 * is told to.
 *
 *     train_worker ARCH BATCH f32|bf16 THREADS [remat]
 *
 * Orders come as lines on stdin, each is answered by one line of JSON on stdout, as engine_worker.c
 * does it: `run S` takes steps for S seconds, `memory` tells the peak, `profile N` shares the time
 * of N steps out among what the plan does, `steps N` among its steps; `plan` has no answer, and
 * writes the plan to stderr. A step is a batch, forward and backward, and the update. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "arch/arch.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/rng.h"
#include "engine/engine.h"
#include "graph/graph.h"
#include "orders.h"
#include "train/trainer.h"

enum { MOST_STEPS = 1 << 14, MOST_KINDS = 256 };

typedef struct worker {
  laci_graph *model;
  laci_trainer *trainer;
  float *images, *labels;
} worker;

typedef struct kind { /* of steps: the same operator by the same kernel */
  char name[160];
  double seconds;
  int n;
} kind;

static double cpu_seconds(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/** Images of noise, and every image its own class. */
static lac_status make_batch(worker *w) {
  const laci_training_graph *g = laci_trainer_graph(w->trainer);
  int64_t pixels = laci_shape_count(&g->graph->values[g->images].type.shape);
  w->images = laci_alloc((size_t)pixels, sizeof *w->images);
  w->labels = laci_alloc((size_t)(g->batch * g->n_classes), sizeof *w->labels);
  if (!w->images || !w->labels) return LAC_NO_MEMORY;
  for (int64_t at = 0; at < pixels; at++) {
    w->images[at] = (float)(2 * laci_rng_unit_interval(1, 0, (uint64_t)at) - 1);
  }
  for (int64_t n = 0; n < g->batch; n++) w->labels[n * g->n_classes + n % g->n_classes] = 1;
  return LAC_OK;
}

static lac_status take_step(worker *w, float *loss, lac_error *err) {
  lac_status st = laci_trainer_run_batch(w->trainer, w->images, w->labels, loss, NULL, err);
  return st ? st : laci_trainer_update(w->trainer, 1e-3, err);
}

static lac_status start(worker *w, char **argv, bool remat, lac_error *err) {
  double begin = laci_clock_seconds();
  float loss = 0;
  lac_status st = laci_arch_build(&(laci_arch_options){.name = argv[1]}, &w->model, err);
  laci_trainer_options options = {
      .graph = {.batch = strtol(argv[2], NULL, 10)},
      .remat = remat,
      .optimizer = laci_optimizer_options_default(LACI_OPTIMIZER_SGD),
      .run.threads = (int)strtol(argv[4], NULL, 10),
      .run.bf16 = strcmp(argv[3], "bf16") == 0,
  };
  options.optimizer.decay = 1e-4f;
  if (!st) st = laci_trainer_create(w->model, &options, &w->trainer, err);
  if (!st) st = make_batch(w);
  double planned = laci_clock_seconds();
  if (!st) st = take_step(w, &loss, err);
  if (st) return st;
  (void)printf(
      "{\"version\": \"lacuna\", \"plan_s\": %.4f, \"first_s\": %.4f, \"planned_mb\": %.1f, "
      "\"loss\": %.5f}\n",
      planned - begin, laci_clock_seconds() - planned,
      (double)laci_trainer_count_memory_bytes(w->trainer) / 1048576, (double)loss);
  return LAC_OK;
}

/** {"ms": [each step], "cpu_ms": [each step, of all threads]}. Nothing is printed before the end.
 */
static lac_status run_for(worker *w, double seconds, lac_error *err) {
  static double wall[MOST_STEPS], cpu[MOST_STEPS];
  double begin = laci_clock_seconds(), now = begin;
  lac_status st = LAC_OK;
  int n = 0;
  while (!st && n < MOST_STEPS && (n == 0 || now - begin < seconds)) {
    float loss;
    double from = now, cpu_from = cpu_seconds();
    st = take_step(w, &loss, err);
    now = laci_clock_seconds();
    cpu[n] = cpu_seconds() - cpu_from;
    wall[n++] = now - from;
  }
  if (st) return st;
  (void)printf("{\"ms\": [");
  for (int at = 0; at < n; at++) (void)printf("%s%.3f", at ? ", " : "", 1e3 * wall[at]);
  (void)printf("], \"cpu_ms\": [");
  for (int at = 0; at < n; at++) (void)printf("%s%.3f", at ? ", " : "", 1e3 * cpu[at]);
  (void)printf("]}\n");
  return st;
}

/* ---- Where the time goes ---- */

static int kind_of(kind *kinds, int *n_kinds, const char *name) {
  for (int at = 0; at < *n_kinds; at++) {
    if (strcmp(kinds[at].name, name) == 0) return at;
  }
  if (*n_kinds == MOST_KINDS) return MOST_KINDS - 1;
  (void)snprintf(kinds[*n_kinds].name, sizeof kinds->name, "%s", name);
  return (*n_kinds)++;
}

static int by_seconds(const void *a, const void *b) {
  const kind *x = a, *y = b;
  return (x->seconds < y->seconds) - (x->seconds > y->seconds);
}

/** Least seconds of every step of the plan in `n` runs: least [steps]; and of the update. */
static lac_status measure_steps(worker *w, int n, double *least, double *update, lac_error *err) {
  size_t n_steps = laci_engine_step_count(laci_trainer_engine(w->trainer));
  double *now = laci_alloc(n_steps, sizeof *now);
  lac_status st = now ? LAC_OK : LAC_NO_MEMORY;
  *update = INFINITY;
  for (int run = 0; run < n && !st; run++) {
    float loss;
    laci_trainer_record_step_times(w->trainer, now);
    st = laci_trainer_run_batch(w->trainer, w->images, w->labels, &loss, NULL, err);
    laci_trainer_record_step_times(w->trainer, NULL);
    double from = laci_clock_seconds();
    if (!st) st = laci_trainer_update(w->trainer, 1e-3, err);
    *update = fmin(*update, laci_clock_seconds() - from);
    for (size_t at = 0; at < n_steps; at++) {
      if (run == 0 || now[at] < least[at]) least[at] = now[at];
    }
  }
  laci_free(now);
  return st;
}

/** {"kinds": [{"name", "steps", "ms"}]}, the most expensive first; the update is a kind, too. */
static void print_kinds(const laci_engine *engine, const double *least, double update) {
  static kind kinds[MOST_KINDS];
  int n_kinds = 0;
  memset(kinds, 0, sizeof kinds);
  for (size_t at = 0; at < laci_engine_step_count(engine); at++) {
    char name[160];
    laci_engine_step info = laci_engine_step_info(engine, at);
    (void)snprintf(name, sizeof name, "%s, %s", info.what, info.kernel);
    kind *k = &kinds[kind_of(kinds, &n_kinds, name)];
    k->seconds += least[at];
    k->n++;
  }
  kinds[kind_of(kinds, &n_kinds, "update")] = (kind){"update", update, 1};
  qsort(kinds, (size_t)n_kinds, sizeof *kinds, by_seconds);
  (void)printf("{\"kinds\": [");
  for (int at = 0; at < n_kinds; at++) {
    (void)printf("%s{\"name\": \"%s\", \"steps\": %d, \"ms\": %.3f}", at ? ", " : "",
                 kinds[at].name, kinds[at].n, 1e3 * kinds[at].seconds);
  }
  (void)printf("]}\n");
}

/** {"steps": [{"op", "name", "ms"}], "update_ms"} in the order of the plan; name: of the node. */
static void print_steps(const laci_engine *engine, const double *least, double update) {
  (void)printf("{\"steps\": [");
  for (size_t at = 0; at < laci_engine_step_count(engine); at++) {
    laci_engine_step info = laci_engine_step_info(engine, at);
    (void)printf("%s{\"op\": \"%s\", \"name\": \"%s\", \"ms\": %.4f}", at ? ", " : "", info.op,
                 info.name ? info.name : "", 1e3 * least[at]);
  }
  (void)printf("], \"update_ms\": %.4f}\n", 1e3 * update);
}

typedef void print_least(const laci_engine *engine, const double *least, double update);

static lac_status profile(worker *w, int n, print_least *print, lac_error *err) {
  const laci_engine *engine = laci_trainer_engine(w->trainer);
  double *least = laci_alloc(laci_engine_step_count(engine), sizeof *least), update;
  lac_status st = least ? measure_steps(w, n, least, &update, err) : LAC_NO_MEMORY;
  if (!st) print(engine, least, update);
  laci_free(least);
  return st;
}

/** One order; false where the program should end. */
static bool obey(void *context, const char *order, lac_status *st, lac_error *err) {
  worker *w = context;
  if (strncmp(order, "run ", 4) == 0) *st = run_for(w, atof(order + 4), err);
  else if (strncmp(order, "profile ", 8) == 0) *st = profile(w, atoi(order + 8), print_kinds, err);
  else if (strncmp(order, "steps ", 6) == 0) *st = profile(w, atoi(order + 6), print_steps, err);
  else if (strcmp(order, "memory") == 0)
    (void)printf("{\"peak_mb\": %.1f}\n", (double)laci_memory_peak() / 1048576);
  else if (strcmp(order, "plan") == 0) (void)fputs(laci_trainer_plan_text(w->trainer), stderr);
  else return false;
  return *st == LAC_OK;
}

int main(int argc, char **argv) {
  worker w = {0};
  lac_error err = {0};
  bool remat = argc == 6 && strcmp(argv[5], "remat") == 0;
  if (argc != 5 && !remat) {
    (void)fprintf(stderr, "usage: train_worker ARCH BATCH f32|bf16 THREADS [remat]\n");
    return 2;
  }
  end_with_parent();
  lac_status st = start(&w, argv, remat, &err);
  st = take_orders(&w, obey, st, &err);
  laci_trainer_destroy(w.trainer);
  laci_graph_destroy(w.model);
  laci_free(w.images);
  laci_free(w.labels);
  return st ? 1 : 0;
}
