/* SPDX-License-Identifier: Apache-2.0
 * data: .npy files are read in every form that NumPy writes, and nothing else is; what is written
 * is what NumPy would write. tests/interop/test_data.py asks NumPy itself. */
#include "data/npy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/reader.h"
#include "tensor/buf.h"

/* ---- Files made by hand ---- */

typedef struct bytes {
  size_t n;
  uint8_t at[4096];
} bytes;

/** A file of the given version, header text and payload. */
static bytes make_file(int version, const char *header, const void *payload, size_t n_payload) {
  bytes b = {0};
  size_t length = strlen(header);
  memcpy(b.at, "\x93NUMPY", 6);
  b.at[6] = (uint8_t)version;
  b.n = 8;
  for (int k = 0; k < (version == 1 ? 2 : 4); k++) b.at[b.n++] = (uint8_t)(length >> (8 * k));
  memcpy(b.at + b.n, header, length);
  b.n += length;
  if (n_payload) memcpy(b.at + b.n, payload, n_payload);
  b.n += n_payload;
  return b;
}

/** The bytes are at the very end of their block, so that a sanitizer sees one read too many. */
static lac_status parse(const bytes *b, laci_npy *array, lac_error *err) {
  uint8_t *exact = malloc(b->n + !b->n);
  assert_non_null(exact);
  memcpy(exact, b->at, b->n);
  lac_status st = laci_npy_parse("x.npy", exact, b->n, array, err);
  free(exact);
  return st;
}

static void expect_failure(const bytes *b, lac_status status, const char *text) {
  laci_npy array;
  lac_error err = {0};
  assert_int_equal(parse(b, &array, &err), status);
  assert_string_equal(err.text, text);
  assert_null(array.bytes);
}

/* ---- Reading ---- */

static void reads_both_orders_of_bytes_and_of_axes(void **state) {
  (void)state;
  static const uint8_t little[] = {1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0};
  static const uint8_t big[] = {0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6};
  static const struct {
    const char *header;
    const uint8_t *payload;
    int64_t want[6];
  } cases[] = {
      {"{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }\n", little, {1, 2, 3, 4, 5, 6}},
      {"{'descr': '>i2', 'fortran_order': False, 'shape': (2, 3), }\n", big, {1, 2, 3, 4, 5, 6}},
      {"{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3), }\n", little, {1, 3, 5, 2, 4, 6}},
      {"{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }\n", big, {1, 3, 5, 2, 4, 6}},
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    for (int version = 1; version <= 3; version++) {
      bytes b = make_file(version, cases[k].header, cases[k].payload, sizeof little);
      laci_npy array;
      int64_t got[6];
      assert_int_equal(parse(&b, &array, NULL), LAC_OK);
      assert_int_equal(array.type.dtype, LAC_DTYPE_I16);
      assert_int_equal(array.type.shape.rank, 2);
      assert_int_equal(array.size_bytes, 12);
      laci_read_i64(LAC_DTYPE_I16, array.bytes, 0, 6, got);
      assert_memory_equal(got, cases[k].want, sizeof got);
      laci_npy_clear(&array);
    }
  }
}

static void fortran_order_of_three_axes_is_transposed(void **state) {
  (void)state;
  uint8_t payload[24]; /* element (a, b, c) of [2, 3, 4] is at a + 2 b + 6 c */
  for (int at = 0; at < 24; at++) payload[at] = (uint8_t)at;
  bytes b =
      make_file(1, "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3, 4)}", payload, 24);
  laci_npy array;
  assert_int_equal(parse(&b, &array, NULL), LAC_OK);
  for (int at = 0; at < 24; at++) {
    assert_int_equal(array.bytes[at], at / 12 + 2 * (at / 4 % 3) + 6 * (at % 4));
  }
  laci_npy_clear(&array);
}

