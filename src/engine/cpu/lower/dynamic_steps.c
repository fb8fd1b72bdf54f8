/* SPDX-License-Identifier: Apache-2.0
 * DynamicSteps (graph/float_form.h): finds the least and the largest number, then writes the
 * integers, as floats, or as bytes for products of integers. Extremes do not depend on the order,
 * so neither threads nor the instruction set change any bit. */
#include <string.h>

#include "base/divide.h"
#include "cpu/pool.h"
#include "engine/cpu/lower/integer_product.h"

enum {
  GRAIN = 1 << 14, /* minimum number of floats in a part, a range that one thread reads at a time */
  MOST_PARTS = 64  /* maximum number of parts */
};

/* ---- Bytes ---- */

static size_t round_up(size_t bytes) {
  return (bytes + LACI_BYTE_LINE - 1) / LACI_BYTE_LINE * LACI_BYTE_LINE;
}

size_t laci_dynamic_bytes_size(int64_t rows, int64_t depth) {
  return round_up(sizeof(laci_dynamic_scale)) + round_up((size_t)rows * sizeof(int32_t)) +
         (size_t)(rows * laci_byte_row_stride(depth));
}

laci_dynamic_bytes laci_dynamic_bytes_at(void *memory, int64_t rows, int64_t depth) {
  char *sums = (char *)memory + round_up(sizeof(laci_dynamic_scale));
  return (laci_dynamic_bytes){.scale = memory,
                              .sums = (int32_t *)(void *)sums,
                              .x = (uint8_t *)sums + round_up((size_t)rows * sizeof(int32_t)),
                              .stride = laci_byte_row_stride(depth)};
}

int laci_net_find_dynamic_bytes(laci_net *net, int value) {
  for (int at = laci_net_find_value_tensor(net, value); at >= 0; at = net->tensors[at].next) {
    if (net->tensors[at].dt == LACI_ELEMENT_BYTE) return at;
  }
  return -1;
}

/* ---- Running ---- */

typedef struct steps_step {
  int64_t n, rows, depth;
  bool floats, bytes; /* which results are written: the integers as floats, as bytes, or both */
} steps_step;

typedef struct steps_work {
  const steps_step *s;
  const float *x;
  float *y;
  laci_dynamic_bytes bytes;
  int64_t part; /* number of floats in a part */
  laci_extremes extremes[MOST_PARTS];
  laci_dynamic_scale scale;
} steps_work;

static int64_t end_of_element_range(const steps_work *w, int64_t part) {
  const int64_t end = (part + 1) * w->part;
  return end < w->s->n ? end : w->s->n;
}

static void find_extremes_of_ranges(int64_t begin, int64_t end, void *context) {
  steps_work *w = context;
  for (int64_t part = begin; part < end; part++) {
    const int64_t first = part * w->part;
    w->extremes[part] =
        laci_find_extremes_variant()(w->x + first, end_of_element_range(w, part) - first);
  }
}

static void quantize_ranges_to_floats(int64_t begin, int64_t end, void *context) {
  const steps_work *w = context;
  for (int64_t part = begin; part < end; part++) {
    const int64_t first = part * w->part;
    laci_quantize_dynamic_floats_variant()(w->scale, w->x + first,
                                           end_of_element_range(w, part) - first, w->y + first);
  }
}

static void quantize_rows_to_bytes(int64_t begin, int64_t end, void *context) {
  const steps_work *w = context;
  const int64_t depth = w->s->depth, stride = w->bytes.stride;
  for (int64_t row = begin; row < end; row++) {
    uint8_t *to = w->bytes.x + row * stride;
    w->bytes.sums[row] =
        laci_quantize_dynamic_bytes_variant()(w->scale, w->x + row * depth, depth, to);
    memset(to + depth, 0, (size_t)(stride - depth));
  }
}

