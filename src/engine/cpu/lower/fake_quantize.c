/* SPDX-License-Identifier: Apache-2.0
 * QuantizeLinear and DequantizeLinear together, in one pass over memory in any layout: zeros stay
 * zeros, so that padding between pixels can be included. */
#include "engine/cpu/native/native.h"
#include "engine/cpu/native/values.h"
#include "kernel/pointwise/fake_quantize.h"
#include "cpu/pool.h"
#include "engine/cpu/onednn/onednn.h"

typedef struct quantize_step {
  const laci_fake_quantized *q;
  int64_t n;
} quantize_step;

typedef struct quantize_work {
  const quantize_step *s;
  const float *x;
  float *y;
} quantize_work;

enum { GRAIN = 1 << 14 }; /* number of floats that a thread computes at a time */

static void quantize_range(int64_t begin, int64_t end, void *context) {
  const quantize_work *w = context;
  laci_fake_quantize_variant()(w->s->q, w->x + begin, end - begin, w->y + begin);
}

static lac_status run_quantize(laci_net *net, laci_net_step *step, lac_error *err) {
  const quantize_step *s = step->context;
  quantize_work w = {s, laci_net_tensor_data(net, step->tensors[0]),
                     laci_net_tensor_data(net, step->tensors[1])};
  (void)err;
  laci_pool_for(net->pool, s->n, GRAIN, quantize_range, &w);
  return LAC_OK;
}

static bool can_lower_quantize(laci_net *net, const laci_fused *fused, const char **why) {
  (void)fused;
  *why = "values are bf16";
  return !net->plan.bf16;
}

/** Returns the number of floats of a tensor, padding included. */
static int64_t count_floats(const laci_net *net, int tensor) {
  const laci_net_tensor *t = &net->tensors[tensor];
  if (!t->native) return (int64_t)(laci_layout_bytes(t->md) / sizeof(float));
  return laci_native_count_floats(net, tensor);
}

/** Returns a tensor of the result's int8 values for the int8 layers that read it; -1: none does. */
static int read_int8_result(laci_net *net, const laci_fused *fused) {
  return laci_native_read_as_int8(net, fused->reads[0], fused->output, fused->details);
}

/** Is a table of floats the only reader of the value? It gives the same results for numbers before
 * they are quantized (kernel/pointwise/table.h). */
static bool is_read_by_table_alone(const laci_net *net, int value) {
  const laci_cpu_plan *plan = &net->plan;
  int readers[2];
  if (laci_plan_count_uses(plan, value) != 1 || laci_plan_find_readers(plan, value, readers) < 1)
    return false;
  const laci_fused *fused = &plan->fused[laci_plan_find_computing_node(plan, readers[0])];
  return fused->pattern == LACI_PATTERN_TABLE && fused->reads[0] == value &&
         !laci_native_is_chosen_layer(net, fused);
}

static void lower_quantize(laci_net *net, const laci_fused *fused) {
  int x = laci_net_value_tensor(net, fused->reads[0]);
  /* the layer before it has written the int8 values already */
  const bool are_there = laci_native_is_int8_tensor(net, x, fused->details);
  if (are_there || laci_native_has_int8_reader(net, fused->output)) {
    laci_net_bind_value(net, fused->output, are_there ? x : read_int8_result(net, fused));
    return;
  }
  if (is_read_by_table_alone(net, fused->output)) {
    laci_net_bind_value(net, fused->output, x);
    return;
  }
  x = laci_native_read_as_floats(net, x);
  if (x >= 0 && !net->tensors[x].native) {
    x = laci_net_make_whole_tensor(
        net, laci_net_convert_tensor(net, x, net->tensors[x].md, LACI_ELEMENT_F32));
  }
  const int y = laci_net_new_result_like(net, x, true);
  quantize_step *s = laci_plan_alloc(&net->plan, 1, sizeof *s);
  laci_net_step *step = laci_net_step_add_code(net, &net->plan.graph->nodes[fused->node],
                                               run_quantize, 2, (int[]){x, y});
  if (x < 0 || !s || !step) return;
  *s = (quantize_step){fused->details, count_floats(net, x)};
  step->what = "QuantizeLinear + DequantizeLinear";
  step->kernel = "own";
  step->context = s;
  step->shown = y;
  laci_net_bind_value(net, fused->output, y);
}

/** Binds the result of a DequantizeLinear to the result of another one that reads the same
 * bytes. */
static void lower_repeated_dequantize(laci_net *net, const laci_fused *fused) {
  laci_net_bind_value(net, fused->output, laci_net_value_tensor(net, fused->reads[0]));
}

const laci_implementation laci_implementations_duplicate[] = {
    {"nothing", LACI_FUSIBLE_NOTHING, NULL, lower_repeated_dequantize},
    {.name = NULL},
};
const laci_implementation laci_implementations_quantize[] = {
    {"our kernel", LACI_FUSIBLE_NOTHING, can_lower_quantize, lower_quantize},
    {.name = NULL},
};