static void headers_may_be_written_in_several_forms(void **state) {
  (void)state;
  static const char *const headers[] = {
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }          \n",
      "{\"shape\":(2,),\"descr\":\"<f4\",\"fortran_order\":False}",
      "  { 'fortran_order' : True , 'shape' : ( 2L , ) , 'descr' : '<f4' , } \n\n",
  };
  float payload[2] = {1.5F, -2}, got[2];
  for (size_t k = 0; k < sizeof headers / sizeof *headers; k++) {
    bytes b = make_file(1, headers[k], payload, sizeof payload);
    laci_npy array;
    assert_int_equal(parse(&b, &array, NULL), LAC_OK);
    memcpy(got, array.bytes, sizeof got);
    assert_true(got[0] == 1.5F && got[1] == -2);
    laci_npy_clear(&array);
  }
}

static void scalars_and_empty_arrays_are_arrays(void **state) {
  (void)state;
  double one = 2.5;
  bytes b = make_file(1, "{'descr': '<f8', 'fortran_order': False, 'shape': ()}", &one, sizeof one);
  laci_npy array;
  assert_int_equal(parse(&b, &array, NULL), LAC_OK);
  assert_int_equal(array.type.shape.rank, 0);
  assert_memory_equal(array.bytes, &one, sizeof one);
  laci_npy_clear(&array);
  b = make_file(1, "{'descr': '<f8', 'fortran_order': True, 'shape': (3, 0, 9000000000000000000)}",
                NULL, 0);
  assert_int_equal(parse(&b, &array, NULL), LAC_OK);
  assert_int_equal(array.size_bytes, 0);
  laci_npy_clear(&array);
}

static void a_bool_is_zero_or_one(void **state) {
  (void)state;
  static const uint8_t payload[] = {0, 1, 2, 255}, want[] = {0, 1, 1, 1};
  bytes b = make_file(1, "{'descr': '|b1', 'fortran_order': False, 'shape': (4,)}", payload, 4);
  laci_npy array;
  assert_int_equal(parse(&b, &array, NULL), LAC_OK);
  assert_memory_equal(array.bytes, want, sizeof want);
  laci_npy_clear(&array);
}

/* ---- Refusing ---- */

static void wrong_sizes_are_refused_before_memory_is_taken(void **state) {
  (void)state;
  static const struct {
    const char *shape, *text;
  } cases[] = {
      {"(5,)", "x.npy: 16 bytes of data, not what f32 [5] takes"},
      {"(3,)", "x.npy: 16 bytes of data, not what f32 [3] takes"},
      {"(1000000000000,)", "x.npy: 16 bytes of data, not what f32 [1000000000000] takes"},
      {"(4294967296, 4294967296, 4)",
       "x.npy: 16 bytes of data, not what f32 [4294967296, 4294967296, 4] takes"},
      {"(4611686018427387905, 1)", /* times four bytes wraps around to four */
       "x.npy: 16 bytes of data, not what f32 [4611686018427387905, 1] takes"},
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    char header[160];
    float payload[4] = {0};
    (void)snprintf(header, sizeof header, "{'descr': '<f4', 'fortran_order': False, 'shape': %s}",
                   cases[k].shape);
    bytes b = make_file(1, header, payload, sizeof payload);
    laci_memory_fail_from(1); /* the verdict comes without any */
    expect_failure(&b, LAC_BAD_FILE, cases[k].text);
    laci_memory_fail_from(0);
  }
}

