/* SPDX-License-Identifier: Apache-2.0
 * Resolves axes that an operator describes by maps: Concat, Split, Slice, Gather, Pad, channel
 * multipliers.
 *
 * An output axis with maps becomes a track of its own, linked position by position with what it
 * reads. An input axis may be combined with other axes into one channel axis (heads x size). The
 * map is then extended to all of these axes: it changes the index along its own axis, and keeps the
 * other indices. */
#include <string.h>

#include "analyze/resolve_in.h"

/* Returns n_in scratch counters, all zero. The caller must set them to zero again. NULL: no
 * memory. */
static int32_t *reserve_zeroed_counters(laci_resolve *r, int64_t n_in) {
  laci_tracks *t = r->t;
  if ((size_t)n_in > t->count_capacity || !t->count) {
    laci_free(t->count);
    t->count_capacity = (size_t)n_in;
    t->count = laci_alloc(t->count_capacity, sizeof *t->count);
    if (!t->count) {
      t->count_capacity = 0;
      t->no_memory = true;
    }
  }
  return t->count;
}

/* Returns an array: copy[i] is the number of entries before i that read the same input position, so
 * that each pair (from[i], copy[i]) occurs once. Returns NULL if all entries read different
 * positions, or without memory. */
static int32_t *number_repeated_positions(laci_resolve *r, const int32_t *from, int64_t n,
                                          int64_t n_in) {
  int32_t *copy = laci_alloc((size_t)n, sizeof *copy), *count = reserve_zeroed_counters(r, n_in);
  bool any = false;
  if (!copy) r->t->no_memory = true;
  for (int64_t i = 0; copy && count && i < n; i++) {
    if (from[i] >= 0) copy[i] = count[from[i]]++;
    any |= copy[i] > 0;
  }
  for (int64_t i = 0; copy && count && i < n; i++) {
    if (from[i] >= 0) count[from[i]] = 0;
  }
  if (any) return copy;
  laci_free(copy);
  return NULL;
}

static int32_t *copy_position_array(laci_resolve *r, const int32_t *from, int64_t n) {
  int32_t *to = laci_alloc((size_t)n, sizeof *to);
  if (!to) r->t->no_memory = true;
  else if (n) memcpy(to, from, (size_t)n * sizeof *to);
  return to;
}

static bool is_identity_map(const laci_axis_map *map, int64_t n_in) {
  if (map->n != map->n_out || map->n_out != n_in) return false;
  for (int64_t p = 0; p < map->n; p++) {
    if (map->from[p] != p) return false;
  }
  return true;
}

static bool is_map_in_range(const laci_axis_map *map, int64_t n_in) {
  for (int64_t i = 0; i < map->n; i++) {
    if (map->from[i] < -1 || map->from[i] >= n_in) return false;
  }
  return true;
}

static bool is_map_of_uniform_axis(const laci_resolve *r, const laci_axis_map *map) {
  const laci_layout *layout = laci_port_layout(r, map->in_port);
  return layout && layout->set[map->in_axis] == LACI_AXIS_UNIFORM;
}

/* Returns an array with 1 at every output position that some map fills from an input; NULL: no
 * memory. */
static uint8_t *mark_mapped_positions(laci_resolve *r, const laci_axis_map *const *maps, int n_maps,
                                      bool uniform_too) {
  uint8_t *read = laci_alloc((size_t)maps[0]->n_out, 1);
  if (!read) r->t->no_memory = true;
  for (int k = 0; read && k < n_maps; k++) {
    if (!uniform_too && is_map_of_uniform_axis(r, maps[k])) continue;
    for (int64_t i = 0; i < maps[k]->n; i++) read[maps[k]->start + i] |= maps[k]->from[i] >= 0;
  }
  return read;
}

static bool has_unread_position(const uint8_t *read, int64_t n) {
  return read && memchr(read, 0, (size_t)n) != NULL;
}

static void freeze_positions_of_map(laci_resolve *r, int track, const laci_axis_map *map,
                                    int cause) {
  for (int64_t i = 0; i < map->n; i++) {
    if (map->from[i] >= 0) laci_track_freeze_at(r->t, track, map->start + i, cause);
  }
}

/* ---- Maps of axes that are channel axes by themselves ---- */

