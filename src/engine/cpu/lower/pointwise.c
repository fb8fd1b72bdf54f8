/* SPDX-License-Identifier: Apache-2.0
 * Translates functions of a plan to those of our kernels (kernel/pointwise), as far as these
 * exist. */
#include "engine/cpu/lower/pointwise.h"

typedef struct mapped {
  bool known;
  laci_pointwise_kind kind;
} mapped;

static const mapped kinds[LACI_N_FUNCTIONS] = {
    [LACI_FUNCTION_RELU] = {true, LACI_POINTWISE_RELU},
    [LACI_FUNCTION_ELU] = {true, LACI_POINTWISE_ELU},
    [LACI_FUNCTION_LOGISTIC] = {true, LACI_POINTWISE_LOGISTIC},
    [LACI_FUNCTION_TANH] = {true, LACI_POINTWISE_TANH},
    [LACI_FUNCTION_LINEAR] = {true, LACI_POINTWISE_LINEAR},
    [LACI_FUNCTION_SWISH] = {true, LACI_POINTWISE_SWISH},
    [LACI_FUNCTION_HARDSWISH] = {true, LACI_POINTWISE_HARDSWISH},
    [LACI_FUNCTION_GELU_ERF] = {true, LACI_POINTWISE_GELU_ERF},
    [LACI_FUNCTION_GELU_TANH] = {true, LACI_POINTWISE_GELU_TANH},
    [LACI_FUNCTION_CLIP] = {true, LACI_POINTWISE_CLIP},
    [LACI_FUNCTION_CLIP_OPEN] = {true, LACI_POINTWISE_CLIP},
};

bool laci_lower_to_pointwise(const laci_function *f, laci_pointwise *to) {
  *to = (laci_pointwise){kinds[f->kind].kind, f->alpha, f->beta};
  return kinds[f->kind].known;
}