static lac_status run_dynamic_steps(laci_net *net, laci_net_step *step, lac_error *err) {
  const steps_step *s = step->context;
  const int64_t wanted = laci_ceil_div(s->n, GRAIN);
  const int64_t n_parts = wanted < MOST_PARTS ? wanted : MOST_PARTS;
  steps_work w = {.s = s,
                  .x = laci_net_tensor_data(net, step->tensors[0]),
                  .part = n_parts ? laci_ceil_div(s->n, n_parts) : 1};
  laci_extremes all = {0, 0};
  (void)err;
  laci_pool_for(net->pool, n_parts, 1, find_extremes_of_ranges, &w);
  for (int64_t part = 0; part < n_parts; part++) all = laci_extremes_join(all, w.extremes[part]);
  w.scale = laci_dynamic_scale_from_extremes(all);
  *(float *)laci_net_tensor_data(net, step->tensors[1]) = w.scale.scale;
  if (s->bytes) {
    w.bytes = laci_dynamic_bytes_at(laci_net_tensor_data(net, step->tensors[2]), s->rows, s->depth);
    *w.bytes.scale = w.scale;
    laci_pool_for(net->pool, s->rows, laci_ceil_div(GRAIN, s->depth), quantize_rows_to_bytes, &w);
  }
  if (s->floats) { /* written last, since the floats may overwrite x */
    w.y = laci_net_tensor_data(net, step->tensors[3]);
    laci_pool_for(net->pool, n_parts, 1, quantize_ranges_to_floats, &w);
  }
  return LAC_OK;
}

/* ---- Lowering ---- */

static bool can_lower_dynamic_steps(laci_net *net, const laci_fused *fused, const char **why) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  *why = "values are bf16";
  return !net->plan.bf16 && node->n_outputs == 2 && node->outputs[0] >= 0 && node->outputs[1] >= 0;
}

/** Returns how many products of integers read the value as bytes. */
static int count_byte_readers(const laci_cpu_plan *plan, int value) {
  const laci_value *v = &plan->graph->values[value];
  int n = 0;
  for (int at = 0; at < v->n_readers; at++) {
    const int node = v->readers[at];
    n += plan->computed[node] && plan->fused[laci_plan_find_computing_node(plan, node)].pattern ==
                                     LACI_PATTERN_INTEGER_PRODUCT;
  }
  return n;
}

static steps_step describe_dynamic_steps(const laci_net *net, const laci_node *node) {
  const laci_shape *shape = laci_plan_shape(&net->plan, node->inputs[0]);
  const int n_readers = count_byte_readers(&net->plan, node->outputs[0]);
  steps_step s = {.n = laci_shape_count(shape), .bytes = n_readers > 0};
  s.floats = laci_plan_count_uses(&net->plan, node->outputs[0]) > n_readers || !s.bytes;
  s.depth = s.bytes ? shape->dims[shape->rank - 1] : 1;
  s.rows = s.n / s.depth;
  return s;
}

static int create_bytes_tensor(laci_net *net, const laci_shape *shape, const steps_step *s) {
  const size_t size = laci_dynamic_bytes_size(s->rows, s->depth);
  return laci_net_tensor_new(net, shape, LACI_ELEMENT_BYTE, NULL,
                             laci_net_buffer_new(net, LACI_PLACE_ARENA, size));
}

static void lower_dynamic_steps(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const laci_shape *one = laci_plan_shape(&net->plan, node->outputs[1]);
  const int x =
      laci_net_convert_to_dense(net, laci_net_read_value(net, node->inputs[0]), LACI_ELEMENT_F32);
  const int scale = laci_net_tensor_new(net, one, LACI_ELEMENT_F32,
                                        laci_net_dense_layout(net, one, LACI_ELEMENT_F32),
                                        laci_net_buffer_new(net, LACI_PLACE_ARENA, sizeof(float)));
  steps_step *s = laci_plan_alloc(&net->plan, 1, sizeof *s);
  if (!s) return;
  *s = describe_dynamic_steps(net, node);
  const laci_shape *shape = laci_plan_shape(&net->plan, node->inputs[0]);
  const int bytes = s->bytes ? create_bytes_tensor(net, shape, s) : -1;
  const int floats = s->floats ? laci_net_new_result_like(net, x, true) : -1;
  laci_net_step *step =
      laci_net_step_add_code(net, node, run_dynamic_steps, 4, (int[]){x, scale, bytes, floats});
  if (net->plan.status || !step) return;
  if (s->bytes && s->floats) laci_net_set_content(net, bytes, net->tensors[floats].content);
  step->context = s;
  step->kernel = "own";
  step->shown = s->floats ? floats : bytes;
  laci_net_bind_value(net, node->outputs[0], step->shown);
  laci_net_bind_value(net, node->outputs[1], scale);
}

const laci_implementation laci_implementations_dynamic_steps[] = {
    {"our kernel", LACI_FUSIBLE_NOTHING, can_lower_dynamic_steps, lower_dynamic_steps},
    {.name = NULL},
};
