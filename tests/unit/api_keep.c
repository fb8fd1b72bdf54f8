/* SPDX-License-Identifier: Apache-2.0
 * What counts as a pruned weight, and pruning the rest of a network of which a part is pruned: its
 * masks stay to the last element, wherever its rows go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "api/model/model_in.h"
#include "base/memory.h"
#include "graph/graph.h"
#include "lacuna/mask.h"
#include "lacuna/prune.h"

#define DIGITS LAC_SOURCE_DIR "/examples/digits/digits.onnx"
#define ZEROED "layer2.0.conv1.weight"

static lac_model *load(void) {
  lac_model *model;
  lac_error err = {0};
  if (lac_model_load(DIGITS, NULL, &model, &err)) fail_msg("%s", err.text);
  return model;
}

static lac_options options(void) {
  lac_options o = lac_options_default();
  o.threads = 1;
  o.effort = LAC_EFFORT_FAST;
  return o;
}

static lac_report *prune(lac_model *model, const lac_options *o) {
  lac_report *report;
  lac_error err = {0};
  if (lac_prune(model, o, &report, &err)) fail_msg("%s", err.text);
  return report;
}

/* Layers whose name matches are pruned, each in its place. */
static void prune_some(lac_model *model, const char *which) {
  lac_options o = options();
  o.permute = false;
  o.include = which;
  lac_report_destroy(prune(model, &o));
}

static void set_zero(lac_model *model, const char *name) {
  assert_int_equal(laci_model_materialise(model, NULL), LAC_OK);
  for (int s = 0; s < model->graph->n_stored; s++) {
    laci_stored *stored = &model->graph->stored[s];
    if (strcmp(stored->name, name) != 0) continue;
    laci_free(stored->owned);
    stored->owned = laci_alloc(stored->size_bytes, 1);
    assert_non_null(stored->owned);
    stored->bytes = stored->owned;
    return;
  }
  fail_msg("no %s", name);
}

static const lac_layer *find(const lac_report *report, const char *weight) {
  for (int l = 0; l < report->n_layers; l++) {
    if (strcmp(report->layers[l].weight, weight) == 0) return &report->layers[l];
  }
  fail_msg("no layer %s", weight);
  return NULL;
}

/* The rows of a weight [outputs, ...] that are not all equal in two models; rows may have moved. */
static int rows_lost(const lac_model *before, const lac_model *after, const char *name) {
  lac_tensor a = LAC_SIZED(lac_tensor), b = LAC_SIZED(lac_tensor);
  int n_lost = 0;
  assert_int_equal(lac_model_find_tensor(before, name, &a, NULL), LAC_OK);
  assert_int_equal(lac_model_find_tensor(after, name, &b, NULL), LAC_OK);
  size_t n = (size_t)a.shape[0], size = a.size_bytes / n;
  for (size_t row = 0; row < n; row++) {
    bool found = false;
    for (size_t other = 0; other < n && !found; other++) {
      found = memcmp((const char *)a.bytes + row * size, (const char *)b.bytes + other * size,
                     size) == 0;
    }
    n_lost += !found;
  }
  return n_lost;
}

static void expect_mask_of_zeros(const lac_model *model, const lac_report *report,
                                 const char *name) {
  lac_tensor t = LAC_SIZED(lac_tensor);
  assert_int_equal(lac_model_find_tensor(model, name, &t, NULL), LAC_OK);
  size_t n = t.size_bytes / sizeof(float);
  uint8_t *mask = malloc(n);
  assert_non_null(mask);
  assert_int_equal(lac_report_mask(report, name, mask, n, NULL), LAC_OK);
  for (size_t e = 0; e < n; e++) {
    float x;
    memcpy(&x, (const char *)t.bytes + e * sizeof x, sizeof x);
    assert_int_equal(mask[e], x != 0);
  }
  free(mask);
}

static void what_is_pruned_keeps_its_mask_and_the_rest_is_pruned(void **state) {
  (void)state;
  lac_model *before = load(), *model = load();
  lac_options o = options();
  prune_some(before, "layer[23].*conv2");
  prune_some(model, "layer[23].*conv2");
  o.keep_pruned = true;
  lac_report *report = prune(model, &o);
  int n_kept = 0, n_moved = 0, n_now = 0;
  for (int l = 0; l < report->n_layers; l++) {
    const lac_layer *layer = &report->layers[l];
    if (!layer->eligible) continue;
    assert_true(layer->pruned && layer->holds_pattern);
    n_now += !layer->was_pruned;
    if (!layer->was_pruned) continue;
    n_kept++;
    n_moved += layer->permuted_k;
    assert_false(layer->permuted_c);
    assert_false(layer->searchable);
    assert_non_null(strstr(layer->reason, "it is pruned already and keeps its mask"));
    assert_true(layer->group_c > 0 && report->groups[layer->group_c - 1].frozen);
    assert_null(report->groups[layer->group_c - 1].permutation);
    assert_int_equal(rows_lost(before, model, layer->weight), 0);
    assert_true(layer->kept == layer->total);
    expect_mask_of_zeros(model, report, layer->weight);
  }
  assert_true(n_kept == 2 && n_now == 6 && n_moved > 0);
  assert_true(report->summary.pruned == 8 && report->summary.verified);
  assert_true(report->summary.groups > 0 && report->summary.permuted < 8);
  lac_report_destroy(report);
  lac_model_destroy(before);
  lac_model_destroy(model);
}

