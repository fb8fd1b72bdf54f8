/* SPDX-License-Identifier: Apache-2.0
 * Engines from plug-ins (tests/plugins/engine.c), one in the host's memory and one with a device:
 * they compute what the plain engine computes, show every value, train; and what is wrong with one
 * is said. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "arch/arch.h"
#include "base/budget.h"
#include "base/memory.h"
#include "engine/engine.h"
#include "engine/row.h"
#include "lacuna/engine.h"
#include "lacuna/log.h"
#include "sparse/pack.h"
#include "support/graph_run.h"
#include "tensor/buf.h"
#include "train/trainer.h"

static const char *const files[] = {LAC_TEST_ENGINE_HOST, LAC_TEST_ENGINE_DEVICE};
static const char *names[2];
enum { BATCH = 2, IN = 16 * 8 * 8, OUT = 5 };

static const char network[] =
    "input x 2x16x8x8\nstored w 8x16x3x3\nstored b 8\nstored v 8x5\n"
    "c = Conv(x, w, b) name=\"first\"\nr = Relu(c)\np = GlobalAveragePool(r)\nf = Flatten(p)\n"
    "y = Gemm(f, v)\noutput y\n";

static laci_graph *graph_of(const char *text) {
  laci_graph *graph;
  lac_error err = {0};
  if (net_read(text, &graph, &err)) fail_msg("%s", err.text);
  return graph;
}

static laci_engine *plan(const laci_graph *graph, const char *name) {
  laci_engine *engine;
  lac_error err = {0};
  const laci_engine_options options = {.engine = name, .threads = 2};
  if (laci_engine_create(graph, &options, &engine, &err)) fail_msg("%s: %s", name, err.text);
  return engine;
}

static void fill(float *to, int n) {
  for (int at = 0; at < n; at++) to[at] = (float)(at % 13) / 6 - 1;
}

static void expect_close(const float *a, const float *b, int64_t n, double tolerance) {
  for (int64_t at = 0; at < n; at++) {
    if (number_close((double)a[at], (double)b[at], tolerance)) continue;
    fail_msg("%lld: %g and %g", (long long)at, (double)a[at], (double)b[at]);
  }
}

/* ---- Loading ---- */

static int load_all(void **state) {
  (void)state;
  for (int k = 0; k < 2; k++) {
    lac_error err = {0};
    if (lac_engine_load(files[k], &names[k], &err)) fail_msg("%s", err.text);
  }
  return 0;
}

static void a_loaded_engine_is_in_the_list_once(void **state) {
  (void)state;
  int n = 0, found = 0;
  assert_string_equal(names[0], "test-host");
  assert_string_equal(names[1], "test-device");
  (void)load_all(NULL);
  for (; lac_engine_name(n); n++) found += strcmp(lac_engine_name(n), "test-host") == 0;
  assert_int_equal(found, 1);
  assert_null(lac_engine_name(-1));
  assert_null(lac_engine_name(n + 1));
}

static void *load_in_thread(void *name) {
  return lac_engine_load(files[0], name, NULL) ? NULL : name;
}

static void threads_may_load_at_once(void **state) {
  (void)state;
  enum { N = 8 };
  pthread_t threads[N];
  const char *found[N];
  for (int k = 0; k < N; k++) {
    assert_int_equal(pthread_create(&threads[k], NULL, load_in_thread, &found[k]), 0);
  }
  for (int k = 0; k < N; k++) {
    void *loaded;
    assert_int_equal(pthread_join(threads[k], &loaded), 0);
    assert_non_null(loaded);
    assert_ptr_equal(found[k], names[0]);
  }
}

/* Loads a copy of the file, which the loader takes for another plug-in. */
static lac_status load_copy(const char *lie, const char *name, const char **loaded,
                            lac_error *err) {
  char path[] = "/tmp/lacuna-engine-XXXXXX.so", command[512];
  int fd = mkstemps(path, 3);
  assert_true(fd >= 0);
  (void)close(fd);
  (void)snprintf(command, sizeof command, "cp '%s' '%s'", files[0], path);
  assert_int_equal(system(command), 0);
  if (lie) assert_int_equal(setenv("LAC_TEST_LIE", lie, 1), 0);
  assert_int_equal(setenv("LAC_TEST_NAME", name, 1), 0);
  lac_status st = lac_engine_load(path, loaded, err);
  (void)unsetenv("LAC_TEST_LIE");
  (void)unsetenv("LAC_TEST_NAME");
  assert_int_equal(unlink(path), 0);
  return st;
}

