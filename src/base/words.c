/* SPDX-License-Identifier: Apache-2.0 */
#include "base/words.h"

#include <string.h>

size_t laci_next_word(const char **at) {
  *at += strspn(*at, " ");
  return strcspn(*at, " ");
}

bool laci_has_word(const char *list, const char *word, size_t n) {
  for (size_t m; list && (m = laci_next_word(&list)) > 0; list += m) {
    if (m == n && strncmp(list, word, n) == 0) return true;
  }
  return false;
}
