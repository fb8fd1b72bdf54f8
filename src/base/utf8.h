/* SPDX-License-Identifier: Apache-2.0
 * Names come from files and may hold any bytes; what we write is valid UTF-8. */
#ifndef LACI_BASE_UTF8_H
#define LACI_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"

/** Bytes of the character that starts at text (1 to 4) and its code; 0 where the bytes are no valid
 * UTF-8 (cut short, overlong, a surrogate, beyond U+10FFFF). text must not be at its final zero. */
size_t laci_utf8_next(const char *text, uint32_t *code);

/** A copy in which every byte that belongs to no valid character is U+FFFD. NULL: no memory. */
char *laci_utf8_clean(laci_arena *arena, const char *text);

#endif
