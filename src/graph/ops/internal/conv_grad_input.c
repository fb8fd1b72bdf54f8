/* SPDX-License-Identifier: Apache-2.0
 * lacuna.ConvGradInput: inputs dY, W of a Conv whose X had shape input_shape;
 *   dX[n c i] = sum over k, o, t of dY[n k o] * W[k c t], where i = o*stride - pad + t*dilation:
 * a transposed convolution whose output size is given. */
#include "base/error.h"
#include "base/memory.h"
#include "graph/ops/shared/conv_in.h"
#include "graph/ops/shared/grad_in.h"
#include "tensor/buf.h"

static lac_status infer(laci_infer *infer) {
  int64_t n_groups = 1;
  laci_node_window window;
  laci_shape *dx = &infer->out[0].shape;
  lac_status st = laci_check_n_inputs(infer, 2, 2);
  if (!st) st = laci_node_read_shape_attr(infer->node, "input_shape", dx, infer->err);
  if (!st) st = laci_conv_read_groups(infer->node, &n_groups, infer->err);
  if (st) return st;
  const laci_shape *w = &infer->in[1]->shape;
  infer->out[0].dtype = infer->in[0]->dtype;
  if (!laci_shape_is_known(w)) return LAC_OK;
  if (dx->rank < 3 || w->rank != dx->rank || w->dims[0] % n_groups ||
      dx->dims[1] / n_groups != w->dims[1] || dx->dims[1] % n_groups) {
    char text[128];
    return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE,
                          "the weight %s does not fit an input of %lld channels in %lld groups",
                          laci_shape_text(w, text, sizeof text), (long long)dx->dims[1],
                          (long long)n_groups);
  }
  laci_shape y = {.rank = dx->rank, .dims = {dx->dims[0], w->dims[0]}};
  st = laci_window_read(infer->node, dx->rank - 2, w, &window, infer->err);
  if (!st) st = laci_window_infer(infer, &window, dx, &y);
  return st ? st : laci_check_input_shape(infer, 0, &y);
}

static lac_status eval(laci_eval *eval) {
  int64_t n_groups;
  laci_node_window window;
  laci_patches patches;
  const laci_buf *w = eval->in[1];
  lac_status st = laci_check_floats(eval);
  if (!st) st = laci_conv_read_groups(eval->node, &n_groups, eval->err);
  if (!st) st = laci_window_read(eval->node, w->shape.rank - 2, &w->shape, &window, eval->err);
  if (!st) st = laci_patches_init(&patches, eval, &window);
  if (st || eval->out[0]->count == 0 || w->count == 0) return st;
  double *transposed = laci_conv_transposed_weight(w, n_groups);
  if (!transposed) return laci_fail_memory(eval->err, eval->node->name);
  patches.transposed = true;
  patches.channels = w->shape.dims[0] / n_groups;
  st = laci_conv_add_products(eval, &patches, transposed, n_groups);
  laci_free(transposed);
  return st;
}

const laci_op laci_op_conv_grad_input = {.name = "ConvGradInput",
                                         .domain = "lacuna",
                                         .role = LACI_ROLE_PASS_THROUGH,
                                         .infer = infer,
                                         .eval = eval,
                                         .couple = laci_couple_nothing};
