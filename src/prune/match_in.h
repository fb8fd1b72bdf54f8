/* SPDX-License-Identifier: Apache-2.0
 * Finds which channel of the original network each channel of a changed network is, by comparing
 * slices of stored tensors.
 *
 * Every channel that may have moved starts with all channels of its group as candidates. A slice of
 * one of its tensors rules candidates out: every element that was not masked must occur in the old
 * slice as often. Two elements count as equal only if their channels along the other axes may be
 * the same, too. So each group that becomes known tells more of its neighbours; this is repeated
 * until nothing changes. If several candidates are left, one is tried, and taken back if it leads
 * to a contradiction.
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

/** A pair of stored tensors: old is that of the original network, fresh the one of the same name in
 * the changed network. */
typedef struct laci_pair {
  const laci_stored *old, *fresh;
  const laci_weight_view *view; /* view of the tensor as a layer's weight, which may be masked;
                                   NULL: the tensor is no such weight */
  bool masked;                  /* true: the new tensor's elements are no rearrangement of the old
                                   tensor's, so it must have been masked */
  const laci_layer *gain_of;    /* layer whose weight is g * v / |v|, if this tensor is the gain g;
                                   else NULL */
} laci_pair;

/** Sets found[g].order of the plan's groups so that every pair of tensors agrees; pairs:
 * [n_stored]. The orders may still be wrong if hashes collide or a tensor was not read, so the
 * caller compares every element. Fails with LAC_PROOF_FAILED if a channel is not in the original,
 * which the text names, or if the search ended without an answer; or with LAC_INTERRUPTED. Defined
 * in match.c. */
LAC_MUST_CHECK lac_status laci_match_orders(laci_plan *plan, const laci_pair *pairs,
                                            lac_error *err);

/** May an element with these bits be masked out? zero: the zero point of integers. */
bool laci_is_masked_value(lac_dtype dtype, uint64_t bits, double zero);

/** laci_element_bits: returns the bits of element `at` of a stored tensor. laci_hash_bits: returns
 * a 64-bit hash of x. */
uint64_t laci_element_bits(const laci_stored *stored, int64_t at);
uint64_t laci_hash_bits(uint64_t x);

/* ---- Slices ---- */

/** A unit of comparison: the slices of a pair's tensor along the axes of one slot of a group (a
 * slot is one copy of the group's channels on a track). */
typedef struct laci_match_unit {
  /* group, slot: indices of the group of channels, and of one copy of these channels. stored: index
     of the stored tensor. item: index of the copy's axes among the tensor's laci_value_axes */
  int group, slot, stored, item;
  int n_others, others[LACI_MAX_RANK]; /* n_others: number of the tensor's other axes. others: for
                                          each of them, the track that it is on */
  int64_t n_elements;                  /* number of elements in all slices together */
  uint64_t done;                       /* round of the search in which the unit was last compared;
                                          0: never */
} laci_match_unit;

/** The candidates of the channels of one group: which old channel each new channel may be. */
typedef struct laci_match_group {
  int n, n_words;
  uint64_t *may;      /* [n * n_words] bit `old` of row `new` is set if the new channel may be the
                         old one. Of old channels that are equal, only the first has bits */
  int32_t *only;      /* [n] the only candidate of each new channel; -1: it has several */
  int32_t *alike;     /* [n] for each old channel, the first old channel that has equal slices in
                         all tensors (perhaps itself) */
  int32_t *n_alike;   /* [n] number of old channels with equal slices, including itself; set only
                         for the first of them */
  int32_t *component; /* [2 * n] component of each channel in the graph of candidates: first the new
                         channels, then the old ones */
  int n_open;         /* number of new channels with several candidates */
  bool touched;       /* true: a trial was undone, which made ruled-out candidates possible again */
} laci_match_group;

static inline bool laci_match_is_candidate(const laci_match_group *g, int fresh, int old) {
  return g->may[(int64_t)fresh * g->n_words + old / 64] >> (old % 64) & 1;
}

typedef struct laci_match laci_match;

/** The input of a comparison of one unit's slices. Two positions, one of the changed network and
 * one of the original, have equal colors if their channels may be the same. */
typedef struct laci_match_comparison {
  const laci_analysis *analysis;
  const laci_pair *pair;
  const laci_match_unit *unit;
  uint64_t *const *fresh_colour, *const *old_colour; /* [n_tracks][positions] color of each position
                                                        of each track (set of tied axes) in the
                                                        changed and in the original network */
  const laci_match_group *group;
  uint64_t *steps; /* counter of the search's steps, which the comparison increases */
  void (*rule_out)(laci_match *match, int group, int fresh, int old);
  laci_match *match;
} laci_match_comparison;

/** Compares the slices of one tensor (a unit of comparison), and calls rule_out for each candidate
 * that they exclude. Returns false if there is no memory. */
bool laci_match_exclude_by_unit(const laci_match_comparison *look);

/** Mixes the content of every old slice, together with the positions of its elements, into
 * hash[old]. So equal hashes mean equal slices. place[position]: a color for each position of the
 * longest track. Returns false if there is no memory. */
bool laci_match_hash_slices(const laci_match_comparison *look, const uint64_t *place,
                            uint64_t *hash);

#endif
