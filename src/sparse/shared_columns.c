/* SPDX-License-Identifier: Apache-2.0
 * Chooses four columns of a block, and n elements of these in each row (shared_columns.h). The
 * block is transposed first, so that loops over rows compute the sum for a set of four columns
 * without a branch. */
#include "sparse/shared_columns.h"

#include <string.h>

enum { FOUR = LACI_SHARED_COLUMNS };

static double larger_of(double a, double b) { return a > b ? a : b; }
static double smaller_of(double a, double b) { return a < b ? a : b; }

/* Sets kept[row] to the sum of the n largest elements of four columns, added from the largest
 * on. */
static void sum_largest_of_four(const double *const column[FOUR], int rows, int n, double *kept) {
  for (int row = 0; row < rows; row++) {
    const double a = column[0][row], b = column[1][row], c = column[2][row], d = column[3][row];
    const double high = larger_of(a, b), low = smaller_of(a, b);
    const double other_high = larger_of(c, d), other_low = smaller_of(c, d);
    const double first = larger_of(high, other_high), last = smaller_of(low, other_low);
    const double inner = smaller_of(high, other_high), outer = larger_of(low, other_low);
    const double second = larger_of(inner, outer), third = smaller_of(inner, outer);
    kept[row] = first + (n > 1 ? second : 0) + (n > 2 ? third : 0) + (n > 3 ? last : 0);
  }
}

static double sum_array(const double *values, int n) {
  double sum = 0;
  for (int at = 0; at < n; at++) sum += values[at];
  return sum;
}

/* Advances to the next set of four columns in lexicographic order. Returns false after the last
 * set. */
static bool advance_to_next_set(int set[FOUR], int columns) {
  for (int k = FOUR - 1; k >= 0; k--) {
    if (set[k] == columns - FOUR + k) continue;
    set[k]++;
    for (int after = k + 1; after < FOUR; after++) set[after] = set[after - 1] + 1;
    return true;
  }
  return false;
}

static void choose_best_columns(const double *by_column, int rows, int columns, int n, double *kept,
                                int chosen[FOUR]) {
  int set[FOUR] = {0, 1, 2, 3};
  double most = -1;
  do {
    const double *column[FOUR];
    for (int k = 0; k < FOUR; k++) column[k] = by_column + (int64_t)set[k] * rows;
    sum_largest_of_four(column, rows, n, kept);
    const double sum = sum_array(kept, rows);
    if (sum > most) {
      most = sum;
      memcpy(chosen, set, sizeof set);
    }
  } while (advance_to_next_set(set, columns));
}

/* Adds a column to the chosen ones. largest[k * rows + row] is the k-th largest score of the row
 * among the chosen columns; 0: there are fewer. */
static void add_column_to_largest(double *largest, const double *column, int rows, int n) {
  for (int row = 0; row < rows; row++) {
    double x = column[row];
    for (int k = 0; k < n; k++) {
      double *at = &largest[(int64_t)k * rows + row];
      const double high = larger_of(*at, x);
      x = smaller_of(*at, x);
      *at = high;
    }
  }
}

static double gain_of_column(const double *largest, const double *column, int rows, int n) {
  const double *least = largest + (int64_t)(n - 1) * rows;
  double gain = 0;
  for (int row = 0; row < rows; row++) gain += larger_of(column[row] - least[row], 0);
  return gain;
}

static void choose_columns_greedily(const double *by_column, int rows, int columns, int n,
                                    double *largest, int chosen[FOUR]) {
  bool taken[64] = {false};
  memset(largest, 0, (size_t)n * (size_t)rows * sizeof *largest);
  for (int k = 0; k < FOUR; k++) {
    double most = -1;
    int best = -1;
    for (int c = 0; c < columns; c++) {
      if (taken[c]) continue;
      const double gain = gain_of_column(largest, by_column + (int64_t)c * rows, rows, n);
      if (gain <= most) continue;
      most = gain;
      best = c;
    }
    taken[best] = true;
    add_column_to_largest(largest, by_column + (int64_t)best * rows, rows, n);
  }
  for (int c = 0, k = 0; k < FOUR; c++) {
    if (taken[c]) chosen[k++] = c;
  }
}

void laci_shared_columns_choose(const double *score, int rows, int columns, int n, double *work,
                                int chosen[FOUR]) {
  double *rest = work + (int64_t)rows * columns; /* [4][rows] scratch memory */
  for (int row = 0; row < rows; row++) {
    for (int c = 0; c < columns; c++) work[(int64_t)c * rows + row] = score[row * columns + c];
  }
  if (columns <= LACI_SHARED_EXACT_COLUMNS)
    choose_best_columns(work, rows, columns, n, rest, chosen);
  else choose_columns_greedily(work, rows, columns, n, rest, chosen);
}

void laci_shared_columns_mask(const double *score, int rows, int columns, int n, double *work,
                              uint8_t *mask) {
  int chosen[FOUR] = {0, 1, 2, 3}, n_chosen = columns < FOUR ? columns : FOUR;
  if (columns > FOUR) laci_shared_columns_choose(score, rows, columns, n, work, chosen);
  memset(mask, 0, (size_t)rows * (size_t)columns);
  for (int row = 0; row < rows; row++) {
    const double *of = score + row * columns;
    for (int k = 0; k < n_chosen; k++) {
      int rank = 0;
      for (int d = 0; d < n_chosen; d++) {
        const double mine = of[chosen[k]], other = of[chosen[d]];
        rank += other > mine || (other == mine && d < k);
      }
      mask[row * columns + chosen[k]] = rank < n;
    }
  }
}
