/* SPDX-License-Identifier: Apache-2.0
 * Filling a lac_error. Functions fail by `return laci_fail(err, LAC_BAD_SHAPE, "%s: ...", name)`
 * only. */
#ifndef LACI_BASE_ERROR_H
#define LACI_BASE_ERROR_H

#include <stdbool.h>
#include <stddef.h>

#include "lacuna/status.h"

/** Writes the text (if err is given) and returns status, so that a failure is one statement. */
lac_status laci_fail(lac_error *err, lac_status status, const char *format, ...) LAC_PRINTF(3, 4);

/** Adds a hint to a failure that was just written: `return laci_hint(err, LAC_HINT_CROP,
 * laci_fail(err, ...))`. Returns the status. */
lac_status laci_hint(lac_error *err, lac_hint hint, lac_status status);

/** Puts "format: " before the text already in err, unless it begins so; returns the status
 * that err holds. */
lac_status laci_fail_in(lac_error *err, lac_status status, const char *format, ...)
    LAC_PRINTF(3, 4);

/** A pointer argument of a public function that must not be NULL. */
typedef struct laci_given {
  const char *name;
  const void *pointer;
} laci_given;

/** Returns LAC_OK, or fails LAC_BAD_ARGUMENT for the first argument that is NULL: "lac_prune: model
 * is NULL". */
LAC_MUST_CHECK lac_status laci_check_given(const char *function, const laci_given *given, size_t n,
                                           lac_error *err);
/** LACI_CHECK_GIVEN(err, {"model", model}, {"report", report}): for a public function. */
#define LACI_CHECK_GIVEN(err, ...)                              \
  laci_check_given(__func__, (const laci_given[]){__VA_ARGS__}, \
                   sizeof((const laci_given[]){__VA_ARGS__}) / sizeof(laci_given), (err))

/** Replaces `from` (not empty) by `to` everywhere in the text, so that a failure about a temporary
 * file has the name that the user knows. err may be NULL. */
void laci_error_rename(lac_error *err, const char *from, const char *to);

/** Is it a failure for a reason other than the data (no memory, an interruption)? A caller that
 * would otherwise continue without the failed part must then stop, too. */
static inline bool laci_ends_the_run(lac_status status) {
  return status == LAC_NO_MEMORY || status == LAC_MEMORY_LIMIT || status == LAC_INTERRUPTED;
}

/** For a failed allocation: "not enough memory for WHAT". */
lac_status laci_fail_memory(lac_error *err, const char *what);

/** For a failed call to the system, by errno: "PATH: DOING: why". LAC_NOT_FOUND where nothing has
 * that name, else LAC_IO. */
lac_status laci_fail_errno(lac_error *err, const char *path, const char *doing);

/* tools/analyze reads one file at a time and does not see that these never return LAC_OK. */
#ifdef LACI_ANALYZER
#define laci_fail(err, status, ...) ((void)laci_fail(err, status, __VA_ARGS__), (status))
#define laci_fail_in(err, status, ...) ((void)laci_fail_in(err, status, __VA_ARGS__), (status))
#define laci_fail_memory(err, what) ((void)laci_fail_memory(err, what), LAC_NO_MEMORY)
#define laci_fail_errno(err, path, doing) ((void)laci_fail_errno(err, path, doing), LAC_IO)
static inline lac_status laci_look_given(const laci_given *given, size_t n, lac_error *err) {
  (void)err;
  for (size_t k = 0; k < n; k++)
    if (!given[k].pointer) return LAC_BAD_ARGUMENT;
  return LAC_OK;
}
#define laci_check_given(function, ...) laci_look_given(__VA_ARGS__)
#endif

#endif
