/* SPDX-License-Identifier: Apache-2.0
 * The common code of all reductions: finds the axes and the output's shape, and for every element
 * of the output, in row-major order, loops over the elements of the input that are reduced to it.
 *
 * Neighbouring reduced (and neighbouring kept) axes are merged first, so that the usual cases have
 * one of each. */
#include "graph/coupling.h"
#include "graph/gradient.h"
#include "graph/ops/shared/reduce_in.h"

#include "graph/ops/shared/grad_in.h"
#include "graph/ops/shared/walk_in.h"

/* ---- Finding the reduced axes ---- */

/** Finds the reduced axes. *known is false where they are not known; then flags are not set. */
static lac_status find_reduced_axes(const laci_node *node, const laci_buf *content, int rank,
                                    bool flags[LACI_MAX_RANK], bool *known, lac_error *err) {
  laci_ints axes = laci_read_int_list(node, "axes", 1, content);
  *known = rank >= 0 && (!axes.present || (axes.known && !axes.has_symbols));
  if (!*known) return LAC_OK;
  bool none = !axes.present || axes.n == 0;
  for (int axis = 0; axis < LACI_MAX_RANK; axis++) flags[axis] = false;
  if (none && laci_node_int(node, "noop_with_empty_axes", 0)) return LAC_OK;
  if (none) axes.present = false;
  return laci_axes_to_flags(node, &axes, rank, true, flags, err);
}

lac_status laci_reduce_infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 1, 2);
  if (st) return st;
  infer->out[0].dtype = infer->in[0]->dtype;
  const laci_shape *x = &infer->in[0]->shape;
  laci_shape *y = &infer->out[0].shape;
  bool keep = laci_node_int(infer->node, "keepdims", 1) != 0, flags[LACI_MAX_RANK], known;
  st = find_reduced_axes(infer->node, laci_in_known_content(infer, 1), x->rank, flags, &known,
                         infer->err);
  if (st || x->rank < 0 || (!known && !keep)) return st;
  y->rank = 0;
  for (int axis = 0; axis < x->rank; axis++) {
    if (!known) y->dims[y->rank++] = infer->new_symbol(infer);
    else if (!flags[axis]) y->dims[y->rank++] = x->dims[axis];
    else if (keep) y->dims[y->rank++] = 1;
  }
  return LAC_OK;
}

lac_status laci_global_pool_infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 1, 1);
  if (st) return st;
  infer->out[0] = *infer->in[0];
  laci_shape *y = &infer->out[0].shape;
  for (int axis = 2; axis < y->rank; axis++) y->dims[axis] = 1;
  return LAC_OK;
}

/* ---- Values ---- */

typedef struct merged_axes {
  int n;
  int64_t size[LACI_MAX_RANK], stride[LACI_MAX_RANK], count;
} merged_axes;

typedef struct job {
  const laci_reducer *reducer;
  const laci_buf *in;
  laci_buf *out;
  merged_axes kept, reduced;
} job;

/** Collects the axes whose flag is `wanted`, in row-major order; neighbouring axes that form one
 * longer axis are merged.
 *  */
static void collect_merged_axes(const laci_shape *shape, const bool *flags, bool wanted,
                                merged_axes *m) {
  int64_t strides[LACI_MAX_RANK];
  laci_shape_strides(shape, strides);
  *m = (merged_axes){.count = 1};
  for (int axis = 0; axis < shape->rank; axis++) {
    if (flags[axis] != wanted) continue;
    int64_t size = shape->dims[axis];
    m->count *= size;
    if (m->n > 0 && m->stride[m->n - 1] == strides[axis] * size) {
      m->size[m->n - 1] *= size;
      m->stride[m->n - 1] = strides[axis];
    } else {
      m->size[m->n] = size;
      m->stride[m->n++] = strides[axis];
    }
  }
}

/** Returns the flat input index of element `at` of the merged axes. */
static int64_t offset_of_element(const merged_axes *m, int64_t at) {
  int64_t offset = 0;
  for (int axis = m->n - 1; axis >= 0; axis--) {
    offset += at % m->size[axis] * m->stride[axis];
    at /= m->size[axis];
  }
  return offset;
}

static double reduce_element(const job *j, int64_t base) {
  laci_reduce_state state = j->reducer->start;
  const merged_axes *m = &j->reduced;
  int64_t run = m->n ? m->size[m->n - 1] : 1, step = m->n ? m->stride[m->n - 1] : 0;
  for (int64_t at = 0; at < m->count; at += run) {
    int64_t from = base + offset_of_element(m, at);
    for (int64_t i = 0; i < run; i++, from += step) {
      j->reducer->step(&state, laci_buf_get_f(j->in, from));
    }
  }
  return j->reducer->end ? j->reducer->end(&state, m->count) : state.a;
}

static int64_t reduce_integer_element(const job *j, int64_t base) {
  const laci_reducer *r = j->reducer;
  laci_wide state = r->start_integer;
  for (int64_t at = 0; at < j->reduced.count; at++) {
    const int64_t x = j->in->i[base + offset_of_element(&j->reduced, at)];
    state = r->step_integer(state, laci_int_to_wide(j->in->dtype, x));
  }
  if (r->end_integer) state = r->end_integer(state, j->reduced.count);
  return laci_int_from_wide(j->out->dtype, state);
}

static void reduce_elements_in_range(int64_t begin, int64_t end, void *context) {
  const job *j = context;
  for (int64_t at = begin; at < end; at++) {
    int64_t base = offset_of_element(&j->kept, at);
    if (j->out->f) {
      j->out->f[at] = reduce_element(j, base);
      continue;
    }
    j->out->i[at] = j->reducer->step_integer
                        ? reduce_integer_element(j, base)
                        : laci_int_truncate(j->out->dtype, reduce_element(j, base));
  }
}

