/* SPDX-License-Identifier: Apache-2.0
 * The public functions of packing on the digits network: every byte comes back, the model is usable
 * and the packed weights mean what the dense ones do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/reader.h"
#include "base/writer.h"
#include "base/memory.h"
#include "lacuna/engine.h"
#include "lacuna/pack.h"

#define DIGITS LAC_SOURCE_DIR "/examples/digits/digits.onnx"

static char folder[] = "api_pack_XXXXXX";

static const char *path_of(const char *name) {
  static char paths[4][256];
  static int next;
  char *path = paths[next++ % 4];
  (void)snprintf(path, sizeof paths[0], "%s/%s", folder, name);
  return path;
}

static lac_options options_of(int n, int m) {
  lac_options options = lac_options_default();
  options.n = n;
  options.m = m;
  options.permute = options.verify = false;
  options.all_sizes = m % 4 != 0; /* no other size fits Tensor Cores */
  options.threads = 1;
  return options;
}

static lac_model *load(const char *path) {
  lac_model *model;
  lac_error err = {0};
  if (lac_model_load(path, NULL, &model, &err)) fail_msg("%s", err.text);
  return model;
}

/** Digits pruned n:m, changed in memory only. */
static lac_model *pruned(int n, int m) {
  lac_model *model = load(DIGITS);
  lac_options options = options_of(n, m);
  lac_report *report;
  lac_error err = {0};
  if (lac_prune(model, &options, &report, &err)) fail_msg("%s", err.text);
  lac_report_destroy(report);
  return model;
}

static lac_pack_report *save(lac_model *model, const char *path, int n, int m) {
  lac_options options = options_of(n, m);
  lac_pack_report *report;
  lac_error err = {0};
  if (lac_pack_save(model, path, &options, true, &report, &err)) fail_msg("%s", err.text);
  return report;
}

static void expect_same_files(const char *a, const char *b) {
  laci_file_bytes x, y;
  assert_int_equal(laci_file_bytes_read(a, &x, NULL), LAC_OK);
  assert_int_equal(laci_file_bytes_read(b, &y, NULL), LAC_OK);
  assert_int_equal(x.size_bytes, y.size_bytes);
  assert_memory_equal(x.bytes, y.bytes, x.size_bytes);
  laci_file_bytes_clear(&x);
  laci_file_bytes_clear(&y);
}

static void expect_same_tensors(const lac_model *a, const lac_model *b) {
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

static void a_model_changed_in_memory_comes_back(void **state) {
  (void)state;
  static const struct {
    int n, m, n_packed;
  } cases[] = {{2, 4, 8}, {1, 4, 8}, {4, 8, 8}, {2, 16, 8}, {1, 3, 8}};
  for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
    lac_model *model = pruned(cases[k].n, cases[k].m), *again;
    lac_error err = {0};
    lac_pack_report *report = save(model, path_of("a.pack"), cases[k].n, cases[k].m);
    assert_true(report->n_packed >= cases[k].n_packed);
    assert_true(report->packed_bytes < report->dense_bytes);
    lac_pack_report_destroy(report);
    if (lac_model_load(path_of("a.pack"), NULL, &again, &err)) fail_msg("%s", err.text);
    expect_same_tensors(model, again);
    assert_true(lac_model_reads(again, path_of("a.pack"))); /* never to be replaced */
    assert_int_equal(lac_model_save(model, path_of("a.onnx"), true, &err), LAC_OK);
    assert_int_equal(lac_pack_restore(path_of("a.pack"), path_of("b.onnx"), true, NULL, &err),
                     LAC_OK);
    expect_same_files(path_of("a.onnx"), path_of("b.onnx"));
    lac_model_destroy(again);
    lac_model_destroy(model);
  }
}

static void an_unpacked_model_can_be_worked_on(void **state) {
  (void)state;
  lac_model *model = pruned(2, 4), *again;
  lac_pack_report_destroy(save(model, path_of("a.pack"), 2, 4));
  lac_error err = {0};
  lac_options options = options_of(2, 4);
  lac_report *report;
  assert_int_equal(lac_model_load(path_of("a.pack"), NULL, &again, &err), LAC_OK);
  assert_int_equal(lac_check(again, NULL, &options, &report, &err), LAC_OK);
  assert_int_equal(report->summary.pruned, 8);
  assert_string_equal(report->model, path_of("a.pack"));
  lac_report_destroy(report);
  lac_pack_report_destroy(save(again, path_of("b.pack"), 2, 4));
  expect_same_files(path_of("a.pack"), path_of("b.pack"));
  lac_model_destroy(again);
  lac_model_destroy(model);
}

