/* SPDX-License-Identifier: Apache-2.0
 * com.microsoft.FusedGemm: y = f(alpha * op(A) * op(B) + beta * C), a Gemm (ops/gemm.c) followed by
 * an activation. */
#include "graph/coupling.h"
#include "graph/ops.h"
#include "graph/ops/shared/microsoft_in.h"

static lac_status infer(laci_infer *infer) { return laci_op_gemm.infer(infer); }

static lac_status eval(laci_eval *eval) {
  lac_status st = laci_op_gemm.eval(eval);
  return st ? st : laci_activation_apply_to_output(eval);
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  laci_fused_function activation;
  c->why = "an unknown function after the product";
  if (!laci_activation_read(node, &activation)) return laci_coupling_status(c);
  c->why = NULL;
  return laci_op_gemm.couple(graph, node, c);
}

static int find_weight_axes(const laci_graph *graph, const laci_node *node,
                            laci_weight_axes axes[2]) {
  return laci_op_gemm.weights(graph, node, axes);
}

const laci_op laci_op_ms_fused_gemm = {
    .name = "FusedGemm",
    .domain = LACI_MICROSOFT,
    .role = LACI_ROLE_ALLOW,
    .attributes =
        LACI_ATTRIBUTES({"activation", LACI_ATTR_TEXT}, {"activation_alpha", LACI_ATTR_FLOAT},
                        {"activation_beta", LACI_ATTR_FLOAT}, {"activation_gamma", LACI_ATTR_FLOAT},
                        {"alpha", LACI_ATTR_FLOAT}, {"beta", LACI_ATTR_FLOAT},
                        {"transA", LACI_ATTR_INT}, {"transB", LACI_ATTR_INT}),
    .weights = find_weight_axes,
    .infer = infer,
    .eval = eval,
    .couple = couple_channel_orders};
