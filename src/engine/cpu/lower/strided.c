/* SPDX-License-Identifier: Apache-2.0
 * DepthToSpace, SpaceToDepth and Tile: copies of elements.
 *
 * The first two see the result as six axes, which are axes of the input in another order. A tile is
 * a copying pass along each axis that repeats. */
#include <string.h>

#include "cpu/pool.h"
#include "engine/cpu/lower/along.h"
#include "engine/cpu/native/native.h"
#include "engine/cpu/onednn/onednn.h"
#include "graph/ops.h"

/* ---- DepthToSpace and SpaceToDepth ---- */

enum { AXES = 6 };

typedef struct strided {
  int64_t dims[AXES], strides[AXES]; /* sizes of the result's axes, and strides over the input in
                                        elements */
} strided;

typedef struct strided_work {
  const strided *s;
  const float *x;
  float *y;
} strided_work;

/** Copies the last two of the six axes, for the indices [begin, end) of the first four. */
static void copy_last_two_axes(int64_t begin, int64_t end, void *context) {
  const strided_work *w = context;
  const int64_t *dims = w->s->dims, *strides = w->s->strides;
  for (int64_t at = begin; at < end; at++) {
    const float *x = w->x;
    float *y = w->y + at * dims[4] * dims[5];
    int64_t rest = at;
    for (int axis = 3; axis >= 0; axis--) {
      x += rest % dims[axis] * strides[axis];
      rest /= dims[axis];
    }
    for (int64_t i = 0; i < dims[4]; i++) {
      for (int64_t k = 0; k < dims[5]; k++) *y++ = x[i * strides[4] + k * strides[5]];
    }
  }
}

static lac_status run_strided_copy(laci_net *net, laci_net_step *step, lac_error *err) {
  enum { GRAIN = 1 << 13 }; /* number of elements that a thread copies at a time */
  const strided *s = step->context;
  strided_work w = {.s = s,
                    .x = laci_net_tensor_data(net, step->tensors[0]),
                    .y = laci_net_tensor_data(net, step->tensors[1])};
  const int64_t each = s->dims[4] * s->dims[5];
  (void)err;
  laci_pool_for(net->pool, s->dims[0] * s->dims[1] * s->dims[2] * s->dims[3],
                each < GRAIN ? GRAIN / each : 1, copy_last_two_axes, &w);
  return LAC_OK;
}

static bool can_lower_depth_and_space(laci_net *net, const laci_fused *fused, const char **why) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  *why = "integers";
  return laci_plan_is_float(&net->plan, node->inputs[0]) &&
         laci_plan_shape(&net->plan, node->inputs[0])->rank == 4;
}

/** Describes the result as six axes: [n, c, h, b, w, b] of a DepthToSpace, [n, b, b, c, h, w] or
 * [n, c, b, b, h, w] of a SpaceToDepth (b: block size). */
static void describe_depth_and_space(const laci_node *node, const laci_shape *x,
                                     const laci_shape *y, strided *s) {
  const int64_t b = laci_node_int(node, "blocksize", 1), *in = x->dims, *out = y->dims;
  const int64_t area = in[2] * in[3];
  const bool first = strcmp(laci_node_text(node, "mode", "DCR"), "CRD") == 0;
  if (node->op == &laci_op_depth_to_space) {
    const int64_t place = first ? area : out[1] * area; /* distance from a pixel of a block to the
                                                           next one */
    *s = (strided){{out[0], out[1], in[2], b, in[3], b},
                   {in[1] * area, first ? b * b * area : area, in[3], b * place, 1, place}};
  } else if (first) {
    *s = (strided){{out[0], in[1], b, b, out[2], out[3]},
                   {in[1] * area, area, in[3], 1, b * in[3], b}};
  } else {
    *s = (strided){{out[0], b, b, in[1], out[2], out[3]},
                   {in[1] * area, in[3], 1, area, b * in[3], b}};
  }
}

static void lower_depth_and_space(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const laci_shape x = *laci_plan_shape(&net->plan, node->inputs[0]);
  const laci_shape y = *laci_plan_shape(&net->plan, fused->output);
  const int from =
      laci_net_convert_to_dense(net, laci_net_read_value(net, node->inputs[0]), LACI_ELEMENT_F32);
  laci_layout *md = laci_net_dense_layout(net, &y, LACI_ELEMENT_F32);
  const int to = md ? laci_net_new_result(net, &y, LACI_ELEMENT_F32, md) : -1;
  laci_layout_destroy(md);
  strided *s = laci_plan_alloc(&net->plan, 1, sizeof *s);
  laci_net_step *step = laci_net_step_add_code(net, node, run_strided_copy, 2, (int[]){from, to});
  if (!s || !step) return;
  describe_depth_and_space(node, &x, &y, s);
  step->context = s;
  step->kernel = "own";
  step->shown = to;
  laci_net_bind_value(net, fused->output, to);
}

/* ---- Tile ---- */

static bool can_lower_tile(laci_net *net, const laci_fused *fused, const char **why) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const laci_shape *x = laci_plan_shape(&net->plan, node->inputs[0]);
  const laci_shape *y = laci_plan_shape(&net->plan, fused->output);
  *why = "integers, or an axis that is too long";
  bool fits = laci_plan_is_float(&net->plan, node->inputs[0]) && x->rank >= 1 && x->rank == y->rank;
  for (int axis = 0; axis < x->rank; axis++) fits = fits && y->dims[axis] <= INT32_MAX;
  return fits;
}

static void lower_tile(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const laci_shape x = *laci_plan_shape(&net->plan, node->inputs[0]);
  const laci_shape y = *laci_plan_shape(&net->plan, fused->output);
  laci_order o;
  int at = laci_net_read_value(net, node->inputs[0]);
  at = laci_axis_pass_read_tensor(net, at, x.rank > 1 && x.dims[1] != y.dims[1], &o);
  for (int axis = x.rank - 1; axis >= 0 && at >= 0; axis--) {
    if (x.dims[axis] != y.dims[axis])
      at = laci_axis_pass_add_repeat(net, node, at, &o, axis, y.dims[axis]);
  }
  laci_net_bind_value(net, fused->output, at);
}

/* ---- The lists of implementations ---- */

const laci_implementation laci_implementations_blocks[] = {
    {"sparse kernels", LACI_FUSIBLE_NOTHING, laci_can_lower_native, laci_lower_native},
    {"copies of elements", LACI_FUSIBLE_NOTHING, can_lower_depth_and_space, lower_depth_and_space},
    {.name = NULL},
};
const laci_implementation laci_implementations_tile[] = {
    {"sparse kernels", LACI_FUSIBLE_NOTHING, laci_can_lower_native, laci_lower_native},
    {"copies of elements", LACI_FUSIBLE_NOTHING, can_lower_tile, lower_tile},
    {.name = NULL},
};
