/* SPDX-License-Identifier: Apache-2.0
 * Quantizing the digits network through the public functions: what the report says, that pruned
 * weights are 0, and that what fails leaves the model as it was, byte by byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "lacuna/calibration.h"
#include "lacuna/prune.h"
#include "lacuna/quantization.h"

#define DIGITS LAC_SOURCE_DIR "/examples/digits/digits.onnx"

enum { COUNT = 16, PIXELS = 64 };

static char data[] = "/tmp/lacuna-quantize-XXXXXX.npy";

/* Images as an array of NumPy. */
static int write_data(void **state) {
  (void)state;
  char header[128];
  int n = snprintf(header, sizeof header,
                   "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, 1, 8, 8), }", COUNT);
  FILE *file = NULL;
  int descriptor = mkstemps(data, 4);
  if (descriptor >= 0) file = fdopen(descriptor, "wb");
  if (!file) return -1;
  while ((10 + n + 1) % 64) header[n++] = ' ';
  header[n++] = '\n';
  const unsigned char magic[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)n, 0};
  fwrite(magic, 1, sizeof magic, file);
  fwrite(header, 1, (size_t)n, file);
  for (int k = 0; k < COUNT * PIXELS; k++) {
    float x = (float)(k * 37 % 101) / 101.0f;
    fwrite(&x, sizeof x, 1, file);
  }
  return fclose(file);
}

static int remove_data(void **state) {
  (void)state;
  return unlink(data);
}

static lac_model *load(void) {
  lac_model *model;
  lac_error err = {0};
  if (lac_model_load(DIGITS, NULL, &model, &err)) fail_msg("%s", err.text);
  return model;
}

typedef struct bytes {
  uint64_t hash;
  size_t n;
} bytes;

static lac_status add_bytes(const void *from, size_t n, void *context, lac_error *err) {
  bytes *b = context;
  (void)err;
  for (size_t at = 0; at < n; at++)
    b->hash = (b->hash ^ ((const uint8_t *)from)[at]) * 0x100000001b3U;
  b->n += n;
  return LAC_OK;
}

static bytes bytes_of(lac_model *model) {
  bytes b = {.hash = 0xcbf29ce484222325U};
  lac_error err = {0};
  if (lac_model_stream(model, add_bytes, &b, &err)) fail_msg("%s", err.text);
  return b;
}

typedef struct wishes {
  lac_options options;
  lac_calibration calibration;
  lac_quantization quantization;
} wishes;

static void wish(wishes *w) {
  w->options = lac_options_default();
  w->calibration = lac_calibration_default();
  w->quantization = lac_quantization_default();
  w->calibration.data = data;
  w->calibration.solve = false;
  w->options.score = "magnitude";
  w->options.permute = w->options.verify = false;
  w->options.all_sizes = true;
  w->options.threads = 1;
  w->options.calibration = &w->calibration;
  w->options.quantization = &w->quantization;
}

/* At most 2 of every 4 along axis 1 of [k, c, inner]. */
static void assert_pattern(const lac_tensor *tensor) {
  int64_t inner = 1;
  for (int a = 2; a < tensor->rank; a++) inner *= tensor->shape[a];
  const int8_t *q = tensor->bytes;
  for (int64_t k = 0; k < tensor->shape[0]; k++) {
    for (int64_t i = 0; i < inner; i++) {
      for (int64_t c = 0; c + 4 <= tensor->shape[1]; c += 4) {
        int n = 0;
        for (int64_t j = c; j < c + 4; j++) n += q[(k * tensor->shape[1] + j) * inner + i] != 0;
        assert_true(n <= 2);
      }
    }
  }
}

static void pruned_weights_are_zero(void **state) {
  (void)state;
  wishes w;
  lac_report *report, *found;
  lac_error err = {0};
  lac_model *model = load();
  wish(&w);
  if (lac_prune(model, &w.options, &report, &err)) fail_msg("%s", err.text);
  const lac_quantization_result *q = report->quantization;
  assert_non_null(q);
  assert_string_equal(q->format, "qdq-int8");
  assert_string_equal(q->activations, "uint8");
  assert_int_equal(q->n_layers, 10);
  assert_int_equal(q->n_quantized, q->n_layers);
  int n_pruned = 0;
  for (int l = 0; l < q->n_layers; l++) {
    const lac_quantized_layer *layer = &q->layers[l];
    char name[256];
    lac_tensor tensor = LAC_SIZED(lac_tensor);
    assert_null(layer->reason);
    assert_true(layer->bias && layer->weight_error < 1e-3);
    (void)snprintf(name, sizeof name, "%s_quantized", layer->weight);
    if (lac_model_find_tensor(model, name, &tensor, &err)) fail_msg("%s", err.text);
    assert_int_equal(tensor.dtype, LAC_DTYPE_I8);
    assert_int_equal(lac_model_find_tensor(model, layer->weight, &tensor, &err), LAC_NOT_FOUND);
    if (!report->layers[l].pruned) continue;
    if (lac_model_find_tensor(model, name, &tensor, &err)) fail_msg("%s", err.text);
    assert_pattern(&tensor);
    n_pruned++;
  }
  assert_true(n_pruned >= 8);
  assert_true(q->outputs_error < 0.01);
  /* what the model is now is looked at anew */
  lac_options plain = lac_options_default();
  plain.all_sizes = true;
  if (lac_check(model, NULL, &plain, &found, &err)) fail_msg("%s", err.text);
  assert_int_equal(found->summary.pruned, report->summary.pruned);
  lac_report_destroy(found);
  lac_report_destroy(report);
  assert_int_equal(lac_prune(model, &w.options, &report, &err), LAC_UNSUPPORTED);
  assert_non_null(strstr(err.text, "quantized already"));
  lac_model_destroy(model);
}

