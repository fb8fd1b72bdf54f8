/* SPDX-License-Identifier: Apache-2.0
 * arch: every network has the known number of parameters and the known shapes, weights of the
 * wanted size, and comes back from an ONNX file as it was. */
#include "arch/arch.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "graph/graph.h"
#include "onnx/onnx.h"
#include "tensor/shape.h"

static laci_graph *build(const laci_arch_options *options) {
  laci_graph *graph = NULL;
  lac_error err = {0};
  if (laci_arch_build(options, &graph, &err)) fail_msg("%s: %s", options->name, err.text);
  return graph;
}

/* What is trained: neither statistics nor integers. */
static int64_t count_parameters(const laci_graph *graph) {
  int64_t n = 0;
  for (int at = 0; at < graph->n_stored; at++) {
    const laci_stored *s = &graph->stored[at];
    bool is_trained = s->dtype == LAC_DTYPE_F32 && !strstr(s->name, ".running_");
    if (is_trained) n += laci_shape_count(&s->shape);
  }
  return n;
}

static const laci_stored *find_stored(const laci_graph *graph, const char *name) {
  int value = laci_graph_find_value(graph, name);
  if (value < 0 || graph->values[value].stored < 0) fail_msg("no tensor '%s'", name);
  return &graph->stored[graph->values[value].stored];
}

static const struct {
  laci_arch_options options;
  int64_t parameters;
  int convolutions;
} cases[] = {
    {{.name = "resnet18"}, 11689512, 20},
    {{.name = "resnet34"}, 21797672, 36},
    {{.name = "resnet50"}, 25557032, 53},
    {{.name = "resnet101"}, 44549160, 104},
    {{.name = "resnet152"}, 60192808, 155},
    {{.name = "resnext50_32x4d"}, 25028904, 53},
    {{.name = "resnext101_32x4d"}, 44177704, 104},
    {{.name = "cifar-resnet20"}, 269722, 19},
    {{.name = "cifar-resnet32"}, 464154, 31},
    {{.name = "cifar-resnet44"}, 658586, 43},
    {{.name = "cifar-resnet56"}, 853018, 55},
    {{.name = "cifar-resnet110"}, 1727962, 109},
    {{.name = "cifar-resnet20", .conv_shortcut = true}, 272474, 21},
    {{.name = "cifar-resnet56", .n_classes = 100}, 858868, 55},
    {{.name = "digits"}, 96938, 9},
};
enum { N_CASES = sizeof cases / sizeof *cases };

static void expect_shapes(const laci_graph *graph) {
  const laci_value *image = &graph->values[graph->inputs[0]];
  const laci_value *scores = &graph->values[graph->outputs[0]];
  assert_int_equal(graph->n_inputs, 1);
  assert_string_equal(image->name, "image");
  assert_string_equal(scores->name, "scores");
  assert_int_equal(scores->type.shape.rank, 2);
  assert_int_equal(scores->type.shape.dims[0], image->type.shape.dims[0]);
  for (int at = 0; at < graph->n_values; at++) {
    const laci_shape *shape = &graph->values[at].type.shape;
    assert_true(shape->rank > 0);
    for (int axis = 1; axis < shape->rank; axis++) assert_true(shape->dims[axis] > 0);
  }
}

/* One test, since the large networks take their time to fill. */
static void networks_have_the_known_parameters_and_shapes(void **state) {
  (void)state;
  for (int k = 0; k < N_CASES; k++) {
    laci_graph *graph = build(&cases[k].options);
    int n = 0;
    for (int at = 0; at < graph->n_nodes; at++) {
      assert_non_null(graph->nodes[at].op);
      n += strcmp(graph->nodes[at].type, "Conv") == 0;
    }
    if (count_parameters(graph) != cases[k].parameters) {
      fail_msg("%s: %lld", cases[k].options.name, (long long)count_parameters(graph));
    }
    assert_int_equal(n, cases[k].convolutions);
    expect_shapes(graph);
    laci_graph_destroy(graph);
  }
}