static void a_file_that_offers_no_engine_is_refused(void **state) {
  (void)state;
  static const struct {
    const char *lie, *name, *text;
    lac_status status;
  } cases[] = {
      {"no plug-in", "a", "lac_plugin_open returns NULL", LAC_BAD_FILE},
      {"version 1", "a", "for version 1 of the interface, and this library has version 2",
       LAC_UNSUPPORTED},
      {"no open_engine", "a", "it offers no engine", LAC_BAD_FILE},
      {"no engine", "a", "there is no such device", LAC_UNSUPPORTED},
      {"no engine and no reason", "a", "no reason is given", LAC_UNSUPPORTED},
      {"a size of 8", "a", "lac_engine_plugin.size is 8", LAC_BAD_FILE},
      {"a later field", "a", "a newer library is needed", LAC_UNSUPPORTED},
      {"no create", "a", "the engine a has no create", LAC_BAD_FILE},
      {"no run", "a", "the engine a has no run", LAC_BAD_FILE},
      {"no step_info", "a", "the engine a has no step_info", LAC_BAD_FILE},
      {"less than no types", "a", "computes in -1 element types", LAC_BAD_FILE},
      {"a type that is none", "a", "type 999, which is none", LAC_BAD_FILE},
      {NULL, "", "wanted 1 to 63 letters", LAC_BAD_FILE},
      {NULL, "a b", "wanted 1 to 63 letters", LAC_BAD_FILE},
      {NULL, "b.so", "no .so at the end", LAC_BAD_FILE},
      {NULL, LACI_ENGINE_FAST, "there is an engine 'cpu' already", LAC_EXISTS},
  };
  for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
    lac_error err = {0};
    const char *name = "";
    lac_status st = load_copy(cases[at].lie, cases[at].name, &name, &err);
    if (st != cases[at].status || !strstr(err.text, cases[at].text)) {
      fail_msg("%s: status %d, %s", cases[at].text, (int)st, err.text);
    }
    assert_null(name);
  }
}

static void a_later_versions_struct_is_taken_if_its_new_fields_are_0(void **state) {
  (void)state;
  const char *name;
  lac_error err = {0};
  if (load_copy("later fields of 0", "later", &name, &err)) fail_msg("%s", err.text);
  assert_string_equal(name, "later");
}

static void other_files_are_refused(void **state) {
  (void)state;
  static const struct {
    const char *path, *text;
    lac_status status;
  } cases[] = {
      {"/nowhere/engine.so", "/nowhere/engine.so: loading the plug-in", LAC_NOT_FOUND},
      {"lacuna-there-is-no-such-file.so", "no shared object", LAC_BAD_FILE},
      {LAC_SOURCE_DIR "/README.md", "no shared object", LAC_BAD_FILE},
      {"libm.so.6", "it exports no lac_plugin_open", LAC_BAD_FILE},
      {"/tmp", "no shared object", LAC_BAD_FILE},
  };
  const char *name;
  for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
    lac_error err = {0};
    lac_status st = lac_engine_load(cases[at].path, &name, &err);
    if (st != cases[at].status || !strstr(err.text, cases[at].text)) {
      fail_msg("%s: status %d, %s", cases[at].path, (int)st, err.text);
    }
    assert_null(name);
  }
  assert_int_equal(lac_engine_load(NULL, &name, NULL), LAC_BAD_ARGUMENT);
  assert_int_equal(lac_engine_load(files[0], NULL, NULL), LAC_BAD_ARGUMENT);
}

/* ---- Runs ---- */

