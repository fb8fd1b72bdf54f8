/* SPDX-License-Identifier: Apache-2.0
 * Gather and GatherND: copy rows of a table. A single row with a constant index is a view. */
#include "engine/cpu/lower/move.h"
#include "engine/cpu/native/native.h"

#include <string.h>

#include "base/error.h"
#include "base/to_int.h"

typedef struct gather {
  int64_t outer, n, tuple;             /* n: number of index tuples, of `tuple` indices each; outer:
                                          number of tables to which they apply */
  int64_t sizes[LACI_MAX_RANK], inner; /* shape of a table: [sizes[0] .. sizes[tuple - 1], inner] */
  size_t element;                      /* bytes of an element */
} gather;

static lac_status run_gather(laci_net *net, laci_net_step *step, lac_error *err) {
  const gather *g = step->context;
  const char *table = laci_net_tensor_data(net, step->tensors[0]);
  const int64_t *indices = laci_net_tensor_data(net, step->tensors[1]);
  char *out = laci_net_tensor_data(net, step->tensors[2]);
  size_t bytes = (size_t)g->inner * g->element, rows = 1;
  for (int64_t t = 0; t < g->tuple; t++) rows *= (size_t)g->sizes[t];
  for (int64_t o = 0; o < g->outer; o++, table += rows * bytes) {
    const int64_t *index = indices;
    for (int64_t at = 0; at < g->n; at++, out += bytes) {
      int64_t row = 0;
      for (int64_t t = 0; t < g->tuple; t++, index++) {
        int64_t i = *index < 0 ? *index + g->sizes[t] : *index;
        if (i < 0 || i >= g->sizes[t]) {
          return laci_fail(err, LAC_BAD_VALUE, "%s (%s): index %lld, of %lld", step->node->name,
                           step->node->type, (long long)*index, (long long)g->sizes[t]);
        }
        row = row * g->sizes[t] + i;
      }
      memcpy(out, table + (size_t)row * bytes, bytes);
    }
  }
  return LAC_OK;
}

/** Adds the step that gathers rows of a table of floats (as f32) or integers. */
static void add_gather_step(laci_net *net, const laci_fused *fused, gather *g) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const laci_shape *y = laci_plan_shape(&net->plan, fused->output);
  bool is_float = laci_plan_is_float(&net->plan, fused->output);
  int table = laci_net_read_value(net, node->inputs[0]),
      index = laci_net_read_value(net, node->inputs[1]);
  if (is_float) table = laci_net_convert_to_dense(net, table, LACI_ELEMENT_F32);
  g->element = is_float ? sizeof(float) : sizeof(int64_t);
  int to = laci_net_tensor_new(
      net, y, is_float ? LACI_ELEMENT_F32 : LACI_ELEMENT_NONE,
      is_float ? laci_net_dense_layout(net, y, LACI_ELEMENT_F32) : NULL,
      laci_net_buffer_new(net, LACI_PLACE_ARENA, (size_t)laci_shape_count(y) * g->element));
  laci_net_step *step = laci_net_step_add_code(net, node, run_gather, 3, (int[]){table, index, to});
  if (!step) return;
  step->context = g;
  step->shown = to;
  laci_net_bind_value(net, fused->output, to);
}

static bool can_lower_gather(laci_net *net, const laci_fused *fused, const char **why) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  int64_t axis = laci_move_read_axis(net, node, node->inputs[0]);
  *why = "indices or an axis of this kind";
  return !laci_plan_is_float(&net->plan, node->inputs[1]) && axis >= 0 &&
         axis < laci_plan_shape(&net->plan, node->inputs[0])->rank;
}

/** Reads the index of a Gather with one constant index into a table of floats that is not constant;
 * false: the node is another kind of gather. */
