/* SPDX-License-Identifier: Apache-2.0
 * Finds, for every channel of a changed network, the channel of the original that it is, by
 * comparing slices of stored tensors.
 *
 * Every free channel starts with all channels of its group as candidates. A slice of one of its
 * tensors rules candidates out: every element that was not masked must occur in the old slice as
 * often. Two elements count as equal only if their channels along the other axes may be the same,
 * too. So each group that becomes known tells more of its neighbours; this is repeated until
 * nothing changes. Where several candidates are left, one is tried, and taken back if it leads to a
 * contradiction.
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

/** A stored tensor of the original (old), and the one of the same name in the changed network
 * (fresh). */
typedef struct laci_pair {
  const laci_stored *old, *fresh;
  const laci_weight_view *view; /* view of a layer's weight, which may be masked; NULL: the tensor
                                   is no such weight */
  bool masked;                  /* the new tensor's elements are not a rearrangement of the old
                                   tensor's, so it must have got a mask */
  const laci_layer *gain_of;    /* the tensor is the gain g that follows the norm of this layer's
                                   weight v; NULL: it is none */
} laci_pair;

/** match.c: sets found[g].order of the plan's groups such that every pair agrees; pairs:
 * [n_stored]. The orders may still be wrong where hashes collide or a tensor was not read, so the
 * caller compares every element. Fails LAC_PROOF_FAILED naming a channel that is not in the
 * original, or saying that the search ended without an answer; LAC_INTERRUPTED. */
LAC_MUST_CHECK lac_status laci_match_orders(laci_plan *plan, const laci_pair *pairs,
                                            lac_error *err);

/** May a masked-out element have these bits, if the zero point is `zero`? */
bool laci_is_masked_value(lac_dtype dtype, uint64_t bits, double zero);

/** laci_element_bits returns the bits of an element; laci_hash_bits returns a hash of 64 bits. */
uint64_t laci_element_bits(const laci_stored *stored, int64_t at);
uint64_t laci_hash_bits(uint64_t x);

/* ---- Slices ---- */

/** The slices of one pair's tensor along the axes of one slot of a group. */
typedef struct laci_match_unit {
  int group, slot, stored, item;       /* indices of the group, of its slot, of the stored tensor,
                                          and (item) of the slot's axes among the tensor's
                                          laci_value_axes */
  int n_others, others[LACI_MAX_RANK]; /* tracks of the tensor's other axes */
  int64_t n_elements;                  /* number of elements of all slices together */
  uint64_t done;                       /* the round of the search in which the unit was last
                                          compared; 0: never */
} laci_match_unit;

/** Candidates of the channels of one group. */
typedef struct laci_match_group {
  int n, n_words;
  uint64_t *may;      /* [n * n_words] bit `old` of row `new`: new may be old; of old channels that
                         are alike, only the first has bits */
  int32_t *only;      /* [n] the only candidate; -1: there are several */
  int32_t *alike;     /* [n] for each old channel, the first old channel with equal slices in all
                         tensors (perhaps itself) */
  int32_t *n_alike;   /* [n] number of old channels with equal slices, itself included; set only for
                         the first of equal channels */
  int32_t *component; /* [2 * n] component in the graph of candidates, of new channels, then of old
                         ones */
  int n_open;         /* number of channels with several candidates */
  bool touched;       /* a guess was taken back, which made ruled-out candidates possible again */
} laci_match_group;

static inline bool laci_match_is_candidate(const laci_match_group *g, int fresh, int old) {
  return g->may[(int64_t)fresh * g->n_words + old / 64] >> (old % 64) & 1;
}

typedef struct laci_match laci_match;

/** What a comparison of one unit's slices reads. A position of the changed network and one of the
 * original have equal colours if their channels may be the same. */
typedef struct laci_match_comparison {
  const laci_analysis *analysis;
  const laci_pair *pair;
  const laci_match_unit *unit;
  uint64_t *const *fresh_colour, *const *old_colour; /* [n_tracks][positions] */
  const laci_match_group *group;
  uint64_t *steps; /* counter of the search's steps, to which the comparison adds its own */
  void (*rule_out)(laci_match *match, int group, int fresh, int old);
  laci_match *match;
} laci_match_comparison;

/** Compares a unit's slices and calls rule_out for each candidate that they exclude. Returns false
 * if memory is short. */
bool laci_match_exclude_by_unit(const laci_match_comparison *look);

/** Mixes the content of every old slice, with the places of its elements, into hash[old], so that
 * equal hashes mean equal slices. place[position] is the colour of a position, for all positions of
 * the longest track. Returns false if memory is short. */
bool laci_match_hash_slices(const laci_match_comparison *look, const uint64_t *place,
                            uint64_t *hash);

#endif
