/* SPDX-License-Identifier: Apache-2.0
 * Axes that an operator describes by maps: Concat, Split, Slice, Gather, Pad, channel multipliers.
 *
 * An output axis with maps becomes a track of its own, linked position by position with what it
 * reads. Where the axis is part of a composite, the map is lifted: it acts on that index and leaves
 * the others alone. */
#include <string.h>

#include "analyze/resolve_in.h"

/* copy[o]: how many earlier out positions read the same in position, so that (from, copy) is
 * unique. */
static int32_t *count_copies(laci_resolve *r, const int32_t *from, int64_t n, int64_t n_in) {
  int32_t *copy = laci_alloc((size_t)n, sizeof *copy),
          *seen = laci_alloc((size_t)n_in, sizeof *seen);
  if (!copy || !seen) {
    laci_free(copy);
    copy = NULL;
    r->t->no_memory = true;
  }
  for (int64_t p = 0; copy && p < n; p++) copy[p] = from[p] >= 0 ? seen[from[p]]++ : 0;
  laci_free(seen);
  return copy;
}

static int32_t *copy_of(laci_resolve *r, const int32_t *from, int64_t n) {
  int32_t *to = laci_alloc((size_t)n, sizeof *to);
  if (to) memcpy(to, from, (size_t)n * sizeof *to);
  else r->t->no_memory = true;
  return to;
}

static bool is_identity(const int32_t *from, int64_t n, int64_t n_in) {
  if (n != n_in) return false;
  for (int64_t p = 0; p < n; p++) {
    if (from[p] != p) return false;
  }
  return true;
}

static bool in_range(const laci_axis_map *map, int64_t n_in) {
  for (int64_t p = 0; p < map->n_out; p++) {
    if (map->from[p] < -1 || map->from[p] >= n_in) return false;
  }
  return true;
}

static void freeze_positions(laci_resolve *r, int track, const laci_axis_map *map, int cause) {
  for (int64_t p = 0; p < map->n_out; p++) {
    if (map->from[p] >= 0) laci_track_freeze_at(r->t, track, p, cause);
  }
}

/* Equal contents along the input axis: but not those of another input, and what reads one place
 * several times (SpaceToDepth) may take something else each time. */
static void tag_uniform(laci_resolve *r, int track, const laci_axis_map *map, int nth) {
  int64_t n_in = laci_port_value_shape(r, map->in_port)->dims[map->in_axis];
  if (!in_range(map, n_in)) {
    freeze_positions(r, track, map, laci_resolve_cause(r));
    return;
  }
  int32_t *index = count_copies(r, map->from, map->n_out, n_in);
  for (int64_t p = 0; index && p < map->n_out; p++) {
    index[p] = map->from[p] >= 0 ? index[p] + 1 : 0;
  }
  if (index)
    laci_track_tag(r->t, track, 0x3C6Eu + (uint64_t)r->node_id * 4096 + (uint64_t)nth, index);
  laci_free(index);
}

/* Joins `track` (one position an out position) with what the map reads. */
static void join_map(laci_resolve *r, int track, const laci_axis_map *map, int nth) {
  const laci_layout *layout = laci_port_layout(r, map->in_port);
  int state = layout ? layout->bundle[map->in_axis] : LACI_AXIS_FIXED;
  if (state == LACI_AXIS_UNIFORM) {
    tag_uniform(r, track, map, nth);
    return;
  }
  if (state < 0) {
    freeze_positions(r, track, map, layout ? layout->cause[map->in_axis] : laci_resolve_cause(r));
    return;
  }
  const laci_bundle *bundle = &layout->bundles[state];
  int64_t n_in = laci_track_at(r->t, bundle->track)->n;
  if (bundle->n_axes != 1 || bundle->n_groups || !in_range(map, n_in)) {
    laci_track_freeze(r->t, bundle->track, laci_resolve_cause(r));
    freeze_positions(r, track, map, laci_resolve_cause(r));
    return;
  }
  int small = bundle->track;
  laci_link_add(r->t, r->node_id, track, small, copy_of(r, map->from, map->n_out),
                count_copies(r, map->from, map->n_out, n_in));
}

