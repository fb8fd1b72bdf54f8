/* SPDX-License-Identifier: Apache-2.0
 * Corrected biases of a quantized network: what is left of the mean differences to the network in
 * floats, which layers are corrected, and the same integers for any number of threads. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "calibrate/observe_in.h"
#include "calibrate/sequence.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "onnx/edit.h"
#include "quantize/quantize.h"
#include "support/digits_samples.h"

enum { BATCH = 16, MOST_CHANNELS = 256 };

static laci_quantization *quantize(fixture *f) {
  lac_error err = {0};
  laci_quantization *made;
  const laci_quantize_options how = {
      .rule = LACI_RANGE_MSE, .samples = &f->samples, .pool = f->pool};
  const laci_weighted_graph from = {f->model->graph, NULL};
  if (laci_quantize(&from, f->model->file, &how, &made, &err)) fail_msg("%s", err.text);
  return made;
}

/* ---- Means by their definition ---- */

static lac_status add_to_means(void *context, const laci_observed *seen, lac_error *err) {
  double *mean = context;
  const int64_t channels = seen->shape->dims[1], inner = seen->n / seen->shape->dims[0] / channels;
  (void)err;
  assert_true(channels <= MOST_CHANNELS);
  for (int64_t k = 0; k < seen->n; k++)
    mean[k / inner % channels] +=
        (double)seen->elements[k] / (double)(inner * seen->shape->dims[0]);
  return LAC_OK;
}

/* The mean of each channel of a value over the samples of the first batch. */
static void find_means(fixture *f, const laci_graph *graph, const char *name, double *mean) {
  lac_error err = {0};
  laci_observation *observation;
  const int value = laci_graph_find_value(graph, name);
  const laci_weighted_graph from = {graph, NULL};
  const laci_observe_options how = {.values = &value,
                                    .n_values = 1,
                                    .samples = &f->samples,
                                    .batch = BATCH,
                                    .n_batches = 1,
                                    .pool = f->pool,
                                    .on_value = add_to_means,
                                    .context = mean,
                                    .what = "means"};
  memset(mean, 0, MOST_CHANNELS * sizeof *mean);
  if (laci_observe_open(&from, &how, &observation, &err)) fail_msg("%s", err.text);
  if (laci_observe_run(observation, &err)) fail_msg("%s", err.text);
  laci_observe_close(observation);
}

/* The node's output after its batch normalization, which the quantized network has, too. */
static const char *output_of(const laci_graph *floats, const laci_graph *integers,
                             const laci_node *node) {
  const laci_value *value = &floats->values[node->outputs[0]];
  if (laci_graph_find_value(integers, value->name) >= 0) return value->name;
  return floats->values[floats->nodes[value->readers[0]].outputs[0]].name;
}

static void mean_errors_are_below_a_step_of_the_bias(void **state) {
  (void)state;
  fixture f;
  double before[MOST_CHANNELS], after[MOST_CHANNELS];
  setup(&f, 1);
  const laci_graph *floats = f.model->graph;
  laci_quantization *made = quantize(&f);
  int n = 0;
  for (int l = 0; l < made->n_layers; l++) {
    const laci_quantized_layer *layer = &made->layers[l];
    int at = 0;
    while (strcmp(floats->nodes[at].name, layer->name) != 0) at++;
    assert_true(layer->output_error <= layer->output_error_before);
    if (!layer->bias_corrected) continue;
    assert_true(layer->output_error > 0 && layer->output_error < layer->output_error_before);
    const char *name = output_of(floats, made->graph, &floats->nodes[at]);
    const int value = laci_graph_find_value(made->graph, name);
    const laci_node *node = &made->graph->nodes[made->graph->values[value].producer];
    const laci_node *up = &made->graph->nodes[made->graph->values[node->inputs[2]].producer];
    const laci_stored *stored = &made->graph->stored[made->graph->values[up->inputs[1]].stored];
    const float *scales = (const float *)(const void *)stored->bytes;
    find_means(&f, floats, name, before);
    find_means(&f, made->graph, name, after);
    for (int64_t k = 0; k < laci_shape_count(&stored->shape); k++)
      assert_true(fabs(before[k] - after[k]) <= 0.51 * (double)scales[k] + 1e-6);
    n++;
  }
  assert_true(n >= 5);
  assert_int_equal(n, made->n_corrected);
  laci_quantization_destroy(made);
  teardown(&f);
}

static void integers_are_the_same_for_any_number_of_threads(void **state) {
  (void)state;
  fixture one, many;
  setup(&one, 1);
  setup(&many, 3);
  laci_quantization *a = quantize(&one), *b = quantize(&many);
  assert_int_equal(a->graph->n_stored, b->graph->n_stored);
  for (int s = 0; s < a->graph->n_stored; s++) {
    const laci_stored *p = &a->graph->stored[s], *q = &b->graph->stored[s];
    assert_int_equal(p->size_bytes, q->size_bytes);
    if (p->bytes && q->bytes) assert_memory_equal(p->bytes, q->bytes, p->size_bytes);
  }
  laci_quantization_destroy(a);
  laci_quantization_destroy(b);
  teardown(&one);
  teardown(&many);
}

