/* SPDX-License-Identifier: Apache-2.0
 * Reshape and similar operators: the same elements in the same order, with other axes.
 *
 * Sizes are matched from both ends into segments whose products agree; axes of size 1 are ignored.
 * A segment with one axis on each side passes through. In other segments one axis set, the carrier,
 * is followed: its positions are linked to those of the new axes, and the index along all other
 * axes of the segment is the copy number (a channel of C x H x W becomes H * W copies). Segments
 * that share one set of combined axes (heads x size) are treated as one. */
#include <string.h>

#include "analyze/resolve_in.h"

typedef struct segment {
  int n_in, n_out;
  int in[LACI_MAX_RANK], out[LACI_MAX_RANK];
  bool unknown; /* the sizes before and after the Reshape cannot be matched inside this segment */
} segment;

typedef struct reshape {
  laci_resolve *r;
  const laci_shape *in_shape, *out_shape;
  laci_layout *in, *out;
  int n_segments;
  segment segments[LACI_MAX_RANK + 1];
  int joined[LACI_MAX_RANK + 1]; /* [segment] the first of the segments that it is joined with */
} reshape;

static int list_axes_longer_than_one(const laci_shape *shape, int *axes) {
  int n = 0;
  for (int a = 0; a < shape->rank; a++) {
    if (shape->dims[a] != 1) axes[n++] = a;
  }
  return n;
}

static void add_segment(reshape *c, const int *in, int n_in, const int *out, int n_out,
                        bool unknown) {
  segment *s = &c->segments[c->n_segments];
  c->joined[c->n_segments] = c->n_segments;
  c->n_segments++;
  s->n_in = n_in;
  s->n_out = n_out;
  s->unknown = unknown;
  memcpy(s->in, in, (size_t)n_in * sizeof *in);
  memcpy(s->out, out, (size_t)n_out * sizeof *out);
}

/* Divides both lists of sizes into segments of equal products. */
static void find_segments(reshape *c) {
  int in[LACI_MAX_RANK], out[LACI_MAX_RANK];
  int n_in = list_axes_longer_than_one(c->in_shape, in),
      n_out = list_axes_longer_than_one(c->out_shape, out);
  const int64_t *a = c->in_shape->dims, *b = c->out_shape->dims;
  int i = 0, o = 0;
  while (i < n_in && o < n_out) {
    int i0 = i, o0 = o;
    if (a[in[i]] == b[out[o]]) {
      i++, o++;
      add_segment(c, in + i0, 1, out + o0, 1, false);
      continue;
    }
    int64_t x = a[in[i]], y = b[out[o]];
    while (x > 0 && y > 0 && x != y) {
      if (x < y) {
        if (++i >= n_in || a[in[i]] <= 0 || __builtin_mul_overflow(x, a[in[i]], &x)) break;
      } else {
        if (++o >= n_out || b[out[o]] <= 0 || __builtin_mul_overflow(y, b[out[o]], &y)) break;
      }
    }
    if (x == y && x > 0) {
      i++, o++;
      add_segment(c, in + i0, i - i0, out + o0, o - o0, false);
      continue;
    }
    i = i0, o = o0;
    break;
  }
  int i_end = n_in,
      o_end = n_out; /* the rest: equal sizes are matched from the right, and what remains between
                        is a segment of unknown sizes */
  while (i_end > i && o_end > o && a[in[i_end - 1]] == b[out[o_end - 1]]) i_end--, o_end--;
  if (i < i_end || o < o_end) add_segment(c, in + i, i_end - i, out + o, o_end - o, true);
  for (; i_end < n_in; i_end++, o_end++) add_segment(c, in + i_end, 1, out + o_end, 1, false);
}

static int find_segment_of_input_axis(const reshape *c, int in_axis) {
  for (int s = 0; s < c->n_segments; s++) {
    for (int k = 0; k < c->segments[s].n_in; k++) {
      if (c->segments[s].in[k] == in_axis) return s;
    }
  }
  return -1;
}

/* Joins segments whose input axes are combined axes (heads x size): c->joined. */
static void join_segments_that_share_axis_sets(reshape *c) {
  for (int b = 0; b < c->in->n_axis_sets; b++) {
    const laci_axis_set *axis_set = &c->in->axis_sets[b];
    int first = -1;
    for (int k = 0; k < axis_set->n_axes; k++) {
      int s = find_segment_of_input_axis(c, axis_set->axes[k]);
      if (s < 0) continue;
      if (first < 0) first = c->joined[s];
      int low = first < c->joined[s] ? first : c->joined[s],
          high = first < c->joined[s] ? c->joined[s] : first;
      for (int j = 0; j < c->n_segments; j++) {
        if (c->joined[j] == high) c->joined[j] = low;
      }
      first = low;
    }
  }
}

