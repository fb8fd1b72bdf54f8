/* SPDX-License-Identifier: Apache-2.0
 * api: files of tensors without a network: what each tensor is, the pattern that it holds, its
 * elements; and what is no such file is refused by name.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lacuna/report.h"
#include "lacuna/tensor_file.h"
#include "unit/data_folder.h"

#define TORCH LAC_SOURCE_DIR "/tests/fixtures/torch/"

/* A safetensors file of one tensor. */
static void write_tensor(const char *path, const char *type, const char *shape, const void *bytes,
                         size_t n) {
  char header[256];
  uint8_t length[8];
  const int n_header =
      snprintf(header, sizeof header,
               "{\"w\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[0,%zu]}}", type, shape, n);
  for (int k = 0; k < 8; k++) length[k] = (uint8_t)((uint64_t)n_header >> (8 * k));
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(length, 1, 8, file), 8);
  assert_int_equal(fwrite(header, 1, (size_t)n_header, file), n_header);
  assert_int_equal(fwrite(bytes, 1, n, file), n);
  assert_int_equal(fclose(file), 0);
}

static lac_tensor_file *opened(const char *path) {
  lac_tensor_file *file = NULL;
  lac_error err = {0};
  if (lac_tensor_file_open(path, NULL, &file, &err)) fail_msg("%s", err.text);
  return file;
}

static lac_file_tensor measured(const lac_tensor_file *file, int at, int n, int m) {
  lac_file_tensor tensor = LAC_SIZED(lac_file_tensor);
  lac_error err = {0};
  if (lac_tensor_file_measure(file, at, n, m, &tensor, &err)) fail_msg("%s", err.text);
  return tensor;
}

static void patterns_are_found_along_their_axis(void **state) {
  (void)state;
  enum { SIDE = 8, N = SIDE * SIDE };
  static const struct {
    const char *shape;
    bool zero_where[SIDE]; /* in a column, or in a row where `rows` */
    bool rows, all;
    int n, m, axis, zeros;
  } cases[] = {
      {"[8,8]", {1, 1, 0, 0, 0, 1, 1, 0}, false, false, 2, 4, 1, 32}, /* columns */
      {"[8,8]", {1, 1, 0, 0, 0, 1, 1, 0}, true, false, 2, 4, 0, 32},  /* rows */
      {"[8,8]", {1, 1, 0, 0, 0, 1, 1, 0}, false, false, 1, 4, -1, 32},
      {"[8,8]", {1, 0, 0, 0, 0, 1, 1, 0}, false, false, 2, 4, -1, 24},
      {"[64]", {1, 1, 0, 0, 0, 1, 1, 0}, false, false, 2, 4, -1, 32}, /* one axis */
      {"[8,8]", {0}, false, true, 2, 4, -1, 64},                      /* nothing but zeros */
      {"[8,2,4]", {1, 1, 0, 0, 0, 1, 1, 0}, false, false, 2, 4, -1, 32},
      {"[8,8,1,1]", {1, 1, 1, 0, 0, 1, 1, 1}, false, false, 1, 4, 1, 48},
  };
  const folder f = make_folder();
  char path[FOLDER_PATH];
  path_in(path, &f, "a.safetensors");
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    float values[N];
    for (int at = 0; at < N; at++) {
      const bool zero = cases[k].all || cases[k].zero_where[cases[k].rows ? at / SIDE : at % SIDE];
      values[at] = zero ? 0 : (float)(at + 1);
    }
    write_tensor(path, "F32", cases[k].shape, values, sizeof values);
    lac_tensor_file *file = opened(path);
    assert_int_equal(lac_tensor_file_count(file), 1);
    const lac_file_tensor tensor = measured(file, 0, cases[k].n, cases[k].m);
    if (tensor.pattern_axis != cases[k].axis || tensor.n_zeros != cases[k].zeros)
      fail_msg("case %zu: axis %d, %lld zeros", k, tensor.pattern_axis, (long long)tensor.n_zeros);
    float read[N] = {0};
    assert_int_equal(lac_tensor_file_read(file, 0, read, N, NULL), LAC_OK);
    assert_memory_equal(read, values, sizeof values);
    lac_tensor_file_close(file);
  }
  assert_int_equal(remove(path), 0);
  assert_int_equal(remove(f.path), 0);
}

