/* SPDX-License-Identifier: Apache-2.0
 * Attention (plan/fuse_attention.c) as one step, which calls kernel/attention.
 *
 * Operands are read as they are stored: heads that Reshape, Transpose and Slice take from one
 * product cost nothing. A following Transpose only changes where rows are written. */
#include <stdatomic.h>
#include <string.h>

#include "engine/cpu/net_in.h"
#include "kernel/attention/attention.h"
#include "cpu/pool.h"
#include "engine/cpu/onednn/onednn.h"

/* ---- Running ---- */

/** A tensor that the attention step reads or writes: offset of its first element, and stride along
 * each axis. */
typedef struct operand {
  int tensor;
  int64_t offset, strides[LACI_MAX_RANK]; /* in elements */
} operand;

typedef struct attend_step {
  laci_attention a;
  laci_attend *attend;
  int n_outer; /* number of axes before the last two; those two are the axes of the matrices */
  int64_t sizes[LACI_MAX_RANK], n_heads, n_parts;
  operand q, k, v, mask, y; /* operands of y = softmax(q k' + mask) v; mask.tensor -1: no mask */
  int scratch;
  size_t scratch_bytes;      /* bytes of scratch memory for one of the n_parts parts of the work */
  laci_checked_value result; /* the result, reported as suspect if a mask makes a row NaN */
} attend_step;

typedef struct work {
  const laci_net *net;
  const attend_step *s;
  atomic_bool is_nan;
} work;

static char *head_address(const work *w, const operand *o, int64_t head, size_t element) {
  int64_t at = o->offset;
  if (o->tensor < 0) return NULL;
  for (int axis = w->s->n_outer - 1; axis >= 0; axis--) {
    at += head % w->s->sizes[axis] * o->strides[axis];
    head /= w->s->sizes[axis];
  }
  return (char *)laci_net_tensor_data(w->net, o->tensor) + at * (int64_t)element;
}

static void compute_head_range(int64_t begin, int64_t end, void *context) {
  work *w = context;
  const attend_step *s = w->s;
  size_t element = s->a.bf16 ? sizeof(uint16_t) : sizeof(float);
  for (int64_t part = begin; part < end; part++) {
    void *scratch =
        (char *)laci_net_tensor_data(w->net, s->scratch) + (size_t)part * s->scratch_bytes;
    int64_t last = (part + 1) * s->n_heads / s->n_parts;
    for (int64_t h = part * s->n_heads / s->n_parts; h < last; h++) {
      const laci_attention_head head = {
          .q = head_address(w, &s->q, h, element),
          .k = head_address(w, &s->k, h, element),
          .v = head_address(w, &s->v, h, element),
          .mask = (const float *)(const void *)head_address(w, &s->mask, h, sizeof(float)),
          .y = head_address(w, &s->y, h, element),
          .scratch = scratch};
      if (!s->attend(&s->a, &head)) atomic_store_explicit(&w->is_nan, true, memory_order_relaxed);
    }
  }
}

static lac_status run_attention(laci_net *net, laci_net_step *step, lac_error *err) {
  const attend_step *s = step->context;
  work w = {.net = net, .s = s};
  (void)err;
  laci_pool_for(net->pool, s->n_parts, 1, compute_head_range, &w);
  if (net->plan.reports_nan && atomic_load_explicit(&w.is_nan, memory_order_relaxed)) {
    net->suspect = &s->result;
  }
  return LAC_OK;
}

/* ---- Building ---- */

/** Returns the value as an operand of the net's element type whose axis `along` has stride 1; it is
 * copied if need be. */
static operand read_operand_with_contiguous_axis(laci_net *net, int value, int along) {
  operand o = {.tensor = laci_net_read_value(net, value)};
  laci_element dt = laci_net_float_element(net);
  if (o.tensor < 0) return o;
  const laci_shape shape = net->tensors[o.tensor].shape;
  bool fits = net->tensors[o.tensor].dt == dt &&
              laci_layout_get_strides(net->tensors[o.tensor].md, shape.rank, o.strides, &o.offset);
  if (fits && (o.strides[along] == 1 || shape.dims[along] == 1)) return o;
  int64_t strides[LACI_MOST_AXES];
  int64_t stride = shape.dims[along];
  laci_layout *md = NULL;
  for (int axis = shape.rank - 1; axis >= 0; axis--) {
    strides[axis] = axis == along ? 1 : stride;
    if (axis != along) stride *= shape.dims[axis];
  }
  if (!laci_layout_create_strided(&md, shape.rank, shape.dims, dt, strides))
    laci_plan_fail_no_memory(&net->plan);
  o.tensor = laci_net_convert_tensor(net, o.tensor, md, dt);
  laci_layout_destroy(md);
  o.offset = 0;
  memcpy(o.strides, strides, (size_t)shape.rank * sizeof *strides);
  return o;
}

/** Returns the mask as an operand with strides along the axes of the scores; the stride is 0 where
 * the mask is broadcast. */
