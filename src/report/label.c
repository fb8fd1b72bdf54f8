/* SPDX-License-Identifier: Apache-2.0
 * Implements the growing texts of label.h: escapes, wraps and measures what is added. */
#include "report/label.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "report/text_width.h"

enum { USUAL_SIZE = 11, MOST_LINES = 64 };

void laci_label_clear(laci_label *label) {
  laci_free(label->text);
  memset(label, 0, sizeof *label);
}

void laci_label_reset(laci_label *label) {
  label->n = 0;
  label->line = label->widest = 0;
  if (label->text) label->text[0] = '\0';
}

void laci_label_set_font(laci_label *label, double size, bool bold) {
  label->size = size;
  label->bold = bold;
}

void laci_label_begin_line(laci_label *label) { label->line = 0; }

/* Adds the width of one character to the width of the present line. letter: the character,
 * zero-terminated. */
static void add_letter_width(laci_label *label, const char *letter) {
  label->line += laci_text_width(letter, label->size > 0 ? label->size : USUAL_SIZE, label->bold);
  if (label->line > label->widest) label->widest = label->line;
}

/* Reserves memory for n more bytes and the final zero. */
static bool reserve_bytes(laci_label *label, size_t n) {
  while (!label->failed && label->capacity - label->n <= n) {
    size_t capacity = label->capacity ? label->capacity * 2 : 1024;
    char *fresh = laci_resize(label->text, label->n + (label->text != NULL), capacity, 1);
    if (!fresh) {
      label->failed = true;
      break;
    }
    label->text = fresh;
    label->capacity = capacity;
  }
  return !label->failed;
}

static void append_bytes(laci_label *label, const char *bytes, size_t n) {
  if (!reserve_bytes(label, n)) return;
  memcpy(label->text + label->n, bytes, n);
  label->n += n;
  label->text[label->n] = '\0';
}

void laci_label_add_markup(laci_label *label, const char *format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  int n = vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (n < 0 || (size_t)n >= sizeof text) label->failed = true;
  else append_bytes(label, text, (size_t)n);
}

void laci_label_append_label(laci_label *label, const laci_label *other) {
  if (other->failed) label->failed = true;
  else if (other->text) append_bytes(label, other->text, other->n);
}

static void append_escaped_character(laci_label *label, const char *text, size_t n, uint32_t code) {
  char letter[5] = "";
  memcpy(letter, text, n);
  add_letter_width(label, n ? letter : "\xEF\xBF\xBD");
  if (n == 0 || code == 0xFFFE || code == 0xFFFF)
    append_bytes(label, "\xEF\xBF\xBD",
                 3); /* three bytes of U+FFFD replace invalid UTF-8, and characters that XML does
                        not allow */
  else if (code < 0x20 || (code >= 0x7F && code < 0xA0)) append_bytes(label, " ", 1);
  else if (code == '&') append_bytes(label, "&amp;", 5);
  else if (code == '<') append_bytes(label, "&lt;", 4);
  else if (code == '>') append_bytes(label, "&gt;", 4);
  else if (code == '"') append_bytes(label, "&quot;", 6);
  else if (code == '\\')
    append_bytes(label, "\\\\", 2); /* in graphviz, a backslash would begin a
                                                            sequence such as \N, which means a
                                                            name */
  else append_bytes(label, text, n);
}

/* Returns the number of bytes of the first line of text, if it is wrapped to `width` characters. A
 * separator after which it is broken is included. */
static size_t find_line_length(const char *text, size_t width) {
  size_t at = 0, after_separator = 0;
  for (size_t n = 0; text[at] && text[at] != '\n'; n++) {
    if (n == width) return after_separator > 0 ? after_separator : at;
    uint32_t code = 0;
    size_t bytes = laci_utf8_next(text + at, &code);
    at += bytes ? bytes : 1;
    bool early = n < width / 3; /* true: a break here would leave most of the line empty */
    if (!early && code > 0 && code < 0x80 && strchr(" /._,;:-", (int)code)) after_separator = at;
  }
  return at;
}

void laci_label_add_text(laci_label *label, const char *text, size_t width) {
  for (int n_lines = 0; *text; n_lines++) {
    const char *end = text + find_line_length(text, width);
    if (n_lines == MOST_LINES) {
      append_bytes(label, "...", 3);
      return;
    }
    while (text < end) {
      uint32_t code = 0;
      size_t n = laci_utf8_next(text, &code);
      append_escaped_character(label, text, n, code);
      text += n ? n : 1;
    }
    if (*text == '\n') text++;
    if (!*text) return;
    append_bytes(label, "<BR/>", 5);
    laci_label_begin_line(label);
  }
}
