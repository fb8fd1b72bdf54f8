/* SPDX-License-Identifier: Apache-2.0
 * Every operator at every rank, with sizes and attributes that nobody would write: sweep_main SEED
 * FIRST COUNT; a fourth word has each network printed.
 *
 * Network k of sweep.h goes through typing, shape inference, the analysis of channels, both engines
 * and the chain rule, in a forked process that says in shared memory where it is. It may be
 * answered or refused. A crash, more than HANGS_AFTER_S seconds, or more than MOST_GROWN bytes of
 * memory is a fault, printed with what repeats it; the sweep goes on after it. The last line
 * counts; the status is 1 if there was a fault. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "analyze/analyze.h"
#include "base/budget.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/rng.h"
#include "engine/engine.h"
#include "graph/gradient.h"
#include "graph/infer.h"
#include "graph/op.h"
#include "graph/typing.h"
#include "lacuna/log.h"
#include "torture/sweep.h"

enum {
  HANGS_AFTER_S = 30,
  MOST_GROWN = 1 << 30,
  BUDGET = 1 << 28,
  MOST_PORT_BYTES = 1 << 20,
  MOST_PARAMS = 16,
  BATCH = 2000,
  MOST_FAULTS = 200
};

/* What a network went through; what is in progress stays in shared memory when the process dies. */
#define STAGES(X) X(building) X(typing) X(inference) X(analysis) X(plain) X(cpu) X(gradient)
typedef enum stage {
#define NAME(name) STAGE_##name,
  STAGES(NAME)
#undef NAME
      N_STAGES
} stage;
static const char *const stage_names[N_STAGES] = {
#define NAME(name) #name,
    STAGES(NAME)
#undef NAME
};

typedef struct progress {
  volatile uint64_t at; /* the network in progress */
  volatile int stage;
  volatile uint64_t answered[N_STAGES], refused[N_STAGES];
} progress;

static progress *shared;
static bool shows;

static void wrong(const char *what, const char *text) {
  fprintf(stderr, "%s: %s\n", what, text);
  abort();
}

/** Counts how a stage ended: with an answer, or with one line that says why not. */
static bool ended(stage at, lac_status st, lac_error *err) {
  if (st && !err->text[0]) wrong(stage_names[at], "refused without a word");
  if (!st && err->text[0]) wrong(stage_names[at], err->text);
  if (strchr(err->text, '\n')) wrong(stage_names[at], "an error of several lines");
  if (st == LAC_INTERNAL) wrong(stage_names[at], err->text);
  if (st) shared->refused[at]++;
  else shared->answered[at]++;
  *err = (lac_error){0};
  return st == LAC_OK;
}

/* ---- Runs ---- */

/** Buffers of ports with content: small numbers of both signs, now and then large or no number. */
static void **fill_ports(const laci_engine_port *ports, int n, uint64_t seed) {
  void **buffers = laci_alloc((size_t)n + 1, sizeof *buffers);
  for (int p = 0; buffers && p < n; p++) {
    buffers[p] = laci_alloc(ports[p].size_bytes + 8, 1);
    if (!buffers[p]) wrong("ports", "no memory");
    bool whole = ports[p].type.dtype != LAC_DTYPE_F32;
    for (size_t at = 0; at < ports[p].size_bytes / (whole ? 8 : 4); at++) {
      uint64_t drawn = laci_rng(seed, (uint64_t)p, at);
      double x = (double)(drawn % 4001) / 1000 - 2;
      if (drawn >> 32 & 1 && seed % 5 == 0) x = drawn >> 33 & 1 ? 1e30 : (double)NAN;
      if (whole) ((int64_t *)buffers[p])[at] = seed % 7 ? (int64_t)(drawn % 4) : (int64_t)drawn;
      else ((float *)buffers[p])[at] = (float)x;
    }
  }
  return buffers;
}

static void free_ports(void **buffers, int n) {
  for (int p = 0; buffers && p < n; p++) laci_free(buffers[p]);
  laci_free(buffers);
}

static bool are_small(const laci_engine_port *ports, int n) {
  size_t sum = 0;
  for (int p = 0; p < n; p++)
    sum += ports[p].size_bytes < MOST_PORT_BYTES ? ports[p].size_bytes : MOST_PORT_BYTES;
  return sum < MOST_PORT_BYTES;
}

