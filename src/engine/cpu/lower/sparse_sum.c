/* SPDX-License-Identifier: Apache-2.0
 * The sum of two values of bytes between layers of int8, and a Relu or Clip behind it: the end of a
 * residual block of a quantised network. All three lie alike. */
#include "engine/cpu/lower/pictures.h"
#include "engine/cpu/lower/sparse.h"
#include "graph/ops.h"
#include "kernel/sparse/bytes.h"

typedef struct sum_step {
  laci_bytes_sum sum;
  int64_t n;
} sum_step;

typedef struct sum_work {
  const sum_step *s;
  const float *a, *b; /* places */
  float *y;
} sum_work;

enum { GRAIN = 1 << 14 }; /* places */

static void add_some(int64_t begin, int64_t end, void *context) {
  const sum_work *w = context;
  laci_bytes_now()->add(&w->s->sum, w->a + begin, w->b + begin, end - begin, w->y + begin);
}

static lac_status run_sum(laci_net *net, laci_net_step *step, lac_error *err) {
  const sum_step *s = step->context;
  sum_work w = {.s = s,
                .a = laci_net_data(net, step->tensors[0]),
                .b = laci_net_data(net, step->tensors[1]),
                .y = laci_net_data(net, step->tensors[2])};
  (void)err;
  laci_pool_for(net->pool, s->n, GRAIN, add_some, &w);
  return LAC_OK;
}

bool laci_sparse_find_sum(laci_net *net, const laci_fused *fused, laci_sparse_layer *layer) {
  const laci_cpu_plan *plan = &net->plan;
  const laci_node *node = &plan->graph->nodes[fused->node];
  const laci_fused *behind = laci_sparse_quantised_behind(plan, fused->output);
  if (node->op != &laci_op_add || !behind || fused->scale || fused->shift) return false;
  const laci_shape *shape = laci_plan_shape(plan, fused->output);
  const laci_fake_quantised *in[2];
  if (shape->rank != 4) return false;
  for (int at = 0; at < 2; at++) {
    in[at] = laci_sparse_bytes_of(plan, node->inputs[at]);
    if (!in[at] || !laci_shape_equal(laci_plan_shape(plan, node->inputs[at]), shape)) return false;
  }
  *layer = (laci_sparse_layer){.fused = fused,
                               .kind = LACI_SPARSE_SUM,
                               .n_images = shape->dims[0],
                               .input = node->inputs[0],
                               .output = behind->output,
                               .kept = 1};
  if (!laci_sparse_take_posts(net, layer) || layer->residual >= 0 || layer->n_functions > 0)
    return false;
  layer->residual = node->inputs[1];
  layer->window =
      laci_sparse_window_of_pixels(shape->dims[1], shape->dims[1], shape->dims[2], shape->dims[3]);
  layer->window.values = LACI_SPARSE_S8;
  layer->bytes = laci_plan_new(&net->plan, 1, sizeof *layer->bytes);
  if (!layer->bytes) return false;
  *layer->bytes =
      (laci_sparse_bytes){.x = in[0], .residual = in[1], .y = behind->details, .n_scales = 0};
  laci_sparse_bound_bytes(layer);
  return true;
}

void laci_sparse_lower_sum(laci_net *net, const laci_sparse_layer *layer) {
  const laci_sparse_bytes *bytes = layer->bytes;
  const laci_sparse_tensors t = laci_sparse_take_tensors(net, layer);
  sum_step *s = laci_plan_new(&net->plan, 1, sizeof *s);
  laci_net_step *step = laci_net_step_code(net, &net->plan.graph->nodes[layer->fused->node],
                                           run_sum, 3, (int[]){t.x, t.residual, t.y});
  if (!s || !step || t.y < 0) return;
  *s = (sum_step){{.a_scale = bytes->x->scale / bytes->y->scale,
                   .b_scale = bytes->residual->scale / bytes->y->scale,
                   .a_zero = -bytes->x->low,
                   .b_zero = -bytes->residual->low,
                   .zero = -bytes->y->low,
                   .low = bytes->quantised.low,
                   .high = bytes->quantised.high},
                  (int64_t)(net->buffers[net->tensors[t.y].buffer].bytes / sizeof(float))};
  step->what = laci_net_describe(net, layer->fused);
  step->kernel = "int8 sum";
  step->context = s;
  step->shown = t.y;
  laci_net_bind(net, layer->fused->output, t.y);
}
