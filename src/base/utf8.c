/* SPDX-License-Identifier: Apache-2.0
 * Strict decoding of UTF-8, and repair of invalid text. */
#include "base/utf8.h"

#include <string.h>

static const char replacement[] = "\xEF\xBF\xBD"; /* U+FFFD */

size_t laci_utf8_next(const char *text, uint32_t *code) {
  static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  uint8_t first = (uint8_t)text[0];
  size_t n = first < 0x80         ? 1
             : first >> 5 == 0x6  ? 2
             : first >> 4 == 0xE  ? 3
             : first >> 3 == 0x1E ? 4
                                  : 0;
  if (n == 0) return 0;
  *code = n == 1 ? first : first & (0x7Fu >> n);
  for (size_t i = 1; i < n; i++) {
    uint8_t byte =
        (uint8_t)text[i]; /* the text's final zero is no continuation byte, so that nothing beyond
                             it is read */
    if (byte >> 6 != 0x2) return 0;
    *code = *code << 6 | (byte & 0x3F);
  }
  bool surrogate = *code >= 0xD800 && *code <= 0xDFFF;
  return *code < smallest[n] || surrogate || *code > 0x10FFFF ? 0 : n;
}

char *laci_utf8_replace_invalid(laci_arena *arena, const char *text) {
  char *clean = laci_arena_alloc(arena, strlen(text) + 1, sizeof replacement - 1);
  if (!clean) return NULL;
  char *to = clean;
  while (*text) {
    uint32_t code;
    size_t n = laci_utf8_next(text, &code);
    memcpy(to, n ? text : replacement, n ? n : sizeof replacement - 1);
    to += n ? n : sizeof replacement - 1;
    text += n ? n : 1;
  }
  return clean;
}