static void it_computes_what_the_plain_engine_does(void **state) {
  (void)state;
  static float x[BATCH * IN];
  float y[BATCH * OUT], plain[BATCH * OUT];
  lac_error err = {0};
  laci_graph *graph = graph_of(network);
  fill(x, BATCH * IN);
  laci_engine *engine = plan(graph, LACI_ENGINE_EXACT);
  assert_int_equal(laci_engine_run(engine, (const void *[]){x}, (void *[]){plain}, &err), LAC_OK);
  laci_engine_destroy(engine);
  for (int k = 0; k < 2; k++) {
    engine = plan(graph, names[k]);
    for (int run = 0; run < 2; run++) {
      memset(y, 0, sizeof y);
      if (laci_engine_run(engine, (const void *[]){x}, (void *[]){y}, &err)) {
        fail_msg("%s", err.text);
      }
      expect_close(y, plain, BATCH * OUT, 1e-5);
    }
    laci_engine_destroy(engine);
  }
  laci_graph_destroy(graph);
}

static void outputs_may_be_inputs_or_stored(void **state) {
  (void)state;
  const int64_t i[3] = {4, 0, 2};
  int64_t y[3][3];
  lac_error err = {0};
  laci_graph *graph = graph_of(
      "input i 3 i64\nstored one 3 i64 = 1, 1, 1\ny = Add(i, one)\noutput y\noutput i\noutput "
      "one\n");
  for (int k = 0; k < 2; k++) {
    laci_engine *engine = plan(graph, names[k]);
    memset(y, 0, sizeof y);
    if (laci_engine_run(engine, (const void *[]){i}, (void *[]){y[0], y[1], y[2]}, &err)) {
      fail_msg("%s", err.text);
    }
    for (int at = 0; at < 3; at++) {
      assert_true(y[0][at] == i[at] + 1 && y[1][at] == i[at] && y[2][at] == 1);
    }
    laci_engine_destroy(engine);
  }
  laci_graph_destroy(graph);
}

static void an_output_may_have_an_inputs_buffer(void **state) {
  (void)state;
  lac_error err = {0};
  laci_graph *graph = graph_of("input x 4\nr = Neg(x)\ny = Add(r, x)\noutput r\noutput y\n");
  for (int k = 0; k < 2; k++) {
    float x[4] = {1, -2, 3, 4}, y[4];
    laci_engine *engine = plan(graph, names[k]);
    if (laci_engine_run(engine, (const void *[]){x}, (void *[]){x, y}, &err)) {
      fail_msg("%s", err.text);
    }
    assert_true(x[0] == -1 && x[1] == 2 && y[0] == 0 && y[3] == 0);
    laci_engine_destroy(engine);
  }
  laci_graph_destroy(graph);
}

static void steps_memory_and_evaluated_nodes_are_told(void **state) {
  (void)state;
  static float x[BATCH * IN];
  float y[BATCH * OUT];
  double seconds[8], begins[8];
  lac_error err = {0};
  laci_graph *graph = graph_of(network);
  for (int k = 0; k < 2; k++) {
    laci_engine *engine = plan(graph, names[k]);
    int64_t flops = 0;
    assert_int_equal(laci_engine_step_count(engine), 5);
    for (size_t step = 0; step < 5; step++) {
      laci_engine_step s = laci_engine_step_info(engine, step);
      assert_string_equal(s.kernel, "test");
      assert_int_equal(s.plain, strcmp(s.op, "Relu") != 0);
      assert_true(s.bytes_read > 0 && s.bytes_written > 0);
      flops += s.flops;
      seconds[step] = begins[step] = -1;
    }
    assert_int_equal(flops, 2 * BATCH * (8 * 6 * 6 * 16 * 9 + 8 * OUT));
    const laci_engine_watch watch = {.seconds = seconds, .begins = begins};
    assert_int_equal(
        laci_engine_run_watched(engine, (const void *[]){x}, (void *[]){y}, &watch, &err), LAC_OK);
    for (size_t step = 0; step < 5; step++) assert_true(seconds[step] >= 0 && begins[step] > 0);
    const laci_engine_exact exact = laci_engine_describe_exact_nodes(engine);
    assert_int_equal(exact.n_nodes, 4);
    assert_non_null(strstr(exact.reason, "has no code for operator Conv: it is lazy"));
    assert_int_equal(laci_engine_threads(engine), 2);
    assert_non_null(strstr(laci_engine_plan_text(engine), "first"));
    assert_true(laci_engine_planned_memory(engine).arena_bytes > 2 * 8 * 6 * 6 * 8);
    assert_string_equal(laci_engine_name(engine), names[k]);
    laci_engine_destroy(engine);
  }
  laci_graph_destroy(graph);
}

