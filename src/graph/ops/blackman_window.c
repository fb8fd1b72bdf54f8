/* SPDX-License-Identifier: Apache-2.0
 * BlackmanWindow (opset 17): shared/taper_in.h. */
#include "graph/ops/shared/taper_in.h"

static lac_status eval(laci_eval *eval) { return laci_cosine_window_eval(eval, 0.42, 0.5, 0.08); }

const laci_op laci_op_blackman_window = {.name = "BlackmanWindow",
                                         .role = LACI_ROLE_SKIP,
                                         .attributes = laci_taper_attributes,
                                         .infer = laci_cosine_window_infer,
                                         .eval = eval,
                                         .couple = laci_couple_nothing};
