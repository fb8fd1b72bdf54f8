/* SPDX-License-Identifier: Apache-2.0
 * Status and error of a call, and how structs of the API grow.
 *
 * Every function that can fail returns a lac_status; its last parameter is a `lac_error *` that may
 * be NULL. The error's text says which object is wrong, what was found and what was expected. A
 * NULL pointer argument fails LAC_BAD_ARGUMENT, and the text names the argument, unless the
 * parameter's comment allows NULL. Functions that cannot fail treat NULL as an empty object.
 *
 * Structs that grow. A struct that a caller fills or receives begins with `size_t size`. A newer
 * library gives a field that an older caller's struct lacks its default. An older library refuses a
 * newer caller's field that it does not know, unless it is zero (LAC_UNSUPPORTED). A size of 0
 * fails LAC_BAD_ARGUMENT: begin with TYPE_default() or LAC_SIZED(TYPE). Structs without `size` keep
 * their size. */
#ifndef LACUNA_STATUS_H
#define LACUNA_STATUS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* LAC_DECLARATIONS_ONLY: declarations without attributes, for generators of bindings. */
#if defined(__GNUC__) && !defined(LAC_DECLARATIONS_ONLY)
#define LAC_API __attribute__((visibility("default")))
#define LAC_MUST_CHECK __attribute__((warn_unused_result))
#define LAC_PRINTF(format_at, args_at) __attribute__((format(printf, format_at, args_at)))
#else
#define LAC_API
#define LAC_MUST_CHECK
#define LAC_PRINTF(format_at, args_at)
#endif

/** The first value of a struct that begins with its size, all other fields zero:
 * `lac_tensor tensor = LAC_SIZED(lac_tensor);`. */
#ifdef __cplusplus
#define LAC_SIZED(type) \
  { sizeof(type) }
#else
#define LAC_SIZED(type) \
  { .size = sizeof(type) }
#endif

/** Defines TYPE_default(), which returns a struct of options with every field's default. It is
 * compiled into the caller, whose struct may be of another size than the library's. Programs that
 * read declarations only, such as generators of bindings, define LAC_DECLARATIONS_ONLY. */
#ifdef LAC_DECLARATIONS_ONLY
#define LAC_DEFAULT(type)
#else
#define LAC_DEFAULT(type)                   \
  static inline type type##_default(void) { \
    type options;                           \
    type##_init(&options, sizeof options);  \
    return options;                         \
  }
#endif

/** The result of a call; LAC_OK is 0. */
typedef enum lac_status {
#define LAC_STATUS(name, number, text) LAC_##name = number,
#include "lacuna/status.def"
#undef LAC_STATUS
  LAC_STATUS_COUNT
} lac_status;

/** What the caller could do after a failure: change a field of the options, or call another
 * function. */
typedef enum lac_hint {
#define LAC_HINT(name, number, helps) LAC_HINT_##name = number,
#include "lacuna/hint.def"
#undef LAC_HINT
  LAC_HINT_COUNT
} lac_hint;

/** The first cause of a failure. Zero-initialize; a successful call leaves it untouched. */
typedef struct lac_error {
  lac_status status;
  char text[1024]; /* one line, UTF-8, no final newline */
  lac_hint hint;
} lac_error;

/** The status' fixed English text; never NULL. */
LAC_API const char *lac_status_text(lac_status status);

/** The cure of a failure in words, for callers of the C API: the field or the function that helps,
 * such as "options.max_memory". Never NULL; empty for LAC_HINT_NONE. */
LAC_API const char *lac_hint_text(lac_hint hint);

#ifdef __cplusplus
}
#endif
#endif