/* ---- Observed values ---- */

typedef struct sight {
  double sums[64];
  int counts[64];
} sight;

static lac_status see(void *context, int value, const laci_engine_port *port, const void *content,
                      lac_error *err) {
  (void)err;
  sight *s = context;
  const int64_t n = laci_shape_count(&port->type.shape);
  assert_int_equal(port->type.dtype, LAC_DTYPE_F32);
  for (int64_t at = 0; at < n; at++) s->sums[value] += (double)((const float *)content)[at];
  s->counts[value]++;
  return LAC_OK;
}

static void observe(const laci_graph *graph, const char *name, sight *s) {
  static float x[BATCH * IN];
  float y[BATCH * OUT];
  int values[64];
  lac_error err = {0};
  laci_engine *engine;
  *s = (sight){.counts = {0}};
  for (int v = 0; v < graph->n_values; v++) values[v] = v;
  const laci_engine_observer observer = {
      .values = values, .n_values = graph->n_values, .on_value = see, .context = s};
  const laci_engine_options options = {.engine = name, .threads = 1, .observer = &observer};
  fill(x, BATCH * IN);
  if (laci_engine_create(graph, &options, &engine, &err)) fail_msg("%s: %s", name, err.text);
  for (int run = 0; run < 2; run++) {
    if (laci_engine_run(engine, (const void *[]){x}, (void *[]){y}, &err)) fail_msg("%s", err.text);
  }
  laci_engine_destroy(engine);
}

static void every_value_can_be_observed(void **state) {
  (void)state;
  static sight plain, seen;
  laci_graph *graph = graph_of(network);
  observe(graph, LACI_ENGINE_EXACT, &plain);
  for (int k = 0; k < 2; k++) {
    observe(graph, names[k], &seen);
    for (int v = 0; v < graph->n_values; v++) {
      assert_int_equal(seen.counts[v], 2);
      if (!number_close(seen.sums[v], plain.sums[v], 1e-4)) {
        fail_msg("%s: %g and %g", graph->values[v].name, seen.sums[v], plain.sums[v]);
      }
    }
  }
  laci_graph_destroy(graph);
}

/* ---- What cannot be planned ---- */

static void what_it_cannot_run_is_said(void **state) {
  (void)state;
  static const struct {
    const char *network, *text;
    lac_status status;
    bool bf16;
  } cases[] = {
      {"input x 4\ny = Softmax(x)\noutput y\n", "cannot run operator Softmax: too soft",
       LAC_UNSUPPORTED, false},
      {"input x 4\ny = Nonsense(x) name=\"odd\"\noutput y\n",
       "odd: operator Nonsense cannot be run", LAC_UNSUPPORTED, false},
      {"input x -1x4\ny = Neg(x)\noutput y\n", "every size must be given", LAC_BAD_SHAPE, false},
      {"input x 4\ni = NonZero(x)\noutput i\n", "its shape is not known", LAC_UNSUPPORTED, false},
      {"input x 4\ny = Neg(x)\noutput y\n", "does not compute in bf16, but in f32", LAC_UNSUPPORTED,
       true},
  };
  for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
    laci_graph *graph = graph_of(cases[at].network);
    for (int k = 0; k < 2; k++) {
      laci_engine *engine;
      lac_error err = {0};
      const laci_engine_options options = {
          .engine = names[k], .threads = 1, .bf16 = cases[at].bf16};
      lac_status st = laci_engine_create(graph, &options, &engine, &err);
      if (st != cases[at].status || !strstr(err.text, cases[at].text)) {
        fail_msg("%s: status %d, %s", cases[at].network, (int)st, err.text);
      }
      assert_null(engine);
    }
    laci_graph_destroy(graph);
  }
}