static operand read_mask_operand(laci_net *net, int value, int rank) {
  operand o = {.tensor = -1};
  if (value < 0) return o;
  const laci_shape shape = *laci_plan_shape(&net->plan, value);
  o.tensor = laci_net_convert_to_dense(net, laci_net_read_value(net, value), LACI_ELEMENT_F32);
  int64_t stride = 1;
  for (int axis = shape.rank - 1; axis >= 0; axis--) {
    o.strides[rank - shape.rank + axis] = shape.dims[axis] == 1 ? 0 : stride;
    stride *= shape.dims[axis];
  }
  return o;
}

/** Returns the fused node's output as an operand: row-major, with strides in the order of the
 * product's axes. */
static operand new_output_operand(laci_net *net, const laci_fused *fused, const int *places) {
  const laci_shape *y = laci_plan_shape(&net->plan, fused->output);
  laci_element dt = laci_net_float_element(net);
  operand o = {.tensor = -1};
  int64_t strides[LACI_MAX_RANK], stride = 1;
  laci_layout *md = laci_net_dense_layout(net, y, dt);
  size_t bytes = md ? laci_layout_bytes(md) : 0;
  o.tensor = laci_net_tensor_new(net, y, dt, md, laci_net_buffer_new(net, LACI_PLACE_ARENA, bytes));
  for (int axis = y->rank - 1; axis >= 0; axis--) {
    strides[axis] = stride;
    stride *= y->dims[axis];
  }
  for (int axis = 0; axis < y->rank; axis++) o.strides[axis] = strides[places[axis]];
  return o;
}

static void describe_attention_step(laci_net *net, attend_step *s,
                                    const laci_attention_pattern *a) {
  const laci_shape *q = laci_plan_shape(&net->plan, a->q), *v = laci_plan_shape(&net->plan, a->v);
  int rank = q->rank, row = rank - 2, last = rank - 1;
  s->n_outer = row;
  s->n_heads = laci_shape_count_range(q, 0, row);
  for (int axis = 0; axis < row; axis++) s->sizes[axis] = q->dims[axis];
  s->a = (laci_attention){.n_queries = q->dims[row],
                          .n_keys = v->dims[row],
                          .depth = q->dims[last],
                          .width = v->dims[last],
                          .q_row = s->q.strides[row],
                          .k_row = s->k.strides[last],
                          .v_row = s->v.strides[row],
                          .y_row = s->y.strides[row],
                          .mask_row = s->mask.strides[row],
                          .mask_column = s->mask.strides[last],
                          .scale = a->scale,
                          .bf16 = net->plan.bf16,
                          .zero_nan = a->zero_nan};
  s->attend = laci_attend_variant(net->plan.bf16);
  s->n_parts = s->n_heads < net->n_threads ? s->n_heads : net->n_threads;
  s->scratch_bytes = (laci_attention_scratch_bytes(&s->a) + 63) / 64 * 64;
}

/** Is an attention head small enough for the kernel's scratch memory? */
static bool can_lower_attention(laci_net *net, const laci_fused *fused, const char **why) {
  const laci_attention_pattern *a = fused->details;
  const laci_shape *k = laci_plan_shape(&net->plan, a->k), *v = laci_plan_shape(&net->plan, a->v);
  const laci_attention sizes = {.n_queries = 1,
                                .n_keys = k->dims[k->rank - 1],
                                .depth = k->dims[k->rank - 2],
                                .width = v->dims[v->rank - 1]};
  *why = "heads of this size";
  return laci_attention_scratch_bytes(&sizes) > 0;
}

static void lower_attention(laci_net *net, const laci_fused *fused) {
  const laci_attention_pattern *a = fused->details;
  attend_step *s = laci_plan_alloc(&net->plan, 1, sizeof *s);
  int rank = laci_plan_shape(&net->plan, a->q)->rank;
  if (!s) return;
  s->q = read_operand_with_contiguous_axis(net, a->q, rank - 1);
  s->k = read_operand_with_contiguous_axis(net, a->k, rank - 2);
  s->v = read_operand_with_contiguous_axis(net, a->v, rank - 1);
  s->mask = read_mask_operand(net, a->mask, rank);
  s->y = new_output_operand(net, fused, a->places);
  if (net->plan.status) return;
  describe_attention_step(net, s, a);
  s->result = (laci_checked_value){.value = fused->output};
  s->scratch = laci_net_scratch_new(net, s->scratch_bytes * (size_t)s->n_parts);
  laci_net_step *step = laci_net_step_add_code(
      net, &net->plan.graph->nodes[fused->node], run_attention, 6,
      (int[]){s->q.tensor, s->k.tensor, s->v.tensor, s->y.tensor, s->scratch, s->mask.tensor});
  if (!step) return;
  step->what = a->mask >= 0 ? "Attention + mask" : "Attention";
  step->kernel = "attention";
  step->context = s;
  step->shown = s->y.tensor;
  laci_net_step_mark_scratch(step, 4);
  step->flops = 2 * s->n_heads * s->a.n_queries * s->a.n_keys * (s->a.depth + s->a.width);
  laci_net_bind_value(net, fused->output, s->y.tensor);
}

const laci_implementation laci_implementations_attention[] = {
    {"our kernel", LACI_FUSIBLE_NOTHING, can_lower_attention, lower_attention},
    {.name = NULL},
};
