/* SPDX-License-Identifier: Apache-2.0
 * Reorders a tensor along some of its axes, as its axis orders (orders.h) say.
 *
 * Each axis order becomes a table of old offsets, with one entry for each combined index of its
 * axes. The old offset of a new element is the sum of one entry of each table. So any number of
 * axis orders takes one pass. The elements after the last reordered axis stay together as one
 * run. */
#include "permute/orders.h"

#include <string.h>

#include "base/error.h"

enum { SOURCES_AT_ONCE = 512 };

void laci_orders_clear(laci_orders *orders) {
  laci_arena_clear(&orders->arena);
  orders->values = NULL;
  orders->n_values = 0;
}

static bool is_identity(const laci_axis_order *item) {
  for (int64_t i = 0; i < item->count; i++) {
    if (item->order[i] != i) return false;
  }
  return true;
}

bool laci_orders_are_identity(const laci_value_orders *orders) {
  for (int i = 0; i < orders->n; i++) {
    if (!is_identity(&orders->items[i])) return false;
  }
  return true;
}

/* Checks that the axes of an order exist, that none of them is in `taken` (the axes of other
 * orders), and that item->count is the product of their sizes. */
static lac_status check_axes(const laci_axis_order *item, const laci_shape *shape, unsigned *taken,
                             lac_error *err) {
  bool grouped = item->n_groups > 0;
  if (item->n_axes < 1 || item->n_axes > shape->rank || (grouped && item->n_axes != 1)) {
    return laci_fail(err, LAC_INTERNAL, "an order covers %d axes of a tensor of rank %d",
                     item->n_axes, shape->rank);
  }
  int64_t count = grouped ? item->n_groups : 1;
  for (int i = 0; i < item->n_axes; i++) {
    int axis = item->axes[i];
    if (axis < 0 || axis >= shape->rank || (*taken >> axis & 1)) {
      return laci_fail(err, LAC_INTERNAL,
                       "an order names axis %d, which is absent or has an order already", axis);
    }
    *taken |= 1u << axis;
    if (__builtin_mul_overflow(count, shape->dims[axis], &count)) count = -1;
  }
  if (count != item->count) {
    return laci_fail(err, LAC_INTERNAL, "an order of %lld places on axes that have %lld",
                     (long long)item->count, (long long)count);
  }
  if (!grouped) return LAC_OK;
  int row_axis = item->row_axis;
  if (row_axis < 0 || row_axis >= shape->rank || row_axis == item->axes[0] ||
      shape->dims[row_axis] % item->n_groups != 0) {
    return laci_fail(err, LAC_INTERNAL,
                     "a grouped order of %lld groups does not fit its rows on axis %d",
                     (long long)item->n_groups, row_axis);
  }
  return LAC_OK;
}

/* Checks that the order is a permutation. For a grouped convolution, also that no channel moves to
   another group. */
static lac_status check_order_is_permutation(const laci_axis_order *item, lac_error *err) {
  int64_t part = item->n_groups > 0 ? item->count / item->n_groups : item->count;
  lac_status st = LAC_OK;
  uint8_t *seen = laci_alloc((size_t)item->count, 1);
  if (!seen) return laci_fail_memory(err, "an order");
  for (int64_t i = 0; i < item->count && !st; i++) {
    int64_t from = item->order[i];
    if (from < 0 || from >= item->count || seen[from] || from / part != i / part) {
      st = laci_fail(err, LAC_INTERNAL, "an order is no permutation: place %lld takes %lld of %lld",
                     (long long)i, (long long)from, (long long)item->count);
    } else {
      seen[from] = 1;
    }
  }
  laci_free(seen);
  return st;
}

/* Fills the table of an order. offset[q] is the old offset, along this order's axes alone, of the
 * channel that moves to combined index q. */
