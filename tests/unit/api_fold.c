/* SPDX-License-Identifier: Apache-2.0
 * lac_model_fold: products become stored tensors of the value's name, what made them goes, all else
 * stays; under a failing allocation the model is what it was. The file's types are f64, f16 and
 * bf16, whose products are rounded once. */
#include "onnx_build.h"

#include <math.h>

#include "api/model/model_in.h"
#include "base/memory.h"
#include "lacuna/prune.h"
#include "support/load_bytes.h"
#include "tensor/buf.h"

enum { K = 16, C = 16, N = K * C };

/* In +-[0.25, 1.25), of three digits. */
static double number(int seed, int at) {
  const int x = (at * 37 + seed * 101 + at * at * 7) % 1000;
  return (at + seed) % 2 ? -0.25 - x / 1000.0 : 0.25 + x / 1000.0;
}

static void add_tensor(build *b, const char *name, int dtype, int seed) {
  double values[N];
  uint8_t *bytes = build_alloc(b, N, sizeof *values);
  for (int at = 0; at < N; at++) values[at] = number(seed, at);
  laci_write_f64((lac_dtype)dtype, values, N, bytes);
  PUSH(b, b->graph, initializer,
       build_raw(b, name, dtype, N, bytes, N * lac_dtype_size((lac_dtype)dtype)));
  Onnx__TensorProto *tensor = b->graph->initializer[b->graph->n_initializer - 1];
  int64_t *dims = build_alloc(b, 2, sizeof *dims);
  dims[0] = K;
  dims[1] = C;
  tensor->dims = dims;
  tensor->n_dims = 2;
}

/* block(x, w, s) = x (w + s), called twice: y = block(block(x, w, s), v, s). */
static lac_model *load_function(lac_error *err) {
  build b;
  lac_model *model = NULL;
  size_t n;
  build_init(&b);
  build_opset(&b, "local", 1);
  PUSH(&b, b.graph, input, build_info(&b, "x", LAC_DTYPE_F32, "2 16"));
  for (int k = 0; k < 3; k++) add_tensor(&b, (const char *[]){"w", "s", "v"}[k], LAC_DTYPE_F32, k);
  Onnx__FunctionProto *f = BUILD_NEW(&b, Onnx__FunctionProto, ONNX__FUNCTION_PROTO__INIT);
  f->name = build_text(&b, "block");
  f->domain = build_text(&b, "local");
  build_names(&b, &f->input, &f->n_input, "x w s");
  build_names(&b, &f->output, &f->n_output, "r");
  Onnx__NodeProto *add = build_node_of(&b, "Add", "w s", "k");
  Onnx__NodeProto *product = build_node_of(&b, "MatMul", "x k", "r");
  PUSH(&b, f, node, add);
  PUSH(&b, f, node, product);
  Onnx__OperatorSetIdProto *set =
      BUILD_NEW(&b, Onnx__OperatorSetIdProto, ONNX__OPERATOR_SET_ID_PROTO__INIT);
  set->domain = build_text(&b, "");
  set->has_version = 1;
  set->version = 17;
  PUSH(&b, f, opset_import, set);
  PUSH(&b, b.model, functions, f);
  for (int k = 0; k < 2; k++) {
    Onnx__NodeProto *call = build_node(&b, b.graph, "block", k ? "a v s" : "x w s", k ? "y" : "a");
    call->domain = build_text(&b, "local");
    call->name = build_text(&b, k ? "second" : "first");
  }
  build_output(&b, "y");
  uint8_t *bytes = build_bytes(&b, &n);
  lac_status st = load_bytes(bytes, n, &model, err);
  build_clear(&b);
  return st ? NULL : model;
}

/* y = x (w + s) + (x v): the sum is a weight, v is one already, "used" reads it. */
static lac_model *load_ir(int ir_version, int dtype, lac_error *err) {
  build b;
  lac_model *model = NULL;
  size_t n;
  build_init(&b);
  b.model->ir_version = ir_version;
  PUSH(&b, b.graph, input, build_info(&b, "x", dtype, "2 16"));
  add_tensor(&b, "w", dtype, 1);
  add_tensor(&b, "s", dtype, 2);
  add_tensor(&b, "v", dtype, 3);
  build_node(&b, b.graph, "Add", "w s", "sum");
  build_node(&b, b.graph, "Identity", "sum", "k");
  build_node(&b, b.graph, "MatMul", "x k", "a");
  build_node(&b, b.graph, "MatMul", "x v", "c");
  build_node(&b, b.graph, "Add", "a c", "y");
  PUSH(&b, b.graph, output, build_info(&b, "y", dtype, NULL));
  uint8_t *bytes = build_bytes(&b, &n);
  lac_status st = load_bytes(bytes, n, &model, err);
  build_clear(&b);
  return st ? NULL : model;
}