static bool read_constant_index(laci_net *net, const laci_node *node, int64_t *index) {
  int64_t size = laci_plan_shape(&net->plan, node->inputs[0])
                     ->dims[laci_move_read_axis(net, node, node->inputs[0])];
  double x = 0;
  if (!laci_plan_is_float(&net->plan, node->inputs[0]) ||
      laci_plan_is_constant(&net->plan, node->inputs[0]))
    return false;
  if (!laci_plan_read_scalar(&net->plan, node->inputs[1], &x)) return false;
  if (x < 0) x += (double)size;
  *index = x >= 0 && x < (double)size ? laci_clamp_to_int64(x) : -1;
  return *index >= 0;
}

static bool can_lower_gather_of_constant_index(laci_net *net, const laci_fused *fused,
                                               const char **why) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  int64_t index;
  if (!can_lower_gather(net, fused, why)) return false;
  *why = "an index that depends on data";
  return read_constant_index(net, node, &index);
}

/** Binds the result to a view of the table's indexed row, without the axis. */
static void lower_gather_of_constant_index(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  laci_shape part = *laci_plan_shape(&net->plan, node->inputs[0]);
  int64_t offsets[LACI_MAX_RANK] = {0}, axis = laci_move_read_axis(net, node, node->inputs[0]);
  int from = laci_net_read_value(net, node->inputs[0]);
  if (!read_constant_index(net, node, &offsets[axis])) return;
  part.dims[axis] = 1;
  laci_net_bind_reshaped(net, fused->output,
                         laci_move_view_or_copy_part(net, from, &part, offsets));
}

static void lower_gather(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const laci_shape *x = laci_plan_shape(&net->plan, node->inputs[0]);
  int64_t axis = laci_move_read_axis(net, node, node->inputs[0]);
  gather *g = laci_plan_alloc(&net->plan, 1, sizeof *g);
  if (!g) return;
  *g = (gather){.outer = laci_shape_count_range(x, 0, (int)axis),
                .n = laci_shape_count(laci_plan_shape(&net->plan, node->inputs[1])),
                .tuple = 1,
                .sizes = {x->dims[axis]},
                .inner = laci_shape_count_range(x, (int)axis + 1, x->rank)};
  add_gather_step(net, fused, g);
}

/** Returns how many indices select one row: the size of the last axis of GatherND's indices. */
static int64_t tuple_length(const laci_net *net, const laci_node *node) {
  const laci_shape *i = laci_plan_shape(&net->plan, node->inputs[1]);
  return i->rank > 0 ? i->dims[i->rank - 1] : 0;
}

static bool can_lower_gather_nd(laci_net *net, const laci_fused *fused, const char **why) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  int64_t tuple = tuple_length(net, node);
  *why = "indices or batch axes of this kind";
  return laci_node_int(node, "batch_dims", 0) == 0 && tuple >= 1 &&
         tuple <= laci_plan_shape(&net->plan, node->inputs[0])->rank &&
         !laci_plan_is_float(&net->plan, node->inputs[1]);
}

static void lower_gather_nd(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const laci_shape *x = laci_plan_shape(&net->plan, node->inputs[0]);
  const laci_shape *i = laci_plan_shape(&net->plan, node->inputs[1]);
  int64_t tuple = tuple_length(net, node);
  gather *g = laci_plan_alloc(&net->plan, 1, sizeof *g);
  if (!g) return;
  *g = (gather){.outer = 1,
                .n = laci_shape_count_range(i, 0, i->rank - 1),
                .tuple = tuple,
                .inner = laci_shape_count_range(x, (int)tuple, x->rank)};
  for (int64_t t = 0; t < tuple; t++) g->sizes[t] = x->dims[t];
  add_gather_step(net, fused, g);
}

const laci_implementation laci_implementations_gather[] = {
    {"sparse kernels", LACI_FUSIBLE_NOTHING, laci_can_lower_native, laci_lower_native},
    {"a part", LACI_FUSIBLE_NOTHING, can_lower_gather_of_constant_index,
     lower_gather_of_constant_index},
    {"rows", LACI_FUSIBLE_NOTHING, can_lower_gather, lower_gather},
    {.name = NULL},
};
const laci_implementation laci_implementations_gather_nd[] = {
    {"rows", LACI_FUSIBLE_NOTHING, can_lower_gather_nd, lower_gather_nd},
    {.name = NULL},
};
