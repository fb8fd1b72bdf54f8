/* SPDX-License-Identifier: Apache-2.0
 * Computes the gains of all exchanges of columns between two blocks, row by row, from the columns
 * that each block can offer.
 *
 * An offer is one or two columns of a block. In each row it has high >= low, the values of these
 * columns (low is 0 for one column). It also has first >= second, the two smallest values that the
 * block would keep without these columns. A block that gives away one offer and takes another
 * keeps, in addition to the values above `first`,
 *     two largest of {first, second, high, low}
 *         = first + high + max(0, max(second, low) - min(first, high)),
 * in which all terms but the last depend on one offer alone. */
#include "permute/search_exchange.h"

#include <stdbool.h>
#include <string.h>

#include "base/memory.h"
#include "kernel/search/maxsum.h"

enum {
  ROWS = LACI_MAXSUM_ROWS, /* number of rows that are computed at a time. With it, all offers of two
                              blocks of four columns fit into the L1 cache */
  BLOCK = LACI_EXCHANGE_BLOCK,
  MOST_OFFERS = BLOCK + BLOCK * (BLOCK - 1) / 2,
};

typedef struct offer {
  int16_t high[ROWS], low[ROWS], first[ROWS], second[ROWS];
} offer;

/* All offers of one block: first single columns, then pairs of columns. */
typedef struct side {
  int n_offers, n_single;
  int8_t columns[MOST_OFFERS][2];
  int64_t share[MOST_OFFERS]; /* for each offer, the terms that depend on it alone: sum over rows of
                                 the values that the block keeps down to `first`, plus `high` */
  int64_t kept;               /* sum over rows of the values that the block keeps without an
                                 exchange */
  offer offers[MOST_OFFERS];  /* the offers' values in the present rows */
} side;

struct laci_exchange_scratch {
  side a, b;
  int32_t excess[MOST_OFFERS][MOST_OFFERS]; /* [offer of a][offer of b] sum over rows of the term
                                               that depends on both offers, for both blocks */
};

laci_exchange_scratch *laci_exchange_scratch_create(void) {
  return laci_alloc(1, sizeof(laci_exchange_scratch));
}

/* Lists all offers of a block with n columns. A pair combines one of the first n_leading columns
 * with a later column. */
static void list_column_offers(side *s, int n, int n_leading) {
  s->n_offers = 0;
  for (int i = 0; i < n; i++) {
    s->columns[s->n_offers][0] = s->columns[s->n_offers][1] = (int8_t)i;
    s->n_offers++;
  }
  s->n_single = s->n_offers;
  for (int i = 0; i < n_leading; i++) {
    for (int j = i + 1; j < n; j++) {
      s->columns[s->n_offers][0] = (int8_t)i;
      s->columns[s->n_offers][1] = (int8_t)j;
      s->n_offers++;
    }
  }
  s->kept = 0;
  memset(s->share, 0, (size_t)s->n_offers * sizeof *s->share);
}

static int32_t add_rows(const int16_t *x) {
  int32_t sum = 0;
  for (int r = 0; r < ROWS; r++) sum += x[r];
  return sum;
}

/* Sorts the block's values in each row: sorted[k] is the k-th largest, for k < n_places; 0 if there
 * are fewer columns. */
static void sort_columns_by_row(const laci_exchange_block *b, size_t row, int n_places,
                                int16_t sorted[][ROWS]) {
  memset(sorted, 0, (size_t)n_places * sizeof *sorted);
  for (int i = 0; i < b->n; i++) {
    int16_t sinking[ROWS];
    memcpy(sinking, b->column[i] + row, sizeof sinking);
    for (int place = 0; place < n_places && place <= i; place++) {
      for (int r = 0; r < ROWS; r++) {
        int16_t here = sorted[place][r], comes = sinking[r];
        sorted[place][r] = here > comes ? here : comes;
        sinking[r] = here > comes ? comes : here;
      }
    }
  }
}

/* Removes the values high and low from a row of a block. Returns the k-th largest of the remaining
 * values. own: the k-th largest of all values; below, last: the two after it. */
static inline int16_t find_largest_without_offer(int16_t high, int16_t low, int16_t own,
                                                 int16_t below, int16_t last) {
  int16_t under = low < below ? below : last;
  return high < own ? own : under;
}

/* Computes the values of an offer that consists of the columns x and y, for each row. places: the
 * last two values that the block keeps, then the two after them. Returns the offer's share minus
 * the values that the block keeps above its last one. Without the offer, the sum of the largest
 * values loses max(0, high - next) and max(0, low - after). */
static int32_t compute_offer_rows(offer *restrict o, const int16_t *restrict x,
                                  const int16_t *restrict y, int16_t (*restrict places)[ROWS]) {
  int32_t sum = 0;
  for (int r = 0; r < ROWS; r++) {
    int16_t a = x[r], b = y[r], high = a > b ? a : b, low = a > b ? b : a;
    int16_t upper = places[0][r], next = places[1][r], after = places[2][r], last = places[3][r];
    int16_t gives = high < next ? high : next, over = low > after ? low : after;
    o->high[r] = high;
    o->low[r] = low;
    o->first[r] = find_largest_without_offer(high, low, upper, next, after);
    o->second[r] = find_largest_without_offer(high, low, next, after, last);
    sum += (int16_t)(gives + after - over);
  }
  return sum;
}

