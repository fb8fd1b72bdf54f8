/* SPDX-License-Identifier: Apache-2.0
 * Unique: the distinct elements, or distinct slices along an axis, in ascending order or in order
 * of first occurrence. Further outputs: the index of each first occurrence, for each input element
 * the index of its distinct element, and counts. All depends on content, so all axes are FIXED:
 * their order must stay (coupling.h). */
#include "base/error.h"
#include "base/memory.h"
#include "graph/coupling.h"
#include "graph/ops/shared/op_in.h"
#include "tensor/buf.h"

/** The items to compare: the elements of x, or its slices along the axis. */
typedef struct items {
  const laci_buf *x;
  int64_t n, outer, inner; /* item k: elements (o * n + k) * inner + i */
} items;

/** The distinct items: the index of the first occurrence of each, in the wanted order. */
typedef struct distinct_items {
  int64_t n;
  int64_t *first; /* [n] index of each distinct item's first occurrence; memory for all items */
} distinct_items;

static lac_status divide_into_items(const laci_node *node, const laci_buf *x, items *it,
                                    lac_error *err) {
  *it = (items){.x = x, .n = x->count, .outer = 1, .inner = 1};
  if (!laci_node_attr(node, "axis")) return LAC_OK;
  int64_t axis = laci_node_int(node, "axis", 0);
  lac_status st = laci_check_axis(node, x->shape.rank, &axis, err);
  if (st) return st;
  it->n = x->shape.dims[axis];
  it->outer = laci_shape_count_range(&x->shape, 0, (int)axis);
  it->inner = laci_shape_count_range(&x->shape, (int)axis + 1, x->shape.rank);
  return LAC_OK;
}

static int compare_items(const items *it, int64_t a, int64_t b) {
  for (int64_t o = 0; o < it->outer; o++) {
    for (int64_t i = 0; i < it->inner; i++) {
      int64_t at = (o * it->n + a) * it->inner + i, to = (o * it->n + b) * it->inner + i;
      if (it->x->f && it->x->f[at] != it->x->f[to]) return it->x->f[at] < it->x->f[to] ? -1 : 1;
      if (it->x->i && it->x->i[at] != it->x->i[to])
        return laci_int_compare(it->x->dtype, it->x->i[at], it->x->i[to]);
    }
  }
  return 0;
}

/** Returns the index of the distinct item that equals item k, or -1. */
static int64_t find_equal_item(const items *it, const distinct_items *f, int64_t k) {
  for (int64_t at = 0; at < f->n; at++) {
    if (compare_items(it, f->first[at], k) == 0) return at;
  }
  return -1;
}

static lac_status find_distinct_items(const laci_node *node, const items *it, distinct_items *f,
                                      lac_error *err) {
  bool sorted = laci_node_int(node, "sorted", 1) != 0;
  *f = (distinct_items){.first = laci_alloc((size_t)it->n, sizeof *f->first)};
  if (!f->first) return laci_fail_memory(err, node->name);
  for (int64_t k = 0; k < it->n; k++) {
    if (find_equal_item(it, f, k) >= 0) continue;
    int64_t to = f->n++;
    for (; sorted && to > 0 && compare_items(it, f->first[to - 1], k) > 0; to--) {
      f->first[to] = f->first[to - 1];
    }
    f->first[to] = k;
  }
  return LAC_OK;
}

static bool has_symbol(const laci_buf *x) {
  for (int64_t at = 0; x->i && at < x->count; at++) {
    if (laci_is_symbol(x->i[at])) return true;
  }
  return false;
}

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 1, 1);
  if (st) return st;
  const laci_shape *x = laci_in_shape(infer, 0);
  const laci_buf *content = laci_in_known_content(infer, 0);
  bool flat = !laci_node_attr(infer->node, "axis");
  int64_t n = -1, axis = laci_node_int(infer->node, "axis", 0);
  if (content && (content->f || content->i) && !has_symbol(content)) {
    items it;
    distinct_items f = {0};
    st = divide_into_items(infer->node, content, &it, infer->err);
    if (!st) st = find_distinct_items(infer->node, &it, &f, infer->err);
    n = f.n;
    laci_free(f.first);
    if (st) return st;
  } else if (x && !flat) {
    st = laci_check_axis(infer->node, x->rank, &axis, infer->err);
    if (st) return st;
  }
  int64_t size = n >= 0 ? n : infer->new_symbol(infer);
  for (int out = 0; out < infer->n_out; out++) {
    infer->out[out].dtype = out == 0 ? infer->in[0]->dtype : LAC_DTYPE_I64;
    infer->out[out].shape = (laci_shape){.rank = 1, .dims = {size}};
  }
  if (infer->n_out > 2) {
    int64_t all = x ? (flat ? laci_shape_count(x) : x->dims[axis < 0 ? axis + x->rank : axis]) : -1;
    infer->out[2].shape.dims[0] = all >= 0 ? all : infer->new_symbol(infer);
  }
  if (flat) return LAC_OK;
  infer->out[0].shape = x ? *x : laci_shape_unknown();
  if (x) infer->out[0].shape.dims[axis < 0 ? axis + x->rank : axis] = size;
  return LAC_OK;
}

static lac_status eval(laci_eval *eval) {
  items it;
  distinct_items f = {0};
  laci_buf *y = laci_result(eval, 0), *first = laci_result(eval, 1);
  laci_buf *inverse = laci_result(eval, 2), *counts = laci_result(eval, 3);
  lac_status st = divide_into_items(eval->node, eval->in[0], &it, eval->err);
  if (!st) st = find_distinct_items(eval->node, &it, &f, eval->err);
  for (int64_t at = 0; !st && at < f.n; at++) {
    for (int64_t o = 0; y && o < it.outer; o++) {
      laci_copy_elements(y, (o * f.n + at) * it.inner, it.x, (o * it.n + f.first[at]) * it.inner,
                         it.inner);
    }
    if (first) first->i[at] = f.first[at];
  }
  for (int64_t k = 0; !st && (inverse || counts) && k < it.n; k++) {
    int64_t at = find_equal_item(&it, &f, k);
    if (inverse && at >= 0) inverse->i[k] = at;
    if (counts && at >= 0) counts->i[at]++;
  }
  laci_free(f.first);
  return st;
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph, (void)node;
  c->why = "order matters to Unique";
  return laci_coupling_status(c);
}

const laci_op laci_op_unique = {
    .name = "Unique",
    .role = LACI_ROLE_PASS_THROUGH,
    .discontinuous = true,
    .attributes = LACI_ATTRIBUTES({"axis", LACI_ATTR_INT}, {"sorted", LACI_ATTR_INT}),
    .sizes_from_data = true,
    .infer = infer,
    .eval = eval,
    .couple = couple_channel_orders};
