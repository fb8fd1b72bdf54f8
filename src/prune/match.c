/* SPDX-License-Identifier: Apache-2.0
 * Matches the channels of two networks (match_in.h): refines the candidates of all channels until
 * nothing changes, then finds the rest by trial.
 *
 * A candidate is an edge of a graph: the new channel may be the old channel. The components of this
 * graph are called colors: channels of different components certainly differ. So elements are
 * distinguished by the components of their channels. A component with one new and one old channel
 * is known exactly. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/union_find.h"
#include "graph/graph.h"
#include "permute/plan.h"
#include "permute/search.h"
#include "prune/match_in.h"
#include "tensor/shape.h"

/* TRIAL_STEPS: limit of the number of steps of the search by trial. STEPS_AN_ELEMENT: limit without
 * trials, for each element and pair of channels. */
enum { TRIAL_STEPS = 1 << 29, STEPS_AN_ELEMENT = 64 };

typedef struct undo {
  uint64_t *word, was;
  int group;
} undo;

typedef struct trial {
  int group, fresh, old;
  size_t n_undo;  /* length of the list of undoable changes before the trial */
  uint64_t round; /* round of the search at which the trial began */
} trial;

struct laci_match {
  laci_plan *plan;
  const laci_analysis *a;
  const laci_pair *pairs;
  laci_match_group *groups; /* [n_groups] candidates of each group; n is 0 if the group is never
                               reordered */
  laci_match_unit *units;
  size_t n_units, unit_capacity;
  /* [n_tracks] a track is a set of axes that must have the same order. For each track, the color
     (component) of each position, in the new and in the old network; NULL: no comparison needs
     them */
  uint64_t **fresh_colour, **old_colour;
  uint64_t *track_round; /* [n_tracks] last round in which the colors of positions changed, for each
                            track (set of tied axes) */
  int64_t *track_open;   /* [n_tracks] number of positions with several candidates, for each track
                            (set of tied axes) */
  uint64_t round, steps, limit;
  undo *undone;
  size_t n_undo, undo_capacity;
  trial *trials;
  size_t n_trials, trial_capacity;
  bool no_memory, changed; /* changed: a candidate was ruled out since this flag was last cleared.
                              no_memory: an allocation failed */
  int lost_group, lost;    /* group and number of a channel without candidates; group -1: every
                              channel has some */
  laci_arena arena;
};

/* ---- Candidates ---- */

static void rule_out_candidate(laci_match *m, int group, int fresh, int old) {
  laci_match_group *g = &m->groups[group];
  uint64_t *word = &g->may[(int64_t)fresh * g->n_words + old / 64];
  if (m->n_trials) {
    if (!laci_grow((void **)&m->undone, m->n_undo, &m->undo_capacity, sizeof *m->undone)) {
      m->no_memory = true;
      return;
    }
    m->undone[m->n_undo++] = (undo){word, *word, group};
  }
  *word &= ~((uint64_t)1 << (old % 64));
  m->changed = true;
}

static int find_next_candidate(const laci_match_group *g, int fresh, int from) {
  const uint64_t *row = &g->may[(int64_t)fresh * g->n_words];
  for (int w = from / 64; w < g->n_words; w++) {
    uint64_t word = row[w];
    if (w == from / 64) word &= ~(uint64_t)0 << (from % 64);
    if (word) return w * 64 + __builtin_ctzll(word);
  }
  return g->n;
}

static void keep_only_candidate(laci_match *m, int group, int fresh, int old) {
  const laci_match_group *g = &m->groups[group];
  for (int o = find_next_candidate(g, fresh, 0); o < g->n;
       o = find_next_candidate(g, fresh, o + 1)) {
    if (o != old) rule_out_candidate(m, group, fresh, o);
  }
}

/* For each old channel of a group, counts the new channels that have it as a candidate, n_of [n],
 * and those that have it as their only candidate, n_only [n]. Returns false if a new channel has no
 * candidate. */
