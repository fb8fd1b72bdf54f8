/* SPDX-License-Identifier: Apache-2.0
 * The public functions on the digits network: what is promised of masks, orders, undoing and
 * repeating. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "lacuna/prune.h"
#include "support/load_bytes.h"

#define DIGITS LAC_SOURCE_DIR "/examples/digits/digits.onnx"

/* Of any alignment: the bytes may be where the file has them. */
static float float_at(const lac_tensor *tensor, int64_t at) {
  float x;
  memcpy(&x, (const char *)tensor->bytes + (size_t)at * sizeof x, sizeof x);
  return x;
}

static lac_model *load(void) {
  lac_model *model;
  lac_error err = {0};
  if (lac_model_load(DIGITS, NULL, &model, &err)) fail_msg("%s", err.text);
  return model;
}

static lac_report *prune(lac_model *model, const lac_options *options) {
  lac_report *report;
  lac_error err = {0};
  if (lac_prune(model, options, &report, &err)) fail_msg("%s", err.text);
  return report;
}

static void assert_same_tensors(const lac_model *a, const lac_model *b) {
  assert_int_equal(lac_model_tensor_count(a), lac_model_tensor_count(b));
  for (int i = 0; i < lac_model_tensor_count(a); i++) {
    lac_tensor x = LAC_SIZED(lac_tensor), y = LAC_SIZED(lac_tensor);
    assert_int_equal(lac_model_tensor(a, i, &x, NULL), LAC_OK);
    assert_int_equal(lac_model_tensor(b, i, &y, NULL), LAC_OK);
    assert_string_equal(x.name, y.name);
    assert_int_equal(x.size_bytes, y.size_bytes);
    if (x.size_bytes) assert_memory_equal(x.bytes, y.bytes, x.size_bytes);
  }
}

static void gives_the_same_bytes_for_any_number_of_threads(void **state) {
  (void)state;
  lac_options options = lac_options_default();
  options.verify = false;
  options.threads = 1;
  lac_model *first = load();
  lac_report_destroy(prune(first, &options));
  for (int threads = 2; threads <= 3; threads++) {
    lac_model *other = load();
    options.threads = threads;
    lac_report_destroy(prune(other, &options));
    assert_same_tensors(first, other);
    lac_model_destroy(other);
  }
  lac_model_destroy(first);
}

static void undoing_a_permutation_gives_back_every_byte(void **state) {
  (void)state;
  char path[] = "permutation_XXXXXX";
  int file = mkstemp(path);
  assert_true(file >= 0);
  close(file);
  lac_model *original = load(), *model = load();
  lac_options options = lac_options_default();
  lac_report *report;
  lac_error err = {0};
  assert_int_equal(lac_permute(model, &options, &report, &err), LAC_OK);
  assert_true(report->summary.kept_after > report->summary.kept_before);
  assert_int_equal(lac_permutation_save(report, path, true, &err), LAC_OK);
  lac_report_destroy(report);
  assert_int_equal(lac_permutation_apply(model, path, true, &options, &report, &err), LAC_OK);
  lac_report_destroy(report);
  assert_same_tensors(original, model);
  /* And again forwards: a saved order replayed is the order that was found. */
  lac_model *again = load();
  assert_int_equal(lac_permutation_apply(again, path, false, &options, &report, &err), LAC_OK);
  lac_report_destroy(report);
  assert_int_equal(lac_permute(model, &options, &report, &err), LAC_OK);
  lac_report_destroy(report);
  assert_same_tensors(again, model);
  unlink(path);
  lac_model_destroy(again);
  lac_model_destroy(original);
  lac_model_destroy(model);
}

