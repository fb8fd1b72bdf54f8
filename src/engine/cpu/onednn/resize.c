/* SPDX-License-Identifier: Apache-2.0
 * Resize and Upsample along height and width, where oneDNN defines them as ONNX does. */
#include <string.h>

#include "engine/cpu/lower/resize.h"
#include "graph/ops.h"
#include "engine/cpu/onednn/onednn.h"
#include "tensor/buf.h"

/** Does oneDNN support the resize: height and width only, by integer factors (nearest) or with
 * half-pixel centres (linear)? The plain operator does all others. */
static bool is_supported_resize(const laci_node *node, const laci_shape *x, const laci_shape *y,
                                bool nearest) {
  const char *mode = laci_node_text(node, "mode", "nearest");
  bool upsample = node->op == &laci_op_upsample || node->version < 11;
  const char *where = laci_node_text(node, "coordinate_transformation_mode",
                                     upsample ? "asymmetric" : "half_pixel");
  const char *rounding =
      laci_node_text(node, "nearest_mode", upsample ? "floor" : "round_prefer_floor");
  if (x->rank < 3 || x->rank > 5 || laci_node_int(node, "antialias", 0) != 0) return false;
  if (laci_node_attr(node, "axes")) return false;
  if (strcmp(laci_node_text(node, "keep_aspect_ratio_policy", "stretch"), "stretch") != 0) {
    return false;
  }
  if (x->dims[0] != y->dims[0] || x->dims[1] != y->dims[1]) return false;
  bool half = strcmp(where, "half_pixel") == 0;
  for (int axis = 2; axis < x->rank && nearest; axis++) {
    if (y->dims[axis] % x->dims[axis] != 0) return false;
  }
  if (nearest) {
    bool floors = strcmp(where, "asymmetric") == 0 && strcmp(rounding, "floor") == 0;
    return floors || (half && strncmp(rounding, "round", 5) == 0);
  }
  return half && strcmp(mode, "linear") == 0;
}

/** Are the output's sizes exactly input size times scale? oneDNN knows only the sizes. */
static bool are_sizes_exactly_scaled(laci_net *net, const laci_node *node, const laci_shape *x,
                                     const laci_shape *y) {
  int port = node->op == &laci_op_upsample || node->version < 11 ? 1 : 2;
  if (!laci_plan_has_input(node, port)) return port == 2; /* sizes are given */
  if (!laci_plan_is_constant(&net->plan, node->inputs[port])) return false;
  laci_buf *scales = laci_plan_copy_constant(&net->plan, node->inputs[port]);
  bool fits = scales && scales->f && (scales->count == 0 || scales->count == x->rank);
  for (int axis = 0; fits && scales->count && axis < x->rank; axis++) {
    fits = scales->f[axis] * (double)x->dims[axis] == (double)y->dims[axis];
  }
  laci_buf_destroy(scales);
  return fits;
}

static bool is_nearest_mode(const laci_node *node) {
  return strcmp(laci_node_text(node, "mode", "nearest"), "nearest") == 0;
}

bool laci_can_lower_resize(laci_net *net, const laci_fused *fused, const char **why) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const laci_shape *x = laci_plan_shape(&net->plan, node->inputs[0]);
  const laci_shape *y = laci_plan_shape(&net->plan, fused->output);
  *why = "a mode of Resize that oneDNN lacks";
  return laci_plan_is_float(&net->plan, fused->output) &&
         is_supported_resize(node, x, y, is_nearest_mode(node)) &&
         are_sizes_exactly_scaled(net, node, x, y);
}

void laci_lower_resize(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  laci_shape y = *laci_plan_shape(&net->plan, fused->output);
  laci_primitive *pd = NULL;
  laci_layout *md = NULL;
  int from = laci_net_make_whole_tensor(net, laci_net_read_value(net, node->inputs[0]));
  laci_layout *any = laci_net_any_layout(net, &y, laci_net_float_element(net));
  if (!net->plan.status) {
    lac_status st =
        laci_primitive_describe_resample(&pd, net->onednn, is_nearest_mode(node),
                                         (const laci_layout *const[]){net->tensors[from].md, any});
    (void)laci_net_check_status(net, st, "resampling");
  }
  laci_layout_destroy(any);
  if (net->plan.status) return;
  const laci_layout *dst = laci_primitive_layout(pd, LACI_ARG_DST);
  if (!laci_layout_create_copy(&md, dst)) laci_plan_fail_no_memory(&net->plan);
  int to = laci_net_tensor_new(net, &y, laci_net_float_element(net), md,
                               laci_net_buffer_new(net, LACI_PLACE_ARENA, laci_layout_bytes(dst)));
  laci_net_step_add(net, fused, pd, 2, (const int[][2]){{LACI_ARG_SRC, from}, {LACI_ARG_DST, to}});
  laci_net_bind_value(net, fused->output, to);
}