static double deviation(const laci_stored *s, double *mean) {
  const float *x = (const float *)(const void *)s->bytes;
  int64_t n = laci_shape_count(&s->shape);
  double sum = 0, squares = 0;
  for (int64_t k = 0; k < n; k++) sum += (double)x[k];
  for (int64_t k = 0; k < n; k++) {
    squares += ((double)x[k] - sum / (double)n) * ((double)x[k] - sum / (double)n);
  }
  *mean = sum / (double)n;
  return sqrt(squares / (double)n);
}

static void expect_deviation(const laci_graph *graph, const char *name, double wanted) {
  const laci_stored *s = find_stored(graph, name);
  double mean, found = deviation(s, &mean), n = (double)laci_shape_count(&s->shape);
  if (!(fabs(found / wanted - 1) < 5 / sqrt(2 * n)) || !(fabs(mean) < 5 * wanted / sqrt(n))) {
    fail_msg("%s: deviation %g, wanted %g; mean %g", name, found, wanted, mean);
  }
}

static float first_of(const laci_graph *graph, const char *name) {
  float x;
  memcpy(&x, find_stored(graph, name)->bytes, sizeof x);
  return x;
}

static void weights_begin_as_in_the_references(void **state) {
  (void)state;
  laci_graph *graph = build(&(laci_arch_options){.name = "resnet50", .seed = 3});
  expect_deviation(graph, "conv1.weight", sqrt(2.0 / (64 * 49)));
  expect_deviation(graph, "layer2.0.conv2.weight", sqrt(2.0 / (128 * 9)));
  expect_deviation(graph, "layer3.0.downsample.0.weight", sqrt(2.0 / 1024));
  expect_deviation(graph, "fc.weight", 1 / sqrt(2048.0 * 3));
  assert_true(first_of(graph, "layer1.0.bn1.weight") == 1);
  assert_true(first_of(graph, "layer1.0.bn3.weight") == 0);
  assert_true(first_of(graph, "layer1.0.downsample.1.weight") == 1);
  assert_true(first_of(graph, "bn1.running_var") == 1);
  assert_true(first_of(graph, "bn1.running_mean") == 0);
  laci_graph_destroy(graph);
  graph = build(&(laci_arch_options){.name = "cifar-resnet20"});
  expect_deviation(graph, "layer2.0.conv1.weight", sqrt(2.0 / (16 * 9)));
  assert_true(first_of(graph, "layer1.0.bn2.weight") == 1);
  laci_graph_destroy(graph);
}

static void seeds_choose_the_weights(void **state) {
  (void)state;
  laci_arch_options options = {.name = "digits", .seed = 1};
  laci_graph *a = build(&options), *b = build(&options);
  options.seed = 2;
  laci_graph *c = build(&options);
  for (int at = 0; at < a->n_stored; at++) {
    const laci_stored *x = &a->stored[at];
    assert_memory_equal(x->bytes, b->stored[at].bytes, x->size_bytes);
  }
  const laci_stored *x = find_stored(a, "conv1.weight"), *y = find_stored(c, "conv1.weight");
  assert_memory_not_equal(x->bytes, y->bytes, x->size_bytes);
  y = find_stored(a, "layer1.0.conv1.weight"); /* tensors have streams of their own */
  assert_memory_not_equal(x->bytes, y->bytes, x->size_bytes);
  laci_graph_destroy(a);
  laci_graph_destroy(b);
  laci_graph_destroy(c);
}

static void they_come_back_from_an_onnx_file(void **state) {
  (void)state;
  static const char path[] = "arch_networks_test.onnx";
  for (int k = 0; k < 3; k++) {
    laci_arch_options options = {.name = k < 2 ? "cifar-resnet20" : "digits",
                                 .conv_shortcut = k == 1};
    laci_graph *made = build(&options), *read = NULL;
    laci_onnx *file = NULL;
    lac_error err = {0};
    (void)unlink(path);
    assert_int_equal(laci_onnx_write(made, path, false, &err), LAC_OK);
    assert_int_equal(laci_onnx_write(made, path, false, &err), LAC_EXISTS);
    if (laci_onnx_load(path, &file, &read, &err) || laci_onnx_materialise(file, &err)) {
      fail_msg("%s", err.text);
    }
    assert_int_equal(read->n_nodes, made->n_nodes);
    assert_int_equal(read->n_stored, made->n_stored);
    for (int at = 0; at < made->n_nodes; at++) {
      const laci_node *a = &made->nodes[at], *b = &read->nodes[at];
      assert_string_equal(a->name, b->name);
      assert_string_equal(a->type, b->type);
      assert_int_equal(b->version, 17);
      assert_int_equal(a->n_attrs, b->n_attrs);
    }
    for (int at = 0; at < made->n_stored; at++) {
      const laci_stored *a = &made->stored[at], *b = find_stored(read, a->name);
      assert_true(laci_shape_equal(&a->shape, &b->shape));
      assert_memory_equal(a->bytes, b->bytes, a->size_bytes);
    }
    laci_graph_destroy(read);
    laci_onnx_destroy(file);
    laci_graph_destroy(made);
    (void)unlink(path);
  }
}

