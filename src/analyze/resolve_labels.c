/* SPDX-License-Identifier: Apache-2.0
 * Joins axes that have the same label.
 *
 * Labels of several axes that are combined (heads x size) must be treated together: they form a
 * *set*. In each set, one axis set with all of its labels, the full one, is the reference. Other
 * axes are tied to its track (tracks_in.h):
 *   - An axis set of the same labels in the same order shares the track. In another order, it is
 *     linked position by position.
 *   - An axis set may have only some of the labels (the others are broadcast, or reduced). If these
 *     are the inner ones, it is linked, and each of its positions occurs on the full track once for
 *     each index of the other labels (copies). If not, the full track is tagged by its indices, and
 *     the smaller axis set stays in place.
 *   - An axis along which nothing may move tags the full track by its index.
 *   - An output with all labels is on the full track. One with some of them is treated like an
 *     axis set of an input. */
#include <string.h>

#include "analyze/resolve_in.h"
#include "base/union_find.h"

enum { MAX_SET = 2 * LACI_MAX_RANK };

/* Labels that must be resolved together, since they occur in one axis set. The full axis set is the
 * first one of an input that has all of them; it gives their order. Its axes without a label (fixed
 * or mapped there) take the pseudo-label -1. */
typedef struct label_set {
  int n;
  int label[MAX_SET];
  int64_t size[MAX_SET];
  int track;         /* track (set of tied axes) of the full axis set */
  bool any_axis_set; /* at least one input has an axis set with labels of this set */
  int fixed_cause;   /* index of the cause of an input axis in the set along which nothing may move;
                        -1: none */
  bool broken;       /* there is no full axis set, or sizes contradict each other: nothing may move
                        */
} label_set;

static int label_of_port_axis(const laci_resolve *r, int port, int axis) {
  const laci_port_labels *labels = laci_port_labels_of(r, port);
  return labels->described ? labels->label[axis] : LACI_FIXED;
}

static int find_label_in_set(const label_set *set, int label) {
  for (int k = 0; k < set->n; k++) {
    if (label > 0 && set->label[k] == label) return k;
  }
  return -1;
}

/* Can the axis set be joined with others by labels? One of its axes must have a label, and none may
 * be described by a map: resolve_maps.c has resolved those. */
static bool can_join_by_labels(const laci_resolve *r, int port, const laci_axis_set *axis_set) {
  if (axis_set->n_groups) return false;
  bool any = false;
  for (int k = 0; k < axis_set->n_axes; k++) {
    int label = label_of_port_axis(r, port, axis_set->axes[k]);
    if (label == LACI_MAPPED) return false;
    any |= label > 0;
  }
  return any;
}

/* Builds the union-find forest `parent` in which all labels of one axis set are in one tree. */
static void union_labels_of_axis_sets(const laci_resolve *r, int64_t *parent) {
  for (int l = 0; l <= r->c->n_labels; l++) parent[l] = l;
  for (int port = 0; port < r->node->n_inputs; port++) {
    const laci_layout *layout = laci_port_layout(r, port);
    for (int b = 0; layout && b < layout->n_axis_sets; b++) {
      const laci_axis_set *axis_set = &layout->axis_sets[b];
      if (!can_join_by_labels(r, port, axis_set)) continue;
      int first = 0;
      for (int k = 0; k < axis_set->n_axes; k++) {
        int label = label_of_port_axis(r, port, axis_set->axes[k]);
        if (label <= 0) continue;
        if (first) laci_unite(parent, label, first);
        else first = label;
      }
    }
  }
}

/* An axis that has a label (graph/coupling.h). */
typedef struct label_place {
  int port, axis;
} label_place;

/* All axes with labels, sorted by the root of the label in the union-find forest, then by port. A
 * node may have thousands of ports and labels, so a set must not search all ports. */
typedef struct label_sets {
  int64_t *parent; /* [n_labels + 1] union-find forest; labels of one axis set are in one tree */
  int *n;          /* [n_labels + 1] number of labels in the set of each root */
  int *first;      /* [n_labels + 2] index in `places` of each root's first place */
  int64_t *size; /* [n_labels + 1] size of the first axis that has the label; INT64_MIN: no axis was
                    seen yet */
  label_place *places;
} label_sets;

static int port_of_input_or_output(const laci_resolve *r, int k) {
  return k < r->node->n_inputs ? k : LACI_OUT(k - r->node->n_inputs);
}

/* For each root of the union-find forest: counts the axes with a label of its tree while
 * sets->places is NULL, and afterwards lists them. */
