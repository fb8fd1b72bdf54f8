/* SPDX-License-Identifier: Apache-2.0
 * Runs a network on the fast and on the plain engine and compares their outputs. The fast engine
 * runs twice, the second time with an allocator that always fails. Include after cmocka.h. */
#ifndef TESTS_SUPPORT_ENGINE_CHECK_H
#define TESTS_SUPPORT_ENGINE_CHECK_H

#include "cpu/cpu.h"
#include "engine/engine.h"
#include "engine/stepper.h"
#include "support/walk.h"
#include "support/graph_run.h"

enum { MAX_PORTS = 64 };

/** Runs the plain engine; its results are f64, row-major. The caller destroys the run. */
static inline laci_stepper *plain_run(const laci_graph *graph, laci_buf *inputs[MAX_PORTS]) {
  laci_stepper *run = NULL;
  lac_error err = {0};
  if (walk_open(graph, NULL, &run, &err)) fail_msg("%s", err.text);
  for (int at = 0; at < graph->n_inputs; at++) {
    laci_stepper_set_value(run, graph->inputs[at], buf_copy(inputs[at]));
  }
  if (walk_all(run, graph, &err)) fail_msg("plain: %s", err.text);
  return run;
}

static inline void *pack(const laci_engine_port *port, const laci_buf *buf) {
  void *bytes = laci_alloc(port->size_bytes, 1);
  for (int64_t i = 0; i < buf->count; i++) {
    if (port->type.dtype == LAC_DTYPE_F32) ((float *)bytes)[i] = (float)buf->f[i];
    else ((int64_t *)bytes)[i] = buf->i[i];
  }
  return bytes;
}

static inline void compare(const char *text, const laci_engine_port *port, const void *got,
                           const laci_buf *want, double tolerance) {
  double scale = buf_scale(want);
  if (!laci_shape_equal(&port->type.shape, &want->shape)) fail_msg("another shape:\n%s", text);
  for (int64_t i = 0; i < want->count; i++) {
    if (port->type.dtype == LAC_DTYPE_I64) {
      if (((const int64_t *)got)[i] != want->i[i])
        fail_msg("integer %d differs:\n%s", (int)i, text);
      continue;
    }
    double x = (double)((const float *)got)[i];
    if (!number_close(x, want->f[i], tolerance * (scale > 0 ? scale : 1))) {
      fail_msg("element %d of %s: got %g, want %g, scale %g\n%s", (int)i, port->name, x, want->f[i],
               scale, text);
    }
  }
}

typedef struct expectation {
  double tolerance;
  bool bf16;
  int plain; /* number of steps that use a plain operator; -1: any */
  int steps; /* number of all steps; 0: any */
} expectation;

static inline int count_text(const char *text, const char *what) {
  int n = 0;
  for (; (text = strstr(text, what)); text++) n++;
  return n;
}

/** Runs the plan twice, the second time without memory where no plain operator is in it. */
static inline void run_twice(const char *text, laci_engine *engine, expectation e,
                             const void **read, void **written) {
  lac_error err = {0};
  if (laci_engine_run(engine, read, written, &err)) fail_msg("%s\n%s", err.text, text);
  const char *plan = laci_engine_plan_text(engine);
  int n_plain = count_text(plan, " plain  "), n_steps = count_text(plan, "\n") - 2;
  n_steps -= count_text(plan, "  look  "); /* these look for numbers that are not finite and are no
                                              nodes of the network */
  if (e.plain == 0) laci_memory_fail_from(1);
  lac_status st = laci_engine_run(engine, read, written, &err);
  laci_memory_fail_from(0);
  if (st) fail_msg("run takes memory: %s\n%s", err.text, text);
  if (e.plain >= 0 && n_plain != e.plain) fail_msg("%d plain steps:\n%s%s", n_plain, plan, text);
  if (e.steps && n_steps != e.steps) fail_msg("%d steps:\n%s%s", n_steps, plan, text);
}

/** Runs the network on both engines and checks the plan and the outputs. */
static inline void check_plan(const char *text, expectation e) {
  laci_graph *graph;
  laci_engine *engine;
  lac_error err = {0};
  laci_buf *inputs[MAX_PORTS];
  const laci_engine_port *in, *out;
  const void *read[MAX_PORTS];
  void *written[MAX_PORTS];
  if (net_read(text, &graph, &err)) fail_msg("%s\n%s", err.text, text);
  for (int at = 0; at < graph->n_inputs; at++) inputs[at] = run_source(graph, graph->inputs[at]);
  laci_engine_options options = {.threads = 2, .bf16 = e.bf16};
  if (laci_engine_create(graph, &options, &engine, &err)) fail_msg("%s\n%s", err.text, text);
  int n_in = laci_engine_inputs(engine, &in), n_out = laci_engine_outputs(engine, &out);
  for (int at = 0; at < n_in; at++) read[at] = pack(&in[at], inputs[at]);
  for (int at = 0; at < n_out; at++) written[at] = laci_alloc(out[at].size_bytes, 1);
  run_twice(text, engine, e, read, written);
  laci_stepper *run = plain_run(graph, inputs);
  for (int at = 0; at < n_out; at++) {
    compare(text, &out[at], written[at], laci_stepper_value(run, graph->outputs[at]), e.tolerance);
    laci_free(written[at]);
  }
  for (int at = 0; at < n_in; at++) {
    laci_free((void *)(uintptr_t)read[at]);
    laci_buf_destroy(inputs[at]);
  }
  laci_stepper_destroy(run);
  laci_engine_destroy(engine);
  laci_graph_destroy(graph);
}

/** Checks the default plan, then plans in which sparse kernels compute all layers that they can,
 * dense ones included: by generated code, by CSR and grouped rows, and by Winograd's algorithm. */
static inline void check_as(const char *text, expectation e) {
  check_plan(text, e);
  e.steps = 0; /* these plans have other reorder steps */
  assert_int_equal(setenv("LAC_SPARSE", "all", 1), 0);
  check_plan(text, e);
  assert_int_equal(setenv("LAC_ALGORITHM", "csr", 1), 0);
  check_plan(text, e);
  e.tolerance *= 4; /* transforms lose some bits */
  assert_int_equal(setenv("LAC_ALGORITHM", "winograd", 1), 0);
  check_plan(text, e);
  assert_int_equal(unsetenv("LAC_SPARSE"), 0);
  assert_int_equal(unsetenv("LAC_ALGORITHM"), 0);
}

/** A group's setup: plans by one table of costs on all processors with AVX-512, whose figures say
 * of some layers that they gain, and of others not. */
static inline int choose_one_table(void **state) {
  (void)state;
  return laci_cpu_level_in_force() == LACI_CPU_AVX512 ? setenv("LAC_COSTS", "zen4", 1) : 0;
}

#endif
