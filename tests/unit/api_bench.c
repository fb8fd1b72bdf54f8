/* SPDX-License-Identifier: Apache-2.0
 * lac_bench: what it reports of a network, another batch, what it refuses, memory. Times themselves
 * are only looked at for being there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "api/bench/bench_in.h"
#include "base/memory.h"
#include "engine/engine.h"
#include "graph/infer.h"
#include "lacuna/bench.h"
#include "lacuna/log.h"
#include "lacuna/prune.h"
#include "support/graph_build.h"
#include "tensor/buf.h"

#define DIGITS LAC_SOURCE_DIR "/examples/digits/digits.onnx"

static lac_model *load(void) {
  lac_model *model;
  lac_error err = {0};
  if (lac_model_load(DIGITS, NULL, &model, &err)) fail_msg("%s", err.text);
  return model;
}

static lac_bench_options few_runs(void) {
  lac_bench_options options = lac_bench_options_default();
  options.run.threads = 1;
  options.runs = 4;
  return options;
}

static lac_bench_result *bench(lac_model *model, const lac_bench_options *options) {
  lac_bench_result *result = NULL;
  lac_error err = {0};
  if (lac_bench(model, options, &result, &err)) fail_msg("%s", err.text);
  return result;
}

static void reports_where_the_time_goes(void **state) {
  (void)state;
  lac_model *model = load();
  lac_bench_options options = few_runs();
  options.batch = 3;
  lac_bench_result *r = bench(model, &options);
  assert_int_equal(r->batch, 3);
  assert_int_equal(r->fixed_batch, 0);
  assert_int_equal(r->runs, 4);
  assert_int_equal(r->threads, 1);
  assert_true(r->dense.min > 0 && r->dense.min <= r->dense.median && r->items_per_second > 0);
  assert_true(r->peak_flops > 0 && r->read_bytes > 0 && r->weight_bytes > 0 && r->arena_bytes > 0);
  assert_true(r->plan_seconds > 0 && r->first_seconds > 0);
  assert_false(r->has_sparse);
  assert_true(r->n_sparse == 0 && r->n_dense_layers == 0 && r->dense_plan_seconds == 0);
  double seconds = 0, by_kind = 0;
  int steps = 0;
  for (int at = 0; at < r->n_layers; at++) {
    assert_true(r->layers[at].name[0] && r->layers[at].op[0] && r->layers[at].kernel[0]);
    seconds += r->layers[at].seconds;
  }
  for (int at = 0; at < r->n_kinds; at++) {
    by_kind += r->kinds[at].seconds;
    steps += r->kinds[at].n_steps;
    assert_true(at == 0 || r->kinds[at].seconds <= r->kinds[at - 1].seconds);
  }
  assert_int_equal(steps, r->n_layers);
  assert_true(seconds > 0 && seconds <= r->dense.min);
  assert_true(by_kind > 0.999 * seconds && by_kind < 1.001 * seconds);
  lac_bench_result_destroy(r);
  lac_model_destroy(model);
}

static void json_has_the_promised_fields(void **state) {
  (void)state;
  lac_model *model = load();
  lac_bench_options options = few_runs();
  lac_bench_result *r = bench(model, &options);
  char *text;
  lac_error err = {0};
  assert_int_equal(lac_bench_json(r, &text, &err), LAC_OK);
  json_t *root = json_loads(text, 0, NULL);
  assert_non_null(root);
  assert_string_equal(json_string_value(json_object_get(root, "verb")), "bench");
  assert_true(json_is_null(json_object_get(root, "sparse_ms")));
  assert_true(json_number_value(json_object_get(json_object_get(root, "dense_ms"), "min")) > 0);
  static const char *const numbers[] = {"batch", "threads", "images_per_second", "peak_gflops"};
  for (size_t at = 0; at < sizeof numbers / sizeof *numbers; at++) {
    assert_true(json_number_value(json_object_get(root, numbers[at])) > 0);
  }
  json_t *layer = json_array_get(json_object_get(root, "layers"), 0);
  assert_true(json_is_string(json_object_get(layer, "name")));
  assert_true(json_is_string(json_object_get(layer, "kernel")));
  static const char *const fields[] = {"dense_ms", "ms", "gflops"};
  for (size_t at = 0; at < sizeof fields / sizeof *fields; at++) {
    assert_true(json_number_value(json_object_get(layer, fields[at])) > 0);
  }
  json_decref(root);
  lac_text_free(text);
  lac_bench_result_destroy(r);
  lac_model_destroy(model);
}

static void pruned_layers_are_seen(void **state) {
  (void)state;
  lac_model *model = load();
  lac_options prune = lac_options_default();
  lac_report *report;
  lac_error err = {0};
  prune.permute = prune.verify = false;
  prune.threads = 1;
  if (lac_prune(model, &prune, &report, &err)) fail_msg("%s", err.text);
  lac_bench_options options = few_runs();
  lac_bench_result *r = bench(model, &options);
  int n = 0;
  for (int at = 0; at < r->n_layers; at++) n += r->layers[at].holds_pattern;
  assert_int_equal(r->n_holding, report->summary.pruned);
  assert_int_equal(n, r->n_holding);
  lac_bench_result_destroy(r);
  lac_report_destroy(report);
  lac_model_destroy(model);
}

/* Fused differently: "b" is two steps here and one there, "c" the reverse, "d" is part of
 * another step, and reorders are rows of their own. */