static lac_model *load(int dtype, lac_error *err) { return load_ir(8, dtype, err); }

/* y = x (w + s) (v + t). */
static lac_model *load_two(lac_error *err) {
  build b;
  lac_model *model = NULL;
  size_t n;
  build_init(&b);
  PUSH(&b, b.graph, input, build_info(&b, "x", LAC_DTYPE_F32, "2 16"));
  for (int k = 0; k < 4; k++)
    add_tensor(&b, (const char *[]){"w", "s", "v", "t"}[k], LAC_DTYPE_F32, k);
  build_node(&b, b.graph, "Add", "w s", "k");
  build_node(&b, b.graph, "MatMul", "x k", "a");
  build_node(&b, b.graph, "Add", "v t", "l");
  build_node(&b, b.graph, "MatMul", "a l", "y");
  build_output(&b, "y");
  uint8_t *bytes = build_bytes(&b, &n);
  lac_status st = load_bytes(bytes, n, &model, err);
  build_clear(&b);
  return st ? NULL : model;
}

static bool has(const lac_model *model, const char *name) {
  lac_tensor tensor = LAC_SIZED(lac_tensor);
  return !lac_model_find_tensor(model, name, &tensor, NULL);
}

static void a_sum_is_stored_under_its_name_and_rounded_once(void **state) {
  (void)state;
  static const lac_dtype types[] = {LAC_DTYPE_F32, LAC_DTYPE_F64, LAC_DTYPE_F16, LAC_DTYPE_BF16};
  for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
    lac_error err = {0};
    lac_tensor sum = LAC_SIZED(lac_tensor);
    int folded = 0;
    lac_model *model = load((int)types[t], &err);
    if (!model) fail_msg("%s", err.text);
    assert_int_equal(lac_model_fold(model, LAC_FOLD_ALONE, 0, NULL, &folded, &err), LAC_OK);
    assert_int_equal(folded, 1);
    assert_int_equal(lac_model_find_tensor(model, "sum", &sum, &err), LAC_OK);
    assert_int_equal(sum.dtype, types[t]);
    assert_false(has(model, "w") || has(model, "s"));
    assert_true(has(model, "v"));
    for (int at = 0; at < N; at++) {
      uint8_t parts[2][8], want[8];
      double a = number(1, at), b = number(2, at);
      laci_write_f64(types[t], &a, 1, parts[0]);
      laci_write_f64(types[t], &b, 1, parts[1]);
      laci_read_f64(types[t], parts[0], 0, 1, &a);
      laci_read_f64(types[t], parts[1], 0, 1, &b);
      a += b;
      laci_write_f64(types[t], &a, 1, want);
      const size_t size = lac_dtype_size(types[t]);
      assert_memory_equal((const uint8_t *)sum.bytes + (size_t)at * size, want, size);
    }
    lac_model_destroy(model);
  }
}

static void only_the_node_that_made_it_goes(void **state) {
  (void)state;
  lac_error err = {0};
  lac_model *model = load(LAC_DTYPE_F32, &err);
  assert_non_null(model);
  assert_int_equal(lac_model_fold(model, LAC_FOLD_ALL, 0, NULL, NULL, &err), LAC_OK);
  static const char *const types[] = {"Identity", "MatMul", "MatMul", "Add"};
  assert_int_equal(model->graph->n_nodes, 4);
  for (int n = 0; n < 4; n++) assert_string_equal(model->graph->nodes[n].type, types[n]);
  int folded = 0;
  assert_int_equal(lac_model_fold(model, LAC_FOLD_ALL, 0, NULL, &folded, &err),
                   LAC_OK); /* nothing */
  lac_model_destroy(model);
}

static void a_budget_that_is_too_small_leaves_the_weight(void **state) {
  (void)state;
  lac_error err = {0};
  int folded = -1;
  lac_model *model = load(LAC_DTYPE_F32, &err);
  assert_non_null(model);
  assert_int_equal(lac_model_fold(model, LAC_FOLD_ALL, 4000, NULL, &folded, &err), LAC_OK);
  assert_int_equal(folded, 0);
  assert_true(has(model, "w"));
  lac_model_destroy(model);
}

/* How often each number of weights is stored under budgets that grow. */
static void sweep_budget(lac_model *(*make)(lac_error *), int found[3]) {
  int before = 0;
  for (uint64_t most = 1024; most <= 65536; most += 256) {
    lac_error err = {0};
    int folded = -1;
    lac_model *model = make(&err);
    assert_non_null(model);
    assert_int_equal(lac_model_fold(model, LAC_FOLD_ALONE, most, NULL, &folded, &err), LAC_OK);
    assert_in_range(folded, before, 2);
    found[folded]++;
    before = folded;
    lac_model_destroy(model);
  }
}

