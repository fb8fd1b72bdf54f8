/* SPDX-License-Identifier: Apache-2.0
 * Every value of whole networks, as the fast engine shows it, against the plain engine's: all in
 * one plan, and a few at a time, so that nodes between are fused as ever. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "arch/arch.h"
#include "base/memory.h"
#include "base/rng.h"
#include "engine/engine.h"
#include "onnx/onnx.h"
#include "support/block_nets.h"
#include "support/graph_run.h"
#include "tensor/buf.h"

/* What an engine showed of every value. */
typedef struct sight {
  int n_values;
  void **contents; /* [n_values]; NULL: not shown */
  laci_engine_port *ports;
  int n_shown;
} sight;

static sight sight_of(const laci_graph *graph) {
  size_t n = (size_t)graph->n_values;
  return (sight){.n_values = graph->n_values,
                 .contents = laci_alloc(n, sizeof(void *)),
                 .ports = laci_alloc(n, sizeof(laci_engine_port))};
}

static void sight_release(sight *s) {
  for (int v = 0; v < s->n_values; v++) {
    laci_free(s->contents[v]);
    s->contents[v] = NULL;
  }
  s->n_shown = 0;
}

static void sight_clear(sight *s) {
  sight_release(s);
  laci_free(s->contents);
  laci_free(s->ports);
}

static lac_status see(void *context, int value, const laci_engine_port *port, const void *content,
                      lac_error *err) {
  (void)err;
  sight *s = context;
  if (s->contents[value]) fail_msg("%s is shown twice", port->name);
  s->contents[value] = laci_alloc(port->size_bytes, 1);
  memcpy(s->contents[value], content, port->size_bytes);
  s->ports[value] = *port;
  s->n_shown++;
  return LAC_OK;
}

/* Of the values that are read or are outputs, weights included, every `stride`-th. */
static int choose(const laci_graph *graph, int first, int stride, int *values) {
  int n = 0, at = 0;
  for (int v = 0; v < graph->n_values; v++) {
    const laci_value *value = &graph->values[v];
    bool used = value->n_readers > 0 || value->is_output;
    if (!used) continue;
    if (at++ % stride == first) values[n++] = v;
  }
  return n;
}

typedef struct run_options {
  const char *engine;
  const laci_input_shape *shapes;
  int n_shapes;
} run_options;

static void *input_of(const laci_engine_port *port, int at) {
  int64_t n = laci_shape_count(&port->type.shape);
  void *bytes = laci_alloc(port->size_bytes, 1);
  for (int64_t i = 0; i < n; i++) {
    double x = laci_rng_unit_interval(7, (uint64_t)at, (uint64_t)i);
    if (port->type.dtype == LAC_DTYPE_F32) ((float *)bytes)[i] = (float)(2 * x - 1);
    else ((int64_t *)bytes)[i] = x < 0.5;
  }
  return bytes;
}

static void run(const laci_graph *graph, const run_options *how, const laci_engine_observer *o) {
  enum { MOST = 16 };
  laci_engine *engine;
  const laci_engine_port *in, *out;
  void *inputs[MOST], *outputs[MOST];
  lac_error err = {0};
  const laci_engine_options options = {.engine = how->engine,
                                       .threads = 2,
                                       .shapes = how->shapes,
                                       .n_shapes = how->n_shapes,
                                       .observer = o};
  if (laci_engine_create(graph, &options, &engine, &err)) fail_msg("%s: %s", how->engine, err.text);
  int n_in = laci_engine_inputs(engine, &in), n_out = laci_engine_outputs(engine, &out);
  assert_true(n_in <= MOST && n_out <= MOST);
  for (int at = 0; at < n_in; at++) inputs[at] = input_of(&in[at], at);
  for (int at = 0; at < n_out; at++) outputs[at] = laci_alloc(out[at].size_bytes, 1);
  if (laci_engine_run(engine, (const void *const *)inputs, outputs, &err)) {
    fail_msg("%s: %s", how->engine, err.text);
  }
  for (int at = 0; at < n_in; at++) laci_free(inputs[at]);
  for (int at = 0; at < n_out; at++) laci_free(outputs[at]);
  laci_engine_destroy(engine);
}

