/* SPDX-License-Identifier: Apache-2.0
 * Lacuna's side of bench/compare.py: loads a model, answers once, then runs when it is told to.
 *
 *     engine_worker MODEL.onnx INPUT_DIR f32|bf16 THREADS
 *
 * Orders come as lines on stdin, each is answered by one line of JSON on stdout; peer_worker.py
 * speaks the same for the other engines, and bench/README.md lists the orders. INPUT_DIR/NAME.bin
 * holds an input as lac_engine_run takes it. Only include/lacuna is used, as any program would. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lacuna/engine.h"
#include "lacuna/prune.h"
#include "lacuna/version.h"
#include "orders.h"

enum { PATH_BYTES = 4096, MOST_RUNS = 1 << 16 };

typedef struct worker {
  lac_model *model;
  lac_engine *engine;
  const lac_engine_port *in, *out;
  int n_in, n_out;
  void **inputs, **outputs;
} worker;

static double seconds_now(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/** A field of /proc/self/status in MB, 0 where there is none. */
static double status_mb(const char *field) {
  char line[256];
  long kb = 0;
  FILE *file = fopen("/proc/self/status", "r");
  while (file && fgets(line, sizeof line, file)) {
    if (strncmp(line, field, strlen(field)) == 0) kb = strtol(line + strlen(field) + 1, NULL, 10);
  }
  if (file) (void)fclose(file);
  return (double)kb / 1024;
}

static void make_path(char path[PATH_BYTES], const char *folder, const char *name) {
  size_t start = strlen(folder) + 1;
  (void)snprintf(path, PATH_BYTES, "%s/%s.bin", folder, name);
  for (size_t at = start; at < PATH_BYTES && path[at]; at++) {
    if (path[at] == '/') path[at] = '_';
  }
}

/** Reads or writes all of a port's value; false, and a word on stderr, where that fails. */
static bool move_port(const lac_engine_port *port, const char *folder, void *data, bool write) {
  char path[PATH_BYTES];
  make_path(path, folder, port->name);
  FILE *file = fopen(path, write ? "wb" : "rb");
  size_t done = 0;
  if (file && write) done = fwrite(data, 1, port->size_bytes, file);
  else if (file) done = fread(data, 1, port->size_bytes, file);
  bool whole = file && done == port->size_bytes;
  if (file && fclose(file) != 0) whole = false;
  if (!whole) (void)fprintf(stderr, "%s: wanted %zu bytes\n", path, port->size_bytes);
  return whole;
}

static void **make_values(const lac_engine_port *ports, int n) {
  void **values = calloc((size_t)n + 1, sizeof *values);
  for (int at = 0; values && at < n; at++) {
    values[at] = calloc(ports[at].size_bytes + 1, 1);
    if (!values[at]) return NULL; /* the program ends */
  }
  return values;
}

static lac_status run_once(worker *w, lac_error *err) {
  return lac_engine_run(w->engine, (const void *const *)w->inputs, w->outputs, err);
}

/** Loads, plans and answers once, and says how long each took. */
static lac_status start(worker *w, char **argv, lac_error *err) {
  lac_engine_options options = lac_engine_options_default();
  options.run.dtype = strcmp(argv[3], "bf16") == 0 ? LAC_DTYPE_BF16 : LAC_DTYPE_F32;
  options.run.threads = atoi(argv[4]);
  double base = status_mb("VmRSS:"), begin = seconds_now();
  lac_status st = lac_model_load(argv[1], NULL, &w->model, err);
  double loaded = seconds_now();
  if (!st) st = lac_engine_create(w->model, &options, &w->engine, err);
  double planned = seconds_now();
  if (st) return st;
  w->n_in = lac_engine_inputs(w->engine, &w->in);
  w->n_out = lac_engine_outputs(w->engine, &w->out);
  w->inputs = make_values(w->in, w->n_in);
  w->outputs = make_values(w->out, w->n_out);
  if (!w->inputs || !w->outputs) exit(1);
  for (int at = 0; at < w->n_in; at++) {
    if (!move_port(&w->in[at], argv[2], w->inputs[at], false)) exit(1);
  }
  double first = seconds_now();
  st = run_once(w, err);
  if (st) return st;
  lac_engine_memory memory = LAC_SIZED(lac_engine_memory);
  st = lac_engine_planned(w->engine, &memory, err);
  if (st) return st;
  (void)printf(
      "{\"version\": \"%s\", \"precision\": \"%s\", \"base_mb\": %.1f, \"load_s\": %.4f, "
      "\"plan_s\": %.4f, \"first_s\": %.4f, \"arena_mb\": %.1f, \"weights_mb\": %.1f}\n",
      lac_version(), argv[3], base, loaded - begin, planned - loaded, seconds_now() - first,
      (double)memory.arena_bytes / 1048576, (double)memory.weight_bytes / 1048576);
  return LAC_OK;
}

/** Runs until the time is over, at least once: {"ms": [each run]}. Nothing is printed before the
 * end: oneDNN may write lines of its own while it runs (ONEDNN_VERBOSE). */
static lac_status run_for(worker *w, double seconds, lac_error *err) {
  static double times[MOST_RUNS];
  double begin = seconds_now(), now = begin;
  lac_status st = LAC_OK;
  int n = 0;
  while (!st && n < MOST_RUNS && (n == 0 || now - begin < seconds)) {
    double from = seconds_now();
    st = run_once(w, err);
    now = seconds_now();
    times[n++] = now - from;
  }
  if (st) return st;
  (void)printf("{\"ms\": [");
  for (int at = 0; at < n; at++) (void)printf("%s%.4f", at ? ", " : "", 1e3 * times[at]);
  (void)printf("]}\n");
  return st;
}

static bool save(worker *w, const char *folder) {
  for (int at = 0; at < w->n_out; at++) {
    if (!move_port(&w->out[at], folder, w->outputs[at], true)) return false;
  }
  (void)printf("{\"saved\": %d}\n", w->n_out);
  return true;
}

/** One order; false where the program should end. */
static bool obey(void *context, const char *order, lac_status *st, lac_error *err) {
  worker *w = context;
  if (strncmp(order, "run ", 4) == 0) {
    *st = run_for(w, atof(order + 4), err);
  } else if (strncmp(order, "save ", 5) == 0) {
    return save(w, order + 5);
  } else if (strcmp(order, "memory") == 0) {
    (void)printf("{\"peak_mb\": %.1f}\n", status_mb("VmHWM:"));
  } else {
    return false;
  }
  return *st == LAC_OK;
}

static void finish(worker *w) {
  for (int at = 0; w->inputs && at < w->n_in; at++) free(w->inputs[at]);
  for (int at = 0; w->outputs && at < w->n_out; at++) free(w->outputs[at]);
  free(w->inputs);
  free(w->outputs);
  lac_engine_destroy(w->engine);
  lac_model_destroy(w->model);
}

int main(int argc, char **argv) {
  worker w = {0};
  lac_error err = {0};
  if (argc != 5) {
    (void)fprintf(stderr, "usage: engine_worker MODEL.onnx INPUT_DIR f32|bf16 THREADS\n");
    return 2;
  }
  end_with_parent();
  lac_status st = start(&w, argv, &err);
  st = take_orders(&w, obey, st, &err);
  finish(&w);
  return st ? 1 : 0;
}
