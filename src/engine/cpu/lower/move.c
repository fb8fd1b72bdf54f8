/* SPDX-License-Identifier: Apache-2.0
 * Moving data without computing: mostly another view of the same bytes.
 *
 * Reshape, Transpose, Slice and Split cost nothing here: their result is a view, and a reader that
 * needs another layout reorders it. Pad copies. Next: slice.c, gather.c, resize.c, concat.c. */
#include "engine/cpu/lower/move.h"

#include <string.h>

#include "engine/cpu/native/native.h"
#include "engine/cpu/native/values.h"
#include "graph/ops.h"
#include "engine/cpu/onednn/onednn.h"

static void lower_reshape(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  if (laci_native_bind_same_rows(net, fused->output, node->inputs[0])) return;
  laci_net_bind_reshaped(net, fused->output, laci_net_read_value(net, node->inputs[0]));
}

static bool can_lower_identity(laci_net *net, const laci_fused *fused, const char **why) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  bool fits = node->op != &laci_op_dropout || !laci_plan_has_input(node, 2);
  for (int at = 1; at < node->n_outputs; at++) fits = fits && node->outputs[at] < 0;
  *why = "a mask";
  return fits;
}

static void lower_identity(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  laci_net_bind_value(net, fused->output, laci_net_read_value(net, node->inputs[0]));
}

/* ---- Transpose ---- */

/** Does a Transpose keep the order of the axes that are longer than 1? Then a row-major tensor only
 * gets new axes. */
static bool has_long_axes_in_order(const laci_shape *x, const int *places) {
  int last = -1;
  for (int axis = 0; axis < x->rank; axis++) {
    if (x->dims[axis] == 1) continue;
    if (places[axis] < last) return false;
    last = places[axis];
  }
  return true;
}

static bool can_lower_transpose(laci_net *net, const laci_fused *fused, const char **why) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  int rank = laci_plan_shape(&net->plan, fused->output)->rank;
  size_t n = 0;
  const int64_t *order = laci_node_ints(node, "perm", &n);
  *why = "integers";
  return laci_plan_is_float(&net->plan, node->inputs[0]) && rank >= 1 && (!order || (int)n == rank);
}

static void lower_transpose(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const laci_shape *y = laci_plan_shape(&net->plan, fused->output);
  if (laci_native_bind_same_rows(net, fused->output, node->inputs[0])) return;
  int from = laci_net_read_value(net, node->inputs[0]), places[LACI_MAX_RANK];
  size_t n = 0;
  const int64_t *order = laci_node_ints(node, "perm", &n);
  laci_layout *md = NULL;
  if (from < 0) return;
  for (int axis = 0; axis < y->rank; axis++) {
    places[order ? order[axis] : y->rank - 1 - axis] = axis;
  }
  if (has_long_axes_in_order(&net->tensors[from].shape, places) &&
      laci_net_is_row_major(net, from)) {
    laci_net_bind_reshaped(net, fused->output, from);
    return;
  }
  if (!laci_layout_create_permuted(&md, net->tensors[from].md, places))
    laci_plan_fail_no_memory(&net->plan);
  laci_net_bind_value(net, fused->output, laci_net_view_new(net, from, y, md, false));
}

/* ---- Parts ---- */

int laci_move_view_or_copy_part(laci_net *net, int tensor, const laci_shape *shape,
                                const int64_t *offsets) {
  laci_layout *md = NULL;
  if (net->plan.status || tensor < 0) return -1;
  if (!laci_layout_create_part(&md, net->tensors[tensor].md, shape->rank, shape->dims, offsets)) {
    tensor = laci_net_convert_to_dense(net, tensor, net->tensors[tensor].dt);
    if (tensor < 0) return -1;
    if (!laci_layout_create_part(&md, net->tensors[tensor].md, shape->rank, shape->dims, offsets)) {
      laci_net_decline_node(net, "a part of this layout");
      return -1;
    }
  }
  return laci_net_view_new(net, tensor, shape, md, true);
}

int64_t laci_move_read_axis(const laci_net *net, const laci_node *node, int value) {
  int64_t axis = laci_node_int(node, "axis", 0);
  return axis < 0 ? axis + laci_plan_shape(&net->plan, value)->rank : axis;
}

static bool can_lower_split(laci_net *net, const laci_fused *fused, const char **why) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  int64_t axis = laci_move_read_axis(net, node, node->inputs[0]);
  *why = "integers";
  if (!laci_plan_is_float(&net->plan, node->inputs[0]) || axis < 0 ||
      axis >= laci_plan_shape(&net->plan, node->inputs[0])->rank) {
    return false;
  }
  *why = "a part that is left out"; /* an output that the node lacks has an unknown size */
  for (int at = 0; at < node->n_outputs; at++) {
    if (node->outputs[at] < 0) return false;
  }
  return true;
}

