/* SPDX-License-Identifier: Apache-2.0
 * api: weights of files for fresh networks: every element comes over, in each type; what is
 * damaged, missing or of another shape is refused by name; PyTorch's files are read without running
 * what they name.
 */
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "lacuna/pretrained.h"
#include "lacuna/train.h"
#include "tensor/buf.h"
#include "unit/data_folder.h"

enum { HEADER = 1 << 16 };

static lac_model *network(const char *name, int classes, uint64_t seed) {
  lac_network_options o = {
      .size = sizeof(lac_network_options), .name = name, .classes = classes, .seed = seed};
  lac_model *model = NULL;
  lac_error err = {0};
  if (lac_network_create(&o, &model, &err)) fail_msg("%s", err.text);
  return model;
}

static void write_file(const char *path, const void *header, size_t n_header, const void *data,
                       size_t n_data) {
  uint8_t length[8];
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  for (int k = 0; k < 8; k++) length[k] = (uint8_t)((uint64_t)n_header >> (8 * k));
  assert_int_equal(fwrite(length, 1, 8, file), 8);
  assert_int_equal(fwrite(header, 1, n_header, file), n_header);
  if (n_data) assert_int_equal(fwrite(data, 1, n_data, file), n_data);
  assert_int_equal(fclose(file), 0);
}

/* How a network is written. */
typedef struct layout {
  lac_dtype dtype;
  const char *type, *prefix, *classifier; /* "F32", "module.", "fc" */
  const char *without, *also;             /* a tensor that is left out; JSON of more, or NULL */
} layout;

/* The model's float tensors as a safetensors file. */
static void write_network(const lac_model *model, const char *path, const layout *how) {
  char *header = laci_alloc(HEADER, 1);
  uint8_t *data = laci_alloc(1 << 25, 1);
  size_t n = 0, used = 0, element = lac_dtype_size(how->dtype);
  assert_true(header && data);
  n += (size_t)snprintf(header, HEADER, "{\"__metadata__\":{\"format\":\"pt\"}");
  for (int k = 0; k < lac_model_tensor_count(model); k++) {
    lac_tensor t = LAC_SIZED(lac_tensor);
    assert_int_equal(lac_model_tensor(model, k, &t, NULL), LAC_OK);
    if (t.dtype != LAC_DTYPE_F32 || (how->without && strcmp(how->without, t.name) == 0)) continue;
    size_t count = t.size_bytes / sizeof(float);
    bool renamed = strncmp(t.name, "fc.", 3) == 0;
    n += (size_t)snprintf(header + n, HEADER - n, ",\"%s%s%s\":{\"dtype\":\"%s\",\"shape\":[",
                          how->prefix, renamed ? how->classifier : "",
                          renamed ? t.name + 2 : t.name, how->type);
    for (int axis = 0; axis < t.rank; axis++) {
      n += (size_t)snprintf(header + n, HEADER - n, "%s%" PRId64, axis ? "," : "", t.shape[axis]);
    }
    laci_write_f32(how->dtype, t.bytes, (int64_t)count, data + used);
    n += (size_t)snprintf(header + n, HEADER - n, "],\"data_offsets\":[%zu,%zu]}", used,
                          used + count * element);
    used += count * element;
  }
  n += (size_t)snprintf(header + n, HEADER - n, "%s}", how->also ? how->also : "");
  assert_true(n < HEADER);
  write_file(path, header, n, data, used);
  laci_free(header);
  laci_free(data);
}

/* Elements of `found` that are not those of `wanted`, as the type rounds them. */
static int n_other(const lac_model *wanted, const lac_model *found, lac_dtype dtype) {
  int n = 0;
  for (int k = 0; k < lac_model_tensor_count(wanted); k++) {
    lac_tensor a = LAC_SIZED(lac_tensor), b = LAC_SIZED(lac_tensor);
    uint8_t rounded[8];
    double value;
    assert_int_equal(lac_model_tensor(wanted, k, &a, NULL), LAC_OK);
    assert_int_equal(lac_model_tensor(found, k, &b, NULL), LAC_OK);
    assert_int_equal(a.size_bytes, b.size_bytes);
    if (a.dtype != LAC_DTYPE_F32) continue;
    for (size_t at = 0; at < a.size_bytes; at += 4) {
      float x, y;
      memcpy(&x, (const char *)a.bytes + at, 4);
      memcpy(&y, (const char *)b.bytes + at, 4);
      laci_write_f32(dtype, &x, 1, rounded);
      laci_read_f64(dtype, rounded, 0, 1, &value);
      n += !((float)value == y);
    }
  }
  return n;
}

