/* SPDX-License-Identifier: Apache-2.0
 * Rules out candidates by comparing slices of stored tensors. The place of an element in its slice
 * is given by the colors (match.c) of its positions along the other axes. Equal colors mean that
 * two places may be the same. Tensors that were not masked have the same content in both networks,
 * so sums of hashes must be equal. In masked tensors, every element that was not masked must occur
 * in the old slice as often. */
#include <string.h>

#include "base/memory.h"
#include "graph/graph.h"
#include "prune/match_in.h"
#include "tensor/buf.h"
#include "tensor/narrow.h"
#include "tensor/shape.h"

uint64_t laci_element_bits(const laci_stored *stored, int64_t at) {
  size_t size = lac_dtype_size(stored->dtype);
  uint64_t bits = 0;
  memcpy(&bits, stored->bytes + (size_t)at * size, size);
  return bits;
}

uint64_t laci_hash_bits(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

bool laci_is_masked_value(lac_dtype dtype, uint64_t bits, double zero) {
  if (laci_dtype_is_float(dtype)) return bits == 0 || bits == laci_negative_zero(dtype);
  return laci_int_to_double(dtype, laci_int_wrap(dtype, (int64_t)bits)) == zero;
}

/* ---- Finding the elements of slices ---- */

/* The elements of a tensor's slices. Element k of the slice of channel c is at offset base[c] +
 * rest[k]. Its position along another axis is such a sum, too (others), and so is its place along
 * axes without a track (fixed_base, fixed_rest). */
typedef struct slices {
  int n_channels;
  int64_t n; /* number of elements in a slice */
  int64_t *base, *rest;
  uint64_t *fixed_base, *fixed_rest;
  int n_others;
  struct {
    int track;
    int32_t *base, *rest;
  } others[LACI_MAX_RANK];
  laci_arena arena;
} slices;

typedef struct geometry {
  const laci_shape *shape;
  int64_t strides[LACI_MAX_RANK];
  int n;
  laci_value_axes on[LACI_MAX_RANK];
  unsigned tracked; /* bit i is set if channels along axis i may have been reordered (the axis is on
                       a track) */
} geometry;

static void read_geometry(const laci_analysis *a, const laci_stored *stored, geometry *to) {
  to->shape = &stored->shape;
  to->tracked = 0;
  to->n = laci_value_find_track_axes(a, stored->value, to->on);
  for (int axis = 0; axis < stored->shape.rank; axis++)
    to->strides[axis] = laci_shape_count_range(&stored->shape, axis + 1, stored->shape.rank);
  for (int i = 0; i < to->n; i++) {
    for (int k = 0; k < to->on[i].n_axes; k++) to->tracked |= 1u << to->on[i].axes[k];
  }
}

static int64_t index_along_axis(const geometry *g, int axis, int64_t element) {
  return element / g->strides[axis] % g->shape->dims[axis];
}

static int64_t count_rows_of_group(const geometry *g, const laci_value_axes *on) {
  return g->shape->dims[on->row_axis] / on->n_groups;
}

static int64_t compute_position_on_track(const geometry *g, const laci_value_axes *on,
                                         int64_t element) {
  int64_t p = 0;
  for (int k = 0; k < on->n_axes; k++)
    p = p * g->shape->dims[on->axes[k]] + index_along_axis(g, on->axes[k], element);
  if (on->n_groups == 0) return p;
  return p + index_along_axis(g, on->row_axis, element) / count_rows_of_group(g, on) *
                 g->shape->dims[on->axes[0]];
}

/* Returns the index of the first element at a position along the axes `on`. */
static int64_t first_element_at_position(const geometry *g, const laci_value_axes *on,
                                         int64_t position) {
  int64_t element = 0;
  for (int k = on->n_axes - 1; k >= 0; k--) {
    element += position % g->shape->dims[on->axes[k]] * g->strides[on->axes[k]];
    position /= g->shape->dims[on->axes[k]];
  }
  if (on->n_groups == 0) return element;
  return element + position * count_rows_of_group(g, on) * g->strides[on->row_axis];
}

static uint64_t compute_place_along_untracked_axes(const geometry *g, int64_t element) {
  uint64_t place = 0;
  for (int axis = 0; axis < g->shape->rank; axis++) {
    if (g->tracked >> axis & 1) continue;
    place += (uint64_t)(index_along_axis(g, axis, element) * g->strides[axis]);
  }
  return place * 0x9E3779B97F4A7C15u;
}

/* Sets to->rest: the offsets of all elements of the first slice. */
static void fill_slice_offsets(const geometry *g, const laci_value_axes *on, slices *to) {
  laci_shape slice = *g->shape;
  for (int k = 0; k < on->n_axes; k++) slice.dims[on->axes[k]] = 1;
  if (on->n_groups > 0) slice.dims[on->row_axis] = count_rows_of_group(g, on);
  for (int64_t k = 0; k < to->n; k++) {
    int64_t left = k;
    for (int axis = g->shape->rank - 1; axis >= 0; axis--) {
      to->rest[k] += left % slice.dims[axis] * g->strides[axis];
      left /= slice.dims[axis];
    }
  }
}

static bool alloc_slices(slices *to, int n_others) {
  const size_t c = (size_t)to->n_channels, n = (size_t)to->n;
  to->base = laci_arena_alloc(&to->arena, c, sizeof *to->base);
  to->rest = laci_arena_alloc(&to->arena, n, sizeof *to->rest);
  to->fixed_base = laci_arena_alloc(&to->arena, c, sizeof *to->fixed_base);
  to->fixed_rest = laci_arena_alloc(&to->arena, n, sizeof *to->fixed_rest);
  bool ok = to->base && to->rest && to->fixed_base && to->fixed_rest;
  for (int i = 0; ok && i < n_others; i++) {
    to->others[i].base = laci_arena_alloc(&to->arena, c, sizeof *to->others[i].base);
    to->others[i].rest = laci_arena_alloc(&to->arena, n, sizeof *to->others[i].rest);
    ok = to->others[i].base && to->others[i].rest;
  }
  return ok;
}

static bool slices_init(const laci_match_comparison *look, slices *to) {
  geometry g;
  const laci_match_unit *unit = look->unit;
  const laci_slot slot = laci_group_slot(look->analysis, unit->group, unit->slot);
  read_geometry(look->analysis, look->pair->old, &g);
  const laci_value_axes *on = &g.on[unit->item];
  *to = (slices){.n_channels = look->group->n};
  to->n = laci_shape_count(g.shape) / laci_track_count_positions(look->analysis, on->track);
  if (!alloc_slices(to, g.n - 1)) return false;
  fill_slice_offsets(&g, on, to);
  for (int c = 0; c < to->n_channels; c++) {
    to->base[c] = first_element_at_position(&g, on, slot.position[c]);
    to->fixed_base[c] = compute_place_along_untracked_axes(&g, to->base[c]);
  }
  for (int64_t k = 0; k < to->n; k++)
    to->fixed_rest[k] = compute_place_along_untracked_axes(&g, to->rest[k]);
  for (int i = 0; i < g.n; i++) {
    if (i == unit->item) continue;
    const int at = to->n_others++;
    to->others[at].track = g.on[i].track;
    for (int c = 0; c < to->n_channels; c++)
      to->others[at].base[c] = (int32_t)compute_position_on_track(&g, &g.on[i], to->base[c]);
    for (int64_t k = 0; k < to->n; k++)
      to->others[at].rest[k] = (int32_t)compute_position_on_track(&g, &g.on[i], to->rest[k]);
  }
  return true;
}

/* Returns the place of element k in the slice of channel c. colours: [n_others] for each other
 * axis, the color of each position. */
static uint64_t place_in_slice(const slices *s, const uint64_t *const *colours, int c, int64_t k) {
  uint64_t place = s->fixed_base[c] + s->fixed_rest[k];
  for (int i = 0; i < s->n_others; i++) {
    const uint64_t colour = colours[i][s->others[i].base[c] + s->others[i].rest[k]];
    place += colour * (uint64_t)(2 * i + 1);
  }
  return laci_hash_bits(place);
}

static void list_colours_of_others(const slices *s, uint64_t *const *colour, const uint64_t **to) {
  for (int i = 0; i < s->n_others; i++) to[i] = colour[s->others[i].track];
}

static uint64_t hash_element(uint64_t place, uint64_t bits) {
  return laci_hash_bits(place + laci_hash_bits(bits + 0x9E37u));
}

static uint64_t hash_slice(const slices *s, const uint64_t *const *colours,
                           const laci_stored *stored, int c) {
  uint64_t sum = 0;
  for (int64_t k = 0; k < s->n; k++) {
    const uint64_t bits = laci_element_bits(stored, s->base[c] + s->rest[k]);
    sum += hash_element(place_in_slice(s, colours, c, k), bits);
  }
  return sum;
}

bool laci_match_hash_slices(const laci_match_comparison *look, const uint64_t *place,
                            uint64_t *hash) {
  slices s;
  const uint64_t *places[LACI_MAX_RANK];
  const bool ok = slices_init(look, &s);
  for (int i = 0; i < LACI_MAX_RANK; i++) places[i] = place;
  for (int c = 0; ok && c < s.n_channels; c++)
    hash[c] = laci_hash_bits(hash[c] + hash_slice(&s, places, look->pair->old, c));
  *look->steps += (uint64_t)look->unit->n_elements;
  laci_arena_clear(&s.arena);
  return ok;
}

/* ---- Unmasked tensors ---- */

static bool exclude_by_slice_hashes(const laci_match_comparison *look, const slices *s) {
  const uint64_t *fresh[LACI_MAX_RANK], *old[LACI_MAX_RANK];
  const int n = s->n_channels;
  uint64_t *sums = laci_alloc(2 * (size_t)n, sizeof *sums);
  if (!sums) return false;
  list_colours_of_others(s, look->fresh_colour, fresh);
  list_colours_of_others(s, look->old_colour, old);
  for (int c = 0; c < n; c++) {
    sums[c] = hash_slice(s, fresh, look->pair->fresh, c);
    sums[n + c] = hash_slice(s, old, look->pair->old, c);
  }
  for (int c = 0; c < n; c++) {
    for (int o = 0; o < n; o++) {
      if (sums[c] != sums[n + o] && laci_match_is_candidate(look->group, c, o))
        look->rule_out(look->match, look->unit->group, c, o);
    }
  }
  *look->steps += 2 * (uint64_t)look->unit->n_elements + (uint64_t)n * (uint64_t)n / 8;
  laci_free(sums);
  return true;
}

/* ---- Masked tensors ---- */

/* A hash table of the elements of an old slice. count: how often a hash occurs in the slice. left:
 * how many of these occurrences new slice number `round` has not used yet. Hash 0 marks a free
 * entry, so a hash of 0 is stored as 1. */
typedef struct bag {
  uint64_t mask;
  struct bag_place {
    uint64_t hash, round;
    int64_t count, left;
  } * places;
} bag;

static bool create_element_counts(bag *b, int64_t n) {
  uint64_t size = 16;
  while (size < 2 * (uint64_t)n) size *= 2;
  *b = (bag){.mask = size - 1, .places = laci_alloc(size, sizeof *b->places)};
  return b->places != NULL;
}

static struct bag_place *find_entry_of_hash(const bag *b, uint64_t hash) {
  hash += hash == 0;
  uint64_t at = hash & b->mask;
  while (b->places[at].hash && b->places[at].hash != hash) at = (at + 1) & b->mask;
  return &b->places[at];
}

static void count_element(bag *b, uint64_t hash) {
  struct bag_place *place = find_entry_of_hash(b, hash);
  place->hash = hash + (hash == 0);
  place->count++;
}

static bool take_counted_element(bag *b, uint64_t hash, uint64_t round) {
  struct bag_place *place = find_entry_of_hash(b, hash);
  if (!place->hash) return false;
  if (place->round != round) place->left = place->count;
  place->round = round;
  return place->left-- > 0;
}

typedef struct masked {
  const laci_match_comparison *look;
  const slices *s;
  const uint64_t *fresh[LACI_MAX_RANK], *old[LACI_MAX_RANK];
  bag kept, zeros; /* kept: elements of the old slice. zeros: hashes of masked-out elements, used if
                      zero points differ; otherwise zeros.places is NULL, and the value `zero` is
                      used */
  double zero;
  uint64_t round;
} masked;

static bool has_differing_zero_points(const laci_weight_view *view, double *zero) {
  *zero = 0;
  if (!view->zero || view->n_scales <= 0 || laci_dtype_is_float(view->dtype)) return false;
  *zero = view->zero[0];
  for (int64_t k = 1; k < view->n_scales; k++) {
    if (view->zero[k] != *zero) return true;
  }
  return false;
}

static uint64_t hash_zero_point(uint64_t place, double zero) {
  return laci_hash_bits(place ^ laci_hash_bits((uint64_t)(int64_t)zero + 0x2E05u));
}

static void count_elements_of_old_slice(masked *m, int old) {
  const slices *s = m->s;
  const laci_weight_view *view = m->look->pair->view;
  memset(m->kept.places, 0, (m->kept.mask + 1) * sizeof *m->kept.places);
  if (m->zeros.places) memset(m->zeros.places, 0, (m->zeros.mask + 1) * sizeof *m->zeros.places);
  for (int64_t k = 0; k < s->n; k++) {
    const int64_t at = s->base[old] + s->rest[k];
    const uint64_t place = place_in_slice(s, m->old, old, k);
    count_element(&m->kept, hash_element(place, laci_element_bits(m->look->pair->old, at)));
    if (m->zeros.places)
      count_element(&m->zeros, hash_zero_point(place, view->zero[laci_scale_index_of(view, at)]));
  }
  *m->look->steps += (uint64_t)s->n * 2;
}

/* May an element with these bits at this place be masked out, given the zero points in the old
 * slice? */
static bool may_be_masked_out(const masked *m, uint64_t place, uint64_t bits) {
  const lac_dtype dtype = m->look->pair->old->dtype;
  if (!m->zeros.places) return laci_is_masked_value(dtype, bits, m->zero);
  const double value = laci_int_to_double(dtype, laci_int_wrap(dtype, (int64_t)bits));
  return find_entry_of_hash(&m->zeros, hash_zero_point(place, value))->hash != 0;
}

static bool may_slice_match_old_slice(masked *m, int fresh) {
  const slices *s = m->s;
  int64_t k = 0;
  bool fit = true;
  m->round++;
  for (; fit && k < s->n; k++) {
    const uint64_t bits = laci_element_bits(m->look->pair->fresh, s->base[fresh] + s->rest[k]);
    if (!m->zeros.places && may_be_masked_out(m, 0, bits)) continue;
    const uint64_t place = place_in_slice(s, m->fresh, fresh, k);
    if (m->zeros.places && may_be_masked_out(m, place, bits)) continue;
    fit = take_counted_element(&m->kept, hash_element(place, bits), m->round);
  }
  *m->look->steps += (uint64_t)k;
  return fit;
}

static bool exclude_by_masked_slices(const laci_match_comparison *look, const slices *s) {
  masked m = {.look = look, .s = s};
  const bool differ = has_differing_zero_points(look->pair->view, &m.zero);
  bool ok =
      create_element_counts(&m.kept, s->n) && (!differ || create_element_counts(&m.zeros, s->n));
  list_colours_of_others(s, look->fresh_colour, m.fresh);
  list_colours_of_others(s, look->old_colour, m.old);
  for (int old = 0; ok && old < s->n_channels; old++) {
    bool filled = false;
    for (int fresh = 0; fresh < s->n_channels; fresh++) {
      if (!laci_match_is_candidate(look->group, fresh, old)) continue;
      if (!filled) count_elements_of_old_slice(&m, old);
      filled = true;
      if (!may_slice_match_old_slice(&m, fresh))
        look->rule_out(look->match, look->unit->group, fresh, old);
    }
  }
  laci_free(m.kept.places);
  laci_free(m.zeros.places);
  return ok;
}

bool laci_match_exclude_by_unit(const laci_match_comparison *look) {
  slices s;
  bool ok = slices_init(look, &s);
  if (ok && look->pair->masked) ok = exclude_by_masked_slices(look, &s);
  else if (ok) ok = exclude_by_slice_hashes(look, &s);
  laci_arena_clear(&s.arena);
  return ok;
}