/* A writer may order fields as it likes; saving would order them, packing keeps them. */
static void bytes_that_saving_would_change_come_back(void **state) {
  (void)state;
  static const uint8_t version_again[] = {5 << 3, 7}; /* model_version a second time: 7 */
  lac_error err = {0};
  laci_file_bytes map;
  lac_model *model = pruned(2, 4);
  assert_int_equal(lac_model_save(model, path_of("a.onnx"), true, &err), LAC_OK);
  lac_model_destroy(model);
  assert_int_equal(laci_file_bytes_read(path_of("a.onnx"), &map, &err), LAC_OK);
  uint8_t *bytes = laci_alloc(map.size_bytes + 2, 1);
  memcpy(bytes, map.bytes, map.size_bytes);
  memcpy(bytes + map.size_bytes, version_again, 2);
  assert_int_equal(laci_file_write(path_of("c.onnx"), bytes, map.size_bytes + 2, true, &err),
                   LAC_OK);
  laci_free(bytes);
  laci_file_bytes_clear(&map);
  model = load(path_of("c.onnx"));
  lac_pack_report *report = save(model, path_of("a.pack"), 2, 4);
  assert_int_equal(report->n_packed, 8);
  lac_pack_report_destroy(report);
  lac_model_destroy(model);
  assert_int_equal(lac_pack_restore(path_of("a.pack"), path_of("b.onnx"), true, NULL, &err),
                   LAC_OK);
  expect_same_files(path_of("c.onnx"), path_of("b.onnx"));
}

/* weight * mask gives -0.0 for what was negative: such networks are packed, too. */
static void zeros_keep_their_signs(void **state) {
  (void)state;
  lac_model *model = pruned(2, 4), *again;
  lac_tensor weight = LAC_SIZED(lac_tensor);
  lac_error err = {0};
  assert_int_equal(lac_model_find_tensor(model, "layer3.0.conv2.weight", &weight, &err), LAC_OK);
  uint32_t *elements = (uint32_t *)(uintptr_t)weight.bytes;
  for (size_t at = 0; at < weight.size_bytes / 4; at += 3) {
    if (elements[at] == 0) elements[at] = UINT32_C(0x80000000);
  }
  lac_pack_report *report = save(model, path_of("a.pack"), 2, 4);
  assert_int_equal(report->n_packed, 8);
  lac_pack_report_destroy(report);
  assert_int_equal(lac_model_load(path_of("a.pack"), NULL, &again, &err), LAC_OK);
  expect_same_tensors(model, again);
  lac_model_destroy(again);
  lac_model_destroy(model);
}

/* Packed rows against the dense weight, as a kernel would read them. */
static void expect_rows(const lac_packed_tensor *t, const float *dense) {
  const float *values = t->values;
  for (int64_t row = 0; row < t->n_rows; row++) {
    const float *w = dense + row / t->inner * t->columns * t->inner + row % t->inner;
    float line[1024] = {0};
    for (int64_t v = 0; v < t->row_values; v++) {
      uint32_t word = t->index[row * t->index_words + v * t->index_bits / 32];
      int64_t c = v / t->n * t->m + (word >> (v * t->index_bits % 32) & 3);
      line[c] = values[row * t->row_values + v];
    }
    for (int64_t c = 0; c < t->columns; c++) assert_true(line[c] == w[c * t->inner]);
  }
}

static void packed_rows_are_the_weights(void **state) {
  (void)state;
  lac_model *model = pruned(2, 4);
  lac_pack_report_destroy(save(model, path_of("a.pack"), 2, 4));
  lac_pack *pack;
  lac_error err = {0};
  assert_int_equal(lac_pack_open(path_of("a.pack"), &pack, &err), LAC_OK);
  assert_int_equal(lac_pack_tensor_count(pack), 8);
  assert_true(lac_pack_packed_bytes(pack) < lac_pack_dense_bytes(pack));
  for (int i = 0; i < 8; i++) {
    lac_packed_tensor t = LAC_SIZED(lac_packed_tensor);
    lac_tensor dense = LAC_SIZED(lac_tensor);
    assert_int_equal(lac_pack_tensor(pack, i, &t, NULL), LAC_OK);
    assert_int_equal(t.index_bits, 2);
    assert_null(t.signs);
    assert_int_equal(lac_model_find_tensor(model, t.name, &dense, &err), LAC_OK);
    expect_rows(&t, dense.bytes);
  }
  lac_packed_tensor none = LAC_SIZED(lac_packed_tensor);
  assert_int_equal(lac_pack_tensor(pack, 8, &none, NULL), LAC_NOT_FOUND);
  lac_pack_close(pack);
  lac_model_destroy(model);
}

