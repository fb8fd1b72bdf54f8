/* SPDX-License-Identifier: Apache-2.0
 * Quantization at run time: which layers, without samples and with them, within a limit, and that a
 * file whose network cannot be quantized is as it was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "onnx/edit.h"
#include "quantize/quantize.h"
#include "support/digits_samples.h"

enum { CLASSES = 10 };

static lac_status quantize(fixture *f, bool samples, const laci_quantize_limit *limit,
                           laci_quantization **made, lac_error *err) {
  const laci_quantize_options how = {.form = LACI_QUANTIZE_DYNAMIC,
                                     .samples = samples ? &f->samples : NULL,
                                     .limit = limit,
                                     .pool = f->pool};
  const laci_weighted_graph from = {f->model->graph, NULL};
  return laci_quantize(&from, f->model->file, &how, made, err);
}

static int count_nodes(const laci_graph *graph, const char *type) {
  int n = 0;
  for (int k = 0; k < graph->n_nodes; k++) n += laci_node_is(&graph->nodes[k], type);
  return n;
}

static void needs_no_samples(void **state) {
  (void)state;
  fixture f;
  laci_quantization *made;
  lac_error err = {0};
  setup(&f, 1);
  assert_int_equal(laci_quantize_check(f.model->graph, f.model->file, LACI_QUANTIZE_DYNAMIC, &err),
                   LAC_OK);
  if (quantize(&f, false, NULL, &made, &err)) fail_msg("%s", err.text);
  assert_int_equal(made->n_layers, 10);
  assert_int_equal(made->n_quantized, 1);
  assert_int_equal(made->n_values, 0);
  assert_string_equal(made->outputs_reason, "there are no samples");
  for (int l = 0; l < made->n_layers; l++) {
    const laci_quantized_layer *layer = &made->layers[l];
    const bool is_conv = strcmp(layer->op, "Conv") == 0;
    assert_int_equal(layer->reason != NULL, is_conv);
    if (is_conv) assert_non_null(strstr(layer->reason, "slower than one of floats"));
    else assert_true(layer->weight_error < 1e-3 && layer->scale_low > 0 && !layer->bias);
  }
  assert_int_equal(count_nodes(made->graph, "Conv"), 9);
  assert_int_equal(count_nodes(made->graph, "Gemm"), 0);
  assert_int_equal(count_nodes(made->graph, "DynamicQuantizeLinear"), 1);
  assert_int_equal(count_nodes(made->graph, "MatMulInteger"), 1);
  laci_quantization_destroy(made);
  teardown(&f);
}

/* The integers of a Gemm's weight are transposed in the file. */
static void integers_are_those_of_the_weight(void **state) {
  (void)state;
  fixture f;
  laci_quantization *made;
  lac_error err = {0};
  setup(&f, 1);
  if (quantize(&f, false, NULL, &made, &err)) fail_msg("%s", err.text);
  const laci_graph *before = f.model->graph, *after = made->graph;
  const int from = laci_graph_find_value(before, "fc.weight"),
            to = laci_graph_find_value(after, "fc.weight_quantized"),
            by = laci_graph_find_value(after, "fc.weight_scale");
  assert_true(from >= 0 && to >= 0 && by >= 0);
  assert_int_equal(laci_graph_find_value(after, "fc.weight"), -1);
  const laci_stored *w = &before->stored[before->values[from].stored],
                    *q = &after->stored[after->values[to].stored],
                    *s = &after->stored[after->values[by].stored];
  const int64_t n_terms = w->shape.dims[1];
  assert_int_equal(q->shape.dims[0], n_terms);
  assert_int_equal(q->shape.dims[1], CLASSES);
  for (int64_t c = 0; c < CLASSES; c++) {
    float scale;
    memcpy(&scale, s->bytes + c * (int64_t)sizeof scale, sizeof scale);
    for (int64_t t = 0; t < n_terms; t++) {
      float x;
      memcpy(&x, w->bytes + (c * n_terms + t) * (int64_t)sizeof x, sizeof x);
      const float away = x - (float)(int8_t)q->bytes[t * CLASSES + c] * scale;
      assert_true(away <= 0.5001f * scale && away >= -0.5001f * scale);
    }
  }
  laci_quantization_destroy(made);
  teardown(&f);
}

static void outputs_are_compared_on_samples(void **state) {
  (void)state;
  fixture f;
  laci_quantization *made;
  lac_error err = {0};
  setup(&f, 1);
  if (quantize(&f, true, NULL, &made, &err)) fail_msg("%s", err.text);
  assert_null(made->outputs_reason);
  assert_int_equal(made->n_held_back, DIGITS_COUNT / 2);
  assert_int_equal(made->outputs.n_samples, DIGITS_COUNT / 2);
  assert_true(made->outputs.relative > 0 && made->outputs.relative < 1e-3);
  laci_quantization_destroy(made);
  teardown(&f);
}

/* A loss that is the number of products of integers. */
static lac_status count_products(const void *context, const laci_weighted_graph *quantized,
                                 double *loss, lac_error *err) {
  (void)context, (void)err;
  *loss = count_nodes(quantized->graph, "MatMulInteger");
  return LAC_OK;
}

/* The file is the same after a failure: it can be quantized as before. */
static void a_limit_holds(void **state) {
  (void)state;
  fixture f;
  const laci_quantize_limit one = {1, count_products, NULL}, none = {0.5, count_products, NULL};
  laci_quantization *made = NULL;
  lac_error err = {0};
  setup(&f, 1);
  assert_int_equal(quantize(&f, true, &none, &made, &err), LAC_BAD_VALUE);
  assert_null(made);
  assert_non_null(strstr(err.text, "no layer can be quantized without a loss above 0.5"));
  if (quantize(&f, true, &one, &made, &err)) fail_msg("%s", err.text);
  assert_true(made->loss == 1 && made->n_quantized == 1);
  laci_quantization_destroy(made);
  teardown(&f);
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  fixture f;
  setup(&f, 1);
  for (long at = 1;; at++) {
    lac_error err = {0};
    laci_quantization *made = NULL;
    laci_memory_fail_from(at);
    lac_status st = quantize(&f, false, NULL, &made, &err);
    const bool pending = laci_memory_is_failure_pending();
    laci_memory_fail_from(0);
    laci_quantization_destroy(made);
    if (pending) {
      assert_int_equal(st, LAC_OK);
      break;
    }
    assert_int_equal(st, LAC_NO_MEMORY);
  }
  teardown(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(needs_no_samples),
      cmocka_unit_test(integers_are_those_of_the_weight),
      cmocka_unit_test(outputs_are_compared_on_samples),
      cmocka_unit_test(a_limit_holds),
      cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
