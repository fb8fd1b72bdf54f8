/* SPDX-License-Identifier: Apache-2.0
 * Resize and Upsample in all modes, one axis after the other, by kernel/image/resample.h.
 *
 * Positions and weights are computed while planning, by the operator's own rules. The value stays
 * in its layout: row-major, channels last or in blocks, each of which is [outer, axis, inner] for
 * every axis. Axes that get shorter are resampled first. Of two axes that get longer, the inner one
 * is, so that the last pass, which has the most numbers, has long lines. */
#include "engine/cpu/lower/along.h"
#include "engine/cpu/native/native.h"
#include "engine/cpu/lower/resize.h"
#include "graph/resample.h"
#include "tensor/buf.h"

/* ---- What is resampled ---- */

typedef laci_buf *operand_list[LACI_MAX_RANK];

static void clear_operands(operand_list operands) {
  for (int at = 0; at < LACI_MAX_RANK; at++) laci_buf_destroy(operands[at]);
}

/** Copies the contents of all inputs of the node except the first; false: one of them is not
 * constant. */
static bool read_operands(laci_net *net, const laci_node *node, operand_list operands) {
  bool constant = node->n_inputs <= LACI_MAX_RANK;
  for (int at = 0; at < LACI_MAX_RANK; at++) operands[at] = NULL;
  for (int at = 1; at < node->n_inputs && constant; at++) {
    if (node->inputs[at] < 0) continue;
    constant = laci_plan_is_constant(&net->plan, node->inputs[at]);
    if (constant) operands[at] = laci_plan_copy_constant(&net->plan, node->inputs[at]);
    constant = constant && operands[at];
  }
  return constant;
}

/** Are all results computed from elements of the input (none is a constant), and do all positions
 * fit into 32 bits? */
static bool has_only_input_taps(const laci_resample_taps *taps, int64_t in) {
  bool plain = in <= INT32_MAX / 2 && taps->width >= 0;
  for (int64_t at = 0; at < taps->n_out; at++) plain = plain && taps->first[at] != INT64_MIN;
  return plain;
}

static bool can_lower_resample(laci_net *net, const laci_fused *fused, const char **why) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const laci_shape *x = laci_plan_shape(&net->plan, node->inputs[0]);
  const laci_shape *y = laci_plan_shape(&net->plan, fused->output);
  operand_list operands;
  lac_error err = {0};
  *why = "integers";
  if (!laci_plan_is_float(&net->plan, fused->output)) return false;
  *why = "sizes that are not constant, or a mode in which numbers are given";
  bool fits = read_operands(net, node, operands);
  const laci_resampled of = {node, x, y, (const laci_buf *const *)operands};
  for (int axis = 0; axis < x->rank && fits; axis++) {
    laci_resample_taps taps;
    const lac_status st = laci_resample_find_taps(&of, axis, &taps, &err);
    if (st == LAC_NO_MEMORY) laci_plan_fail_no_memory(&net->plan);
    fits = st == LAC_OK && has_only_input_taps(&taps, x->dims[axis]);
    laci_resample_clear_taps(&taps);
  }
  clear_operands(operands);
  return fits;
}

/* ---- Lowering ---- */

/** Returns the axis to resample next: of those left, the one that grows least; -1: none is left. */
static int choose_next_axis(const laci_resample_taps *taps, const laci_shape *x) {
  int next = -1;
  double least = 0;
  for (int axis = 0; axis < x->rank; axis++) {
    const double growth = (double)taps[axis].n_out / (double)x->dims[axis];
    if (taps[axis].n_out == 0 || (next >= 0 && growth > least)) continue;
    next = axis;
    least = growth;
  }
  return next;
}

static void lower_resample(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const laci_shape x = *laci_plan_shape(&net->plan, node->inputs[0]);
  const laci_shape y = *laci_plan_shape(&net->plan, fused->output);
  laci_resample_taps taps[LACI_MAX_RANK] = {{0}};
  operand_list operands;
  laci_order o;
  lac_error err = {0};
  lac_status st = read_operands(net, node, operands) ? LAC_OK : LAC_NO_MEMORY;
  const laci_resampled of = {node, &x, &y, (const laci_buf *const *)operands};
  for (int axis = 0; axis < x.rank && !st; axis++) {
    st = laci_resample_find_taps(&of, axis, &taps[axis], &err);
  }
  if (st) laci_plan_fail(&net->plan, st, "%s", err.text);
  int at = laci_net_read_value(net, node->inputs[0]);
  at = laci_axis_pass_read_tensor(net, at, taps[1].n_out > 0, &o);
  for (int axis = choose_next_axis(taps, &x); axis >= 0 && at >= 0;
       axis = choose_next_axis(taps, &x)) {
    at = laci_axis_pass_add(net, node, at, &o, axis, &taps[axis]);
    laci_resample_clear_taps(&taps[axis]);
  }
  for (int axis = 0; axis < x.rank; axis++) laci_resample_clear_taps(&taps[axis]);
  clear_operands(operands);
  laci_net_bind_value(net, fused->output, at);
}

/* oneDNN comes first if it has the mode, since weights were calibrated with its results. */
const laci_implementation laci_implementations_resize[] = {
    {"sparse kernels", LACI_FUSIBLE_NOTHING, laci_can_lower_native, laci_lower_native},
    {"oneDNN's", LACI_FUSIBLE_NOTHING, laci_can_lower_resize, laci_lower_resize},
    {"sums of few numbers", LACI_FUSIBLE_NOTHING, can_lower_resample, lower_resample},
    {.name = NULL},
};
