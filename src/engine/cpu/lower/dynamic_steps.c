/* SPDX-License-Identifier: Apache-2.0
 * DynamicSteps (graph/float_form.h): finds the least and the largest number, then writes the
 * integers. Extremes do not depend on the order, so neither threads nor the instruction set change
 * any bit. */
#include "kernel/pointwise/dynamic_steps.h"

#include "cpu/pool.h"
#include "engine/cpu/net_in.h"

enum {
  GRAIN = 1 << 14, /* minimum number of floats in a part */
  MOST_PARTS = 64  /* maximum number of parts */
};

typedef struct steps_work {
  const float *x;
  float *y;
  int64_t n, part; /* number of floats in all (n), and in a part */
  laci_extremes extremes[MOST_PARTS];
  laci_dynamic_scale scale;
} steps_work;

static int64_t end_of_part(const steps_work *w, int64_t part) {
  const int64_t end = (part + 1) * w->part;
  return end < w->n ? end : w->n;
}

static void find_extremes_of_parts(int64_t begin, int64_t end, void *context) {
  steps_work *w = context;
  for (int64_t part = begin; part < end; part++) {
    const int64_t first = part * w->part;
    w->extremes[part] = laci_find_extremes_variant()(w->x + first, end_of_part(w, part) - first);
  }
}

static void write_integers_of_parts(int64_t begin, int64_t end, void *context) {
  const steps_work *w = context;
  for (int64_t part = begin; part < end; part++) {
    const int64_t first = part * w->part;
    laci_write_steps_variant()(w->scale, w->x + first, end_of_part(w, part) - first, w->y + first);
  }
}

static lac_status run_dynamic_steps(laci_net *net, laci_net_step *step, lac_error *err) {
  const int64_t n = *(const int64_t *)step->context;
  const int64_t wanted = (n + GRAIN - 1) / GRAIN;
  const int64_t n_parts = wanted < MOST_PARTS ? wanted : MOST_PARTS;
  steps_work w = {.x = laci_net_tensor_data(net, step->tensors[0]),
                  .y = laci_net_tensor_data(net, step->tensors[1]),
                  .n = n,
                  .part = n_parts ? (n + n_parts - 1) / n_parts : 1};
  laci_extremes all = {0, 0};
  (void)err;
  laci_pool_for(net->pool, n_parts, 1, find_extremes_of_parts, &w);
  for (int64_t part = 0; part < n_parts; part++) all = laci_extremes_join(all, w.extremes[part]);
  w.scale = laci_dynamic_scale_from_extremes(all);
  laci_pool_for(net->pool, n_parts, 1, write_integers_of_parts, &w);
  *(float *)laci_net_tensor_data(net, step->tensors[2]) = w.scale.scale;
  return LAC_OK;
}

static bool can_lower_dynamic_steps(laci_net *net, const laci_fused *fused, const char **why) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  *why = "values are bf16";
  return !net->plan.bf16 && node->n_outputs == 2 && node->outputs[0] >= 0 && node->outputs[1] >= 0;
}

static void lower_dynamic_steps(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const laci_shape *shape = laci_plan_shape(&net->plan, node->inputs[0]);
  const int x =
      laci_net_convert_to_dense(net, laci_net_read_value(net, node->inputs[0]), LACI_ELEMENT_F32);
  const int y = laci_net_new_result_like(net, x, true);
  const laci_shape *one = laci_plan_shape(&net->plan, node->outputs[1]);
  const int scale = laci_net_tensor_new(net, one, LACI_ELEMENT_F32,
                                        laci_net_dense_layout(net, one, LACI_ELEMENT_F32),
                                        laci_net_buffer_new(net, LACI_PLACE_ARENA, sizeof(float)));
  int64_t *n = laci_plan_alloc(&net->plan, 1, sizeof *n);
  if (net->plan.status) return;
  *n = laci_shape_count(shape);
  laci_net_step *step =
      laci_net_step_add_code(net, node, run_dynamic_steps, 3, (int[]){x, y, scale});
  if (!step) return;
  step->context = n;
  step->kernel = "own";
  step->shown = y;
  laci_net_bind_value(net, node->outputs[0], y);
  laci_net_bind_value(net, node->outputs[1], scale);
}

const laci_implementation laci_implementations_dynamic_steps[] = {
    {"our kernel", LACI_FUSIBLE_NOTHING, can_lower_dynamic_steps, lower_dynamic_steps},
    {.name = NULL},
};
