/* SPDX-License-Identifier: Apache-2.0
 * Identity: y = x. Exporters write it where a weight is shared or a layer was removed. Every
 * channel order passes through. */
#include "graph/ops/shared/grad_in.h"
#include "graph/ops/shared/op_in.h"
#include "tensor/buf.h"

static lac_status eval(laci_eval *eval) {
  laci_copy_elements(eval->out[0], 0, eval->in[0], 0, eval->in[0]->count);
  return LAC_OK;
}

const laci_op laci_op_identity = {.name = "Identity",
                                  .role = LACI_ROLE_PASS_THROUGH,
                                  .moves_data = true,
                                  .is_fold = true,
                                  .infer = laci_infer_same_type,
                                  .eval = eval,
                                  .couple = laci_couple_first_input,
                                  .gradient = laci_gradient_of_reshape};
