/* SPDX-License-Identifier: Apache-2.0
 * Finds the known word that an unknown one was meant to be. It is the only candidate that begins or
 * ends with the word, or with which the word begins; or the one with the smallest edit distance
 * (insert, delete, replace, swap two neighbours: the restricted Damerau-Levenshtein distance), if
 * that is small against the word's length. A wrong guess is worse than none. */
#include "base/nearest.h"

#include <stdbool.h>
#include <string.h>

enum { LONGEST = 64, MOST_EDITS = 3, SHORTEST_STEM = 4 };

static int min_int(int a, int b) { return a < b ? a : b; }

/* Returns the edit distance of two words. row[i][j]: edits from the first i characters of a to the
 * first j characters of b. */
static int edit_distance(const char *a, const char *b) {
  int n_a = (int)strlen(a), n_b = (int)strlen(b);
  int row[LONGEST + 1][LONGEST + 1];
  if (n_a > LONGEST || n_b > LONGEST) return LONGEST;
  for (int j = 0; j <= n_b; j++) row[0][j] = j;
  for (int i = 1; i <= n_a; i++) {
    row[i][0] = i;
    for (int j = 1; j <= n_b; j++) {
      int edits = row[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
      edits = min_int(edits, min_int(row[i - 1][j], row[i][j - 1]) + 1);
      bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      row[i][j] = swapped ? min_int(edits, row[i - 2][j - 2] + 1) : edits;
    }
  }
  return row[n_a][n_b];
}

/* A test whether the candidate contains the word, or the word contains the candidate. */
typedef bool relation(const char *text, size_t mark, const char *candidate);

static bool is_prefix_of(const char *text, size_t mark, const char *candidate) {
  (void)mark;
  return strncmp(candidate, text, strlen(text)) == 0;
}

/* Is the word the end of the candidate after a dash, as "resnet20" of "cifar-resnet20"? */
static bool is_suffix_after_dash(const char *text, size_t mark, const char *candidate) {
  size_t n = strlen(text), n_candidate = strlen(candidate);
  return mark == 0 && n > 2 && n_candidate > n && strcmp(candidate + n_candidate - n, text) == 0 &&
         candidate[n_candidate - n - 1] == '-';
}

/* Does the word begin with the candidate, as "evaluate" with "eval"? */
static bool is_longer_form(const char *text, size_t mark, const char *candidate) {
  size_t n = strlen(candidate);
  return n >= mark + SHORTEST_STEM && strncmp(text, candidate, n) == 0;
}

/* Returns the only candidate for which the test holds; NULL: none, or several. */
static const char *find_only_related_candidate(relation *holds, const char *text, size_t mark,
                                               const char *const *candidates, int n) {
  const char *found = NULL;
  for (int i = 0; i < n; i++) {
    if (!holds(text, mark, candidates[i])) continue;
    if (found) return NULL;
    found = candidates[i];
  }
  return found;
}

/* Returns how many letters may be wrong: a third, rounded up, but never half of them. */
static int max_edits_allowed(const char *letters) {
  int n = (int)strlen(letters), edits = (n + 2) / 3;
  edits = min_int(edits, MOST_EDITS);
  return min_int(edits, (n - 1) / 2);
}

const char *laci_find_nearest_text(const char *text, size_t mark, const char *const *candidates,
                                   int n) {
  static relation *const relations[] = {is_prefix_of, is_suffix_after_dash, is_longer_form};
  const char *nearest = NULL;
  if (strlen(text) <= mark) return NULL;
  for (size_t k = 0; k < sizeof relations / sizeof relations[0]; k++) {
    nearest = find_only_related_candidate(relations[k], text, mark, candidates, n);
    if (nearest) return nearest;
  }
  int fewest = max_edits_allowed(text + mark);
  for (int i = 0; i < n; i++) {
    int edits = edit_distance(text, candidates[i]);
    if (edits > fewest || (nearest && edits == fewest)) continue;
    fewest = edits;
    nearest = candidates[i];
  }
  return nearest;
}