/* Out positions that no map covers hold a constant fill: a source of its own. */
static void mark_fill(laci_resolve *r, int track, const laci_axis_map *const *maps, int n_maps) {
  laci_track *out = laci_track_at(r->t, track);
  for (int64_t p = 0; p < out->n; p++) {
    bool read = false;
    for (int i = 0; i < n_maps; i++) {
      const laci_layout *layout = laci_port_layout(r, maps[i]->in_port);
      bool uniform = layout && layout->bundle[maps[i]->in_axis] == LACI_AXIS_UNIFORM;
      read |= maps[i]->from[p] >= 0 && !uniform;
    }
    if (read) continue;
    if (!out->fill) out->fill = laci_alloc((size_t)out->n, 1);
    if (!out->fill) {
      r->t->no_memory = true;
      return;
    }
    out->fill[p] = 1;
  }
}

static void resolve_simple(laci_resolve *r, const laci_axis_map *const *maps, int n_maps) {
  const laci_axis_map *first = maps[0];
  laci_layout *layout = first->out_axis >= 0 ? laci_port_layout(r, first->out_port) : NULL;
  if (first->out_axis >= 0 && !layout) return;
  const laci_bundle *in = laci_port_bundle(r, first->in_port, first->in_axis);
  if (n_maps == 1 && in && layout && in->n_axes == 1 && !in->n_groups &&
      is_identity(first->from, first->n_out, laci_track_at(r->t, in->track)->n)) {
    laci_bundle bundle = laci_bundle_of_axis(in->track, first->out_axis);
    laci_layout_put(r->t, laci_port_value(r, first->out_port), &bundle);
    return;
  }
  bool all_fixed = true;
  for (int i = 0; i < n_maps; i++) {
    const laci_layout *other = laci_port_layout(r, maps[i]->in_port);
    all_fixed &= !other || other->bundle[maps[i]->in_axis] == LACI_AXIS_FIXED;
  }
  bool fills = false; /* a fill among fixed positions could still move: only a track tells */
  for (int64_t p = 0; all_fixed && p < first->n_out; p++) {
    bool read = false;
    for (int i = 0; i < n_maps; i++) read |= maps[i]->from[p] >= 0;
    fills |= !read;
  }
  if (all_fixed && !fills && layout) {
    const laci_layout *other = laci_port_layout(r, first->in_port);
    layout->bundle[first->out_axis] = LACI_AXIS_FIXED;
    layout->cause[first->out_axis] = other ? other->cause[first->in_axis] : laci_resolve_cause(r);
    return;
  }
  int track = laci_track_new(r->t, first->n_out, false);
  if (track < 0) return;
  for (int i = 0; i < n_maps; i++) join_map(r, track, maps[i], i);
  mark_fill(r, track, maps, n_maps);
  if (!layout) return;
  laci_bundle bundle = laci_bundle_of_axis(track, first->out_axis);
  laci_layout_put(r->t, laci_port_value(r, first->out_port), &bundle);
}

/* ---- composites ---- */

typedef struct lift {
  int n_axes, which;           /* axes of the composite; which of them is mapped */
  int label[LACI_MAX_RANK];    /* of the others */
  int64_t size[LACI_MAX_RANK]; /* of the others */
  int out_axis[LACI_MAX_RANK]; /* where they lie in the output */
} lift;

static bool describe_lift(const laci_resolve *r, const laci_axis_map *map,
                          const laci_bundle *bundle, lift *out) {
  const laci_layout *layout = laci_port_layout(r, map->out_port);
  if (map->out_axis < 0 || !layout || bundle->n_groups) return false;
  const laci_shape *shape = laci_port_value_shape(r, map->in_port);
  *out = (lift){.n_axes = bundle->n_axes, .which = -1};
  for (int k = 0; k < bundle->n_axes; k++) {
    int axis = bundle->axes[k], label = laci_port_labels_of(r, map->in_port)->label[axis];
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
          layout->bundle[a] == LACI_AXIS_PENDING) {
        out->out_axis[k] = a;
      }
    }
    if (out->out_axis[k] < 0) return false;
  }
  return out->which >= 0;
}

/* Another input that carries one of the composite's labels without being mapped with it would have
 * to be joined too. */
static bool labels_are_free(const laci_resolve *r, const lift *l, const laci_axis_map *const *maps,
                            int n_maps) {
  for (int port = 0; port < r->node->n_inputs; port++) {
    bool mapped = false;
    for (int i = 0; i < n_maps; i++) mapped |= maps[i]->in_port == port;
    const laci_layout *layout = laci_port_layout(r, port);
    for (int a = 0; !mapped && layout && a < layout->rank; a++) {
      for (int k = 0; k < l->n_axes; k++) {
        if (k != l->which && r->c->in[port].described && r->c->in[port].label[a] == l->label[k] &&
            layout->bundle[a] != LACI_AXIS_UNIFORM) {
          return false;
        }
      }
    }
  }
  return true;
}

