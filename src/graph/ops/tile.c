/* SPDX-License-Identifier: Apache-2.0
 * Tile: repeats x along its axes. Position o of a repeated axis reads position o mod size (a map).
 * An axis that is not repeated passes channel orders through (coupling.h). Axes whose repeats are
 * not constant are FIXED. */
#include "graph/coupling.h"
#include "graph/gradient.h"
#include "graph/ops/shared/op_in.h"
#include "tensor/buf.h"

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 2, 2);
  if (st) return st;
  infer->out[0].dtype = infer->in[0]->dtype;
  const laci_shape *x = laci_in_shape(infer, 0);
  if (!x) return LAC_OK;
  laci_ints repeats = laci_read_int_list(infer->node, NULL, 1, laci_in_known_content(infer, 1));
  if (repeats.known && repeats.n != x->rank) {
    return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE,
                          "%d repeats for a tensor of %d axes", repeats.n, x->rank);
  }
  laci_shape *out = &infer->out[0].shape;
  out->rank = x->rank;
  for (int axis = 0; axis < x->rank; axis++) {
    int64_t times = repeats.known ? repeats.v[axis] : -1, size = x->dims[axis];
    bool symbol = !repeats.known || laci_is_symbol(times);
    if (!symbol && times < 0) {
      return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE, "%lld repeats",
                            (long long)times);
    }
    if (!symbol && times == 1) out->dims[axis] = size;
    else if (repeats.known && symbol && size == 1) out->dims[axis] = laci_size_from_element(times);
    else if (symbol || size < 0 || __builtin_mul_overflow(size, times, &out->dims[axis])) {
      out->dims[axis] = infer->new_symbol(infer);
    }
  }
  return LAC_OK;
}

typedef struct tiling {
  const laci_buf *x;
  laci_buf *out;
  int64_t row_in, row_out;
} tiling;

/** Writes rows of out, each a repetition of one row of x. */
static void tile_rows(int64_t begin, int64_t end, void *context) {
  const tiling *job = context;
  const laci_shape *x = &job->x->shape, *out = &job->out->shape;
  for (int64_t row = begin; row < end; row++) {
    int64_t rest = row, from = 0, stride = 1;
    for (int axis = x->rank - 2; axis >= 0; axis--) {
      from += rest % out->dims[axis] % x->dims[axis] * stride;
      rest /= out->dims[axis];
      stride *= x->dims[axis];
    }
    for (int64_t at = 0; at < job->row_out; at += job->row_in) {
      laci_copy_elements(job->out, row * job->row_out + at, job->x, from * job->row_in,
                         job->row_in);
    }
  }
}

static lac_status eval(laci_eval *eval) {
  tiling job = {.x = eval->in[0], .out = eval->out[0], .row_in = 1, .row_out = 1};
  int rank = job.x->shape.rank;
  if (job.out->count == 0) return LAC_OK;
  if (rank > 0) {
    job.row_in = job.x->shape.dims[rank - 1];
    job.row_out = job.out->shape.dims[rank - 1];
  }
  laci_eval_parallel(eval, job.out->count / job.row_out, tile_rows, &job);
  return LAC_OK;
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  const laci_shape *x = laci_port_shape(c, 0), *y = laci_port_shape(c, LACI_OUT(0));
  laci_ints repeats = laci_read_int_list(node, NULL, 1, laci_known_content(graph, node, 1));
  if (!x || !y || x->rank != y->rank || !repeats.known || repeats.n != x->rank)
    return laci_coupling_status(c);
  laci_coupling_mark_described(c, 0);
  laci_coupling_mark_described(c, LACI_OUT(0));
  for (int axis = 0; axis < x->rank; axis++) {
    if (repeats.v[axis] == 1) {
      int label = laci_coupling_new_label(c);
      laci_coupling_set_label(c, 0, axis, label);
      laci_coupling_set_label(c, LACI_OUT(0), axis, label);
    } else if (laci_is_axis_mappable(c, 0, axis) && laci_is_axis_mappable(c, LACI_OUT(0), axis)) {
      laci_axis_map *map = laci_coupling_add_map(c, LACI_OUT(0), axis, 0, axis, y->dims[axis]);
      for (int64_t at = 0; map && at < y->dims[axis]; at++)
        map->from[at] = (int32_t)(at % x->dims[axis]);
    }
  }
  return laci_coupling_status(c);
}

/** dY is reshaped so that each axis is repeats x size, then summed over the repeats. */
static lac_status gradient(laci_gradient_builder *b, const laci_node *node) {
  laci_shape x = laci_gradient_shape_of_input(b, node, 0);
  laci_shape y = laci_gradient_shape_of_value(b, node->outputs[0]), cut = {.rank = 0};
  bool repeats[LACI_MAX_RANK] = {false};
  if (laci_shape_count(&x) <= 0)
    return laci_gradient_fail_unsupported(b, node, "it has no elements");
  for (int axis = 0; axis < x.rank; axis++) {
    if (cut.rank + 2 > LACI_MAX_RANK)
      return laci_gradient_fail_unsupported(b, node, "it has too many axes for a gradient");
    if (y.dims[axis] != x.dims[axis]) {
      repeats[cut.rank] = true;
      cut.dims[cut.rank++] = y.dims[axis] / x.dims[axis];
    }
    cut.dims[cut.rank++] = x.dims[axis];
  }
  int sum = laci_gradient_add_reshape(b, laci_gradient_of(b, node, 0), &cut);
  sum = laci_gradient_add_sum(b, sum, repeats, false);
  laci_gradient_contribute(b, node, 0, laci_gradient_add_reshape(b, sum, &x));
  return laci_gradient_status(b);
}

const laci_op laci_op_tile = {.name = "Tile",
                              .role = LACI_ROLE_PASS_THROUGH,
                              .moves_data = true,
                              .is_fold = true,
                              .inputs_without_channels = 1u << 1,
                              .infer = infer,
                              .eval = eval,
                              .couple = couple_channel_orders,
                              .gradient = gradient};