/* new[k, c, ...] == old[order_k[k], order_c[c], ...] where the mask keeps it, and 0 elsewhere. */
static void masks_and_orders_explain_the_new_weights(void **state) {
  (void)state;
  lac_model *original = load(), *model = load();
  lac_options options = lac_options_default();
  lac_report *report = prune(model, &options);
  lac_error err = {0};
  int n_pruned = 0;
  for (int l = 0; l < report->n_layers; l++) {
    const lac_layer *layer = &report->layers[l];
    if (!layer->pruned || layer->rank != 4) continue;
    n_pruned++;
    lac_tensor before = LAC_SIZED(lac_tensor), after = LAC_SIZED(lac_tensor);
    assert_int_equal(lac_model_find_tensor(original, layer->weight, &before, &err), LAC_OK);
    assert_int_equal(lac_model_find_tensor(model, layer->weight, &after, &err), LAC_OK);
    int64_t k = layer->shape[0], c = layer->shape[1], taps = layer->shape[2] * layer->shape[3];
    int32_t order_k[512], order_c[512];
    uint8_t *mask = malloc((size_t)(k * c * taps));
    assert_int_equal(lac_report_order(report, layer->weight, 0, order_k, (size_t)k, &err), LAC_OK);
    assert_int_equal(lac_report_order(report, layer->weight, 1, order_c, (size_t)c, &err), LAC_OK);
    assert_int_equal(lac_report_mask(report, layer->weight, mask, (size_t)(k * c * taps), &err),
                     LAC_OK);
    for (int64_t e = 0; e < k * c * taps; e++) {
      int64_t t = e % taps, j = e / taps % c, i = e / taps / c;
      float got = float_at(&after, e);
      float wanted = mask[e] ? float_at(&before, (order_k[i] * c + order_c[j]) * taps + t) : 0;
      if (!(got == wanted))
        fail_msg("%s[%lld]: got %g, want %g", layer->weight, (long long)e, got, wanted);
    }
    free(mask);
    assert_true(layer->holds_pattern);
    assert_true(layer->kept >= layer->kept_identity * 0.98);
  }
  assert_true(n_pruned >= 5);
  lac_report_destroy(report);
  lac_model_destroy(original);
  lac_model_destroy(model);
}

static void loads_from_memory_what_it_loads_from_a_file(void **state) {
  (void)state;
  FILE *file = fopen(DIGITS, "rb");
  assert_non_null(file);
  static uint8_t bytes[1 << 20];
  size_t n = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  lac_model *from_file = load(), *from_memory;
  lac_error err = {0};
  assert_int_equal(load_bytes(bytes, n, &from_memory, &err), LAC_OK);
  memset(bytes, 0xEE, sizeof bytes); /* the model must not look at the caller's memory any more */
  assert_same_tensors(from_file, from_memory);
  lac_model_destroy(from_file);
  lac_model_destroy(from_memory);
}

static void a_pruned_network_is_the_original_reordered_and_masked(void **state) {
  (void)state;
  lac_model *original = load(), *model = load(), *other = load();
  lac_options options = lac_options_default();
  lac_report *report = prune(model, &options);
  int permuted = report->summary.permuted, pruned = report->summary.pruned;
  lac_report_destroy(report);
  lac_error err = {0};
  assert_int_equal(lac_check(model, original, &options, &report, &err), LAC_OK);
  assert_int_equal(report->summary.permuted, permuted);
  assert_int_equal(report->summary.pruned, pruned);
  lac_report_destroy(report);
  options.exclude =
      "fc|head|Gemm"; /* the dense network is not the pruned one's reordering: weights came back */
  assert_int_equal(lac_check(other, model, &options, &report, &err), LAC_PROOF_FAILED);
  assert_true(strlen(err.text) > 10);
  lac_model_destroy(original);
  lac_model_destroy(model);
  lac_model_destroy(other);
}

