/* SPDX-License-Identifier: Apache-2.0
 * Windows of convolutions and pools in oneDNN's form, and which of them fit an algorithm or a
 * layout.
 */
#include <string.h>

#include "engine/cpu/onednn/convolution.h"
#include "engine/cpu/onednn/onednn.h"

/* minimum number of rows and of columns of the output for Winograd's algorithm */
enum { WINOGRAD_MIN_SIDE = 7 };

bool laci_conv_read_window(const laci_node *node, const laci_shape *x, const laci_shape *y,
                           const int64_t *kernel, laci_window *w) {
  size_t n;
  const char *automatic = laci_node_text(node, "auto_pad", "NOTSET");
  const int64_t *strides = laci_node_ints(node, "strides", &n);
  const int64_t *dilations = laci_node_ints(node, "dilations", &n);
  const int64_t *pads = laci_node_ints(node, "pads", &n);
  bool given = strcmp(automatic, "NOTSET") == 0, lower = strcmp(automatic, "SAME_LOWER") == 0;
  bool same = lower || strcmp(automatic, "SAME_UPPER") == 0;
  w->n_spatial = x->rank - 2;
  if (w->n_spatial < 1 || w->n_spatial > 3) return false;
  for (int at = 0; at < w->n_spatial; at++) {
    int64_t in = x->dims[at + 2], out = y->dims[at + 2];
    w->kernel[at] = kernel[at];
    w->strides[at] = strides ? strides[at] : 1;
    w->dilates[at] = dilations ? dilations[at] - 1 : 0;
    int64_t reach = (kernel[at] - 1) * (w->dilates[at] + 1) + 1;
    int64_t total = (out - 1) * w->strides[at] + reach - in;
    w->pads_begin[at] = given && pads ? pads[at] : 0;
    if (same && total > 0) w->pads_begin[at] = lower ? total - total / 2 : total / 2;
    w->pads_end[at] = total - w->pads_begin[at];
    if (w->pads_begin[at] < 0 || (given && pads && pads[w->n_spatial + at] < 0)) return false;
  }
  return true;
}

laci_shape laci_conv_grouped_shape(const laci_shape *weight, int64_t groups) {
  if (groups == 1) return *weight;
  laci_shape s = {.rank = weight->rank + 1};
  s.dims[0] = groups;
  s.dims[1] = weight->dims[0] / groups;
  for (int axis = 1; axis < weight->rank; axis++) s.dims[axis + 1] = weight->dims[axis];
  return s;
}

bool laci_conv_can_use_winograd(const laci_net *net, const laci_shape *x, const laci_shape *y,
                                int64_t groups, const laci_window *w) {
  if (net->plan.bf16 || groups != 1 || w->n_spatial != 2) return false;
  for (int at = 0; at < 2; at++) {
    if (w->kernel[at] != 3 || w->strides[at] != 1 || w->dilates[at] != 0) return false;
    if (y->dims[2 + at] < WINOGRAD_MIN_SIDE) return false;
  }
  return x->dims[1] % LACI_NET_BLOCK == 0 && y->dims[1] % LACI_NET_BLOCK == 0;
}

bool laci_conv_can_use_blocks(const laci_shape *x, const laci_shape *y, int64_t groups) {
  int64_t in = x->dims[1] / groups, out = y->dims[1] / groups;
  return groups == 1 || (in == 1 && out == 1) ||
         (in % LACI_NET_BLOCK == 0 && out % LACI_NET_BLOCK == 0);
}

/* ---- One pixel wide ---- */

bool laci_conv_is_one_pixel_wide(const laci_shape *x, const laci_shape *y, const laci_window *w) {
  return w->n_spatial == 2 && x->dims[3] == 1 && y->dims[3] == 1 && x->dims[2] > 1 &&
         w->kernel[1] == 1 && w->pads_begin[1] == 0 && w->pads_end[1] == 0;
}

void laci_conv_exchange_shape_axes(laci_shape *shape) {
  int64_t last = shape->dims[shape->rank - 1];
  shape->dims[shape->rank - 1] = shape->dims[shape->rank - 2];
  shape->dims[shape->rank - 2] = last;
}

static void exchange_first_and_second(int64_t pair[2]) {
  int64_t first = pair[0];
  pair[0] = pair[1];
  pair[1] = first;
}

void laci_conv_exchange_window_axes(laci_window *w) {
  exchange_first_and_second(w->kernel);
  exchange_first_and_second(w->strides);
  exchange_first_and_second(w->dilates);
  exchange_first_and_second(w->pads_begin);
  exchange_first_and_second(w->pads_end);
}

/** Replaces *md by `same` where both describe the same bytes. They may differ in strides of axes of
 * size 1, which oneDNN's kernels compare. */
static void replace_equivalent_layout(laci_layout **md, laci_layout *same) {
  bool equal = same && laci_layout_equal(same, *md);
  laci_layout_destroy(equal ? *md : same);
  if (equal) *md = same;
}

int laci_conv_exchange_tensor_axes(laci_net *net, int tensor) {
  if (net->plan.status || tensor < 0) return -1;
  const laci_net_tensor from = net->tensors[tensor];
  laci_shape shape = from.shape;
  laci_layout *md = NULL, *blocks = NULL;
  laci_conv_exchange_shape_axes(&shape);
  if (!laci_layout_create_permuted(&md, from.md, (int[]){0, 1, 3, 2})) {
    laci_plan_fail_no_memory(&net->plan);
    return -1;
  }
  const int64_t block = laci_layout_block_channels(md);
  if (block == 1) {
    replace_equivalent_layout(&md, laci_net_dense_layout(net, &shape, from.dt));
    replace_equivalent_layout(&md, laci_net_channels_last_layout(net, &shape, from.dt));
  } else if (block == 8 || block == 16) {
    if (!laci_layout_create_blocks(&blocks, shape.dims, (int)block, from.dt)) {
      laci_plan_fail_no_memory(&net->plan);
    }
    replace_equivalent_layout(&md, blocks);
  }
  return laci_net_view_new(net, tensor, &shape, md, false);
}

/* ---- Constant weights ---- */

bool laci_is_constant_of_floats(const laci_net *net, int value) {
  return laci_plan_is_constant(&net->plan, value) && laci_plan_is_float(&net->plan, value);
}

bool laci_can_lower_conv_constant(laci_net *net, const laci_fused *fused, const char **why) {
  laci_window w;
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  bool constant = laci_plan_has_input(node, 0) && laci_plan_has_input(node, 1) &&
                  node->outputs[0] >= 0 && laci_plan_is_float(&net->plan, node->inputs[0]);
  for (int at = 1; at < node->n_inputs && constant; at++) {
    constant = node->inputs[at] < 0 || laci_is_constant_of_floats(net, node->inputs[at]);
  }
  *why = "weights or a bias that change";
  if (!constant) return false;
  const laci_shape *x = laci_plan_shape(&net->plan, node->inputs[0]);
  const laci_shape *weight = laci_plan_shape(&net->plan, node->inputs[1]);
  *why = "a window that oneDNN lacks";
  return laci_conv_read_window(node, x, laci_plan_shape(&net->plan, node->outputs[0]),
                               weight->dims + 2, &w);
}
