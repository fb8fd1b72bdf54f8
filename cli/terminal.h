/* SPDX-License-Identifier: Apache-2.0
 * Output for terminals, which is fitted to their width. Output to a file or a pipe is never
 * shortened or wrapped, so that scripts see whole names. */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "lacuna/status.h"

enum { TERMINAL_LEAST = 40, TERMINAL_NO_LIMIT = 0 };

/** Initializes this module; call it once, before anything is printed. wide: nothing is shortened or
 * wrapped on terminals either. */
void terminal_init(bool wide);

/** Returns the number of columns of the terminal `out`, at least TERMINAL_LEAST; TERMINAL_NO_LIMIT
 * if `out` is no terminal, or with --wide. The terminal is asked at each call, since windows
 * change. */
int terminal_columns(FILE *out);

/** Returns the same as terminal_columns, but ignores --wide: for the progress line, which is
 * overwritten repeatedly. */
int terminal_columns_ignoring_wide(FILE *out);

/** Returns the number of terminal cells that the text takes: 2 per wide character, 0 per combining
 * one. */
int text_count_cells(const char *text);

/** Makes the text safe to print, in place: control characters and bytes that are not UTF-8 become
 * ?. */
void text_make_printable(char *text);

/** Copies the text to the buffer `to`, of strlen(text) + 4 bytes. If the text takes more than
 * `cells` cells, only its beginning and its end are copied, with ... between them (one character in
 * a UTF-8 locale). Returns `to`. */
char *text_shorten(const char *text, int cells, char *to);

/** Prints the text word by word in lines of at most `columns` cells (TERMINAL_NO_LIMIT: one line),
 * the first line starting at `column`, the others at `indent`. A \n in the text is kept. Ends with
 * a newline. */
void text_print_wrapped(FILE *out, const char *text, int columns, int column, int indent);

/** Prints a sentence, wrapped at the terminal's width, and a newline. */
void terminal_print_sentence(FILE *out, const char *format, ...) LAC_PRINTF(2, 3);

#endif
