/* SPDX-License-Identifier: Apache-2.0
 * A function that a graph writes as several operators (plan/fuse_function.c), as one step in any
 * layout: zeros stay zeros, so that padding between elements can be included. */
#include <string.h>

#include "cpu/pool.h"
#include "engine/cpu/lower/pointwise.h"
#include "engine/cpu/net_in.h"
#include "engine/cpu/onednn/onednn.h"

enum {
  GRAIN = 1 << 13,  /* number of floats that a thread computes at a time */
  AT_ONCE = 1 << 10 /* number of floats that stay in the first cache */
};

typedef struct function_step {
  laci_pointwise function;
  int64_t n;
} function_step;

typedef struct function_work {
  const function_step *s;
  const float *x;
  float *y;
} function_work;

static void apply_to_range(int64_t begin, int64_t end, void *context) {
  const function_work *w = context;
  for (int64_t at = begin; at < end; at += AT_ONCE) {
    const int64_t n = end - at < AT_ONCE ? end - at : AT_ONCE;
    if (w->y != w->x) memcpy(w->y + at, w->x + at, (size_t)n * sizeof *w->y);
    laci_pointwise_apply_variant()(&w->s->function, w->y + at, n);
  }
}

static lac_status run_function(laci_net *net, laci_net_step *step, lac_error *err) {
  const function_step *s = step->context;
  function_work w = {s, laci_net_tensor_data(net, step->tensors[0]),
                     laci_net_tensor_data(net, step->tensors[1])};
  (void)err;
  laci_pool_for(net->pool, s->n, GRAIN, apply_to_range, &w);
  return LAC_OK;
}

static bool can_lower_function_nodes(laci_net *net, const laci_fused *fused, const char **why) {
  (void)fused;
  *why = "values are bf16";
  return !net->plan.bf16;
}

static const char *name_of_function(laci_pointwise_kind kind) {
  return kind == LACI_POINTWISE_GELU_ERF ? "Gelu"
         : kind == LACI_POINTWISE_SWISH  ? "Swish"
                                         : "HardSwish";
}

static void lower_function_nodes(laci_net *net, const laci_fused *fused) {
  const int x = laci_net_make_whole_tensor(net, laci_net_read_value(net, fused->reads[0]));
  function_step *s = laci_plan_alloc(&net->plan, 1, sizeof *s);
  const int y = laci_net_new_result_like(net, x, true);
  laci_net_step *step = laci_net_step_add_code(net, &net->plan.graph->nodes[fused->node],
                                               run_function, 2, (int[]){x, y});
  if (net->plan.status || !s || !step) return;
  (void)laci_lower_to_pointwise(&fused->posts[0].function, &s->function);
  s->n = (int64_t)(laci_layout_bytes(net->tensors[x].md) / sizeof(float));
  step->what = name_of_function(s->function.kind);
  step->kernel = "own";
  step->context = s;
  step->shown = y;
  laci_net_bind_value(net, fused->output, y);
}

const laci_implementation laci_implementations_function_nodes[] = {
    {"our kernel", LACI_FUSIBLE_FUNCTIONS, can_lower_function_nodes, lower_function_nodes},
    {.name = NULL},
};
