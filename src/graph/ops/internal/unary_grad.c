/* SPDX-License-Identifier: Apache-2.0
 * lacuna.UnaryGrad: dX = dY * f'(X), element by element, where f is the operator of ai.onnx that
 * the attribute `of` names; its attributes are attributes of this node, too. f' is that operator's
 * slope. */
#include "graph/ops/shared/grad_in.h"
#include "tensor/buf.h"

typedef struct job {
  const laci_eval *eval;
  double (*slope)(const laci_node *node, double x);
} job;

static double (*find_slope_function(const laci_node *node))(const laci_node *, double) {
  return node->of_op ? node->of_op->slope : NULL;
}

static lac_status infer(laci_infer *infer) {
  if (find_slope_function(infer->node)) return laci_infer_equal_shapes(infer, 0, 1);
  return laci_node_fail(infer->node, infer->err, LAC_UNSUPPORTED, "there is no slope of '%s'",
                        laci_node_text(infer->node, "of", ""));
}

static void multiply_by_slopes(int64_t begin, int64_t end, void *context) {
  const job *j = context;
  const double *dy = j->eval->in[0]->f, *x = j->eval->in[1]->f;
  for (int64_t at = begin; at < end; at++)
    j->eval->out[0]->f[at] = dy[at] * j->slope(j->eval->node, x[at]);
}

static lac_status eval(laci_eval *eval) {
  job j = {.eval = eval, .slope = find_slope_function(eval->node)};
  lac_status st = laci_check_floats(eval);
  if (!st) laci_eval_parallel(eval, eval->out[0]->count, multiply_by_slopes, &j);
  return st;
}

const laci_op laci_op_unary_grad = {.name = "UnaryGrad",
                                    .domain = "lacuna",
                                    .role = LACI_ROLE_PASS_THROUGH,
                                    .infer = infer,
                                    .eval = eval,
                                    .couple = laci_couple_nothing};