static void weights_stored_so_far_count_against_the_budget(void **state) {
  (void)state;
  int found[3] = {0}, in_calls[3] = {0};
  sweep_budget(load_two, found);
  assert_true(found[0] > 0 && found[2] > 0);
  assert_true(found[1] * 256 >= 2 * N * 4); /* the first one is kept twice at that time */
  sweep_budget(load_function, in_calls);
  assert_true(in_calls[0] > found[0] && in_calls[1] == 0 && in_calls[2] > 0);
}

static void choices_and_models_are_checked(void **state) {
  (void)state;
  lac_error err = {0};
  lac_model *model = load(LAC_DTYPE_F32, &err);
  assert_int_equal(lac_model_fold(NULL, LAC_FOLD_ALL, 0, NULL, NULL, &err), LAC_BAD_ARGUMENT);
  assert_int_equal(lac_model_fold(model, (lac_fold)7, 0, NULL, NULL, &err), LAC_BAD_ARGUMENT);
  assert_int_equal(lac_model_fold(model, (lac_fold)-1, 0, NULL, NULL, NULL), LAC_BAD_ARGUMENT);
  lac_model_destroy(model);
}

static void every_allocation_fails_in_turn(void **state) {
  (void)state;
  static const int versions[] = {8, 3}; /* the older one lists stored tensors as inputs */
  for (int k = 0; k < 2; k++) {
    bool done = false;
    long n = 1;
    for (; !done; n++) {
      lac_error err = {0};
      lac_model *model = load_ir(versions[k], LAC_DTYPE_F32, &err);
      assert_non_null(model);
      laci_memory_fail_from(n);
      done = lac_model_fold(model, LAC_FOLD_ALONE, 0, NULL, NULL, &err) == LAC_OK;
      laci_memory_fail_from(0);
      if (!done && err.status != LAC_NO_MEMORY) fail_msg("allocation %ld: %s", n, err.text);
      assert_true(has(model, "v") && has(model, "w") == !done && has(model, "sum") == done);
      assert_int_equal(model->graph->n_nodes, done ? 4 : 5);
      lac_model_destroy(model);
    }
    assert_true(n > 50);
  }
}

static void a_function_is_changed_as_a_whole_or_not_at_all(void **state) {
  (void)state;
  bool done = false;
  long n = 1;
  for (; !done; n++) {
    lac_error err = {0};
    lac_model *model = load_function(&err);
    if (!model) fail_msg("%s", err.text);
    laci_memory_fail_from(n);
    done = lac_model_fold(model, LAC_FOLD_ALONE, 0, NULL, NULL, &err) == LAC_OK;
    laci_memory_fail_from(0);
    if (!done && err.status != LAC_NO_MEMORY) fail_msg("allocation %ld: %s", n, err.text);
    assert_int_equal(model->graph->n_nodes, done ? 2 : 4);
    const char *const before[] = {"w", "s", "v"}, *const after[] = {"first/k", "second/k"};
    for (int k = 0; k < 3; k++) assert_true(has(model, before[k]) == !done);
    for (int k = 0; k < 2; k++) assert_true(has(model, after[k]) == done);
    lac_model_destroy(model);
  }
  assert_true(n > 50);
}

static void a_folded_weight_is_pruned_and_the_report_says_so(void **state) {
  (void)state;
  lac_error err = {0};
  lac_report *report = NULL;
  lac_options options = lac_options_default();
  options.permute = false;
  lac_model *model = load(LAC_DTYPE_F32, &err);
  assert_int_equal(lac_prune(model, &options, &report, &err), LAC_OK);
  assert_int_equal(report->summary.layers, 2); /* as it is: a row and a reason */
  assert_int_equal(report->summary.pruned, 1);
  assert_true(report->layers[1].computed && !report->layers[1].eligible);
  lac_report_destroy(report);
  lac_model_destroy(model);
  model = load(LAC_DTYPE_F32, &err);
  assert_int_equal(lac_model_fold(model, LAC_FOLD_ALONE, 0, NULL, NULL, &err), LAC_OK);
  assert_int_equal(lac_prune(model, &options, &report, &err), LAC_OK);
  assert_int_equal(report->summary.pruned, 2);
  assert_int_equal(report->summary.folded, 1);
  assert_true(report->layers[0].folded && !report->layers[1].folded);
  lac_report_destroy(report);
  lac_model_destroy(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_sum_is_stored_under_its_name_and_rounded_once),
      cmocka_unit_test(only_the_node_that_made_it_goes),
      cmocka_unit_test(a_budget_that_is_too_small_leaves_the_weight),
      cmocka_unit_test(weights_stored_so_far_count_against_the_budget),
      cmocka_unit_test(choices_and_models_are_checked),
      cmocka_unit_test(every_allocation_fails_in_turn),
      cmocka_unit_test(a_function_is_changed_as_a_whole_or_not_at_all),
      cmocka_unit_test(a_folded_weight_is_pruned_and_the_report_says_so),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