static void list_label_places(const laci_resolve *r, label_sets *sets, int *at) {
  for (int k = 0; k < r->node->n_inputs + r->node->n_outputs; k++) {
    int port = port_of_input_or_output(r, k);
    const laci_layout *layout = laci_port_layout(r, port);
    for (int a = 0; layout && a < layout->rank; a++) {
      int label = label_of_port_axis(r, port, a);
      if (label <= 0) continue;
      const int root = (int)laci_find_root(sets->parent, label);
      if (sets->places) sets->places[at[root]++] = (label_place){port, a};
      else sets->first[root + 1]++;
    }
  }
}

static void label_sets_clear(label_sets *sets) {
  laci_free(sets->parent);
  laci_free(sets->n);
  laci_free(sets->first);
  laci_free(sets->size);
  laci_free(sets->places);
}

static bool label_sets_init(const laci_resolve *r, label_sets *sets) {
  size_t n = (size_t)r->c->n_labels + 1;
  *sets = (label_sets){.parent = laci_alloc(n, sizeof *sets->parent),
                       .n = laci_alloc(n, sizeof *sets->n),
                       .first = laci_alloc(n + 1, sizeof *sets->first),
                       .size = laci_alloc(n, sizeof *sets->size)};
  int *at = laci_alloc(n, sizeof *at);
  bool ok = sets->parent && sets->n && sets->first && sets->size && at;
  if (ok) {
    union_labels_of_axis_sets(r, sets->parent);
    for (size_t l = 0; l < n; l++) sets->size[l] = INT64_MIN;
    for (size_t l = 1; l < n; l++) sets->n[laci_find_root(sets->parent, (int64_t)l)]++;
    list_label_places(r, sets, at);
    for (size_t l = 0; l < n; l++) sets->first[l + 1] += sets->first[l];
    for (size_t l = 0; l < n; l++) at[l] = sets->first[l];
    sets->places = laci_alloc((size_t)sets->first[n], sizeof *sets->places);
    ok = sets->places;
  }
  if (ok) list_label_places(r, sets, at);
  laci_free(at);
  return ok;
}

/* Returns the next input (or output) port of a set; *at begins at first[root]; -1: there are no
 * more. */
static int next_port_of_set(const label_sets *sets, int root, bool inputs, int *at) {
  int end = sets->first[root + 1];
  while (*at < end) {
    int port = sets->places[(*at)++].port;
    while (*at < end && sets->places[*at].port == port) (*at)++;
    if ((port >= 0) == inputs) return port >= 0 ? port : LACI_OUT(port);
  }
  return -1;
}

/* Fills *set: chooses its full axis set, and finds fixed input axes that have one of its labels. */
static void choose_full_axis_set(laci_resolve *r, const label_sets *sets, int root,
                                 label_set *set) {
  *set = (label_set){.track = -1, .fixed_cause = -1};
  int wanted = sets->n[root];
  int64_t *parent = sets->parent;
  for (int at = sets->first[root], port; (port = next_port_of_set(sets, root, true, &at)) >= 0;) {
    const laci_layout *layout = laci_port_layout(r, port);
    const laci_shape *shape = laci_port_value_shape(r, port);
    for (int a = 0; a < layout->rank; a++) {
      int label = label_of_port_axis(r, port, a);
      if (label <= 0 || laci_find_root(parent, label) != root || set->fixed_cause >= 0) continue;
      int state = layout->set[a];
      if (state == LACI_AXIS_FIXED) set->fixed_cause = layout->cause[a];
      /* The axis is combined with others (heads x size) that were mapped and frozen, or whose
       * output has a layout already. So it is not uniform. */
      else if (state >= 0 && !can_join_by_labels(r, port, &layout->axis_sets[state])) {
        set->fixed_cause = laci_node_freeze_cause(r);
      }
    }
    for (int b = 0; b < layout->n_axis_sets; b++) {
      const laci_axis_set *axis_set = &layout->axis_sets[b];
      if (!can_join_by_labels(r, port, axis_set)) continue;
      int has = 0, first = 0;
      for (int k = 0; k < axis_set->n_axes; k++) {
        int label = label_of_port_axis(r, port, axis_set->axes[k]);
        if (label > 0 && !first) first = label;
        has += label > 0;
      }
      if (laci_find_root(parent, first) != root) continue;
      set->any_axis_set = true;
      if (has != wanted || set->track >= 0) continue;
      set->track = axis_set->track;
      set->n = axis_set->n_axes;
      for (int k = 0; k < axis_set->n_axes; k++) {
        int label = label_of_port_axis(r, port, axis_set->axes[k]);
        set->label[k] = label > 0 ? label : -1;
        set->size[k] = shape->dims[axis_set->axes[k]];
      }
    }
  }
  set->broken = set->any_axis_set && set->track < 0;
}