static void lower_split(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  int64_t axis = laci_move_read_axis(net, node, node->inputs[0]), offsets[LACI_MAX_RANK] = {0};
  for (int at = 0; at < node->n_outputs && !net->plan.status; at++) {
    const laci_shape *y = laci_plan_shape(&net->plan, node->outputs[at]);
    if (!laci_native_lower_output(net, node->outputs[at])) {
      const int from = laci_net_read_value(net, node->inputs[0]);
      laci_net_bind_value(net, node->outputs[at],
                          laci_move_view_or_copy_part(net, from, y, offsets));
    }
    offsets[axis] += y->dims[axis];
  }
}

/* ---- Pad ---- */

static lac_status run_clear_bytes(laci_net *net, laci_net_step *step, lac_error *err) {
  (void)err;
  int tensor = step->tensors[0];
  memset(laci_net_tensor_data(net, tensor), 0, net->buffers[net->tensors[tensor].buffer].bytes);
  return LAC_OK;
}

void laci_move_add_clear_step(laci_net *net, int tensor) {
  static const laci_node zeros = {.name = "", .type = "zeros"};
  (void)laci_net_step_add_code(net, &zeros, run_clear_bytes, 1, &tensor);
}

/** A Pad: the zeros around a value, and the elements that negative pads remove. */
typedef struct padding {
  int64_t begin[LACI_MAX_RANK]; /* number of zeros before the elements of each axis */
  int64_t crop[LACI_MAX_RANK];  /* number of elements that are removed at the beginning of each
                                   axis */
  laci_shape kept;              /* shape of what is left of the value */
  bool has_zeros;
} padding;

static bool read_padding(laci_net *net, const laci_node *node, padding *p) {
  const laci_shape *x = laci_plan_shape(&net->plan, node->inputs[0]);
  laci_pads pads;
  if (!laci_plan_read_zero_pads(&net->plan, node, &pads)) return false;
  *p = (padding){.kept = *x};
  for (int axis = 0; axis < x->rank; axis++) {
    int64_t before = pads.before[axis], after = pads.after[axis];
    p->begin[axis] = before > 0 ? before : 0;
    p->crop[axis] = before < 0 ? -before : 0;
    p->kept.dims[axis] -= p->crop[axis] + (after < 0 ? -after : 0);
    p->has_zeros = p->has_zeros || before > 0 || after > 0;
    if (p->kept.dims[axis] <= 0) return false;
  }
  return true;
}

static bool can_lower_pad(laci_net *net, const laci_fused *fused, const char **why) {
  padding p;
  *why = "a mode, a value or pads that are not zeros around";
  return read_padding(net, &net->plan.graph->nodes[fused->node], &p);
}

static void lower_pad(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  laci_shape y = *laci_plan_shape(&net->plan, fused->output);
  laci_element dt = laci_net_float_element(net);
  laci_primitive *pd = NULL;
  padding p;
  if (!read_padding(net, node, &p)) return;
  int from =
      laci_move_view_or_copy_part(net, laci_net_read_value(net, node->inputs[0]), &p.kept, p.crop);
  if (!p.has_zeros) {
    laci_net_bind_value(net, fused->output, from);
    return;
  }
  laci_layout *md = laci_net_dense_layout(net, &y, dt);
  size_t bytes = md ? laci_layout_bytes(md) : 0;
  int to = laci_net_tensor_new(net, &y, dt, md, laci_net_buffer_new(net, LACI_PLACE_ARENA, bytes));
  int inside = laci_move_view_or_copy_part(net, to, &p.kept, p.begin);
  (void)laci_net_step_add_code(net, node, run_clear_bytes, 1, &to);
  if (net->plan.status) return;
  lac_status st = laci_primitive_describe_reorder(&pd, net->onednn, net->tensors[from].md,
                                                  net->tensors[inside].md);
  if (!laci_net_check_status(net, st, "padding")) return;
  laci_net_step_add(net, fused, pd, 2,
                    (const int[][2]){{LACI_ARG_SRC, from}, {LACI_ARG_DST, inside}});
  laci_net_bind_value(net, fused->output, to);
}

/* ---- The lists of implementations ---- */

const laci_implementation laci_implementations_reshape[] = {
    {"another view", LACI_FUSIBLE_NOTHING, NULL, lower_reshape},
    {.name = NULL},
};
const laci_implementation laci_implementations_same[] = {
    {"the same bytes", LACI_FUSIBLE_NOTHING, can_lower_identity, lower_identity},
    {.name = NULL},
};
const laci_implementation laci_implementations_transpose[] = {
    {"another view", LACI_FUSIBLE_NOTHING, can_lower_transpose, lower_transpose},
    {.name = NULL},
};
const laci_implementation laci_implementations_split[] = {
    {"parts", LACI_FUSIBLE_NOTHING, can_lower_split, lower_split},
    {.name = NULL},
};
const laci_implementation laci_implementations_pad[] = {
    {"sparse kernels", LACI_FUSIBLE_NOTHING, laci_can_lower_native, laci_lower_native},
    {"a copy into zeros", LACI_FUSIBLE_NOTHING, can_lower_pad, lower_pad},
    {"copies of elements", LACI_FUSIBLE_NOTHING, laci_can_lower_pad_copies, laci_lower_pad_copies},
    {.name = NULL},
};
