/* SPDX-License-Identifier: Apache-2.0
 * data: files of PyTorch in both of its formats: every tensor as torch.save got it, what is no
 * tensor refused by name, and every damaged file an error. tests/fixtures/torch/make.py made them.
 */
#include "data/torch_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "safetensors/safetensors.h"
#include "unit/data_folder.h"

#define FILES LAC_SOURCE_DIR "/tests/fixtures/torch/"
enum { MOST = 1 << 14 };

static void expect_floats(const laci_safetensors *f, const char *name, const char *type, int n,
                          const float *wanted) {
  float found[24] = {0};
  lac_error err = {0};
  const laci_safetensor *t = laci_safetensors_find_tensor(f, name);
  assert_non_null(t);
  assert_string_equal(t->type, type);
  assert_int_equal(t->count, n);
  if (laci_safetensors_read_floats(f, t, found, &err)) fail_msg("%s", err.text);
  for (int k = 0; k < n; k++) assert_true(found[k] == wanted[k]);
}

static void expect_state(const char *path) {
  float counted[24];
  for (int k = 0; k < 24; k++) counted[k] = (float)k;
  laci_safetensors *f = NULL;
  lac_error err = {0};
  if (laci_torch_file_open(path, &f, &err)) fail_msg("%s", err.text);
  expect_floats(f, "weight", "F32", 24, counted);
  expect_floats(f, "part", "F32", 12, counted + 6);
  expect_floats(f, "half", "F16", 4, counted);
  expect_floats(f, "bf16", "BF16", 2, (const float[]){1.5F, -2.0F});
  expect_floats(f, "double", "F64", 1, (const float[]){0.1F});
  const laci_safetensor *steps = laci_safetensors_find_tensor(f, "steps"),
                        *part = laci_safetensors_find_tensor(f, "part");
  assert_non_null(steps);
  assert_true(!steps->is_float && steps->rank == 0 && steps->size_bytes == 8);
  assert_true(part->rank == 2 && part->shape[0] == 2 && part->shape[1] == 6);
  assert_null(laci_safetensors_find_tensor(f, "exp_avg"));
  laci_safetensors_close(f);
}

static void both_formats_are_read(void **state) {
  (void)state;
  expect_state(FILES "state.pt");
  expect_state(FILES "old.pth");
}

static void refuse(const char *path, lac_status status, const char *text) {
  laci_safetensors *f = NULL;
  lac_error err = {0};
  assert_int_equal(laci_torch_file_open(path, &f, &err), status);
  assert_null(f);
  if (!strstr(err.text, text)) fail_msg("'%s', wanted '%s'", err.text, text);
}

static void what_is_no_tensor_is_refused_by_name(void **state) {
  (void)state;
  refuse(FILES "call.pt", LAC_UNSUPPORTED,
         "the name '__builtin__.print', wanted tensors and plain");
  refuse(FILES "strided.bin", LAC_UNSUPPORTED, "weight: it is not stored row by row");
  refuse(FILES "make.py", LAC_BAD_FILE, "no file that torch.save wrote");
  refuse(FILES "nothing.pt", LAC_NOT_FOUND, "nothing.pt");
}

static void write_bytes(const char *path, const uint8_t *bytes, size_t n) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, n, file), n);
  assert_int_equal(fclose(file), 0);
}

/** Opens what is damaged and reads all that it then has; true: it was refused, with a text. */
static bool is_refused(const char *path) {
  laci_safetensors *f = NULL;
  lac_error err = {0};
  int n = 0;
  if (laci_torch_file_open(path, &f, &err)) {
    assert_null(f);
    assert_true(err.text[0] != '\0');
    return true;
  }
  const laci_safetensor *t = laci_safetensors_list_tensors(f, &n);
  for (int k = 0; k < n; k++) {
    float *to = laci_alloc((size_t)t[k].count + 1, sizeof *to);
    assert_non_null(to);
    if (t[k].is_float) assert_int_equal(laci_safetensors_read_floats(f, &t[k], to, &err), LAC_OK);
    laci_free(to);
  }
  laci_safetensors_close(f);
  return false;
}

static void damaged_files_are_errors(void **state) {
  (void)state;
  static const char *const names[] = {"state.pt", "old.pth"};
  folder dir = make_folder();
  char path[FOLDER_PATH], from[512];
  path_in(path, &dir, "damaged.pt");
  for (int k = 0; k < 2; k++) {
    uint8_t bytes[MOST];
    (void)snprintf(from, sizeof from, FILES "%s", names[k]);
    FILE *file = fopen(from, "rb");
    assert_non_null(file);
    const size_t n = fread(bytes, 1, sizeof bytes, file);
    assert_int_equal(fclose(file), 0);
    assert_true(n > 0 && n < sizeof bytes);
    for (size_t length = 0; length < n; length += 7) { /* cut off */
      write_bytes(path, bytes, length);
      assert_true(is_refused(path));
    }
    size_t refused = 0;
    for (size_t at = 0; at < n; at += 3) { /* a byte changed: an error, or other values */
      const uint8_t before = bytes[at];
      bytes[at] = (uint8_t)(before ^ (at % 2 ? 0x81 : 0x04));
      write_bytes(path, bytes, n);
      refused += is_refused(path);
      bytes[at] = before;
    }
    assert_true(refused > n / 30);
  }
  remove_folder(&dir);
}

static void every_failed_allocation_is_an_error(void **state) {
  (void)state;
  for (int at = 1; at < 200; at++) {
    laci_safetensors *f = NULL;
    lac_error err = {0};
    laci_memory_fail_from(at);
    const lac_status st = laci_torch_file_open(FILES "old.pth", &f, &err);
    laci_memory_fail_from(0);
    if (st == LAC_OK) {
      laci_safetensors_close(f);
      assert_true(at > 3);
      return;
    }
    assert_int_equal(st, LAC_NO_MEMORY);
    assert_null(f);
  }
  fail_msg("it never succeeded");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(both_formats_are_read),
      cmocka_unit_test(what_is_no_tensor_is_refused_by_name),
      cmocka_unit_test(damaged_files_are_errors),
      cmocka_unit_test(every_failed_allocation_is_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
