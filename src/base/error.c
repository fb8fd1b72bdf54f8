/* SPDX-License-Identifier: Apache-2.0
 * Filling a lac_error, and the texts of the statuses. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *lac_status_text(lac_status status) {
  static const char *const texts[] = {
#define LAC_STATUS(name, text) text,
#include "lacuna/status.def"
#undef LAC_STATUS
  };
  return (unsigned)status < LAC_STATUS_COUNT ? texts[status] : "unknown status";
}

lac_status laci_fail(lac_error *err, lac_status status, const char *format, ...) {
  if (!err) return status;
  err->status = status;
  va_list args;
  va_start(args, format);
  (void)vsnprintf(err->text, sizeof err->text, format, args);
  va_end(args);
  return status;
}

lac_status laci_fail_in(lac_error *err, lac_status status, const char *format, ...) {
  if (!err) return status;
  char old[sizeof err->text];
  memcpy(old, err->text, sizeof old);
  va_list args;
  va_start(args, format);
  int used = vsnprintf(err->text, sizeof err->text, format, args);
  va_end(args);
  if (used >= 0 && (size_t)used < sizeof err->text) {
    (void)snprintf(err->text + used, sizeof err->text - (size_t)used, ": %s", old);
  }
  err->status = status;
  return status;
}

lac_status laci_fail_memory(lac_error *err, const char *what) {
  return laci_fail(err, LAC_NO_MEMORY, "not enough memory for %s", what);
}
