/* SPDX-License-Identifier: Apache-2.0
 * Creates and changes tracks, links, tags and frozen positions; tracks_in.h defines them. */
#include "analyze/tracks_in.h"
#include "graph/graph.h"

#include <string.h>

int laci_track_create(laci_tracks *t, int64_t n, bool sourced) {
  laci_budget_add(&t->budget, laci_count_bytes_saturated(n, LACI_POSITION_BYTES),
                  "axes of %lld positions", (long long)n);
  if (n < 0 || n > LACI_TRACK_LIMIT || !laci_budget_allows(&t->budget, 0) ||
      !laci_grow((void **)&t->tracks, t->n_tracks, &t->track_capacity, sizeof *t->tracks)) {
    t->no_memory = true;
    return -1;
  }
  int id = (int)t->n_tracks++;
  t->tracks[id] = (laci_track){.parent = id, .n = n, .sourced = sourced};
  return id;
}

int laci_track_find_root(const laci_tracks *t, int track) {
  laci_track *all = t->tracks;
  while (all[track].parent != track) {
    all[track].parent = all[all[track].parent].parent; /* path halving */
    track = all[track].parent;
  }
  return track;
}

laci_track *laci_track_find_root_record(const laci_tracks *t, int track) {
  return &t->tracks[laci_track_find_root(t, track)];
}

static uint64_t mix_hashes(uint64_t a, uint64_t b) {
  uint64_t x = a * 0x9E3779B97F4A7C15u + b;
  x ^= x >> 32;
  x *= 0xD6E8FEB86659FD93u;
  x ^= x >> 29;
  return x * 0xD6E8FEB86659FD93u + 1;
}

/* Merges track `from` into `into`: position by position, the colours and the causes of frozen
 * positions. */
static void merge_tracks(laci_track *into, laci_track *from) {
  if (from->colour) {
    if (into->colour) {
      for (int64_t p = 0; p < into->n; p++)
        into->colour[p] = mix_hashes(into->colour[p], from->colour[p]);
      laci_free(from->colour);
    } else {
      into->colour = from->colour;
    }
    from->colour = NULL;
  }
  if (from->frozen) {
    if (into->frozen) {
      for (int64_t p = 0; p < into->n; p++) {
        int32_t other = from->frozen[p];
        if (other >= 0 && (into->frozen[p] < 0 || other < into->frozen[p])) into->frozen[p] = other;
      }
      laci_free(from->frozen);
    } else {
      into->frozen = from->frozen;
    }
    into->all_frozen |= from->all_frozen;
    from->frozen = NULL;
  }
  if (from->fill) {
    if (into->fill) {
      for (int64_t p = 0; p < into->n; p++) into->fill[p] |= from->fill[p];
      laci_free(from->fill);
    } else {
      into->fill = from->fill;
    }
    from->fill = NULL;
  }
  into->sourced |= from->sourced;
}

int laci_track_merge(laci_tracks *t, int a, int b) {
  a = laci_track_find_root(t, a);
  b = laci_track_find_root(t, b);
  if (a == b) return a;
  int root = a < b ? a : b,
      /* the smaller id becomes the root, so that root ids do not depend on the order of unions */
      other = a < b ? b : a;
  merge_tracks(&t->tracks[root], &t->tracks[other]);
  laci_budget_subtract(&t->budget,
                       laci_count_bytes_saturated(t->tracks[other].n, LACI_POSITION_BYTES));
  t->tracks[other].parent = root;
  return root;
}

void laci_link_add_runs(laci_tracks *t, laci_link link) {
  if (!link.to || !laci_grow((void **)&t->links, t->n_links, &t->link_capacity, sizeof *t->links)) {
    laci_free(link.to);
    laci_free(link.copy);
    t->no_memory = true;
    return;
  }
  t->links[t->n_links++] = link;
}

void laci_link_add(laci_tracks *t, int node, int big_track, int small_track,
                   int32_t *small_position, int32_t *copy_number) {
  int64_t n = laci_track_find_root_record(t, big_track)->n;
  laci_link_add_runs(t, (laci_link){.node = node,
                                    .big = big_track,
                                    .small = small_track,
                                    .n = n,
                                    .run = n,
                                    .stride = n,
                                    .to = small_position,
                                    .copy = copy_number});
}

int laci_freeze_cause_create(laci_tracks *t, int node, int value, const char *text) {
  char *copy = laci_arena_text(&t->arena, text);
  if (!copy ||
      !laci_grow((void **)&t->causes, t->n_causes, &t->cause_capacity, sizeof *t->causes)) {
    t->no_memory = true;
    return 0;
  }
  t->causes[t->n_causes] = (laci_cause){.node = node, .value = value, .text = copy};
  return (int)t->n_causes++;
}