static void freeze_segment_outputs(reshape *c, const segment *s, int cause) {
  for (int k = 0; k < s->n_out; k++) {
    c->out->set[s->out[k]] = LACI_AXIS_FIXED;
    c->out->cause[s->out[k]] = cause;
  }
}

/* Returns all axes of the segments that are joined, in the order of the values' axes. */
static segment collect_joined_axes(const reshape *c, int first, bool *plain) {
  segment all = {0};
  *plain = true;
  for (int s = first; s < c->n_segments; s++) {
    if (c->joined[s] != first) continue;
    const segment *one = &c->segments[s];
    for (int k = 0; k < one->n_in; k++) all.in[all.n_in++] = one->in[k];
    for (int k = 0; k < one->n_out; k++) all.out[all.n_out++] = one->out[k];
    all.unknown |= one->unknown;
    *plain &= one->n_in == 1 && one->n_out == 1;
  }
  return all;
}

/* Copies the axis sets of segments that have one axis before and after the Reshape; only the axes'
 * numbers change. */
static void copy_axis_sets(reshape *c, const segment *all) {
  for (int k = 0; k < all->n_in; k++) {
    int state = c->in->set[all->in[k]];
    if (state < 0) {
      c->out->set[all->out[k]] = state;
      c->out->cause[all->out[k]] = c->in->cause[all->in[k]];
      continue;
    }
    laci_axis_set axis_set = c->in->axis_sets[state];
    bool first = axis_set.axes[0] == all->in[k];
    if (!first) continue;
    for (int j = 0; j < axis_set.n_axes; j++) {
      for (int q = 0; q < all->n_in; q++) {
        if (all->in[q] == c->in->axis_sets[state].axes[j]) axis_set.axes[j] = (int8_t)all->out[q];
      }
    }
    laci_layout_add_axis_set(c->r->t, laci_port_value(c->r, LACI_OUT(0)), &axis_set);
  }
}

/* Computes the index along every input axis of the joined segments, for one index along each of
 * their output axes. */
static void compute_input_index(const reshape *c, int first, const int64_t *out_index,
                                int64_t *index) {
  for (int s = first; s < c->n_segments; s++) {
    if (c->joined[s] != first) continue;
    const segment *one = &c->segments[s];
    int64_t flat = 0;
    for (int k = 0; k < one->n_out; k++)
      flat = flat * c->out_shape->dims[one->out[k]] + out_index[one->out[k]];
    for (int k = one->n_in - 1; k >= 0; k--) {
      int64_t size = c->in_shape->dims[one->in[k]];
      index[one->in[k]] = flat % size;
      flat /= size;
    }
  }
}

static bool fill_link_entries(const reshape *c, int first, const segment *all,
                              const laci_axis_set *carrier, int32_t *to, int32_t *copy) {
  int64_t n = 1;
  for (int k = 0; k < all->n_out; k++) n *= c->out_shape->dims[all->out[k]];
  bool identity = true;
  int64_t out_index[LACI_MAX_RANK] = {0}, index[LACI_MAX_RANK] = {0};
  for (int64_t p = 0; p < n; p++) {
    compute_input_index(c, first, out_index, index);
    int64_t at = 0, rest = 0;
    for (int k = 0; k < carrier->n_axes; k++)
      at = at * c->in_shape->dims[carrier->axes[k]] + index[carrier->axes[k]];
    for (int k = 0; k < all->n_in; k++) {
      bool carried = false;
      for (int j = 0; j < carrier->n_axes; j++) carried |= carrier->axes[j] == all->in[k];
      if (!carried) rest = rest * c->in_shape->dims[all->in[k]] + index[all->in[k]];
    }
    to[p] = (int32_t)at;
    copy[p] = (int32_t)rest;
    identity &= at == p && rest == 0;
    for (int k = all->n_out - 1; k >= 0; k--) {
      if (++out_index[all->out[k]] < c->out_shape->dims[all->out[k]]) break;
      out_index[all->out[k]] = 0;
    }
  }
  return identity;
}

/* Chooses the axis set whose channels may move through the Reshape: the first one with all axes in
 * the segments. All other axis sets must stay in place. */