static bool count_candidates(laci_match *m, int group, int *n_of, int *n_only) {
  laci_match_group *g = &m->groups[group];
  memset(n_of, 0, (size_t)g->n * sizeof *n_of);
  memset(n_only, 0, (size_t)g->n * sizeof *n_only);
  g->n_open = 0;
  for (int c = 0; c < g->n; c++) {
    const int first = find_next_candidate(g, c, 0);
    int n = 0;
    for (int o = first; o < g->n; o = find_next_candidate(g, c, o + 1)) {
      n++;
      n_of[o]++;
    }
    g->only[c] = n == 1 ? first : -1;
    g->n_open += n > 1;
    if (n == 1) n_only[first]++;
    if (n > 0) continue;
    m->lost_group = group;
    m->lost = c;
    return false;
  }
  return true;
}

/* Applies a rule: an old channel is assigned exactly as often as there are old channels equal to
 * it. If that many new channels have it as their only candidate, it is removed from all others. If
 * only that many have it as a candidate, it becomes their only one. Returns false on a
 * contradiction. */
static bool apply_candidate_counts(laci_match *m, int group) {
  laci_match_group *g = &m->groups[group];
  int *n_of = laci_alloc((size_t)g->n, sizeof *n_of);
  int *n_only = laci_alloc((size_t)g->n, sizeof *n_only);
  bool ok = n_of && n_only;
  m->no_memory |= !ok;
  for (bool again = true; ok && again;) {
    again = false;
    ok = count_candidates(m, group, n_of, n_only);
    for (int o = 0; ok && o < g->n; o++) {
      if (g->alike[o] == o) ok = n_of[o] >= g->n_alike[o] && n_only[o] <= g->n_alike[o];
    }
    for (int c = 0; ok && c < g->n; c++) {
      for (int o = find_next_candidate(g, c, 0); g->only[c] < 0 && o < g->n;
           o = find_next_candidate(g, c, o + 1)) {
        if (n_only[o] < g->n_alike[o] && n_of[o] > g->n_alike[o]) continue;
        again = true;
        if (n_only[o] == g->n_alike[o]) {
          rule_out_candidate(m, group, c, o);
          continue;
        }
        keep_only_candidate(m, group, c, o);
        break;
      }
    }
    m->steps += (uint64_t)g->n * (uint64_t)g->n_words;
  }
  laci_free(n_of);
  laci_free(n_only);
  return ok;
}

/* Finds the components of the graph of candidates, each named by its first old channel. Returns
 * false if a component has more new channels than old ones. *changed becomes true if the components
 * changed. */
static bool find_components(laci_match *m, int group, bool *changed) {
  laci_match_group *g = &m->groups[group];
  const size_t n = (size_t)g->n;
  int64_t *parent = laci_alloc(3 * n, sizeof *parent);
  m->no_memory |= !parent;
  if (!parent) return false;
  int64_t *balance = parent + 2 * n;
  for (int i = 0; i < 2 * g->n; i++) parent[i] = i;
  for (int c = 0; c < g->n; c++) {
    for (int o = find_next_candidate(g, c, 0); o < g->n; o = find_next_candidate(g, c, o + 1)) {
      laci_unite(parent, o, g->n + c); /* old channels have the lower numbers, so the root of a
                                          component is an old channel */
    }
  }
  bool fit = true;
  for (int c = 0; c < g->n; c++) {
    balance[laci_find_root(parent, g->n + c)]++;
    balance[laci_find_root(parent, g->alike[c])]--;
  }
  for (int c = 0; c < g->n; c++) fit = fit && balance[c] == 0;
  *changed = false;
  for (int i = 0; i < 2 * g->n; i++) {
    const int is = (int)laci_find_root(parent, i < g->n ? g->n + i : g->alike[i - g->n]);
    *changed = *changed || g->component[i] != is;
    g->component[i] = is;
  }
  laci_free(parent);
  return fit;
}