static void all_weights_come_over_in_every_type_and_naming(void **state) {
  (void)state;
  static const layout hows[] = {
      {LAC_DTYPE_F32, "F32", "", "fc", NULL, NULL},
      {LAC_DTYPE_F64, "F64", "", "fc", NULL, NULL},
      {LAC_DTYPE_F16, "F16", "", "linear", NULL, NULL},
      {LAC_DTYPE_BF16, "BF16", "module.", "linear", NULL, NULL},
  };
  static const char *const names[] = {"digits", "cifar-resnet20"};
  for (size_t which = 0; which < 2; which++) {
    lac_model *from = network(names[which], 0, 1);
    for (size_t k = 0; k < sizeof hows / sizeof *hows; k++) {
      folder f = make_folder();
      char path[FOLDER_PATH];
      lac_pretrained found = LAC_SIZED(lac_pretrained);
      lac_error err = {0};
      lac_model *to = network(names[which], 0, 2);
      path_in(path, &f, "net.safetensors");
      write_network(from, path, &hows[k]);
      assert_true(n_other(from, to, hows[k].dtype) > 100);
      if (lac_pretrained_read(to, path, NULL, &found, &err)) fail_msg("%s", err.text);
      assert_int_equal(n_other(from, to, hows[k].dtype), 0);
      assert_true(found.n_taken > 10 && !found.fresh_classifier && found.n_unknown == 0);
      lac_model_destroy(to);
      remove_folder(&f);
    }
    lac_model_destroy(from);
  }
}

static void an_onnx_file_gives_its_weights_too(void **state) {
  (void)state;
  folder f = make_folder();
  char path[FOLDER_PATH];
  lac_pretrained found = LAC_SIZED(lac_pretrained);
  lac_error err = {0};
  lac_model *from = network("digits", 0, 1), *to = network("digits", 0, 2);
  path_in(path, &f, "net.onnx");
  if (lac_model_save(from, path, false, &err)) fail_msg("%s", err.text);
  if (lac_pretrained_read(to, path, NULL, &found, &err)) fail_msg("%s", err.text);
  assert_int_equal(n_other(from, to, LAC_DTYPE_F32), 0);
  lac_model_destroy(from);
  lac_model_destroy(to);
  remove_folder(&f);
}

static void other_classes_leave_the_classifier_fresh_and_what_is_more_is_counted(void **state) {
  (void)state;
  static const layout how = {
      LAC_DTYPE_F32,
      "F32",
      "",
      "fc",
      NULL,
      ",\"bn1.num_batches_tracked\":{\"dtype\":\"I64\",\"shape\":[0],\"data_offsets\":[0,0]}"
      ",\"aux.weight\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}"};
  folder f = make_folder();
  char path[FOLDER_PATH];
  lac_pretrained found = LAC_SIZED(lac_pretrained);
  lac_tensor fresh = LAC_SIZED(lac_tensor), kept = LAC_SIZED(lac_tensor);
  lac_error err = {0};
  lac_model *from = network("digits", 10, 1), *to = network("digits", 7, 2),
            *before = network("digits", 7, 2);
  path_in(path, &f, "net");
  write_network(from, path, &how);
  if (lac_pretrained_read(to, path, NULL, &found, &err)) fail_msg("%s", err.text);
  assert_true(found.fresh_classifier && found.classes == 10);
  assert_int_equal(found.n_unknown, 1);
  assert_string_equal(found.unknown, "aux.weight");
  assert_int_equal(lac_model_find_tensor(before, "fc.weight", &fresh, NULL), LAC_OK);
  assert_int_equal(lac_model_find_tensor(to, "fc.weight", &kept, NULL), LAC_OK);
  assert_memory_equal(fresh.bytes, kept.bytes, kept.size_bytes);
  lac_model_destroy(from);
  lac_model_destroy(to);
  lac_model_destroy(before);
  remove_folder(&f);
}

/* ---- What is refused ---- */

static void refuse(const char *path, lac_status wanted, const char *text) {
  lac_pretrained found = LAC_SIZED(lac_pretrained);
  lac_error err = {0};
  lac_model *to = network("digits", 0, 2);
  lac_status st = lac_pretrained_read(to, path, NULL, &found, &err);
  if (st != wanted || !strstr(err.text, text)) fail_msg("%d %s, wanted %s", st, err.text, text);
  lac_model_destroy(to);
}

#define X "\"x\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}"

