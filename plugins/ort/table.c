/* SPDX-License-Identifier: Apache-2.0
 * Reads functions from ONNX Runtime's table by their places, converts failures to and from those of
 * ONNX Runtime, and logs. */
#include "table.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 1200, HAS_SHAPE = 390, HAS_SHAPE_SINCE = 24 };

typedef struct place {
  int at;
  const char *name;
  size_t offset; /* offset of the function's pointer in laci_ort */
} place;

static const place places[] = {
#define LAC_ORT_SLOT(place, name, result, arguments) {place, #name, offsetof(laci_ort, name)},
#include "slots.def"
#undef LAC_ORT_SLOT
};

static const place provider_places[] = {
    {0, "create_device", offsetof(laci_ort, create_device)},
    {1, "release_device", offsetof(laci_ort, release_device)},
    {2, "fuse_nodes", offsetof(laci_ort, fuse_nodes)},
};

/* Functions that the table has since API LAC_ORT_PROFILES. */
static const place profile_places[] = {
    {65, "create_event", offsetof(laci_ort, create_event)},
    {66, "release_event", offsetof(laci_ort, release_event)},
    {72, "add_events", offsetof(laci_ort, add_events)},
};

static lac_status fill_functions(laci_ort *ort, const ort_slot *table, const place *from,
                                 lac_error *err) {
  if (!table[from->at])
    return laci_ort_fail(err, LAC_UNSUPPORTED,
                         "ONNX Runtime's table has no function at place %d (%s)", from->at,
                         from->name);
  memcpy((char *)ort + from->offset, &table[from->at], sizeof table[from->at]);
  return LAC_OK;
}

/** Returns the middle number of a version like 1.28.0. */
static int parse_release_number(const ort_base *base) {
  const char *text = base->get_version ? base->get_version() : NULL;
  if (!text || strncmp(text, "1.", 2) != 0) return 0;
  return (int)strtol(text + 2, NULL, 10);
}

lac_status laci_ort_fill_table(laci_ort *ort, const ort_base *base, lac_error *err) {
  memset(ort, 0, sizeof *ort);
  const ort_slot *table = base && base->get_api ? base->get_api(LAC_ORT_API) : NULL;
  if (!table) {
    /* Any version of the API can create the failure that says so. */
    const ort_slot *first = base && base->get_api ? base->get_api(1) : NULL;
    if (first) memcpy(&ort->create_status, &first[0], sizeof first[0]);
    return laci_ort_fail(err, LAC_UNSUPPORTED,
                         "this ONNX Runtime has no API of version %d, which came with 1.%d",
                         LAC_ORT_API, LAC_ORT_API);
  }
  for (size_t k = 0; k < sizeof places / sizeof places[0]; k++) {
    lac_status st = fill_functions(ort, table, &places[k], err);
    if (st) return st;
  }
  ort->release = parse_release_number(base);
  if (ort->release >= HAS_SHAPE_SINCE)
    memcpy(&ort->has_shape, &table[HAS_SHAPE], sizeof ort->has_shape);
  const ort_slot *for_providers = ort->ep_table();
  if (!for_providers)
    return laci_ort_fail(err, LAC_UNSUPPORTED, "ONNX Runtime has no table for providers");
  for (size_t k = 0; k < sizeof provider_places / sizeof provider_places[0]; k++) {
    lac_status st = fill_functions(ort, for_providers, &provider_places[k], err);
    if (st) return st;
  }
  size_t n_profile = sizeof profile_places / sizeof profile_places[0];
  for (size_t k = 0; ort->release >= LAC_ORT_PROFILES && k < n_profile; k++) {
    lac_status st = fill_functions(ort, for_providers, &profile_places[k], err);
    if (st) return st;
  }
  return LAC_OK;
}

lac_status laci_ort_fail(lac_error *err, lac_status status, const char *format, ...) {
  if (!err) return status;
  va_list list;
  va_start(list, format);
  err->status = status;
  (void)vsnprintf(err->text, sizeof err->text, format, list);
  va_end(list);
  return status;
}

lac_status laci_ort_fail_memory(lac_error *err) {
  return laci_ort_fail(err, LAC_NO_MEMORY, "not enough memory");
}

lac_status laci_ort_take_failure(const laci_ort *ort, ort_status *status, const char *doing,
                                 lac_error *err) {
  if (!status) return LAC_OK;
  const char *text = ort->error_text(status);
  lac_status st = laci_ort_fail(err, LAC_IO, "ONNX Runtime: %s: %s", doing, text ? text : "");
  ort->release_status(status);
  return st;
}

static int ort_code_of_status(lac_status status) {
  switch (status) {
    case LAC_BAD_ARGUMENT:
    case LAC_BAD_SHAPE:
    case LAC_BAD_VALUE: return LAC_ORT_BAD_ARGUMENT;
    case LAC_UNSUPPORTED: return LAC_ORT_UNSUPPORTED;
    default: return LAC_ORT_PROVIDER_FAILS;
  }
}

ort_status *laci_ort_make_status(const laci_ort *ort, lac_status status, const lac_error *err) {
  char line[LINE_BYTES];
  if (!status || !ort->create_status) return NULL;
  const char *text = err->text[0] ? err->text : lac_status_text(status);
  (void)snprintf(line, sizeof line, "Lacuna: %s", text);
  return ort->create_status(ort_code_of_status(status), line);
}

ort_status *laci_ort_fail_missing(const laci_ort *ort, const char *call) {
  lac_error err = {0};
  lac_status st = laci_ort_fail(&err, LAC_BAD_ARGUMENT, "%s was called without all it needs", call);
  return laci_ort_make_status(ort, st, &err);
}

void laci_ort_log(const laci_ort *ort, const ort_logger *logger, int level, const char *format,
                  ...) {
  char line[LINE_BYTES] = "Lacuna: ";
  size_t n = strlen(line);
  if (!logger) return;
  va_list list;
  va_start(list, format);
  (void)vsnprintf(line + n, sizeof line - n, format, list);
  va_end(list);
  ort_status *failed = ort->log(logger, level, line, "lacuna", 0, "");
  if (failed) ort->release_status(failed); /* a log that fails has nowhere to say so */
}
