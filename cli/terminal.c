/* SPDX-License-Identifier: Apache-2.0
 * The terminal's width, and texts fitted to it. Widths of characters are from the C library's
 * wcwidth in a UTF-8 locale, whatever the user's locale is, since names in ONNX files are UTF-8.
 * Next: table.c. */
#define _GNU_SOURCE /* wcwidth, vasprintf */
#include "terminal.h"

#include <langinfo.h>
#include <locale.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include "base/utf8.h"

enum { USUAL_COLUMNS = 80, MOST_COLUMNS = 10000 };

static struct {
  bool wide;
  bool draws_utf8; /* the user's locale is UTF-8, so that the character … may be printed */
  locale_t widths; /* UTF-8 locale for wcwidth; (locale_t)0: every character counts as one cell */
} terminal;

void terminal_init(bool wide) {
  locale_t own = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
  terminal.wide = wide;
  terminal.draws_utf8 = own && strcmp(nl_langinfo_l(CODESET, own), "UTF-8") == 0;
  terminal.widths = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
  if (own) freelocale(own);
}

int terminal_columns_ignoring_wide(FILE *out) {
  struct winsize size = {0};
  int file = fileno(out);
  if (file < 0 || !isatty(file)) return TERMINAL_NO_LIMIT;
  long columns = ioctl(file, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
  if (columns == 0) {
    const char *told = getenv("COLUMNS");
    columns = told ? strtol(told, NULL, 10) : 0;
    if (columns <= 0 || columns > MOST_COLUMNS) columns = USUAL_COLUMNS;
  }
  return columns < TERMINAL_LEAST ? TERMINAL_LEAST : (int)columns;
}

int terminal_columns(FILE *out) {
  return terminal.wide ? TERMINAL_NO_LIMIT : terminal_columns_ignoring_wide(out);
}

/* ---- Characters ---- */

/* Returns the bytes of the next character, and its cells in *cells; a byte that is not UTF-8 counts
 * as one byte and one cell. */
static size_t decode_next_character(const char *text, int *cells) {
  uint32_t code = 0;
  size_t n = laci_utf8_next(text, &code);
  *cells = 1;
  if (n == 0) return 1;
  if (code >= 0x80 && terminal.widths) {
    locale_t before = uselocale(terminal.widths);
    int width = wcwidth((wchar_t)code);
    uselocale(before);
    if (width >= 0) *cells = width;
  }
  return n;
}

int text_count_cells(const char *text) {
  int sum = 0, cells;
  for (; *text; sum += cells) text += decode_next_character(text, &cells);
  return sum;
}

void text_make_printable(char *text) {
  for (char *c = text; *c;) {
    uint32_t code = 0;
    size_t n = laci_utf8_next(c, &code);
    bool control = code < 0x20 || (code >= 0x7f && code < 0xa0);
    if (n == 0) n = 1, control = true;
    if (control) memset(c, '?', n);
    c += n;
  }
}

char *text_shorten(const char *text, int cells, char *to) {
  int all = text_count_cells(text);
  if (all <= cells) return strcpy(to, text);
  const char *mark = terminal.draws_utf8 ? "\u2026" : "...";
  int left = cells - text_count_cells(mark), width;
  if (left < 2) mark = "", left = cells;
  int head_cells = left - left / 2, at = 0;
  size_t n_head = 0, n;
  while (text[n_head]) {
    n = decode_next_character(text + n_head, &width);
    if (at + width > head_cells) break;
    n_head += n, at += width;
  }
  int skipped = at; /* number of cells left out in the middle, plus the cells before them */
  const char *rest = text + n_head;
  while (*rest && all - skipped > left - at)
    rest += decode_next_character(rest, &width), skipped += width;
  sprintf(to, "%.*s%s%s", (int)n_head, text, mark, rest);
  return to;
}

/* ---- Sentences ---- */

/* Returns how many bytes of the word fit into the cells; at least one character. */
static int count_fitting_bytes(const char *word, int n_word, int cells) {
  int n = 0, used = 0, width;
  while (n < n_word) {
    int bytes = (int)decode_next_character(word + n, &width);
    if (n > 0 && used + width > cells) break;
    n += bytes, used += width;
  }
  return n;
}

static int count_cells(const char *text, int n) {
  int sum = 0, cells;
  for (int at = 0; at < n; sum += cells) at += (int)decode_next_character(text + at, &cells);
  return sum;
}

void text_print_wrapped(FILE *out, const char *text, int columns, int column, int indent) {
  bool at_start = true;
  int gap = 0; /* spaces before the word; none at the beginning of a wrapped line */
  while (*text) {
    if (*text == '\n') {
      fprintf(out, "\n%*s", text[1] == '\n' ? 0 : indent, "");
      column = indent, gap = 0, at_start = true;
    } else if (*text == ' ') {
      gap++;
    }
    if (*text == '\n' || *text == ' ') {
      text++;
      continue;
    }
    int n_word = (int)strcspn(text, " \n"), cells = count_cells(text, n_word);
    if (columns && !at_start && column + gap + cells > columns) {
      fprintf(out, "\n%*s", indent, "");
      column = indent, gap = 0;
    }
    if (columns && column + gap + cells > columns) { /* the word is longer than a line */
      n_word = count_fitting_bytes(text, n_word, columns - column - gap);
      cells = count_cells(text, n_word);
    }
    fprintf(out, "%*s%.*s", gap, "", n_word, text);
    column += gap + cells;
    gap = 0, at_start = false;
    text += n_word;
  }
  fputc('\n', out);
}

void terminal_print_sentence(FILE *out, const char *format, ...) {
  enum { INDENT = 2 };
  char *text = NULL;
  int columns = terminal_columns(out);
  va_list values, again;
  va_start(values, format);
  va_copy(again, values);
  if (columns == TERMINAL_NO_LIMIT || vasprintf(&text, format, values) < 0) {
    vfprintf(out, format, again);
    fputc('\n', out);
  } else {
    text_print_wrapped(out, text, columns, 0, INDENT);
    free(text);
  }
  va_end(again);
  va_end(values);
}
