/* SPDX-License-Identifier: Apache-2.0
 * Paths and small text files of a data set's folder. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "data/dataset_in.h"

enum { MAX_LINES_BYTES = 1 << 24 };

char *laci_path_join(laci_arena *arena, const char *folder, const char *name) {
  size_t n = strlen(folder), capacity = n + strlen(name) + 2;
  bool slash = n > 0 && folder[n - 1] == '/';
  char *path = laci_arena_alloc(arena, capacity, 1);
  if (path) (void)snprintf(path, capacity, "%s%s%s", folder, slash ? "" : "/", name);
  return path;
}

/** Splits the text into lines, without the empty lines at its end; returns the number of lines. */
static int split_lines(char *text, const char **lines) {
  int n = 0, n_filled = 0;
  for (char *line = text; *line;) {
    size_t length = strcspn(line, "\n"), kept = length;
    bool last = line[length] == '\0';
    if (kept > 0 && line[kept - 1] == '\r') kept--;
    line[kept] = '\0';
    lines[n++] = line;
    if (kept > 0) n_filled = n;
    line += length + !last;
  }
  return n_filled;
}

lac_status laci_read_lines(laci_arena *arena, const char *path, const char ***lines, int *n_lines,
                           lac_error *err) {
  char *text = NULL;
  lac_status st = laci_file_read_text(path, MAX_LINES_BYTES, &text, err);
  if (st) return st;
  size_t n_most = 0; /* limit of the number of lines: empty lines at the end count here, but are
                        dropped later */
  for (const char *at = text; *at; at++) n_most += *at == '\n';
  char *copy = laci_arena_text(arena, text);
  const char **made = copy ? laci_arena_alloc(arena, n_most + 1, sizeof *made) : NULL;
  laci_free(text);
  if (!made) return laci_fail_memory(err, path);
  *n_lines = split_lines(copy, made);
  *lines = made;
  return LAC_OK;
}
