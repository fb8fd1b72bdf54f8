/* SPDX-License-Identifier: Apache-2.0
 * Relus whose result two nodes read, as at the end of a residual block: the sum of what both give
 * back and the Relu's own gradient in one pass over memory, which is all that such steps cost. */
#include "engine/cpu/net_in.h"
#include "kernel/pointwise/relu_sum.h"

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

enum { GRAIN = 1 << 14 }; /* elements */

static void sum_some(int64_t begin, int64_t end, void *context) {
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
                 .a = laci_net_data(net, step->tensors[0]),
                 .b = laci_net_data(net, step->tensors[1]),
                 .y = laci_net_data(net, step->tensors[2]),
                 .to = laci_net_data(net, step->tensors[3])};
  (void)err;
  laci_pool_for(net->pool, s->n, GRAIN, sum_some, &w);
  return LAC_OK;
}

/** All in the layout of y, whatever that is. */
static void build_relu_sum(laci_net *net, const laci_net_layer *layer) {
  dnnl_data_type_t dt = laci_net_dt(net);
  int a = laci_net_read(net, layer->reads[0]), b = laci_net_read(net, layer->reads[1]);
  int y = laci_net_whole(net, laci_net_read(net, layer->reads[2]));
  relu_step *s = laci_net_new(net, 1, sizeof *s);
  if (!s || y < 0) return;
  a = laci_net_as(net, a, net->tensors[y].md, dt);
  b = laci_net_as(net, b, net->tensors[y].md, dt);
  int to = laci_net_result_like(net, a, a != b);
  laci_net_step *step = laci_net_step_code(net, &net->graph->nodes[layer->node], run_relu_sum, 4,
                                           (int[]){a, b, y, to});
  if (!step) return;
  *s = (relu_step){.kernel = laci_relu_sum_now(), .bf16 = net->bf16};
  s->n = (int64_t)(dnnl_memory_desc_get_size(net->tensors[y].md) / (net->bf16 ? 2 : sizeof(float)));
  step->what = "ReluGrad of a sum";
  step->kernel = "own";
  step->context = s;
  step->shown = to;
  laci_net_bind(net, layer->output, to);
}

/** Is y the Relu of a batch norm? Its gradient may undo the Relu itself (grad_norm.c). */
static bool behind_norm(const laci_net *net, int y) {
  const laci_graph *graph = net->graph;
  int relu = graph->values[y].producer;
  if (relu < 0 || !laci_node_is(&graph->nodes[relu], "Relu")) return true;
  int before = graph->values[graph->nodes[relu].inputs[0]].producer;
  const laci_node *node = before < 0 ? NULL : &graph->nodes[before];
  return node && laci_node_is_ours(node, "BatchNormTrain");
}

static bool same_floats(const laci_net *net, int value, int like) {
  return laci_net_is_float(net, value) && !laci_net_is_constant(net, value) &&
         laci_shape_equal(laci_net_shape(net, value), laci_net_shape(net, like));
}

bool laci_net_find_relu_sum(laci_net *net, int relu_grad) {
  const laci_node *node = &net->graph->nodes[relu_grad];
  if (!laci_node_is_ours(node, "ReluGrad")) return false;
  int sum = laci_net_maker(net, node->inputs[0]);
  if (sum < 0 || !laci_node_is(&net->graph->nodes[sum], "Add")) return false;
  if (laci_net_only_reader(net, node->inputs[0]) != relu_grad) return false;
  const laci_node *add = &net->graph->nodes[sum];
  const int reads[] = {add->inputs[0], add->inputs[1], node->inputs[1]};
  for (int at = 0; at < 3; at++) {
    if (!same_floats(net, reads[at], node->outputs[0])) return false;
  }
  if (laci_net_shape(net, reads[2])->rank == 0 || behind_norm(net, reads[2])) return false;
  laci_net_layer *layer = &net->layers[relu_grad];
  laci_net_absorb(net, relu_grad, &sum, 1);
  layer->build = build_relu_sum;
  for (int at = 0; at < 3; at++) layer->reads[layer->n_reads++] = reads[at];
  return true;
}
