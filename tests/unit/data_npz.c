/* SPDX-License-Identifier: Apache-2.0
 * data: .npz archives are read stored and deflated, with sizes of 32 and 64 bits; one whose
 * directory is wrong is refused before memory is taken for it. */
#include "data/npz.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/budget.h"
#include "base/memory.h"
#include "base/reader.h"
#include "data/zip.h"
#include "support/zip_file.h"

static const float numbers[6] = {1, -2, 3.5F, 4, 5, 6};
static const char header[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }\n";

static zip_file *make(bool deflated, bool wide) {
  zip_file *z = calloc(1, sizeof *z);
  uint8_t npy[256];
  assert_non_null(z);
  z->wide = wide;
  size_t n = npy_bytes(npy, header, numbers, sizeof numbers);
  zip_add(z, "first.npy", npy, n, deflated);
  int16_t fortran[] = {1, 3, 5, 2, 4, 6};
  n = npy_bytes(npy, "{'descr': '<i2', 'fortran_order': True, 'shape': (3, 2), }\n", fortran,
                sizeof fortran);
  zip_add(z, "a/second.npy", npy, n, deflated);
  zip_finish(z);
  return z;
}

/** The bytes are at the very end of their block, so that a sanitizer sees one read too many. */
static lac_status open_bytes(const zip_file *z, laci_npz **npz, lac_error *err) {
  uint8_t *exact = malloc(z->n + !z->n);
  assert_non_null(exact);
  memcpy(exact, z->at, z->n);
  lac_status st = laci_npz_open_memory("x.npz", exact, z->n, npz, err);
  free(exact);
  return st;
}

/** Opening, or reading the first array, fails so. */
static void expect_failure(const zip_file *z, lac_status status, const char *text) {
  laci_npz *npz = NULL;
  laci_rows *rows = NULL;
  lac_error err = {0};
  lac_status st = open_bytes(z, &npz, &err);
  if (!st) st = laci_npz_open_rows(npz, 0, NULL, &rows, &err);
  if (!strstr(err.text, text)) fail_msg("got '%s', want '%s'", err.text, text);
  assert_int_equal(st, status);
  assert_null(rows);
  laci_npz_close(npz);
}

static void expect_arrays(const zip_file *z) {
  laci_npz *npz = NULL;
  lac_error err = {0};
  if (open_bytes(z, &npz, &err)) fail_msg("%s", err.text);
  assert_int_equal(laci_npz_count(npz), 2);
  assert_string_equal(laci_npz_name(npz, 0), "first");
  assert_string_equal(laci_npz_name(npz, 1), "a/second");
  laci_rows *rows = NULL;
  if (laci_npz_open_rows(npz, 0, NULL, &rows, &err)) fail_msg("%s", err.text);
  assert_string_equal(laci_rows_name(rows), "x.npz: first");
  assert_int_equal(laci_rows_elements_per_row(rows), 2);
  for (int row = 0; row < 3; row++) {
    float got[2];
    int64_t wrong[2];
    assert_int_equal(laci_rows_read_f32(rows, row, got, NULL), LAC_OK);
    assert_memory_equal(got, numbers + (ptrdiff_t)row * 2, sizeof got);
    assert_int_equal(laci_rows_read_i64(rows, row, wrong, NULL), LAC_BAD_ARGUMENT);
  }
  laci_rows_close(rows);
  if (laci_npz_open_rows(npz, 1, NULL, &rows, &err)) fail_msg("%s", err.text);
  for (int row = 0; row < 3; row++) {
    int64_t got[2];
    assert_int_equal(laci_rows_read_i64(rows, row, got, NULL), LAC_OK);
    assert_int_equal(got[0], 2 * row + 1);
    assert_int_equal(got[1], 2 * row + 2);
  }
  laci_rows_close(rows);
  laci_npz_close(npz);
}

static void reads_stored_and_deflated_and_wide_archives(void **state) {
  (void)state;
  for (int k = 0; k < 4; k++) {
    zip_file *z = make(k & 1, k & 2);
    expect_arrays(z);
    free(z);
  }
}

static void an_archive_may_have_a_comment(void **state) {
  (void)state;
  zip_file *z = make(true, false);
  memcpy(z->at + z->n, "hello", 5);
  zip_number(z->at + z->end + 20, 5, 2);
  z->n += 5;
  expect_arrays(z);
  free(z);
}

