/* SPDX-License-Identifier: Apache-2.0
 * Handling of UTF-8. Names come from files and may have any bytes; texts that are written must be
 * valid UTF-8. */
#ifndef LACI_BASE_UTF8_H
#define LACI_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"

/** Returns the number of bytes (1 to 4) of the character that starts at text, and its code; 0 where
 * the bytes are not valid UTF-8 (cut short, overlong, a surrogate, beyond U+10FFFF). text must not
 * be at its final zero. */
size_t laci_utf8_next(const char *text, uint32_t *code);

/** Returns a copy in which every byte that belongs to no valid character is replaced by U+FFFD.
 * NULL: no memory. */
char *laci_utf8_replace_invalid(laci_arena *arena, const char *text);

#endif
