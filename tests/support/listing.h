/* SPDX-License-Identifier: Apache-2.0
 * Compares emitted machine code with the text that a disassembler should print for it. Include
 * after cmocka.h. */
#ifndef TESTS_SUPPORT_LISTING_H
#define TESTS_SUPPORT_LISTING_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jit/code.h"

enum { LISTING_LINE = 128 };

/** Emitted code, and the expected text of the disassembler. */
typedef struct listing {
  laci_code code;
  char (*lines)[LISTING_LINE];
  size_t n, capacity;
} listing;

static inline void __attribute__((format(printf, 2, 3)))
expect(listing *l, const char *format, ...) {
  if (l->n == l->capacity) {
    l->capacity = l->capacity ? 2 * l->capacity : 1024;
    l->lines = realloc(l->lines, l->capacity * sizeof *l->lines);
    assert_non_null(l->lines);
  }
  va_list args;
  va_start(args, format);
  (void)vsnprintf(l->lines[l->n++], LISTING_LINE, format, args);
  va_end(args);
}

/** Replaces runs of blanks by one blank, and removes comments. */
static inline void listing_tidy(char *text, const char *comment) {
  size_t n = 0;
  for (const char *at = text; *at && *at != '\n'; at++) {
    if (strncmp(at, comment, strlen(comment)) == 0) break;
    const bool blank = *at == ' ' || *at == '\t';
    if (!blank) text[n++] = *at;
    else if (n > 0 && text[n - 1] != ' ') text[n++] = ' ';
  }
  while (n > 0 && text[n - 1] == ' ') n--;
  text[n] = '\0';
}

/** Disassembles the code and compares the texts, then clears the listing. disassembler: a program
 * and its options; comment: what begins a comment in its output. */
static inline void listing_compare(listing *l, const char *disassembler, const char *comment) {
  char path[] = "/tmp/lacuna-code-XXXXXX", command[160], line[256];
  lac_error err = {0};
  assert_int_equal(laci_code_status(&l->code, "code", &err), LAC_OK);
  const int file = mkstemp(path);
  assert_true(file >= 0);
  assert_int_equal(write(file, l->code.bytes, l->code.n), (ssize_t)l->code.n);
  (void)close(file);
  (void)snprintf(command, sizeof command, "%s --no-show-raw-insn %s", disassembler, path);
  FILE *from = popen(command, "r");
  assert_non_null(from);
  size_t n = 0;
  while (fgets(line, sizeof line, from)) {
    char *at = strstr(line, ":\t");
    if (!at || line[0] != ' ') continue;
    listing_tidy(at + 2, comment);
    if (n >= l->n) fail_msg("more instructions than expected: %s", at + 2);
    if (strcmp(at + 2, l->lines[n]) != 0) {
      fail_msg("instruction %zu: got \"%s\", want \"%s\"", n, at + 2, l->lines[n]);
    }
    n++;
  }
  (void)pclose(from);
  (void)unlink(path);
  assert_int_equal(n, l->n);
  laci_code_clear(&l->code);
  free(l->lines);
}

#endif
