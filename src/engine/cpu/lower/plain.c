/* SPDX-License-Identifier: Apache-2.0
 * The plain operator, for nodes without a fast kernel: the operator's own eval, with conversions to
 * double and back.
 *
 * Operands and results are converted in buffers of doubles in the arena (constants only once);
 * integers are used in place. This is correct but slow: the plan's text names each such node. */
#include <string.h>

#include "engine/cpu/net_in.h"
#include "graph/op.h"
#include "cpu/pool.h"
#include "tensor/buf.h"

typedef struct operand {
  laci_buf buf; /* the operand as the operator's eval reads it; every run sets `f` or `i` */
  int tensor;   /* tensor in row-major f32 or integers; -1: the operand is absent or constant */
  int doubles;  /* tensor with the same content as doubles; -1: the operand holds integers */
} operand;

typedef struct plain {
  const laci_node *node;
  operand *in, *out;
  const laci_buf **in_bufs;
  laci_buf **out_bufs;
} plain;

/** Describes an operand and adds its buffer of doubles, without setting contents. */
static void prepare_operand(laci_net *net, int value, operand *o) {
  const laci_type *type = &net->plan.values[value].type;
  o->buf = (laci_buf){
      .dtype = type->dtype, .shape = type->shape, .count = laci_shape_count(&type->shape)};
  o->doubles = -1;
  if (!laci_dtype_is_float(type->dtype)) return;
  int buffer = laci_net_buffer_new(net, LACI_PLACE_ARENA, (size_t)o->buf.count * sizeof(double));
  o->doubles = laci_net_tensor_new(net, &type->shape, LACI_ELEMENT_NONE, NULL, buffer);
}

/** Converts a constant's content to doubles once, and stores them as a weight. */
static void prepare_constant(laci_net *net, int value, operand *o) {
  laci_buf *buf = laci_plan_copy_constant(&net->plan, value);
  if (!buf) return;
  size_t bytes = (size_t)buf->count * sizeof(double);
  int buffer = laci_net_buffer_new(net, LACI_PLACE_WEIGHT, bytes);
  o->buf = *buf;
  o->tensor = o->doubles = -1;
  if (buffer >= 0) {
    net->buffers[buffer].data = buf->f ? (void *)buf->f : (void *)buf->i;
    net->buffers[buffer].owned = true;
    net->plan.weight_bytes += bytes;
    buf->f = NULL;
    buf->i = NULL;
  }
  laci_buf_destroy(buf);
}

static void prepare_input(laci_net *net, int value, operand *o) {
  if (laci_plan_is_constant(&net->plan, value)) {
    prepare_constant(net, value, o);
    return;
  }
  int tensor = laci_net_read_value(net, value);
  prepare_operand(net, value, o);
  bool is_float = laci_plan_is_float(&net->plan, value);
  bool empty = laci_shape_count(laci_plan_shape(&net->plan, value)) == 0;
  o->tensor =
      is_float && !empty ? laci_net_convert_to_dense(net, tensor, LACI_ELEMENT_F32) : tensor;
}

static void prepare_output(laci_net *net, int value, operand *o) {
  const laci_shape *shape = laci_plan_shape(&net->plan, value);
  prepare_operand(net, value, o);
  bool is_float = laci_plan_is_float(&net->plan, value);
  size_t element = is_float ? sizeof(float) : sizeof(int64_t);
  int buffer = laci_net_buffer_new(net, LACI_PLACE_ARENA, (size_t)o->buf.count * element);
  o->tensor = laci_net_tensor_new(
      net, shape, is_float ? LACI_ELEMENT_F32 : LACI_ELEMENT_NONE,
      is_float ? laci_net_dense_layout(net, shape, LACI_ELEMENT_F32) : NULL, buffer);
}

static void bind_operand_buffer(laci_net *net, operand *o, bool read) {
  if (o->tensor < 0) return; /* a constant, whose content was set while planning */
  if (o->doubles < 0) {
    o->buf.i = laci_net_tensor_data(net, o->tensor);
    return;
  }
  o->buf.f = laci_net_tensor_data(net, o->doubles);
  const float *from = laci_net_tensor_data(net, o->tensor);
  for (int64_t at = 0; read && at < o->buf.count; at++) o->buf.f[at] = (double)from[at];
}

