/* SPDX-License-Identifier: Apache-2.0
 * lacuna.ScanBegin: begins an iteration of a Scan. Inputs: the values carried into the first
 * iteration, then the sequences. Outputs: the values carried into this iteration, then its slices
 * of the sequences. Scan ends the iteration (graph.h, laci_body). */
#include "graph/coupling.h"
#include "graph/ops/shared/loop_in.h"

static void infer_slice(laci_infer *infer, int port, int64_t axis) {
  const laci_type *whole = infer->in[port];
  if (!whole) return;
  laci_type *slice = &infer->out[port];
  slice->dtype = whole->dtype;
  if (whole->shape.rank < 1 || axis < 0) return;
  slice->shape.rank = whole->shape.rank - 1;
  for (int k = 0; k < slice->shape.rank; k++)
    slice->shape.dims[k] = whole->shape.dims[k + (k >= axis)];
}

static lac_status infer(laci_infer *infer) {
  const laci_node *node = infer->node;
  int n = laci_loop_begin_count_carried(node);
  if (infer->n_out != infer->n_in) return LAC_OK;
  for (int at = 0; at < infer->n_in; at++) {
    int rank = infer->in[at] ? infer->in[at]->shape.rank : -1;
    if (at < n) laci_loop_copy_type_to_output(infer, at, at);
    else infer_slice(infer, at, laci_node_slice_axis(node, "scan_input_axes", at - n, rank));
  }
  return LAC_OK;
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  int n = laci_loop_begin_count_carried(node);
  (void)graph;
  c->why = "order matters along the iterations of a Scan";
  for (int at = 0; at < node->n_inputs && node->n_inputs == node->n_outputs; at++) {
    const laci_shape *shape = laci_port_shape(c, at);
    if (at < n) laci_couple_carried_value(c, at, LACI_OUT(at));
    else if (shape)
      laci_couple_slice_of_value(
          c, at, LACI_OUT(at), laci_node_slice_axis(node, "scan_input_axes", at - n, shape->rank));
  }
  return laci_coupling_status(c);
}

const laci_op laci_op_scan_begin = {
    .name = "ScanBegin",
    .domain = "lacuna",
    .role = LACI_ROLE_PASS_THROUGH,
    .control = LACI_CONTROL_BEGIN,
    .attributes =
        LACI_ATTRIBUTES({"num_scan_inputs", LACI_ATTR_INT}, {"scan_input_axes", LACI_ATTR_INTS},
                        {"scan_input_directions", LACI_ATTR_INTS}),
    .infer = infer,
    .couple = couple_channel_orders};