/* ---- What is refused ---- */

static void cut_archives_are_refused(void **state) {
  (void)state;
  zip_file *z = make(true, true);
  lac_error err;
  for (size_t n = 0; n < z->n; n++) {
    laci_npz *npz = NULL;
    zip_file *cut = malloc(sizeof *cut);
    assert_non_null(cut);
    *cut = *z;
    cut->n = n;
    assert_int_equal(open_bytes(cut, &npz, &err), LAC_BAD_FILE);
    assert_null(npz);
    free(cut);
  }
  free(z);
}

/** Writes a number into entry `member` of the directory. */
static void change(zip_file *z, int member, size_t field, uint64_t value, int n_bytes) {
  zip_number(z->at + z->directory + z->members[member].entry + field, value, n_bytes);
}

static void wrong_records_are_refused(void **state) {
  (void)state;
  static const struct {
    int member;
    size_t field;
    uint64_t value;
    int n_bytes;
    lac_status status;
    const char *text;
  } cases[] = {
      {0, 8, 1, 2, LAC_UNSUPPORTED, "is encrypted"},
      {0, 10, 12, 2, LAC_UNSUPPORTED, "packed by method 12"},
      {0, 16, 7, 4, LAC_BAD_FILE, "another checksum"},
      {0, 24, 1 << 30, 4, LAC_BAD_FILE, "cannot be 1073741824 bytes made of"},
      {0, 24, 60000, 4, LAC_BAD_FILE, "bytes of data, not what f32 [3, 2] takes"},
      {0, 24, 20, 4, LAC_BAD_FILE, "first"},
      {0, 20, 1 << 20, 4, LAC_BAD_FILE, "is not inside it"},
      {0, 20, 3, 4, LAC_BAD_FILE, "first"},
      {0, 28, 0, 2, LAC_BAD_FILE, "without a proper name"},
      {0, 28, 5000, 2, LAC_BAD_FILE, "cut off"},
      {0, 42, 1 << 20, 4, LAC_BAD_FILE, "is not inside it"},
      {0, 42, 3, 4, LAC_BAD_FILE, "not where its directory says"},
      {1, 42, 0, 4, LAC_BAD_FILE, "not where its directory says"},
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    zip_file *z = make(true, false);
    change(z, cases[k].member, cases[k].field, cases[k].value, cases[k].n_bytes);
    expect_failure(z, cases[k].status, cases[k].text);
    free(z);
  }
}

static void two_names_or_shared_bytes_are_refused(void **state) {
  (void)state;
  uint8_t npy[256];
  size_t n = npy_bytes(npy, header, numbers, sizeof numbers);
  zip_file *z = calloc(1, sizeof *z);
  assert_non_null(z);
  zip_add(z, "x.npy", npy, n, false);
  zip_add(z, "x.npy", npy, n, false);
  zip_finish(z);
  expect_failure(z, LAC_BAD_FILE, "two files are called x.npy");
  *z = (zip_file){0};
  zip_add(z, "x.npy", npy, n, false);
  zip_add(z, "y.npy", npy, n, false);
  zip_finish(z);
  zip_number(z->at + z->directory + z->members[1].entry + 42, 0, 4); /* y is where x is */
  expect_failure(z, LAC_BAD_FILE, "two files share bytes");
  *z = (zip_file){0};
  zip_add(z, "x.txt", npy, n, false);
  zip_finish(z);
  expect_failure(z, LAC_BAD_FILE, "x.txt: wanted .npy files only");
  free(z);
}

/* A megabyte of zeros that say they are four gigabytes of floats, in a thousand bytes. */
static void a_bomb_takes_no_memory(void **state) {
  (void)state;
  uint8_t *zeros = calloc(1 << 20, 1);
  zip_file *z = calloc(1, sizeof *z);
  assert_true(zeros && z);
  (void)npy_bytes(zeros, "{'descr': '<f4', 'fortran_order': False, 'shape': (1073741824,), }\n",
                  NULL, 0);
  zip_add(z, "x.npy", zeros, 1 << 20, true);
  zip_finish(z);
  size_t before = laci_memory_total_allocated();
  expect_failure(z, LAC_BAD_FILE, "not what f32 [1073741824] takes");
  assert_true(laci_memory_total_allocated() - before < 1 << 19);
  free(zeros);
  free(z);
}

