/* SPDX-License-Identifier: Apache-2.0
 * Tracks: the positions of channels, and what ties them to each other.
 *
 * A track is an axis of a value, or several axes taken together, with one position an index. Axes
 * that an operator keeps in step share one track (union-find); where an operator moves positions
 * (Concat, Slice, Reshape ...) a *link* joins two tracks position by position. Connected positions
 * are one channel (classes.c). Tags colour positions: only positions of equal colour may change
 * places. Frozen positions carry their cause. resolve.c fills this from the operators' couplings.
 */
#ifndef LACI_ANALYZE_TRACKS_IN_H
#define LACI_ANALYZE_TRACKS_IN_H

#include "base/budget.h"
#include "base/memory.h"
#include "tensor/shape.h"

typedef struct laci_graph laci_graph;

/** Why something may not move. */
typedef struct laci_cause {
  int node;  /* where it was decided; -1: not at a node */
  int value; /* the value whose axis it was */
  const char *text;
} laci_cause;

typedef struct laci_track {
  int parent; /* union-find; itself when it is a root */
  int64_t n;
  bool sourced;     /* its contents come from a stored tensor */
  uint64_t *colour; /* [n] tags, mixed; NULL: none */
  int32_t *frozen;  /* [n] cause or -1; NULL: none */
  bool all_frozen;  /* there is none without a cause */
  uint8_t *fill;    /* [n] 1: a constant fill is here, which is a source; NULL: none */
} laci_track;

/** Entry i joins position laci_link_place(i) of the big track with position to[i] of the small one
 * (-1: with nothing). copy[i] tells apart those that share one small position; NULL: all 0.
 * (to, copy) is unique within a link. Entries stand for runs of `run` positions, `stride` apart,
 * the first at `start`; with all other positions the link has nothing to do. So one of the many
 * inputs of a Concat takes as many entries as it has places. */
typedef struct laci_link {
  int node;
  int big, small;
  int64_t n, start, run, stride;
  int32_t *to;   /* [n] */
  int32_t *copy; /* [n] or NULL */
} laci_link;

static inline int64_t laci_link_place(const laci_link *link, int64_t i) {
  return link->start + i / link->run * link->stride + i % link->run;
}
/** The entry of a position of the big track; -1: it has none. */
static inline int64_t laci_link_entry(const laci_link *link, int64_t position) {
  int64_t at = position - link->start;
  if (at < 0 || link->n == 0 || at % link->stride >= link->run) return -1;
  int64_t i = at / link->stride * link->run + at % link->stride;
  return i < link->n ? i : -1;
}

/** Axes of one value that belong to a track, slowest first. position = row-major index over `axes`.
 *  n_groups > 0: the input axis (one axis) of a grouped convolution's stored weight: row r of
 * `row_axis` in group g sees positions g * size(axis) + j. */
typedef struct laci_axis_set {
  int track;
  int n_axes;
  int8_t axes[LACI_MAX_RANK];
  int n_groups;
  int row_axis;
} laci_axis_set;

/** The tracks of a value's axes: set[a] >= 0 is an index into axis_sets; LACI_AXIS_FIXED: nothing
 * may move along a (why: cause[a]); LACI_AXIS_UNIFORM: all elements along a are equal, so that it
 * takes any order. */
enum { LACI_AXIS_FIXED = -1, LACI_AXIS_UNIFORM = -2 };
typedef struct laci_layout {
  int rank; /* -1: unknown, all fixed */
  int set[LACI_MAX_RANK];
  int cause[LACI_MAX_RANK];
  int n_axis_sets;
  laci_axis_set axis_sets[LACI_MAX_RANK];
} laci_layout;

typedef struct laci_tracks {
  const laci_graph *graph;
  laci_arena arena;
  uint8_t *matters;     /* [n_values] graph/content.h */
  laci_layout *layouts; /* [n_values] */
  laci_track *tracks;
  size_t n_tracks, track_capacity;
  laci_link *links;
  size_t n_links, link_capacity;
  laci_cause *causes;
  size_t n_causes, cause_capacity;
  int32_t *count; /* [count_capacity] zeros between uses: places of a small track, while one link is
                     made after the other */
  size_t count_capacity;
  bool no_memory;     /* there was not enough memory: results are void */
  laci_budget budget; /* what others hold, and the tracks; over it, results are void, too */
} laci_tracks;

enum { LACI_TRACK_LIMIT = 1 << 26 }; /* positions a single track may have */

enum { LACI_POSITION_BYTES = 128 }; /* that the analysis keeps of a position, as measured */

/* Making. Ids come back; -1 (and no_memory) when there is no memory. */
int laci_track_new(laci_tracks *t, int64_t n, bool sourced);
int laci_track_root(const laci_tracks *t, int track);
laci_track *laci_track_at(const laci_tracks *t, int track); /* the root's record */
/** The two are in step from now on; sizes must be equal. Returns the root. */
int laci_track_union(laci_tracks *t, int a, int b);
/** A link of all positions of the big track. Takes to and copy (from laci_alloc; copy may be
 * NULL). */
void laci_link_add(laci_tracks *t, int node, int big, int small, int32_t *to, int32_t *copy);
/** One of some of them; the same of link.to and link.copy. */
void laci_link_add_runs(laci_tracks *t, laci_link link);

int laci_cause_new(laci_tracks *t, int node, int value, const char *text);
void laci_track_freeze(laci_tracks *t, int id, int cause);
void laci_track_freeze_at(laci_tracks *t, int id, int64_t position, int cause);
/** Mixes index[p] (NULL: p itself) into the colour of every position, under the name `salt`. */
void laci_track_tag(laci_tracks *t, int id, uint64_t salt, const int32_t *index);

/* Layouts. */
void laci_layout_freeze(laci_tracks *t, int value,
                        int cause); /* every axis, whatever it was before */
void laci_layout_freeze_axis(laci_tracks *t, int value, int axis, int cause);
/** Index of flat position `position` of the axis set along its axis number `which`. */
int64_t laci_axis_set_index(const laci_axis_set *axis_set, const laci_shape *shape, int which,
                            int64_t position);
laci_axis_set laci_axis_set_of(int track, int axis);
void laci_layout_put(laci_tracks *t, int value, const laci_axis_set *axis_set);

/** Layouts of all values, from the operators' couplings (resolve.c). budget NULL: no limit. */
LAC_MUST_CHECK lac_status laci_tracks_build(const laci_graph *graph, const laci_budget *budget,
                                            laci_tracks *t, lac_error *err);
void laci_tracks_clear(laci_tracks *t);

#endif
