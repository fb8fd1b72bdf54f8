/* SPDX-License-Identifier: Apache-2.0
 * Starts programs of this build from tests, also where an emulator runs the tests: LAC_RUN is then
 * the command before a program's name ("qemu-aarch64 -L ROOT"). */
#ifndef LAC_TESTS_PROGRAMS_H
#define LAC_TESTS_PROGRAMS_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/** Do tests run in an emulator? Its memory, limits and forks then differ from the program's. */
static inline bool is_emulated(void) { return getenv("LAC_RUN") != NULL; }

/** Runs a program of the build folder, such as "lacuna", with arguments in shell syntax; returns
 * the status of system(). */
static inline int run_built(const char *program, const char *arguments) {
  const char *built_in = getenv("LAC_BUILD_DIR"), *by = getenv("LAC_RUN");
  char line[4096];
  (void)snprintf(line, sizeof line, "%s '%s/%s' %s", by ? by : "", built_in ? built_in : "..",
                 program, arguments);
  return system(line); /* NOLINT(cert-env33-c): a name of our own */
}

/** Writes a network of tests/fixtures/zoo, filled with random weights, to `path`. */
static inline int fill_network(const char *name, const char *path) {
  char arguments[2048];
  (void)snprintf(arguments, sizeof arguments, "'%s/tests/fixtures/zoo/%s.onnx' '%s' 1",
                 LAC_SOURCE_DIR, name, path);
  return run_built("tests/tools/fill_model", arguments);
}

#endif