static void compare(const char *name, const sight *want, const sight *got) {
  for (int v = 0; v < want->n_values; v++) {
    if (!got->contents[v]) continue;
    const laci_engine_port *port = &got->ports[v];
    assert_true(laci_shape_equal(&port->type.shape, &want->ports[v].type.shape));
    assert_int_equal(port->type.dtype, want->ports[v].type.dtype);
    int64_t n = laci_shape_count(&port->type.shape);
    if (port->type.dtype == LAC_DTYPE_I64) {
      assert_memory_equal(got->contents[v], want->contents[v], port->size_bytes);
      continue;
    }
    const float *a = want->contents[v], *b = got->contents[v];
    double scale = 0, most = 0;
    for (int64_t i = 0; i < n; i++) {
      double d = fabs((double)a[i] - (double)b[i]);
      scale = fmax(scale, fabs((double)a[i]));
      if (!(d <= most)) most = d;
    }
    if (!(most <= 1e-4 * scale)) {
      fail_msg("%s: %s differs by %g, its scale is %g", name, port->name, most, scale);
    }
  }
}

static void check(const char *name, const laci_graph *graph, const laci_input_shape *shapes,
                  int n_shapes) {
  static const int strides[] = {1, 2, 5};
  sight plain = sight_of(graph), fast = sight_of(graph);
  int *values = laci_alloc((size_t)graph->n_values, sizeof *values);
  run_options how = {"plain", shapes, n_shapes};
  laci_engine_observer o = {.values = values, .on_value = see, .context = &plain};
  int n_all = o.n_values = choose(graph, 0, 1, values);
  run(graph, &how, &o);
  assert_int_equal(plain.n_shown, n_all);
  how.engine = "cpu";
  o.context = &fast;
  for (size_t k = 0; k < sizeof strides / sizeof *strides; k++) {
    for (int first = 0; first < strides[k]; first++) {
      o.n_values = choose(graph, first, strides[k], values);
      run(graph, &how, &o);
      assert_int_equal(fast.n_shown, o.n_values);
      compare(name, &plain, &fast);
      sight_release(&fast);
    }
  }
  laci_free(values);
  sight_clear(&plain);
  sight_clear(&fast);
}

static void check_arch(const char *name, int size) {
  lac_error err = {0};
  laci_graph *graph;
  laci_arch_options o = {.name = name, .n_classes = 10, .image_size = size, .seed = 3};
  if (laci_arch_build(&o, &graph, &err)) fail_msg("%s", err.text);
  const laci_value *image = &graph->values[graph->inputs[0]];
  laci_input_shape shape = {image->name, image->type.shape};
  shape.shape.dims[0] = 2;
  check(name, graph, &shape, 1);
  laci_graph_destroy(graph);
}

static void check_blocks(block_kind kind, int n_blocks) {
  static block_text net;
  lac_error err = {0};
  laci_graph *graph;
  block_net(kind, n_blocks, &net);
  if (net_read(net.text, &graph, &err)) fail_msg("%s", err.text);
  check(net.text, graph, NULL, 0);
  laci_graph_destroy(graph);
}

/* ---- Networks ---- */

static void every_value_of_a_trained_resnet56_is_the_plain_engines(void **state) {
  (void)state;
  const char *path = LAC_SOURCE_DIR "/../shared/models/resnet56_cifar10.onnx";
  lac_error err = {0};
  laci_onnx *file;
  laci_graph *graph;
  if (access(path, R_OK) != 0) {
    print_message("skipped: %s is not there\n", path);
    skip();
  }
  if (laci_onnx_load(path, &file, &graph, &err) || laci_onnx_materialise(file, &err)) {
    fail_msg("%s", err.text);
  }
  const laci_value *image = &graph->values[graph->inputs[0]];
  laci_input_shape shape = {image->name, image->type.shape};
  shape.shape.dims[0] = 2;
  check("resnet56", graph, &shape, image->type.shape.dims[0] < 0);
  laci_graph_destroy(graph);
  laci_onnx_destroy(file);
}

static void every_value_of_networks_of_our_own_is_the_plain_engines(void **state) {
  (void)state;
  check_arch("cifar-resnet20", 16);
  check_arch("resnet18", 32);
  check_arch("digits", 8);
}

static void every_value_of_a_small_vit_is_the_plain_engines(void **state) {
  (void)state;
  check_blocks(BLOCK_ATTENTION, 3);
}

static void every_value_of_other_blocks_is_the_plain_engines(void **state) {
  (void)state;
  check_blocks(BLOCK_JOINS, 3);
  check_blocks(BLOCK_GATES, 2);
  check_blocks(BLOCK_BRANCHES, 2);
}

