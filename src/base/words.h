/* SPDX-License-Identifier: Apache-2.0
 * Lists that are written as words with spaces between. */
#ifndef LACI_BASE_WORDS_H
#define LACI_BASE_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/** Moves *at to the beginning of the next word and returns its length; 0: there is none. */
size_t laci_next_word(const char **at);
/** Is the word, of n characters, in the list? A list that is NULL has no words. */
bool laci_has_word(const char *list, const char *word, size_t n);

#endif
