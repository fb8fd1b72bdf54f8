/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LAC_TESTS_LIGHT_H
#define LAC_TESTS_LIGHT_H
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/** Are tests to run briefly (LAC_TESTS=light, as .ci/run sets it)? A test that repeats a trial many
 * times then repeats it less often. tools/check_long runs all repetitions. */
static inline bool tests_are_light(void) {
  const char *how = getenv("LAC_TESTS");
  return how && strcmp(how, "light") == 0;
}

#endif
