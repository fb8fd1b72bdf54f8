/* SPDX-License-Identifier: Apache-2.0
 * lacuna.LoopBegin: begins an iteration of a Loop. Inputs: the number of iterations, the condition,
 * the values carried into the first iteration. Outputs: the number of this iteration, the
 * condition, the values carried into this iteration. Loop ends the iteration (graph.h,
 * laci_body). */
#include "graph/coupling.h"
#include "graph/ops/shared/loop_in.h"

static lac_status infer(laci_infer *infer) {
  int n = laci_loop_begin_count_carried(infer->node);
  if (infer->n_out < 2 + n) return LAC_OK;
  infer->out[0] = (laci_type){.dtype = LAC_DTYPE_I64, .shape = {.rank = 0}};
  infer->out[1] = (laci_type){.dtype = LAC_DTYPE_BOOL, .shape = {.rank = 0}};
  for (int at = 2; at < 2 + n; at++) laci_loop_copy_type_to_output(infer, at, at);
  return LAC_OK;
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  int n = laci_loop_begin_count_carried(node);
  (void)graph;
  for (int at = 2; at < 2 + n; at++) laci_couple_carried_value(c, at, LACI_OUT(at));
  return laci_coupling_status(c);
}

const laci_op laci_op_loop_begin = {.name = "LoopBegin",
                                    .domain = "lacuna",
                                    .role = LACI_ROLE_PASS_THROUGH,
                                    .control = LACI_CONTROL_BEGIN,
                                    .infer = infer,
                                    .couple = couple_channel_orders};