static void copy_colours_to_tracks(laci_match *m, int group) {
  const laci_match_group *g = &m->groups[group];
  m->round++;
  for (int s = 0; s < laci_group_count_slots(m->a, group); s++) {
    const laci_slot slot = laci_group_slot(m->a, group, s);
    m->track_round[slot.track] = m->round;
    if (!m->fresh_colour[slot.track]) continue;
    const uint64_t salt = ((uint64_t)group << 48) + ((uint64_t)s << 40) + ((uint64_t)1 << 39);
    for (int c = 0; c < g->n; c++) {
      const int at = slot.position[c];
      m->fresh_colour[slot.track][at] = laci_hash_bits(salt + (uint64_t)g->component[c]);
      m->old_colour[slot.track][at] = laci_hash_bits(salt + (uint64_t)g->component[g->n + c]);
    }
  }
}

/* Draws the conclusions for a group after candidates were ruled out or restored. Returns false on a
 * contradiction. */
static bool propagate_candidates(laci_match *m, int group) {
  laci_match_group *g = &m->groups[group];
  const int were_open = g->n_open;
  bool changed = false;
  const bool fit = apply_candidate_counts(m, group) && find_components(m, group, &changed);
  for (int s = 0; s < laci_group_count_slots(m->a, group); s++)
    m->track_open[laci_group_slot(m->a, group, s).track] += g->n_open - were_open;
  if (fit && changed) copy_colours_to_tracks(m, group);
  return fit;
}

/* ---- Refinement ---- */

/* Can comparing the slices of this unit rule out more candidates than last time? Outside of a
 * trial, a group whose channels are all known is not compared again, since the caller compares
 * every element at the end. */
static bool may_unit_exclude_more(const laci_match *m, const laci_match_unit *unit) {
  if (!m->n_trials && m->groups[unit->group].n_open == 0) return false;
  bool due = unit->done == 0;
  for (int i = 0; i < unit->n_others; i++) due |= m->track_round[unit->others[i]] > unit->done;
  return due;
}

/* Returns the unit (slices of one tensor) that is likely to rule out the most candidates for its
 * cost. First come units whose other axes are known, small ones before large ones. Then come units
 * that are not masked, then those of which most is known. NULL: no unit can rule out more. */
static laci_match_unit *choose_comparison_unit(laci_match *m) {
  laci_match_unit *best = NULL;
  double least = 0;
  for (size_t u = 0; u < m->n_units; u++) {
    laci_match_unit *unit = &m->units[u];
    if (!may_unit_exclude_more(m, unit)) continue;
    double open = 0;
    for (int i = 0; i < unit->n_others; i++) {
      const int track = unit->others[i];
      open += (double)m->track_open[track] / (double)laci_track_count_positions(m->a, track);
    }
    if (open == 0) return unit;
    if (m->pairs[unit->stored].masked) open += LACI_MAX_RANK;
    if (best && open >= least) continue;
    best = unit;
    least = open;
  }
  return best;
}

typedef enum outcome { FITS, CONTRADICTS, TOO_LONG, STOPS } outcome;

static laci_match_comparison make_comparison(laci_match *m, const laci_match_unit *unit) {
  return (laci_match_comparison){.analysis = m->a,
                                 .pair = &m->pairs[unit->stored],
                                 .unit = unit,
                                 .fresh_colour = m->fresh_colour,
                                 .old_colour = m->old_colour,
                                 .group = &m->groups[unit->group],
                                 .steps = &m->steps,
                                 .rule_out = rule_out_candidate,
                                 .match = m};
}

static outcome refine_until_stable(laci_match *m) {
  for (;;) {
    laci_match_unit *unit = choose_comparison_unit(m);
    if (!unit) return FITS;
    if (laci_interrupted()) return STOPS;
    if (m->steps > m->limit) return TOO_LONG;
    const laci_match_comparison look = make_comparison(m, unit);
    unit->done = m->round;
    m->changed = false;
    m->no_memory |= !laci_match_exclude_by_unit(&look);
    if (m->no_memory) return STOPS;
    if (!m->changed || propagate_candidates(m, unit->group)) continue;
    return m->no_memory ? STOPS : CONTRADICTS;
  }
}

