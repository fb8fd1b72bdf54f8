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

/** Returns the stride over a test's trials, of which one in so many is run: `brief` where .ci/run
 * tests with sanitizers (LAC_TESTS=brief), since a trial then takes ten times as long; else 1, all
 * trials. tools/check_long runs all trials with sanitizers, too. */
static inline int tests_stride(int brief) { return tests_are("brief") ? brief : 1; }

/** Are tests to run briefly (LAC_TESTS=light or brief, as .ci/run sets it)? A test that repeats a
 * trial many times then repeats it less often. tools/check_long runs all repetitions. */
static inline bool tests_are_light(void) { return tests_are("light") || tests_are("brief"); }

#endif