/* Tags of an output track for maps of uniform inputs. Elements along a uniform input axis are
 * equal. Those of another input may differ from them, and so may copies if several maps read one
 * position (SpaceToDepth). So each map's run gets a number, and these numbers tag the track: only
 * positions with the same number may be exchanged. Maps that do not overlap share one tagging. */
typedef struct tagging {
  int32_t *index; /* [positions of the output axis] number of the map whose run each position is in;
                     0: none. NULL: no number is needed */
  int32_t last;   /* the largest number used so far */
  int nth;        /* index of the first map whose run gets a number */
} tagging;

static void apply_collected_tags(laci_resolve *r, int track, tagging *tags) {
  if (tags->index)
    laci_track_add_tag(r->t, track, 0x3C6Eu + (uint64_t)r->node_id * 4096 + (uint64_t)tags->nth,
                       tags->index);
  laci_free(tags->index);
  *tags = (tagging){0};
}

static bool has_repeated_position(const laci_axis_map *map, const int32_t *index) {
  for (int64_t i = 0; i < map->n; i++) {
    if (index[map->start + i]) return true;
  }
  return false;
}

static void tag_positions_of_uniform_map(laci_resolve *r, int track, const laci_axis_map *map,
                                         int nth, tagging *tags) {
  int64_t n_in = laci_port_value_shape(r, map->in_port)->dims[map->in_axis];
  if (!is_map_in_range(map, n_in)) {
    freeze_positions_of_map(r, track, map, laci_node_freeze_cause(r));
    return;
  }
  if (tags->index && has_repeated_position(map, tags->index)) apply_collected_tags(r, track, tags);
  if (!tags->index) {
    *tags = (tagging){.nth = nth};
    tags->index =
        laci_alloc((size_t)laci_track_find_root_record(r->t, track)->n, sizeof *tags->index);
    if (!tags->index) {
      r->t->no_memory = true;
      return;
    }
  }
  int32_t *copy = number_repeated_positions(r, map->from, map->n, n_in), first = tags->last + 1;
  for (int64_t i = 0; i < map->n; i++) {
    if (map->from[i] < 0) continue;
    int32_t number = first + (copy ? copy[i] : 0);
    tags->index[map->start + i] = number;
    tags->last = number > tags->last ? number : tags->last;
  }
  laci_free(copy);
}

/* Links each position of the output axis (on track `track`) to the input position that the map
 * reads there. */
static void link_map_to_track(laci_resolve *r, int track, const laci_axis_map *map, int nth,
                              tagging *tags) {
  const laci_layout *layout = laci_port_layout(r, map->in_port);
  int state = layout ? layout->set[map->in_axis] : LACI_AXIS_FIXED;
  if (state == LACI_AXIS_UNIFORM) {
    tag_positions_of_uniform_map(r, track, map, nth, tags);
    return;
  }
  if (state < 0) {
    freeze_positions_of_map(r, track, map,
                            layout ? layout->cause[map->in_axis] : laci_node_freeze_cause(r));
    return;
  }
  const laci_axis_set *axis_set = &layout->axis_sets[state];
  int64_t n_in = laci_track_find_root_record(r->t, axis_set->track)->n;
  if (axis_set->n_axes != 1 || axis_set->n_groups || !is_map_in_range(map, n_in)) {
    laci_track_freeze(r->t, axis_set->track, laci_node_freeze_cause(r));
    freeze_positions_of_map(r, track, map, laci_node_freeze_cause(r));
    return;
  }
  laci_link_add_runs(r->t,
                     (laci_link){.node = r->node_id,
                                 .big = track,
                                 .small = axis_set->track,
                                 .n = map->n,
                                 .start = map->start,
                                 .run = map->n,
                                 .stride = map->n_out,
                                 .to = copy_position_array(r, map->from, map->n),
                                 .copy = number_repeated_positions(r, map->from, map->n, n_in)});
}

/* Marks the positions of the output axis that no map fills: they hold a constant, which counts as
 * stored content. */
static void mark_constant_positions(laci_resolve *r, int track, const laci_axis_map *const *maps,
                                    int n_maps) {
  laci_track *out = laci_track_find_root_record(r->t, track);
  uint8_t *read = mark_mapped_positions(r, maps, n_maps, false);
  if (has_unread_position(read, out->n)) {
    if (!out->fill) out->fill = laci_alloc((size_t)out->n, 1);
    if (!out->fill) r->t->no_memory = true;
    for (int64_t p = 0; out->fill && p < out->n; p++) out->fill[p] |= !read[p];
  }
  laci_free(read);
}

