/* SPDX-License-Identifier: Apache-2.0
 * Checks of fields that several structs of the API have. */
#include "api/model/structs.h"

#include "api/run/tuning.h"
#include "base/error.h"
#include "base/log.h"
#include "lacuna/engine.h"
#include "lacuna/version.h"
#include "tensor/shape.h"

enum { MOST_THREADS = 1024 };

lac_status laci_check_enum_value(const char *field, long long value, int n, lac_error *err) {
  if (value >= 0 && value < n) return LAC_OK;
  return laci_fail(err, LAC_BAD_ARGUMENT, "%s %lld: wanted 0 to %d", field, value, n - 1);
}

lac_status laci_check_threads(int threads, lac_error *err) {
  if (threads >= 0 && threads <= MOST_THREADS) return LAC_OK;
  return laci_fail(err, LAC_BAD_ARGUMENT, "threads %d: wanted 0 (all cores) to %d", threads,
                   MOST_THREADS);
}

static lac_status check_reserved(const unsigned char *bytes, size_t n, const char *name,
                                 lac_error *err) {
  for (size_t at = 0; at < n; at++) {
    if (bytes[at] == 0) continue;
    return laci_fail(err, LAC_UNSUPPORTED,
                     "lac_run_options.%s[%zu] is set, and this library, version %s, does not know "
                     "it: a newer library is needed",
                     name, at, lac_version());
  }
  return LAC_OK;
}

lac_status laci_check_run_options(const lac_run_options *run, lac_error *err) {
  lac_status st = laci_check_threads(run->threads, err);
  if (!st) st = laci_check_tuning(run->tuning, err);
  if (st) return st;
  if (run->dtype != LAC_DTYPE_F32 && run->dtype != LAC_DTYPE_BF16) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "a run in %s: wanted f32 or bf16",
                     lac_dtype_name(run->dtype));
  }
  st = check_reserved(run->reserved_flags, sizeof run->reserved_flags, "reserved_flags", err);
  return st ? st : check_reserved(run->reserved, sizeof run->reserved, "reserved", err);
}

lac_status laci_check_engine_shapes(const lac_engine_shape *shapes, int n, lac_error *err) {
  if (n < 0 || (n > 0 && !shapes)) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "%d input shapes, but no list", n);
  }
  for (int at = 0; at < n; at++) {
    if (shapes[at].name && shapes[at].rank >= 0 && shapes[at].rank <= LACI_MAX_RANK) continue;
    return laci_fail(err, LAC_BAD_ARGUMENT, "input shape %d: wanted a name and a rank of 0 to %d",
                     at, LACI_MAX_RANK);
  }
  return LAC_OK;
}

lac_context *laci_call_enter_context(lac_context *wanted) {
  return laci_context_begin_call(wanted);
}

void laci_call_leave_context(lac_context *before) { (void)laci_context_enter(before); }