static void run_engine(stage at, const laci_graph *graph, uint64_t k) {
  laci_budget budget = laci_budget_with_limit(BUDGET);
  laci_engine_options options = {.engine = stage_names[at], .threads = 1, .budget = &budget};
  laci_engine *engine = NULL;
  lac_error err = {0};
  shared->stage = at;
  lac_status st = laci_engine_create(graph, &options, &engine, &err);
  if (!st) {
    const laci_engine_port *in, *out;
    int n_in = laci_engine_inputs(engine, &in), n_out = laci_engine_outputs(engine, &out);
    if (are_small(in, n_in) && are_small(out, n_out)) {
      void **inputs = fill_ports(in, n_in, k), **outputs = fill_ports(out, n_out, k);
      st = laci_engine_run(engine, (const void *const *)inputs, outputs, &err);
      free_ports(inputs, n_in);
      free_ports(outputs, n_out);
    }
  }
  laci_engine_destroy(engine);
  (void)ended(at, st, &err);
}

/* ---- The chain rule ---- */

/** Adds the sum of output 0, and the gradients of all stored tensors and inputs of floats. */
static lac_status add_gradients(laci_graph *graph, lac_error *err) {
  int params[MOST_PARAMS], grads[MOST_PARAMS], n = 0, id;
  int y = graph->outputs[0], loss = laci_graph_intern_value(graph, "sum of all");
  const laci_attr keep = laci_attr_int("keepdims", 0);
  const laci_node sum = {.type = "ReduceSum",
                         .domain = "",
                         .version = 13,
                         .n_inputs = 1,
                         .inputs = &y,
                         .n_outputs = 1,
                         .outputs = &loss,
                         .n_attrs = 1,
                         .attrs = &keep};
  lac_status st = laci_graph_add_node(graph, &sum, &id, err);
  if (!st) st = laci_graph_finish(graph, err);
  if (!st) st = laci_graph_infer(graph, NULL, 0, err);
  if (st) return st;
  for (int v = 0; v < graph->n_values && n < MOST_PARAMS; v++) {
    const laci_value *value = &graph->values[v];
    if (value->producer < 0 && value->n_readers && value->type.dtype == LAC_DTYPE_F32)
      params[n++] = v;
  }
  loss = laci_graph_find_value(graph, "sum of all");
  if (n) st = laci_gradient_build(graph, loss, n, params, grads, err);
  for (int at = 0; at < n && !st; at++) {
    if (!graph->values[grads[at]].is_output)
      st = laci_graph_add_output(graph, graph->values[grads[at]].name, err);
  }
  return st;
}

static void run_gradient(laci_graph *graph, uint64_t k) {
  lac_error err = {0};
  shared->stage = STAGE_gradient;
  if (ended(STAGE_gradient, add_gradients(graph, &err), &err)) {
    run_engine(STAGE_plain, graph, k);
    run_engine(STAGE_cpu, graph, k);
  }
}

/* ---- One network ---- */

static void show_value(const laci_graph *graph, int value) {
  char text[128];
  if (value < 0) {
    printf(" _");
    return;
  }
  const laci_value *v = &graph->values[value];
  printf(" %s%s:%s%s", v->stored >= 0 ? "stored " : "", v->name, lac_dtype_name(v->type.dtype),
         laci_shape_text(&v->type.shape, text, sizeof text));
}

/** The network for people: what a fault is looked at with. */
static void show(const laci_graph *graph) {
  for (int n = 0; n < graph->n_nodes; n++) {
    const laci_node *node = &graph->nodes[n];
    printf("%s%s-%d(", node->domain, node->type, node->version);
    for (int port = 0; port < node->n_inputs; port++) show_value(graph, node->inputs[port]);
    printf(" ) ->");
    for (int out = 0; out < node->n_outputs; out++) show_value(graph, node->outputs[out]);
    for (int at = 0; at < node->n_attrs; at++) {
      const laci_attr *attr = &node->attrs[at];
      printf(" %s(%d)=", attr->name, (int)attr->kind);
      if (attr->kind == LACI_ATTR_INT) printf("%" PRId64, attr->i);
      if (attr->kind == LACI_ATTR_FLOAT) printf("%g", (double)attr->f);
      if (attr->kind == LACI_ATTR_TEXT) printf("'%s'", attr->text);
      for (size_t k = 0; attr->kind == LACI_ATTR_INTS && k < attr->n; k++)
        printf("%" PRId64 ",", attr->ints[k]);
    }
    printf("\n");
  }
  (void)fflush(stdout);
}

