/* SPDX-License-Identifier: Apache-2.0
 * Brings a search problem into a normalized form: which columns share a block, and where their
 * scores come from.
 *
 * A *cut* is a table of columns and its division into blocks. Slices that divide the places into
 * the same blocks are stacked in one cut: its columns are the channels (and the fixed columns,
 * which never move), and each slice is one *part* of its rows. A weight whose blocks contain
 * several copies of the class (an NCHW Flatten of odd size) is a separate cut: its columns are the
 * weight's, and a channel is a different column in each copy. Next: search_rows.h (reading parts),
 * search_score.h (float64), search_matrix.h (integers). */
#ifndef LACI_PERMUTE_SEARCH_CUT_H
#define LACI_PERMUTE_SEARCH_CUT_H

#include "base/memory.h"
#include "permute/search.h"

/** A part of a cut: the rows of one slice, or of one weight if several copies of the class share
 * blocks. */
typedef struct laci_cut_part {
  const laci_weight_view *weight;
  int64_t outer_begin, n_rows;
  int64_t first_tile, first_row; /* number of tiles (search_rows.h), and of rows, in all parts
                                    before this one */
  int n_read;                    /* number of columns that are read from the weight */
  const int64_t *source;         /* [n_read] indices in the weight of the columns that are read,
                                    ascending */
  const int32_t *column;         /* [n_read] column of the cut that source[k] is read into */
  int64_t n_kept; /* number of elements of a row that the pattern keeps: sum over blocks of min(n,
                     number of columns that are read) */
} laci_cut_part;

/** One position in a block of the pattern. place >= 0: it holds the cut's column
 * map[copy][order[place]]. place < 0: it holds the column `fixed`, which never moves. */
typedef struct laci_entry {
  int32_t place, copy, fixed;
} laci_entry;

typedef struct laci_cut {
  bool stacked; /* true: the cut has one copy of the channels, and each place is in exactly one
                   block */
  int n_columns, n_fixed, n_copies;
  const int32_t *map; /* [n_copies][n_channels] column of each channel in each copy; in a stacked
                         cut, that is the channel's number */
  int n_blocks;
  const int32_t *block_begin; /* [n_blocks + 1] index in `entries` at which each block begins */
  const laci_entry *entries;
  int n_parts;
  laci_cut_part *parts;
  int64_t n_rows; /* number of rows in all parts together */
} laci_cut;

typedef struct laci_cuts {
  laci_arena arena;
  const laci_problem *problem;
  int n_channels, n_cuts;
  laci_pattern pattern;
  laci_cut *cuts; /* the tables of columns; the one with the most elements comes first */
} laci_cuts;

/** Makes the cuts (tables of columns) of a problem. Fails with LAC_BAD_ARGUMENT if slices
 * contradict each other, and as laci_weight_check. Clear *cuts also after a failure. */
LAC_MUST_CHECK lac_status laci_cuts_init(laci_cuts *cuts, const laci_problem *problem,
                                         lac_error *err);
void laci_cuts_clear(laci_cuts *cuts);

static inline int32_t laci_entry_column(const laci_cuts *cuts, const laci_cut *cut,
                                        const laci_entry *entry, const int32_t *order) {
  if (entry->place < 0) return entry->fixed;
  return cut->map[(int64_t)entry->copy * cuts->n_channels + order[entry->place]];
}

/** The n columns source[0 .. n) are read next. Returns how many of them, from the first on, are
 * adjacent in the weight. They ascend, so comparing the first with the last is enough. The result
 * may be less than the longest run. */
static inline int laci_count_adjacent(const int64_t *source, int n) {
  while (source[n - 1] - source[0] != n - 1) n = (n + 1) / 2;
  return n;
}

/** Is there only one cut (table of columns), stacked and without fixed columns? Then blocks are
 * interchangeable, and so are the places of a block. */
static inline bool laci_cuts_are_plain(const laci_cuts *cuts) {
  return cuts->n_cuts == 1 && cuts->cuts[0].stacked && cuts->cuts[0].n_fixed == 0;
}

#endif