static void what_numpy_would_not_write_is_refused_with_its_place(void **state) {
  (void)state;
  static const struct {
    const char *header;
    lac_status status;
    const char *text;
  } cases[] = {
      {"", LAC_BAD_FILE, "x.npy: header, character 1: wanted '{'"},
      {"{", LAC_BAD_FILE, "x.npy: header, character 2: wanted a text in quotes"},
      {"{}", LAC_BAD_FILE,
       "x.npy: header: a key is missing, wanted descr, fortran_order and shape"},
      {"{'descr' '<f4'}", LAC_BAD_FILE, "x.npy: header, character 10: wanted ':' after the key"},
      {"{'descr': <f4}", LAC_BAD_FILE, "x.npy: header, character 11: wanted a text in quotes"},
      {"{'descr': '<f4}", LAC_BAD_FILE,
       "x.npy: header, character 12: wanted a short text in quotes"},
      {"{'descr': '<f4', 'descr': '<f4'}", LAC_BAD_FILE,
       "x.npy: header: key 'descr', wanted descr, fortran_order and shape, once each"},
      {"{'colour': 'red'}", LAC_BAD_FILE,
       "x.npy: header: key 'colour', wanted descr, fortran_order and shape, once each"},
      {"{'descr': '<f4' 'shape': ()}", LAC_BAD_FILE,
       "x.npy: header, character 17: wanted ',' or '}'"},
      {"{'fortran_order': 1}", LAC_BAD_FILE, "x.npy: header, character 19: wanted True or False"},
      {"{'shape': 3}", LAC_BAD_FILE, "x.npy: header, character 11: wanted '(' of the shape"},
      {"{'shape': (3)}", LAC_BAD_FILE,
       "x.npy: header, character 13: wanted ',' or ')' in the shape"},
      {"{'shape': (-3,)}", LAC_BAD_FILE, "x.npy: header, character 12: wanted a size"},
      {"{'shape': (3, 4", LAC_BAD_FILE,
       "x.npy: header, character 16: wanted ',' or ')' in the shape"},
      {"{'shape': (99999999999999999999,)}", LAC_BAD_FILE,
       "x.npy: header, character 30: wanted a size that a machine can have"},
      {"{'shape': (1,1,1,1,1,1,1,1,1)}", LAC_UNSUPPORTED, "x.npy: more than 8 axes"},
      {"{'descr': [('a', '<f4')]}", LAC_UNSUPPORTED,
       "x.npy: an array of records, wanted one of numbers"},
      {"{'descr': '<c8'}", LAC_UNSUPPORTED,
       "x.npy: elements of type '<c8', wanted floats (f2, f4, f8; V2 is bf16), integers or bool"},
      {"{'descr': '|O'}", LAC_UNSUPPORTED,
       "x.npy: elements of type '|O', wanted floats (f2, f4, f8; V2 is bf16), integers or bool"},
      {"{'descr': ''}", LAC_UNSUPPORTED,
       "x.npy: elements of type '', wanted floats (f2, f4, f8; V2 is bf16), integers or bool"},
      {"{'descr': '|f4'}", LAC_UNSUPPORTED,
       "x.npy: elements of type '|f4', wanted floats (f2, f4, f8; V2 is bf16), integers or bool"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': ()} # really", LAC_BAD_FILE,
       "x.npy: header, character 55: wanted nothing but blanks after the dictionary"},
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    bytes b = make_file(1, cases[k].header, NULL, 0);
    expect_failure(&b, cases[k].status, cases[k].text);
  }
}

static void a_file_cut_off_anywhere_is_refused(void **state) {
  (void)state;
  float payload[3] = {1, 2, 3};
  bytes whole = make_file(2, "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }\n", payload,
                          sizeof payload);
  for (size_t n = 0; n < whole.n; n++) {
    bytes cut = whole;
    laci_npy array;
    lac_error err = {0};
    cut.n = n;
    assert_int_equal(parse(&cut, &array, &err), LAC_BAD_FILE);
    assert_non_null(strstr(err.text, "x.npy: "));
  }
}

static void other_magic_and_versions_are_refused(void **state) {
  (void)state;
  bytes b = make_file(1, "{}", NULL, 0);
  b.at[6] = 4;
  expect_failure(&b, LAC_UNSUPPORTED, "x.npy: .npy version 4.0, known are 1.0, 2.0 and 3.0");
  b.at[6] = 1;
  b.at[7] = 1;
  expect_failure(&b, LAC_UNSUPPORTED, "x.npy: .npy version 1.1, known are 1.0, 2.0 and 3.0");
  b.at[0] = 'P';
  expect_failure(&b, LAC_BAD_FILE, "x.npy: not a .npy file: it does not begin with \\x93NUMPY");
}