static void run_network(uint64_t seed, uint64_t k) {
  lac_error err = {0};
  laci_budget budget = laci_budget_with_limit(BUDGET);
  const laci_rules rules = {.pattern = {2, 4}, .all_sizes = true, .budget = &budget};
  laci_analysis *analysis = NULL;
  shared->stage = STAGE_building;
  laci_graph *graph = sweep_network(seed, k, &err);
  if (!ended(STAGE_building, graph ? LAC_OK : err.text[0] ? LAC_BAD_FILE : LAC_NO_MEMORY, &err))
    return;
  shared->stage = STAGE_typing;
  if (shows) show(graph);
  bool goes_on =
      ended(STAGE_typing, laci_graph_check_attr_and_weight_types(graph, k % 2, &err), &err);
  shared->stage = STAGE_inference;
  goes_on = goes_on && ended(STAGE_inference, laci_graph_infer(graph, NULL, 0, &err), &err);
  if (goes_on) {
    shared->stage = STAGE_analysis;
    (void)ended(STAGE_analysis, laci_analyze(graph, &rules, &analysis, &err), &err);
    laci_analysis_destroy(analysis);
    run_engine(STAGE_plain, graph, k);
    run_engine(STAGE_cpu, graph, k);
    if (graph->n_outputs > 0) run_gradient(graph, k);
  }
  laci_graph_destroy(graph);
}

static long grown_bytes(void) {
  struct rusage usage;
  (void)getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

static void run_batch(uint64_t seed, uint64_t first, uint64_t end) {
  lac_log_set(LAC_LOG_ERROR, NULL, NULL);
  long before = grown_bytes();
  for (uint64_t k = first; k < end; k++) {
    shared->at = k;
    run_network(seed, k);
    if (grown_bytes() - before > MOST_GROWN) wrong("memory", "more than a gigabyte was used");
  }
  shared->at = end;
  _exit(0);
}

/* ---- The parent ---- */

/** Waits for the child; false: it worked on one network for too long, and was killed. */
static bool watch(pid_t child, int *status) {
  uint64_t seen = UINT64_MAX;
  time_t since = time(NULL);
  while (waitpid(child, status, WNOHANG) == 0) {
    const struct timespec pause = {.tv_nsec = 5000000};
    (void)nanosleep(&pause, NULL);
    if (shared->at != seen) {
      seen = shared->at;
      since = time(NULL);
    }
    if (time(NULL) - since <= HANGS_AFTER_S) continue;
    (void)kill(child, SIGKILL);
    (void)waitpid(child, status, 0);
    return false;
  }
  return true;
}

static void say_counts(uint64_t count, int faults) {
  for (int at = 0; at < N_STAGES; at++)
    fprintf(stderr, "%-10s %8" PRIu64 " answered %8" PRIu64 " refused\n", stage_names[at],
            shared->answered[at], shared->refused[at]);
  uint64_t done = shared->answered[STAGE_inference];
  printf("%" PRIu64 " done, %" PRIu64 " refused, %d faults\n", done,
         count - done - (uint64_t)faults, faults);
}

int main(int argc, char **argv) {
  if (argc < 4 || argc > 5) {
    fprintf(stderr, "usage: sweep_main SEED FIRST COUNT [show]\n");
    return 2;
  }
  uint64_t seed = strtoull(argv[1], NULL, 10), first = strtoull(argv[2], NULL, 10),
           end = first + strtoull(argv[3], NULL, 10);
  int faults = 0;
  shows = argc > 4;
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 2;
  for (uint64_t k = first; k < end && faults < MOST_FAULTS;) {
    int status = 0;
    uint64_t last = end - k < BATCH ? end : k + BATCH;
    shared->at = k;
    (void)fflush(NULL);
    pid_t child = fork();
    if (child < 0) return 2;
    if (child == 0) run_batch(seed, k, last);
    bool in_time = watch(child, &status);
    k = shared->at;
    if (in_time && WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
    faults++;
    printf("FAULT: sweep_main %" PRIu64 " %" PRIu64 " 1: %s, in %s: %s\n", seed, k,
           sweep_operator(k), stage_names[shared->stage], in_time ? "ended" : "hangs");
    k++;
  }
  say_counts(end - first, faults);
  return faults ? 1 : 0;
}