static int choose_movable_axis_set(reshape *c, const segment *all) {
  int best = -1;
  int64_t most = 0;
  for (int k = 0; k < all->n_in; k++) {
    int state = c->in->set[all->in[k]];
    if (state < 0) continue;
    const laci_track *track = laci_track_find_root_record(c->r->t, c->in->axis_sets[state].track);
    if (!c->in->axis_sets[state].n_groups && track->n > most) {
      best = state;
      most = track->n;
    }
  }
  for (int k = 0; k < all->n_in; k++) {
    int state = c->in->set[all->in[k]];
    if (state >= 0 && state != best) {
      laci_track_freeze(c->r->t, c->in->axis_sets[state].track, laci_node_freeze_cause(c->r));
    }
  }
  return best;
}

static void resolve_joined_segments(reshape *c, int first, const segment *all) {
  laci_tracks *t = c->r->t;
  int best = all->unknown ? -1 : choose_movable_axis_set(c, all);
  int64_t n = 1;
  for (int k = 0; k < all->n_out && n >= 0; k++) {
    int64_t size = c->out_shape->dims[all->out[k]];
    if (size <= 0 || __builtin_mul_overflow(n, size, &n) || n > LACI_TRACK_LIMIT) n = -1;
  }
  int cause = -1;
  bool all_uniform = true;
  for (int k = 0; k < all->n_in; k++) {
    int state = c->in->set[all->in[k]];
    all_uniform &= state == LACI_AXIS_UNIFORM;
    if (state == LACI_AXIS_FIXED && cause < 0) cause = c->in->cause[all->in[k]];
  }
  if (best < 0 || n < 0) {
    for (int k = 0; k < all->n_in; k++) {
      int state = c->in->set[all->in[k]];
      if (state >= 0)
        laci_track_freeze(t, c->in->axis_sets[state].track, laci_node_freeze_cause(c->r));
    }
    if (all_uniform && !all->unknown && all->n_in) {
      for (int k = 0; k < all->n_out; k++) c->out->set[all->out[k]] = LACI_AXIS_UNIFORM;
    } else {
      freeze_segment_outputs(c, all, cause >= 0 ? cause : laci_node_freeze_cause(c->r));
    }
    return;
  }
  laci_axis_set carrier = c->in->axis_sets[best], axis_set = {.n_axes = all->n_out};
  for (int k = 0; k < all->n_out; k++) axis_set.axes[k] = (int8_t)all->out[k];
  int32_t *to = laci_alloc((size_t)n, sizeof *to), *copy = laci_alloc((size_t)n, sizeof *copy);
  if (!to || !copy) {
    laci_free(to);
    laci_free(copy);
    t->no_memory = true;
    return;
  }
  if (fill_link_entries(c, first, all, &carrier, to, copy) &&
      n == laci_track_find_root_record(t, carrier.track)->n) {
    axis_set.track = carrier.track;
    laci_free(to);
    laci_free(copy);
  } else {
    axis_set.track = laci_track_create(t, n, false);
    if (axis_set.track < 0) {
      laci_free(to);
      laci_free(copy);
      return;
    }
    laci_link_add(t, c->r->node_id, axis_set.track, carrier.track, to, copy);
  }
  laci_layout_add_axis_set(t, laci_port_value(c->r, LACI_OUT(0)), &axis_set);
}

void laci_resolve_reshape(laci_resolve *r) {
  laci_layout *in = laci_port_layout(r, 0), *out = laci_port_layout(r, LACI_OUT(0));
  if (!in || !out) {
    if (in) laci_layout_freeze_all_axes(r->t, laci_port_value(r, 0), laci_node_freeze_cause(r));
    return;
  }
  reshape c = {.r = r,
               .in = in,
               .out = out,
               .in_shape = laci_port_value_shape(r, 0),
               .out_shape = laci_port_value_shape(r, LACI_OUT(0))};
  find_segments(&c);
  join_segments_that_share_axis_sets(&c);
  for (int a = 0; a < out->rank; a++) {
    if (c.out_shape->dims[a] == 1) out->set[a] = LACI_AXIS_UNIFORM;
  }
  for (int s = 0; s < c.n_segments; s++) {
    if (c.joined[s] != s) continue;
    bool plain;
    segment all = collect_joined_axes(&c, s, &plain);
    if (plain) copy_axis_sets(&c, &all);
    else resolve_joined_segments(&c, s, &all);
  }
}
