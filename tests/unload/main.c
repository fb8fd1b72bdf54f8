/* SPDX-License-Identifier: Apache-2.0
 * Loads a library that holds Lacuna, has it run with two threads and unloads it, N times.
 *
 *     unload N HOST.so MODEL.onnx
 *
 * Afterwards Lacuna's code has to be where it was: threads of the OpenMP run time outlive the run.
 * What they do takes a moment: at the end it waits for one. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dladdr */
#endif
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int load_and_run(const char *library, const char *model) {
  typedef int run_fn(const char *path, void **code);
  run_fn *run;
  void *host = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  void *found = host ? dlsym(host, "host_run") : NULL;
  if (!found) {
    (void)fprintf(stderr, "%s: %s\n", library, dlerror());
    return 1;
  }
  memcpy(&run, &found, sizeof run);
  void *code = NULL;
  const int st = run(model, &code);
  if (st) (void)fprintf(stderr, "%s: the run ended with status %d\n", library, st);
  if (dlclose(host) || st) return 1;
  Dl_info where;
  if (dladdr(code, &where)) return 0;
  (void)fprintf(stderr, "%s: its code is gone, and threads are left\n", library);
  return 1;
}

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  for (long at = 0, n = strtol(argv[1], NULL, 10); at < n; at++) {
    if (load_and_run(argv[2], argv[3])) return 1;
  }
  (void)nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
  return 0;
}
