/* SPDX-License-Identifier: Apache-2.0
 * The sum of two values in HWC16N, the layout of native layers in training, followed by a Relu or
 * nothing: the end of a residual block. The borders of both operands are zeros, so the border of
 * the result is, too. */
#include "graph/ops.h"
#include "kernel/sparse/image_norm.h"
#include "engine/cpu/native/native.h"
#include "engine/cpu/native/layout/layout.h"
#include "engine/cpu/native/layout/tensors.h"
#include "cpu/pool.h"

typedef struct sum_step {
  const laci_image_norm *kernel;
  bool relu;
  int64_t n;
} sum_step;

typedef struct sum_work {
  const sum_step *s;
  const float *a, *b;
  float *to;
} sum_work;

enum { GRAIN = 1 << 14 }; /* number of floats, or of bf16 pairs, that a thread adds at a time */

static void add_elements_in_range(int64_t begin, int64_t end, void *context) {
  const sum_work *w = context;
  w->s->kernel->add(w->a + begin, w->b + begin, w->s->relu, end - begin, w->to + begin);
}

static lac_status run_sum(laci_net *net, laci_net_step *step, lac_error *err) {
  const sum_step *s = step->context;
  sum_work w = {.s = s,
                .a = laci_net_tensor_data(net, step->tensors[0]),
                .b = laci_net_tensor_data(net, step->tensors[1]),
                .to = laci_net_tensor_data(net, step->tensors[2])};
  (void)err;
  laci_pool_for(net->pool, s->n, GRAIN, add_elements_in_range, &w);
  return LAC_OK;
}

bool laci_can_lower_image_sum(laci_net *net, const laci_fused *fused, const char **why) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  *why = "values are not in the layout of images";
  if (node->op != &laci_op_add || !laci_native_may_be_hwc16n(net, fused->output)) return false;
  for (int at = 0; at < 2; at++) {
    if (laci_plan_is_constant(&net->plan, node->inputs[at]) ||
        !laci_shape_equal(laci_plan_shape(&net->plan, node->inputs[at]),
                          laci_plan_shape(&net->plan, fused->output))) {
      return false;
    }
  }
  const laci_function *f = fused->n_posts > 0 ? &fused->posts[0].function : NULL;
  if (fused->n_posts > 1 || (f && (f->kind != LACI_FUNCTION_RELU || f->alpha != 0))) return false;
  return laci_native_has_assigned_layout(net, fused->output) ||
         (laci_native_is_hwc16n(net, node->inputs[0]) &&
          laci_native_is_hwc16n(net, node->inputs[1]));
}

void laci_lower_image_sum(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const laci_native_layout images = laci_native_hwc16n_layout(net, fused->output);
  const int a = laci_native_read_in_layout(net, node->inputs[0], &images);
  const int b = laci_native_read_in_layout(net, node->inputs[1], &images);
  sum_step *s = laci_plan_alloc(&net->plan, 1, sizeof *s);
  if (!s || a < 0 || b < 0) return;
  const int to = laci_net_new_result_like(net, a, a != b);
  laci_net_step *step = laci_net_step_add_code(net, node, run_sum, 3, (int[]){a, b, to});
  if (!step) return;
  *s = (sum_step){.kernel = laci_native_hwc16n_kernels(net),
                  .relu = fused->n_posts > 0,
                  .n = (int64_t)(net->buffers[net->tensors[a].buffer].bytes / sizeof(float))};
  step->what = laci_net_describe_fused(net, fused);
  step->kernel = "over images";
  step->context = s;
  step->shown = to;
  laci_net_bind_value(net, fused->output, to);
}
