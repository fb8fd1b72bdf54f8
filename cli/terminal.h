/* SPDX-License-Identifier: Apache-2.0
 * What is printed on a terminal keeps to its width; what goes to a file or a pipe is as long as it
 * is, so that scripts see whole names. */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "lacuna/status.h"

enum { TERMINAL_LEAST = 40, TERMINAL_NO_LIMIT = 0 };

/** Call it once, before anything is printed. wide: tables and sentences are as long as they are. */
void terminal_begin(bool wide);

/** Columns of the terminal that `out` is, TERMINAL_LEAST at least; TERMINAL_NO_LIMIT for what is no
 * terminal, and with --wide. Asked anew each time: windows change. */
int terminal_columns(FILE *out);

/** The same, but --wide does not count: for the line that is written over and over. */
int terminal_real_columns(FILE *out);

/** The cells of a terminal that the text takes: 2 for wide characters, 0 for combining ones. */
int text_cells(const char *text);

/** Makes the text harmless: control characters and what is no UTF-8 become ?. In place. */
void text_tame(char *text);

/** The text, or where it takes more cells its begin and end with ... between (one character where
 * the locale is UTF-8). `to` has strlen(text) + 4 bytes. Returns to. */
char *text_shorten(const char *text, int cells, char *to);

/** Prints the text word by word in lines of at most `columns` cells (TERMINAL_NO_LIMIT: one line),
 * the first from `column` on, the others from `indent`; \n is kept. Ends the last line. */
void text_wrap(FILE *out, const char *text, int columns, int column, int indent);

/** A sentence of the result, wrapped at the terminal's width, with its end of line. */
void terminal_say(FILE *out, const char *format, ...) LAC_PRINTF(2, 3);

#endif
