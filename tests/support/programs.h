/* SPDX-License-Identifier: Apache-2.0
 * Programs of this build that tests start, where an emulator runs the tests, too: LAC_RUN then
 * precedes a program's name ("qemu-aarch64 -L ROOT"). */
#ifndef LAC_TESTS_PROGRAMS_H
#define LAC_TESTS_PROGRAMS_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/** An emulator's memory, limits and forks are not the program's. */
static inline bool is_emulated(void) { return getenv("LAC_RUN") != NULL; }

/** Runs a program of the build folder, such as "lacuna", with arguments as a shell reads them; the
 * status of system(). */
static inline int run_built(const char *program, const char *arguments) {
  const char *built_in = getenv("LAC_BUILD_DIR"), *by = getenv("LAC_RUN");
  char line[4096];
  (void)snprintf(line, sizeof line, "%s '%s/%s' %s", by ? by : "", built_in ? built_in : "..",
                 program, arguments);
  return system(line); /* NOLINT(cert-env33-c): a name of our own */
}

/** A network of tests/fixtures/zoo, filled with random weights. */
static inline int fill_network(const char *name, const char *path) {
  char arguments[2048];
  (void)snprintf(arguments, sizeof arguments, "'%s/tests/fixtures/zoo/%s.onnx' '%s' 1",
                 LAC_SOURCE_DIR, name, path);
  return run_built("tests/tools/fill_model", arguments);
}

#endif
