/* SPDX-License-Identifier: Apache-2.0
 * Channels and classes: which connected positions may change places with which.
 *
 * A channel is a connected component of positions. Two channels are exchangeable when walking their
 * labelled links in step, from one position of each, visits the same tracks and colours; the walk
 * also says which position of the one goes with which of the other. Exchangeable channels form a
 * class. */
#ifndef LACI_ANALYZE_CLASSES_IN_H
#define LACI_ANALYZE_CLASSES_IN_H

#include "base/memory.h"
#include "lacuna/status.h"

typedef struct laci_tracks laci_tracks;

/** position[s * n_channels + c]: the position of channel c of the class in track[s]. Channels are
 * numbered by their first position. A track may appear in several slots (copies). */
typedef struct laci_class {
  int n_channels, n_slots;
  const int32_t *track; /* [n_slots] roots */
  const int32_t *position;
} laci_class;

typedef struct laci_classes {
  laci_arena arena;
  int n_classes;
  laci_class *classes;
  int64_t n_positions;
  int64_t *first;    /* [n_tracks]: vertex number of position 0 of a root track, -1: not a root */
  int32_t *class_of; /* [n_positions] class, or -1: frozen */
  int32_t *cause_of; /* [n_positions] cause where frozen, else -1 */
  int32_t *component_of; /* [n_positions] */
} laci_classes;

LAC_MUST_CHECK lac_status laci_classes_find(const laci_tracks *t, laci_classes *classes,
                                            lac_error *err);
void laci_classes_clear(laci_classes *classes);

/** The certificate: checks in integers that the orders (order[root] [n] or NULL: identity; new
 * place -> old position) take each position once and respect every link, colour and frozen
 * position. *class: that of the first miss, -1: all hold, -2: a miss outside every class. False: no
 * memory to look. */
bool laci_classes_certify(const laci_tracks *t, const laci_classes *classes, int32_t *const *order,
                          int *class);

#endif
