/* SPDX-License-Identifier: Apache-2.0
 * Weights go into a model as arrays, and are what is read, run and saved. */
#include "onnx_build.h"

#include "base/memory.h"
#include "lacuna/lacuna.h"
#include "support/load_bytes.h"

/* y = x + b, of 4 floats each; nothing reads the other tensors. */
static lac_model *load(void) {
  build b;
  size_t n;
  lac_model *model = NULL;
  lac_error err = {0};
  const float four[] = {1, 2, 3, 4};
  const uint16_t halves[] = {0x3c00, 0x3c00, 0x3c00, 0x3c00};
  const int8_t bytes[] = {1, 2};
  const int64_t numbers[] = {4};
  build_init(&b);
  build_input(&b, "x", "4");
  PUSH(&b, b.graph, initializer, build_raw(&b, "b", LAC_DTYPE_F32, 4, four, sizeof four));
  PUSH(&b, b.graph, initializer, build_raw(&b, "h", LAC_DTYPE_F16, 4, halves, sizeof halves));
  PUSH(&b, b.graph, initializer, build_raw(&b, "q", LAC_DTYPE_I8, 2, bytes, sizeof bytes));
  PUSH(&b, b.graph, initializer, build_raw(&b, "shape", LAC_DTYPE_I64, 1, numbers, sizeof numbers));
  build_node(&b, b.graph, "Add", "x b", "y");
  build_output(&b, "y");
  uint8_t *file = build_bytes(&b, &n);
  if (load_bytes(file, n, &model, &err)) fail_msg("%s", err.text);
  build_clear(&b);
  return model;
}

static lac_array floats(const char *name, int64_t n, float *data) {
  return (lac_array){.name = name,
                     .dtype = LAC_DTYPE_F32,
                     .rank = 1,
                     .shape = {n},
                     .data = data,
                     .size_bytes = (size_t)n * sizeof *data};
}

static void what_was_set_is_read_run_and_saved(void **state) {
  (void)state;
  folder dir;
  folder_make(&dir);
  const char *path = in_folder(&dir, "a.onnx");
  lac_model *model = load(), *again = NULL;
  lac_session *session = NULL;
  lac_error err = {0};
  lac_tensor tensor = LAC_SIZED(lac_tensor);
  float b[] = {10, 20, 30, 40}, h[] = {0.5F, 1.0F / 3, 70000, -2}, x[] = {1, 1, 1, 1}, y[4] = {0};
  int8_t q[] = {-3, 7};
  const uint16_t rounded[] = {0x3800, 0x3555, 0x7c00, 0xc000}; /* a third, too large */
  lac_array values = floats("b", 4, b), in = floats("x", 4, x), out = floats("y", 4, y);
  if (lac_model_set_tensor(model, &values, &err)) fail_msg("%s", err.text);
  values = floats("h", 4, h);
  if (lac_model_set_tensor(model, &values, &err)) fail_msg("%s", err.text);
  values = (lac_array){
      .name = "q", .dtype = LAC_DTYPE_I8, .rank = 1, .shape = {2}, .data = q, .size_bytes = 2};
  if (lac_model_set_tensor(model, &values, &err)) fail_msg("%s", err.text);
  if (lac_model_save(model, path, false, &err)) fail_msg("%s", err.text);
  assert_int_equal(lac_model_load(path, NULL, &again, &err), LAC_OK);
  lac_model *const both[] = {model, again};
  for (int k = 0; k < 2; k++) {
    assert_int_equal(lac_model_find_tensor(both[k], "b", &tensor, &err), LAC_OK);
    assert_memory_equal(tensor.bytes, b, sizeof b);
    assert_int_equal(lac_model_find_tensor(both[k], "h", &tensor, &err), LAC_OK);
    assert_memory_equal(tensor.bytes, rounded, sizeof rounded);
    assert_int_equal(lac_model_find_tensor(both[k], "q", &tensor, &err), LAC_OK);
    assert_memory_equal(tensor.bytes, q, sizeof q);
  }
  if (lac_session_create(model, NULL, &session, &err)) fail_msg("%s", err.text);
  if (lac_session_run(session, &in, 1, &out, 1, &err)) fail_msg("%s", err.text);
  for (int k = 0; k < 4; k++) assert_true(y[k] == 1 + b[k]);
  lac_session_destroy(session);
  lac_model_destroy(again);
  lac_model_destroy(model);
  folder_remove(&dir);
}

static void expect_refused(lac_model *model, const lac_array *values, lac_status wanted,
                           const char *words) {
  lac_error err = {0};
  const lac_status st = lac_model_set_tensor(model, values, &err);
  if (st != wanted || !strstr(err.text, words)) fail_msg("status %d, \"%s\"", (int)st, err.text);
}

static void wrong_values_change_nothing(void **state) {
  (void)state;
  lac_model *model = load();
  lac_tensor tensor = LAC_SIZED(lac_tensor);
  float b[] = {10, 20, 30, 40};
  const float four[] = {1, 2, 3, 4};
  lac_array values = floats("b", 4, b);
  expect_refused(NULL, &values, LAC_BAD_ARGUMENT, "lac_model_set_tensor: model is NULL");
  expect_refused(model, NULL, LAC_BAD_ARGUMENT, "lac_model_set_tensor: values is NULL");
  values.name = NULL;
  expect_refused(model, &values, LAC_BAD_ARGUMENT, "values->name is NULL");
  values.name = "y";
  expect_refused(model, &values, LAC_NOT_FOUND, "y: no stored tensor has this name");
  values = floats("b", 3, b);
  expect_refused(model, &values, LAC_BAD_SHAPE, "b: values of shape [3], wanted [4]");
  values.rank = 9;
  expect_refused(model, &values, LAC_BAD_SHAPE, "b: rank 9");
  values = floats("b", 4, NULL);
  expect_refused(model, &values, LAC_BAD_ARGUMENT, "b: values without data");
  values = floats("b", 4, b);
  values.size_bytes = 15;
  expect_refused(model, &values, LAC_BAD_ARGUMENT, "b: size_bytes is 15, wanted 16");
  values = floats("b", 4, b);
  values.dtype = LAC_DTYPE_I32;
  expect_refused(model, &values, LAC_UNSUPPORTED, "b: values of type i32, wanted f32");
  values = floats("shape", 1, b);
  expect_refused(model, &values, LAC_UNSUPPORTED, "shape: elements of type i64, wanted a tensor");
  values = floats("b", 4, b);
  laci_memory_fail_from(1);
  expect_refused(model, &values, LAC_NO_MEMORY, "");
  laci_memory_fail_from(0);
  assert_int_equal(lac_model_find_tensor(model, "b", &tensor, NULL), LAC_OK);
  assert_memory_equal(tensor.bytes, four, sizeof four);
  lac_model_destroy(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(what_was_set_is_read_run_and_saved),
                                     cmocka_unit_test(wrong_values_change_nothing)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
