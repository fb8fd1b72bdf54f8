/* SPDX-License-Identifier: Apache-2.0
 * The step of float_pass.h. */
#include "engine/cpu/lower/float_pass.h"

#include "cpu/pool.h"
#include "engine/cpu/native/values.h"
#include "engine/cpu/onednn/onednn.h"

typedef struct pass_step {
  laci_float_pass pass;
  int64_t n;
} pass_step;

typedef struct pass_work {
  const laci_float_pass *pass;
  const float *x;
  float *y;
} pass_work;

static void compute_element_range(int64_t begin, int64_t end, void *context) {
  const pass_work *w = context;
  w->pass->compute(w->pass->details, w->x + begin, end - begin, w->y + begin);
}

static lac_status run_float_pass(laci_net *net, laci_net_step *step, lac_error *err) {
  const pass_step *s = step->context;
  pass_work w = {&s->pass, laci_net_tensor_data(net, step->tensors[0]),
                 laci_net_tensor_data(net, step->tensors[1])};
  (void)err;
  laci_pool_for(net->pool, s->n, s->pass.grain, compute_element_range, &w);
  return LAC_OK;
}

bool laci_can_lower_float_pass(laci_net *net, const laci_fused *fused, const char **why) {
  (void)fused;
  *why = "values are bf16";
  return !net->plan.bf16;
}

int64_t laci_net_count_floats(const laci_net *net, int tensor) {
  const laci_net_tensor *t = &net->tensors[tensor];
  if (!t->native) return (int64_t)(laci_layout_bytes(t->md) / sizeof(float));
  return laci_native_count_floats(net, tensor);
}

void laci_net_add_float_pass(laci_net *net, const laci_fused *fused, int x,
                             const laci_float_pass *pass) {
  const int y = laci_net_new_result_like(net, x, true);
  pass_step *s = laci_plan_alloc(&net->plan, 1, sizeof *s);
  laci_net_step *step = laci_net_step_add_code(net, &net->plan.graph->nodes[fused->node],
                                               run_float_pass, 2, (int[]){x, y});
  if (x < 0 || !s || !step) return;
  *s = (pass_step){*pass, laci_net_count_floats(net, x)};
  step->what = pass->what;
  step->kernel = "own";
  step->context = s;
  step->shown = y;
  laci_net_bind_value(net, fused->output, y);
}
