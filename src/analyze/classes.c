/* SPDX-License-Identifier: Apache-2.0
 * Finds classes: connected components of positions by union-find, then a canonical walk over each
 * component that may move.
 *
 * The walk starts at a position on the track where the component has the fewest positions. It
 * follows links, which tie positions of two tracks (tracks_in.h), and hashes what it visits. From
 * each position it takes the edges to small tracks of links first, then those to big tracks, by
 * link and copy. Components of equal hash are exchangeable, and their positions are matched in the
 * order in which the walks met them. laci_classes_check_orders checks a result again, link by link.
 */
#include "analyze/classes_in.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/tracks_in.h"
#include "base/error.h"
#include "base/union_find.h"

/* Limits for one component: number of positions from which a canonical walk is tried, and number of
 * positions that all its walks visit together. */
enum { MAX_ROOTS = 4096, MAX_WALK = 1 << 22 };

/* An edge of the graph of positions: a link (tracks_in.h) ties a position of its smaller track to
 * position `to` of its larger one. */
typedef struct down_edge {
  int32_t link, copy;
  int64_t to;
} down_edge;

/* An edge in the other direction: from a position of a link's larger track to its smaller one,
 * given by the link's entry number `entry`. */
typedef struct up_edge {
  int32_t link, entry;
} up_edge;

typedef struct walker {
  const laci_tracks *t;
  laci_classes *out;
  int64_t n;
  int32_t *track_of;   /* [n] the track (set of tied axes, tracks_in.h) of each position */
  int64_t *down_first; /* [n + 1] index in `down` of each position's first edge */
  down_edge *down;
  int64_t *member_first; /* [n_components + 1] index in `member` of each component's first position
                            */
  int64_t *member;       /* the positions of each component, ascending */
  up_edge *up;           /* edges from positions of larger tracks to smaller ones; those of position
                            v begin at up_first[v] */
  int64_t *up_first;     /* [n + 1] index in `up` of each position's first edge */
  int32_t *seen;         /* [n] 1, 2 ...: the order in which a walk visited the positions; 0: not
                            visited */
  int64_t *queue;        /* [n] positions that a walk has still to visit */
  int64_t *best;         /* [n] each component's positions in the order of its canonical walk; those
                            of component c begin at member_first[c] */
  int32_t n_components;
} walker;

typedef struct signature {
  uint64_t a, b;
} signature;

typedef struct component {
  int32_t id;
  int64_t size;
  signature sign;
  int64_t root;
} component;

static signature add_to_signature(signature s, uint64_t x) {
  s.a = (s.a ^ x) * 0x9FB21C651E98DF25u;
  s.a ^= s.a >> 31;
  s.b = (s.b + x) * 0xC2B2AE3D27D4EB4Fu;
  s.b = (s.b << 27) | (s.b >> 37);
  return s;
}

/* Gives each position of each root track a number; the tracks follow one after the other. */
static bool assign_position_numbers(walker *w) {
  const laci_tracks *t = w->t;
  w->out->first = laci_alloc(t->n_tracks, sizeof *w->out->first);
  if (!w->out->first) return false;
  for (size_t i = 0; i < t->n_tracks; i++) {
    w->out->first[i] = t->tracks[i].parent == (int)i ? w->n : -1;
    if (t->tracks[i].parent == (int)i) w->n += t->tracks[i].n;
  }
  if (w->n > INT32_MAX) return false;
  w->out->n_positions = w->n;
  size_t n = (size_t)w->n;
  w->track_of = laci_alloc(n, sizeof *w->track_of);
  w->out->class_of = laci_alloc(n, sizeof *w->out->class_of);
  w->out->cause_of = laci_alloc(n, sizeof *w->out->cause_of);
  w->out->component_of = laci_alloc(n, sizeof *w->out->component_of);
  w->seen = laci_alloc(n, sizeof *w->seen);
  w->queue = laci_alloc(n, sizeof *w->queue);
  w->best = laci_alloc(n, sizeof *w->best);
  w->member = laci_alloc(n, sizeof *w->member);
  if (!w->track_of || !w->out->class_of || !w->out->cause_of || !w->out->component_of || !w->seen ||
      !w->queue || !w->best || !w->member) {
    return false;
  }
  for (size_t i = 0; i < t->n_tracks; i++) {
    for (int64_t p = 0; w->out->first[i] >= 0 && p < t->tracks[i].n; p++) {
      w->track_of[w->out->first[i] + p] = (int32_t)i;
    }
  }
  return true;
}

