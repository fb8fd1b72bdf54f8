/* SPDX-License-Identifier: Apache-2.0
 * Loops: types and couplings at the nodes that begin and end an iteration. */
#include "graph/coupling.h"
#include "graph/ops/shared/loop_in.h"

int laci_loop_begin_count_carried(const laci_node *node) {
  bool is_loop = strcmp(node->type, "LoopBegin") == 0;
  int64_t rest = is_loop ? 2 : laci_node_int(node, "num_scan_inputs", 0);
  int64_t n = node->n_inputs - rest;
  return rest < 0 || n < 0 || node->n_inputs != node->n_outputs ? 0 : (int)n;
}

void laci_loop_copy_type_to_output(laci_infer *infer, int in, int out) {
  if (in < infer->n_in && infer->in[in]) infer->out[out] = *infer->in[in];
}

/** Returns the size of an axis if all shapes agree on it, else a new symbol. */
static int64_t common_size_or_symbol(laci_infer *infer, const laci_shape *const *shapes, int n,
                                     int axis) {
  for (int at = 1; at < n; at++) {
    if (shapes[at]->dims[axis] != shapes[0]->dims[axis]) return infer->new_symbol(infer);
  }
  return shapes[0]->dims[axis];
}

static void infer_carried_output(laci_infer *infer, const laci_end_ports *ports, int at) {
  const int in[] = {ports->first + at, ports->in + at, ports->out + at};
  const laci_shape *shapes[3];
  laci_type *to = &infer->out[at];
  for (int k = 0; k < 3; k++) {
    const laci_type *type = infer->in[in[k]];
    if (!type) return;
    shapes[k] = &type->shape;
    if (k == 0) to->dtype = type->dtype;
  }
  int rank = shapes[0]->rank;
  if (rank < 0 || shapes[1]->rank != rank || shapes[2]->rank != rank) return;
  to->shape.rank = rank;
  for (int axis = 0; axis < rank; axis++)
    to->shape.dims[axis] = common_size_or_symbol(infer, shapes, 3, axis);
}

static void infer_stacked_output(laci_infer *infer, const laci_end_ports *ports, int at) {
  const laci_type *slice = infer->in[ports->slices + at];
  if (!slice) return;
  infer->out[ports->n_carried + at].dtype = slice->dtype;
  int rank = slice->shape.rank + 1;
  int64_t axis = laci_node_slice_axis(infer->node, "scan_output_axes", at, rank);
  if (slice->shape.rank < 0 || rank > LACI_MAX_RANK || axis < 0) return;
  laci_shape *to = &infer->out[ports->n_carried + at].shape;
  to->rank = rank;
  for (int k = 0; k < rank; k++) {
    to->dims[k] = k == axis ? infer->new_symbol(infer) : slice->shape.dims[k - (k > axis)];
  }
}

lac_status laci_loop_end_infer(laci_infer *infer) {
  laci_end_ports ports = laci_node_loop_end_ports(infer->node);
  for (int at = 0; at < ports.n_carried; at++) infer_carried_output(infer, &ports, at);
  for (int at = 0; at < ports.n_slices; at++) infer_stacked_output(infer, &ports, at);
  return LAC_OK;
}

void laci_couple_carried_value(laci_coupling *c, int in, int out) {
  const laci_shape *shape = laci_port_shape(c, in);
  if (shape) laci_coupling_set_fresh_labels(c, in, 0, shape->rank);
  laci_coupling_mark_output_fresh(c, out);
}

void laci_couple_slice_of_value(laci_coupling *c, int whole, int slice, int64_t axis) {
  const laci_shape *all = laci_port_shape(c, whole), *one = laci_port_shape(c, slice);
  if (!all || !one || axis < 0 || all->rank != one->rank + 1) return;
  laci_coupling_mark_described(c, whole);
  laci_coupling_mark_described(c, slice);
  for (int k = 0; k < one->rank; k++) {
    int to = k + (k >= axis);
    if (one->dims[k] != all->dims[to]) continue;
    int label = laci_coupling_new_label(c);
    laci_coupling_set_label(c, slice, k, label);
    laci_coupling_set_label(c, whole, to, label);
  }
}

lac_status laci_loop_end_couple_orders(const laci_node *node, laci_coupling *c) {
  laci_end_ports at = laci_node_loop_end_ports(node);
  c->why =
      "order matters along the iterations of a loop, and where sizes differ between iterations";
  for (int k = 0; k < at.n_carried; k++) {
    const int ports[] = {at.first + k, at.in + k, at.out + k, LACI_OUT(k)};
    laci_couple_equal_ports(c, ports, 4);
  }
  for (int k = 0; k < at.n_slices; k++) {
    const laci_shape *slice = laci_port_shape(c, at.slices + k);
    int64_t axis = slice ? laci_node_slice_axis(node, "scan_output_axes", k, slice->rank + 1) : -1;
    laci_couple_slice_of_value(c, LACI_OUT(at.n_carried + k), at.slices + k, axis);
  }
  return laci_coupling_status(c);
}
