/* SPDX-License-Identifier: Apache-2.0
 * CenterCropPad: crops the listed axes to their middle, or pads them with zeros on both sides, to
 * the given sizes.
 *
 * Out position o of an axis reads o + (in - out) / 2 where the axis is cropped, o - (out - in) / 2
 * where it is padded, both rounded down. Axes that keep their size pass channel orders through
 * (coupling.h); others are maps. */
#include "graph/coupling.h"
#include "graph/ops/shared/op_in.h"
#include "tensor/buf.h"

typedef struct sizes {
  int64_t size[LACI_MAX_RANK]; /* size of each axis of y; -k: symbol k (shape.h), or
                                  LACI_SIZE_UNKNOWN */
} sizes;

static lac_status read_sizes(const laci_node *node, const laci_shape *x, const laci_buf *content,
                             sizes *s, lac_error *err) {
  laci_ints list = laci_read_int_list(node, NULL, 1, content),
            axes = laci_read_int_list(node, "axes", -1, NULL);
  int n = axes.present ? axes.n : x->rank;
  for (int axis = 0; axis < x->rank; axis++) s->size[axis] = x->dims[axis];
  if (n < 0 || n > LACI_MAX_RANK || (list.n >= 0 && list.n != n)) {
    return laci_node_fail(node, err, LAC_BAD_SHAPE, "%d sizes for %d axes", list.n, n);
  }
  for (int at = 0; at < n; at++) {
    int64_t axis = axes.present ? axes.v[at] : at;
    lac_status st = laci_check_axis(node, x->rank, &axis, err);
    if (st) return st;
    s->size[axis] = list.known ? laci_size_from_element(list.v[at]) : LACI_SIZE_UNKNOWN;
  }
  return LAC_OK;
}

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 2, 2);
  if (st) return st;
  infer->out[0].dtype = infer->in[0]->dtype;
  const laci_shape *x = laci_in_shape(infer, 0);
  sizes s;
  if (!x) return LAC_OK;
  st = read_sizes(infer->node, x, laci_in_known_content(infer, 1), &s, infer->err);
  if (st) return st;
  infer->out[0].shape.rank = x->rank;
  for (int axis = 0; axis < x->rank; axis++) {
    bool sure = s.size[axis] >= 0 || s.size[axis] == x->dims[axis];
    infer->out[0].shape.dims[axis] = sure ? s.size[axis] : infer->new_symbol(infer);
  }
  return LAC_OK;
}

/** Returns the position that out position o reads; outside of [0, in): a zero. */
static int64_t source_index(int64_t o, int64_t in, int64_t out) {
  return in >= out ? o + (in - out) / 2 : o - (out - in) / 2;
}

static lac_status eval(laci_eval *eval) {
  const laci_buf *x = eval->in[0];
  laci_buf *y = eval->out[0];
  for (int64_t at = 0; at < y->count; at++) {
    int64_t rest = at, from = 0, stride = 1;
    bool inside = true;
    for (int axis = y->shape.rank - 1; axis >= 0; axis--) {
      int64_t n = x->shape.dims[axis], out = y->shape.dims[axis],
              place = source_index(rest % out, n, out);
      inside = inside && place >= 0 && place < n;
      from += place * stride;
      stride *= n;
      rest /= out;
    }
    if (inside) laci_copy_elements(y, at, x, from, 1);
  }
  return LAC_OK;
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph, (void)node;
  const laci_shape *x = laci_port_shape(c, 0), *y = laci_port_shape(c, LACI_OUT(0));
  c->why = "CenterCropPad reads places by their position";
  if (!x || !y || x->rank != y->rank) return laci_coupling_status(c);
  laci_coupling_mark_described(c, 0);
  laci_coupling_mark_described(c, LACI_OUT(0));
  for (int axis = 0; axis < x->rank; axis++) {
    int64_t n = x->dims[axis], out = y->dims[axis];
    if (n == out) {
      int label = laci_coupling_new_label(c);
      laci_coupling_set_label(c, 0, axis, label);
      laci_coupling_set_label(c, LACI_OUT(0), axis, label);
    } else if (laci_is_axis_mappable(c, 0, axis) && laci_is_axis_mappable(c, LACI_OUT(0), axis)) {
      laci_axis_map *map = laci_coupling_add_map(c, LACI_OUT(0), axis, 0, axis, out);
      for (int64_t o = 0; map && o < out; o++) {
        int64_t from = source_index(o, n, out);
        map->from[o] = (int32_t)(from >= 0 && from < n ? from : -1);
      }
    }
  }
  return laci_coupling_status(c);
}

const laci_op laci_op_center_crop_pad = {.name = "CenterCropPad",
                                         .role = LACI_ROLE_PASS_THROUGH,
                                         .attributes = LACI_ATTRIBUTES({"axes", LACI_ATTR_INTS}),
                                         .inputs_without_channels = 1u << 1,
                                         .infer = infer,
                                         .eval = eval,
                                         .couple = couple_channel_orders};