static void what_cannot_be_written_is_refused(void **state) {
  (void)state;
  laci_graph *graph = build(&(laci_arch_options){.name = "digits"});
  lac_error err = {0};
  graph->nodes[3].version = 0;
  assert_int_equal(laci_onnx_write(graph, "refused.onnx", false, &err), LAC_UNSUPPORTED);
  graph->nodes[3].version = 16;
  assert_int_equal(laci_onnx_write(graph, "refused.onnx", false, &err), LAC_UNSUPPORTED);
  graph->nodes[3].version = 17;
  graph->values[graph->inputs[0]].type.dtype = LAC_DTYPE_NONE;
  assert_int_equal(laci_onnx_write(graph, "refused.onnx", false, &err), LAC_UNSUPPORTED);
  assert_int_not_equal(access("refused.onnx", F_OK), 0);
  laci_graph_destroy(graph);
}

static void bad_options_are_refused(void **state) {
  (void)state;
  static const struct {
    laci_arch_options options;
    lac_status status;
  } bad[] = {
      {{.name = "resnet51"}, LAC_NOT_FOUND},
      {{.name = "resnet50", .n_classes = -1}, LAC_BAD_ARGUMENT},
      {{.name = "resnet50", .n_classes = 1 << 30}, LAC_BAD_ARGUMENT},
      {{.name = "resnet50", .image_size = 4}, LAC_BAD_ARGUMENT},
      {{.name = "resnet50", .conv_shortcut = true}, LAC_BAD_ARGUMENT},
  };
  for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
    laci_graph *graph = NULL;
    lac_error err = {0};
    assert_int_equal(laci_arch_build(&bad[k].options, &graph, &err), bad[k].status);
    assert_null(graph);
    assert_int_not_equal(err.text[0], 0);
  }
}

static void every_name_has_a_case(void **state) {
  (void)state;
  int n;
  const char *const *names = laci_arch_names(&n);
  for (int k = 0; k < n; k++) {
    int found = 0;
    for (int c = 0; c < N_CASES; c++) found += strcmp(cases[c].options.name, names[k]) == 0;
    assert_true(found > 0);
  }
}

static void without_memory_it_fails_cleanly(void **state) {
  (void)state;
  int n_failed = 0;
  for (long n = 1; n < 400; n += 7) {
    laci_graph *graph = NULL;
    laci_memory_fail_from(n);
    lac_status st = laci_arch_build(&(laci_arch_options){.name = "digits"}, &graph, NULL);
    if (!st) st = laci_onnx_write(graph, "memory.onnx", true, NULL);
    laci_memory_fail_from(0);
    assert_true(st == LAC_OK || st == LAC_NO_MEMORY);
    n_failed += st != LAC_OK;
    laci_graph_destroy(graph);
  }
  assert_true(n_failed > 0);
  (void)unlink("memory.onnx");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(networks_have_the_known_parameters_and_shapes),
      cmocka_unit_test(every_name_has_a_case),
      cmocka_unit_test(weights_begin_as_in_the_references),
      cmocka_unit_test(seeds_choose_the_weights),
      cmocka_unit_test(they_come_back_from_an_onnx_file),
      cmocka_unit_test(what_cannot_be_written_is_refused),
      cmocka_unit_test(bad_options_are_refused),
      cmocka_unit_test(without_memory_it_fails_cleanly),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