static void dense_steps_are_matched_by_their_node(void **state) {
  (void)state;
  lac_bench_layer rows[] = {
      {.name = "a"}, {.name = "b"}, {.name = "b"}, {.name = "c (reorder)"}, {.name = "c"}};
  static const lac_bench_layer dense[] = {{.name = "a", .seconds = 1, .kernel = "gemm"},
                                          {.name = "b", .seconds = 2, .kernel = "jit"},
                                          {.name = "c", .seconds = 4, .kernel = "first"},
                                          {.name = "c", .seconds = 8, .kernel = "second"},
                                          {.name = "d (reorder)", .seconds = 16, .kernel = "own"},
                                          {.name = "d", .seconds = 32, .kernel = "jit"}};
  lac_bench_result r = {.layers = rows, .n_layers = 5, .dense_layers = dense, .n_dense_layers = 6};
  laci_bench_add_dense_times(&r, rows);
  static const double wanted[] = {1, 2, 0, 0, 12};
  static const char *const kernels[] = {"gemm", "jit", NULL, NULL, "first"};
  for (int at = 0; at < r.n_layers; at++) {
    assert_true(rows[at].dense_seconds == wanted[at]);
    if (!kernels[at]) assert_null(rows[at].dense_kernel);
    else assert_string_equal(rows[at].dense_kernel, kernels[at]);
  }
  assert_true(r.dense_rest_seconds == 48);
}