/* Do the maps read only fixed axes, and fill every position of the output axis? If not, the output
 * axis needs a track (tracks_in.h): positions that no map fills are constant, and may be
 * permuted. */
static bool is_reading_only_fixed_axes(laci_resolve *r, const laci_axis_map *const *maps,
                                       int n_maps) {
  for (int i = 0; i < n_maps; i++) {
    const laci_layout *other = laci_port_layout(r, maps[i]->in_port);
    if (other && other->set[maps[i]->in_axis] != LACI_AXIS_FIXED) return false;
  }
  uint8_t *read = mark_mapped_positions(r, maps, n_maps, true);
  bool fixed = read && !has_unread_position(read, maps[0]->n_out);
  laci_free(read);
  return fixed;
}

static void resolve_simple_maps(laci_resolve *r, const laci_axis_map *const *maps, int n_maps) {
  const laci_axis_map *first = maps[0];
  laci_layout *layout = first->out_axis >= 0 ? laci_port_layout(r, first->out_port) : NULL;
  if (first->out_axis >= 0 && !layout) return;
  const laci_axis_set *in = laci_port_axis_set(r, first->in_port, first->in_axis);
  if (n_maps == 1 && in && layout && in->n_axes == 1 && !in->n_groups &&
      is_identity_map(first, laci_track_find_root_record(r->t, in->track)->n)) {
    laci_axis_set axis_set = laci_axis_set_of_single_axis(in->track, first->out_axis);
    laci_layout_add_axis_set(r->t, laci_port_value(r, first->out_port), &axis_set);
    return;
  }
  if (layout && is_reading_only_fixed_axes(r, maps, n_maps)) {
    const laci_layout *other = laci_port_layout(r, first->in_port);
    layout->set[first->out_axis] = LACI_AXIS_FIXED;
    layout->cause[first->out_axis] =
        other ? other->cause[first->in_axis] : laci_node_freeze_cause(r);
    return;
  }
  int track = laci_track_create(r->t, first->n_out, false);
  if (track < 0) return;
  tagging tags = {0};
  for (int i = 0; i < n_maps; i++) link_map_to_track(r, track, maps[i], i, &tags);
  apply_collected_tags(r, track, &tags);
  mark_constant_positions(r, track, maps, n_maps);
  if (!layout) return;
  laci_axis_set axis_set = laci_axis_set_of_single_axis(track, first->out_axis);
  laci_layout_add_axis_set(r->t, laci_port_value(r, first->out_port), &axis_set);
}

/* ---- Maps of one of several combined axes (heads x size) ---- */

/* A map that is extended to all axes that are combined with its own axis. */
typedef struct extended_map {
  int n_axes, which;           /* number of combined axes; index of the mapped axis among them */
  int label[LACI_MAX_RANK];    /* labels of the other axes */
  int64_t size[LACI_MAX_RANK]; /* sizes of the other axes */
  int out_axis[LACI_MAX_RANK]; /* each axis' number in the output; -1: a scalar index removed it */
} extended_map;

static bool describe_extended_map(const laci_resolve *r, const laci_axis_map *map,
                                  const laci_axis_set *axis_set, extended_map *out) {
  const laci_layout *layout = laci_port_layout(r, map->out_port);
  if (map->out_axis < -1 || !layout || axis_set->n_groups) return false;
  const laci_shape *shape = laci_port_value_shape(r, map->in_port);
  *out = (extended_map){.n_axes = axis_set->n_axes, .which = -1};
  for (int k = 0; k < axis_set->n_axes; k++) {
    int axis = axis_set->axes[k], label = laci_port_labels_of(r, map->in_port)->label[axis];
    out->size[k] = shape->dims[axis];
    out->label[k] = label;
    out->out_axis[k] = -1;
    if (axis == map->in_axis) {
      out->which = k;
      out->out_axis[k] = map->out_axis;
      continue;
    }
    if (label <= 0) return false;
    for (int a = 0; a < layout->rank; a++) {
      if (laci_port_labels_of(r, map->out_port)->label[a] == label &&
          layout->set[a] == LACI_AXIS_PENDING) {
        out->out_axis[k] = a;
      }
    }
    if (out->out_axis[k] < 0) return false;
  }
  return out->which >= 0;
}