static void a_damaged_header_is_refused_by_what_is_wrong(void **state) {
  (void)state;
  static const struct {
    const char *header, *text;
  } cases[] = {
      {"{" X "}",
       "it has no tensor conv1.weight, which the network needs"}, /* whole, but another */
      {"", "not the header of a safetensors file"},
      {"{\"x\":", "not the header of a safetensors file"},
      {"[]", "its header is no JSON object"},
      {"{\"x\":3}", "x: it has no dtype"},
      {"{\"x\":{\"dtype\":3}}", "x: it has no dtype"},
      {"{\"x\":{\"dtype\":\"F31\",\"shape\":[2],\"data_offsets\":[0,8]}}", "x: unknown dtype F31"},
      {"{\"x\":{\"dtype\":\"F32\",\"data_offsets\":[0,8]}}", "x: it has no shape"},
      {"{\"x\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,2],\"data_offsets\":[0,8]}}",
       "x: more than 8 axes"},
      {"{\"x\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}}", "x: its shape is none"},
      {"{\"x\":{\"dtype\":\"F32\",\"shape\":[2.0],\"data_offsets\":[0,8]}}",
       "x: its shape is none"},
      {"{\"x\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,8]}}",
       "x: its shape is none"},
      {"{\"x\":{\"dtype\":\"F64\",\"shape\":[2305843009213693952],\"data_offsets\":[0,0]}}",
       "elements of F64 in 0 bytes"},
      {"{\"x\":{\"dtype\":\"F32\",\"shape\":[2]}}", "x: it has no pair of data_offsets"},
      {"{\"x\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0]}}", "no pair of data_offsets"},
      {"{\"x\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,17]}}",
       "x: bytes 0 to 17, but the file has 16 of tensors"},
      {"{\"x\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", "x: bytes 8 to 0"},
      {"{\"x\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[-8,0]}}", "x: bytes -8 to 0"},
      {"{\"x\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}",
       "x: 3 elements of F32 in 8 bytes"},
      {"{" X ",\"y\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}",
       "x and y overlap"},
      {"{" X ",\"y\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", "overlap"},
      {"{" X "," X "}", "not the header of a safetensors file"}, /* twice */
  };
  static const uint8_t data[16];
  folder f = make_folder();
  char path[FOLDER_PATH];
  path_in(path, &f, "net.safetensors");
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    write_file(path, cases[k].header, strlen(cases[k].header), data, sizeof data);
    refuse(path, LAC_BAD_FILE, cases[k].text);
  }
  write_file(path, "{}\0}", 4, data, sizeof data);
  refuse(path, LAC_BAD_FILE, "a zero byte");
  remove_folder(&f);
}

static void a_wrong_length_takes_no_memory(void **state) {
  (void)state;
  static const uint64_t lengths[] = {9, 100000001, 1ULL << 32, UINT64_MAX};
  folder f = make_folder();
  char path[FOLDER_PATH];
  path_in(path, &f, "net.safetensors");
  for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    for (int byte = 0; byte < 8; byte++)
      assert_true(fputc((int)(lengths[k] >> (8 * byte) & 255), file) >= 0);
    assert_int_equal(fwrite("{\"x\":{}}", 1, 8, file), 8);
    assert_int_equal(fclose(file), 0);
    size_t taken = laci_memory_total_allocated();
    lac_model *to = network("digits", 0, 2);
    size_t of_network = laci_memory_total_allocated() - taken;
    lac_pretrained found = LAC_SIZED(lac_pretrained);
    assert_int_equal(lac_pretrained_read(to, path, NULL, &found, NULL), LAC_BAD_FILE);
    assert_true(laci_memory_total_allocated() - taken < of_network + (1 << 20));
    lac_model_destroy(to);
    refuse(path, LAC_BAD_FILE, "its header claims");
  }
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite("\3\0\0", 1, 3, file), 3);
  assert_int_equal(fclose(file), 0);
  refuse(path, LAC_BAD_FILE, "3 bytes, too few for a safetensors file");
  remove_folder(&f);
}

static void every_cut_is_refused(void **state) {
  (void)state;
  static const layout how = {LAC_DTYPE_F16, "F16", "", "fc", NULL, NULL};
  folder f = make_folder();
  char path[FOLDER_PATH], cut[FOLDER_PATH];
  static uint8_t bytes[1 << 20];
  lac_model *from = network("digits", 0, 1);
  path_in(path, &f, "net.safetensors");
  path_in(cut, &f, "cut.safetensors");
  write_network(from, path, &how);
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  size_t n = fread(bytes, 1, sizeof bytes, file);
  assert_true(n > 1000 && n < sizeof bytes);
  (void)fclose(file);
  for (size_t k = 0; k < 24; k++) {
    size_t left = k < 12 ? k : n - 1 - (n / 12) * (k - 12);
    lac_pretrained found = LAC_SIZED(lac_pretrained);
    lac_model *to = network("digits", 0, 2);
    file = fopen(cut, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, left, file), left);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(lac_pretrained_read(to, cut, NULL, &found, NULL), LAC_BAD_FILE);
    lac_model_destroy(to);
  }
  lac_model_destroy(from);
  remove_folder(&f);
}