static lac_status fill_offset_table(struct laci_order_walk_item *to, const laci_order_walk *walk,
                                    const laci_axis_order *item, lac_error *err) {
  to->row_axis = -1;
  to->offset = laci_alloc((size_t)item->count, sizeof *to->offset);
  if (!to->offset) return laci_fail_memory(err, "an order's offsets");
  int64_t step = 1;
  for (int i = item->n_axes - 1; i >= 0; i--) {
    to->step[item->axes[i]] = step;
    step *= walk->dims[item->axes[i]];
  }
  if (item->n_groups > 0) {
    to->row_axis = item->row_axis;
    to->rows_per_group = walk->dims[item->row_axis] / item->n_groups;
    to->size = walk->dims[item->axes[0]];
  }
  for (int64_t q = 0; q < item->count; q++) {
    int64_t left = item->order[q];
    for (int i = item->n_axes - 1; i >= 0; i--) {
      int axis = item->axes[i];
      to->offset[q] += left % walk->dims[axis] * walk->strides[axis];
      left /= walk->dims[axis]; /* for a grouped convolution, what is left is the group's number,
                                   which the row determines */
    }
  }
  return LAC_OK;
}

/* Merges the axes after the last reordered one into one run of elements that stay together. */
static void merge_trailing_axes(laci_order_walk *walk, unsigned moving) {
  while (walk->rank > 0 && !(moving >> (walk->rank - 1) & 1)) walk->run *= walk->dims[--walk->rank];
  walk->n_runs = 1;
  for (int axis = 0; axis < walk->rank; axis++) walk->n_runs *= walk->dims[axis];
}

lac_status laci_order_walk_init(laci_order_walk *walk, const laci_shape *shape,
                                const laci_value_orders *orders, lac_error *err) {
  memset(walk, 0, sizeof *walk);
  if (laci_shape_count(shape) < 0)
    return laci_fail(err, LAC_INTERNAL, "a reordered tensor has no known shape");
  walk->run = 1;
  walk->rank = shape->rank;
  int64_t stride = 1;
  for (int axis = shape->rank - 1; axis >= 0; axis--) {
    walk->dims[axis] = shape->dims[axis];
    walk->strides[axis] = stride;
    stride *= shape->dims[axis];
  }
  unsigned taken = 0, moving = 0;
  for (int i = 0; orders && i < orders->n; i++) {
    const laci_axis_order *item = &orders->items[i];
    lac_status st = check_axes(item, shape, &taken, err);
    if (!st) st = check_order_is_permutation(item, err);
    if (st) return st;
    if (is_identity(item)) continue;
    struct laci_order_walk_item *to = &walk->items[walk->n_items++];
    st = fill_offset_table(to, walk, item, err);
    if (st) return st;
    for (int k = 0; k < item->n_axes; k++) moving |= 1u << item->axes[k];
    if (to->row_axis >= 0) moving |= 1u << to->row_axis;
  }
  /* an axis that a table covers gets the stride 0 */
  for (int i = 0; i < walk->n_items; i++) {
    for (int axis = 0; axis < walk->rank; axis++) {
      if (walk->items[i].step[axis]) walk->strides[axis] = 0;
    }
  }
  merge_trailing_axes(walk, moving);
  return LAC_OK;
}

void laci_order_walk_clear(laci_order_walk *walk) {
  for (int i = 0; i < walk->n_items; i++) laci_free(walk->items[i].offset);
  memset(walk, 0, sizeof *walk);
}

/* Returns the contribution of all axes but the innermost (inner) to the combined index of this
 * table. index: the index along each axis. */
static int64_t combined_outer_index(const struct laci_order_walk_item *item, int inner,
                                    const int64_t *index) {
  int64_t q = 0;
  for (int axis = 0; axis < inner; axis++) q += item->step[axis] * index[axis];
  bool outer_row = item->row_axis >= 0 && item->row_axis != inner;
  return outer_row ? q + index[item->row_axis] / item->rows_per_group * item->size : q;
}

/* Sets sources[0 .. n) to the old offsets of n runs that differ only in the index along the
 * innermost axis: at, at + 1, ... Along it, an order gives the offsets; without an order the stride
 * does. The outer axes add a constant. A grouped order whose rows are along this axis adds its
 * offsets. */
