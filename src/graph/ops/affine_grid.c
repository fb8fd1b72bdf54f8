/* SPDX-License-Identifier: Apache-2.0
 * AffineGrid (opset 20): for each position of an image of the given size, the position to which an
 * affine map, theta [N, 2, 3] or [N, 3, 4], moves it. Coordinates run from -1 to 1, the last axis
 * first. See grid_sample.c. The batch axes of theta and output share an order; all other axes are
 * FIXED: their order must stay (coupling.h). */
#include "graph/coupling.h"
#include "graph/ops/shared/op_in.h"
#include "tensor/buf.h"

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 2, 2);
  if (st) return st;
  const laci_shape *theta = laci_in_shape(infer, 0), *list = laci_in_shape(infer, 1);
  laci_ints size = laci_read_int_list(infer->node, NULL, 1, laci_in_known_content(infer, 1));
  infer->out[0].dtype = infer->in[0]->dtype;
  int64_t n_axes = size.known ? size.n - 2 : list && list->rank == 1 ? list->dims[0] - 2 : -1;
  if (n_axes < 0 && theta && theta->rank == 3) n_axes = theta->dims[1];
  if (n_axes < 0) return LAC_OK;
  bool fits = (n_axes == 2 || n_axes == 3) &&
              (!theta || (theta->rank == 3 && (theta->dims[1] < 0 || theta->dims[1] == n_axes) &&
                          (theta->dims[2] < 0 || theta->dims[2] == n_axes + 1)));
  if (!fits)
    return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE, "the maps do not fit the size");
  laci_shape *y = &infer->out[0].shape;
  y->rank = (int)n_axes + 2;
  y->dims[0] = theta ? theta->dims[0] : infer->new_symbol(infer);
  for (int axis = 1; axis <= n_axes; axis++) {
    int64_t known = size.known ? laci_size_from_element(size.v[axis + 1]) : -1;
    y->dims[axis] = known >= 0 ? known : infer->new_symbol(infer);
  }
  y->dims[n_axes + 1] = n_axes;
  return LAC_OK;
}

static double coordinate_of_index(int64_t at, int64_t n, bool corners) {
  if (corners) return n > 1 ? -1 + 2 * (double)at / (double)(n - 1) : -1;
  return -1 + (2 * (double)at + 1) / (double)n;
}

static lac_status eval(laci_eval *eval) {
  const laci_shape *y = &eval->out[0]->shape;
  int n_axes = y->rank - 2;
  bool corners = laci_node_int(eval->node, "align_corners", 0) != 0;
  lac_status st = eval->in[0]->f ? LAC_OK : laci_check_floats(eval);
  int64_t places = laci_shape_count_range(y, 1, n_axes + 1);
  for (int64_t at = 0; !st && at < y->dims[0] * places; at++) {
    const double *theta = eval->in[0]->f + at / places * n_axes * (n_axes + 1);
    double place[4] = {0};
    int64_t rest = at % places;
    for (int axis = 0; axis < n_axes; axis++) { /* coordinates are listed from the last axis of the
                                                   image to the first */
      int64_t size = y->dims[n_axes - axis];
      place[axis] = coordinate_of_index(rest % size, size, corners);
      rest /= size;
    }
    place[n_axes] = 1;
    for (int row = 0; row < n_axes; row++) {
      double sum = 0;
      for (int k = 0; k <= n_axes; k++) sum += theta[row * (n_axes + 1) + k] * place[k];
      eval->out[0]->f[at * n_axes + row] = sum;
    }
  }
  return st;
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph, (void)node;
  c->why = "AffineGrid counts places";
  int batch = laci_coupling_new_label(c);
  laci_coupling_set_label(c, 0, 0, batch);
  laci_coupling_set_label(c, LACI_OUT(0), 0, batch);
  return laci_coupling_status(c);
}

const laci_op laci_op_affine_grid = {
    .name = "AffineGrid",
    .role = LACI_ROLE_PASS_THROUGH,
    .attributes = LACI_ATTRIBUTES({"align_corners", LACI_ATTR_INT}),
    .inputs_without_channels = 1u << 1,
    .infer = infer,
    .eval = eval,
    .couple = couple_channel_orders};