static void fill_result_with_zeros(operand *o) {
  size_t bytes = (size_t)o->buf.count * sizeof(double);
  memset(o->buf.f ? (void *)o->buf.f : (void *)o->buf.i, 0, bytes);
}

static void convert_result(laci_net *net, const operand *o) {
  if (o->doubles < 0) return;
  float *to = laci_net_tensor_data(net, o->tensor);
  for (int64_t at = 0; at < o->buf.count; at++) to[at] = (float)o->buf.f[at];
}

static void run_loop_in_pool(void *pool, int64_t n, laci_range_body *body, void *context) {
  int64_t grain = n / (8 * (int64_t)laci_pool_threads(pool));
  laci_pool_for(pool, n, grain > 1 ? grain : 1, body, context);
}

static lac_status run_operator_evaluation(laci_net *net, laci_net_step *step, lac_error *err) {
  plain *p = step->context;
  const laci_node *node = p->node;
  for (int at = 0; at < node->n_inputs; at++) {
    if (p->in_bufs[at]) bind_operand_buffer(net, &p->in[at], true);
  }
  for (int at = 0; at < node->n_outputs; at++) {
    if (!p->out_bufs[at]) continue;
    bind_operand_buffer(net, &p->out[at], false);
    fill_result_with_zeros(&p->out[at]);
  }
  laci_eval eval = {.node = node,
                    .n_in = node->n_inputs,
                    .n_out = node->n_outputs,
                    .in = p->in_bufs,
                    .out = p->out_bufs,
                    .parallel = run_loop_in_pool,
                    .pool = net->pool,
                    .err = err};
  lac_status st = node->op->eval(&eval);
  for (int at = 0; at < node->n_outputs && !st; at++) {
    if (p->out_bufs[at]) convert_result(net, &p->out[at]);
  }
  return st;
}

/** Adds the step, with all tensors that it uses as its operands, so that their buffers live long
 * enough. */
static void add_plain_step(laci_net *net, plain *p) {
  const laci_node *node = p->node;
  int n = 2 * (node->n_inputs + node->n_outputs), at = 0;
  int *tensors = laci_plan_alloc(&net->plan, (size_t)n, sizeof *tensors);
  if (!tensors) return;
  for (int i = 0; i < node->n_inputs; i++) {
    bool there = p->in_bufs[i] != NULL;
    tensors[at++] = there ? p->in[i].tensor : -1;
    tensors[at++] = there ? p->in[i].doubles : -1;
  }
  for (int i = 0; i < node->n_outputs; i++) {
    bool there = p->out_bufs[i] != NULL;
    tensors[at++] = there ? p->out[i].tensor : -1;
    tensors[at++] = there ? p->out[i].doubles : -1;
  }
  laci_net_step *step = laci_net_step_add_code(net, node, run_operator_evaluation, n, tensors);
  if (!step) return;
  step->kernel = LACI_ENGINE_EXACT;
  step->plain = true;
  step->context = p;
  step->shown = node->n_outputs > 0 && p->out_bufs[0] ? p->out[0].tensor : -1;
}

void laci_lower_plain(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  size_t n_in = (size_t)node->n_inputs, n_out = (size_t)node->n_outputs;
  plain *p = laci_plan_alloc(&net->plan, 1, sizeof *p);
  if (!p) return;
  *p = (plain){.node = node,
               .in = laci_plan_alloc(&net->plan, n_in, sizeof *p->in),
               .out = laci_plan_alloc(&net->plan, n_out, sizeof *p->out),
               .in_bufs = laci_plan_alloc(&net->plan, n_in, sizeof *p->in_bufs),
               .out_bufs = laci_plan_alloc(&net->plan, n_out, sizeof *p->out_bufs)};
  for (size_t at = 0; at < n_in && !net->plan.status; at++) {
    if (node->inputs[at] < 0) continue;
    prepare_input(net, node->inputs[at], &p->in[at]);
    p->in_bufs[at] = &p->in[at].buf;
  }
  for (size_t at = 0; at < n_out && !net->plan.status; at++) {
    if (node->outputs[at] < 0) continue;
    prepare_output(net, node->outputs[at], &p->out[at]);
    p->out_bufs[at] = &p->out[at].buf;
  }
  if (net->plan.status) return;
  add_plain_step(net, p);
  for (size_t at = 0; at < n_out; at++) {
    if (node->outputs[at] >= 0) laci_net_bind_value(net, node->outputs[at], p->out[at].tensor);
  }
}