static void list_offsets_along_line(const laci_order_walk *walk, const int64_t *index, int64_t at,
                                    int64_t n, int64_t base, int64_t *restrict sources) {
  int inner = walk->rank - 1;
  const int64_t *offset = NULL;
  int64_t step = 0;
  for (int i = 0; i < walk->n_items; i++) {
    const struct laci_order_walk_item *item = &walk->items[i];
    int64_t q = combined_outer_index(item, inner, index);
    if (item->step[inner]) {
      step = item->step[inner];
      offset = item->offset + q + at * step;
    } else if (item->row_axis != inner) {
      base += item->offset[q];
    }
  }
  if (step == 1) {
    for (int64_t i = 0; i < n; i++) sources[i] = base + offset[i];
  } else if (offset) {
    for (int64_t i = 0; i < n; i++) sources[i] = base + offset[i * step];
  } else {
    for (int64_t i = 0; i < n; i++) sources[i] = base + (at + i) * walk->strides[inner];
  }
  for (int k = 0; k < walk->n_items; k++) {
    const struct laci_order_walk_item *item = &walk->items[k];
    if (item->row_axis != inner) continue;
    int64_t q = combined_outer_index(item, inner, index);
    for (int64_t i = 0; i < n; i++)
      sources[i] += item->offset[q + (at + i) / item->rows_per_group * item->size];
  }
}

void laci_order_walk_list_offsets(const laci_order_walk *walk, int64_t first, int64_t n,
                                  int64_t *sources) {
  int inner = walk->rank - 1;
  if (inner < 0) { /* no axis is reordered, and the whole tensor is copied as one run */
    if (n > 0) sources[0] = 0;
    return;
  }
  while (n > 0) {
    int64_t index[LACI_MAX_RANK] = {0}, base = 0, left = first;
    for (int axis = inner; axis >= 0; axis--) {
      index[axis] = left % walk->dims[axis];
      left /= walk->dims[axis];
      if (axis < inner) base += index[axis] * walk->strides[axis];
    }
    int64_t at = index[inner], now = walk->dims[inner] - at < n ? walk->dims[inner] - at : n;
    list_offsets_along_line(walk, index, at, now, base, sources);
    first += now;
    n -= now;
    sources += now;
  }
}

/* Integers as wide as an element. They copy elements of any type, at any address. */
typedef uint16_t word16 __attribute__((may_alias, aligned(1)));
typedef uint32_t word32 __attribute__((may_alias, aligned(1)));
typedef uint64_t word64 __attribute__((may_alias, aligned(1)));

#define GATHER(type)                                                                   \
  do {                                                                                 \
    for (int64_t i = 0; i < n; i++) ((type *)out)[i] = ((const type *)in)[sources[i]]; \
  } while (0)

/* Copies n runs of `run` elements, which begin at the old offsets `sources`, to `out`. Single
 * elements, the common case (reordered columns), are copied as integers; longer runs by memcpy. */
static void gather_elements(const int64_t *sources, int64_t n, int64_t run, size_t element_size,
                            const void *in, void *out) {
  switch (run == 1 ? element_size : 0) {
    case 1: GATHER(uint8_t); return;
    case 2: GATHER(word16); return;
    case 4: GATHER(word32); return;
    case 8: GATHER(word64); return;
  }
  size_t bytes = (size_t)run * element_size;
  for (int64_t i = 0; i < n; i++) {
    memcpy((uint8_t *)out + (size_t)i * bytes,
           (const uint8_t *)in + (size_t)sources[i] * element_size, bytes);
  }
}

lac_status laci_reorder(const laci_shape *shape, size_t element_size,
                        const laci_value_orders *orders, const void *in, void *out,
                        lac_error *err) {
  laci_order_walk walk;
  lac_status st = laci_order_walk_init(&walk, shape, orders, err);
  if (st) goto out;
  int64_t sources[SOURCES_AT_ONCE];
  for (int64_t first = 0; first < walk.n_runs; first += SOURCES_AT_ONCE) {
    int64_t n = walk.n_runs - first < SOURCES_AT_ONCE ? walk.n_runs - first : SOURCES_AT_ONCE;
    laci_order_walk_list_offsets(&walk, first, n, sources);
    gather_elements(sources, n, walk.run, element_size, in,
                    (uint8_t *)out + (size_t)(first * walk.run) * element_size);
  }
out:
  laci_order_walk_clear(&walk);
  return st;
}
