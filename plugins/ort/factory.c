/* SPDX-License-Identifier: Apache-2.0
 * The library's two functions, and the factory of providers. It offers the processor as a device,
 * and makes a provider for each session. Next: ep.h. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "ep.h"
#include "lacuna/version.h"

typedef struct factory {
  ort_factory face; /* first member: ONNX Runtime passes its address */
  laci_ort ort;
  struct factory *next;
} factory;

/* One factory for each table of functions. None is ever freed: a session may outlive the provider's
 * registration, as in Python, where a session lives until its last reference is gone. */
static factory *factories;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((visibility("default"))) ort_status *CreateEpFactories(const char *registered,
                                                                     const ort_base *base,
                                                                     const ort_logger *logger,
                                                                     ort_factory **made,
                                                                     size_t most, size_t *n);
__attribute__((visibility("default"))) ort_status *ReleaseEpFactory(ort_factory *self);

static const char *get_name(const ort_factory *self) {
  (void)self;
  return LAC_ORT_PROVIDER;
}

static const char *get_vendor(const ort_factory *self) {
  (void)self;
  return "Lacuna";
}

static uint32_t get_vendor_id(const ort_factory *self) {
  (void)self;
  return 0; /* no vendor with a PCI number */
}

static const char *get_version(const ort_factory *self) {
  (void)self;
  return lac_version();
}

static ort_status *get_supported_devices(ort_factory *self, const ort_device *const *devices,
                                         size_t n_devices, ort_ep_device **to, size_t most,
                                         size_t *n) {
  factory *f = (factory *)self;
  lac_error err = {0};
  lac_status st = LAC_OK;
  if (!n || (n_devices && !devices) || (most && !to))
    return laci_ort_fail_missing(&f->ort, "GetSupportedDevices");
  *n = 0;
  for (size_t k = 0; !st && k < n_devices && *n < most; k++) {
    if (!devices[k]) st = laci_ort_fail(&err, LAC_BAD_ARGUMENT, "a device is NULL");
    if (st || f->ort.device_kind(devices[k]) != LAC_ORT_CPU) continue;
    st = laci_ort_take_failure(&f->ort, f->ort.create_device(self, devices[k], NULL, NULL, &to[*n]),
                               "a device", &err);
    if (!st) ++*n;
  }
  while (st && *n) f->ort.release_device(to[--*n]);
  return laci_ort_make_status(&f->ort, st, &err);
}

static ort_status *create_ep(ort_factory *self, const ort_device *const *devices,
                             const ort_pairs *const *metadata, size_t n_devices,
                             const ort_session_options *options, const ort_logger *logger,
                             ort_ep **ep) {
  factory *f = (factory *)self;
  lac_error err = {0};
  (void)devices;
  (void)metadata;
  (void)n_devices;
  if (!options || !ep) return laci_ort_fail_missing(&f->ort, "CreateEp");
  return laci_ort_make_status(&f->ort, laci_ort_ep_create(&f->ort, options, logger, ep, &err),
                              &err);
}

static void release_ep(ort_factory *self, ort_ep *ep) {
  (void)self;
  laci_ort_ep_destroy(ep);
}

/* The provider has no allocator, copies and streams of its own: it uses those of the CPU
 * provider. */

static ort_status *create_allocator(ort_factory *self, const void *memory, const ort_pairs *options,
                                    void **allocator) {
  (void)memory;
  (void)options;
  if (!allocator) return laci_ort_fail_missing(&((factory *)self)->ort, "CreateAllocator");
  *allocator = NULL;
  return NULL;
}

static void release_allocator(ort_factory *self, void *allocator) {
  (void)self;
  (void)allocator;
}

static ort_status *create_data_transfer(ort_factory *self, void **transfer) {
  if (!transfer) return laci_ort_fail_missing(&((factory *)self)->ort, "CreateDataTransfer");
  *transfer = NULL;
  return NULL;
}

static bool is_stream_aware(const ort_factory *self) {
  (void)self;
  return false;
}

static ort_status *create_stream(ort_factory *self, const void *memory, const ort_pairs *options,
                                 void **stream) {
  (void)memory;
  (void)options;
  if (!stream) return laci_ort_fail_missing(&((factory *)self)->ort, "CreateSyncStreamForDevice");
  *stream = NULL;
  return NULL;
}

static factory *make_factory(const laci_ort *ort) {
  factory *f = calloc(1, sizeof *f);
  if (!f) return NULL;
  f->ort = *ort;
  f->face = (ort_factory){.version = LAC_ORT_API,
                          .get_name = get_name,
                          .get_vendor = get_vendor,
                          .get_supported_devices = get_supported_devices,
                          .create_ep = create_ep,
                          .release_ep = release_ep,
                          .get_vendor_id = get_vendor_id,
                          .get_version = get_version,
                          .create_allocator = create_allocator,
                          .release_allocator = release_allocator,
                          .create_data_transfer = create_data_transfer,
                          .is_stream_aware = is_stream_aware,
                          .create_stream = create_stream};
  return f;
}

static factory *find_factory(const laci_ort *ort) {
  (void)pthread_mutex_lock(&lock);
  factory *f = factories;
  while (f && memcmp(&f->ort, ort, sizeof *ort) != 0) f = f->next;
  if (!f) {
    f = make_factory(ort);
    if (f) f->next = factories, factories = f;
  }
  (void)pthread_mutex_unlock(&lock);
  return f;
}

ort_status *CreateEpFactories(const char *registered, const ort_base *base,
                              const ort_logger *logger, ort_factory **made, size_t most,
                              size_t *n) {
  laci_ort ort;
  lac_error err = {0};
  (void)registered;
  (void)logger;
  if (n) *n = 0;
  lac_status st = laci_ort_fill_table(&ort, base, &err);
  if (!st && (!made || !n || most < 1))
    st = laci_ort_fail(&err, LAC_BAD_ARGUMENT, "there is no room for a factory");
  factory *f = st ? NULL : find_factory(&ort);
  if (!st && !f) st = laci_ort_fail_memory(&err);
  if (st) return laci_ort_make_status(&ort, st, &err);
  made[0] = &f->face;
  *n = 1;
  return NULL;
}

ort_status *ReleaseEpFactory(ort_factory *self) {
  (void)self; /* the factory stays in the list `factories` */
  return NULL;
}