static void what_cannot_be_measured_is_not(void **state) {
  (void)state;
  const folder f = make_folder();
  char path[FOLDER_PATH];
  const float odd[4] = {0, NAN, 1, 0};
  const int32_t counts[4] = {0};
  path_in(path, &f, "a.safetensors");
  write_tensor(path, "F32", "[1,4]", odd, sizeof odd);
  lac_tensor_file *file = opened(path);
  lac_file_tensor tensor = measured(file, 0, 2, 4);
  assert_true(tensor.is_float && tensor.n_zeros == -1 && tensor.pattern_axis == -1);
  lac_tensor_file_close(file);
  write_tensor(path, "I32", "[1,4]", counts, sizeof counts);
  file = opened(path);
  tensor = measured(file, 0, 2, 4);
  assert_true(!tensor.is_float && tensor.n_zeros == -1 && tensor.pattern_axis == -1);
  lac_error err = {0};
  float to[4];
  assert_int_equal(lac_tensor_file_read(file, 0, to, 4, &err), LAC_UNSUPPORTED);
  assert_non_null(strstr(err.text, "w is of type I32"));
  lac_tensor_file_close(file);
  write_tensor(path, "F32", "[0,4]", odd, 0);
  file = opened(path);
  assert_int_equal(lac_tensor_file_read(file, 0, NULL, 0, NULL), LAC_OK);
  assert_int_equal(measured(file, 0, 2, 4).n_elements, 0);
  lac_tensor_file_close(file);
  assert_int_equal(remove(path), 0);
  assert_int_equal(remove(f.path), 0);
}

static void files_of_pytorch_are_listed(void **state) {
  (void)state;
  static const char *const names[] = {TORCH "state.pt", TORCH "old.pth"};
  for (int k = 0; k < 2; k++) {
    assert_true(lac_tensor_file_is(names[k]));
    lac_tensor_file *file = opened(names[k]);
    char *text = NULL;
    assert_int_equal(lac_tensor_file_count(file), 6);
    lac_file_tensor last = LAC_SIZED(lac_file_tensor);
    assert_int_equal(lac_tensor_file_get(file, 5, &last, NULL), LAC_OK);
    assert_string_equal(last.name, "weight");
    assert_true(last.rank == 2 && last.shape[0] == 4 && last.shape[1] == 6 && last.n_zeros == -1);
    assert_int_equal(measured(file, 5, 2, 4).n_zeros, 1);
    assert_int_equal(lac_tensor_file_json(file, 2, 4, &text, NULL), LAC_OK);
    assert_non_null(strstr(text, "\"name\": \"bf16\""));
    lac_text_free(text);
    lac_tensor_file_close(file);
  }
}

static void what_is_wrong_is_refused(void **state) {
  (void)state;
  lac_error err = {0};
  lac_tensor_file *file = NULL;
  const char *model = LAC_SOURCE_DIR "/examples/digits/digits.onnx";
  assert_false(lac_tensor_file_is(model) || lac_tensor_file_is("absent.pt") ||
               lac_tensor_file_is(NULL));
  assert_int_equal(lac_tensor_file_open(model, NULL, &file, &err), LAC_BAD_FILE);
  assert_non_null(strstr(err.text, "no file of tensors"));
  assert_int_equal(lac_tensor_file_open("absent.pt", NULL, &file, NULL), LAC_NOT_FOUND);
  assert_int_equal(lac_tensor_file_open(TORCH "call.pt", NULL, &file, &err), LAC_UNSUPPORTED);
  assert_null(file);
  file = opened(TORCH "state.pt");
  lac_file_tensor tensor = LAC_SIZED(lac_file_tensor);
  float to[24];
  char *text = NULL;
  assert_int_equal(lac_tensor_file_get(file, 6, &tensor, NULL), LAC_NOT_FOUND);
  assert_int_equal(lac_tensor_file_get(file, -1, &tensor, NULL), LAC_NOT_FOUND);
  assert_int_equal(lac_tensor_file_measure(file, 5, 4, 4, &tensor, NULL), LAC_BAD_ARGUMENT);
  assert_int_equal(lac_tensor_file_json(file, 0, 4, &text, NULL), LAC_BAD_ARGUMENT);
  assert_null(text);
  assert_int_equal(lac_tensor_file_read(file, 5, to, 23, NULL), LAC_BAD_SHAPE);
  tensor.size = 0;
  assert_int_equal(lac_tensor_file_get(file, 0, &tensor, NULL), LAC_BAD_ARGUMENT);
  lac_tensor_file_close(file);
  lac_tensor_file_close(NULL);
  assert_int_equal(lac_tensor_file_count(NULL), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(patterns_are_found_along_their_axis),
      cmocka_unit_test(what_cannot_be_measured_is_not),
      cmocka_unit_test(files_of_pytorch_are_listed),
      cmocka_unit_test(what_is_wrong_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
