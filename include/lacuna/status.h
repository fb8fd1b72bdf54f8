/* SPDX-License-Identifier: Apache-2.0
 * How a call ended, and why.
 *
 * Whatever can fail returns a lac_status and takes a last `lac_error *` that may be NULL. The text
 * names the thing, what was found and what was wanted. A NULL where a pointer is wanted is
 * LAC_BAD_ARGUMENT, and the text names the argument; what may be NULL says so. Functions that
 * cannot fail take a NULL for nothing. */
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

/** What a call came to; LAC_OK is 0. */
typedef enum lac_status {
#define LAC_STATUS(name, text) LAC_##name,
#include "lacuna/status.def"
#undef LAC_STATUS
  LAC_STATUS_COUNT
} lac_status;

/** What could help: a field of the options, or another function. */
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
