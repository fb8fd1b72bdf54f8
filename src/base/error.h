/* SPDX-License-Identifier: Apache-2.0
 * Fills a lac_error. A function fails only by `return laci_fail(err, LAC_BAD_SHAPE, "%s: ...",
 * name)`. */
#ifndef LACI_BASE_ERROR_H
#define LACI_BASE_ERROR_H

#include <stdbool.h>
#include <stddef.h>

#include "lacuna/status.h"

/** Writes the status and the printf-style text to *err (err may be NULL), and returns the status,
 * so that a failure is one statement. */
lac_status laci_fail(lac_error *err, lac_status status, const char *format, ...) LAC_PRINTF(3, 4);

/** Adds a hint to a failure that was just written: `return laci_hint(err, LAC_HINT_CROP,
 * laci_fail(err, ...))`. Returns the status. */
lac_status laci_hint(lac_error *err, lac_hint hint, lac_status status);

/** Formats a prefix and puts "PREFIX: " before the text already in err, unless the text begins so.
 * Sets err->status to status and returns it. */
lac_status laci_fail_with_prefix(lac_error *err, lac_status status, const char *format, ...)
    LAC_PRINTF(3, 4);

/** A pointer argument, which must not be NULL, of a public function. */
typedef struct laci_named_pointer {
  const char *name;
  const void *pointer;
} laci_named_pointer;

/** Returns LAC_OK, or fails LAC_BAD_ARGUMENT for the first argument that is NULL: "lac_prune: model
 * is NULL". */
LAC_MUST_CHECK lac_status laci_check_arguments_not_null(const char *function,
                                                        const laci_named_pointer *given, size_t n,
                                                        lac_error *err);
/** Checks arguments of the public function that contains this call: LACI_CHECK_GIVEN(err, {"model",
 * model}, {"report", report}). */
#define LACI_CHECK_GIVEN(err, ...)                         \
  laci_check_arguments_not_null(                           \
      __func__, (const laci_named_pointer[]){__VA_ARGS__}, \
      sizeof((const laci_named_pointer[]){__VA_ARGS__}) / sizeof(laci_named_pointer), (err))

/** Replaces `from` (not empty) by `to` everywhere in the text, so that a failure about a temporary
 * file names the file that the user knows. err may be NULL. */
void laci_error_replace_text(lac_error *err, const char *from, const char *to);

/** Does the status mean a failure for a reason other than the data (no memory, an interruption)?
 * Then a caller that otherwise continues without the failed part must stop, too. */
static inline bool laci_status_is_not_about_data(lac_status status) {
  return status == LAC_NO_MEMORY || status == LAC_MEMORY_LIMIT || status == LAC_INTERRUPTED;
}

/** Fails LAC_NO_MEMORY after a failed allocation: "not enough memory for WHAT". */
lac_status laci_fail_memory(lac_error *err, const char *what);

/** Fails after a system call that set errno: "PATH: DOING: why". The status is LAC_NOT_FOUND if no
 * file has that name, else LAC_IO. */
lac_status laci_fail_errno(lac_error *err, const char *path, const char *doing);

/* These macros are for tools/analyze, which reads one file at a time and does not see that these
 * functions never return LAC_OK. */
#ifdef LACI_ANALYZER
#define laci_fail(err, status, ...) ((void)laci_fail(err, status, __VA_ARGS__), (status))
#define laci_fail_with_prefix(err, status, ...) \
  ((void)laci_fail_with_prefix(err, status, __VA_ARGS__), (status))
#define laci_fail_memory(err, what) ((void)laci_fail_memory(err, what), LAC_NO_MEMORY)
#define laci_fail_errno(err, path, doing) ((void)laci_fail_errno(err, path, doing), LAC_IO)
static inline lac_status laci_check_no_argument_null(const laci_named_pointer *given, size_t n,
                                                     lac_error *err) {
  (void)err;
  for (size_t k = 0; k < n; k++)
    if (!given[k].pointer) return LAC_BAD_ARGUMENT;
  return LAC_OK;
}
#define laci_check_arguments_not_null(function, ...) laci_check_no_argument_null(__VA_ARGS__)
#endif

#endif
