/* SPDX-License-Identifier: Apache-2.0
 * QuantizeLinear and DequantizeLinear that are no bytes of one scale (plan/quantize_list.c): the
 * pair in one pass over floats, and each node by itself, whose integers are int64 as all are in a
 * net. Tensors are row-major. */
#include <math.h>

#include "cpu/pool.h"
#include "engine/cpu/net_in.h"
#include "engine/cpu/plan/quantized.h"
#include "graph/op.h"
#include "graph/ops.h"
#include "kernel/pointwise/fake_quantize.h"
#include "tensor/buf.h"

typedef struct list_step list_step;

/** Computes n elements that have one scale. */
typedef void compute_run(const list_step *s, const laci_fake_quantized *q, const void *x, int64_t n,
                         void *y);

struct list_step {
  laci_quantize_list list;
  int64_t n_runs;          /* number of runs of list.inner elements with one scale */
  size_t x_bytes, y_bytes; /* bytes of an element of the operand, and of the result */
  float least;             /* the least integer of the type; the zero point is least - low */
  compute_run *compute;
};

typedef struct list_work {
  const list_step *step;
  const char *x;
  char *y;
} list_work;

static void fake_quantize_elements(const list_step *s, const laci_fake_quantized *q, const void *x,
                                   int64_t n, void *y) {
  (void)s;
  laci_fake_quantize_variant()(q, x, n, y);
}

static void quantize_elements(const list_step *s, const laci_fake_quantized *q, const void *x,
                              int64_t n, void *y) {
  const float *from = x;
  int64_t *to = y;
  const float zero = s->least - q->low;
  for (int64_t i = 0; i < n; i++)
    to[i] = (int64_t)(laci_quantize_clip(rintf(from[i] / q->scale), q->low, q->high) + zero);
}

static void dequantize_elements(const list_step *s, const laci_fake_quantized *q, const void *x,
                                int64_t n, void *y) {
  const int64_t *from = x;
  float *to = y;
  const float zero = s->least - q->low;
  for (int64_t i = 0; i < n; i++) to[i] = ((float)from[i] - zero) * q->scale + 0.0F;
}

static void compute_runs(int64_t begin, int64_t end, void *context) {
  const list_work *w = context;
  const list_step *s = w->step;
  for (int64_t run = begin; run < end; run++) {
    const size_t first = (size_t)(run * s->list.inner);
    s->compute(s, &s->list.each[run % s->list.n], w->x + first * s->x_bytes, s->list.inner,
               w->y + first * s->y_bytes);
  }
}

static lac_status run_step(laci_net *net, laci_net_step *step, lac_error *err) {
  enum { GRAIN = 1 << 14 }; /* number of elements that a thread computes at a time */
  const list_step *s = step->context;
  list_work w = {.step = s,
                 .x = laci_net_tensor_data(net, step->tensors[0]),
                 .y = laci_net_tensor_data(net, step->tensors[1])};
  (void)err;
  laci_pool_for(net->pool, s->n_runs, s->list.inner < GRAIN ? GRAIN / s->list.inner : 1,
                compute_runs, &w);
  return LAC_OK;
}

/* ---- Lowering ---- */

static int new_result(laci_net *net, int value) {
  const laci_shape *shape = laci_plan_shape(&net->plan, value);
  const bool is_float = laci_plan_is_float(&net->plan, value);
  const size_t element = is_float ? sizeof(float) : sizeof(int64_t);
  const int buffer =
      laci_net_buffer_new(net, LACI_PLACE_ARENA, (size_t)laci_shape_count(shape) * element);
  return laci_net_tensor_new(net, shape, is_float ? LACI_ELEMENT_F32 : LACI_ELEMENT_NONE,
                             is_float ? laci_net_dense_layout(net, shape, LACI_ELEMENT_F32) : NULL,
                             buffer);
}

/** Adds the step from value x to the fused node's output. */
static void add_step(laci_net *net, const laci_fused *fused, int x, const list_step *how,
                     const char *what) {
  int from = laci_net_read_value(net, x);
  if (laci_plan_is_float(&net->plan, x))
    from = laci_net_convert_to_dense(net, from, LACI_ELEMENT_F32);
  const int to = new_result(net, fused->output);
  list_step *s = laci_plan_alloc(&net->plan, 1, sizeof *s);
  if (!s || net->plan.status) return;
  *s = *how;
  s->n_runs = laci_shape_count(laci_plan_shape(&net->plan, x)) / s->list.inner;
  s->x_bytes = laci_plan_is_float(&net->plan, x) ? sizeof(float) : sizeof(int64_t);
  s->y_bytes = laci_plan_is_float(&net->plan, fused->output) ? sizeof(float) : sizeof(int64_t);
  laci_net_step *step = laci_net_step_add_code(net, &net->plan.graph->nodes[fused->node], run_step,
                                               2, (int[]){from, to});
  if (!step) return;
  step->what = what;
  step->kernel = "own";
  step->context = s;
  step->shown = to;
  laci_net_bind_value(net, fused->output, to);
}

static void lower_pair(laci_net *net, const laci_fused *fused) {
  add_step(net, fused, fused->reads[0],
           &(list_step){.list = *(const laci_quantize_list *)fused->details,
                        .compute = fake_quantize_elements},
           "QuantizeLinear + DequantizeLinear");
}

/** Returns the value of integers that the node computes or reads. */
static int integer_value_of_node(const laci_node *node) {
  return node->op == &laci_op_quantize_linear ? node->outputs[0] : node->inputs[0];
}

static bool read_unpaired_node(laci_net *net, const laci_fused *fused, list_step *s) {
  laci_cpu_plan *plan = &net->plan;
  const laci_node *node = &plan->graph->nodes[fused->node];
  const int integers = integer_value_of_node(node);
  const int floats = integers == node->inputs[0] ? node->outputs[0] : node->inputs[0];
  const lac_dtype dtype = plan->values[integers].type.dtype;
  const bool known = dtype == LAC_DTYPE_U8 || dtype == LAC_DTYPE_I8 || dtype == LAC_DTYPE_U16 ||
                     dtype == LAC_DTYPE_I16;
  int64_t least, most;
  if (!known || plan->values[floats].type.dtype != LAC_DTYPE_F32) return false;
  if (laci_shape_count(laci_plan_shape(plan, floats)) < 1) return false;
  laci_int_get_range(dtype, &least, &most);
  *s = (list_step){.least = (float)least,
                   .compute = floats == node->inputs[0] ? quantize_elements : dequantize_elements};
  return laci_plan_read_quantize_list(plan, node, dtype, &s->list);
}

static bool can_lower_unpaired_node(laci_net *net, const laci_fused *fused, const char **why) {
  list_step s;
  *why = "other types, or scales that are computed or of blocks";
  return read_unpaired_node(net, fused, &s);
}

static void lower_unpaired_node(laci_net *net, const laci_fused *fused) {
  list_step s;
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  if (read_unpaired_node(net, fused, &s)) add_step(net, fused, node->inputs[0], &s, node->op->name);
}

const laci_implementation laci_implementations_quantize_list[] = {
    {"our kernel", LACI_FUSIBLE_NOTHING, NULL, lower_pair},
    {.name = NULL},
};
const laci_implementation laci_implementations_quantize_node[] = {
    {"our kernel", LACI_FUSIBLE_NOTHING, can_lower_unpaired_node, lower_unpaired_node},
    {.name = NULL},
};