static void inputs_and_what_exists_are_kept(void **state) {
  (void)state;
  lac_error err = {0};
  lac_options options = options_of(2, 4);
  lac_model *model = pruned(2, 4);
  assert_int_equal(lac_model_save(model, path_of("a.onnx"), true, &err), LAC_OK);
  lac_model_destroy(model);
  model = load(path_of("a.onnx"));
  assert_int_equal(lac_pack_save(model, path_of("a.onnx"), &options, true, NULL, &err),
                   LAC_BAD_ARGUMENT);
  assert_int_equal(lac_pack_save(model, path_of("a.pack"), &options, true, NULL, &err), LAC_OK);
  assert_int_equal(lac_pack_save(model, path_of("a.pack"), &options, false, NULL, &err),
                   LAC_EXISTS);
  assert_int_equal(lac_pack_restore(path_of("a.pack"), path_of("a.onnx"), false, NULL, &err),
                   LAC_EXISTS);
  assert_int_equal(lac_pack_restore(path_of("a.pack"), path_of("a.pack"), true, NULL, &err),
                   LAC_BAD_ARGUMENT);
  lac_model_destroy(model);
}

/* What the network answers, by sparse kernels wherever there are any; the plan's text is to be
 * freed. */
static char *infer(const lac_model *model, float *answer, int n) {
  lac_engine_options o = lac_engine_options_default();
  const lac_engine_port *port;
  lac_engine *engine;
  lac_error err = {0};
  const lac_engine_shape shape = {.name = "image", .rank = 4, .shape = {1, -1, -1, -1}};
  o.run.threads = 2;
  o.shapes = &shape;
  o.n_shapes = 1;
  if (lac_engine_create(model, &o, &engine, &err)) fail_msg("%s", err.text);
  assert_int_equal(lac_engine_inputs(engine, &port), 1);
  float *x = malloc(port->size_bytes);
  assert_non_null(x);
  for (size_t at = 0; at < port->size_bytes / sizeof *x; at++) x[at] = (float)(at % 37) / 37 - 0.5F;
  assert_int_equal(lac_engine_outputs(engine, &port), 1);
  assert_int_equal(port->size_bytes, (size_t)n * sizeof *answer);
  const void *in[] = {x};
  void *out[] = {answer};
  if (lac_engine_run(engine, in, out, &err)) fail_msg("%s", err.text);
  char *text = strdup(lac_engine_plan_text(engine));
  lac_engine_destroy(engine);
  free(x);
  return text;
}

/* Convolutions, strides and a product; blocks shorter and longer than those of columns. */
static void a_plan_of_a_pack_has_the_files_bits(void **state) {
  enum { SCORES = 10 };
  static const int patterns[][2] = {{2, 4}, {1, 4}, {2, 8}, {3, 5}, {1, 2}};
  (void)state;
  assert_int_equal(setenv("LAC_SPARSE", "all", 1), 0);
  for (size_t at = 0; at < sizeof patterns / sizeof *patterns; at++) {
    float want[SCORES], got[SCORES];
    lac_model *model = pruned(patterns[at][0], patterns[at][1]);
    lac_pack_report_destroy(save(model, path_of("b.pack"), patterns[at][0], patterns[at][1]));
    lac_model *packed = load(path_of("b.pack"));
    char *text = infer(model, want, SCORES), *packed_text = infer(packed, got, SCORES);
    assert_memory_equal(want, got, sizeof want);
    assert_string_equal(text, packed_text);
    free(text);
    free(packed_text);
    lac_model_destroy(model);
    lac_model_destroy(packed);
  }
  assert_int_equal(unsetenv("LAC_SPARSE"), 0);
}

