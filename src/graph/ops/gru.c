/* SPDX-License-Identifier: Apache-2.0
 * GRU: gates z, r, h, for the common code in shared/recurrent_in.h.
 *   z = f(x_z + R_z h)   r = f(x_r + R_r h)
 *   n = g(x_h + R_h (r * h)), or g(x_h + r * (R_h h)) with linear_before_reset, R_h with its bias
 *   h = (1 - z) * n + z * h */
#include "graph/ops/shared/recurrent_in.h"

static void compute_gru_step(const laci_cell *cell) {
  int64_t n = cell->hidden;
  double *update = cell->gates, *reset = cell->gates + n, *state = cell->gates + 2 * n;
  double *kept = cell->c; /* a GRU has no cell state, so this array is free for use */
  laci_cell_multiply_recurrence(cell, 0, cell->h, update);
  laci_cell_multiply_recurrence(cell, n, cell->h, reset);
  for (int64_t k = 0; k < n; k++) {
    update[k] = laci_cell_clip_and_activate(cell, 0, cell->x[k] + update[k]);
    reset[k] = laci_cell_clip_and_activate(cell, 0, cell->x[n + k] + reset[k]);
    kept[k] = reset[k] * cell->h[k];
  }
  laci_cell_multiply_recurrence(cell, 2 * n, cell->flag ? cell->h : kept, state);
  for (int64_t k = 0; k < n; k++) {
    double inner = cell->flag ? reset[k] * state[k] : state[k];
    double fresh = laci_cell_clip_and_activate(cell, 1, cell->x[2 * n + k] + inner);
    cell->h[k] = (1 - update[k]) * fresh + update[k] * cell->h[k];
  }
}

static const laci_recurrent frame = {.n_gates = 3,
                                     .n_activations = 2,
                                     .activations = {"Sigmoid", "Tanh"},
                                     .flag = "linear_before_reset",
                                     .step = compute_gru_step};

static lac_status infer(laci_infer *infer) { return laci_recurrent_infer(infer, &frame); }

static lac_status eval(laci_eval *eval) { return laci_recurrent_eval(eval, &frame); }

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph;
  return laci_recurrent_couple_orders(node, c, &frame);
}

const laci_op laci_op_gru = {
    .name = "GRU",
    .role = LACI_ROLE_ALLOW,
    .attributes = LACI_ATTRIBUTES(
        {"activation_alpha", LACI_ATTR_FLOATS}, {"activation_beta", LACI_ATTR_FLOATS},
        {"activations", LACI_ATTR_TEXTS}, {"clip", LACI_ATTR_FLOAT}, {"direction", LACI_ATTR_TEXT},
        {"hidden_size", LACI_ATTR_INT}, {"layout", LACI_ATTR_INT},
        {"linear_before_reset", LACI_ATTR_INT}),
    .weights = laci_recurrent_find_weight_axes,
    .each_weight = true,
    .infer = infer,
    .eval = eval,
    .couple = couple_channel_orders};