static bool same_lift(const lift *a, const lift *b) {
  if (a->n_axes != b->n_axes || a->which != b->which) return false;
  for (int k = 0; k < a->n_axes; k++) {
    if (k != a->which && (a->label[k] != b->label[k] || a->size[k] != b->size[k])) return false;
  }
  return true;
}

static void link_lifted(laci_resolve *r, int track, const laci_axis_map *map, const lift *l,
                        int small) {
  int64_t n = laci_track_at(r->t, track)->n;
  int32_t *to = laci_alloc((size_t)n, sizeof *to);
  if (!to) {
    r->t->no_memory = true;
    return;
  }
  int64_t inner = 1;
  for (int k = l->which + 1; k < l->n_axes; k++) inner *= l->size[k];
  for (int64_t p = 0; p < n; p++) {
    int64_t low = p % inner, o = p / inner % map->n_out, high = p / inner / map->n_out;
    int32_t from = map->from[o];
    to[p] = from < 0 ? -1 : (int32_t)((high * l->size[l->which] + from) * inner + low);
  }
  int64_t n_in = laci_track_at(r->t, small)->n;
  laci_link_add(r->t, r->node_id, track, small, to, count_copies(r, to, n, n_in));
}

static bool resolve_lifted(laci_resolve *r, const laci_axis_map *const *maps, int n_maps) {
  lift first, other;
  int64_t n = maps[0]->n_out;
  for (int i = 0; i < n_maps; i++) {
    const laci_bundle *bundle = laci_port_bundle(r, maps[i]->in_port, maps[i]->in_axis);
    if (!bundle || !describe_lift(r, maps[i], bundle, i ? &other : &first)) return false;
    if (i && !same_lift(&first, &other)) return false;
    if (!in_range(maps[i], laci_port_value_shape(r, maps[i]->in_port)->dims[maps[i]->in_axis]))
      return false;
  }
  if (!labels_are_free(r, &first, maps, n_maps)) return false;
  for (int64_t p = 0; p < maps[0]->n_out;
       p++) { /* a fill inside a composite: not needed by anybody so far */
    bool read = false;
    for (int i = 0; i < n_maps; i++) read |= maps[i]->from[p] >= 0;
    if (!read) return false;
  }
  laci_bundle bundle = {0};
  for (int k = 0; k < first.n_axes; k++) { /* an axis of size 1 takes no part in an index */
    if (k != first.which || n > 1) bundle.axes[bundle.n_axes++] = (int8_t)first.out_axis[k];
    else laci_port_layout(r, maps[0]->out_port)->bundle[first.out_axis[k]] = LACI_AXIS_UNIFORM;
  }
  for (int k = 0; k < first.n_axes; k++) n *= k == first.which ? 1 : first.size[k];
  bundle.track = laci_track_new(r->t, n, false);
  if (bundle.track < 0) return true;
  for (int i = 0; i < n_maps; i++) {
    const laci_bundle *in = laci_port_bundle(r, maps[i]->in_port, maps[i]->in_axis);
    if (i) (void)describe_lift(r, maps[i], in, &other);
    link_lifted(r, bundle.track, maps[i], i ? &other : &first, in->track);
  }
  laci_layout_put(r->t, laci_port_value(r, maps[0]->out_port), &bundle);
  return true;
}

/* The output axes that a map makes, or that share a label with the composite it reads. */
static void freeze_output_of_map(laci_resolve *r, const laci_axis_map *map,
                                 const laci_bundle *bundle, int port, int cause) {
  laci_layout *layout = laci_port_value(r, port) >= 0 ? laci_port_layout(r, port) : NULL;
  for (int a = 0; layout && a < layout->rank; a++) {
    int label = laci_port_labels_of(r, port)->label[a];
    bool with_it = port == map->out_port && a == map->out_axis;
    for (int k = 0; bundle && k < bundle->n_axes; k++) {
      int in_label = laci_port_labels_of(r, map->in_port)->label[bundle->axes[k]];
      with_it |= label > 0 && in_label == label;
    }
    if (!with_it || layout->bundle[a] != LACI_AXIS_PENDING) continue;
    layout->bundle[a] = LACI_AXIS_FIXED;
    layout->cause[a] = cause;
  }
}

