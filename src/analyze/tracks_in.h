/* SPDX-License-Identifier: Apache-2.0
 * Tracks: the positions of channels, and how they are tied to each other.
 *
 * A track is an axis of a value, or several axes combined, with one position for each index. Axes
 * that an operator treats alike share one track (union-find); where an operator moves positions
 * (Concat, Slice, Reshape ...) a *link* joins two tracks position by position. Connected positions
 * are one channel (classes.c). Tags give positions colours: only positions of equal colour may be
 * exchanged. Frozen positions have a cause. resolve.c fills this from the operators' couplings.
 */
#ifndef LACI_ANALYZE_TRACKS_IN_H
#define LACI_ANALYZE_TRACKS_IN_H

#include "base/budget.h"
#include "base/memory.h"
#include "tensor/shape.h"

typedef struct laci_graph laci_graph;

/** The cause for which positions may not move. */
typedef struct laci_cause {
  int node;  /* index of the node that froze the positions; -1: none */
  int value; /* index of the value whose axis was frozen */
  const char *text;
} laci_cause;

/** An axis, or several combined, with n positions. A position is frozen if its channel must stay in
 * its place. */
typedef struct laci_track {
  int parent; /* parent in the union-find forest; a root is its own parent */
  int64_t n;
  bool sourced;     /* the content of the axis comes from a stored tensor */
  uint64_t *colour; /* [n] hash of a position's tags; NULL: no tags */
  int32_t *frozen;  /* [n] index of the cause, or -1; NULL: nothing is frozen */
  bool all_frozen;  /* every position is frozen */
  /* [n] 1: the position holds a constant, such as one that Pad adds, which counts as stored
   * content; NULL: no position does */
  uint8_t *fill;
} laci_track;

/** A link joins positions of two tracks. Entry i joins position laci_link_position_of_entry(i) of
 * the big track with position to[i] of the small one (-1: with nothing). copy[i] numbers the
 * entries that share one small position, so that (to, copy) is unique within a link; NULL: all 0.
 * The entries cover runs of `run` positions of the big track, `stride` apart, the first at `start`;
 * other positions are not part of the link. So an input of a Concat has only as many entries as it
 * has positions. */
typedef struct laci_link {
  int node;
  int big, small;
  int64_t n, start, run, stride;
  int32_t *to;   /* [n] the position of the small track that each entry joins to one of the big
                    track; -1: none */
  int32_t *copy; /* [n] number of each entry among the entries with the same `to`, from 0 on; NULL:
                    all 0 */
} laci_link;

static inline int64_t laci_link_position_of_entry(const laci_link *link, int64_t i) {
  return link->start + i / link->run * link->stride + i % link->run;
}
/** Returns the entry of the link that joins a position of the larger track; -1: none does. */
static inline int64_t laci_link_find_entry(const laci_link *link, int64_t position) {
  int64_t at = position - link->start;
  if (at < 0 || link->n == 0 || at % link->stride >= link->run) return -1;
  int64_t i = at / link->stride * link->run + at % link->stride;
  return i < link->n ? i : -1;
}

/** Axes of one value that belong to a track, slowest first. The position on the track is the
 * row-major index over `axes`. n_groups > 0: the set is the input axis of a grouped convolution's
 * stored weight. Its index j, in a row (index of `row_axis`) of group g, is position g * size(axis)
 * + j. */
typedef struct laci_axis_set {
  int track;
  int n_axes;
  int8_t axes[LACI_MAX_RANK];
  int n_groups;
  int row_axis;
} laci_axis_set;

/** The tracks of a value's axes: set[a] >= 0 is an index into axis_sets; LACI_AXIS_FIXED: nothing
 * may move along axis a, because of cause[a]; LACI_AXIS_UNIFORM: all elements along axis a are
 * equal, so it fits any order. */
