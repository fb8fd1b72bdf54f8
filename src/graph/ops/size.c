/* SPDX-License-Identifier: Apache-2.0
 * Size: the number of elements of x. Only sizes are read, so x may have any channel order. */
#include "graph/coupling.h"
#include "graph/ops/shared/op_in.h"
#include "tensor/buf.h"

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 1, 1);
  if (!st) infer->out[0] = (laci_type){.dtype = LAC_DTYPE_I64, .shape = laci_shape_of(0, NULL)};
  return st;
}

static lac_status eval(laci_eval *eval) {
  int64_t count = laci_shape_count(&eval->in[0]->shape);
  if (count < 0 && !eval->new_symbol) {
    return laci_node_fail(eval->node, eval->err, LAC_BAD_SHAPE, "the size is not known");
  }
  eval->out[0]->i[0] = count < 0 ? eval->new_symbol(eval) : count;
  return LAC_OK;
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph;
  (void)node;
  const laci_shape *x = laci_port_shape(c, 0);
  if (x) laci_coupling_set_fresh_labels(c, 0, 0, x->rank);
  return laci_coupling_status(c);
}

const laci_op laci_op_size = {.name = "Size",
                              .role = LACI_ROLE_SKIP,
                              .is_fold = true,
                              .shape_only = true,
                              .infer = infer,
                              .eval = eval,
                              .couple = couple_channel_orders};