static void a_node_is_asked_about_with_open_shapes(void **state) {
  (void)state;
  laci_graph *graph = graph_of("input x -1x4\nr = Relu(x)\ny = Softmax(r)\noutput y\n");
  for (int k = 0; k < 2; k++) {
    lac_error why = {0};
    assert_true(laci_engine_can_run_node(names[k], graph, &graph->nodes[0], &why));
    assert_false(laci_engine_can_run_node(names[k], graph, &graph->nodes[1], &why));
    assert_non_null(strstr(why.text, "too soft"));
    assert_int_equal(laci_engine_find_dtype_support(names[k], LAC_DTYPE_F32), LACI_DTYPE_HERE);
    assert_int_equal(laci_engine_find_dtype_support(names[k], LAC_DTYPE_BF16), LACI_DTYPE_NOT);
  }
  laci_graph_destroy(graph);
}

static void a_plan_is_asked_about_with_open_shapes(void **state) {
  (void)state;
  laci_graph *graph = graph_of("input x -1x4\nr = Relu(x)\ny = Neg(r)\noutput y\n");
  for (int k = 0; k < 2; k++) {
    laci_engine_node nodes[2];
    laci_engine_answer answer;
    laci_arena memory = {0};
    lac_error err = {0};
    const laci_engine_options options = {.engine = names[k], .threads = 1};
    if (laci_engine_ask(graph, &options, &memory, nodes, &answer, &err)) fail_msg("%s", err.text);
    assert_true(answer.open && answer.refusal.status == LAC_OK);
    assert_int_equal(nodes[0].runner, LACI_RUNNER_FAST);
    assert_int_equal(nodes[1].runner, LACI_RUNNER_EXACT);
    assert_non_null(strstr(nodes[1].reason, "has no code for operator Neg: it is lazy"));
    laci_arena_clear(&memory);
  }
  laci_graph_destroy(graph);
}

static void more_than_the_budget_is_refused(void **state) {
  (void)state;
  laci_graph *graph = graph_of(network);
  for (int k = 0; k < 2; k++) {
    laci_engine *engine;
    lac_error err = {0};
    /* ports fit, values do not */
    laci_budget small = laci_budget_with_limit(BATCH * IN * 4 + 2000), large;
    laci_engine_options options = {.engine = names[k], .threads = 1, .budget = &small};
    assert_int_equal(laci_engine_create(graph, &options, &engine, &err), LAC_MEMORY_LIMIT);
    large = laci_budget_with_limit(1 << 26);
    options.budget = &large;
    assert_int_equal(laci_engine_create(graph, &options, &engine, &err), LAC_OK);
    assert_true(large.needed >= laci_engine_planned_memory(engine).arena_bytes);
    laci_engine_destroy(engine);
  }
  laci_graph_destroy(graph);
}

/* ---- Engines that do what cannot be ---- */

static void expect_lie(const laci_graph *graph, int k, const char *lie, const char *text) {
  static float x[BATCH * IN];
  static sight seen;
  float y[BATCH * OUT];
  lac_error err = {0};
  laci_engine *engine = NULL;
  int shown = laci_graph_find_value(graph, "f");
  const laci_engine_observer observer = {
      .values = &shown, .n_values = 1, .on_value = see, .context = &seen};
  const laci_engine_options options = {.engine = names[k], .threads = 1, .observer = &observer};
  assert_int_equal(setenv("LAC_TEST_LIE", lie, 1), 0);
  lac_status st = laci_engine_create(graph, &options, &engine, &err);
  if (!st) st = laci_engine_run(engine, (const void *[]){x}, (void *[]){y}, &err);
  (void)unsetenv("LAC_TEST_LIE");
  if (!st || !strstr(err.text, text)) fail_msg("%s: status %d, %s", lie, (int)st, err.text);
  if (engine) { /* a failed run leaves an engine that can run */
    err = (lac_error){0};
    if (laci_engine_run(engine, (const void *[]){x}, (void *[]){y}, &err)) {
      fail_msg("after %s: %s", lie, err.text);
    }
  }
  laci_engine_destroy(engine);
}