/* ---- Channels that are equal in all tensors ---- */

static bool have_same_candidates(const laci_match_group *g, int a, int b) {
  for (int c = 0; c < g->n; c++) {
    if (laci_match_is_candidate(g, c, a) != laci_match_is_candidate(g, c, b)) return false;
  }
  return true;
}

/* Joins old channels whose slices are equal in all tensors. They are interchangeable, so the first
 * of them stands for all as a candidate. */
static void join_equal_channels(laci_match *m, int group, const uint64_t *content) {
  laci_match_group *g = &m->groups[group];
  for (int o = 0; o < g->n; o++) {
    for (int first = 0; first < o; first++) {
      if (content[first] != content[o] || g->alike[first] != first) continue;
      if (!have_same_candidates(g, first, o)) continue;
      g->alike[o] = first;
      g->n_alike[first]++;
      for (int c = 0; c < g->n; c++) {
        if (laci_match_is_candidate(g, c, o)) rule_out_candidate(m, group, c, o);
      }
      break;
    }
  }
}

/* Joins, in each group, the old channels that have the same content in all tensors: they are
 * interchangeable. *fit becomes false if this shows a contradiction. Returns false if there is no
 * memory. */
static bool join_equal_channels_of_groups(laci_match *m, bool *fit) {
  int64_t most = 1;
  for (int t = 0; t < laci_analysis_count_tracks(m->a); t++) {
    if (laci_track_count_positions(m->a, t) > most) most = laci_track_count_positions(m->a, t);
  }
  uint64_t *place = laci_alloc((size_t)most, sizeof *place);
  for (int64_t p = 0; place && p < most; p++) place[p] = laci_hash_bits((uint64_t)p + 1);
  bool ok = place != NULL;
  for (int group = 0; ok && group < m->a->n_groups; group++) {
    const laci_match_group *g = &m->groups[group];
    if (g->n_open == 0) continue;
    uint64_t *content = laci_alloc((size_t)g->n, sizeof *content);
    ok = content != NULL;
    for (size_t u = 0; ok && u < m->n_units; u++) {
      if (m->units[u].group != group) continue;
      const laci_match_comparison look = make_comparison(m, &m->units[u]);
      ok = laci_match_hash_slices(&look, place, content);
    }
    if (ok) join_equal_channels(m, group, content);
    laci_free(content);
    if (ok && !propagate_candidates(m, group)) *fit = false;
  }
  laci_free(place);
  return ok;
}

/* ---- Trying a candidate ---- */

/* Chooses a trial: the new channel with the fewest candidates, and one of these, the old channel at
 * the same position if possible. Returns false if all channels are known. */
static bool choose_trial(const laci_match *m, trial *to) {
  int least = INT32_MAX;
  for (int group = 0; group < m->a->n_groups; group++) {
    const laci_match_group *g = &m->groups[group];
    for (int c = 0; g->n_open > 0 && c < g->n; c++) {
      int n = 0;
      if (g->only[c] >= 0) continue;
      for (int o = find_next_candidate(g, c, 0); o < g->n && n < least;
           o = find_next_candidate(g, c, o + 1))
        n++;
      if (n >= least) continue;
      least = n;
      const int own = g->alike[c];
      *to =
          (trial){group, c, laci_match_is_candidate(g, c, own) ? own : find_next_candidate(g, c, 0),
                  m->n_undo, 0};
    }
  }
  return least < INT32_MAX;
}

static bool assume_candidate(laci_match *m, trial next) {
  if (!laci_grow((void **)&m->trials, m->n_trials, &m->trial_capacity, sizeof *m->trials)) {
    m->no_memory = true;
    return false;
  }
  next.round = ++m->round;
  m->trials[m->n_trials++] = next;
  keep_only_candidate(m, next.group, next.fresh, next.old);
  return propagate_candidates(m, next.group);
}