static int64_t find_position_number(const walker *w, int track, int64_t position) {
  return w->out->first[laci_track_find_root(w->t, track)] + position;
}

static bool find_connected_components(walker *w) {
  int64_t *parent = w->queue; /* the queue is free for use before the first walk */
  for (int64_t v = 0; v < w->n; v++) parent[v] = v;
  for (size_t l = 0; l < w->t->n_links; l++) {
    const laci_link *link = &w->t->links[l];
    for (int64_t i = 0; i < link->n; i++) {
      if (link->to[i] < 0) continue;
      laci_unite(parent, find_position_number(w, link->big, laci_link_position_of_entry(link, i)),
                 find_position_number(w, link->small, link->to[i]));
    }
  }
  for (int64_t v = 0; v < w->n; v++) {
    if (laci_find_root(parent, v) == v) w->out->component_of[v] = w->n_components++;
  }
  w->member_first = laci_alloc((size_t)w->n_components + 1, sizeof *w->member_first);
  if (!w->member_first) return false;
  for (int64_t v = 0; v < w->n; v++) {
    w->out->component_of[v] = w->out->component_of[laci_find_root(parent, v)];
    w->member_first[w->out->component_of[v] + 1]++;
  }
  for (int32_t c = 0; c < w->n_components; c++) w->member_first[c + 1] += w->member_first[c];
  int64_t *at = w->best; /* free for use as well */
  for (int32_t c = 0; c < w->n_components; c++) at[c] = w->member_first[c];
  for (int64_t v = 0; v < w->n; v++) w->member[at[w->out->component_of[v]]++] = v;
  return true;
}

static int compare_edges(const void *a, const void *b) {
  const down_edge *x = a, *y = b;
  if (x->link != y->link) return x->link < y->link ? -1 : 1;
  if (x->copy != y->copy) return x->copy < y->copy ? -1 : 1;
  return x->to < y->to ? -1 : x->to > y->to;
}

/* Counts the edges that begin at each position, and computes the index of the first. */
static void count_edges(walker *w) {
  const laci_tracks *t = w->t;
  for (size_t l = 0; l < t->n_links; l++) {
    const laci_link *link = &t->links[l];
    int64_t big = find_position_number(w, link->big, 0),
            small = find_position_number(w, link->small, 0);
    for (int64_t i = 0; i < link->n; i++) {
      if (link->to[i] < 0) continue;
      w->up_first[big + laci_link_position_of_entry(link, i) + 1]++;
      w->down_first[small + link->to[i] + 1]++;
    }
  }
  for (int64_t v = 0; v < w->n; v++) {
    w->up_first[v + 1] += w->up_first[v];
    w->down_first[v + 1] += w->down_first[v];
  }
}

/* Fills in the edges. up_at, down_at: [n] scratch counters, zero before the call. */
static void fill_edges(walker *w, int32_t *up_at, int32_t *down_at) {
  const laci_tracks *t = w->t;
  for (size_t l = 0; l < t->n_links; l++) {
    const laci_link *link = &t->links[l];
    int64_t big = find_position_number(w, link->big, 0),
            small = find_position_number(w, link->small, 0);
    for (int64_t i = 0; i < link->n; i++) {
      if (link->to[i] < 0) continue;
      int64_t above = big + laci_link_position_of_entry(link, i), below = small + link->to[i];
      w->up[w->up_first[above] + up_at[above]++] =
          (up_edge){.link = (int32_t)l, .entry = (int32_t)i};
      w->down[w->down_first[below] + down_at[below]++] =
          (down_edge){.link = (int32_t)l, .copy = link->copy ? link->copy[i] : 0, .to = above};
    }
  }
}

