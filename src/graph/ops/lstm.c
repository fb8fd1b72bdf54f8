/* SPDX-License-Identifier: Apache-2.0
 * LSTM: gates i, o, f, c, for the common code in shared/recurrent_in.h.
 *   i = f(x_i + R_i h + p_i c)   f = f(x_f + R_f h + p_f c), or 1 - i with input_forget
 *   c = f * c + i * g(x_c + R_c h)   o = f(x_o + R_o h + p_o c)   h = o * h(c) */
#include "graph/ops/shared/recurrent_in.h"

void laci_lstm_compute_step(const laci_cell *cell) {
  int64_t n = cell->hidden;
  const double *p = cell->peephole;
  const laci_activation *state = &cell->act[2];
  for (int64_t first = 0; first < 4 * n; first += n)
    laci_cell_multiply_recurrence(cell, first, cell->h_read, cell->gates + first);
  for (int64_t k = 0; k < n; k++) {
    const double *x = cell->x + k, *r = cell->gates + k;
    double c = cell->c[k];
    double in = laci_cell_clip_and_activate(cell, 0, x[0] + r[0] + (p ? p[k] * c : 0));
    double forget =
        laci_cell_clip_and_activate(cell, 0, x[2 * n] + r[2 * n] + (p ? p[2 * n + k] * c : 0));
    if (cell->flag) forget = 1 - in;
    c = forget * c + in * laci_cell_clip_and_activate(cell, 1, x[3 * n] + r[3 * n]);
    double out = laci_cell_clip_and_activate(cell, 0, x[n] + r[n] + (p ? p[n + k] * c : 0));
    cell->c[k] = c;
    /* unlike the inputs of gates, the cell state is not clipped */
    cell->h[k] = out * state->f(c, state->alpha, state->beta);
  }
}

static const laci_recurrent frame = {.n_gates = 4,
                                     .n_activations = 3,
                                     .activations = {"Sigmoid", "Tanh", "Tanh"},
                                     .flag = "input_forget",
                                     .has_cell = true,
                                     .step = laci_lstm_compute_step};

static lac_status infer(laci_infer *infer) { return laci_recurrent_infer(infer, &frame); }

static lac_status eval(laci_eval *eval) { return laci_recurrent_eval(eval, &frame); }

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph;
  return laci_recurrent_couple_orders(node, c, &frame);
}

const laci_op laci_op_lstm = {
    .name = "LSTM",
    .role = LACI_ROLE_ALLOW,
    .attributes = LACI_ATTRIBUTES(
        {"activation_alpha", LACI_ATTR_FLOATS}, {"activation_beta", LACI_ATTR_FLOATS},
        {"activations", LACI_ATTR_TEXTS}, {"clip", LACI_ATTR_FLOAT}, {"direction", LACI_ATTR_TEXT},
        {"hidden_size", LACI_ATTR_INT}, {"input_forget", LACI_ATTR_INT}, {"layout", LACI_ATTR_INT}),
    .weights = laci_recurrent_find_weight_axes,
    .each_weight = true,
    .infer = infer,
    .eval = eval,
    .couple = couple_channel_orders};