/* For each position along the axes of the full axis set, computes its row-major index over the n
 * chosen labels (*part), and that over all other labels of the set (*rest). */
static bool split_position_indices(laci_resolve *r, const label_set *set, const int *labels, int n,
                                   int32_t **part, int32_t **rest) {
  int64_t total = laci_track_find_root_record(r->t, set->track)->n;
  *part = laci_alloc((size_t)total, sizeof **part);
  *rest = laci_alloc((size_t)total, sizeof **rest);
  if (!*part || !*rest) {
    laci_free(*part);
    laci_free(*rest);
    r->t->no_memory = true;
    return false;
  }
  for (int64_t p = 0; p < total; p++) {
    int64_t index[MAX_SET], left = p, a = 0, b = 0;
    for (int k = set->n - 1; k >= 0; k--) {
      index[k] = left % set->size[k];
      left /= set->size[k];
    }
    for (int j = 0; j < n; j++) {
      int k = find_label_in_set(set, labels[j]);
      a = a * set->size[k] + index[k];
    }
    for (int k = 0; k < set->n; k++) {
      bool chosen = false;
      for (int j = 0; j < n; j++) chosen |= find_label_in_set(set, labels[j]) == k;
      if (!chosen) b = b * set->size[k] + index[k];
    }
    (*part)[p] = (int32_t)a;
    (*rest)[p] = (int32_t)b;
  }
  return true;
}

static void tag_positions_by_labels(laci_resolve *r, const label_set *set, const int *labels, int n,
                                    uint64_t salt) {
  int32_t *part, *rest;
  if (!split_position_indices(r, set, labels, n, &part, &rest)) return;
  laci_track_add_tag(r->t, set->track, 0x51B3u + salt, part);
  laci_free(part);
  laci_free(rest);
}

static bool has_innermost_label(const label_set *set, const int *labels, int n) {
  for (int j = 0; j < n; j++) {
    if (find_label_in_set(set, labels[j]) == set->n - 1) return true;
  }
  return false;
}

static bool is_whole_label_set(const label_set *set, const int *labels, int n) {
  if (n != set->n) return false;
  for (int j = 0; j < n; j++) {
    if (labels[j] != set->label[j]) return false;
  }
  return true;
}

/* The labels of a port that are in the set, in the order of the given axes (of an axis set, or all
 * axes of the value whose state is `state`). Invalid when a label occurs twice or sizes contradict
 * each other. */
typedef struct part_of {
  int n;
  int label[MAX_SET];
  int axis[MAX_SET];
  bool sound;
} part_of;

static void add_axis_labels_to_part(const laci_resolve *r, const label_set *set, int port, int axis,
                                    part_of *part) {
  int label = label_of_port_axis(r, port, axis), k = find_label_in_set(set, label);
  if (k < 0) return;
  for (int j = 0; j < part->n; j++) {
    if (part->label[j] == label) part->sound = false;
  }
  if (part->n == MAX_SET || laci_port_value_shape(r, port)->dims[axis] != set->size[k]) {
    part->sound = false;
    return;
  }
  part->label[part->n] = label;
  part->axis[part->n++] = axis;
}

static part_of collect_labels_of_axes(const laci_resolve *r, const label_set *set, int port,
                                      int state) {
  part_of part = {.sound = true};
  const laci_layout *layout = laci_port_layout(r, port);
  for (int a = 0; layout && a < layout->rank; a++) {
    if (layout->set[a] == state) add_axis_labels_to_part(r, set, port, a, &part);
  }
  return part;
}

