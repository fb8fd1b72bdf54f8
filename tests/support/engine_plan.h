/* SPDX-License-Identifier: Apache-2.0
 * Makes a plan of the fast engine from a network's text (graph_build.h), and runs it. */
#ifndef TESTS_SUPPORT_ENGINE_PLAN_H
#define TESTS_SUPPORT_ENGINE_PLAN_H

#include "base/memory.h"
#include "engine/engine.h"
#include "support/graph_build.h"

/** A plan, and its graph, which the plan reads. */
typedef struct planned {
  laci_graph *graph;
  laci_engine *engine;
} planned;

static inline planned plan_text(const char *text, laci_engine_options options) {
  planned p;
  lac_error err = {0};
  if (net_read(text, &p.graph, &err)) fail_msg("%s", err.text);
  if (laci_engine_create(p.graph, &options, &p.engine, &err)) fail_msg("%s\n%s", err.text, text);
  return p;
}

static inline void planned_clear(planned *p) {
  laci_engine_destroy(p->engine);
  laci_graph_destroy(p->graph);
}

/** Returns the number of steps whose kernel's name begins with `kernel`. */
static inline int planned_steps(const laci_engine *engine, const char *kernel) {
  int n = 0;
  for (size_t at = 0; at < laci_engine_step_count(engine); at++) {
    n += strncmp(laci_engine_step_info(engine, at).kernel, kernel, strlen(kernel)) == 0;
  }
  return n;
}

/** Runs the plan on generic numbers and returns its only output, which the caller frees with
 * laci_free. */
static inline float *planned_result(laci_engine *engine, size_t *bytes) {
  const laci_engine_port *in, *out;
  lac_error err = {0};
  assert_int_equal(laci_engine_inputs(engine, &in), 1);
  assert_int_equal(laci_engine_outputs(engine, &out), 1);
  float *x = laci_alloc(in->size_bytes, 1), *y = laci_alloc(out->size_bytes, 1);
  assert_true(x && y);
  for (size_t at = 0; at < in->size_bytes / sizeof *x; at++)
    x[at] = (float)net_number("x", (int64_t)at);
  *bytes = out->size_bytes;
  if (laci_engine_run(engine, (const void *[]){x}, (void *[]){y}, &err)) fail_msg("%s", err.text);
  laci_free(x);
  return y;
}

#endif