/* Undoes the last trial and rules its candidate out. Returns false if this is a contradiction,
 * too. */
static bool undo_and_exclude_trial(laci_match *m) {
  const trial last = m->trials[m->n_trials - 1];
  while (m->n_undo > last.n_undo) {
    const undo *to = &m->undone[--m->n_undo];
    *to->word = to->was;
    m->groups[to->group].touched = true;
  }
  for (size_t u = 0; u < m->n_units; u++) {
    if (m->units[u].done >= last.round) m->units[u].done = 0;
  }
  m->n_trials--;
  rule_out_candidate(m, last.group, last.fresh, last.old);
  m->groups[last.group].touched = true;
  bool fit = true;
  for (int g = 0; g < m->a->n_groups; g++) {
    if (m->groups[g].touched && !propagate_candidates(m, g)) fit = false;
    m->groups[g].touched = false;
  }
  return fit;
}

static outcome search_by_trials(laci_match *m) {
  trial next;
  m->limit = m->steps + TRIAL_STEPS;
  bool fit = true;
  m->no_memory |= !join_equal_channels_of_groups(m, &fit);
  while (!m->no_memory) {
    outcome now = fit ? refine_until_stable(m) : CONTRADICTS;
    if (now == TOO_LONG || now == STOPS) return now;
    if (now == CONTRADICTS && !m->n_trials) return CONTRADICTS;
    if (now == CONTRADICTS) {
      fit = undo_and_exclude_trial(m);
      continue;
    }
    if (!choose_trial(m, &next)) return FITS;
    fit = assume_candidate(m, next);
  }
  return STOPS;
}

/* ---- Matching the whole network ---- */

static bool add_comparison_unit(laci_match *m, laci_match_unit unit) {
  const laci_stored *stored = m->pairs[unit.stored].old;
  laci_value_axes on[LACI_MAX_RANK];
  const int n = laci_value_find_track_axes(m->a, stored->value, on);
  const int track = laci_group_slot(m->a, unit.group, unit.slot).track;
  unit.n_elements = laci_shape_count(&stored->shape);
  for (unit.item = 0; unit.item < n; unit.item++) {
    if (on[unit.item].track != track || unit.n_elements <= 0) continue;
    unit.n_others = 0;
    for (int i = 0; i < n; i++) {
      if (i != unit.item) unit.others[unit.n_others++] = on[i].track;
    }
    if (!laci_grow((void **)&m->units, m->n_units, &m->unit_capacity, sizeof unit)) return false;
    m->units[m->n_units++] = unit;
  }
  return true;
}

static bool is_pair_compared(const laci_pair *pair) {
  return !pair->gain_of && pair->old->shape.rank > 0 && lac_dtype_size(pair->old->dtype) > 0;
}

/* The stored tensors that have an axis on each track (set of axes that must have the same order).
 * Those of track t are at[first[t]] to at[first[t + 1] - 1]. */
typedef struct track_lists {
  size_t *first;
  int *at;
} track_lists;

static bool list_tensors_by_track(const laci_match *m, track_lists *to) {
  const size_t n_tracks = (size_t)laci_analysis_count_tracks(m->a);
  laci_value_axes on[LACI_MAX_RANK];
  to->first = laci_alloc(n_tracks + 2, sizeof *to->first);
  for (int pass = 0; to->first && pass < 2; pass++) {
    size_t *const fill = to->first + 2 - pass;
    for (int s = 0; s < m->a->graph->n_stored; s++) {
      if (!is_pair_compared(&m->pairs[s])) continue;
      const int n = laci_value_find_track_axes(m->a, m->pairs[s].old->value, on);
      for (int i = 0; i < n; i++) {
        bool first = true; /* counts a tensor once, even if two of its axes are tied to each other
                              (on one track) */
        for (int k = 0; k < i; k++) first = first && on[k].track != on[i].track;
        if (!first) continue;
        if (pass) to->at[fill[on[i].track]] = s;
        fill[on[i].track]++;
      }
    }
    if (pass) break;
    for (size_t t = 1; t < n_tracks + 2; t++) to->first[t] += to->first[t - 1];
    to->at = laci_alloc(to->first[n_tracks + 1], sizeof *to->at);
    if (!to->at) return false;
  }
  return to->first != NULL;
}

