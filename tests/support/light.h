/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LAC_TESTS_LIGHT_H
#define LAC_TESTS_LIGHT_H
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static inline bool tests_are(const char *what) {
  const char *how = getenv("LAC_TESTS");
  return how && strcmp(how, what) == 0;
}

/** One trial in how many is run: all of them, but where .ci/run has the sanitizers watch
 * (LAC_TESTS=brief), for they make a trial cost ten times as much. tools/check_long has them watch
 * all. */
static inline int tests_stride(int brief) { return tests_are("brief") ? brief : 1; }

/** Are tests to run briefly (LAC_TESTS=light or brief, as .ci/run sets it)? A test that repeats a
 * trial many times then repeats it less often. tools/check_long runs all repetitions. */
static inline bool tests_are_light(void) { return tests_are("light") || tests_are("brief"); }

#endif