static lac_status run_reduction(const laci_eval *eval, const laci_reducer *reducer,
                                const bool *flags) {
  job j = {.reducer = reducer, .in = eval->in[0], .out = eval->out[0]};
  if (!j.in->f != !j.out->f) {
    return laci_node_fail(eval->node, eval->err, LAC_UNSUPPORTED, "mixed element types");
  }
  collect_merged_axes(&j.in->shape, flags, false, &j.kept);
  collect_merged_axes(&j.in->shape, flags, true, &j.reduced);
  if (j.kept.count != j.out->count) {
    return laci_node_fail(eval->node, eval->err, LAC_BAD_SHAPE, "%lld results for %lld places",
                          (long long)j.kept.count, (long long)j.out->count);
  }
  laci_eval_parallel(eval, j.out->count, reduce_elements_in_range, &j);
  return LAC_OK;
}

lac_status laci_reduce_eval(const laci_eval *eval, const laci_reducer *reducer) {
  bool flags[LACI_MAX_RANK], known;
  const laci_buf *in = eval->in[0];
  lac_status st = find_reduced_axes(eval->node, laci_operand(eval, 1), in->shape.rank, flags,
                                    &known, eval->err);
  if (st) return st;
  if (!known) return laci_node_fail(eval->node, eval->err, LAC_BAD_SHAPE, "the axes are unknown");
  return run_reduction(eval, reducer, flags);
}

lac_status laci_global_pool_eval(const laci_eval *eval, const laci_reducer *reducer) {
  bool flags[LACI_MAX_RANK];
  for (int axis = 0; axis < LACI_MAX_RANK; axis++) flags[axis] = axis >= 2;
  return run_reduction(eval, reducer, flags);
}

void laci_reduce_add(laci_reduce_state *state, double x) { state->a += x; }
double laci_reduce_mean(const laci_reduce_state *state, int64_t n) { return state->a / (double)n; }

laci_wide laci_reduce_add_integer(laci_wide state, laci_wide x) {
  laci_wide sum;
  if (!__builtin_add_overflow(state, x, &sum)) return sum;
  return state; /* on overflow the state stays near the limit of laci_wide, and the result is
                   clamped */
}

laci_wide laci_reduce_product(laci_wide a, laci_wide b) {
  static const laci_wide largest = ((laci_wide)INT64_MAX << 64) + UINT64_MAX;
  laci_wide product;
  if (!__builtin_mul_overflow(a, b, &product)) return product;
  return (a < 0) == (b < 0) ? largest : -largest;
}

/* ---- Coupling ---- */

static void couple_unreduced_axes(laci_coupling *c, const bool *flags, bool keep) {
  const laci_shape *x = laci_port_shape(c, 0), *y = laci_port_shape(c, LACI_OUT(0));
  laci_coupling_mark_described(c, 0);
  laci_coupling_mark_described(c, LACI_OUT(0));
  int out = 0;
  for (int axis = 0; axis < x->rank; axis++) {
    int label = laci_coupling_new_label(c);
    laci_coupling_set_label(c, 0, axis, label);
    if (flags[axis] && !keep) continue;
    if (out < y->rank)
      laci_coupling_set_label(c, LACI_OUT(0), out++,
                              flags[axis] ? laci_coupling_new_label(c) : label);
  }
}

lac_status laci_reduce_couple_orders(const laci_graph *graph, const laci_node *node,
                                     laci_coupling *c) {
  bool flags[LACI_MAX_RANK], known;
  const laci_shape *x = laci_port_shape(c, 0);
  c->why = "it is not known which axes are reduced";
  if (!x || !laci_port_shape(c, LACI_OUT(0))) return laci_coupling_status(c);
  const laci_buf *axes = laci_known_content(graph, node, 1);
  if (!find_reduced_axes(node, axes, x->rank, flags, &known, NULL) && known) {
    couple_unreduced_axes(c, flags, laci_node_int(node, "keepdims", 1) != 0);
  }
  return laci_coupling_status(c);
}

lac_status laci_global_pool_couple_orders(const laci_graph *graph, const laci_node *node,
                                          laci_coupling *c) {
  (void)graph, (void)node;
  bool flags[LACI_MAX_RANK];
  for (int axis = 0; axis < LACI_MAX_RANK; axis++) flags[axis] = axis >= 2;
  if (laci_port_shape(c, 0) && laci_port_shape(c, LACI_OUT(0)))
    couple_unreduced_axes(c, flags, true);
  return laci_coupling_status(c);
}

/* ---- Gradients ---- */

int laci_gradient_restore_axes(laci_gradient_builder *b, const laci_node *node, int y) {
  bool flags[LACI_MAX_RANK], known;
  laci_shape shape = laci_gradient_shape_of_input(b, node, 0);
  const laci_buf *axes = laci_gradient_known_content(b, node, 1);
  if (find_reduced_axes(node, axes, shape.rank, flags, &known, NULL) || !known) {
    (void)laci_gradient_fail_unsupported(b, node, "it is not known which axes are reduced");
    return -1;
  }
  for (int axis = 0; axis < shape.rank; axis++) {
    if (flags[axis]) shape.dims[axis] = 1;
  }
  return laci_gradient_add_reshape(b, y, &shape);
}

int laci_gradient_expand_reduced(laci_gradient_builder *b, const laci_node *node, int y) {
  laci_shape shape = laci_gradient_shape_of_input(b, node, 0);
  return laci_gradient_add_expand(b, laci_gradient_restore_axes(b, node, y), &shape);
}