static void what_cannot_be_true_is_found(void **state) {
  (void)state;
  static const struct {
    const char *lie, *text;
    bool is_device;
  } cases[] = {
      {"no answer", "answers 7, which is no answer", false},
      {"no object", "returned no object", false},
      {"no reason", "failed to plan the network: no reason is given", false},
      {"no status", "its status is none", false},
      {"less than no steps", "says that it has -3 steps", false},
      {"a step of no node", "step 0 is of node 5 of 5", false},
      {"a step of nothing", "step 0 does not say what it computes", false},
      {"no node", "node 1000, and there are 5", false},
      {"no steps done", "ended a run after step 0 of 5", false},
      {"steps twice", "ended step 0 where step 1 of 5 was next", false},
      {"hides", "did not show 'f'", true},
      {"shows others", "which is not observed", true},
      {"no start", "failed to run: the queue is full", true},
      {"no copies", "failed to copy to its device: the bus is down", true},
      {"no device memory", "test:0 has no", true},
  };
  laci_graph *graph = graph_of(network);
  for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
    expect_lie(graph, cases[at].is_device, cases[at].lie, cases[at].text);
  }
  laci_graph_destroy(graph);
}

static void an_interrupt_ends_a_run(void **state) {
  (void)state;
  static float x[BATCH * IN];
  float y[BATCH * OUT];
  laci_graph *graph = graph_of(network);
  for (int k = 0; k < 2; k++) {
    laci_engine *engine = plan(graph, names[k]);
    lac_interrupt(true);
    lac_status st = laci_engine_run(engine, (const void *[]){x}, (void *[]){y}, NULL);
    const laci_engine_watch watch = {.ignores_interrupt = true};
    lac_status other =
        laci_engine_run_watched(engine, (const void *[]){x}, (void *[]){y}, &watch, NULL);
    lac_interrupt(false);
    assert_int_equal(st, LAC_INTERRUPTED);
    assert_int_equal(other, LAC_OK);
    laci_engine_destroy(engine);
  }
  laci_graph_destroy(graph);
}

static void a_failed_allocation_is_said(void **state) {
  (void)state;
  static float x[BATCH * IN];
  float y[BATCH * OUT];
  laci_graph *graph = graph_of(network);
  for (int k = 0; k < 2; k++) {
    lac_status st = LAC_NO_MEMORY;
    for (long at = 1; st; at++) {
      laci_engine *engine = NULL;
      lac_error err = {0};
      const laci_engine_options options = {.engine = names[k], .threads = 1};
      laci_memory_fail_from(at);
      st = laci_engine_create(graph, &options, &engine, &err);
      if (!st) st = laci_engine_run(engine, (const void *[]){x}, (void *[]){y}, &err);
      laci_memory_fail_from(0);
      laci_engine_destroy(engine);
      if (st && st != LAC_NO_MEMORY) fail_msg("allocation %ld: %s", at, err.text);
      assert_true(at < 1000);
    }
  }
  laci_graph_destroy(graph);
}

static void a_failed_allocation_of_loading_is_said(void **state) {
  (void)state;
  lac_status st = LAC_NO_MEMORY;
  const char *name;
  for (long at = 1; st; at++) {
    laci_memory_fail_from(at);
    st = load_copy(NULL, "copy", &name, NULL);
    laci_memory_fail_from(0);
    assert_true(at < 100 && (!st || st == LAC_NO_MEMORY));
  }
  assert_string_equal(name, "copy");
}

/* ---- Training ---- */

enum { PIXELS = 64, CLASSES = 10, IMAGES = 4 };

typedef struct training {
  laci_optimizer_kind kind;
  lac_status status;
  float *weights;
  int64_t n;
} training;