static void refuses_what_makes_no_sense(void **state) {
  (void)state;
  lac_model *model = load();
  lac_bench_result *r;
  lac_error err = {0};
  const lac_engine_shape unknown = {.name = "nobody", .rank = 1, .shape = {1}};
  const lac_engine_shape wrong = {.name = "image", .rank = 4, .shape = {1, 2, 8, 8}};
  const struct {
    lac_bench_options options;
    lac_status status;
  } cases[] = {
      {{.size = sizeof(lac_bench_options), .run.dtype = LAC_DTYPE_F16, .runs = 1},
       LAC_BAD_ARGUMENT},
      {{.size = sizeof(lac_bench_options), .run.dtype = LAC_DTYPE_F32, .runs = 0},
       LAC_BAD_ARGUMENT},
      {{.size = sizeof(lac_bench_options), .run.dtype = LAC_DTYPE_F32, .runs = 10001},
       LAC_BAD_ARGUMENT},
      {{.size = sizeof(lac_bench_options), .run.dtype = LAC_DTYPE_F32, .runs = 1, .batch = -1},
       LAC_BAD_ARGUMENT},
      {{.size = sizeof(lac_bench_options), .run.dtype = LAC_DTYPE_F32, .runs = 1, .batch = 65537},
       LAC_BAD_ARGUMENT},
      {{.size = sizeof(lac_bench_options), .run.dtype = LAC_DTYPE_F32, .runs = 1, .seconds = -1},
       LAC_BAD_ARGUMENT},
      {{.size = sizeof(lac_bench_options), .run.dtype = LAC_DTYPE_F32, .runs = 1, .n_shapes = 1},
       LAC_BAD_ARGUMENT},
      {{.size = sizeof(lac_bench_options), .run.dtype = LAC_DTYPE_F32, .runs = 1, .n = 4, .m = 4},
       LAC_BAD_ARGUMENT},
      {{.size = sizeof(lac_bench_options),
        .run.dtype = LAC_DTYPE_F32,
        .runs = 1,
        .shapes = &unknown,
        .n_shapes = 1,
        .n = 2,
        .m = 4},
       LAC_NOT_FOUND},
      {{.size = sizeof(lac_bench_options),
        .run.dtype = LAC_DTYPE_F32,
        .runs = 1,
        .shapes = &wrong,
        .n_shapes = 1,
        .n = 2,
        .m = 4},
       LAC_BAD_SHAPE},
  };
  for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
    lac_status st = lac_bench(model, &cases[at].options, &r, &err);
    if (st != cases[at].status) fail_msg("case %zu: %d %s", at, (int)st, err.text);
    assert_null(r);
    assert_true(err.text[0]);
  }
  assert_int_equal(lac_bench_json(NULL, (char *[]){NULL}, &err), LAC_BAD_ARGUMENT);
  assert_int_equal(lac_bench_plot(NULL, "a.svg", false, NULL, &err), LAC_BAD_ARGUMENT);
  lac_model_destroy(model);
}

/* ---- Another batch ---- */

static const char reshaping[] =
    "input x 1x8x4x4\nstored to 2 i64 = 1 -1\nstored w 128x5\nr = Reshape(x, to)\n"
    "g = Gemm(r, w)\noutput g\n";

static laci_graph *read_net(const char *text) {
  laci_graph *graph = NULL;
  lac_error err = {0};
  if (net_read(text, &graph, &err)) fail_msg("%s", err.text);
  if (laci_graph_infer(graph, NULL, 0, &err)) fail_msg("%s", err.text);
  return graph;
}

static void a_fixed_batch_is_changed_and_put_back(void **state) {
  (void)state;
  laci_graph *graph = read_net(reshaping);
  lac_bench_options options = {.batch = 6};
  laci_rebatch batch;
  laci_engine *engine;
  const laci_engine_port *ports;
  lac_error err = {0};
  const uint8_t *before = graph->stored[0].bytes;
  assert_true(laci_rebatch_is_needed(graph, &options));
  if (laci_rebatch_begin(graph, &options, &batch, &err)) fail_msg("%s", err.text);
  assert_int_equal(batch.from, 1);
  laci_engine_options o = {.threads = 1, .shapes = batch.shapes, .n_shapes = batch.n_shapes};
  if (laci_engine_create(graph, &o, &engine, &err)) fail_msg("%s", err.text);
  if (laci_rebatch_check_outputs(&batch, engine, &err)) fail_msg("%s", err.text);
  assert_int_equal(laci_engine_outputs(engine, &ports), 1);
  assert_int_equal(ports[0].type.shape.dims[0], 6);
  assert_int_equal(ports[0].type.shape.dims[1], 5);
  laci_engine_destroy(engine);
  laci_rebatch_undo(&batch);
  assert_ptr_equal(graph->stored[0].bytes, before);
  assert_int_equal(graph->values[graph->inputs[0]].type.shape.dims[0], 1);
  laci_graph_destroy(graph);
}

