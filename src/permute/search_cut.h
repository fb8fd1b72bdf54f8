/* SPDX-License-Identifier: Apache-2.0
 * A search problem, put in order: which columns share a block, and where their scores come from.
 *
 * A *cut* is a set of blocks over one table of columns. Slices that cut the places into the same
 * blocks are stacked: one cut whose columns are the channels (and the fixed columns, which never
 * move), and one *part* of rows a slice. A weight whose blocks hold several copies of the class (an
 * NCHW Flatten of odd size) is a cut of its own: its columns are the weight's, and a channel is
 * another column in each copy. Next: search_rows.h (reading parts), search_score.h (float64),
 * search_matrix.h (integers). */
#ifndef LACI_PERMUTE_SEARCH_CUT_H
#define LACI_PERMUTE_SEARCH_CUT_H

#include "base/memory.h"
#include "permute/search.h"

/** The rows of one slice (or of one weight, where copies share blocks). */
typedef struct laci_cut_part {
  const laci_weight_view *weight;
  int64_t outer_begin, n_rows;
  int64_t first_tile, first_row; /* tiles and rows of the parts before it: search_rows.h */
  int n_read;                    /* columns that are read from the weight */
  const int64_t *source;         /* [n_read] column of the weight, ascending */
  const int32_t *column;         /* [n_read] column of the cut that it fills */
  int64_t n_kept; /* elements of a row that the pattern keeps: sum over blocks of min(n, filled
                     entries) */
} laci_cut_part;

/** The column at one position of a block: place >= 0: column map[copy][order[place]]; place < 0:
 * column `fixed`. */
typedef struct laci_entry {
  int32_t place, copy, fixed;
} laci_entry;

typedef struct laci_cut {
  bool stacked; /* one copy, and every place is in exactly one block */
  int n_columns, n_fixed, n_copies;
  const int32_t *map; /* [n_copies][n_channels] column of a channel; stacked: the channel itself */
  int n_blocks;
  const int32_t *block_begin; /* [n_blocks + 1] into entries */
  const laci_entry *entries;
  int n_parts;
  laci_cut_part *parts;
  int64_t n_rows; /* of all parts */
} laci_cut;

typedef struct laci_cuts {
  laci_arena arena;
  const laci_problem *problem;
  int n_channels, n_cuts;
  laci_pattern pattern;
  laci_cut *cuts; /* the one with the most elements first */
} laci_cuts;

/** Fails LAC_BAD_ARGUMENT where slices contradict themselves, and as laci_weight_check. Clear also
 * after a failure. */
LAC_MUST_CHECK lac_status laci_cuts_init(laci_cuts *cuts, const laci_problem *problem,
                                         lac_error *err);
void laci_cuts_clear(laci_cuts *cuts);

static inline int32_t laci_entry_column(const laci_cuts *cuts, const laci_cut *cut,
                                        const laci_entry *entry, const int32_t *order) {
  if (entry->place < 0) return entry->fixed;
  return cut->map[(int64_t)entry->copy * cuts->n_channels + order[entry->place]];
}

/** How many of a part's next n columns neighbour in the weight. Sources ascend, so the ends tell;
 * a shorter run than the longest does no harm. */
static inline int laci_neighbours(const int64_t *source, int n) {
  while (source[n - 1] - source[0] != n - 1) n = (n + 1) / 2;
  return n;
}

/** One stacked cut without fixed columns: groups are interchangeable, and so are the places of a
 * group. */
static inline bool laci_cuts_plain(const laci_cuts *cuts) {
  return cuts->n_cuts == 1 && cuts->cuts[0].stacked && cuts->cuts[0].n_fixed == 0;
}

#endif
