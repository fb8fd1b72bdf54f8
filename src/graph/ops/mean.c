/* SPDX-License-Identifier: Apache-2.0
 * Mean: the mean of any number of operands, broadcast: Sum, then divided by their number. */
#include "graph/gradient.h"
#include "graph/ops/shared/op_in.h"
#include "tensor/buf.h"

static double compute_double(double a, double b) { return a + b; }

static lac_status eval(laci_eval *eval) {
  static const laci_binary operation = {.f = compute_double};
  lac_status st = laci_check_floats(eval);
  if (!st) st = laci_eval_binary_over_inputs(eval, &operation);
  if (st) return st;
  laci_buf *out = eval->out[0];
  for (int64_t at = 0; at < out->count; at++) out->f[at] /= eval->n_in;
  return LAC_OK;
}

static lac_status gradient(laci_gradient_builder *b, const laci_node *node) {
  int dy = laci_gradient_add_scale(b, laci_gradient_of(b, node, 0), 1.0 / node->n_inputs);
  for (int port = 0; port < node->n_inputs; port++)
    laci_gradient_contribute_broadcast(b, node, port, dy);
  return laci_gradient_status(b);
}

const laci_op laci_op_mean = {.name = "Mean",
                              .role = LACI_ROLE_PASS_THROUGH,
                              .infer = laci_infer_broadcast_all,
                              .eval = eval,
                              .couple = laci_couple_all_inputs_broadcast,
                              .gradient = gradient};
