/* SPDX-License-Identifier: Apache-2.0
 * jit/cache: code runs once it is sealed, its pages are never written and executed at once, and a
 * system that forbids executable memory is told from other failures. */
#include "jit/cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "jit/x86.h"
#include "support/forbid.h"

typedef int64_t add_number(int64_t x);

/* A function that returns its argument and `number`. */
static size_t write_adder(laci_code *code, int32_t number) {
  laci_code_align(code, 64);
  const size_t entry = code->n;
  laci_x86_move(code, LACI_X86_RAX, LACI_X86_RDI);
  laci_x86_add(code, LACI_X86_RAX, number);
  laci_x86_return(code);
  return entry;
}

static int64_t call(const laci_code_cache *cache, size_t entry, int64_t x) {
  void *at = laci_code_cache_find_function(cache, entry);
  add_number *run;
  memcpy(&run, &at, sizeof run);
  return run(x);
}

/* What the system says of the page at an address: "r-xp". */
static void rights_of(const void *address, char rights[5]) {
  char line[512];
  FILE *maps = fopen("/proc/self/maps", "r");
  assert_non_null(maps);
  rights[0] = '\0';
  while (fgets(line, sizeof line, maps)) {
    unsigned long long begin, last;
    char text[5];
    if (sscanf(line, "%llx-%llx %4s", &begin, &last, text) != 3) continue;
    if ((uintptr_t)address >= begin && (uintptr_t)address < last) memcpy(rights, text, 5);
  }
  (void)fclose(maps);
}

static void code_runs_and_cannot_be_written(void **state) {
  laci_code_cache *cache;
  lac_error err = {0};
  char rights[5];
  (void)state;
  assert_int_equal(laci_code_cache_create(1 << 20, &cache, &err), LAC_OK);
  const size_t three = write_adder(laci_code_cache_get_writable(cache), 3);
  const size_t seven = write_adder(laci_code_cache_get_writable(cache), 700);
  assert_int_equal(laci_code_cache_seal(cache, &err), LAC_OK);
  assert_null(laci_code_cache_get_writable(cache));
  assert_true(laci_code_cache_code_bytes(cache) > 64 && laci_code_cache_code_bytes(cache) < 128);
  rights_of(laci_code_cache_find_function(cache, three), rights);
  assert_string_equal(rights, "r-xp");
#if defined(__x86_64__)
  assert_int_equal(call(cache, three, 39), 42);
  assert_int_equal(call(cache, seven, 77), 777);
#else
  (void)seven;
#endif
  laci_code_cache_destroy(cache);
}

static void nothing_to_seal_is_no_failure(void **state) {
  laci_code_cache *cache;
  lac_error err = {0};
  (void)state;
  assert_int_equal(laci_code_cache_create(1 << 20, &cache, &err), LAC_OK);
  assert_int_equal(laci_code_cache_seal(cache, &err), LAC_OK);
  assert_int_equal(laci_code_cache_code_bytes(cache), 0);
  laci_code_cache_destroy(cache);
  laci_code_cache_destroy(NULL);
}

static void much_code_is_in_order(void **state) {
  enum { N = 40000 };
  laci_code_cache *cache;
  lac_error err = {0};
  (void)state;
  assert_int_equal(laci_code_cache_create(8 << 20, &cache, &err), LAC_OK);
  for (int32_t at = 0; at < N; at++) {
    assert_int_equal(write_adder(laci_code_cache_get_writable(cache), at), 64 * (size_t)at);
  }
  assert_int_equal(laci_code_cache_seal(cache, &err), LAC_OK);
#if defined(__x86_64__)
  for (int32_t at = 0; at < N; at += 997) {
    assert_int_equal(call(cache, 64 * (size_t)at, 1), at + 1);
  }
#endif
  laci_code_cache_destroy(cache);
}

static void data_are_zeros_that_stay_writable(void **state) {
  laci_code_cache *cache;
  lac_error err = {0};
  void *data[3];
  char rights[5];
  (void)state;
  assert_int_equal(laci_code_cache_create(1 << 20, &cache, &err), LAC_OK);
  (void)write_adder(laci_code_cache_get_writable(cache), 3);
  for (int at = 0; at < 3; at++) {
    const size_t bytes = (size_t)at * 300001;
    assert_int_equal(laci_code_cache_alloc_data(cache, bytes, &data[at], &err), LAC_OK);
    assert_int_equal((uintptr_t)data[at] % 64, 0);
    for (size_t byte = 0; byte < bytes; byte++) assert_int_equal(((uint8_t *)data[at])[byte], 0);
    memset(data[at], 7, bytes);
  }
  assert_true(laci_code_cache_data_bytes(cache) >= 900003);
  assert_int_equal(laci_code_cache_seal(cache, &err), LAC_OK);
  rights_of(data[2], rights);
  assert_string_equal(rights, "rw-p");
  assert_int_equal(laci_code_cache_alloc_data(cache, 1 << 19, &data[0], &err), LAC_UNSUPPORTED);
  assert_string_equal(err.text, "data of generated code: more than 1048576 bytes, the limit");
  assert_null(data[0]);
  laci_code_cache_destroy(cache);
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  for (long n = 1;; n++) {
    laci_code_cache *cache = NULL;
    lac_error err = {0};
    laci_memory_fail_from(n);
    lac_status st = laci_code_cache_create(1 << 20, &cache, &err);
    if (!st) {
      (void)write_adder(laci_code_cache_get_writable(cache), 1);
      st = laci_code_cache_seal(cache, &err);
    }
    const bool pending = laci_memory_is_failure_pending();
    laci_memory_fail_from(0);
    laci_code_cache_destroy(cache);
    if (pending) {
      assert_int_equal(st, LAC_OK);
      break;
    }
    assert_int_equal(st, LAC_NO_MEMORY);
  }
}

/* 0: it failed as it should; 1: otherwise; NOTHING_FORBIDDEN. */
static int seal_where_forbidden(void) {
  laci_code_cache *cache;
  lac_error err = {0};
  if (!forbid_execution()) return NOTHING_FORBIDDEN;
  if (laci_code_cache_create(1 << 20, &cache, &err)) return 1;
  (void)write_adder(laci_code_cache_get_writable(cache), 1);
  const lac_status st = laci_code_cache_seal(cache, &err);
  laci_code_cache_destroy(cache);
  const char *want = "generated code: memory cannot be made executable: ";
  return st == LAC_UNSUPPORTED && strncmp(err.text, want, strlen(want)) == 0 ? 0 : 1;
}

static void says_where_execution_is_forbidden(void **state) {
  (void)state;
  expect_of_child(seal_where_forbidden);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(code_runs_and_cannot_be_written),
      cmocka_unit_test(nothing_to_seal_is_no_failure),
      cmocka_unit_test(much_code_is_in_order),
      cmocka_unit_test(data_are_zeros_that_stay_writable),
      cmocka_unit_test(every_allocation_may_fail),
      cmocka_unit_test(says_where_execution_is_forbidden),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
