/* SPDX-License-Identifier: Apache-2.0
 * The vector variants of topn.h, one text for every instruction set. The file that includes it
 * first defines the type `lanes`, load, store and set_zero, max and min of both element types, and
 * sums of lanes (add_u8, add_i16 into 32 bits or more, total_of), and names its variant in
 * TOPN_NTH and TOPN_SUM.
 *
 * The places that elements sink through are registers wherever n is known when this is compiled:
 * so for n up to 8. What counts most is spelled out: the second of three columns (the value of a
 * place under 2:4) and the two largest of four (what 2:4 keeps). */
#ifndef LACI_KERNEL_TOPN_VECTOR_IN_H
#define LACI_KERNEL_TOPN_VECTOR_IN_H

#include "kernel/topn.h"

#define INLINE static inline __attribute__((always_inline))

typedef lanes choose(lanes a, lanes b);
typedef lanes add(lanes sums, lanes elements);

/* What a loop needs to know of the element type; all of it is known where it is inlined. */
typedef struct kind {
  choose *max, *min;
  add *add;
} kind;

/* Columns as bytes, at one place of their rows. */
typedef struct stripe {
  const void *const *columns;
  int n_columns;
  size_t at; /* bytes */
} stripe;

INLINE lanes load_column(const stripe *s, int c) {
  return load((const char *)s->columns[c] + s->at);
}

/* The n largest of every row, in order. */
INLINE void sort_largest(const kind *k, const stripe *s, int n, lanes *top) {
  for (int place = 0; place < n; place++) top[place] = set_zero();
  for (int c = 0; c < s->n_columns; c++) {
    lanes sinking = load_column(s, c);
    for (int place = 0; place < n; place++) {
      lanes larger = k->max(top[place], sinking);
      sinking = k->min(top[place], sinking);
      top[place] = larger;
    }
  }
}

/* min(a, b) loses against c, or the larger of a and b does: the second is what is left. */
INLINE lanes second_of_three(const kind *k, const stripe *s) {
  lanes a = load_column(s, 0), b = load_column(s, 1), c = load_column(s, 2);
  return k->max(k->min(a, b), k->min(k->max(a, b), c));
}

INLINE void nth_rows(const kind *k, const void *const *columns, int n_columns, int n, size_t bytes,
                     char *out) {
  lanes top[LACI_TOPN_MAX];
  stripe s = {columns, n_columns, 0};
  for (; s.at < bytes; s.at += sizeof(lanes)) {
    sort_largest(k, &s, n, top);
    store(out + s.at, top[n - 1]);
  }
}

INLINE void nth_of_kind(const kind *k, const void *const *columns, int n_columns, int n,
                        size_t bytes, char *out) {
  if (n == 2 && n_columns == 3) {
    stripe s = {columns, n_columns, 0};
    for (; s.at < bytes; s.at += sizeof(lanes)) store(out + s.at, second_of_three(k, &s));
    return;
  }
  switch (n) {
    case 1: nth_rows(k, columns, n_columns, 1, bytes, out); return;
    case 2: nth_rows(k, columns, n_columns, 2, bytes, out); return;
    case 3: nth_rows(k, columns, n_columns, 3, bytes, out); return;
    case 4: nth_rows(k, columns, n_columns, 4, bytes, out); return;
    case 5: nth_rows(k, columns, n_columns, 5, bytes, out); return;
    case 6: nth_rows(k, columns, n_columns, 6, bytes, out); return;
    case 7: nth_rows(k, columns, n_columns, 7, bytes, out); return;
    case 8: nth_rows(k, columns, n_columns, 8, bytes, out); return;
    default: nth_rows(k, columns, n_columns, n, bytes, out); return;
  }
}

/* Pairs first: the largest is the larger winner, the second the other winner or the larger loser.
 */
INLINE lanes add_two_of_four(const kind *k, const stripe *s, lanes sums) {
  lanes a = load_column(s, 0), b = load_column(s, 1), c = load_column(s, 2), d = load_column(s, 3);
  lanes won_ab = k->max(a, b), won_cd = k->max(c, d), lost_ab = k->min(a, b),
        lost_cd = k->min(c, d);
  sums = k->add(sums, k->max(won_ab, won_cd));
  return k->add(sums, k->max(k->min(won_ab, won_cd), k->max(lost_ab, lost_cd)));
}

/* Lanes of 32 bits take twice 32767 a place and step: emptied every so often, they hold 64 places.
 */
enum { STEPS_AT_ONCE = 256 };

INLINE int64_t sum_rows(const kind *k, const void *const *columns, int n_columns, int n,
                        size_t bytes) {
  lanes top[LACI_TOPN_MAX];
  stripe s = {columns, n_columns, 0};
  int64_t total = 0;
  while (s.at < bytes) {
    lanes sums = set_zero();
    for (int i = 0; i < STEPS_AT_ONCE && s.at < bytes; i++, s.at += sizeof(lanes)) {
      if (n == 2 && n_columns == 4) {
        sums = add_two_of_four(k, &s, sums);
        continue;
      }
      sort_largest(k, &s, n, top);
      for (int place = 0; place < n; place++) sums = k->add(sums, top[place]);
    }
    total += total_of(sums);
  }
  return total;
}

INLINE int64_t sum_of_kind(const kind *k, const void *const *columns, int n_columns, int n,
                           size_t bytes) {
  switch (n) {
    case 1: return sum_rows(k, columns, n_columns, 1, bytes);
    case 2:
      return n_columns == 4 ? sum_rows(k, columns, 4, 2, bytes)
                            : sum_rows(k, columns, n_columns, 2, bytes);
    case 3: return sum_rows(k, columns, n_columns, 3, bytes);
    case 4: return sum_rows(k, columns, n_columns, 4, bytes);
    case 5: return sum_rows(k, columns, n_columns, 5, bytes);
    case 6: return sum_rows(k, columns, n_columns, 6, bytes);
    case 7: return sum_rows(k, columns, n_columns, 7, bytes);
    case 8: return sum_rows(k, columns, n_columns, 8, bytes);
    default: return sum_rows(k, columns, n_columns, n, bytes);
  }
}

static const kind kind_u8 = {max_u8, min_u8, add_u8}, kind_i16 = {max_i16, min_i16, add_i16};

void TOPN_NTH(laci_number number, const void *const *columns, int n_columns, int n, size_t rows,
              void *out) {
  if (number == LACI_U8) nth_of_kind(&kind_u8, columns, n_columns, n, rows, out);
  else nth_of_kind(&kind_i16, columns, n_columns, n, 2 * rows, out);
}

int64_t TOPN_SUM(laci_number number, const void *const *columns, int n_columns, int n,
                 size_t rows) {
  if (number == LACI_U8) return sum_of_kind(&kind_u8, columns, n_columns, n, rows);
  return sum_of_kind(&kind_i16, columns, n_columns, n, 2 * rows);
}

#endif
