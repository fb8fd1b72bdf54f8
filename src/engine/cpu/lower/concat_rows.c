/* SPDX-License-Identifier: Apache-2.0
 * Concat of row-major parts with short rows, as along the last axis: real and imaginary parts, or
 * shifted copies of one value. A row of the result is a row of each part. oneDNN copies each of
 * them by itself, and takes longer for that than for the copy. */
#include <string.h>

#include "cpu/pool.h"
#include "engine/cpu/lower/concat.h"
#include "engine/cpu/onednn/onednn.h"
#include "graph/ops.h"

enum {
  SHORT_ROW = 16,   /* maximum number of floats in a part's shortest row */
  AT_ONCE = 1 << 11 /* number of floats of the result that are copied part by part */
};

typedef struct joined_rows {
  int n_parts;
  int64_t n_rows, width; /* number of rows, and of floats in a row of the result */
  int64_t *widths;       /* [n_parts] number of floats in a row of each part */
} joined_rows;

typedef struct joining {
  const joined_rows *r;
  const laci_net *net;
  const laci_net_step *step;
} joining;

/** Copies n rows of `width` floats to rows that are `stride` floats apart. */
static void copy_rows(const float *x, int64_t n, int64_t width, int64_t stride, float *y) {
  if (width == 0) return;
  if (width == 1) {
    for (int64_t row = 0; row < n; row++) y[row * stride] = x[row];
  } else if (width == 2) {
    for (int64_t row = 0; row < n; row++) memcpy(y + row * stride, x + 2 * row, 2 * sizeof *y);
  } else {
    for (int64_t row = 0; row < n; row++)
      memcpy(y + row * stride, x + row * width, sizeof *y * (size_t)width);
  }
}

static int64_t rows_at_once(const joined_rows *r) {
  return r->width < AT_ONCE ? AT_ONCE / r->width : 1;
}

static void join_row_range(int64_t begin, int64_t end, void *context) {
  const joining *j = context;
  const joined_rows *r = j->r;
  float *to = laci_net_tensor_data(j->net, j->step->tensors[r->n_parts]);
  for (int64_t row = begin; row < end; row += rows_at_once(r)) {
    const int64_t n = end - row < rows_at_once(r) ? end - row : rows_at_once(r);
    float *y = to + row * r->width;
    for (int part = 0; part < r->n_parts; y += r->widths[part++]) {
      const float *x = laci_net_tensor_data(j->net, j->step->tensors[part]);
      copy_rows(x + row * r->widths[part], n, r->widths[part], r->width, y);
    }
  }
}

static lac_status run_joined_rows(laci_net *net, laci_net_step *step, lac_error *err) {
  const joined_rows *r = step->context;
  joining j = {.r = r, .net = net, .step = step};
  (void)err;
  laci_pool_for(net->pool, r->n_rows, 4 * rows_at_once(r), join_row_range, &j);
  return LAC_OK;
}

/** Returns the number of floats in a row of this value, from the axis of the Concat on. */
static int64_t row_width(const laci_net *net, int value, int64_t axis) {
  const laci_shape *shape = laci_plan_shape(&net->plan, value);
  return laci_shape_count_range(shape, (int)axis, shape->rank);
}

bool laci_can_lower_concat_rows(laci_net *net, const laci_fused *fused, const char **why) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const laci_shape *y = laci_plan_shape(&net->plan, fused->output);
  const int64_t axis = laci_concat_axis(net, node);
  bool is_short = false;
  *why = "no short rows";
  if (net->plan.bf16 || !laci_plan_is_float(&net->plan, fused->output) || y->rank < 2) return false;
  if (axis < 2 || laci_shape_count(y) == 0)
    return false; /* axis 1: channels, which may be stored
                                                             otherwise than row-major */
  for (int part = 0; part < node->n_inputs; part++)
    is_short = is_short || row_width(net, node->inputs[part], axis) <= SHORT_ROW;
  return is_short;
}

void laci_lower_concat_rows(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const laci_shape *y = laci_plan_shape(&net->plan, fused->output);
  const int64_t axis = laci_concat_axis(net, node);
  const size_t n = (size_t)node->n_inputs;
  joined_rows *r = laci_plan_alloc(&net->plan, 1, sizeof *r);
  int *tensors = laci_plan_alloc(&net->plan, n + 1, sizeof *tensors);
  int64_t *widths = laci_plan_alloc(&net->plan, n, sizeof *widths);
  if (net->plan.status) return;
  *r = (joined_rows){.n_parts = node->n_inputs,
                     .n_rows = laci_shape_count_range(y, 0, (int)axis),
                     .width = row_width(net, fused->output, axis),
                     .widths = widths};
  for (int part = 0; part < node->n_inputs; part++) {
    widths[part] = row_width(net, node->inputs[part], axis);
    tensors[part] = laci_net_convert_to_dense(net, laci_net_read_value(net, node->inputs[part]),
                                              LACI_ELEMENT_F32);
  }
  laci_layout *md = laci_net_dense_layout(net, y, LACI_ELEMENT_F32);
  tensors[n] = md ? laci_net_new_result(net, y, LACI_ELEMENT_F32, md) : -1;
  laci_layout_destroy(md);
  laci_net_step *step =
      laci_net_step_add_code(net, node, run_joined_rows, node->n_inputs + 1, tensors);
  if (!step) return;
  step->context = r;
  step->kernel = "rows";
  step->shown = tensors[n];
  laci_net_bind_value(net, fused->output, tensors[n]);
}
