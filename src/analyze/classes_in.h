/* SPDX-License-Identifier: Apache-2.0
 * Channels and classes: which channels may be exchanged with each other.
 *
 * A channel is a connected component of positions. Two channels are exchangeable if walks along
 * their labelled links, from one position of each, visit the same tracks and colours in the same
 * order. The walks also match the positions of both channels. Exchangeable channels form a
 * class. */
#ifndef LACI_ANALYZE_CLASSES_IN_H
#define LACI_ANALYZE_CLASSES_IN_H

#include "base/memory.h"
#include "lacuna/status.h"

typedef struct laci_tracks laci_tracks;

/** A class: channels that may be exchanged with each other. position[s * n_channels + c] is the
 * position of channel c of the class on track[s]. Channels are numbered by their first position. A
 * track may have several slots, if a channel has several positions (copies) on it. */
typedef struct laci_class {
  int n_channels, n_slots;
  const int32_t *track; /* [n_slots] the track (set of tied axes, tracks_in.h) of each slot */
  const int32_t *position;
} laci_class;

typedef struct laci_classes {
  laci_arena arena;
  int n_classes;
  laci_class *classes;
  int64_t n_positions;
  /* [n_tracks] the number of each root track's first position, if the positions of all root tracks
   * are numbered one after the other; -1: the track is no root */
  int64_t *first;
  int32_t *class_of;     /* [n_positions] index of the class of each position; -1: the position is
                            frozen */
  int32_t *cause_of;     /* [n_positions] index of the cause that freezes each position; -1: it is
                            not frozen */
  int32_t *component_of; /* [n_positions] the channel (connected component) of each position */
} laci_classes;

LAC_MUST_CHECK lac_status laci_classes_find(const laci_tracks *t, laci_classes *classes,
                                            lac_error *err);
void laci_classes_clear(laci_classes *classes);

/** Checks the orders: order[root] has the old position for each new position of a root track; NULL:
 * identity. Each order must use every position once, and respect links, colours and frozen
 * positions. *class: the class of the first violation; -1: there is none; -2: a violation outside
 * of all classes. Returns false without memory for the check. */
bool laci_classes_check_orders(const laci_tracks *t, const laci_classes *classes,
                               int32_t *const *order, int *class);

#endif