/* For ONNX Runtime: an ONNX model of one node is read as the pack that it holds. */
static void a_pack_in_a_node_is_a_pack(void **state) {
  (void)state;
  lac_model *model = pruned(2, 4), *again;
  lac_options options = options_of(2, 4);
  lac_load_options from = lac_load_options_default();
  lac_error err = {0};
  lac_pack *pack, *inner;
  laci_file_bytes bytes;
  lac_pack_report_destroy(save(model, path_of("a.pack"), 2, 4));
  assert_int_equal(lac_pack_save_context(model, path_of("c.onnx"), &options, true, NULL, &err), 0);
  again = load(path_of("c.onnx"));
  expect_same_tensors(model, again);
  assert_true(lac_model_reads(again, path_of("c.onnx")));
  lac_pack_report_destroy(save(again, path_of("b.pack"), 2, 4));
  expect_same_files(path_of("a.pack"), path_of("b.pack"));
  lac_model_destroy(again);
  assert_int_equal(lac_model_save(model, path_of("a.onnx"), true, &err), LAC_OK);
  assert_int_equal(lac_pack_restore(path_of("c.onnx"), path_of("b.onnx"), true, NULL, &err), 0);
  expect_same_files(path_of("a.onnx"), path_of("b.onnx"));
  assert_int_equal(lac_pack_open(path_of("a.pack"), &pack, &err), LAC_OK);
  assert_int_equal(lac_pack_open(path_of("c.onnx"), &inner, &err), LAC_OK);
  assert_int_equal(lac_pack_tensor_count(inner), lac_pack_tensor_count(pack));
  lac_packed_tensor one = LAC_SIZED(lac_packed_tensor), other = LAC_SIZED(lac_packed_tensor);
  assert_int_equal(lac_pack_tensor(pack, 3, &one, &err), LAC_OK);
  assert_int_equal(lac_pack_tensor(inner, 3, &other, &err), LAC_OK);
  size_t n = (size_t)(one.n_rows * one.row_values) * sizeof(float);
  assert_memory_equal(one.values, other.values, n);
  assert_int_equal((uintptr_t)other.values % 64, 0);
  lac_pack_close(pack);
  lac_pack_close(inner);
  assert_int_equal(laci_file_bytes_read(path_of("c.onnx"), &bytes, NULL), LAC_OK);
  from.bytes = bytes.bytes;
  for (from.size_bytes = 1; from.size_bytes < bytes.size_bytes; from.size_bytes += 499) {
    lac_status st = lac_model_load(NULL, &from, &again, &err); /* cut short */
    assert_int_equal(st, LAC_BAD_FILE);
  }
  from.size_bytes = bytes.size_bytes;
  if (lac_model_load(NULL, &from, &again, &err)) fail_msg("%s", err.text);
  expect_same_tensors(model, again);
  lac_model_destroy(again);
  uint8_t *damaged = malloc(bytes.size_bytes);
  assert_non_null(damaged);
  from.bytes = damaged;
  for (size_t at = 0; at < 250; at += 3) { /* the heads of fields, and names: it is found, or not */
    memcpy(damaged, bytes.bytes, bytes.size_bytes);
    damaged[at] ^= (uint8_t)(1u << at % 8);
    if (!lac_model_load(NULL, &from, &again, &err)) lac_model_destroy(again);
    else assert_true(err.text[0] != 0);
  }
  free(damaged);
  laci_file_bytes_clear(&bytes);
  lac_model_destroy(model);
}

static bool there_and_back(lac_error *err) {
  lac_model *model = NULL, *again = NULL, *inner = NULL;
  lac_pack_report *report = NULL;
  char *text = NULL;
  lac_options options = options_of(2, 4);
  bool done =
      lac_model_load(path_of("a.onnx"), NULL, &model, err) == LAC_OK &&
      lac_pack_save(model, path_of("f.pack"), &options, true, &report, err) == LAC_OK &&
      lac_pack_report_json(report, &text, err) == LAC_OK &&
      lac_model_load(path_of("f.pack"), NULL, &again, err) == LAC_OK &&
      lac_pack_restore(path_of("f.pack"), path_of("f.onnx"), true, NULL, err) == LAC_OK &&
      lac_pack_save_context(model, path_of("c.onnx"), &options, true, NULL, err) == LAC_OK &&
      lac_model_load(path_of("c.onnx"), NULL, &inner, err) == LAC_OK;
  lac_text_free(text);
  lac_pack_report_destroy(report);
  lac_model_destroy(again);
  lac_model_destroy(inner);
  lac_model_destroy(model);
  return done;
}

static void every_failed_allocation_is_survived(void **state) {
  (void)state;
  long n_failed = 0;
  for (long at = 1;; at += 1 + at / 64) {
    lac_error err = {0};
    laci_memory_fail_from(at);
    bool done = there_and_back(&err);
    laci_memory_fail_from(0);
    if (done) break;
    assert_int_equal(err.status, LAC_NO_MEMORY);
    n_failed++;
  }
  assert_true(n_failed > 50);
}

static int make_folder(void **state) {
  (void)state;
  return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
  (void)state;
  static const char *const names[] = {"a.pack", "b.pack", "f.pack", "a.onnx",
                                      "b.onnx", "c.onnx", "f.onnx"};
  for (int k = 0; k < 7; k++) (void)unlink(path_of(names[k]));
  return rmdir(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_model_changed_in_memory_comes_back),
      cmocka_unit_test(an_unpacked_model_can_be_worked_on),
      cmocka_unit_test(bytes_that_saving_would_change_come_back),
      cmocka_unit_test(zeros_keep_their_signs),
      cmocka_unit_test(packed_rows_are_the_weights),
      cmocka_unit_test(inputs_and_what_exists_are_kept),
      cmocka_unit_test(a_plan_of_a_pack_has_the_files_bits),
      cmocka_unit_test(a_pack_in_a_node_is_a_pack),
      cmocka_unit_test(every_failed_allocation_is_survived),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