static bool index_link_edges(walker *w) {
  size_t n = (size_t)w->n;
  w->down_first = laci_alloc(n + 1, sizeof *w->down_first);
  w->up_first = laci_alloc(n + 1, sizeof *w->up_first);
  if (!w->down_first || !w->up_first) return false;
  count_edges(w);
  w->down = laci_alloc((size_t)w->down_first[w->n], sizeof *w->down);
  w->up = laci_alloc((size_t)w->up_first[w->n], sizeof *w->up);
  int32_t *fill = laci_alloc(2 * n, sizeof *fill);
  bool ok = w->down && w->up && fill;
  if (ok) fill_edges(w, fill, fill + n);
  for (int64_t v = 0; ok && v < w->n; v++) {
    qsort(w->down + w->down_first[v], (size_t)(w->down_first[v + 1] - w->down_first[v]),
          sizeof *w->down, compare_edges);
  }
  laci_free(fill);
  return ok;
}

/* Returns the index of the cause that freezes component c; -1: none of its positions is frozen.
 * *sourced: some position has content of a stored tensor. If not, the component is frozen, too. */
static int32_t find_freeze_cause(const walker *w, int32_t c, bool *sourced) {
  int32_t cause = -1;
  *sourced = false;
  for (int64_t i = w->member_first[c]; i < w->member_first[c + 1]; i++) {
    int64_t v = w->member[i], p = v - w->out->first[w->track_of[v]];
    const laci_track *track = &w->t->tracks[w->track_of[v]];
    if (track->frozen && track->frozen[p] >= 0 && (cause < 0 || track->frozen[p] < cause))
      cause = track->frozen[p];
    *sourced |= track->sourced || (track->fill && track->fill[p]);
  }
  return cause;
}

static void visit_position_once(walker *w, int64_t v, int64_t *n_queued, signature *s) {
  if (!w->seen[v]) {
    w->queue[*n_queued] = v;
    w->seen[v] = (int32_t)++ * n_queued;
  }
  *s = add_to_signature(*s, (uint64_t)w->seen[v]);
}

/* Walks the component from position `root` in an order that depends on its structure alone. Returns
 * a hash of the walk; w->queue then has the visited positions. */
static signature hash_canonical_walk(walker *w, int64_t root) {
  signature s = {1, 2};
  int64_t n_queued = 0;
  visit_position_once(w, root, &n_queued, &s);
  for (int64_t q = 0; q < n_queued; q++) {
    int64_t v = w->queue[q], p = v - w->out->first[w->track_of[v]];
    int track = w->track_of[v];
    s = add_to_signature(s, (uint64_t)track);
    if (w->t->tracks[track].colour) s = add_to_signature(s, w->t->tracks[track].colour[p]);
    for (int64_t u = w->up_first[v]; u < w->up_first[v + 1]; u++) {
      const laci_link *link = &w->t->links[w->up[u].link];
      int32_t at = w->up[u].entry;
      s = add_to_signature(s, (uint64_t)w->up[u].link * 2 + 1);
      s = add_to_signature(s, (uint64_t)(link->copy ? link->copy[at] : 0));
      visit_position_once(w, find_position_number(w, link->small, link->to[at]), &n_queued, &s);
    }
    for (int64_t d = w->down_first[v]; d < w->down_first[v + 1]; d++) {
      s = add_to_signature(s, (uint64_t)w->down[d].link * 2);
      s = add_to_signature(s, (uint64_t)w->down[d].copy);
      visit_position_once(w, w->down[d].to, &n_queued, &s);
    }
  }
  for (int64_t q = 0; q < n_queued; q++) w->seen[w->queue[q]] = 0;
  return s;
}

/* Returns the track (set of tied axes) on which the component has the fewest positions, the lowest
 * id among equals. */
static int find_track_with_fewest_positions(const walker *w, int32_t c, int64_t *count) {
  int best = -1, current = -1;
  int64_t run = 0;
  *count = INT64_MAX;
  for (int64_t i = w->member_first[c]; i <= w->member_first[c + 1]; i++) {
    int track = i < w->member_first[c + 1] ? w->track_of[w->member[i]] : -1;
    if (track == current) {
      run++;
      continue;
    }
    if (current >= 0 && run < *count) {
      *count = run;
      best = current;
    }
    current = track;
    run = 1;
  }
  return best;
}