/* Are the labels of the combined axes only in inputs that maps read? Any other input with such a
 * label would have to follow the same order, too. */
static bool has_no_other_reader_of_labels(const laci_resolve *r, const extended_map *l,
                                          const bool *is_mapped) {
  for (int port = 0; port < r->node->n_inputs; port++) {
    const laci_layout *layout = laci_port_layout(r, port);
    for (int a = 0; !is_mapped[port] && layout && a < layout->rank; a++) {
      for (int k = 0; k < l->n_axes; k++) {
        if (k != l->which && r->c->in[port].described && r->c->in[port].label[a] == l->label[k] &&
            layout->set[a] != LACI_AXIS_UNIFORM) {
          return false;
        }
      }
    }
  }
  return true;
}

static bool is_same_extended_map(const extended_map *a, const extended_map *b) {
  if (a->n_axes != b->n_axes || a->which != b->which) return false;
  for (int k = 0; k < a->n_axes; k++) {
    if (k != a->which && (a->label[k] != b->label[k] || a->size[k] != b->size[k])) return false;
  }
  return true;
}

/* Links each output position to the input position that it reads, for a map that was extended to
 * all combined axes. The map's run occurs once for each index of the axes before the mapped one. */
static void link_extended_map(laci_resolve *r, int track, const laci_axis_map *map,
                              const extended_map *l, int small) {
  int64_t inner = 1, outer = 1;
  for (int k = 0; k < l->which; k++) outer *= l->size[k];
  for (int k = l->which + 1; k < l->n_axes; k++) inner *= l->size[k];
  laci_link link = {.node = r->node_id,
                    .big = track,
                    .small = small,
                    .n = outer * map->n * inner,
                    .start = map->start * inner,
                    .run = map->n * inner,
                    .stride = map->n_out * inner};
  link.to = laci_alloc((size_t)link.n, sizeof *link.to);
  for (int64_t i = 0; link.to && i < link.n; i++) {
    int64_t low = i % inner, at = i / inner % map->n, high = i / link.run;
    int32_t from = map->from[at];
    link.to[i] = from < 0 ? -1 : (int32_t)((high * l->size[l->which] + from) * inner + low);
  }
  if (link.to)
    link.copy =
        number_repeated_positions(r, link.to, link.n, laci_track_find_root_record(r->t, small)->n);
  laci_link_add_runs(r->t, link);
}

/* Can the maps be extended to all combined axes (heads x size)? All must read the same combined
 * axes, and together cover each position of the output axis. Constants are not supported there. */
static bool can_extend_maps(laci_resolve *r, const laci_axis_map *const *maps, int n_maps,
                            extended_map *first) {
  extended_map other;
  bool *is_mapped = laci_alloc((size_t)r->node->n_inputs, sizeof *is_mapped), good = is_mapped;
  if (!is_mapped) r->t->no_memory = true;
  for (int i = 0; good && i < n_maps; i++) {
    const laci_axis_set *axis_set = laci_port_axis_set(r, maps[i]->in_port, maps[i]->in_axis);
    good = axis_set && describe_extended_map(r, maps[i], axis_set, i ? &other : first) &&
           (!i || is_same_extended_map(first, &other)) &&
           is_map_in_range(maps[i],
                           laci_port_value_shape(r, maps[i]->in_port)->dims[maps[i]->in_axis]);
    is_mapped[maps[i]->in_port] = true;
  }
  good = good && has_no_other_reader_of_labels(r, first, is_mapped);
  laci_free(is_mapped);
  uint8_t *read = good ? mark_mapped_positions(r, maps, n_maps, true) : NULL;
  good = read && !has_unread_position(read, maps[0]->n_out);
  laci_free(read);
  return good;
}

