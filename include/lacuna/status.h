/* SPDX-License-Identifier: Apache-2.0
 * Status and error of a call.
 *
 * Every function that can fail returns a lac_status; its last parameter is a `lac_error *` that may
 * be NULL. The error's text says which object is wrong, what was found and what was expected. A
 * NULL pointer argument fails LAC_BAD_ARGUMENT, and the text names the argument, unless the
 * parameter's comment allows NULL. Functions that cannot fail treat NULL as an empty object. */
#ifndef LACUNA_STATUS_H
#define LACUNA_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define LAC_API __attribute__((visibility("default")))
#define LAC_MUST_CHECK __attribute__((warn_unused_result))
#define LAC_PRINTF(format_at, args_at) __attribute__((format(printf, format_at, args_at)))
#else
#define LAC_API
#define LAC_MUST_CHECK
#define LAC_PRINTF(format_at, args_at)
#endif

/** The result of a call; LAC_OK is 0. */
typedef enum lac_status {
#define LAC_STATUS(name, text) LAC_##name,
#include "lacuna/status.def"
#undef LAC_STATUS
  LAC_STATUS_COUNT
} lac_status;

/** What the caller could change after a failure: a field of the options, or call another function.
 */
typedef enum lac_hint {
#define LAC_HINT(name, helps) LAC_HINT_##name,
#include "lacuna/hint.def"
#undef LAC_HINT
  LAC_HINT_COUNT
} lac_hint;

/** The first cause of a failure. Zero-initialise; a successful call leaves it untouched. */
typedef struct lac_error {
  lac_status status;
  char text[1024]; /* one line, UTF-8, no final newline */
  lac_hint hint;
} lac_error;

/** The status' fixed English text; never NULL. */
LAC_API const char *lac_status_text(lac_status status);

#ifdef __cplusplus
}
#endif
#endif