static void damaged_headers_never_crash(void **state) {
  (void)state;
  float payload[3] = {1, 2, 3};
  bytes whole = make_file(1, "{'descr': '<f4', 'fortran_order': True, 'shape': (3, 1), }\n",
                          payload, sizeof payload);
  size_t n_header = whole.n - sizeof payload;
  for (size_t at = 0; at < n_header; at++) {
    for (int byte = 0; byte < 256; byte++) {
      bytes b = whole;
      laci_npy array;
      b.at[at] = (uint8_t)byte;
      if (parse(&b, &array, NULL)) assert_null(array.bytes);
      laci_npy_clear(&array);
    }
  }
}

static void a_missing_file_is_not_found(void **state) {
  (void)state;
  laci_npy array;
  assert_int_equal(laci_npy_read("/nowhere/at/all.npy", &array, NULL), LAC_NOT_FOUND);
  assert_null(array.bytes);
}

/* ---- Writing ---- */

static void what_is_written_is_read_back(void **state) {
  (void)state;
  static const lac_dtype types[] = {LAC_DTYPE_F16, LAC_DTYPE_F32, LAC_DTYPE_F64, LAC_DTYPE_BOOL,
                                    LAC_DTYPE_U8,  LAC_DTYPE_I8,  LAC_DTYPE_U16, LAC_DTYPE_I16,
                                    LAC_DTYPE_U32, LAC_DTYPE_I32, LAC_DTYPE_U64, LAC_DTYPE_I64};
  uint8_t payload[6 * 8];
  for (size_t at = 0; at < sizeof payload; at++) payload[at] = (uint8_t)(at % 2);
  for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
    laci_type type = {types[k], {3, {1, 2, 3}}};
    laci_npy array;
    assert_int_equal(laci_npy_write("data_npy.tmp.npy", &type, payload, true, NULL), LAC_OK);
    assert_int_equal(laci_npy_read("data_npy.tmp.npy", &array, NULL), LAC_OK);
    assert_int_equal(array.type.dtype, types[k]);
    assert_true(laci_shape_equal(&array.type.shape, &type.shape));
    assert_memory_equal(array.bytes, payload, array.size_bytes);
    laci_npy_clear(&array);
  }
  (void)unlink("data_npy.tmp.npy");
}

static void the_header_is_numpys(void **state) {
  (void)state;
  laci_type type = {LAC_DTYPE_F32, {2, {3, 4}}};
  float payload[12] = {0};
  laci_file_bytes file;
  assert_int_equal(laci_npy_write("data_npy.tmp.npy", &type, payload, true, NULL), LAC_OK);
  assert_int_equal(laci_file_bytes_read("data_npy.tmp.npy", &file, NULL), LAC_OK);
  static const char want[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } ";
  assert_int_equal(file.size_bytes, 128 + sizeof payload);
  assert_memory_equal(file.bytes, "\x93NUMPY\x01\x00\x76\x00", 10);
  assert_memory_equal(file.bytes + 10, want, sizeof want - 1);
  assert_int_equal(file.bytes[127], '\n');
  laci_file_bytes_clear(&file);
  (void)unlink("data_npy.tmp.npy");
}

static void bf16_is_two_bytes_of_anything(void **state) {
  (void)state;
  uint16_t payload[3000];
  for (int at = 0; at < 3000; at++) payload[at] = (uint16_t)(at * 13);
  laci_type type = {LAC_DTYPE_BF16, {1, {3000}}};
  laci_npy array;
  assert_int_equal(laci_npy_write("data_npy.tmp.npy", &type, payload, true, NULL), LAC_OK);
  assert_int_equal(laci_npy_read("data_npy.tmp.npy", &array, NULL), LAC_OK);
  assert_int_equal(array.type.dtype, LAC_DTYPE_BF16);
  assert_int_equal(array.size_bytes, sizeof payload);
  assert_memory_equal(array.bytes, payload, sizeof payload);
  laci_npy_clear(&array);
  (void)unlink("data_npy.tmp.npy");
}

