/* SPDX-License-Identifier: Apache-2.0
 * Element-wise operations of two values, with broadcasting.
 *
 * The first operand is read as it is stored, and the result has its layout; oneDNN broadcasts only
 * the second one. A value without a later reader is overwritten. Channels in blocks are multiplied
 * by a separate kernel (kernel/pointwise/gate.h), since oneDNN would copy them to another
 * layout. */
#include "engine/cpu/lower/binary.h"

#include "cpu/cpu.h"
#include "engine/cpu/lower/along.h"
#include "graph/ops.h"
#include "kernel/pointwise/gate.h"
#include "graph/op.h"
#include "cpu/pool.h"
#include "engine/cpu/onednn/onednn.h"

typedef struct named_binary {
  const laci_op *op;
  laci_binary_kind alg;
  bool commutes;
} named_binary;

static const named_binary binaries[] = {
    {&laci_op_add, LACI_BINARY_ADD, true},  {&laci_op_sum, LACI_BINARY_ADD, true},
    {&laci_op_sub, LACI_BINARY_SUB, false}, {&laci_op_mul, LACI_BINARY_MUL, true},
    {&laci_op_div, LACI_BINARY_DIV, false}, {&laci_op_max, LACI_BINARY_MAX, true},
    {&laci_op_min, LACI_BINARY_MIN, true},
};

/** Returns the second operand as oneDNN needs it: with as many axes as the first, and in the same
 * layout if it has the same size. */
static int match_operand_layout(laci_net *net, int tensor, int first) {
  if (net->plan.status || tensor < 0 || first < 0) return -1;
  laci_shape shape = net->tensors[tensor].shape, like = net->tensors[first].shape;
  if (laci_shape_equal(&shape, &like)) {
    /* Two layouts that differ only in strides of axes of size 1 are equal to oneDNN, but not to its
     * kernels, so both operands get the same description. */
    laci_layout *md = NULL;
    tensor = laci_net_convert_tensor(net, tensor, net->tensors[first].md, net->tensors[first].dt);
    if (!laci_layout_create_copy(&md, net->tensors[first].md)) laci_plan_fail_no_memory(&net->plan);
    return laci_net_view_new(net, tensor, &like, md, false);
  }
  laci_shape wide = {.rank = like.rank};
  int missing = like.rank - shape.rank;
  for (int axis = 0; axis < like.rank; axis++) {
    wide.dims[axis] = axis < missing ? 1 : shape.dims[axis - missing];
  }
  int dense = laci_net_convert_to_dense(net, tensor, laci_net_float_element(net));
  if (missing == 0) return dense;
  return laci_net_view_new(net, dense, &wide,
                           laci_net_dense_layout(net, &wide, laci_net_float_element(net)), false);
}

typedef struct binary_plan {
  int a, b;
  laci_primitive *pd;
} binary_plan;

/** Describes the operation with its first operand in a certain layout: 0 as it is stored, 1
 * channels last, 2 row-major. */
static binary_plan describe_binary_in_layout(laci_net *net, const named_binary *binary,
                                             binary_plan from, int layout, const laci_posts *attr) {
  laci_element dt = laci_net_float_element(net);
  if (net->plan.status || from.a < 0) return (binary_plan){-1, -1, NULL};
  laci_shape shape = net->tensors[from.a].shape;
  binary_plan p = {.a = from.a};
  if (layout == 1) {
    laci_layout *md = laci_net_channels_last_layout(net, &shape, dt);
    p.a = laci_net_convert_tensor(net, from.a, md, dt);
    laci_layout_destroy(md);
  } else if (layout == 2) {
    p.a = laci_net_convert_to_dense(net, from.a, dt);
  }
  p.b = match_operand_layout(net, from.b, p.a);
  if (net->plan.status) return p;
  const laci_layout *md = net->tensors[p.a].md;
  lac_status st = laci_primitive_describe_binary(
      &p.pd, net->onednn, binary->alg, (const laci_layout *const[]){md, net->tensors[p.b].md, md},
      attr);
  if (st && layout == 2) (void)laci_net_check_status(net, st, "operation of these operands");
  if (st) p.pd = NULL;
  return p;
}

/** Does the tensor's memory have padding in addition to its elements? */
static bool has_padded_memory(const laci_net *net, int tensor) {
  if (net->plan.status || tensor < 0) return false;
  const laci_net_tensor *t = &net->tensors[tensor];
  size_t dense = (size_t)laci_shape_count(&t->shape) * laci_element_bytes(t->dt);
  return laci_layout_bytes(t->md) != dense;
}

/** Are the tensor's blocks of channels among those for which oneDNN 2.6 computes wrongly if a
 * function is fused to the operation? These are blocks that are narrower than a vector and have
 * padding, and blocks of four channels (as small groups have; then it also writes beyond the
 * end). */
static bool has_blocks_that_onednn_miscomputes(const laci_net *net, int tensor) {
  enum { NARROWEST = 4, OF_AVX2 = 8, OF_AVX512 = 16 };
  if (net->plan.status || tensor < 0) return false;
  const int64_t block = laci_layout_block_channels(net->tensors[tensor].md);
  const int64_t vector = laci_cpu_has_avx512f() ? OF_AVX512 : OF_AVX2;
  return block > 1 && block < vector && (block <= NARROWEST || has_padded_memory(net, tensor));
}

