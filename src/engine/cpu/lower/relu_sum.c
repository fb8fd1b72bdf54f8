/* SPDX-License-Identifier: Apache-2.0
 * The gradient of a Relu whose result has two readers, as at the end of a residual block. The sum
 * of the gradients from both and the Relu's own gradient are computed in one pass, since memory
 * traffic is the whole cost of such steps. */
#include "engine/cpu/native/values.h"
#include "kernel/pointwise/relu_sum.h"
#include "cpu/pool.h"
#include "engine/cpu/onednn/onednn.h"

typedef struct relu_step {
  const laci_relu_sum *kernel;
  bool bf16;
  int64_t n;
} relu_step;

typedef struct relu_work {
  const relu_step *s;
  const void *a, *b, *y;
  void *to;
} relu_work;

enum { GRAIN = 1 << 14 }; /* number of elements that a thread computes at a time */

static void sum_gradient_range(int64_t begin, int64_t end, void *context) {
  const relu_work *w = context;
  if (w->s->bf16) {
    w->s->kernel->bf16((const uint16_t *)w->a + begin, (const uint16_t *)w->b + begin,
                       (const uint16_t *)w->y + begin, end - begin, (uint16_t *)w->to + begin);
  } else {
    w->s->kernel->f32((const float *)w->a + begin, (const float *)w->b + begin,
                      (const float *)w->y + begin, end - begin, (float *)w->to + begin);
  }
}

static lac_status run_relu_sum(laci_net *net, laci_net_step *step, lac_error *err) {
  const relu_step *s = step->context;
  relu_work w = {.s = s,
                 .a = laci_net_tensor_data(net, step->tensors[0]),
                 .b = laci_net_tensor_data(net, step->tensors[1]),
                 .y = laci_net_tensor_data(net, step->tensors[2]),
                 .to = laci_net_tensor_data(net, step->tensors[3])};
  (void)err;
  laci_pool_for(net->pool, s->n, GRAIN, sum_gradient_range, &w);
  return LAC_OK;
}

static void add_relu_sum_step(laci_net *net, const laci_fused *fused, const int tensors[4],
                              size_t bytes) {
  relu_step *s = laci_plan_alloc(&net->plan, 1, sizeof *s);
  laci_net_step *step =
      laci_net_step_add_code(net, &net->plan.graph->nodes[fused->node], run_relu_sum, 4, tensors);
  if (!s || !step) return;
  *s = (relu_step){.kernel = laci_relu_sum_variant(), .bf16 = net->plan.bf16};
  s->n = (int64_t)(bytes / (net->plan.bf16 ? 2 : sizeof(float)));
  step->what = "ReluGrad of a sum";
  step->kernel = "own";
  step->context = s;
  step->shown = tensors[3];
  laci_net_bind_value(net, fused->output, tensors[3]);
}

static bool can_lower_native_relu_sum(laci_net *net, const laci_fused *fused, const char **why) {
  *why = "values are not in the layout of images";
  return laci_native_is_in_train_layout(net, fused->reads[2]);
}

/** Lowers the node if all operands have native layouts (of our own kernels). The zeros in y's
 * border make the gradient's border zero, too. */
static void lower_native_relu_sum(laci_net *net, const laci_fused *fused) {
  const int y = laci_net_find_value_tensor(net, fused->reads[2]);
  if (y < 0) return;
  const int a = laci_native_read_in_layout_of(net, fused->reads[0], y);
  const int b = laci_native_read_in_layout_of(net, fused->reads[1], y);
  if (a < 0 || b < 0) return;
  const size_t bytes = net->buffers[net->tensors[y].buffer].bytes;
  const int to = laci_net_new_result_like(net, a, a != b);
  add_relu_sum_step(net, fused, (int[]){a, b, y, to}, bytes);
}

/** Lowers the node with all operands in the layout of y, whatever that is. */
static void lower_relu_sum(laci_net *net, const laci_fused *fused) {
  laci_element dt = laci_net_float_element(net);
  int a = laci_net_read_value(net, fused->reads[0]), b = laci_net_read_value(net, fused->reads[1]);
  int y = laci_net_make_whole_tensor(net, laci_net_read_value(net, fused->reads[2]));
  if (y < 0) return;
  a = laci_net_convert_tensor(net, a, net->tensors[y].md, dt);
  b = laci_net_convert_tensor(net, b, net->tensors[y].md, dt);
  int to = laci_net_new_result_like(net, a, a != b);
  add_relu_sum_step(net, fused, (int[]){a, b, y, to}, laci_layout_bytes(net->tensors[y].md));
}

const laci_implementation laci_implementations_relu_sum[] = {
    {"our kernel, over images", LACI_FUSIBLE_NOTHING, can_lower_native_relu_sum,
     lower_native_relu_sum},
    {"our kernel", LACI_FUSIBLE_NOTHING, NULL, lower_relu_sum},
    {.name = NULL},
};
