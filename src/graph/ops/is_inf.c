/* SPDX-License-Identifier: Apache-2.0
 * IsInf: true where x is infinite; detect_negative and detect_positive choose the signs that count.
 * */
#include <math.h>

#include "graph/ops/shared/op_in.h"

typedef struct signs {
  bool negative, positive;
} signs;

static int64_t test_double(double x, const void *context) {
  const signs *s = context;
  return isinf(x) && (x < 0 ? s->negative : s->positive);
}

static lac_status eval(laci_eval *eval) {
  signs s = {.negative = laci_node_int(eval->node, "detect_negative", 1) != 0,
             .positive = laci_node_int(eval->node, "detect_positive", 1) != 0};
  return laci_eval_unary(eval, &(laci_unary){.test = test_double}, &s);
}

const laci_op laci_op_is_inf = {.name = "IsInf",
                                .role = LACI_ROLE_PASS_THROUGH,
                                .attributes = LACI_ATTRIBUTES({"detect_negative", LACI_ATTR_INT},
                                                              {"detect_positive", LACI_ATTR_INT}),
                                .infer = laci_infer_bool_like_input,
                                .eval = eval,
                                .couple = laci_couple_first_input};
