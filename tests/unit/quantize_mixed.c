/* SPDX-License-Identifier: Apache-2.0
 * Quantization within a limit: which layers stay in floats, how many, and that a file whose network
 * cannot be quantized is as it was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "graph/graph.h"
#include "onnx/edit.h"
#include "quantize/quantize.h"
#include "support/digits_samples.h"

/* A loss that is the number of integer weights, times `each`. */
typedef struct counted {
  double each;
  int n_measured;
} counted;

static lac_status count_integer_weights(const void *context, const laci_weighted_graph *quantized,
                                        double *loss, lac_error *err) {
  counted *c = (counted *)(uintptr_t)context;
  (void)err;
  int n = 0;
  for (int s = 0; s < quantized->graph->n_stored; s++) {
    const laci_stored *stored = &quantized->graph->stored[s];
    n += stored->dtype == LAC_DTYPE_I8 && stored->shape.rank > 1;
  }
  c->n_measured++;
  *loss = c->each * n;
  return LAC_OK;
}

static lac_status quantize(fixture *f, counted *c, double most, laci_quantization **made,
                           lac_error *err) {
  const laci_quantize_limit limit = {most, count_integer_weights, c};
  const laci_quantize_options how = {
      .rule = LACI_RANGE_MSE, .samples = &f->samples, .limit = &limit, .pool = f->pool};
  const laci_weighted_graph from = {f->model->graph, NULL};
  return laci_quantize(&from, f->model->file, &how, made, err);
}

/* All layers of a network that keeps to the limit. */
static int count_all_layers(fixture *f) {
  counted c = {.each = 0};
  laci_quantization *made;
  lac_error err = {0};
  if (quantize(f, &c, 0, &made, &err)) fail_msg("%s", err.text);
  assert_int_equal(c.n_measured, 1);
  const int n = made->n_quantized;
  laci_quantization_destroy(made);
  return n;
}

static void layers_of_largest_effect_stay_in_floats(void **state) {
  (void)state;
  fixture f;
  lac_error err = {0};
  setup(&f, 1);
  const int n = count_all_layers(&f);
  assert_true(n > 8);
  for (int most = 1; most < n; most++) {
    counted c = {.each = 1};
    laci_quantization *made;
    double least_of_floats = 1e300, most_of_integers = 0;
    if (quantize(&f, &c, most, &made, &err)) fail_msg("%s", err.text);
    assert_int_equal(made->n_quantized, most);
    assert_true(made->loss == most);
    for (int l = 0; l < made->n_layers; l++) {
      const laci_quantized_layer *layer = &made->layers[l];
      assert_true(layer->effect > 0);
      if (layer->reason) {
        assert_non_null(strstr(layer->reason, "and the loss is limited"));
        least_of_floats = layer->effect < least_of_floats ? layer->effect : least_of_floats;
      } else if (layer->effect > most_of_integers) {
        most_of_integers = layer->effect;
      }
    }
    assert_true(least_of_floats >= most_of_integers);
    for (int v = 0; v < made->n_values; v++)
      assert_true(made->values[v].quantizer.low < made->values[v].quantizer.high);
    assert_true(made->outputs.n_samples > 0);
    laci_quantization_destroy(made);
  }
  teardown(&f);
}

/* The file is the same after a failure: it can be quantized as before. */
static void a_limit_that_no_layer_holds_is_refused(void **state) {
  (void)state;
  fixture f;
  lac_error err = {0};
  counted c = {.each = 1};
  laci_quantization *made = NULL;
  setup(&f, 1);
  const int n = count_all_layers(&f);
  assert_int_equal(quantize(&f, &c, 0.5, &made, &err), LAC_BAD_VALUE);
  assert_null(made);
  assert_non_null(strstr(err.text, "no layer can be quantized without a loss above 0.5"));
  assert_int_equal(count_all_layers(&f), n);
  teardown(&f);
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  fixture f;
  setup(&f, 1);
  for (long at = 1;; at += 1 + at / 8) {
    counted c = {.each = 1};
    lac_error err = {0};
    laci_quantization *made = NULL;
    laci_memory_fail_from(at);
    lac_status st = quantize(&f, &c, 1, &made, &err);
    const bool pending = laci_memory_is_failure_pending();
    laci_memory_fail_from(0);
    if (pending) {
      assert_int_equal(st, LAC_OK);
      laci_quantization_destroy(made);
      break;
    }
    if (st) assert_null(made);
    else laci_quantization_destroy(made);
  }
  teardown(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(layers_of_largest_effect_stay_in_floats),
      cmocka_unit_test(a_limit_that_no_layer_holds_is_refused),
      cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
