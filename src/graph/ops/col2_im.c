/* SPDX-License-Identifier: Apache-2.0
 * Col2Im (opset 18): adds columns [N, C * block, L] at the positions of their blocks in an image
 * [N, C, sizes...]: the inverse of taking patches for a convolution. The batch axis passes; a
 * channel is a run of `block` rows of the columns; spatial axes are FIXED: their order must stay
 * (coupling.h). */
#include "graph/coupling.h"
#include "graph/ops/shared/op_in.h"
#include "tensor/buf.h"

enum { MAX_AXES = LACI_MAX_RANK - 2, MOST = 1 << 30 };

/** Sizes of image, blocks and output along each spatial axis. */
typedef struct geometry {
  int n;
  int64_t image[MAX_AXES], block[MAX_AXES], out[MAX_AXES]; /* out: number of blocks */
  int64_t stride[MAX_AXES], pad[MAX_AXES], dilation[MAX_AXES];
  int64_t n_block, n_out;
} geometry;

static lac_status read_geometry(const laci_node *node, const laci_buf *image, const laci_buf *block,
                                geometry *g, lac_error *err) {
  laci_ints sizes = laci_read_int_list(node, NULL, 1, image),
            window = laci_read_int_list(node, NULL, 2, block);
  laci_ints strides = laci_read_int_list(node, "strides", -1, NULL);
  laci_ints pads = laci_read_int_list(node, "pads", -1, NULL);
  laci_ints dilations = laci_read_int_list(node, "dilations", -1, NULL);
  int n = sizes.n;
  *g = (geometry){.n = n, .n_block = 1, .n_out = 1};
  bool fits = sizes.known && window.known && !sizes.has_symbols && !window.has_symbols && n >= 1 &&
              n <= MAX_AXES && window.n == n && (!strides.present || strides.n == n) &&
              (!pads.present || pads.n == 2 * n) && (!dilations.present || dilations.n == n);
  for (int axis = 0; fits && axis < n; axis++) {
    int64_t begin = pads.present ? pads.v[axis] : 0, end = pads.present ? pads.v[axis + n] : 0;
    g->image[axis] = sizes.v[axis];
    g->block[axis] = window.v[axis];
    g->stride[axis] = strides.present ? strides.v[axis] : 1;
    g->dilation[axis] = dilations.present ? dilations.v[axis] : 1;
    g->pad[axis] = begin;
    const int64_t least_one[] = {g->block[axis], g->stride[axis], g->dilation[axis]},
                  least_none[] = {g->image[axis], begin, end};
    for (int k = 0; k < 3; k++)
      fits &=
          least_one[k] >= 1 && least_one[k] <= MOST && least_none[k] >= 0 && least_none[k] <= MOST;
    int64_t reach = fits ? g->dilation[axis] * (g->block[axis] - 1) + 1 : 0;
    if (!fits || g->image[axis] + begin + end < reach) {
      fits = false;
      break;
    }
    g->out[axis] = (g->image[axis] + begin + end - reach) / g->stride[axis] + 1;
    fits = !__builtin_mul_overflow(g->n_block, g->block[axis], &g->n_block) &&
           !__builtin_mul_overflow(g->n_out, g->out[axis], &g->n_out);
  }
  return fits ? LAC_OK
              : laci_node_fail(node, err, LAC_BAD_SHAPE, "the blocks do not fit the image");
}

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 3, 3);
  if (st) return st;
  const laci_shape *x = laci_in_shape(infer, 0);
  const laci_buf *image = laci_in_known_content(infer, 1), *block = laci_in_known_content(infer, 2);
  infer->out[0].dtype = infer->in[0]->dtype;
  geometry g;
  laci_ints sizes = laci_read_int_list(infer->node, NULL, 1, image);
  laci_ints window = laci_read_int_list(infer->node, NULL, 2, block);
  bool known = sizes.known && window.known && !sizes.has_symbols && !window.has_symbols;
  if (!x || !known) return LAC_OK;
  st = read_geometry(infer->node, image, block, &g, infer->err);
  if (st) return st;
  bool fits = x->rank == 3 && (x->dims[1] < 0 || x->dims[1] % g.n_block == 0) &&
              (x->dims[2] < 0 || x->dims[2] == g.n_out);
  if (!fits) {
    return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE,
                          "the columns do not fit blocks of %lld", (long long)g.n_block);
  }
  laci_shape *y = &infer->out[0].shape;
  y->rank = g.n + 2;
  y->dims[0] = x->dims[0];
  y->dims[1] = x->dims[1] >= 0 ? x->dims[1] / g.n_block : infer->new_symbol(infer);
  for (int axis = 0; axis < g.n; axis++) y->dims[axis + 2] = g.image[axis];
  return LAC_OK;
}

/** Returns the flat position in the image of element `at` of block `number`, or -1. */
static int64_t image_index_of_element(const geometry *g, int64_t at, int64_t number) {
  int64_t place = 0, stride = 1;
  for (int axis = g->n - 1; axis >= 0; axis--) {
    int64_t i = number % g->out[axis] * g->stride[axis] - g->pad[axis] +
                at % g->block[axis] * g->dilation[axis];
    if (i < 0 || i >= g->image[axis]) return -1;
    place += i * stride;
    stride *= g->image[axis];
    number /= g->out[axis];
    at /= g->block[axis];
  }
  return place;
}

static lac_status eval(laci_eval *eval) {
  geometry g;
  const laci_buf *x = eval->in[0];
  lac_status st = x->f ? LAC_OK : laci_check_floats(eval);
  if (!st) st = read_geometry(eval->node, eval->in[1], eval->in[2], &g, eval->err);
  if (st) return st;
  laci_buf *y = eval->out[0];
  int64_t spatial = laci_shape_count_range(&y->shape, 2, y->shape.rank);
  for (int64_t at = 0; at < x->count; at++) {
    int64_t row = at / g.n_out, place = image_index_of_element(&g, row % g.n_block, at % g.n_out);
    if (place >= 0) y->f[row / g.n_block * spatial + place] += x->f[at];
  }
  return LAC_OK;
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph, (void)node;
  const laci_shape *x = laci_port_shape(c, 0), *y = laci_port_shape(c, LACI_OUT(0));
  c->why = "Col2Im places blocks by position";
  if (!x || !y || x->rank != 3) return laci_coupling_status(c);
  int batch = laci_coupling_new_label(c);
  laci_coupling_set_label(c, 0, 0, batch);
  laci_coupling_set_label(c, LACI_OUT(0), 0, batch);
  if (!laci_is_axis_mappable(c, 0, 1) || !laci_is_axis_mappable(c, LACI_OUT(0), 1) ||
      y->dims[1] == 0)
    return laci_coupling_status(c);
  int64_t n = y->dims[1], n_block = x->dims[1] / n;
  for (int64_t at = 0; at < n_block; at++) {
    laci_axis_map *map = laci_coupling_add_map(c, LACI_OUT(0), 1, 0, 1, n);
    for (int64_t o = 0; map && o < n; o++) map->from[o] = (int32_t)(o * n_block + at);
  }
  return laci_coupling_status(c);
}

const laci_op laci_op_col2_im = {
    .name = "Col2Im",
    .role = LACI_ROLE_PASS_THROUGH,
    .attributes = LACI_ATTRIBUTES({"dilations", LACI_ATTR_INTS}, {"pads", LACI_ATTR_INTS},
                                  {"strides", LACI_ATTR_INTS}),
    .inputs_without_channels = 1u << 1 | 1u << 2,
    .infer = infer,
    .eval = eval,
    .couple = couple_channel_orders};