/** Describes the operation in the layout of the operands. Another layout is chosen if oneDNN has no
 * quick kernel for that one (a broadcast along blocks with padding), or a wrong one, since two
 * copies cost less. */
static binary_plan choose_layout(laci_net *net, const named_binary *binary, binary_plan from,
                                 const laci_posts *attr, bool has_posts) {
  binary_plan p = {-1, -1, NULL};
  for (int layout = has_posts && has_blocks_that_onednn_miscomputes(net, from.a); layout < 3;
       layout++) {
    laci_net_mark mark = laci_net_mark_position(net);
    p = describe_binary_in_layout(net, binary, from, layout, attr);
    bool quick = p.pd && !laci_primitive_is_reference(p.pd);
    if (quick || layout == 2 || net->plan.status) break;
    laci_primitive_destroy(p.pd);
    laci_net_remove_steps_after(net, mark);
  }
  return p;
}

/** Adds the step of the operation. Its result overwrites operand a if possible. It does not where a
 * block's channels are padded and a function is fused to the operation: oneDNN 2.6 then leaves that
 * block unchanged. */
static void add_binary_step(laci_net *net, const laci_fused *fused, const named_binary *binary,
                            int a, int b) {
  int sum;
  laci_posts *attr = laci_net_create_posts(net, fused, &sum);
  binary_plan p =
      choose_layout(net, binary, (binary_plan){.a = a, .b = b}, attr, fused->n_posts > 0);
  bool apart = fused->n_posts > 0 && has_padded_memory(net, p.a);
  int to = laci_net_new_result_like(net, p.a, a != b && p.a == a && !apart);
  laci_net_step_add(
      net, fused, p.pd, 3,
      (const int[][2]){{LACI_ARG_SRC, p.a}, {LACI_ARG_SRC_1, p.b}, {LACI_ARG_DST, to}});
  laci_net_bind_value(net, fused->output, to);
  laci_posts_destroy(attr);
}

static const named_binary *find_binary_of_node(const laci_node *node) {
  const named_binary *binary = binaries;
  while (node->op != binary->op) binary++;
  return binary;
}

/** Must the operands be swapped? The first one must have the result's shape and should not be a
 * constant, since its layout determines that of the result. left, right: whether that operand has
 * the result's shape. */
static bool needs_operand_swap(const laci_net *net, const laci_node *node, bool left, bool right) {
  return right && find_binary_of_node(node)->commutes &&
         (!left || laci_plan_is_constant(&net->plan, node->inputs[0]));
}

static bool has_result_shape(const laci_net *net, int value, const laci_node *node) {
  return laci_shape_equal(laci_plan_shape(&net->plan, value),
                          laci_plan_shape(&net->plan, node->outputs[0]));
}

/** The values (indices) of the two operands in the order in which they are read. */
typedef struct operands {
  int a, b;
} operands;

static operands order_operands(const laci_net *net, const laci_node *node) {
  bool swap = needs_operand_swap(net, node, has_result_shape(net, node->inputs[0], node),
                                 has_result_shape(net, node->inputs[1], node));
  return (operands){node->inputs[swap], node->inputs[!swap]};
}

bool laci_can_lower_binary(laci_net *net, const laci_fused *fused, const char **why) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  *why = "operands of this kind";
  if (node->n_inputs != 2 || !laci_plan_has_input(node, 0) || !laci_plan_has_input(node, 1))
    return false;
  if (!laci_plan_is_float(&net->plan, node->inputs[0]) ||
      !laci_plan_is_float(&net->plan, node->inputs[1])) {
    return false;
  }
  bool left = has_result_shape(net, node->inputs[0], node),
       right = has_result_shape(net, node->inputs[1], node);
  return left || needs_operand_swap(net, node, left, right);
}

void laci_lower_binary(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  operands o = order_operands(net, node);
  int a = laci_net_make_whole_tensor(net, laci_net_read_value(net, o.a)),
      b = laci_net_read_value(net, o.b);
  add_binary_step(net, fused, find_binary_of_node(node), a, b);
}

/* ---- Two operands that are both broadcast ---- */

bool laci_can_lower_binary_of_two_broadcast(laci_net *net, const laci_fused *fused,
                                            const char **why) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  *why = "operands of this kind";
  if (node->n_inputs != 2 || !laci_plan_has_input(node, 0) || !laci_plan_has_input(node, 1))
    return false;
  const laci_shape *y = laci_plan_shape(&net->plan, node->outputs[0]);
  for (int axis = 0; axis < y->rank; axis++) {
    if (y->dims[axis] > INT32_MAX) return false;
  }
  return y->rank >= 1 && laci_plan_is_float(&net->plan, node->inputs[0]) &&
         laci_plan_is_float(&net->plan, node->inputs[1]);
}