enum { LACI_AXIS_FIXED = -1, LACI_AXIS_UNIFORM = -2 };
typedef struct laci_layout {
  int rank; /* -1: unknown, and all axes are fixed */
  int set[LACI_MAX_RANK];
  int cause[LACI_MAX_RANK];
  int n_axis_sets;
  laci_axis_set axis_sets[LACI_MAX_RANK];
} laci_layout;

typedef struct laci_tracks {
  const laci_graph *graph;
  laci_arena arena;
  uint8_t *matters;     /* [n_values] 1: the content of the value can affect the outputs
                           (laci_find_values_affecting_outputs) */
  laci_layout *layouts; /* [n_values] for each value, which track (set of tied axes) each of its
                           axes belongs to */
  laci_track *tracks;
  size_t n_tracks, track_capacity;
  laci_link *links;
  size_t n_links, link_capacity;
  laci_cause *causes;
  size_t n_causes, cause_capacity;
  /* [count_capacity] scratch counters, one for each position of a new link's smaller track; all
   * zero between uses */
  int32_t *count;
  size_t count_capacity;
  bool no_memory; /* memory ran out, so that the results are invalid */
  /* memory limit, and the memory that the tracks and the caller use; if the limit is exceeded, the
   * results are invalid, too */
  laci_budget budget;
} laci_tracks;

enum { LACI_TRACK_LIMIT = 1 << 26 }; /* maximum number of positions of a track */

/* bytes of memory that the analysis needs for one position, as measured */
enum { LACI_POSITION_BYTES = 128 };

/* Create tracks (sets of tied axes) and links between them, and return their ids; -1 (and
 * no_memory) when there is no memory. */
int laci_track_create(laci_tracks *t, int64_t n, bool sourced);
int laci_track_find_root(const laci_tracks *t, int track);
laci_track *laci_track_find_root_record(const laci_tracks *t,
                                        int track); /* returns the record of the root of the track's
                                                       tree */
/** Merges two tracks of equal size into one. Returns the root. */
int laci_track_merge(laci_tracks *t, int a, int b);
/** Adds a link of all positions of the big track: position p is joined with small_position[p] of
 * the small one, as copy copy_number[p]. Owns both arrays from now on (from laci_alloc; copy_number
 * may be NULL: all 0). */
void laci_link_add(laci_tracks *t, int node, int big_track, int small_track,
                   int32_t *small_position, int32_t *copy_number);
/** Adds a link whose entries cover runs of positions of the big track, not all of its positions.
 * Owns link.to and link.copy from now on. */
void laci_link_add_runs(laci_tracks *t, laci_link link);

int laci_freeze_cause_create(laci_tracks *t, int node, int value, const char *text);
void laci_track_freeze(laci_tracks *t, int id, int cause);
void laci_track_freeze_at(laci_tracks *t, int id, int64_t position, int cause);
/** Adds a tag to a track, so that only positions p with equal index[p] (NULL: p itself) may be
 * exchanged. Mixes the index and `salt`, which identifies the tag, into the colour of each
 * position. */
void laci_track_add_tag(laci_tracks *t, int id, uint64_t salt, const int32_t *index);

/* Layouts. */
/** Freezes all axes of the value, whatever their state is. */
void laci_layout_freeze_all_axes(laci_tracks *t, int value, int cause);
void laci_layout_freeze_axis(laci_tracks *t, int value, int axis, int cause);
/** Returns the index along axis number `which` of the axis set, for flat position `position`. */
int64_t laci_axis_set_index_along_axis(const laci_axis_set *axis_set, const laci_shape *shape,
                                       int which, int64_t position);
laci_axis_set laci_axis_set_of_single_axis(int track, int axis);
void laci_layout_add_axis_set(laci_tracks *t, int value, const laci_axis_set *axis_set);

/** Builds the layouts of all values from the operators' couplings (resolve.c). budget NULL: no
 * limit. */
LAC_MUST_CHECK lac_status laci_tracks_build(const laci_graph *graph, const laci_budget *budget,
                                            laci_tracks *t, lac_error *err);
void laci_tracks_clear(laci_tracks *t);

#endif