static bool allocate_frozen_positions(laci_tracks *t, laci_track *track) {
  if (track->frozen) return true;
  track->frozen = laci_alloc((size_t)track->n, sizeof *track->frozen);
  if (!track->frozen) {
    t->no_memory = true;
    return false;
  }
  for (int64_t p = 0; p < track->n; p++) track->frozen[p] = -1;
  return true;
}

void laci_track_freeze(laci_tracks *t, int id, int cause) {
  laci_track *track = laci_track_find_root_record(t, id);
  if (track->all_frozen || !allocate_frozen_positions(t, track)) return;
  for (int64_t p = 0; p < track->n; p++) {
    if (track->frozen[p] < 0) track->frozen[p] = cause;
  }
  track->all_frozen = true;
}

void laci_track_freeze_at(laci_tracks *t, int id, int64_t position, int cause) {
  laci_track *track = laci_track_find_root_record(t, id);
  if (allocate_frozen_positions(t, track) && track->frozen[position] < 0)
    track->frozen[position] = cause;
}

void laci_track_add_tag(laci_tracks *t, int id, uint64_t salt, const int32_t *index) {
  laci_track *track = laci_track_find_root_record(t, id);
  if (!track->colour) track->colour = laci_alloc((size_t)track->n, sizeof *track->colour);
  if (!track->colour) {
    t->no_memory = true;
    return;
  }
  for (int64_t p = 0; p < track->n; p++) {
    uint64_t label = mix_hashes(salt, (uint64_t)(index ? index[p] : p));
    track->colour[p] = mix_hashes(track->colour[p], label);
  }
}

laci_axis_set laci_axis_set_of_single_axis(int track, int axis) {
  return (laci_axis_set){.track = track, .n_axes = 1, .axes = {(int8_t)axis}};
}

void laci_layout_add_axis_set(laci_tracks *t, int value, const laci_axis_set *axis_set) {
  laci_layout *layout = &t->layouts[value];
  int id = layout->n_axis_sets++;
  layout->axis_sets[id] = *axis_set;
  for (int k = 0; k < axis_set->n_axes; k++) layout->set[axis_set->axes[k]] = id;
}

int64_t laci_axis_set_index_along_axis(const laci_axis_set *axis_set, const laci_shape *shape,
                                       int which, int64_t position) {
  for (int k = axis_set->n_axes - 1; k > which; k--) position /= shape->dims[axis_set->axes[k]];
  return position % shape->dims[axis_set->axes[which]];
}

void laci_layout_freeze_axis(laci_tracks *t, int value, int axis, int cause) {
  laci_layout *layout = &t->layouts[value];
  if (layout->rank < 0 || layout->set[axis] < 0) return;
  const laci_axis_set *axis_set = &layout->axis_sets[layout->set[axis]];
  laci_track *track = laci_track_find_root_record(t, axis_set->track);
  if (axis_set->n_axes == 1) {
    laci_track_freeze(t, axis_set->track, cause);
    return;
  }
  /* The frozen axis is one of several in an axis set. So channels may move along the other axes
   * only, within one index of this axis. */
  int which = 0;
  while (axis_set->axes[which] != axis) which++;
  int32_t *index = laci_alloc((size_t)track->n, sizeof *index);
  if (!index) {
    t->no_memory = true;
    return;
  }
  const laci_shape *shape = &t->graph->values[value].type.shape;
  for (int64_t p = 0; p < track->n; p++)
    index[p] = (int32_t)laci_axis_set_index_along_axis(axis_set, shape, which, p);
  laci_track_add_tag(t, axis_set->track, 0x0F1Du + (uint64_t)cause, index);
  laci_free(index);
}

void laci_layout_freeze_all_axes(laci_tracks *t, int value, int cause) {
  const laci_layout *layout = &t->layouts[value];
  if (layout->rank < 0) return;
  for (int b = 0; b < layout->n_axis_sets; b++)
    laci_track_freeze(t, layout->axis_sets[b].track, cause);
}

void laci_tracks_clear(laci_tracks *t) {
  for (size_t i = 0; i < t->n_tracks; i++) {
    laci_free(t->tracks[i].colour);
    laci_free(t->tracks[i].frozen);
    laci_free(t->tracks[i].fill);
  }
  for (size_t i = 0; i < t->n_links; i++) {
    laci_free(t->links[i].to);
    laci_free(t->links[i].copy);
  }
  laci_free(t->tracks);
  laci_free(t->links);
  laci_free(t->causes);
  laci_free(t->count);
  laci_free(t->layouts);
  laci_free(t->matters);
  laci_arena_clear(&t->arena);
  *t = (laci_tracks){0};
}