static void the_files_own_batch_changes_nothing(void **state) {
  (void)state;
  laci_graph *graph = read_net(reshaping);
  for (int wanted = 0; wanted < 2; wanted++) {
    lac_bench_options options = {.batch = wanted};
    laci_rebatch batch;
    lac_error err = {0};
    assert_false(laci_rebatch_is_needed(graph, &options));
    assert_int_equal(laci_rebatch_begin(graph, &options, &batch, &err), LAC_OK);
    assert_int_equal(batch.from, 0);
    laci_rebatch_undo(&batch);
  }
  laci_graph_destroy(graph);
}

static void a_batch_inside_another_axis_is_refused_by_name(void **state) {
  (void)state;
  laci_graph *graph = read_net(
      "input x 1x8x4x4\nstored to 2 i64 = 8 16\nr = Reshape(x, to) name=\"fold\"\noutput r\n");
  lac_bench_options options = {.batch = 3};
  laci_rebatch batch;
  laci_engine *engine;
  lac_error err = {0};
  assert_int_equal(laci_rebatch_begin(graph, &options, &batch, &err), LAC_OK);
  laci_engine_options o = {.threads = 1, .shapes = batch.shapes, .n_shapes = batch.n_shapes};
  assert_int_equal(laci_engine_create(graph, &o, &engine, &err), LAC_BAD_SHAPE);
  assert_non_null(strstr(err.text, "fold"));
  laci_rebatch_undo(&batch);
  laci_graph_destroy(graph);
}

static void an_output_that_keeps_the_old_batch_is_refused(void **state) {
  (void)state;
  laci_graph *graph = read_net(
      "input x 1x8\nstored to 2 i64 = -1 8\nstored axes 1 i64 = 0\n"
      "s = ReduceSum(x, axes) keepdims=1\noutput s\n");
  lac_bench_options options = {.batch = 3};
  laci_rebatch batch;
  laci_engine *engine;
  lac_error err = {0};
  assert_int_equal(laci_rebatch_begin(graph, &options, &batch, &err), LAC_OK);
  laci_engine_options o = {.threads = 1, .shapes = batch.shapes, .n_shapes = batch.n_shapes};
  if (laci_engine_create(graph, &o, &engine, &err)) fail_msg("%s", err.text);
  assert_int_equal(laci_rebatch_check_outputs(&batch, engine, &err), LAC_BAD_SHAPE);
  assert_non_null(strstr(err.text, "'s'"));
  laci_engine_destroy(engine);
  laci_rebatch_undo(&batch);
  laci_graph_destroy(graph);
}

static void inputs_without_a_common_batch_are_refused(void **state) {
  (void)state;
  laci_graph *graph = read_net("input x 1x8\ninput y 2x8\na = Add(x, y)\noutput a\n");
  lac_bench_options options = {.batch = 4};
  laci_rebatch batch;
  lac_error err = {0};
  assert_int_equal(laci_rebatch_begin(graph, &options, &batch, &err), LAC_BAD_SHAPE);
  assert_non_null(strstr(err.text, "'x'"));
  laci_rebatch_undo(&batch);
  laci_graph_destroy(graph);
}

static void open_sizes_must_be_given(void **state) {
  (void)state;
  laci_graph *graph;
  lac_bench_options options = {.batch = 4};
  laci_rebatch batch;
  lac_error err = {0};
  if (net_read("input x -1x-2x4\nr = Relu(x)\noutput r\n", &graph, &err)) fail_msg("%s", err.text);
  assert_int_equal(laci_rebatch_begin(graph, &options, &batch, &err), LAC_BAD_SHAPE);
  assert_non_null(strstr(err.text, "its open sizes must be given"));
  laci_rebatch_undo(&batch);
  const lac_engine_shape shape = {.name = "x", .rank = 3, .shape = {-1, 2, -1}};
  options.shapes = &shape;
  options.n_shapes = 1;
  assert_int_equal(laci_rebatch_begin(graph, &options, &batch, &err), LAC_OK);
  const laci_shape wanted = laci_shape_of(3, (const int64_t[]){4, 2, 4});
  assert_true(laci_shape_equal(&batch.shapes[0].shape, &wanted));
  laci_rebatch_undo(&batch);
  laci_graph_destroy(graph);
}