static bool add_comparison_units_of_tensors(laci_match *m) {
  track_lists lists = {0};
  bool ok = list_tensors_by_track(m, &lists);
  for (int g = 0; ok && g < m->a->n_groups; g++) {
    for (int s = 0; ok && m->groups[g].n && s < laci_group_count_slots(m->a, g); s++) {
      const int track = laci_group_slot(m->a, g, s).track;
      for (size_t i = lists.first[track]; ok && i < lists.first[track + 1]; i++)
        ok =
            add_comparison_unit(m, (laci_match_unit){.group = g, .slot = s, .stored = lists.at[i]});
    }
  }
  laci_free(lists.first);
  laci_free(lists.at);
  return ok;
}

static int compare_unit_sizes(const void *x, const void *y) {
  const laci_match_unit *a = x, *b = y;
  if (a->n_elements != b->n_elements) return a->n_elements < b->n_elements ? -1 : 1;
  if (a->group != b->group) return a->group < b->group ? -1 : 1;
  if (a->stored != b->stored) return a->stored < b->stored ? -1 : 1;
  return a->slot != b->slot ? a->slot - b->slot : a->item - b->item;
}

static bool init_group_candidates(laci_match *m, int group) {
  laci_match_group *g = &m->groups[group];
  const size_t n = (size_t)m->a->groups[group].n_channels, n_words = (n + 63) / 64;
  *g = (laci_match_group){.n = (int)n, .n_words = (int)n_words, .n_open = n > 1 ? (int)n : 0};
  g->may = laci_arena_alloc(&m->arena, n * n_words, sizeof *g->may);
  g->only = laci_arena_alloc(&m->arena, n, sizeof *g->only);
  g->alike = laci_arena_alloc(&m->arena, n, sizeof *g->alike);
  g->n_alike = laci_arena_alloc(&m->arena, n, sizeof *g->n_alike);
  g->component = laci_arena_alloc(&m->arena, 2 * n, sizeof *g->component);
  if (!g->may || !g->only || !g->alike || !g->n_alike || !g->component) return false;
  for (size_t c = 0; c < n; c++) {
    g->only[c] = n > 1 ? -1 : 0;
    g->alike[c] = (int32_t)c;
    g->n_alike[c] = 1;
    for (size_t w = 0; w < n_words; w++)
      g->may[c * n_words + w] = n - w * 64 >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << (n % 64)) - 1;
  }
  m->limit += (uint64_t)n * (uint64_t)n * STEPS_AN_ELEMENT;
  for (int s = 0; s < laci_group_count_slots(m->a, group); s++)
    m->track_open[laci_group_slot(m->a, group, s).track] += g->n_open;
  return true;
}

static bool init_track_colours(laci_match *m) {
  for (size_t u = 0; u < m->n_units; u++) {
    m->limit += (uint64_t)m->units[u].n_elements * STEPS_AN_ELEMENT;
    for (int i = 0; i < m->units[u].n_others; i++) {
      const int t = m->units[u].others[i];
      if (m->fresh_colour[t]) continue;
      const size_t n = (size_t)laci_track_count_positions(m->a, t);
      uint64_t *colours = m->fresh_colour[t] = laci_arena_alloc(&m->arena, 2 * n, sizeof *colours);
      if (!colours) return false;
      m->old_colour[t] = colours + n;
      for (size_t p = 0; p < n; p++) colours[p] = colours[n + p] = laci_hash_bits(p + 1);
    }
  }
  return true;
}

