/* SPDX-License-Identifier: Apache-2.0
 * Chooses the mask of one block that holds N:M in both directions.
 *
 * For small m, patterns are listed. A row's choices are the C(m, n) sets of n columns, and a
 * pattern is a choice for each row. The sum that each choice keeps in each row is computed first,
 * so the sum of a pattern costs only m additions.
 *
 * For larger m, shortest paths are used. Rows are taken in order, each n times. Each time the
 * cheapest path is found from the row to a column that has fewer than n kept elements. The path
 * goes from rows to columns over elements that are not kept, cost = top - score, and from columns
 * to rows over kept ones, cost = -(top - score). With node prices, price[x] + cost(x, y) - price[y]
 * is never negative, so Dijkstra's algorithm applies. Each element on the path is then toggled
 * between kept and not kept. */
#include "sparse/square.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

enum { LISTED_M = 4, MOST_CHOICES = 6, MOST_PATTERNS = 90, MOST_M = LACI_MOST_PATTERN_M };

typedef struct element {
  double score;
  int at;
} element;

struct laci_square {
  laci_pattern pattern;
  int n_choices, n_patterns;                 /* number of choices of a row, and of patterns; both
                                                are 0 if m is larger than LISTED_M */
  uint8_t choice[MOST_CHOICES];              /* the choices of a row: bit c is set if column c is
                                                kept */
  uint8_t patterns[MOST_PATTERNS][LISTED_M]; /* the patterns: for each row, the index of its
                                                choice */
  element *elements;                         /* [m * m] elements of the block, for the greedy
                                                method */
  double *cost;  /* [m * m] cost of each element. This and all fields below are for the method of
                    paths */
  uint8_t *kept; /* [m * m] 1: the element is kept */
  double price[2 * MOST_M], distance[2 * MOST_M]; /* price and distance of each node: first the
                                                     rows, then the columns */
  int before[2 * MOST_M]; /* [2 * m] the node before each node on the cheapest path; -1: none, the
                             path begins here; -2: no path has reached the node yet */
  bool visited[2 * MOST_M];
  int load[MOST_M]; /* [m] number of kept elements in each column */
};

/* ---- Lists of choices and patterns ---- */

/* Lists all patterns in which the rows before `row` have the choices in chosen[]. used[c]: number
 * of kept elements of column c. */
static void list_patterns_of_block(laci_square *s, int row, int *used, uint8_t *chosen) {
  const int m = s->pattern.m, n = s->pattern.n;
  if (row == m) {
    memcpy(s->patterns[s->n_patterns++], chosen, (size_t)m);
    return;
  }
  for (int k = 0; k < s->n_choices; k++) {
    bool fits = true;
    for (int c = 0; c < m; c++) {
      used[c] += s->choice[k] >> c & 1;
      fits = fits && used[c] <= n;
    }
    chosen[row] = (uint8_t)k;
    if (fits) list_patterns_of_block(s, row + 1, used, chosen);
    for (int c = 0; c < m; c++) used[c] -= s->choice[k] >> c & 1;
  }
}

/* Lists all choices of a row in lexicographic order: {0, 1}, {0, 2}, ... {2, 3}. */
static void list_choices_of_row(laci_square *s) {
  const int m = s->pattern.m;
  for (int first = 0; first < 1 << m; first++) {
    uint8_t set = 0;
    int n = 0;
    for (int c = 0; c < m; c++) {
      if (first >> (m - 1 - c) & 1)
        continue; /* bits are inverted, 0 means kept, so that choices come in this order */
      set |= (uint8_t)(1 << c);
      n++;
    }
    if (n == s->pattern.n) s->choice[s->n_choices++] = set;
  }
}

lac_status laci_square_create(laci_pattern pattern, laci_square **square, lac_error *err) {
  const size_t area = (size_t)pattern.m * (size_t)pattern.m;
  laci_square *s = laci_alloc(1, sizeof *s);
  *square = s;
  if (!s) return laci_fail_memory(err, "a mask");
  s->pattern = pattern;
  s->elements = laci_alloc(area, sizeof *s->elements);
  s->cost = laci_alloc(area, sizeof *s->cost);
  s->kept = laci_alloc(area, 1);
  if (!s->elements || !s->cost || !s->kept) {
    laci_square_destroy(s);
    *square = NULL;
    return laci_fail_memory(err, "a mask");
  }
  if (pattern.m > LISTED_M) return LAC_OK;
  int used[LISTED_M] = {0};
  uint8_t chosen[LISTED_M];
  list_choices_of_row(s);
  list_patterns_of_block(s, 0, used, chosen);
  return LAC_OK;
}

void laci_square_destroy(laci_square *s) {
  if (!s) return;
  laci_free(s->elements);
  laci_free(s->cost);
  laci_free(s->kept);
  laci_free(s);
}

int laci_square_count_patterns(const laci_square *s) { return s->n_patterns; }

/* ---- Greedy ---- */

static int compare_scores(const void *a, const void *b) {
  const element *x = a, *y = b;
  if (x->score != y->score) return x->score < y->score ? 1 : -1;
  return (x->at > y->at) - (x->at < y->at);
}

