/* SPDX-License-Identifier: Apache-2.0
 * RNN: one gate, for the common code in shared/recurrent_in.h.  h = f(x + R h) */
#include "graph/ops/shared/recurrent_in.h"

static void compute_rnn_step(const laci_cell *cell) {
  laci_cell_multiply_recurrence(cell, 0, cell->h, cell->gates);
  for (int64_t k = 0; k < cell->hidden; k++)
    cell->h[k] = laci_cell_clip_and_activate(cell, 0, cell->x[k] + cell->gates[k]);
}

static const laci_recurrent frame = {
    .n_gates = 1, .n_activations = 1, .activations = {"Tanh"}, .step = compute_rnn_step};

static lac_status infer(laci_infer *infer) { return laci_recurrent_infer(infer, &frame); }

static lac_status eval(laci_eval *eval) { return laci_recurrent_eval(eval, &frame); }

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph;
  return laci_recurrent_couple_orders(node, c, &frame);
}

const laci_op laci_op_rnn = {
    .name = "RNN",
    .role = LACI_ROLE_ALLOW,
    .attributes = LACI_ATTRIBUTES(
        {"activation_alpha", LACI_ATTR_FLOATS}, {"activation_beta", LACI_ATTR_FLOATS},
        {"activations", LACI_ATTR_TEXTS}, {"clip", LACI_ATTR_FLOAT}, {"direction", LACI_ATTR_TEXT},
        {"hidden_size", LACI_ATTR_INT}, {"layout", LACI_ATTR_INT}),
    .weights = laci_recurrent_find_weight_axes,
    .each_weight = true,
    .infer = infer,
    .eval = eval,
    .couple = couple_channel_orders};