static bool resolve_extended_maps(laci_resolve *r, const laci_axis_map *const *maps, int n_maps) {
  extended_map first, other;
  int64_t n = maps[0]->n_out;
  if (!can_extend_maps(r, maps, n_maps, &first)) return false;
  laci_axis_set axis_set = {0};
  for (int k = 0; k < first.n_axes; k++) { /* an axis of size 1 is not part of the index */
    if (k != first.which || n > 1) axis_set.axes[axis_set.n_axes++] = (int8_t)first.out_axis[k];
    else if (first.out_axis[k] >= 0)
      laci_port_layout(r, maps[0]->out_port)->set[first.out_axis[k]] = LACI_AXIS_UNIFORM;
  }
  for (int k = 0; k < first.n_axes; k++) n *= k == first.which ? 1 : first.size[k];
  axis_set.track = laci_track_create(r->t, n, false);
  if (axis_set.track < 0) return true;
  for (int i = 0; i < n_maps; i++) {
    const laci_axis_set *in = laci_port_axis_set(r, maps[i]->in_port, maps[i]->in_axis);
    if (i) (void)describe_extended_map(r, maps[i], in, &other);
    link_extended_map(r, axis_set.track, maps[i], i ? &other : &first, in->track);
  }
  laci_layout_add_axis_set(r->t, laci_port_value(r, maps[0]->out_port), &axis_set);
  return true;
}

/* Freezes the output axis of a map, and output axes that share a label with the combined axes that
 * it reads. */
static void freeze_output_of_map(laci_resolve *r, const laci_axis_map *map,
                                 const laci_axis_set *axis_set, int port, int cause) {
  laci_layout *layout = laci_port_value(r, port) >= 0 ? laci_port_layout(r, port) : NULL;
  for (int a = 0; layout && a < layout->rank; a++) {
    int label = laci_port_labels_of(r, port)->label[a];
    bool with_it = port == map->out_port && a == map->out_axis;
    for (int k = 0; axis_set && k < axis_set->n_axes; k++) {
      int in_label = laci_port_labels_of(r, map->in_port)->label[axis_set->axes[k]];
      with_it |= label > 0 && in_label == label;
    }
    if (!with_it || layout->set[a] != LACI_AXIS_PENDING) continue;
    layout->set[a] = LACI_AXIS_FIXED;
    layout->cause[a] = cause;
  }
}

/* The state of resolving the maps (coupling.h) of one node. */
typedef struct map_walk {
  const laci_axis_map **same; /* [n_maps] the maps of one output axis */
  int *next;                  /* [n_maps] the next map of the same output, -1: none */
  int *first;                 /* [n_outputs] the first map of each output, -1: none */
  bool *done;                 /* [n_maps] the map is resolved */
  uint16_t *frozen;           /* [n_inputs] axis sets of each input whose labels froze outputs
                                 already, one bit each */
} map_walk;

/* Freezes all axes that the maps read and write: no channel may move along them. For maps that read
 * combined axes (heads x size) and cannot be extended to all of these. */
static void freeze_maps(laci_resolve *r, map_walk *w, int n_maps) {
  int cause = laci_node_freeze_cause(r);
  for (int i = 0; i < n_maps; i++) {
    const laci_axis_map *map = w->same[i];
    const laci_axis_set *axis_set = laci_port_axis_set(r, map->in_port, map->in_axis);
    if (axis_set) laci_track_freeze(r->t, axis_set->track, cause);
    /* If a scalar index removed the mapped axis, the remaining combined axes are not uniform
     * either. Done once for all maps that read the same combined axes. */
    int id = axis_set ? laci_port_layout(r, map->in_port)->set[map->in_axis] : -1;
    bool again = axis_set && (w->frozen[map->in_port] >> id & 1);
    if (axis_set) w->frozen[map->in_port] |= (uint16_t)(1 << id);
    for (int o = 0; axis_set && !again && o < r->node->n_outputs; o++)
      freeze_output_of_map(r, map, axis_set, LACI_OUT(o), cause);
    if (!axis_set || again) freeze_output_of_map(r, map, NULL, map->out_port, cause);
  }
}

static bool has_labelled_output(const laci_resolve *r, const laci_axis_map *map) {
  return map->out_axis >= 0 && laci_port_labels_of(r, map->out_port)->label[map->out_axis] > 0;
}

/* Freezes input axes that are marked MAPPED although no map reads them. */
static void freeze_unread_mapped_axes(laci_resolve *r) {
  /* [n_inputs] axes of each input that a map reads, one bit each */
  uint16_t *read = laci_alloc((size_t)r->node->n_inputs, sizeof *read);
  if (!read) {
    r->t->no_memory = true;
    return;
  }
  for (size_t i = 0; i < r->c->n_maps; i++)
    read[r->c->maps[i].in_port] |= (uint16_t)(1 << r->c->maps[i].in_axis);
  for (int port = 0; port < r->node->n_inputs; port++) {
    const laci_layout *layout = laci_port_layout(r, port);
    for (int a = 0; layout && a < layout->rank; a++) {
      bool mapped = r->c->in[port].described && r->c->in[port].label[a] == LACI_MAPPED;
      if (mapped && !(read[port] >> a & 1))
        laci_layout_freeze_axis(r->t, laci_port_value(r, port), a, laci_node_freeze_cause(r));
    }
  }
  laci_free(read);
}

