/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LAC_TESTS_LIGHT_H
#define LAC_TESTS_LIGHT_H
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/** True where all tests together are to stay short (LAC_TESTS=light, as .ci/run sets it): a test
 * that repeats one trial many times then repeats it less often. tools/check_long tries everything.
 */
static inline bool tests_are_light(void) {
  const char *how = getenv("LAC_TESTS");
  return how && strcmp(how, "light") == 0;
}

#endif