/* Two steps on fixed images: the weights after them. */
static void train(const laci_graph *model, const char *engine, training *t) {
  float images[IMAGES * PIXELS], labels[IMAGES * CLASSES] = {0}, loss;
  laci_trainer *trainer;
  lac_error err = {0};
  laci_trainer_options o = {.graph = {.batch = IMAGES},
                            .optimizer = laci_optimizer_options_default(t->kind),
                            .run.engine = engine,
                            .run.threads = 1};
  o.optimizer.decay = 1e-3f;
  if (laci_trainer_create(model, &o, &trainer, &err)) fail_msg("%s: %s", engine, err.text);
  fill(images, IMAGES * PIXELS);
  for (int at = 0; at < IMAGES; at++) labels[at * CLASSES + at] = 1;
  for (int step = 0; step < 2; step++) {
    if (laci_trainer_run_batch(trainer, images, labels, &loss, NULL, &err)) {
      fail_msg("%s: %s", engine, err.text);
    }
    t->status = laci_trainer_update(trainer, 0.01, &err);
  }
  t->n = laci_optimizer_count_floats(laci_trainer_optimizer(trainer));
  t->weights = laci_alloc((size_t)t->n, sizeof *t->weights);
  memcpy(t->weights, laci_trainer_weights(trainer), (size_t)t->n * sizeof *t->weights);
  if (!t->status) assert_int_equal(laci_optimizer_steps(laci_trainer_optimizer(trainer)), 2);
  laci_trainer_destroy(trainer);
}

/* The engine's own update for SGD, the library's for AdamW. */
static void training_steps_update_weights_as_the_plain_engine(void **state) {
  (void)state;
  laci_graph *model;
  lac_error err = {0};
  laci_arch_options a = {.name = "digits", .seed = 1};
  if (laci_arch_build(&a, &model, &err)) fail_msg("%s", err.text);
  for (int adam = 0; adam <= 1; adam++) {
    laci_optimizer_kind kind = adam ? LACI_OPTIMIZER_ADAMW : LACI_OPTIMIZER_SGD;
    training plain = {.kind = kind};
    train(model, LACI_ENGINE_EXACT, &plain);
    for (int k = 0; k < 2; k++) {
      training t = {.kind = kind};
      train(model, names[k], &t);
      assert_int_equal(t.n, plain.n);
      expect_close(t.weights, plain.weights, t.n, adam ? 2e-2 : 1e-4);
      laci_free(t.weights);
    }
    laci_free(plain.weights);
  }
  laci_graph_destroy(model);
}

static void a_failed_update_is_said(void **state) {
  (void)state;
  laci_graph *model;
  laci_arch_options a = {.name = "digits", .seed = 1};
  assert_int_equal(laci_arch_build(&a, &model, NULL), LAC_OK);
  for (int k = 0; k < 2; k++) {
    training t = {.kind = LACI_OPTIMIZER_SGD};
    assert_int_equal(setenv("LAC_TEST_LIE", "no update", 1), 0);
    train(model, names[k], &t);
    (void)unsetenv("LAC_TEST_LIE");
    assert_int_equal(t.status, LAC_IO);
    laci_free(t.weights);
  }
  laci_graph_destroy(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_loaded_engine_is_in_the_list_once),
      cmocka_unit_test(threads_may_load_at_once),
      cmocka_unit_test(a_file_that_offers_no_engine_is_refused),
      cmocka_unit_test(a_later_versions_struct_is_taken_if_its_new_fields_are_0),
      cmocka_unit_test(other_files_are_refused),
      cmocka_unit_test(it_computes_what_the_plain_engine_does),
      cmocka_unit_test(outputs_may_be_inputs_or_stored),
      cmocka_unit_test(an_output_may_have_an_inputs_buffer),
      cmocka_unit_test(steps_memory_and_evaluated_nodes_are_told),
      cmocka_unit_test(every_value_can_be_observed),
      cmocka_unit_test(what_it_cannot_run_is_said),
      cmocka_unit_test(a_node_is_asked_about_with_open_shapes),
      cmocka_unit_test(a_plan_is_asked_about_with_open_shapes),
      cmocka_unit_test(more_than_the_budget_is_refused),
      cmocka_unit_test(what_cannot_be_true_is_found),
      cmocka_unit_test(an_interrupt_ends_a_run),
      cmocka_unit_test(a_failed_allocation_is_said),
      cmocka_unit_test(a_failed_allocation_of_loading_is_said),
      cmocka_unit_test(training_steps_update_weights_as_the_plain_engine),
      cmocka_unit_test(a_failed_update_is_said),
  };
  return cmocka_run_group_tests(tests, load_all, NULL);
}