/* The report of a quantized network can be drawn: the quantized network has shapes. */
static void a_quantized_network_is_drawn(void **state) {
  (void)state;
  static const char *const formats[] = {"qdq-int8", "dynamic-int8"};
  static const char *const products[] = {"Gemm", "MatMulInteger"};
  for (size_t k = 0; k < sizeof formats / sizeof *formats; k++) {
    char path[] = "/tmp/lacuna-quantize-XXXXXX.dot", text[1 << 16];
    wishes w;
    lac_report *report;
    lac_error err = {0};
    lac_model *model = load();
    const int descriptor = mkstemps(path, 4);
    assert_true(descriptor >= 0 && close(descriptor) == 0);
    wish(&w);
    w.quantization.format = formats[k];
    if (lac_prune(model, &w.options, &report, &err)) fail_msg("%s", err.text);
    if (lac_plot(model, report, path, true, NULL, &err)) fail_msg("%s", err.text);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    assert_int_equal(fclose(file), 0);
    assert_non_null(strstr(text, products[k]));
    assert_non_null(strstr(text, "/10 layers pruned"));
    assert_int_equal(unlink(path), 0);
    lac_report_destroy(report);
    lac_model_destroy(model);
  }
}

static void asks_for_what_it_needs(void **state) {
  (void)state;
  wishes w;
  lac_report *report;
  lac_error err = {0};
  lac_model *model = load();
  bytes before = bytes_of(model);
  wish(&w);
  w.options.calibration = NULL;
  assert_int_equal(lac_prune(model, &w.options, &report, &err), LAC_BAD_ARGUMENT);
  assert_int_equal(err.hint, LAC_HINT_CALIBRATION);
  wish(&w);
  w.quantization.range = "wide";
  assert_int_equal(lac_prune(model, &w.options, &report, &err), LAC_BAD_ARGUMENT);
  bytes after = bytes_of(model);
  assert_memory_equal(&before, &after, sizeof before);
  lac_model_destroy(model);
}

/* Ranges that are found at run time need no calibration. */
static void run_time_needs_no_calibration(void **state) {
  (void)state;
  wishes w;
  lac_report *report;
  lac_error err = {0};
  lac_model *model = load();
  wish(&w);
  w.options.calibration = NULL;
  w.quantization.format = "dynamic-int4";
  assert_int_equal(lac_prune(model, &w.options, &report, &err), LAC_BAD_ARGUMENT);
  assert_non_null(strstr(err.text, "dynamic-int4: wanted qdq-int8 or dynamic-int8"));
  w.quantization.format = "dynamic-int8";
  w.quantization.is_signed = true;
  assert_int_equal(lac_prune(model, &w.options, &report, &err), LAC_BAD_ARGUMENT);
  assert_non_null(strstr(err.text, "wanted uint8"));
  w.quantization.is_signed = false;
  if (lac_prune(model, &w.options, &report, &err)) fail_msg("%s", err.text);
  assert_string_equal(report->quantization->format, "dynamic-int8");
  assert_string_equal(report->quantization->activations, "uint8");
  assert_null(report->quantization->range);
  assert_int_equal(report->quantization->n_quantized, 1);
  assert_int_equal(report->quantization->samples, 0);
  assert_non_null(report->quantization->outputs_reason);
  lac_report_destroy(report);
  lac_model_destroy(model);
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  wishes w;
  lac_report *report;
  lac_model *model = load();
  wish(&w);
  bytes before = bytes_of(model);
  int n_failed = 0;
  for (long at = 1;; at += 1 + at / 16) { /* the first ones all, then ever fewer */
    lac_error err = {0};
    laci_memory_fail_from(at);
    lac_status st = lac_prune(model, &w.options, &report, &err);
    bool pending = laci_memory_is_failure_pending();
    laci_memory_fail_from(0);
    if (pending) {
      assert_int_equal(st, LAC_OK);
      lac_report_destroy(report);
      break;
    }
    assert_true(st == LAC_NO_MEMORY || st == LAC_MEMORY_LIMIT);
    bytes after = bytes_of(model);
    assert_int_equal(after.n, before.n);
    assert_true(after.hash == before.hash);
    n_failed++;
  }
  assert_true(n_failed > 50);
  bytes after = bytes_of(model);
  assert_true(after.hash != before.hash);
  lac_model_destroy(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(pruned_weights_are_zero), cmocka_unit_test(a_quantized_network_is_drawn),
      cmocka_unit_test(asks_for_what_it_needs), cmocka_unit_test(run_time_needs_no_calibration),
      cmocka_unit_test(every_allocation_may_fail)};
  return cmocka_run_group_tests(tests, write_data, remove_data);
}
