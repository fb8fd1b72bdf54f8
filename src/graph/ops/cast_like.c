/* SPDX-License-Identifier: Apache-2.0
 * CastLike: y = x in the element type of the second input, whose content is not read.
 * Every channel order of x passes through, and the second input may have any. */
#include "graph/coupling.h"
#include "graph/ops/shared/op_in.h"

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 2, 2);
  if (!st) infer->out[0] = (laci_type){.dtype = infer->in[1]->dtype, .shape = infer->in[0]->shape};
  return st;
}

static lac_status eval(laci_eval *eval) {
  laci_eval_convert_elements(eval, eval->in[0], eval->out[0]);
  return LAC_OK;
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph;
  (void)node;
  laci_couple_broadcast_ports(c, (const int[]){0}, 1);
  const laci_shape *like = laci_port_shape(c, 1);
  if (like) laci_coupling_set_fresh_labels(c, 1, 0, like->rank);
  return laci_coupling_status(c);
}

const laci_op laci_op_cast_like = {
    .name = "CastLike",
    .role = LACI_ROLE_PASS_THROUGH,
    .discontinuous = true,
    .attributes = LACI_ATTRIBUTES({"round_mode", LACI_ATTR_TEXT}, {"saturate", LACI_ATTR_INT}),
    .shape_inputs = 1u << 1,
    .symbol_safe = true,
    .is_fold = true,
    .inputs_without_channels = 1u << 1,
    .infer = infer,
    .eval = eval,
    .couple = couple_channel_orders};
