/* SPDX-License-Identifier: Apache-2.0
 * Pads that repeat elements of the value (reflect, edge, wrap): one copying pass for each axis. */
#include "base/memory.h"
#include "engine/cpu/lower/along.h"
#include "engine/cpu/lower/move.h"
#include "graph/pad.h"

/** Reads the mode and the pads of a Pad; false: the Pad is of another kind. */
static bool read_pads(laci_net *net, const laci_node *node, laci_pad_mode *mode, laci_pads *pads) {
  const laci_shape *x = laci_plan_shape(&net->plan, node->inputs[0]);
  if (!laci_plan_is_float(&net->plan, node->inputs[0]) || x->rank < 1) return false;
  if (laci_pad_read_mode(node, mode, NULL) || *mode == LACI_PAD_CONSTANT) return false;
  if (!laci_plan_read_pads(&net->plan, node, pads)) return false;
  for (int axis = 0; axis < x->rank; axis++) {
    if (x->dims[axis] > INT32_MAX || x->dims[axis] + pads->before[axis] <= 0) return false;
    if (x->dims[axis] + pads->after[axis] <= 0) return false;
  }
  return true;
}

bool laci_can_lower_pad_copies(laci_net *net, const laci_fused *fused, const char **why) {
  laci_pad_mode mode;
  laci_pads pads;
  *why = "pads that are not constant";
  return read_pads(net, &net->plan.graph->nodes[fused->node], &mode, &pads);
}

/** Adds the step that pads one axis; returns the result's tensor. */
static int pad_axis(laci_net *net, const laci_node *node, int from, const laci_order *o, int axis,
                    const laci_pad_axis *pad) {
  laci_resample_taps taps = {.n_out = pad->size + pad->before + pad->after, .width = 1};
  taps.first = laci_alloc((size_t)taps.n_out, sizeof *taps.first);
  taps.weight = laci_alloc((size_t)taps.n_out, sizeof *taps.weight);
  if (!taps.first || !taps.weight) laci_plan_fail_no_memory(&net->plan);
  for (int64_t at = 0; at < taps.n_out && !net->plan.status; at++) {
    taps.first[at] = laci_pad_source_position(pad, at);
    taps.weight[at] = 1;
  }
  const int to = laci_axis_pass_add(net, node, from, o, axis, &taps);
  laci_resample_clear_taps(&taps);
  return to;
}

void laci_lower_pad_copies(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const laci_shape x = *laci_plan_shape(&net->plan, node->inputs[0]);
  laci_pad_mode mode;
  laci_pads pads;
  laci_order o;
  if (!read_pads(net, node, &mode, &pads)) return;
  int at = laci_net_read_value(net, node->inputs[0]);
  at = laci_axis_pass_read_tensor(net, at, x.rank > 1 && (pads.before[1] || pads.after[1]), &o);
  for (int axis = x.rank - 1; axis >= 0 && at >= 0; axis--) {
    const laci_pad_axis pad = {mode, pads.before[axis], pads.after[axis], x.dims[axis]};
    if (pad.before != 0 || pad.after != 0) at = pad_axis(net, node, at, &o, axis, &pad);
  }
  laci_net_bind_value(net, fused->output, at);
}
