/* SPDX-License-Identifier: Apache-2.0
 * Scatter: the name of ScatterElements before opset 11. */
#include "graph/ops/shared/op_in.h"

extern const laci_op laci_op_scatter_elements;

static lac_status infer(laci_infer *infer) { return laci_op_scatter_elements.infer(infer); }

static lac_status eval(laci_eval *eval) { return laci_op_scatter_elements.eval(eval); }

const laci_op laci_op_scatter = {.name = "Scatter",
                                 .role = LACI_ROLE_PASS_THROUGH,
                                 .attributes = LACI_ATTRIBUTES({"axis", LACI_ATTR_INT}),
                                 .infer = infer,
                                 .eval = eval,
                                 .couple = laci_couple_nothing};