static void join_axis_set_to_full_track(laci_resolve *r, const label_set *set, int port,
                                        laci_axis_set axis_set) {
  part_of part = {.sound = true};
  for (int k = 0; k < axis_set.n_axes; k++) {
    if (label_of_port_axis(r, port, axis_set.axes[k]) > 0)
      add_axis_labels_to_part(r, set, port, axis_set.axes[k], &part);
  }
  if (!part.n) return;
  int cause = 0;
  if (!part.sound || part.n != axis_set.n_axes) cause = laci_node_freeze_cause(r);
  if (!part.sound || (part.n != axis_set.n_axes && axis_set.track != set->track)) {
    laci_track_freeze(r->t, set->track, cause);
    laci_track_freeze(r->t, axis_set.track, cause);
    return;
  }
  if (part.n != axis_set.n_axes)
    return; /* the full axis set itself, with axes that have no label */
  if (is_whole_label_set(set, part.label, part.n)) {
    (void)laci_track_merge(r->t, set->track, axis_set.track);
    return;
  }
  if (!has_innermost_label(set, part.label, part.n) && part.n < set->n) {
    tag_positions_by_labels(r, set, part.label, part.n, (uint64_t)r->node_id);
    laci_track_freeze(r->t, axis_set.track, laci_node_parts_freeze_cause(r));
    return;
  }
  int32_t *to, *copy;
  if (split_position_indices(r, set, part.label, part.n, &to, &copy)) {
    laci_link_add(r->t, r->node_id, set->track, axis_set.track, to, copy);
  }
}

static void set_output_axis_set(laci_resolve *r, const label_set *set, int port) {
  part_of part = collect_labels_of_axes(r, set, port, LACI_AXIS_PENDING);
  if (!part.n) return;
  laci_layout *layout = laci_port_layout(r, port);
  /* The axes are listed in the order of the full axis set, not in that of the output. */
  laci_axis_set axis_set = {.track = set->track};
  int ordered[MAX_SET];
  int64_t n = 1;
  for (int k = 0; k < set->n; k++) {
    for (int j = 0; j < part.n; j++) {
      if (part.label[j] != set->label[k] || axis_set.n_axes == LACI_MAX_RANK) continue;
      ordered[axis_set.n_axes] = part.label[j];
      axis_set.axes[axis_set.n_axes++] = (int8_t)part.axis[j];
      n *= set->size[k];
    }
  }
  bool whole = part.sound && is_whole_label_set(set, ordered, axis_set.n_axes);
  if (!whole && (!part.sound || !has_innermost_label(set, ordered, axis_set.n_axes))) {
    if (part.sound) tag_positions_by_labels(r, set, ordered, axis_set.n_axes, (uint64_t)r->node_id);
    else laci_track_freeze(r->t, set->track, laci_node_freeze_cause(r));
    for (int j = 0; j < part.n; j++) {
      layout->set[part.axis[j]] = LACI_AXIS_FIXED;
      layout->cause[part.axis[j]] = laci_node_parts_freeze_cause(r);
    }
    return;
  }
  if (!whole) {
    int32_t *to, *copy;
    axis_set.track = laci_track_create(r->t, n, false);
    if (axis_set.track < 0 || !split_position_indices(r, set, ordered, axis_set.n_axes, &to, &copy))
      return;
    laci_link_add(r->t, r->node_id, set->track, axis_set.track, to, copy);
  }
  laci_layout_add_axis_set(r->t, laci_port_value(r, port), &axis_set);
}

/* Freezes all axes that have a label of the set, where they cannot be joined. */
static void freeze_axes_of_label_set(laci_resolve *r, const label_sets *sets, int root) {
  int cause = laci_node_freeze_cause(r);
  for (int at = sets->first[root]; at < sets->first[root + 1]; at++) {
    const label_place *place = &sets->places[at];
    const laci_axis_set *axis_set =
        place->port >= 0 ? laci_port_axis_set(r, place->port, place->axis) : NULL;
    if (axis_set) laci_track_freeze(r->t, axis_set->track, cause);
  }
}

/* Starts a track (set of tied axes) for the output channels of a grouped ConvTranspose, which come
 * from its weight, group by group; the weight is joined later (resolve.c). Returns false if the
 * axis is no such axis. */
static bool start_track_of_grouped_output(laci_resolve *r, int port, int axis) {
  for (size_t i = 0; i < r->c->n_grouped; i++) {
    const laci_grouped_axis *g = &r->c->grouped[i];
    if (g->data_port != port || g->data_axis != axis) continue;
    int64_t n = laci_port_value_shape(r, port)->dims[axis];
    if (n < 1 || n > LACI_TRACK_LIMIT) return false;
    laci_axis_set axis_set = laci_axis_set_of_single_axis(laci_track_create(r->t, n, false), axis);
    if (axis_set.track >= 0) laci_layout_add_axis_set(r->t, laci_port_value(r, port), &axis_set);
    return true;
  }
  return false;
}

static void set_pending_output_axes(laci_resolve *r, const label_sets *sets, int root, int state,
                                    int cause) {
  for (int at = sets->first[root]; at < sets->first[root + 1]; at++) {
    int port = sets->places[at].port, a = sets->places[at].axis;
    laci_layout *layout = port < 0 ? laci_port_layout(r, port) : NULL;
    if (!layout || layout->set[a] != LACI_AXIS_PENDING) continue;
    if (state == LACI_AXIS_UNIFORM && start_track_of_grouped_output(r, port, a)) continue;
    layout->set[a] = state;
    if (state == LACI_AXIS_FIXED) layout->cause[a] = cause;
  }
}

