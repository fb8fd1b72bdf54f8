/* SPDX-License-Identifier: Apache-2.0
 * Implements the growing SVG text of svg.h: escapes texts of any bytes when they are added. */
#include "report/svg.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "report/text_width.h"

static void append_bytes(laci_svg *svg, const char *bytes, size_t n) {
  while (!svg->failed && svg->n + n + 1 > svg->capacity) {
    size_t capacity = svg->capacity ? 2 * svg->capacity : 1 << 14;
    char *grown = laci_resize(svg->text, svg->n, capacity, 1);
    svg->failed = !grown;
    if (grown) {
      svg->text = grown;
      svg->capacity = capacity;
    }
  }
  if (svg->failed) return;
  memcpy(svg->text + svg->n, bytes, n);
  svg->n += n;
  svg->text[svg->n] = '\0';
}

void laci_svg_append(laci_svg *svg, const char *format, ...) {
  char line[512];
  va_list args;
  va_start(args, format);
  int length = vsnprintf(line, sizeof line, format, args);
  va_end(args);
  if (length < 0 || (size_t)length >= sizeof line) length = (int)sizeof line - 1;
  append_bytes(svg, line, (size_t)length);
}

void laci_svg_append_svg(laci_svg *svg, const laci_svg *other) {
  if (other->failed) svg->failed = true;
  else if (other->text) append_bytes(svg, other->text, other->n);
}

void laci_svg_append_text(laci_svg *svg, const char *text) {
  while (*text) {
    uint32_t code = 0;
    size_t n = laci_utf8_next(text, &code);
    if (n == 0 || code == 0xFFFE || code == 0xFFFF) laci_svg_append(svg, "\xEF\xBF\xBD");
    else if (code < 0x20 || (code >= 0x7F && code < 0xA0)) laci_svg_append(svg, " ");
    else if (code == '<') laci_svg_append(svg, "&lt;");
    else if (code == '>') laci_svg_append(svg, "&gt;");
    else if (code == '&') laci_svg_append(svg, "&amp;");
    else laci_svg_append(svg, "%.*s", (int)n, text);
    text += n ? n : 1;
  }
}

void laci_svg_append_shortened_text(laci_svg *svg, const char *text, double size, bool bold,
                                    double width) {
  char part[512];
  size_t n = strlen(text), tail = n;
  if (laci_text_width(text, size, bold) <= width) {
    laci_svg_append_text(svg, text);
    return;
  }
  double half = (width - laci_text_width("...", size, bold)) / 2;
  while (tail > 0 && laci_text_width(text + tail - 1, size, bold) <= half) tail--;
  while (((unsigned char)text[tail] & 0xC0) == 0x80) tail++;
  size_t head = tail < sizeof part ? tail : sizeof part - 1;
  memcpy(part, text, head);
  do part[head] = '\0';
  while (laci_text_width(part, size, bold) > half && head-- > 0);
  while (head > 0 && ((unsigned char)text[head] & 0xC0) == 0x80) part[--head] = '\0';
  laci_svg_append_text(svg, part);
  laci_svg_append(svg, "...");
  laci_svg_append_text(svg, text + tail);
}

void laci_svg_begin(laci_svg *svg, int width, double height) {
  laci_svg_append(svg,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" "
                  "font-family=\"%s\">\n",
                  width, height, LACI_FONTS);
  laci_svg_append(svg, "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n");
}

lac_status laci_svg_end(laci_svg *svg, char **text, size_t *size_bytes, lac_error *err) {
  laci_svg_append(svg, "</svg>\n");
  *text = NULL;
  if (svg->failed) {
    laci_free(svg->text);
    return laci_fail_memory(err, "a drawing");
  }
  *text = svg->text;
  *size_bytes = svg->n;
  return LAC_OK;
}
