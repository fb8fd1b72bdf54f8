/* SPDX-License-Identifier: Apache-2.0
 * HammingWindow (opset 17): shared/taper_in.h, with a0 = 25 / 46. */
#include "graph/ops/shared/taper_in.h"

static lac_status eval(laci_eval *eval) {
  return laci_cosine_window_eval(eval, 25.0 / 46.0, 1 - 25.0 / 46.0, 0);
}

const laci_op laci_op_hamming_window = {.name = "HammingWindow",
                                        .role = LACI_ROLE_SKIP,
                                        .attributes = laci_taper_attributes,
                                        .infer = laci_cosine_window_infer,
                                        .eval = eval,
                                        .couple = laci_couple_nothing};