/* Without samples held back, nothing says whether a correction holds for others. */
static void nothing_is_corrected_if_no_sample_judges(void **state) {
  (void)state;
  fixture f;
  setup(&f, 1);
  f.samples.count = 1;
  f.samples.held_back = 0;
  laci_quantization *made = quantize(&f);
  assert_int_equal(made->n_corrected, 0);
  for (int l = 0; l < made->n_layers; l++) assert_true(!made->layers[l].bias_corrected);
  laci_quantization_destroy(made);
  teardown(&f);
}

/* ---- Running a network from stop to stop ---- */

typedef struct seen_batches {
  int64_t next;
  double sum;
} seen_batches;

static lac_status add_batch(void *context, const laci_sequence_value *seen, lac_error *err) {
  seen_batches *s = context;
  (void)err;
  assert_int_equal(seen->batch, s->next++);
  for (int64_t k = 0; k < laci_shape_count(seen->shape); k++) s->sum += (double)seen->elements[k];
  return LAC_OK;
}

static lac_status fail_at_batch(void *context, const laci_sequence_value *seen, lac_error *err) {
  (void)context, (void)seen, (void)err;
  return LAC_BAD_VALUE;
}

/* Opens a sequence whose stops are the outputs of all Conv nodes, which are n. */
static laci_sequence *open_at_convolutions(fixture *f, const int64_t *firsts, int *n) {
  static int stops[64];
  lac_error err = {0};
  laci_sequence *sequence;
  const laci_graph *graph = f->model->graph;
  const laci_weighted_graph from = {graph, NULL};
  *n = 0;
  for (int at = 0; at < graph->n_nodes; at++)
    if (laci_node_is(&graph->nodes[at], "Conv")) stops[(*n)++] = graph->nodes[at].outputs[0];
  const laci_sequence_options how = {.stops = stops,
                                     .n_stops = *n,
                                     .samples = &f->samples,
                                     .firsts = firsts,
                                     .batch = 8,
                                     .n_batches = 3,
                                     .pool = f->pool};
  if (laci_sequence_open(&from, &how, &sequence, &err)) fail_msg("%s", err.text);
  return sequence;
}

static void new_weights_change_later_stops_only(void **state) {
  (void)state;
  static const int64_t firsts[] = {16, 0, 24};
  fixture f;
  lac_error err = {0};
  int n;
  seen_batches sums[2][64] = {{{0}}};
  setup(&f, 2);
  const laci_graph *graph = f.model->graph;
  for (int run = 0; run < 2; run++) {
    laci_sequence *sequence = open_at_convolutions(&f, firsts, &n);
    assert_true(n > 2);
    int changed = 0;
    uint8_t *zeros = NULL;
    for (int at = 0, stop = 0; stop < n; stop++, at++) {
      while (!laci_node_is(&graph->nodes[at], "Conv")) at++;
      const int stored = graph->values[graph->nodes[at].inputs[1]].stored;
      if (run == 1 && stop == 2) {
        zeros = laci_alloc(graph->stored[stored].size_bytes, 1);
        laci_sequence_set_weight(sequence, stored, zeros);
      }
      assert_int_equal(laci_sequence_advance(sequence, stop, add_batch, &sums[run][stop], &err),
                       LAC_OK);
      assert_int_equal(sums[run][stop].next, 3);
      const float *elements;
      float buffer[1];
      assert_int_equal(laci_sequence_read_stop(sequence, stop, 1, buffer, &elements, &err), LAC_OK);
      assert_true(isfinite(elements[0]));
      changed += sums[run][stop].sum != sums[0][stop].sum;
      assert_true(stop >= 2 || changed == 0);
    }
    assert_true(run == 0 ? changed == 0 : changed > 0);
    laci_sequence_close(sequence);
    laci_free(zeros);
  }
  teardown(&f);
}

static void a_failure_of_the_caller_ends_the_run(void **state) {
  (void)state;
  static const int64_t firsts[] = {0, 8, 16};
  fixture f;
  lac_error err = {0};
  int n;
  setup(&f, 2);
  laci_sequence *sequence = open_at_convolutions(&f, firsts, &n);
  assert_int_equal(laci_sequence_advance(sequence, 0, fail_at_batch, NULL, &err), LAC_BAD_VALUE);
  laci_sequence_close(sequence);
  teardown(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(mean_errors_are_below_a_step_of_the_bias),
      cmocka_unit_test(integers_are_the_same_for_any_number_of_threads),
      cmocka_unit_test(nothing_is_corrected_if_no_sample_judges),
      cmocka_unit_test(new_weights_change_later_stops_only),
      cmocka_unit_test(a_failure_of_the_caller_ends_the_run),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