static void types_of_8_bits_and_fewer_are_one_byte_of_anything(void **state) {
  (void)state;
  static const lac_dtype types[] = {LAC_DTYPE_F8E4M3FN, LAC_DTYPE_F8E5M2, LAC_DTYPE_I4,
                                    LAC_DTYPE_U2};
  static const uint8_t payload[3] = {1, 0, 3};
  lac_error err = {0};
  for (size_t at = 0; at < sizeof types / sizeof *types; at++) {
    laci_type type = {types[at], {1, {3}}};
    laci_npy array;
    assert_int_equal(laci_npy_write("data_npy.tmp.npy", &type, payload, true, NULL), LAC_OK);
    assert_int_equal(laci_npy_read_as("data_npy.tmp.npy", types[at], &array, NULL), LAC_OK);
    assert_int_equal(array.type.dtype, types[at]);
    assert_memory_equal(array.bytes, payload, 3);
    laci_npy_clear(&array);
    assert_int_equal(laci_npy_read("data_npy.tmp.npy", &array, &err), LAC_UNSUPPORTED);
    assert_string_equal(err.text,
                        "data_npy.tmp.npy: bytes of any type (V1), and no input of 8 bits "
                        "or fewer to give them one");
    assert_int_equal(laci_npy_read_as("data_npy.tmp.npy", LAC_DTYPE_F32, &array, NULL),
                     LAC_UNSUPPORTED);
  }
  (void)unlink("data_npy.tmp.npy");
}

static void types_that_numpy_lacks_are_refused(void **state) {
  (void)state;
  laci_type type = {LAC_DTYPE_TEXT, {1, {1}}};
  lac_error err = {0};
  uint8_t byte = 0;
  assert_int_equal(laci_npy_write("data_npy.tmp.npy", &type, &byte, true, &err), LAC_UNSUPPORTED);
  assert_string_equal(err.text, "data_npy.tmp.npy: a .npy file has no elements of type text");
  type = (laci_type){LAC_DTYPE_F32, {1, {-1}}};
  assert_int_equal(laci_npy_write("data_npy.tmp.npy", &type, &byte, true, &err), LAC_BAD_SHAPE);
  assert_int_not_equal(access("data_npy.tmp.npy", F_OK), 0);
}

static void no_memory_is_an_error(void **state) {
  (void)state;
  float payload[4] = {1, 2, 3, 4};
  bytes b = make_file(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (4,)}", payload, 16);
  laci_memory_fail_from(1);
  expect_failure(&b, LAC_NO_MEMORY, "not enough memory for x.npy");
  laci_memory_fail_from(0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reads_both_orders_of_bytes_and_of_axes),
      cmocka_unit_test(fortran_order_of_three_axes_is_transposed),
      cmocka_unit_test(headers_may_be_written_in_several_forms),
      cmocka_unit_test(scalars_and_empty_arrays_are_arrays),
      cmocka_unit_test(a_bool_is_zero_or_one),
      cmocka_unit_test(wrong_sizes_are_refused_before_memory_is_taken),
      cmocka_unit_test(what_numpy_would_not_write_is_refused_with_its_place),
      cmocka_unit_test(a_file_cut_off_anywhere_is_refused),
      cmocka_unit_test(other_magic_and_versions_are_refused),
      cmocka_unit_test(damaged_headers_never_crash),
      cmocka_unit_test(a_missing_file_is_not_found),
      cmocka_unit_test(what_is_written_is_read_back),
      cmocka_unit_test(the_header_is_numpys),
      cmocka_unit_test(bf16_is_two_bytes_of_anything),
      cmocka_unit_test(types_of_8_bits_and_fewer_are_one_byte_of_anything),
      cmocka_unit_test(types_that_numpy_lacks_are_refused),
      cmocka_unit_test(no_memory_is_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