/** Returns a tensor of the result's shape, to which the value is broadcast. */
static int broadcast_value(laci_net *net, const laci_node *node, int value) {
  const laci_shape y = *laci_plan_shape(&net->plan, node->outputs[0]);
  const laci_shape *x = laci_plan_shape(&net->plan, value);
  laci_shape shape = {.rank = y.rank};
  laci_order order;
  for (int axis = 0; axis < y.rank; axis++) {
    const int own = axis - (y.rank - x->rank);
    shape.dims[axis] = own < 0 ? 1 : x->dims[own];
  }
  int at = laci_net_reshape_tensor(net, laci_net_read_value(net, value), &shape);
  at = laci_axis_pass_read_tensor(net, at, true, &order);
  for (int axis = y.rank - 1; axis >= 0 && at >= 0; axis--) {
    if (shape.dims[axis] != y.dims[axis])
      at = laci_axis_pass_add_repeat(net, node, at, &order, axis, y.dims[axis]);
  }
  return at;
}

/** Broadcasts the first operand to the result's shape; the second one is then broadcast by
 * oneDNN. */
void laci_lower_binary_of_two_broadcast(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  int a = laci_net_make_whole_tensor(net, broadcast_value(net, node, node->inputs[0]));
  int b = laci_net_read_value(net, node->inputs[1]);
  add_binary_step(net, fused, find_binary_of_node(node), a, b);
}

/* ---- Channels times one factor each: squeeze and excitation ---- */

typedef struct gate_step {
  laci_gate *gate;
  /* n_blocks: number of blocks of 16 channels in all images; n_factors: number of factors, after
   * which they repeat */
  int64_t n_blocks, n_pixels, n_factors;
} gate_step;

typedef struct gate_work {
  const gate_step *s;
  const float *x, *factors;
  float *y;
} gate_work;

static void multiply_blocks_by_factors(int64_t begin, int64_t end, void *context) {
  const gate_work *w = context;
  int64_t block_floats = w->s->n_pixels * LACI_GATE_BLOCK;
  for (int64_t at = begin; at < end; at++) {
    w->s->gate(w->x + at * block_floats, w->factors + at * LACI_GATE_BLOCK % w->s->n_factors,
               w->s->n_pixels, w->y + at * block_floats);
  }
}

static lac_status run_gate(laci_net *net, laci_net_step *step, lac_error *err) {
  const gate_step *s = step->context;
  gate_work w = {.s = s,
                 .x = laci_net_tensor_data(net, step->tensors[0]),
                 .factors = laci_net_tensor_data(net, step->tensors[1]),
                 .y = laci_net_tensor_data(net, step->tensors[2])};
  (void)err;
  laci_pool_for(net->pool, s->n_blocks, 1, multiply_blocks_by_factors, &w);
  return LAC_OK;
}

/** Is it the product of a [n, c, h, w] in blocks of channels and factors b [n or 1, c, 1, 1]? */
bool laci_can_lower_gate(laci_net *net, const laci_fused *fused, const char **why) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  if (node->op != &laci_op_mul || !laci_can_lower_binary(net, fused, why)) return false;
  operands o = order_operands(net, node);
  const laci_shape *x = laci_plan_shape(&net->plan, o.a), *g = laci_plan_shape(&net->plan, o.b);
  int a = net->plan.values[o.a].tensor, b = net->plan.values[o.b].tensor;
  *why = "no channels in blocks times a number each";
  bool fits = !net->plan.bf16 && a != b && laci_net_is_in_blocks(net, a) && g->rank == 4 &&
              g->dims[1] == x->dims[1] && g->dims[2] == 1 && g->dims[3] == 1 &&
              (g->dims[0] == x->dims[0] || g->dims[0] == 1);
  return fits && (b < 0 || net->tensors[b].dt == LACI_ELEMENT_F32);
}

void laci_lower_gate(laci_net *net, const laci_fused *fused) {
  operands o = order_operands(net, &net->plan.graph->nodes[fused->node]);
  int a = laci_net_read_value(net, o.a), b = laci_net_read_value(net, o.b);
  const laci_shape x = *laci_plan_shape(&net->plan, o.a), g = *laci_plan_shape(&net->plan, o.b);
  laci_layout *md = laci_net_blocks_layout(net, &g, LACI_ELEMENT_F32);
  int factors = laci_net_convert_tensor(net, b, md, LACI_ELEMENT_F32),
      to = laci_net_new_result_like(net, a, true);
  gate_step *s = laci_plan_alloc(&net->plan, 1, sizeof *s);
  laci_layout_destroy(md);
  if (net->plan.status) return;
  *s = (gate_step){.gate = laci_gate_variant(),
                   .n_blocks = x.dims[0] * x.dims[1] / LACI_GATE_BLOCK,
                   .n_pixels = x.dims[2] * x.dims[3],
                   .n_factors = laci_shape_count(&g)};
  laci_net_step *step = laci_net_step_add_code(net, &net->plan.graph->nodes[fused->node], run_gate,
                                               3, (int[]){a, factors, to});
  if (!step) return;
  step->what = "Mul, by channel";
  step->kernel = "gate";
  step->context = s;
  step->shown = to;
  laci_net_bind_value(net, fused->output, to);
}