/* "-1" and "-2" mean the same size wherever they are. */
static void a_size_is_given_once(void **state) {
  (void)state;
  laci_graph *graph;
  const lac_engine_shape shape = {.name = "x", .rank = 3, .shape = {5, 2, 4}};
  lac_bench_options options = {.shapes = &shape, .n_shapes = 1};
  laci_rebatch batch;
  lac_error err = {0};
  if (net_read("input x -1x-2x4\ninput y -1x4x-2\nr = Relu(x)\ns = Relu(y)\noutput r\noutput s\n",
               &graph, &err)) {
    fail_msg("%s", err.text);
  }
  assert_int_equal(laci_rebatch_begin(graph, &options, &batch, &err), LAC_OK);
  laci_shape wanted = laci_shape_of(3, (const int64_t[]){5, 4, 2});
  assert_true(laci_shape_equal(&batch.shapes[1].shape, &wanted));
  laci_rebatch_undo(&batch);
  options.batch = 3; /* in the place of 5, for all */
  assert_int_equal(laci_rebatch_begin(graph, &options, &batch, &err), LAC_OK);
  wanted.dims[0] = 3;
  assert_true(laci_shape_equal(&batch.shapes[1].shape, &wanted));
  laci_rebatch_undo(&batch);
  laci_graph_destroy(graph);
}

/* ---- Ends before its time ---- */

static void an_interrupt_ends_it(void **state) {
  (void)state;
  lac_model *model = load();
  lac_bench_options options = few_runs();
  lac_bench_result *r;
  lac_error err = {0};
  lac_interrupt(true);
  assert_int_equal(lac_bench(model, &options, &r, &err), LAC_INTERRUPTED);
  lac_interrupt(false);
  assert_null(r);
  lac_model_destroy(model);
}

static void every_failed_allocation_is_told(void **state) {
  (void)state;
  lac_model *model = load();
  lac_bench_options options = few_runs();
  options.runs = 1;
  lac_status st = LAC_NO_MEMORY;
  for (long at = 1; st; at += 1 + at / 16) {
    lac_bench_result *r = NULL;
    lac_error err = {0};
    laci_memory_fail_from(at);
    st = lac_bench(model, &options, &r, &err);
    laci_memory_fail_from(0);
    if (st && st != LAC_NO_MEMORY) fail_msg("allocation %ld: %s", at, err.text);
    lac_bench_result_destroy(r);
    assert_true(at < 1000000);
  }
  lac_model_destroy(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reports_where_the_time_goes),
      cmocka_unit_test(json_has_the_promised_fields),
      cmocka_unit_test(pruned_layers_are_seen),
      cmocka_unit_test(dense_steps_are_matched_by_their_node),
      cmocka_unit_test(refuses_what_makes_no_sense),
      cmocka_unit_test(a_fixed_batch_is_changed_and_put_back),
      cmocka_unit_test(the_files_own_batch_changes_nothing),
      cmocka_unit_test(a_batch_inside_another_axis_is_refused_by_name),
      cmocka_unit_test(an_output_that_keeps_the_old_batch_is_refused),
      cmocka_unit_test(inputs_without_a_common_batch_are_refused),
      cmocka_unit_test(open_sizes_must_be_given),
      cmocka_unit_test(a_size_is_given_once),
      cmocka_unit_test(an_interrupt_ends_it),
      cmocka_unit_test(every_failed_allocation_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
