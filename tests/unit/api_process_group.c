/* SPDX-License-Identifier: Apache-2.0
 * lacuna/process_group.h: a process alone, and groups of threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "support/group_threads.h"

static void a_process_alone_needs_no_group(void **state) {
  (void)state;
  lac_error err = {0};
  int number = 7;
  lac_process_group *group = (lac_process_group *)&err;
  lac_process_group_options o = lac_process_group_options_default();
  assert_true(o.timeout_seconds == 300);
  assert_int_equal(lac_process_group_open(&o, &group, &err), LAC_OK);
  assert_null(group);
  assert_int_equal(lac_process_group_rank(NULL), 0);
  assert_int_equal(lac_process_group_size(NULL), 1);
  assert_true(lac_process_group_agreed(NULL));
  assert_int_equal(lac_process_group_agree(NULL, LAC_OK, &err), LAC_OK);
  assert_int_equal(lac_process_group_agree(NULL, LAC_IO, &err), LAC_IO);
  assert_int_equal(lac_process_group_broadcast(NULL, &number, sizeof number, &err), LAC_OK);
  assert_int_equal(number, 7);
  assert_int_equal(lac_process_group_set_timeout(NULL, 5, &err), LAC_OK);
  lac_process_group_close(NULL, LAC_OK);
  lac_process_group_close(NULL, LAC_IO);
}

static void what_is_no_time_is_refused(void **state) {
  (void)state;
  const double bad[] = {0, -1, 2e9, 0.0 / 0.0};
  for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
    lac_error err = {0};
    lac_process_group *group = (lac_process_group *)&err;
    const lac_process_group_options o = {.size = sizeof o, .timeout_seconds = bad[k]};
    assert_int_equal(lac_process_group_open(&o, &group, &err), LAC_BAD_ARGUMENT);
    assert_null(group);
    assert_non_null(strstr(err.text, "wanted more than 0 and at most 1e+09 seconds"));
    assert_int_equal(lac_process_group_set_timeout(NULL, bad[k], &err), LAC_BAD_ARGUMENT);
  }
}

static void a_missing_argument_is_named(void **state) {
  (void)state;
  lac_error err = {0};
  lac_process_group *group = (lac_process_group *)&err;
  assert_int_equal(lac_process_group_open(NULL, &group, &err), LAC_BAD_ARGUMENT);
  assert_string_equal(err.text, "lac_process_group_open: options is NULL");
  assert_null(group);
  assert_int_equal(lac_process_group_broadcast(NULL, NULL, 1, &err), LAC_BAD_ARGUMENT);
  assert_string_equal(err.text, "lac_process_group_broadcast: bytes is NULL");
}

enum { MOST = 5 };

typedef struct share {
  int rank, size, number;
  bool fails, agreed;
} share;

static lac_status meet(lac_process_group *group, void *mine, lac_error *err) {
  share *s = mine;
  s->rank = lac_process_group_rank(group);
  s->size = lac_process_group_size(group);
  s->number = 100 + s->rank;
  lac_status st = lac_process_group_set_timeout(group, 100, err);
  if (!st) st = lac_process_group_broadcast(group, &s->number, sizeof s->number, err);
  if (!st && s->fails) st = laci_fail(err, LAC_IO, "the disk is full");
  st = lac_process_group_agree(group, st, err);
  s->agreed = lac_process_group_agreed(group);
  return st;
}

static void all_know_who_they_are(void **state) {
  (void)state;
  for (int size = 1; size <= MOST; size++) {
    share shares[MOST] = {{0}};
    void *mine[MOST];
    group_member members[MOST];
    for (int k = 0; k < MOST; k++) mine[k] = &shares[k];
    group_threads_run(size, meet, mine, members);
    for (int k = 0; k < size; k++) {
      assert_int_equal(members[k].status, LAC_OK);
      assert_int_equal(members[k].ended, 0);
      assert_int_equal(shares[k].rank, k);
      assert_int_equal(shares[k].size, size);
      assert_int_equal(shares[k].number, 100);
    }
  }
}

static void all_end_as_the_first_that_failed(void **state) {
  (void)state;
  for (int who = 0; who < 3; who++) {
    share shares[3] = {{0}};
    void *mine[3] = {&shares[0], &shares[1], &shares[2]};
    group_member members[3];
    shares[who].fails = true;
    group_threads_run(3, meet, mine, members);
    for (int k = 0; k < 3; k++) {
      const char *text = members[k].err.text, *at = strstr(text, "the disk is full");
      assert_int_equal(members[k].status, LAC_IO);
      assert_int_equal(members[k].ended, 0);
      assert_true(shares[k].agreed);
      assert_non_null(at);
      assert_int_equal(at == text, who == 0); /* else "process 2: " */
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_process_alone_needs_no_group),
      cmocka_unit_test(what_is_no_time_is_refused),
      cmocka_unit_test(a_missing_argument_is_named),
      cmocka_unit_test(all_know_who_they_are),
      cmocka_unit_test(all_end_as_the_first_that_failed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