static void tag_positions_by_fixed_axes(laci_resolve *r, const label_set *set, int port) {
  part_of fixed = collect_labels_of_axes(r, set, port, LACI_AXIS_FIXED);
  if (!fixed.n && fixed.sound) return;
  const laci_layout *layout = laci_port_layout(r, port);
  int cause = fixed.n ? layout->cause[fixed.axis[0]] : laci_node_freeze_cause(r);
  if (!fixed.sound || fixed.n == set->n) laci_track_freeze(r->t, set->track, cause);
  else tag_positions_by_labels(r, set, fixed.label, fixed.n, 0x77u + (uint64_t)cause);
}

/* If a softmax or a normalization runs over only some of the track's axes, tags the positions, so
 * that the order along the other axes stays (tracks_in.h). */
static void tag_positions_by_unnormalized_labels(laci_resolve *r, const label_set *set) {
  int rest[MAX_SET], n_rest = 0, n_normalized = 0;
  for (int k = 0; k < set->n; k++) {
    int label = set->label[k];
    bool normalized = label > 0 && r->c->normalized && r->c->normalized[label];
    n_normalized += normalized;
    if (!normalized && label > 0) rest[n_rest++] = label;
  }
  if (n_normalized && n_rest)
    tag_positions_by_labels(r, set, rest, n_rest, 0x99u + (uint64_t)r->node_id);
}

static void resolve_label_set(laci_resolve *r, const label_sets *sets, int root) {
  label_set set;
  choose_full_axis_set(r, sets, root, &set);
  if (!set.any_axis_set) {
    bool fixed = set.fixed_cause >= 0;
    set_pending_output_axes(r, sets, root, fixed ? LACI_AXIS_FIXED : LACI_AXIS_UNIFORM,
                            fixed ? set.fixed_cause : 0);
    return;
  }
  if (set.broken) {
    freeze_axes_of_label_set(r, sets, root);
    set_pending_output_axes(r, sets, root, LACI_AXIS_FIXED, laci_node_freeze_cause(r));
    return;
  }
  for (int at = sets->first[root], port; (port = next_port_of_set(sets, root, true, &at)) >= 0;) {
    laci_layout *layout = laci_port_layout(r, port);
    for (int b = 0; b < layout->n_axis_sets; b++) {
      if (can_join_by_labels(r, port, &layout->axis_sets[b]))
        join_axis_set_to_full_track(r, &set, port, layout->axis_sets[b]);
    }
    tag_positions_by_fixed_axes(r, &set, port);
  }
  tag_positions_by_unnormalized_labels(r, &set);
  for (int at = sets->first[root], out; (out = next_port_of_set(sets, root, false, &at)) >= 0;) {
    tag_positions_by_fixed_axes(r, &set,
                                LACI_OUT(out)); /* tags by the fixed axes, which extended maps could
                                                   not handle */
    set_output_axis_set(r, &set, LACI_OUT(out));
  }
}

/* Sets sets->size of each label. False: the label's axes have different sizes, so the operator's
 * description does not fit the shapes. */
static bool set_and_check_label_sizes(const laci_resolve *r, label_sets *sets, int root) {
  for (int at = sets->first[root]; at < sets->first[root + 1]; at++) {
    int port = sets->places[at].port, axis = sets->places[at].axis;
    int64_t here = laci_port_value_shape(r, port)->dims[axis];
    int label = label_of_port_axis(r, port, axis);
    if (sets->size[label] != INT64_MIN && here != sets->size[label]) return false;
    sets->size[label] = here;
  }
  return true;
}

void laci_resolve_axis_labels(laci_resolve *r) {
  label_sets sets;
  if (!label_sets_init(r, &sets)) r->t->no_memory = true;
  for (int l = 1; l <= r->c->n_labels && !r->t->no_memory; l++) {
    if (laci_find_root(sets.parent, l) != l) continue;
    if (set_and_check_label_sizes(r, &sets, l)) {
      resolve_label_set(r, &sets, l);
    } else {
      freeze_axes_of_label_set(r, &sets, l);
      set_pending_output_axes(r, &sets, l, LACI_AXIS_FIXED, laci_node_freeze_cause(r));
    }
  }
  label_sets_clear(&sets);
}