void laci_square_choose_greedily(laci_square *s, const double *score, int rows, int columns,
                                 uint8_t *mask) {
  int in_row[MOST_M] = {0}, in_column[MOST_M] = {0};
  const int n = rows * columns;
  for (int at = 0; at < n; at++) s->elements[at] = (element){score[at], at};
  qsort(s->elements, (size_t)n, sizeof *s->elements, compare_scores);
  memset(mask, 0, (size_t)rows * (size_t)columns);
  for (int k = 0; k < n; k++) {
    const int at = s->elements[k].at, row = at / columns, column = at % columns;
    if (in_row[row] == s->pattern.n || in_column[column] == s->pattern.n) continue;
    mask[at] = 1;
    in_row[row]++;
    in_column[column]++;
  }
}

/* ---- The best of a list ---- */

static void choose_best_listed_pattern(const laci_square *s, const double *score, int rows,
                                       int columns, uint8_t *mask) {
  const int m = s->pattern.m;
  double sums[LISTED_M][MOST_CHOICES] = {{0}};
  for (int row = 0; row < rows; row++) {
    for (int k = 0; k < s->n_choices; k++) {
      for (int c = 0; c < columns; c++)
        sums[row][k] += s->choice[k] >> c & 1 ? score[row * columns + c] : 0;
    }
  }
  double most = -1;
  const uint8_t *best = s->patterns[0];
  for (int p = 0; p < s->n_patterns; p++) {
    double sum = 0;
    for (int row = 0; row < m; row++) sum += sums[row][s->patterns[p][row]];
    if (sum > most) {
      most = sum;
      best = s->patterns[p];
    }
  }
  for (int row = 0; row < rows; row++) {
    for (int c = 0; c < columns; c++) mask[row * columns + c] = s->choice[best[row]] >> c & 1;
  }
}

/* ---- The best by paths ---- */

static int find_nearest_unvisited_node(const laci_square *s) {
  int best = -1;
  for (int x = 0; x < 2 * s->pattern.m; x++) {
    if (s->visited[x] || s->before[x] == -2) continue;
    if (best < 0 || s->distance[x] < s->distance[best]) best = x;
  }
  return best;
}

static void shorten_distance_to_node(laci_square *s, int from, int to, double cost) {
  const double step = s->price[from] + cost - s->price[to];
  const double distance = s->distance[from] + (step > 0 ? step : 0); /* step is below 0 only by
                                                                        rounding */
  if (s->visited[to] || (s->before[to] != -2 && s->distance[to] <= distance)) return;
  s->distance[to] = distance;
  s->before[to] = from;
}

/* Finds the cheapest path from a row to a column with fewer than n kept elements. Returns that
 * column's node. before[]: -2 for nodes that no path reaches, -1 for the row itself. */
static int find_cheapest_path(laci_square *s, int row) {
  const int m = s->pattern.m;
  for (int x = 0; x < 2 * m; x++) {
    s->before[x] = -2;
    s->visited[x] = false;
  }
  s->before[row] = -1;
  s->distance[row] = 0;
  for (;;) {
    /* there is such a node, since some pattern extends the elements that are kept so far */
    const int x = find_nearest_unvisited_node(s);
    if (x >= m && s->load[x - m] < s->pattern.n) return x;
    s->visited[x] = true;
    for (int y = 0; y < m; y++) {
      if (x < m && !s->kept[x * m + y]) shorten_distance_to_node(s, x, m + y, s->cost[x * m + y]);
      if (x >= m && s->kept[y * m + x - m])
        shorten_distance_to_node(s, x, y, -s->cost[y * m + x - m]);
    }
  }
}

static void assign_row_by_path(laci_square *s, int row) {
  const int m = s->pattern.m, end = find_cheapest_path(s, row);
  const double far = s->distance[end];
  for (int x = 0; x < 2 * m; x++) {
    const bool nearer = s->before[x] != -2 && s->distance[x] < far;
    s->price[x] += nearer ? s->distance[x] : far;
  }
  s->load[end - m]++;
  for (int x = end; s->before[x] >= 0; x = s->before[x]) {
    const int from = s->before[x];
    if (x >= m) s->kept[from * m + x - m] = 1;
    else s->kept[x * m + from - m] = 0;
  }
}

static void choose_best_by_paths(laci_square *s, const double *score, int rows, int columns,
                                 uint8_t *mask) {
  const int m = s->pattern.m;
  double top = 0;
  for (int at = 0; at < rows * columns; at++) top = score[at] > top ? score[at] : top;
  for (int row = 0; row < m; row++) {
    for (int c = 0; c < m; c++) {
      const bool there = row < rows && c < columns;
      s->cost[row * m + c] = top - (there ? score[row * columns + c] : 0);
    }
  }
  memset(s->kept, 0, (size_t)m * (size_t)m);
  memset(s->load, 0, sizeof s->load);
  memset(s->price, 0, sizeof s->price);
  for (int row = 0; row < m; row++) {
    for (int k = 0; k < s->pattern.n; k++) assign_row_by_path(s, row);
  }
  for (int row = 0; row < rows; row++)
    memcpy(mask + row * columns, s->kept + row * m, (size_t)columns);
}

void laci_square_choose_best(laci_square *s, const double *score, int rows, int columns,
                             uint8_t *mask) {
  if (s->n_patterns) choose_best_listed_pattern(s, score, rows, columns, mask);
  else choose_best_by_paths(s, score, rows, columns, mask);
}
