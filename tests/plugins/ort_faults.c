/* SPDX-License-Identifier: Apache-2.0
 * The provider for ONNX Runtime, handed a table that has faults. It is the library LAC_ORT_LIBRARY;
 * LAC_ORT_FAULT says what is wrong when it is registered:
 *
 *     api            the API is older than providers from libraries
 *     null:PLACE     the function at this place is missing
 *     fail:PLACE:N   its N-th call fails, without a call of the real one
 *
 * tests/interop/test_ort_plugin_random.py goes through all places. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../plugins/ort/ort.h"

enum { MOST_PLACES = 512 };

/* Every function of the table gets up to six arguments of a register each. */
typedef void *any(void *, void *, void *, void *, void *, void *);

static struct {
  const ort_base *real;
  ort_slot table[MOST_PLACES];
  ort_slot original[MOST_PLACES];
  int place;
  long at;
  atomic_long n;
  bool hit;
} fault;

/** Did a call fail since the library was registered? */
__attribute__((visibility("default"))) int ort_faults_hit(void);
int ort_faults_hit(void) { return fault.hit; }

__attribute__((visibility("default"))) ort_status *CreateEpFactories(const char *registered,
                                                                     const ort_base *base,
                                                                     const ort_logger *logger,
                                                                     ort_factory **made,
                                                                     size_t most, size_t *n);
__attribute__((visibility("default"))) ort_status *ReleaseEpFactory(ort_factory *self);

static any *original(int place) {
  any *function = NULL;
  memcpy(&function, &fault.original[place], sizeof function);
  return function;
}

/** Is this the call that fails? */
static void *failure(int place) {
  ort_status *(*create)(int, const char *) = NULL;
  if (place != fault.place || atomic_fetch_add(&fault.n, 1) + 1 != fault.at) return NULL;
  memcpy(&create, &fault.original[0], sizeof create);
  fault.hit = true;
  return create(LAC_ORT_FAILS, "a fault of the test");
}

#define LAC_ORT_SLOT(place, name, result, arguments)                               \
  static void *call_##name(void *a, void *b, void *c, void *d, void *e, void *f) { \
    void *failed = failure(place);                                                 \
    return failed ? failed : original(place)(a, b, c, d, e, f);                    \
  }
#include "../../plugins/ort/slots.def"
#undef LAC_ORT_SLOT

static const struct {
  int place;
  any *call;
} calls[] = {
#define LAC_ORT_SLOT(place, name, result, arguments) {place, call_##name},
#include "../../plugins/ort/slots.def"
#undef LAC_ORT_SLOT
};

static const ort_slot *get_api(uint32_t version) {
  const char *text = getenv("LAC_ORT_FAULT");
  int place = -1;
  long at = 0;
  const ort_slot *real = fault.real->get_api(version);
  if (!real || !text || (version >= LAC_ORT_API && strcmp(text, "api") == 0)) return NULL;
  fault.place = -1;
  fault.hit = false;
  atomic_store(&fault.n, 0);
  memcpy(fault.original, real, 391 * sizeof *real); /* as many as every release since 1.24 has */
  memcpy(fault.table, real, 391 * sizeof *real);
  if (sscanf(text, "null:%d", &place) == 1) {
    fault.table[place] = NULL;
  } else if (sscanf(text, "fail:%d:%ld", &place, &at) == 2) {
    fault.place = place;
    fault.at = at;
    for (size_t k = 0; k < sizeof calls / sizeof calls[0]; k++)
      if (calls[k].place == place) memcpy(&fault.table[place], &calls[k].call, sizeof(ort_slot));
  }
  return fault.table;
}

static void *find(const char *name) {
  const char *path = getenv("LAC_ORT_LIBRARY");
  void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  return library ? dlsym(library, name) : NULL;
}

static const char *get_version(void) { return fault.real->get_version(); }

ort_status *CreateEpFactories(const char *registered, const ort_base *base,
                              const ort_logger *logger, ort_factory **made, size_t most,
                              size_t *n) {
  static const ort_base faulty = {get_api, get_version};
  ort_status *(*create)(const char *, const ort_base *, const ort_logger *, ort_factory **, size_t,
                        size_t *) = NULL;
  void *found = find("CreateEpFactories");
  fault.real = base;
  *n = 0;
  memcpy(&create, &found, sizeof create);
  return create ? create(registered, &faulty, logger, made, most, n) : NULL;
}

ort_status *ReleaseEpFactory(ort_factory *self) {
  ort_status *(*release)(ort_factory *) = NULL;
  void *found = find("ReleaseEpFactory");
  memcpy(&release, &found, sizeof release);
  return release ? release(self) : NULL;
}