static void the_budget_bounds_what_is_unpacked(void **state) {
  (void)state;
  zip_file *z = make(true, false);
  laci_npz *npz = NULL;
  laci_rows *rows = NULL;
  lac_error err = {0};
  laci_budget budget = {.limit = 100};
  assert_int_equal(open_bytes(z, &npz, &err), LAC_OK);
  assert_int_equal(laci_npz_open_rows(npz, 0, &budget, &rows, &err), LAC_MEMORY_LIMIT);
  assert_null(rows);
  laci_npz_close(npz);
  free(z);
}

/* ---- Arrays that are decompressed in parts ---- */

enum { MEMBER_BYTES = (5 << 20) + 12345, FLOATS_PER_ROW = 1 << 20, LARGE_ROWS = 33 };

/** Byte `at` of a member that deflates well; no two blocks of 4096 bytes are alike. */
static uint8_t member_byte(size_t at) { return (uint8_t)((at >> 12) * 37 + (at & 1)); }

static zip_file *make_member(void) {
  zip_file *z = calloc(1, sizeof *z);
  uint8_t *bytes = malloc(MEMBER_BYTES);
  assert_true(z && bytes);
  for (size_t at = 0; at < MEMBER_BYTES; at++) bytes[at] = member_byte(at);
  zip_add(z, "x.npy", bytes, MEMBER_BYTES, true);
  zip_finish(z);
  free(bytes);
  return z;
}

typedef struct opened {
  laci_arena arena;
  laci_zip zip;
  laci_zip_member *members;
  laci_reader *part;
} opened;

static lac_status open_member(const zip_file *z, opened *o, lac_error *err) {
  size_t n = 0;
  *o = (opened){.zip.name = "x.npz"};
  lac_status st = laci_reader_open_memory("x.npz", z->at, z->n, &o->zip.reader, err);
  if (!st) st = laci_zip_list(&o->zip, &o->arena, &o->members, &n, err);
  return st ? st : laci_zip_open_member(&o->zip, &o->members[0], &o->part, err);
}

static void close_member(opened *o) {
  laci_reader_close(o->part);
  laci_free(o->members);
  laci_arena_clear(&o->arena);
  laci_reader_close(o->zip.reader);
}

static void parts_of_a_member_are_read_in_any_order(void **state) {
  (void)state;
  static const size_t parts[][2] = {
      {MEMBER_BYTES - 5, 5}, {0, 9}, {(1 << 20) - 3, 70000}, {3 << 20, 1 << 20}, {123456, 1},
      {0, MEMBER_BYTES},     {77, 0}};
  zip_file *z = make_member();
  opened o;
  lac_error err = {0};
  uint8_t *got = malloc(MEMBER_BYTES);
  assert_non_null(got);
  if (open_member(z, &o, &err)) fail_msg("%s", err.text);
  for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
    assert_int_equal(laci_reader_copy_range(o.part, parts[k][0], parts[k][1], got, &err), LAC_OK);
    for (size_t at = 0; at < parts[k][1]; at++)
      assert_int_equal(got[at], member_byte(parts[k][0] + at));
  }
  close_member(&o);
  free(got);
  free(z);
}

static void a_damaged_member_is_refused_in_parts_too(void **state) {
  (void)state;
  static const struct {
    size_t field; /* of the entry in the directory */
    uint64_t value;
    const char *text;
  } cases[] = {{16, 7, "x.npy has another checksum than its bytes"},
               {24, MEMBER_BYTES + 1, "x.npy is damaged or cut off"},
               {24, MEMBER_BYTES - 1, "x.npy is damaged or cut off"},
               {20, 900, "x.npy"}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    zip_file *z = make_member();
    opened o;
    lac_error err = {0};
    change(z, 0, cases[k].field, cases[k].value, 4);
    assert_int_equal(open_member(z, &o, &err), LAC_BAD_FILE);
    if (!strstr(err.text, cases[k].text)) fail_msg("got '%s'", err.text);
    assert_null(o.part);
    close_member(&o);
    free(z);
  }
}

