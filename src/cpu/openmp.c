/* SPDX-License-Identifier: Apache-2.0
 * Looking up the OpenMP run time by name.
 *
 * GOMP_parallel is what GNU's compiler calls for a parallel region; LLVM's run time has it, too.
 * Our library may have been opened for its own use only (as Python opens libraries): then the names
 * are not among the process's, but among those of the library and of what it needs. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_DEFAULT, dladdr */
#endif
#include "cpu/openmp.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

static void (*set_threads)(int n);
static int (*max_threads)(void);
static void (*run_region)(void (*body)(void *), void *context, unsigned n, unsigned flags);
static pthread_once_t looked = PTHREAD_ONCE_INIT;

static void *find(void *library, const char *name) {
  void *found = dlsym(RTLD_DEFAULT, name);
  return found || !library ? found : dlsym(library, name);
}

static void look(void) {
  Dl_info self;
  void *library = NULL;
  if (dladdr(&looked, &self) && self.dli_fname)
    library = dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  void *set = find(library, "omp_set_num_threads"), *max = find(library, "omp_get_max_threads");
  void *run = find(library, "GOMP_parallel");
  if (set && max) {
    memcpy(&set_threads, &set, sizeof set);
    memcpy(&max_threads, &max, sizeof max);
  }
#if !defined(__SANITIZE_THREAD__)
  if (set && max && run) memcpy(&run_region, &run, sizeof run);
#endif
  if (library) (void)dlclose(library);
}

bool laci_openmp_has_team(void) {
  (void)pthread_once(&looked, look);
  return run_region != NULL;
}

void laci_openmp_run(int n, void (*body)(void *context), void *context) {
  run_region(body, context, (unsigned)n, 0);
}

int laci_openmp_use(int n) {
  (void)pthread_once(&looked, look);
  if (!set_threads) return n;
  int before = max_threads();
  if (before != n) set_threads(n);
  return before;
}