/* Prepares all offers of a block for the rows from `row` on. The largest 16-bit number is put
 * before the block's values without being counted, so that `first` exists even if only one column
 * is kept. */
static void prepare_block_offers(side *s, const laci_exchange_block *b, size_t row, int keep) {
  static const int16_t nothing[ROWS] = {0};
  int16_t places[1 + BLOCK + 2][ROWS], (*own)[ROWS] = places + 1;
  int32_t above = 0;
  for (int r = 0; r < ROWS; r++) places[0][r] = INT16_MAX;
  sort_columns_by_row(b, row, keep + 2, own);
  for (int k = 0; k < keep - 1; k++) above += add_rows(own[k]);
  s->kept += above + add_rows(own[keep - 1]);
  for (int k = 0; k < s->n_offers; k++) {
    const int16_t *x = b->column[s->columns[k][0]] + row, *y = b->column[s->columns[k][1]] + row;
    if (k < s->n_single) y = nothing;
    s->share[k] += above + compute_offer_rows(&s->offers[k], x, y, places + keep - 1);
    if (keep == 1) memcpy(s->offers[k].first, places[0], sizeof places[0]);
  }
}

/* Returns the term that depends on both offers (the last one in the formula at the top), if x and y
 * are exchanged: its sum over rows and over both blocks. Values have 15 bits, so the sum of two
 * fits into 16. */
static int32_t sum_joint_terms(const offer *x, const offer *y) {
  uint32_t sum = 0;
  for (int r = 0; r < ROWS; r++) {
    int16_t small_x = x->first[r] < y->high[r] ? x->first[r] : y->high[r];
    int16_t large_x = x->second[r] > y->low[r] ? x->second[r] : y->low[r];
    int16_t small_y = y->first[r] < x->high[r] ? y->first[r] : x->high[r];
    int16_t large_y = y->second[r] > x->low[r] ? y->second[r] : x->low[r];
    uint16_t over_x = (uint16_t)((large_x > small_x ? large_x : small_x) - small_x);
    uint16_t over_y = (uint16_t)((large_y > small_y ? large_y : small_y) - small_y);
    sum += (uint16_t)(over_x + over_y);
  }
  return (int32_t)sum;
}

/* Finds the range of b's offers that can be exchanged for a's offer i: single columns for a single
 * column, pairs for a pair. */
static void find_exchangeable_offers(const laci_exchange_scratch *scratch, int i, int *begin,
                                     int *end) {
  bool single = i < scratch->a.n_single;
  *begin = single ? 0 : scratch->b.n_single;
  *end = single ? scratch->b.n_single : scratch->b.n_offers;
}

static void add_joint_terms(laci_exchange_scratch *scratch) {
  for (int i = 0; i < scratch->a.n_offers; i++) {
    int begin, end;
    find_exchangeable_offers(scratch, i, &begin, &end);
    for (int j = begin; j < end; j++) {
      scratch->excess[i][j] += sum_joint_terms(&scratch->a.offers[i], &scratch->b.offers[j]);
    }
  }
}

static laci_exchange find_best_exchange(const laci_exchange_scratch *scratch) {
  const side *a = &scratch->a, *b = &scratch->b;
  laci_exchange best = {0};
  for (int i = 0; i < a->n_offers; i++) {
    int begin, end;
    find_exchangeable_offers(scratch, i, &begin, &end);
    for (int j = begin; j < end; j++) {
      int64_t gain = a->share[i] + b->share[j] + scratch->excess[i][j] - a->kept - b->kept;
      if (gain <= best.gain) continue;
      best = (laci_exchange){.gain = gain, .n = i < a->n_single ? 1 : 2};
      memcpy(best.from_a, a->columns[i], sizeof best.from_a);
      memcpy(best.from_b, b->columns[j], sizeof best.from_b);
    }
  }
  return best;
}

laci_exchange laci_exchange_find_best(const laci_exchange_block *a, const laci_exchange_block *b,
                                      int keep, size_t rows, laci_exchange_scratch *scratch) {
  /* in blocks of equal size, exchanging some columns gives the same two blocks as exchanging the
     remaining ones */
  const bool alike = a->n == b->n;
  const int leading = alike && a->n < 4 ? 0 : alike && a->n == 4 ? 1 : a->n;
  list_column_offers(&scratch->a, a->n, leading);
  list_column_offers(&scratch->b, b->n, leading > 0 ? b->n : 0);
  for (int i = 0; i < scratch->a.n_offers; i++) {
    memset(scratch->excess[i], 0, (size_t)scratch->b.n_offers * sizeof *scratch->excess[i]);
  }
  for (size_t row = 0; row < rows; row += ROWS) {
    prepare_block_offers(&scratch->a, a, row, keep);
    prepare_block_offers(&scratch->b, b, row, keep);
    add_joint_terms(scratch);
  }
  return find_best_exchange(scratch);
}
