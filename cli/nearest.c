/* SPDX-License-Identifier: Apache-2.0
 * What an unknown word could have meant: the one candidate that it begins, or the one with the
 * smallest edit distance (insert, delete, replace, swap two neighbours: the restricted
 * Damerau-Levenshtein distance), if that is small against the word's length. */
#include "args.h"

#include <string.h>

enum { LONGEST = 64 };

static int least(int a, int b) { return a < b ? a : b; }

/* row[i][j] = edits from the first i characters of a to the first j of b */
static int edit_distance(const char *a, const char *b) {
  int n_a = (int)strlen(a), n_b = (int)strlen(b);
  int row[LONGEST + 1][LONGEST + 1];
  if (n_a > LONGEST || n_b > LONGEST) return LONGEST;
  for (int j = 0; j <= n_b; j++) row[0][j] = j;
  for (int i = 1; i <= n_a; i++) {
    row[i][0] = i;
    for (int j = 1; j <= n_b; j++) {
      int edits = row[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
      edits = least(edits, least(row[i - 1][j], row[i][j - 1]) + 1);
      bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      row[i][j] = swapped ? least(edits, row[i - 2][j - 2] + 1) : edits;
    }
  }
  return row[n_a][n_b];
}

/* The only candidate that begins with text; NULL: none, or several. */
static const char *only_completion(const char *text, const char *const *candidates, int n) {
  const char *found = NULL;
  for (int i = 0; i < n; i++) {
    if (strncmp(candidates[i], text, strlen(text)) != 0) continue;
    if (found) return NULL;
    found = candidates[i];
  }
  return found;
}

const char *nearest_text(const char *text, const char *const *candidates, int n) {
  const char *nearest = only_completion(text, candidates, n);
  if (nearest) return nearest;
  int fewest = 1 + (int)strlen(text) / 3; /* up to a third of the letters wrong */
  if (fewest > 4) fewest = 4;
  for (int i = 0; i < n; i++) {
    int edits = edit_distance(text, candidates[i]);
    if (edits > fewest || (nearest && edits == fewest)) continue;
    fewest = edits;
    nearest = candidates[i];
  }
  return nearest;
}
