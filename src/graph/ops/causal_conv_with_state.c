/* SPDX-License-Identifier: Apache-2.0
 * CausalConvWithState (opset 27): each channel of x [B, C, L] is convolved with its own kernel [C,
 * 1, k] over the last k positions; the state [B, C, k - 1] holds the positions before x. Then SiLU,
 * if wanted. The last k - 1 positions are output as the next state. Gu & Dao, arXiv:2312.00752,
 * 2023.
 *
 * Batch and channels pass channel orders through (coupling.h); the time axis is FIXED. */
#include <math.h>

#include "graph/coupling.h"
#include "graph/ops/shared/op_in.h"
#include "tensor/buf.h"

enum { X, WEIGHT, BIAS, STATE };

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 2, 4);
  if (st) return st;
  const laci_shape *x = laci_in_shape(infer, X), *w = laci_in_shape(infer, WEIGHT);
  for (int out = 0; out < infer->n_out; out++) infer->out[out].dtype = infer->in[X]->dtype;
  infer->out[0].shape = infer->in[X]->shape;
  bool fits = (!x || x->rank == 3) && (!w || w->rank == 3);
  if (fits && x && w && x->dims[1] >= 0 && w->dims[0] >= 0) fits = x->dims[1] == w->dims[0];
  if (!fits || (w && (w->dims[2] == 0 || w->dims[1] > 1))) {
    return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE,
                          "wanted x of three axes and a kernel for each channel");
  }
  if (infer->n_out < 2 || !x) return LAC_OK;
  int64_t k = w ? w->dims[2] : -1;
  infer->out[1].shape = *x;
  infer->out[1].shape.dims[2] = k > 0 ? k - 1 : infer->new_symbol(infer);
  return LAC_OK;
}

/** Returns element t of a channel; t < 0 reads the state. */
static double read_input_or_state(const laci_eval *eval, int64_t row, int64_t t, int64_t k) {
  const laci_buf *state = laci_operand(eval, STATE);
  if (t >= 0) return eval->in[X]->f[row * eval->in[X]->shape.dims[2] + t];
  return state ? state->f[row * (k - 1) + k - 1 + t] : 0;
}

static lac_status eval(laci_eval *eval) {
  const laci_shape *x = &eval->in[X]->shape;
  const laci_buf *w = eval->in[WEIGHT], *bias = laci_operand(eval, BIAS);
  const laci_buf *state = laci_operand(eval, STATE);
  laci_buf *next = laci_result(eval, 1);
  const char *activation = laci_node_text(eval->node, "activation", "none");
  bool silu = strcmp(activation, "silu") == 0 || strcmp(activation, "swish") == 0;
  int64_t channels = x->dims[1], length = x->dims[2], k = w->shape.dims[2];
  lac_status st = laci_check_floats(eval);
  if (!st && !silu && strcmp(activation, "none") != 0)
    st = laci_node_fail(eval->node, eval->err, LAC_UNSUPPORTED, "activation '%s'", activation);
  if (!st && ((bias && bias->count != channels) ||
              (state && state->count != x->dims[0] * channels * (k - 1))))
    st = laci_node_fail(eval->node, eval->err, LAC_BAD_SHAPE, "bias or state do not fit the data");
  if (st) return st;
  for (int64_t row = 0; row < x->dims[0] * channels; row++) {
    int64_t channel = row % channels;
    for (int64_t t = 0; t < length; t++) {
      double sum = bias ? bias->f[channel] : 0;
      for (int64_t i = 0; i < k; i++)
        sum += w->f[channel * k + i] * read_input_or_state(eval, row, t + i - k + 1, k);
      eval->out[0]->f[row * length + t] = silu ? sum / (1 + exp(-sum)) : sum;
    }
    for (int64_t i = 0; next && i < k - 1; i++)
      next->f[row * (k - 1) + i] = read_input_or_state(eval, row, length - k + 1 + i, k);
  }
  return LAC_OK;
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph;
  (void)node;
  c->why = "places along time matter to CausalConvWithState";
  int batch = laci_coupling_new_label(c), channel = laci_coupling_new_label(c);
  const int threes[] = {X, STATE, LACI_OUT(0), LACI_OUT(1)};
  for (int at = 0; at < 4; at++) {
    const laci_shape *shape = laci_port_shape(c, threes[at]);
    if (!shape || shape->rank != 3) continue;
    laci_coupling_set_label(c, threes[at], 0, batch);
    laci_coupling_set_label(c, threes[at], 1, channel);
  }
  laci_coupling_set_label(c, WEIGHT, 0, channel);
  laci_coupling_set_label(c, BIAS, 0, channel);
  return laci_coupling_status(c);
}

const laci_op laci_op_causal_conv_with_state = {
    .name = "CausalConvWithState",
    .role = LACI_ROLE_INFER,
    .attributes = LACI_ATTRIBUTES({"activation", LACI_ATTR_TEXT}),
    .infer = infer,
    .eval = eval,
    .couple = couple_channel_orders};