static bool map_walk_init(const laci_resolve *r, map_walk *w) {
  size_t n = r->c->n_maps, n_out = (size_t)r->node->n_outputs;
  *w = (map_walk){.same = laci_alloc(n, sizeof *w->same),
                  .next = laci_alloc(n, sizeof *w->next),
                  .first = laci_alloc(n_out, sizeof *w->first),
                  .done = laci_alloc(n, sizeof *w->done),
                  .frozen = laci_alloc((size_t)r->node->n_inputs, sizeof *w->frozen)};
  if (!w->same || !w->next || !w->first || !w->done || !w->frozen) return false;
  for (size_t o = 0; o < n_out; o++) w->first[o] = -1;
  for (size_t i = n; i-- > 0;) {
    int *first = &w->first[LACI_OUT(r->c->maps[i].out_port)];
    w->next[i] = *first;
    *first = (int)i;
  }
  return true;
}

static void map_walk_clear(map_walk *w) {
  laci_free(w->same);
  laci_free(w->next);
  laci_free(w->first);
  laci_free(w->done);
  laci_free(w->frozen);
}

/* Resolves map `i` together with the later maps of the same output axis. */
static void resolve_maps_of_axis(laci_resolve *r, map_walk *w, int i) {
  const laci_axis_map *map = &r->c->maps[i];
  int n_same = 0;
  bool is_combined = false;
  for (int j = i; j >= 0; j = map->out_axis == -1 ? -1 : w->next[j]) {
    const laci_axis_map *other = &r->c->maps[j];
    if (other->out_axis != map->out_axis) continue;
    w->done[j] = true;
    if (other->n_out != map->n_out) continue;
    w->same[n_same++] = other;
    const laci_axis_set *axis_set = laci_port_axis_set(r, other->in_port, other->in_axis);
    is_combined |= axis_set && axis_set->n_axes > 1;
  }
  if (!is_combined) resolve_simple_maps(r, w->same, n_same);
  else if (!resolve_extended_maps(r, w->same, n_same)) freeze_maps(r, w, n_same);
}

void laci_resolve_axis_maps(laci_resolve *r) {
  map_walk w;
  freeze_unread_mapped_axes(r);
  if (!map_walk_init(r, &w)) r->t->no_memory = true;
  for (size_t i = 0; !r->t->no_memory && i < r->c->n_maps; i++) {
    if (!w.done[i] && !has_labelled_output(r, &r->c->maps[i])) resolve_maps_of_axis(r, &w, (int)i);
  }
  map_walk_clear(&w);
}

void laci_resolve_labelled_axis_maps(laci_resolve *r) {
  for (size_t i = 0; i < r->c->n_maps; i++) {
    const laci_axis_map *map = &r->c->maps[i];
    if (!has_labelled_output(r, map)) continue;
    const laci_axis_set *out = laci_port_axis_set(r, map->out_port, map->out_axis);
    const laci_axis_set *in = laci_port_axis_set(r, map->in_port, map->in_axis);
    if (out && out->n_axes == 1 && laci_track_find_root_record(r->t, out->track)->n == map->n_out) {
      tagging tags = {0};
      link_map_to_track(r, out->track, map, (int)i, &tags);
      apply_collected_tags(r, out->track, &tags);
      continue;
    }
    /* The output axis is frozen and not uniform, so the input positions that it reads are frozen as
     * well. */
    laci_layout *layout = laci_port_layout(r, map->out_port);
    if (out) laci_track_freeze(r->t, out->track, laci_node_freeze_cause(r));
    if (in) laci_track_freeze(r->t, in->track, laci_node_freeze_cause(r));
    if (layout && layout->set[map->out_axis] == LACI_AXIS_UNIFORM) {
      layout->set[map->out_axis] = LACI_AXIS_FIXED;
      layout->cause[map->out_axis] = laci_node_freeze_cause(r);
    }
  }
}