/* Neither simple nor liftable: all that is involved stays in place. */
static void freeze_maps(laci_resolve *r, const laci_axis_map *const *maps, int n_maps) {
  int cause = laci_resolve_cause(r);
  for (int i = 0; i < n_maps; i++) {
    const laci_bundle *bundle = laci_port_bundle(r, maps[i]->in_port, maps[i]->in_axis);
    if (bundle) laci_track_freeze(r->t, bundle->track, cause);
    /* Also where the mapped axis itself is gone (a scalar index): what is left of the composite is
     * no uniform axis. */
    for (int o = 0; o < r->node->n_outputs; o++)
      freeze_output_of_map(r, maps[i], bundle, LACI_OUT(o), cause);
  }
}

static bool is_labelled(const laci_resolve *r, const laci_axis_map *map) {
  return map->out_axis >= 0 && laci_port_labels_of(r, map->out_port)->label[map->out_axis] > 0;
}

/* Mapped input axes that no map mentions. */
static void freeze_unread(laci_resolve *r) {
  for (int port = 0; port < r->node->n_inputs; port++) {
    const laci_layout *layout = laci_port_layout(r, port);
    for (int a = 0; layout && a < layout->rank; a++) {
      if (!r->c->in[port].described || r->c->in[port].label[a] != LACI_MAPPED) continue;
      bool read = false;
      for (size_t i = 0; i < r->c->n_maps; i++) {
        read |= r->c->maps[i].in_port == port && r->c->maps[i].in_axis == a;
      }
      if (!read) laci_layout_freeze_axis(r->t, laci_port_value(r, port), a, laci_resolve_cause(r));
    }
  }
}

void laci_resolve_maps(laci_resolve *r) {
  size_t n = r->c->n_maps;
  freeze_unread(r);
  const laci_axis_map **same = laci_alloc(n, sizeof *same);
  bool *done = laci_alloc(n, sizeof *done);
  for (size_t i = 0; same && done && i < n; i++) {
    if (done[i] || is_labelled(r, &r->c->maps[i])) continue;
    const laci_axis_map *map = &r->c->maps[i];
    int n_same = 0;
    bool composite = false;
    for (size_t j = i; j < n; j++) {
      const laci_axis_map *other = &r->c->maps[j];
      bool together = other->out_port == map->out_port && other->out_axis == map->out_axis &&
                      map->out_axis >= 0;
      if (j != i && !together) continue;
      done[j] = true;
      if (other->n_out != map->n_out) continue;
      same[n_same++] = other;
      const laci_bundle *bundle = laci_port_bundle(r, other->in_port, other->in_axis);
      composite |= bundle && bundle->n_axes > 1;
    }
    if (!composite) resolve_simple(r, same, n_same);
    else if (!resolve_lifted(r, same, n_same)) freeze_maps(r, same, n_same);
  }
  if (!same || !done) r->t->no_memory = true;
  laci_free(same);
  laci_free(done);
}

void laci_resolve_labelled_maps(laci_resolve *r) {
  for (size_t i = 0; i < r->c->n_maps; i++) {
    const laci_axis_map *map = &r->c->maps[i];
    if (!is_labelled(r, map)) continue;
    const laci_bundle *out = laci_port_bundle(r, map->out_port, map->out_axis);
    const laci_bundle *in = laci_port_bundle(r, map->in_port, map->in_axis);
    if (out && out->n_axes == 1 && laci_track_at(r->t, out->track)->n == map->n_out) {
      join_map(r, out->track, map, (int)i);
      continue;
    }
    /* The output cannot move, so what it reads cannot either; nor is it uniform, for it reads that
     * too. */
    laci_layout *layout = laci_port_layout(r, map->out_port);
    if (out) laci_track_freeze(r->t, out->track, laci_resolve_cause(r));
    if (in) laci_track_freeze(r->t, in->track, laci_resolve_cause(r));
    if (layout && layout->bundle[map->out_axis] == LACI_AXIS_UNIFORM) {
      layout->bundle[map->out_axis] = LACI_AXIS_FIXED;
      layout->cause[map->out_axis] = laci_resolve_cause(r);
    }
  }
}