/* ---- The observer itself ---- */

static laci_graph *small(void) {
  lac_error err = {0};
  laci_graph *graph;
  if (net_read("input x 1x16x8x8\nstored w 16x16x3x3\nc = Conv(x, w)\nr = Relu(c)\noutput r\n",
               &graph, &err)) {
    fail_msg("%s", err.text);
  }
  return graph;
}

static void a_plan_without_an_observer_is_what_it_was(void **state) {
  (void)state;
  lac_error err = {0};
  laci_graph *graph = small();
  laci_engine *without, *of_nothing, *of_all;
  int values[8];
  laci_engine_options o = {.threads = 1};
  laci_engine_observer nothing = {.on_value = see}, all = {.values = values, .on_value = see};
  all.n_values = choose(graph, 0, 1, values);
  assert_int_equal(laci_engine_create(graph, &o, &without, &err), LAC_OK);
  o.observer = &nothing;
  assert_int_equal(laci_engine_create(graph, &o, &of_nothing, &err), LAC_OK);
  o.observer = &all;
  assert_int_equal(laci_engine_create(graph, &o, &of_all, &err), LAC_OK);
  assert_string_equal(laci_engine_plan_text(without), laci_engine_plan_text(of_nothing));
  assert_null(strstr(laci_engine_plan_text(without), "observe"));
  assert_non_null(strstr(laci_engine_plan_text(without), "Conv + function"));
  assert_null(strstr(laci_engine_plan_text(of_all), "Conv + function"));
  laci_engine_destroy(without);
  laci_engine_destroy(of_nothing);
  laci_engine_destroy(of_all);
  laci_graph_destroy(graph);
}

static lac_status refuse(void *context, int value, const laci_engine_port *port,
                         const void *content, lac_error *err) {
  (void)context;
  (void)value;
  (void)content;
  (void)err;
  if (err) *err = (lac_error){.status = LAC_INTERRUPTED, .text = "enough"};
  return port->size_bytes > 0 ? LAC_INTERRUPTED : LAC_OK;
}

static void a_failure_of_the_observer_ends_the_run(void **state) {
  (void)state;
  static float x[16 * 64], y[16 * 36];
  laci_graph *graph = small();
  const char *const engines[] = {"plain", "cpu"};
  int value = laci_graph_find_value(graph, "c");
  laci_engine_observer o = {.values = &value, .n_values = 1, .on_value = refuse};
  for (int at = 0; at < 2; at++) {
    lac_error err = {0};
    laci_engine *engine;
    laci_engine_options options = {.engine = engines[at], .threads = 1, .observer = &o};
    assert_int_equal(laci_engine_create(graph, &options, &engine, &err), LAC_OK);
    assert_int_equal(laci_engine_run(engine, (const void *[]){x}, (void *[]){y}, &err),
                     LAC_INTERRUPTED);
    assert_string_equal(err.text, "enough");
    laci_engine_destroy(engine);
  }
  laci_graph_destroy(graph);
}

static void what_cannot_be_observed_is_refused(void **state) {
  (void)state;
  laci_graph *graph = small();
  const char *const engines[] = {"plain", "cpu"};
  int value = graph->n_values;
  for (int at = 0; at < 2; at++) {
    lac_error err = {0};
    laci_engine *engine;
    laci_engine_observer o = {.values = &value, .n_values = 1, .on_value = see};
    laci_engine_options options = {.engine = engines[at], .threads = 1, .observer = &o};
    assert_int_equal(laci_engine_create(graph, &options, &engine, &err), LAC_BAD_ARGUMENT);
    o = (laci_engine_observer){.n_values = 0};
    assert_int_equal(laci_engine_create(graph, &options, &engine, &err), LAC_BAD_ARGUMENT);
  }
  laci_graph_destroy(graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_plan_without_an_observer_is_what_it_was),
      cmocka_unit_test(a_failure_of_the_observer_ends_the_run),
      cmocka_unit_test(what_cannot_be_observed_is_refused),
      cmocka_unit_test(every_value_of_a_small_vit_is_the_plain_engines),
      cmocka_unit_test(every_value_of_other_blocks_is_the_plain_engines),
      cmocka_unit_test(every_value_of_networks_of_our_own_is_the_plain_engines),
      cmocka_unit_test(every_value_of_a_trained_resnet56_is_the_plain_engines),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