/* Without the option it is as it always was: masks are chosen anew in whatever order. */
static void pruning_again_keeps_nothing_unless_asked(void **state) {
  (void)state;
  lac_model *model = load();
  lac_options o = options();
  prune_some(model, "layer[23].*conv2");
  lac_report *report = prune(model, &o);
  assert_true(find(report, "layer2.0.conv2.weight")->was_pruned);
  assert_true(find(report, "layer2.0.conv2.weight")->searchable);
  assert_int_equal(report->summary.permuted, 8);
  lac_report_destroy(report);
  lac_model_destroy(model);
}

static void a_permutation_that_kept_masks_is_replayed(void **state) {
  (void)state;
  lac_model *model = load(), *other = load();
  lac_options o = options();
  lac_report *report, *replayed;
  lac_error err = {0};
  prune_some(model, "layer3.*conv2");
  prune_some(other, "layer3.*conv2");
  o.keep_pruned = true;
  report = prune(model, &o);
  char path[] = "api_keep_XXXXXX";
  int handle = mkstemp(path);
  assert_true(handle >= 0);
  assert_int_equal(lac_permutation_save(report, path, true, NULL), LAC_OK);
  if (lac_permutation_apply(other, path, false, &o, &replayed, &err)) fail_msg("%s", err.text);
  o.permute = false;
  lac_report_destroy(replayed);
  lac_report_destroy(prune(other, &o));
  for (int i = 0; i < lac_model_tensor_count(model); i++) {
    lac_tensor a = LAC_SIZED(lac_tensor), b = LAC_SIZED(lac_tensor);
    assert_int_equal(lac_model_tensor(model, i, &a, NULL), LAC_OK);
    assert_int_equal(lac_model_tensor(other, i, &b, NULL), LAC_OK);
    if (a.size_bytes) assert_memory_equal(a.bytes, b.bytes, a.size_bytes);
  }
  assert_int_equal(close(handle) | unlink(path), 0);
  lac_report_destroy(report);
  lac_model_destroy(model);
  lac_model_destroy(other);
}

static void a_weight_of_zeros_is_no_pruned_weight(void **state) {
  (void)state;
  lac_model *model = load();
  lac_options o = options();
  lac_report *report;
  lac_mask *mask = NULL;
  set_zero(model, ZEROED);
  assert_int_equal(lac_check(model, NULL, &o, &report, NULL), LAC_OK);
  const lac_layer *layer = find(report, ZEROED);
  assert_true(layer->eligible && layer->holds_pattern);
  assert_false(layer->pruned || layer->was_pruned);
  assert_string_equal(layer->reason, "all zero: no magnitude tells which weights to keep");
  assert_int_equal(report->summary.pruned, 0);
  lac_report_destroy(report);
  assert_int_equal(lac_mask_from_model(model, &o, &mask, NULL), LAC_OK);
  assert_int_equal(lac_mask_count(mask), 0);
  lac_mask_destroy(mask);
  report = prune(model, &o);
  assert_false(find(report, ZEROED)->pruned);
  assert_true(report->summary.pruned == 7 && report->summary.eligible == 8);
  lac_report_destroy(report);
  assert_int_equal(lac_mask_from_model(model, &o, &mask, NULL), LAC_OK);
  assert_int_equal(lac_mask_count(mask), 7);
  lac_mask_destroy(mask);
  lac_model_destroy(model);
}

static void a_failing_allocation_leaves_the_model_as_it_was(void **state) {
  (void)state;
  lac_options o = options();
  o.keep_pruned = true;
  o.verify = false;
  for (long n = 1;; n += 1 + n / 8) {
    lac_model *before = load(), *model = load();
    lac_report *report = NULL;
    prune_some(before, "layer3.*conv2");
    prune_some(model, "layer3.*conv2");
    laci_memory_fail_from(n);
    lac_status st = lac_prune(model, &o, &report, NULL);
    laci_memory_fail_from(0);
    for (int i = 0; st && i < lac_model_tensor_count(model); i++) {
      lac_tensor a = LAC_SIZED(lac_tensor), b = LAC_SIZED(lac_tensor);
      assert_int_equal(lac_model_tensor(before, i, &a, NULL), LAC_OK);
      assert_int_equal(lac_model_tensor(model, i, &b, NULL), LAC_OK);
      if (a.size_bytes) assert_memory_equal(a.bytes, b.bytes, a.size_bytes);
    }
    lac_report_destroy(report);
    lac_model_destroy(before);
    lac_model_destroy(model);
    if (!st) break;
    assert_int_equal(st, LAC_NO_MEMORY);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_pruned_keeps_its_mask_and_the_rest_is_pruned),
      cmocka_unit_test(pruning_again_keeps_nothing_unless_asked),
      cmocka_unit_test(a_permutation_that_kept_masks_is_replayed),
      cmocka_unit_test(a_weight_of_zeros_is_no_pruned_weight),
      cmocka_unit_test(a_failing_allocation_leaves_the_model_as_it_was),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
