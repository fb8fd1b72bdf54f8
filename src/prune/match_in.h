/* SPDX-License-Identifier: Apache-2.0
 * Which channel of the original every channel of a changed network is, by what its slices hold.
 *
 * Every free channel starts with all channels of its group as candidates. A slice of one of its
 * tensors rules candidates out: what was not masked must be in the old slice as often. Elements
 * count as equal where their channels along the other axes may be the same, too, so each group that
 * becomes known tells more of its neighbours; this is repeated until nothing changes. Where several
 * candidates are left, one is tried and taken back if it contradicts.
 *
 *   match.c         candidates, their refinement, the search
 *   match_slices.c  what slices say about candidates */
#ifndef LACI_PRUNE_MATCH_IN_H
#define LACI_PRUNE_MATCH_IN_H

#include "analyze/analyze.h"
#include "lacuna/status.h"
#include "sparse/weight_view.h"

typedef struct laci_plan laci_plan;
typedef struct laci_stored laci_stored;

/** A stored tensor of the original, and that of the same name in the changed network. */
typedef struct laci_pair {
  const laci_stored *old, *fresh;
  const laci_weight_view *view; /* of a layer's weight, which may be masked; NULL: it is none */
  bool masked;                  /* its contents are not a rearrangement of the old ones */
  const laci_layer *gain_of;    /* it follows the norm of this layer's weight; NULL: it does not */
} laci_pair;

/** match.c: found[g].order of the plan's groups, such that every pair fits; pairs: [n_stored]. It
 * may still fail to fit where hashes collide or nothing had to be looked at: the caller compares
 * every element. Fails LAC_PROOF_FAILED naming a channel that is none of the original's, or saying
 * that the search ended without an answer; LAC_INTERRUPTED. */
LAC_MUST_CHECK lac_status laci_match_orders(laci_plan *plan, const laci_pair *pairs,
                                            lac_error *err);

/** May a masked element hold these bits where the zero point is `zero`? */
bool laci_is_masked_value(lac_dtype dtype, uint64_t bits, double zero);

/** The bits of an element, and a hash of any 64 bits. */
uint64_t laci_element_bits(const laci_stored *stored, int64_t at);
uint64_t laci_match_hash(uint64_t x);

/* ---- Slices ---- */

/** The slices of one pair's tensor along the axes of one slot of a group. */
typedef struct laci_match_unit {
  int group, slot, stored, item;       /* item: of the tensor's laci_value_axes */
  int n_others, others[LACI_MAX_RANK]; /* tracks of its other axes */
  int64_t n_elements;                  /* of all slices */
  uint64_t done;                       /* when it was looked at; 0: never */
} laci_match_unit;

/** Candidates of the channels of one group. */
typedef struct laci_match_group {
  int n, n_words;
  uint64_t *may;      /* [n * n_words] bit old of row new; of channels that are alike, the first */
  int32_t *only;      /* [n] the one candidate; -1: several */
  int32_t *alike;     /* [n] the first old channel that holds the same everywhere */
  int32_t *n_alike;   /* [n] how many these are, at the first */
  int32_t *component; /* [2 * n] of the graph of candidates: new channels, then old ones */
  int n_open;         /* channels of several candidates */
  bool touched;       /* candidates came back */
} laci_match_group;

static inline bool laci_match_may(const laci_match_group *g, int fresh, int old) {
  return g->may[(int64_t)fresh * g->n_words + old / 64] >> (old % 64) & 1;
}

typedef struct laci_match laci_match;

/** What a look at a unit needs; the colours of a position are equal in both networks where its
 * channels may be the same. */
typedef struct laci_match_look {
  const laci_analysis *analysis;
  const laci_pair *pair;
  const laci_match_unit *unit;
  uint64_t *const *fresh_colour, *const *old_colour; /* [n_tracks][positions] */
  const laci_match_group *group;
  uint64_t *steps; /* what it took is added */
  void (*rule_out)(laci_match *match, int group, int fresh, int old);
  laci_match *match;
} laci_match_look;

/** Calls rule_out for each candidate that the slices exclude. False: no memory. */
bool laci_match_look_at(const laci_match_look *look);

/** hash[old] is changed by what the old slices hold, with the places of all elements: equal hashes
 * mean equal slices. `place` colours positions [0, most positions of a track). False: no memory. */
bool laci_match_add_content(const laci_match_look *look, const uint64_t *place, uint64_t *hash);

#endif