static void compute_component_signature(walker *w, component *comp) {
  int64_t first = w->member_first[comp->id], last = w->member_first[comp->id + 1], count;
  int track = find_track_with_fewest_positions(w, comp->id, &count);
  int64_t tried = 0;
  bool have = false;
  for (int64_t i = first; i < last && tried < MAX_ROOTS && tried * comp->size <= MAX_WALK; i++) {
    if (w->track_of[w->member[i]] != track) continue;
    tried++;
    signature s = hash_canonical_walk(w, w->member[i]);
    if (have && (s.a > comp->sign.a || (s.a == comp->sign.a && s.b >= comp->sign.b))) continue;
    have = true;
    comp->sign = s;
    comp->root = w->member[i];
    memcpy(w->best + first, w->queue, (size_t)comp->size * sizeof *w->queue);
  }
  /* the component is too large to compare, so it gets a unique signature and a class of its own */
  if (tried < count) comp->sign = (signature){(uint64_t)comp->id, 0};
}

static int compare_components(const void *a, const void *b) {
  const component *x = a, *y = b;
  if (x->size != y->size) return x->size < y->size ? -1 : 1;
  if (x->sign.a != y->sign.a) return x->sign.a < y->sign.a ? -1 : 1;
  if (x->sign.b != y->sign.b) return x->sign.b < y->sign.b ? -1 : 1;
  return x->root < y->root ? -1 : x->root > y->root;
}

static bool has_same_class(const component *a, const component *b) {
  return a->size == b->size && a->sign.a == b->sign.a && a->sign.b == b->sign.b;
}

static bool create_class(walker *w, const component *members, int n) {
  laci_class *class = &w->out->classes[w->out->n_classes];
  int n_slots = (int)members[0].size;
  int32_t *track = laci_arena_alloc(&w->out->arena, (size_t)n_slots, sizeof *track);
  int32_t *position =
      laci_arena_alloc(&w->out->arena, (size_t)n_slots * (size_t)n, sizeof *position);
  if (!track || !position) return false;
  for (int c = 0; c < n; c++) {
    const int64_t *met = w->best + w->member_first[members[c].id];
    for (int s = 0; s < n_slots; s++) {
      track[s] = w->track_of[met[s]];
      position[(int64_t)s * n + c] = (int32_t)(met[s] - w->out->first[track[s]]);
      w->out->class_of[met[s]] = w->out->n_classes;
    }
  }
  *class = (laci_class){.n_channels = n, .n_slots = n_slots, .track = track, .position = position};
  w->out->n_classes++;
  return true;
}

static bool group_components_into_classes(walker *w, component *free_ones, int n_free) {
  qsort(free_ones, (size_t)n_free, sizeof *free_ones, compare_components);
  w->out->classes = laci_alloc((size_t)n_free, sizeof *w->out->classes);
  if (!w->out->classes) return false;
  for (int i = 0; i < n_free;) {
    int n = 1;
    while (i + n < n_free && has_same_class(&free_ones[i], &free_ones[i + n])) n++;
    if (!create_class(w, free_ones + i, n)) return false;
    i += n;
  }
  return true;
}

static bool classify_or_freeze_positions(walker *w, int32_t no_source) {
  component *free_ones = laci_alloc((size_t)w->n_components, sizeof *free_ones);
  if (!free_ones) return false;
  int n_free = 0;
  for (int32_t c = 0; c < w->n_components; c++) {
    bool sourced;
    int32_t cause = find_freeze_cause(w, c, &sourced);
    if (cause < 0 && !sourced) cause = no_source;
    for (int64_t i = w->member_first[c]; i < w->member_first[c + 1]; i++) {
      w->out->class_of[w->member[i]] = -1;
      w->out->cause_of[w->member[i]] = cause;
    }
    if (cause >= 0) continue;
    component *comp = &free_ones[n_free++];
    *comp = (component){.id = c, .size = w->member_first[c + 1] - w->member_first[c]};
    compute_component_signature(w, comp);
  }
  bool ok = group_components_into_classes(w, free_ones, n_free);
  laci_free(free_ones);
  return ok;
}

