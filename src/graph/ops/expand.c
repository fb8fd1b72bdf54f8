/* SPDX-License-Identifier: Apache-2.0
 * Expand: broadcasts x to a given shape (or to the broadcast of both, where x is larger). An axis
 * that grows from size 1 is uniform in the output. All other axes pass channel orders through
 * (coupling.h). */
#include "graph/gradient.h"
#include "graph/ops/shared/op_in.h"
#include "graph/ops/shared/walk_in.h"
#include "tensor/buf.h"

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 2, 2);
  if (st) return st;
  infer->out[0].dtype = infer->in[0]->dtype;
  const laci_shape *x = laci_in_shape(infer, 0), *sizes = laci_in_shape(infer, 1);
  const laci_buf *content = laci_in_known_content(infer, 1);
  if (!x || !sizes || sizes->rank != 1 || sizes->dims[0] < 0) return LAC_OK;
  if (sizes->dims[0] > LACI_MAX_RANK) {
    return laci_node_fail(infer->node, infer->err, LAC_UNSUPPORTED, "a tensor of %lld axes",
                          (long long)sizes->dims[0]);
  }
  laci_shape wanted = {.rank = (int)sizes->dims[0]};
  for (int axis = 0; axis < wanted.rank; axis++) {
    bool known = content && content->i;
    wanted.dims[axis] = known ? laci_size_from_element(content->i[axis]) : infer->new_symbol(infer);
    if (known && content->i[axis] < 0 && !laci_is_symbol(content->i[axis])) {
      return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE, "size %lld of axis %d",
                            (long long)content->i[axis], axis);
    }
  }
  return laci_broadcast_shapes(infer, x, &wanted, &infer->out[0].shape);
}

static lac_status eval(laci_eval *eval) {
  const laci_buf *x = eval->in[0];
  laci_walk walk;
  laci_walk_begin(&walk, &eval->out[0]->shape);
  laci_walk_add_broadcast(&walk, &x->shape);
  laci_copy_strided_to_rows(eval, x, &eval->out[0]->shape, walk.stride[0], 0, eval->out[0]);
  return LAC_OK;
}

static lac_status gradient(laci_gradient_builder *b, const laci_node *node) {
  laci_gradient_contribute_broadcast(b, node, 0, laci_gradient_of(b, node, 0));
  return laci_gradient_status(b);
}

const laci_op laci_op_expand = {.name = "Expand",
                                .role = LACI_ROLE_PASS_THROUGH,
                                .moves_data = true,
                                .is_fold = true,
                                .inputs_without_channels = 1u << 1,
                                .infer = infer,
                                .eval = eval,
                                .couple = laci_couple_first_input,
                                .gradient = gradient};