static void what_does_not_fit_is_named(void **state) {
  (void)state;
  static const layout without = {LAC_DTYPE_F32, "F32", "", "fc", "bn1.running_var", NULL},
                      whole = {LAC_DTYPE_F32, "F32", "", "fc", NULL, NULL},
                      integers = {LAC_DTYPE_F32, "I32", "", "fc", NULL, NULL};
  folder f = make_folder();
  char path[FOLDER_PATH];
  lac_model *digits = network("digits", 0, 1), *cifar = network("cifar-resnet20", 0, 1);
  path_in(path, &f, "net.safetensors");
  write_network(digits, path, &without);
  refuse(path, LAC_BAD_FILE, "it has no tensor bn1.running_var, which the network needs");
  write_network(cifar, path, &whole);
  refuse(path, LAC_BAD_SHAPE, "conv1.weight is [16, 3, 3, 3], wanted [");
  write_network(digits, path, &integers);
  refuse(path, LAC_UNSUPPORTED, "conv1.weight is of type I32, wanted F32, F16, BF16 or F64");
  path_in(path, &f, "nothing");
  refuse(path, LAC_NOT_FOUND, "nothing");
  lac_model_destroy(digits);
  lac_model_destroy(cifar);
  remove_folder(&f);
}

static void pytorchs_files_are_read_and_never_run(void **state) {
  (void)state;
  static const struct {
    const char *name, *bytes, *text;
  } cases[] = {{"net.pth", "anything", "no file that torch.save wrote"},
               {"pytorch_model.bin", "x", "no file that torch.save wrote"},
               {"best.pth.tar", "x", "no file that torch.save wrote"},
               {"net", "PK\3\4zip...", "net"}};
  folder f = make_folder();
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    char path[FOLDER_PATH];
    path_in(path, &f, cases[k].name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_true(fputs(cases[k].bytes, file) >= 0);
    assert_int_equal(fclose(file), 0);
    refuse(path, LAC_BAD_FILE, cases[k].text);
  }
  remove_folder(&f);
  refuse(LAC_SOURCE_DIR "/tests/fixtures/torch/call.pt", LAC_UNSUPPORTED, "'__builtin__.print'");
  refuse(LAC_SOURCE_DIR "/tests/fixtures/torch/state.pt", LAC_BAD_FILE, "it has no statistics");
}

static void not_a_number_is_a_number_of_the_file(void **state) {
  (void)state;
  static const layout how = {LAC_DTYPE_F32, "F32", "", "fc", NULL, NULL};
  folder f = make_folder();
  char path[FOLDER_PATH];
  lac_pretrained found = LAC_SIZED(lac_pretrained);
  lac_tensor t = LAC_SIZED(lac_tensor);
  lac_model *from = network("digits", 0, 1), *to = network("digits", 0, 2);
  path_in(path, &f, "net.safetensors");
  write_network(from, path, &how);
  FILE *file = fopen(path, "r+b");
  assert_non_null(file);
  assert_int_equal(fseek(file, -4, SEEK_END), 0);
  assert_int_equal(fwrite("\0\0\xc0\x7f", 1, 4, file), 4);
  assert_int_equal(fclose(file), 0);
  assert_int_equal(lac_pretrained_read(to, path, NULL, &found, NULL), LAC_OK);
  int n_nan = 0;
  for (int k = 0; k < lac_model_tensor_count(to); k++) {
    assert_int_equal(lac_model_tensor(to, k, &t, NULL), LAC_OK);
    for (size_t at = 0; t.dtype == LAC_DTYPE_F32 && at < t.size_bytes; at += 4) {
      float x;
      memcpy(&x, (const char *)t.bytes + at, 4);
      n_nan += isnan(x) != 0;
    }
  }
  assert_int_equal(n_nan, 1);
  lac_model_destroy(from);
  lac_model_destroy(to);
  remove_folder(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_weights_come_over_in_every_type_and_naming),
      cmocka_unit_test(an_onnx_file_gives_its_weights_too),
      cmocka_unit_test(other_classes_leave_the_classifier_fresh_and_what_is_more_is_counted),
      cmocka_unit_test(a_damaged_header_is_refused_by_what_is_wrong),
      cmocka_unit_test(a_wrong_length_takes_no_memory),
      cmocka_unit_test(every_cut_is_refused),
      cmocka_unit_test(what_does_not_fit_is_named),
      cmocka_unit_test(pytorchs_files_are_read_and_never_run),
      cmocka_unit_test(not_a_number_is_a_number_of_the_file),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
