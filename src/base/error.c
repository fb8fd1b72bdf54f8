/* SPDX-License-Identifier: Apache-2.0
 * Fills a lac_error, and has the texts of the statuses. */
#include "base/error.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

const char *lac_status_text(lac_status status) {
  static const char *const texts[] = {
#define LAC_STATUS(name, number, text) [number] = text,
#include "lacuna/status.def"
#undef LAC_STATUS
  };
  return (unsigned)status < LAC_STATUS_COUNT ? texts[status] : "unknown status";
}

static const char *const hint_texts[] = {
#define LAC_HINT(name, number, helps) [number] = helps,
#include "lacuna/hint.def"
#undef LAC_HINT
};

const char *lac_hint_text(lac_hint hint) {
  if ((unsigned)hint >= LAC_HINT_COUNT || hint == LAC_HINT_NONE) return "";
  return hint_texts[hint];
}

/* Replaces control characters, so that a message is one line even if names from files contain line
 * breaks. */
static void replace_control_characters(char *text) {
  for (; *text; text++) {
    if ((unsigned char)*text < ' ' || *text == 0x7F) *text = '?';
  }
}

lac_status laci_fail(lac_error *err, lac_status status, const char *format, ...) {
  if (!err) return status;
  err->status = status;
  err->hint = LAC_HINT_NONE;
  va_list args;
  va_start(args, format);
  (void)vsnprintf(err->text, sizeof err->text, format, args);
  va_end(args);
  replace_control_characters(err->text);
  return status;
}

lac_status laci_hint(lac_error *err, lac_hint hint, lac_status status) {
  if (err && status) err->hint = hint;
  return status;
}

lac_status laci_fail_with_prefix(lac_error *err, lac_status status, const char *format, ...) {
  if (!err) return status;
  char prefix[sizeof err->text];
  va_list args;
  va_start(args, format);
  (void)vsnprintf(prefix, sizeof prefix, format, args);
  va_end(args);
  replace_control_characters(prefix);
  size_t n = strlen(prefix), capacity = sizeof err->text - 3;
  if (n > capacity) n = capacity;
  err->status = status;
  if (n && strncmp(err->text, prefix, n) == 0 && strncmp(err->text + n, ": ", 2) == 0)
    return status;
  size_t old = strlen(err->text), kept = old < capacity - n ? old : capacity - n;
  memmove(err->text + n + 2, err->text, kept);
  memcpy(err->text, prefix, n);
  memcpy(err->text + n, ": ", 2);
  err->text[n + 2 + kept] = 0;
  replace_control_characters(err->text);
  return status;
}

lac_status laci_check_arguments_not_null(const char *function, const laci_named_pointer *given,
                                         size_t n, lac_error *err) {
  for (size_t at = 0; at < n; at++) {
    if (!given[at].pointer)
      return laci_fail(err, LAC_BAD_ARGUMENT, "%s: %s is NULL", function, given[at].name);
  }
  return LAC_OK;
}

void laci_error_replace_text(lac_error *err, const char *from, const char *to) {
  char text[sizeof err->text];
  size_t n_from = strlen(from), n = 0;
  if (!err || !strstr(err->text, from)) return;
  for (const char *at = err->text; *at && n + 1 < sizeof text;) {
    bool found = strncmp(at, from, n_from) == 0;
    int put = snprintf(text + n, sizeof text - n, "%.*s", found ? INT_MAX : 1, found ? to : at);
    n = (size_t)put < sizeof text - n ? n + (size_t)put : sizeof text - 1;
    at += found ? n_from : 1;
  }
  memcpy(err->text, text, n);
  err->text[n] = 0;
}

lac_status laci_fail_memory(lac_error *err, const char *what) {
  return laci_fail(err, LAC_NO_MEMORY, "not enough memory for %s", what);
}

lac_status laci_fail_errno(lac_error *err, const char *path, const char *doing) {
  int cause = errno;
  lac_status st = cause == ENOENT || cause == ENOTDIR ? LAC_NOT_FOUND : LAC_IO;
  return laci_fail(err, st, "%s: %s: %s", path, doing, strerror(cause));
}