static bool match_init(laci_match *m) {
  const size_t n_tracks = (size_t)laci_analysis_count_tracks(m->a),
               n_groups = (size_t)m->a->n_groups;
  m->groups = laci_arena_alloc(&m->arena, n_groups, sizeof *m->groups);
  m->fresh_colour = laci_arena_alloc(&m->arena, n_tracks, sizeof *m->fresh_colour);
  m->old_colour = laci_arena_alloc(&m->arena, n_tracks, sizeof *m->old_colour);
  m->track_round = laci_arena_alloc(&m->arena, n_tracks, sizeof *m->track_round);
  m->track_open = laci_arena_alloc(&m->arena, n_tracks, sizeof *m->track_open);
  bool ok = m->groups && m->fresh_colour && m->old_colour && m->track_round && m->track_open;
  m->limit = TRIAL_STEPS;
  for (int g = 0; ok && g < m->a->n_groups; g++)
    ok = m->a->groups[g].frozen || init_group_candidates(m, g);
  ok = ok && add_comparison_units_of_tensors(m) && init_track_colours(m);
  if (!ok) return false;
  if (m->n_units) qsort(m->units, m->n_units, sizeof *m->units, compare_unit_sizes);
  for (int g = 0; g < m->a->n_groups; g++) {
    if (m->groups[g].n) copy_colours_to_tracks(m, g);
  }
  return true;
}

/* Writes the order of a group. Each new channel gets one of the old channels equal to its
 * candidate, the one at its own position if possible. */
static bool write_group_order(laci_match *m, int group) {
  const laci_match_group *g = &m->groups[group];
  int32_t *order = m->plan->found[group].order;
  uint8_t *used = laci_alloc((size_t)g->n, 1);
  if (!used) return false;
  for (int c = 0; c < g->n; c++) {
    order[c] = g->alike[c] == g->only[c] ? c : -1;
    if (order[c] == c) used[c] = 1;
  }
  for (int c = 0; c < g->n; c++) {
    for (int o = g->only[c]; order[c] < 0 && o < g->n; o++) {
      if (g->alike[o] == g->only[c] && !used[o]) order[c] = o;
    }
    if (order[c] >= 0) used[order[c]] = 1;
  }
  laci_free(used);
  return true;
}

static lac_status fail_by_outcome(const laci_match *m, outcome found, lac_error *err) {
  if (m->no_memory) return laci_fail_memory(err, "the match");
  if (found == FITS) return LAC_OK;
  if (found == STOPS) return laci_fail(err, LAC_INTERRUPTED, "interrupted");
  if (found == TOO_LONG)
    return laci_fail(err, LAC_PROOF_FAILED,
                     "the order of channels was not found within %" PRIu64 " comparisons",
                     m->steps);
  if (m->lost_group >= 0)
    return laci_fail(err, LAC_PROOF_FAILED,
                     "group %d: channel %d is none of the original's channels", m->lost_group + 1,
                     m->lost);
  return laci_fail(err, LAC_PROOF_FAILED, "its channels are the original's in no order");
}

lac_status laci_match_orders(laci_plan *plan, const laci_pair *pairs, lac_error *err) {
  laci_match m = {.plan = plan, .a = plan->analysis, .pairs = pairs, .lost_group = -1};
  outcome found = FITS;
  m.no_memory = !match_init(&m);
  if (!m.no_memory) found = refine_until_stable(&m);
  bool open = false;
  for (int g = 0; !m.no_memory && g < m.a->n_groups; g++) open |= m.groups[g].n_open > 0;
  if (!m.no_memory && found == FITS && open) found = search_by_trials(&m);
  for (int g = 0; !m.no_memory && found == FITS && g < m.a->n_groups; g++)
    m.no_memory = m.groups[g].n && !write_group_order(&m, g);
  const lac_status st = fail_by_outcome(&m, found, err);
  laci_free(m.units);
  laci_free(m.undone);
  laci_free(m.trials);
  laci_arena_clear(&m.arena);
  return st;
}