static void every_allocation_for_parts_may_fail(void **state) {
  (void)state;
  zip_file *z = make_member();
  for (long at = 1;; at++) {
    opened o;
    uint8_t got[16];
    lac_error err = {0};
    laci_memory_fail_from(at);
    lac_status st = open_member(z, &o, &err);
    if (!st) st = laci_reader_copy_range(o.part, 1 << 20, sizeof got, got, &err);
    bool pending = laci_memory_is_failure_pending();
    laci_memory_fail_from(0);
    close_member(&o);
    assert_int_equal(st, pending ? LAC_OK : LAC_NO_MEMORY);
    if (pending) break;
  }
  free(z);
}

/* An array of more than 128 MiB in a file of some hundred kilobytes. */
static void a_large_array_takes_little_memory(void **state) {
  (void)state;
  const size_t n = (size_t)LARGE_ROWS * FLOATS_PER_ROW * sizeof(float);
  uint8_t *bytes = calloc(n + 256, 1);
  float *numbers_of_rows = calloc(LARGE_ROWS * (size_t)FLOATS_PER_ROW, sizeof(float)),
        *row = malloc(FLOATS_PER_ROW * sizeof(float));
  zip_file *z = calloc(1, sizeof *z);
  assert_true(bytes && numbers_of_rows && row && z);
  for (size_t k = 0; k < LARGE_ROWS; k++) numbers_of_rows[k * FLOATS_PER_ROW + k] = (float)k;
  zip_add(z, "x.npy", bytes,
          npy_bytes(bytes, "{'descr': '<f4', 'fortran_order': False, 'shape': (33, 1048576), }\n",
                    numbers_of_rows, n),
          true);
  zip_finish(z);
  laci_npz *npz = NULL;
  laci_rows *rows = NULL;
  lac_error err = {0};
  laci_budget budget = {.limit = (uint64_t)64 << 20};
  size_t before = laci_memory_total_allocated();
  assert_int_equal(open_bytes(z, &npz, &err), LAC_OK);
  if (laci_npz_open_rows(npz, 0, &budget, &rows, &err)) fail_msg("%s", err.text);
  assert_true(laci_memory_total_allocated() - before < 2 << 20);
  for (int k = LARGE_ROWS - 1; k >= 0; k -= 8) {
    assert_int_equal(laci_rows_read_f32(rows, k, row, &err), LAC_OK);
    for (int at = 0; at < FLOATS_PER_ROW; at += at < 64 ? 1 : 4099)
      assert_true(row[at] == (at == k ? (float)k : 0));
  }
  laci_rows_close(rows);
  laci_npz_close(npz);
  free(bytes);
  free(numbers_of_rows);
  free(row);
  free(z);
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  for (int k = 0; k < 2; k++) {
    zip_file *z = make(k == 1, false);
    for (long at = 1;; at++) {
      laci_npz *npz = NULL;
      laci_rows *rows[2] = {NULL, NULL};
      lac_error err = {0};
      laci_memory_fail_from(at);
      lac_status st = open_bytes(z, &npz, &err);
      for (int array = 0; array < 2 && !st; array++)
        st = laci_npz_open_rows(npz, array, NULL, &rows[array], &err);
      bool pending = laci_memory_is_failure_pending();
      laci_memory_fail_from(0);
      for (int array = 0; array < 2; array++) laci_rows_close(rows[array]);
      laci_npz_close(npz);
      if (pending) {
        assert_int_equal(st, LAC_OK);
        break;
      }
      assert_int_equal(st, LAC_NO_MEMORY);
    }
    free(z);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reads_stored_and_deflated_and_wide_archives),
      cmocka_unit_test(an_archive_may_have_a_comment),
      cmocka_unit_test(cut_archives_are_refused),
      cmocka_unit_test(wrong_records_are_refused),
      cmocka_unit_test(two_names_or_shared_bytes_are_refused),
      cmocka_unit_test(a_bomb_takes_no_memory),
      cmocka_unit_test(the_budget_bounds_what_is_unpacked),
      cmocka_unit_test(parts_of_a_member_are_read_in_any_order),
      cmocka_unit_test(a_damaged_member_is_refused_in_parts_too),
      cmocka_unit_test(every_allocation_for_parts_may_fail),
      cmocka_unit_test(a_large_array_takes_little_memory),
      cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