static void says_what_is_wrong_with_options(void **state) {
  (void)state;
  static const struct {
    int n, m;
    const char *include, *shape, *assume;
    lac_status wanted;
  } cases[] = {
      {0, 4, NULL, NULL, NULL, LAC_BAD_ARGUMENT},
      {4, 4, NULL, NULL, NULL, LAC_BAD_ARGUMENT},
      {2, 65, NULL, NULL, NULL, LAC_BAD_ARGUMENT},
      {2, 4, "(", NULL, NULL, LAC_BAD_ARGUMENT},
      {2, 4, "nosuch", NULL, NULL, LAC_BAD_ARGUMENT},
      {2, 4, "^weight", NULL, NULL, LAC_BAD_ARGUMENT},
      {2, 4, NULL, "image", NULL, LAC_BAD_ARGUMENT},
      {2, 4, NULL, "image=1x0x8x8", NULL, LAC_BAD_ARGUMENT},
      {2, 4, NULL, "nobody=1x1x8x8", NULL, LAC_NOT_FOUND},
      {2, 4, NULL, NULL, "Relu=same", LAC_BAD_ARGUMENT},
      {2, 4, NULL, NULL, "my.Op=same", LAC_NOT_FOUND},
      {2, 4, NULL, NULL, "my.Op", LAC_BAD_ARGUMENT},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    lac_model *model = load();
    lac_options options = lac_options_default();
    lac_report *report;
    lac_error err = {0};
    options.n = cases[i].n;
    options.m = cases[i].m;
    options.include = cases[i].include;
    options.input_shapes = &cases[i].shape;
    options.n_input_shapes = cases[i].shape != NULL;
    options.assume = &cases[i].assume;
    options.n_assume = cases[i].assume != NULL;
    lac_status st = lac_inspect(model, &options, &report, &err);
    if (st != cases[i].wanted)
      fail_msg("case %zu: status %d, want %d: %s", i, st, cases[i].wanted, err.text);
    lac_model_destroy(model);
  }
}

static int count_moved(const lac_report *report) {
  int n = 0;
  for (int l = 0; l < report->n_layers; l++)
    n += report->layers[l].permuted_c || report->layers[l].permuted_k;
  return n;
}

/* A network that holds the pattern cannot keep more in another order, so none is found. */
static void only_what_moved_is_called_reordered(void **state) {
  (void)state;
  lac_model *model = load(), *original = load();
  lac_options options = lac_options_default();
  lac_report *report = NULL;
  lac_error err = {0};
  assert_int_equal(lac_inspect(model, &options, &report, &err), LAC_OK);
  const int n_free = report->summary.permuted;
  assert_true(n_free > 0 && report->summary.reordered == 0 && count_moved(report) == 0);
  assert_true(report->layers[1].permutable_c && report->layers[1].permutable_k);
  lac_report_destroy(report);
  assert_int_equal(lac_check(model, original, &options, &report, &err), LAC_OK);
  assert_true(report->summary.permuted == n_free && report->summary.reordered == 0);
  assert_true(report->summary.verified && !report->summary.proof_engine);
  lac_report_destroy(report);
  report = prune(model, &options);
  assert_true(report->summary.reordered > 0 && count_moved(report) >= report->summary.reordered);
  assert_true(report->summary.outputs == 1 && report->summary.outputs_compared == 1);
  lac_report_destroy(report);
  report = prune(model, &options);
  assert_true(report->summary.permuted == n_free && report->summary.reordered == 0);
  assert_true(count_moved(report) == 0 && !report->summary.proof_engine);
  lac_report_destroy(report);
  lac_model_destroy(model);
  lac_model_destroy(original);
}

static void a_pattern_that_matches_nothing_is_named_with_what_is_near(void **state) {
  (void)state;
  lac_model *model = load();
  lac_options options = lac_options_default();
  lac_report *report = NULL;
  lac_error err = {0};
  options.exclude = "layer2.*conv3$";
  assert_int_equal(lac_prune(model, &options, &report, &err), LAC_BAD_ARGUMENT);
  assert_string_equal(err.text,
                      "exclude: \"layer2.*conv3$\" matches no layer; the nearest: "
                      "layer2.0.conv1, layer2.0.conv2, layer1.0.conv1");
  options.exclude = "layer2.*conv2$";
  assert_int_equal(lac_inspect(model, &options, &report, &err), LAC_OK);
  lac_report_destroy(report);
  lac_model_destroy(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gives_the_same_bytes_for_any_number_of_threads),
      cmocka_unit_test(undoing_a_permutation_gives_back_every_byte),
      cmocka_unit_test(masks_and_orders_explain_the_new_weights),
      cmocka_unit_test(loads_from_memory_what_it_loads_from_a_file),
      cmocka_unit_test(a_pruned_network_is_the_original_reordered_and_masked),
      cmocka_unit_test(says_what_is_wrong_with_options),
      cmocka_unit_test(only_what_moved_is_called_reordered),
      cmocka_unit_test(a_pattern_that_matches_nothing_is_named_with_what_is_near),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
