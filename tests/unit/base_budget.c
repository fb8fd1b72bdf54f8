/* SPDX-License-Identifier: Apache-2.0
 * base/budget: sizes as text, the limits of a machine and its control groups (made-up trees of
 * /proc and /sys), and sums that never wrap around. */
#include "base/budget.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/programs.h"

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

static void reads_sizes(void **state) {
  (void)state;
  static const struct {
    const char *text;
    uint64_t want; /* 0: no size */
  } cases[] = {
      {"4096", 4096},
      {"1", 1},
      {"16K", 16 * 1024},
      {"16k", 16 * 1024},
      {"1.5G", GIB + GIB / 2},
      {"800M", 800 * MIB},
      {"2T", 2048 * GIB},
      {"", 0},
      {"0", 0},
      {"0G", 0},
      {"G", 0},
      {"-1", 0},
      {"+1", 0},
      {" 1", 0},
      {"1e9", 0},
      {"0x10", 0},
      {"inf", 0},
      {"nan", 0},
      {"1GB", 0},
      {"1 G", 0},
      {"1.2.3", 0},
      {"0.5", 0},
      {"99999999999999999999", 0},
      {"9999999999T", 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    uint64_t got = 0;
    bool good = laci_size_parse(cases[i].text, &got);
    if (good != (cases[i].want > 0) || got != cases[i].want) {
      fail_msg("%s: %d, %llu", cases[i].text, good, (unsigned long long)got);
    }
  }
}

static void writes_sizes(void **state) {
  (void)state;
  static const struct {
    uint64_t bytes;
    const char *want;
  } cases[] = {{0, "0 bytes"},
               {1023, "1023 bytes"},
               {1024, "1.0 KB"},
               {(uint64_t)3000000 * 512 * 4, "5.7 GB"},
               {GIB - 1, "1.0 GB"},
               {5000 * GIB, "4.9 TB"},
               {UINT64_MAX, "more than 64 bits count"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[64];
    assert_string_equal(laci_size_text(cases[i].bytes, text, sizeof text), cases[i].want);
  }
}

/* ---- Limits ---- */

static char root[] = "base_budget_XXXXXX";

/* A file below the root, with the folders of its path. */
static void put(const char *path, const char *text) {
  char full[512];
  (void)snprintf(full, sizeof full, "%s%s", root, path);
  for (char *at = full + strlen(root) + 1; (at = strchr(at, '/')); at++) {
    *at = 0;
    (void)mkdir(full, 0777);
    *at = '/';
  }
  FILE *file = fopen(full, "w");
  assert_non_null(file);
  assert_true(fputs(text, file) >= 0);
  assert_int_equal(fclose(file), 0);
}

static int make_root(void **state) {
  (void)state;
  memcpy(strrchr(root, '_') + 1, "XXXXXX", 6);
  if (!mkdtemp(root)) return -1;
  put("/proc/meminfo", "MemTotal:       1048576000 kB\nMemFree:  1 kB\n");
  return 0;
}

static int remove_root(void **state) {
  char command[600];
  (void)state;
  (void)snprintf(command, sizeof command, "rm -r %s", root);
  return system(command); /* NOLINT(cert-env33-c): a name of our own */
}

static void takes_four_fifths_of_the_machine(void **state) {
  (void)state;
  assert_int_equal(laci_memory_default_limit(root), (uint64_t)1048576000 * 1024 / 100 * 80);
}

static void knows_groups_of_version_2(void **state) {
  (void)state;
  put("/proc/self/cgroup", "0::/app/worker\n");
  put("/sys/fs/cgroup/app/worker/memory.max", "max\n");
  put("/sys/fs/cgroup/app/memory.max", "1000000000\n");
  assert_int_equal(laci_memory_default_limit(root), 800000000);
  put("/sys/fs/cgroup/app/worker/memory.max", "500000000\n");
  assert_int_equal(laci_memory_default_limit(root), 400000000);
}

static void knows_groups_of_version_1(void **state) {
  (void)state;
  put("/proc/self/cgroup", "11:cpu,cpuacct:/x\n4:hugetlb,memory:/app\n0::/\n");
  put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  put("/sys/fs/cgroup/memory/app/memory.limit_in_bytes", "2000000000\n");
  assert_int_equal(laci_memory_default_limit(root), 1600000000);
}

static void looks_at_the_top_inside_a_container(void **state) {
  (void)state; /* which sees the group's name, but not its folder */
  put("/proc/self/cgroup", "0::/docker/0123\n");
  put("/sys/fs/cgroup/memory.max", "3000000000\n");
  assert_int_equal(laci_memory_default_limit(root), 2400000000);
}

static void has_no_limit_where_nothing_is_known(void **state) {
  (void)state;
  assert_int_equal(laci_memory_default_limit("/nowhere"), UINT64_MAX);
}

/* In a child: a limit stays with its process. */
static void knows_the_limit_of_address_space(void **state) {
  (void)state;
  int status = -1;
  if (is_emulated()) skip();
  pid_t child = fork();
  if (child == 0) {
    struct rlimit limit = {(rlim_t)1 << 40, (rlim_t)1 << 40};
    if (setrlimit(RLIMIT_AS, &limit)) _exit(2);
    uint64_t left = laci_memory_default_limit("/nowhere"), all = (uint64_t)1 << 40;
    _exit(left > all / 2 && left < all ? 0 : 1);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* they map terabytes */
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
#endif
}

/* ---- Sums ---- */

static void names_the_largest_part(void **state) {
  (void)state;
  lac_error err = {0};
  laci_budget budget = laci_budget_with_limit(8 * GIB);
  laci_budget_add(&budget, GIB, "a: %d", 1);
  laci_budget_add(&budget, 6 * GIB, "b: %d", 2);
  laci_budget_add(&budget, GIB, "c: %d", 3);
  assert_int_equal(laci_budget_check(&budget, "the run", &err), LAC_OK);
  assert_true(laci_budget_allows(&budget, 0) && !laci_budget_allows(&budget, 1));
  laci_budget_add(&budget, GIB / 2, "d: %d", 4);
  assert_int_equal(laci_budget_check(&budget, "the run", &err), LAC_MEMORY_LIMIT);
  assert_string_equal(err.text, "b: 2, 6.0 GB; the run needs 8.5 GB, 8.0 GB are allowed");
}

static void never_wraps_around(void **state) {
  (void)state;
  laci_budget budget = laci_budget_with_limit(UINT64_MAX - 1);
  assert_int_equal(laci_count_bytes_saturated(INT64_MAX, 8), UINT64_MAX);
  assert_int_equal(laci_count_bytes_saturated(-1, 8), 0);
  laci_budget_add(&budget, UINT64_MAX - 5, "a");
  laci_budget_add(&budget, 100, "b");
  assert_int_equal(budget.needed, UINT64_MAX);
  assert_int_equal(laci_budget_check(&budget, "this", NULL), LAC_MEMORY_LIMIT);
  laci_budget_subtract(&budget, 100); /* what is left is unknown then */
  assert_int_equal(budget.needed, UINT64_MAX);
}

static void gives_back(void **state) {
  (void)state;
  laci_budget budget = laci_budget_with_limit(100), most = budget;
  laci_budget_add(&budget, 70, "a");
  laci_budget_keep_larger(&most, &budget);
  laci_budget_subtract(&budget, 50);
  laci_budget_keep_larger(&most, &budget);
  assert_int_equal(budget.needed, 20);
  assert_int_equal(most.needed, 70);
  laci_budget_subtract(&budget, 50);
  assert_int_equal(budget.needed, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reads_sizes),
      cmocka_unit_test(writes_sizes),
      cmocka_unit_test_setup_teardown(takes_four_fifths_of_the_machine, make_root, remove_root),
      cmocka_unit_test_setup_teardown(knows_groups_of_version_2, make_root, remove_root),
      cmocka_unit_test_setup_teardown(knows_groups_of_version_1, make_root, remove_root),
      cmocka_unit_test_setup_teardown(looks_at_the_top_inside_a_container, make_root, remove_root),
      cmocka_unit_test(has_no_limit_where_nothing_is_known),
      cmocka_unit_test(knows_the_limit_of_address_space),
      cmocka_unit_test(names_the_largest_part),
      cmocka_unit_test(never_wraps_around),
      cmocka_unit_test(gives_back),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