lac_status laci_classes_find(const laci_tracks *t, laci_classes *classes, lac_error *err) {
  *classes = (laci_classes){0};
  walker w = {.t = t, .out = classes};
  bool ok = assign_position_numbers(&w) && find_connected_components(&w) && index_link_edges(&w) &&
            classify_or_freeze_positions(&w, 0);
  laci_free(w.track_of);
  laci_free(w.down_first);
  laci_free(w.down);
  laci_free(w.member_first);
  laci_free(w.member);
  laci_free(w.up);
  laci_free(w.up_first);
  laci_free(w.seen);
  laci_free(w.queue);
  laci_free(w.best);
  if (ok) return LAC_OK;
  laci_classes_clear(classes);
  return laci_fail_memory(err, "the channels' classes");
}

void laci_classes_clear(laci_classes *classes) {
  laci_free(classes->classes);
  laci_free(classes->first);
  laci_free(classes->class_of);
  laci_free(classes->cause_of);
  laci_free(classes->component_of);
  laci_arena_clear(&classes->arena);
  *classes = (laci_classes){0};
}

/* Checks the order of one track; -1: correct. Each new position must come from an old position of
 * the same colour (tracks_in.h), no old position may be used twice, and frozen positions must not
 * move. Returns the first position that violates this. */
static int64_t find_violation_in_track(const laci_track *track, const int32_t *order,
                                       uint8_t *taken) {
  memset(taken, 0, (size_t)track->n);
  for (int64_t p = 0; p < track->n; p++) {
    int64_t from = order[p];
    bool good = from >= 0 && from < track->n && !taken[from] &&
                (!track->colour || track->colour[p] == track->colour[from]) &&
                (!track->frozen || from == p || (track->frozen[p] < 0 && track->frozen[from] < 0));
    if (!good) return p;
    taken[from] = 1;
  }
  return -1;
}

/* A link ties positions of two tracks (tracks_in.h). Returns a position of the larger track at
 * which the two tracks' orders contradict the link; -1: there is none. Only positions that the link
 * joins are checked. Orders use no position twice, so if these exchange places among themselves,
 * all other positions do so, too. */
static int64_t find_violation_in_link(const laci_link *link, const int32_t *big,
                                      const int32_t *small) {
  for (int64_t i = 0; i < link->n; i++) {
    int64_t p = laci_link_position_of_entry(link, i);
    int64_t from = big ? laci_link_find_entry(link, big[p]) : i;
    int32_t here = link->to[i], there = from < 0 ? -1 : link->to[from];
    bool good = here < 0 ? there < 0 : there >= 0 && (small ? small[here] : here) == there;
    if (good && link->copy && here >= 0) good = link->copy[i] == link->copy[from];
    if (!good) return p;
  }
  return -1;
}

bool laci_classes_check_orders(const laci_tracks *t, const laci_classes *classes,
                               int32_t *const *order, int *class) {
  int64_t longest = 0;
  for (size_t i = 0; i < t->n_tracks; i++)
    longest = t->tracks[i].n > longest ? t->tracks[i].n : longest;
  uint8_t *taken = laci_alloc((size_t)longest, 1);
  if (!taken) return false;
  int64_t miss = -1;
  for (size_t i = 0; i < t->n_tracks && miss < 0; i++) {
    if (t->tracks[i].parent != (int)i || !order[i]) continue;
    miss = find_violation_in_track(&t->tracks[i], order[i], taken);
    if (miss >= 0) miss += classes->first[i];
  }
  for (size_t l = 0; l < t->n_links && miss < 0; l++) {
    const laci_link *link = &t->links[l];
    int big = laci_track_find_root(t, link->big), small = laci_track_find_root(t, link->small);
    if (!order[big] && !order[small]) continue;
    miss = find_violation_in_link(link, order[big], order[small]);
    if (miss >= 0) miss += classes->first[big];
  }
  laci_free(taken);
  *class = -1;
  if (miss >= 0) *class = classes->class_of[miss] >= 0 ? classes->class_of[miss] : -2;
  return true;
}
