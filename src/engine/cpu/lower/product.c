/* SPDX-License-Identifier: Apache-2.0
 * Matrix products: Gemm and MatMul.
 *
 * With one constant matrix on the right, all rows on the left are one matrix, and the weight
 * is scaled, reordered and kept; a product of two values is oneDNN's batched one, on the operands
 * as they lie if it has a kernel for that. */
#include "engine/cpu/lower/product.h"

#include "graph/ops.h"

/** Gemm's C as something that can be a bias: absent, one number, or one number a column. */
static bool fits_bias(const laci_net *net, const laci_node *node, int64_t columns) {
  if (!laci_plan_has_input(node, 2)) return true;
  const laci_shape *c = laci_plan_shape(&net->plan, node->inputs[2]);
  int64_t count = laci_shape_count(c);
  bool row = count == 1 || (count == columns && c->rank > 0 && c->dims[c->rank - 1] == columns);
  return laci_plan_is_constant(&net->plan, node->inputs[2]) &&
         laci_plan_is_float(&net->plan, node->inputs[2]) && row;
}

/** Floats of a rank that oneDNN has. */
static bool fits_operands(const laci_net *net, const laci_node *node) {
  if (!laci_plan_has_input(node, 0) || !laci_plan_has_input(node, 1) || node->outputs[0] < 0)
    return false;
  const laci_shape *a = laci_plan_shape(&net->plan, node->inputs[0]);
  const laci_shape *b = laci_plan_shape(&net->plan, node->inputs[1]);
  return laci_plan_is_float(&net->plan, node->inputs[0]) &&
         laci_plan_is_float(&net->plan, node->inputs[1]) && a->rank >= 1 && a->rank <= 5 &&
         b->rank >= 2 && b->rank <= 5 && laci_plan_shape(&net->plan, node->outputs[0])->rank >= 1;
}

/* ---- A constant matrix on the right ---- */

typedef struct right {
  int64_t rows, depth, columns;
  bool transposed;
  float alpha, beta;
} right;

static int matrix_weight(laci_net *net, const laci_fused *fused, const right *r,
                         const laci_layout *wanted) {
  laci_net_weight weight = {
      .value = net->plan.graph->nodes[fused->node].inputs[1],
      .shape = laci_shape_of(2, (int64_t[]){r->depth, r->columns}),
      .strides = {r->transposed ? 1 : r->columns, r->transposed ? r->depth : 1},
      .scale = fused->scale,
      .n_scale = r->columns,
      .run = r->transposed ? r->depth : 1,
      .factor = r->alpha};
  return laci_net_weight_as(net, &weight, wanted);
}

/** scale * beta * C + shift as [1, columns]; -1: none. */
static int matrix_bias(laci_net *net, const laci_fused *fused, const right *r) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  bool given = node->op == &laci_op_gemm && laci_plan_has_input(node, 2);
  const float *c = given ? laci_plan_floats(&net->plan, node->inputs[2]) : NULL;
  laci_shape shape = laci_shape_of(2, (int64_t[]){1, r->columns});
  if (net->plan.status || (!c && !fused->shift)) return -1;
  int64_t count = c ? laci_shape_count(laci_plan_shape(&net->plan, node->inputs[2])) : 0;
  float *sum = laci_alloc((size_t)r->columns, sizeof *sum);
  if (!sum) laci_plan_no_memory(&net->plan);
  for (int64_t at = 0; sum && at < r->columns; at++) {
    sum[at] = c ? c[count == 1 ? 0 : at] * r->beta * (fused->scale ? fused->scale[at] : 1) : 0;
    if (fused->shift) sum[at] += fused->shift[at];
  }
  int vector = sum ? laci_net_vector(net, sum, r->columns) : -1;
  laci_free(sum);
  return laci_net_view(net, vector, &shape, laci_net_dense(net, &shape, LACI_ELEMENT_F32), false);
}

/** A value's rows as one matrix. */
static int flattened(laci_net *net, int value, int64_t rows, int64_t columns, bool transposed) {
  laci_element dt = laci_net_dt(net);
  int dense = laci_net_as_dense(net, laci_net_read(net, value), dt);
  laci_shape shape = laci_shape_of(2, (int64_t[]){rows, columns});
  laci_layout *md = NULL;
  int64_t strides[LACI_MOST_AXES] = {transposed ? 1 : columns, transposed ? rows : 1};
  if (!net->plan.status && !laci_layout_strided(&md, 2, shape.dims, dt, strides))
    laci_plan_no_memory(&net->plan);
  return laci_net_view(net, dense, &shape, md, false);
}

static void product_step(laci_net *net, const laci_fused *fused, laci_primitive *pd, const right *r,
                         const int operands[3]) {
  const laci_shape *y = laci_plan_shape(&net->plan, fused->output);
  laci_element dt = laci_net_result_dt(net, fused->output);
  laci_shape flat = laci_shape_of(2, (int64_t[]){r->rows, r->columns});
  const laci_layout *dst = laci_primitive_layout(pd, LACI_ARG_DST);
  int w = matrix_weight(net, fused, r, laci_primitive_layout(pd, LACI_ARG_WEIGHTS));
  int bias = operands[1], to, sum = operands[2];
  if (sum >= 0) {
    to = laci_net_sum_target(net, flattened(net, sum, r->rows, r->columns, false), dst, dt);
  } else {
    to = laci_net_tensor_new(net, &flat, dt, laci_net_dense(net, &flat, dt),
                             laci_net_buffer_new(net, LACI_PLACE_ARENA, laci_layout_bytes(dst)));
  }
  laci_net_step_add(net, fused, pd, bias >= 0 ? 4 : 3,
                    (const int[][2]){{LACI_ARG_SRC, operands[0]},
                                     {LACI_ARG_WEIGHTS, w},
                                     {LACI_ARG_DST, to},
                                     {LACI_ARG_BIAS, bias}});
  laci_net_bind(net, fused->output, laci_net_view(net, to, y, laci_net_dense(net, y, dt), false));
}

static void product(laci_net *net, const laci_fused *fused, const right *r, bool transposed) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  laci_element dt = laci_net_dt(net);
  laci_shape weight = laci_shape_of(2, (int64_t[]){r->depth, r->columns});
  laci_shape flat = laci_shape_of(2, (int64_t[]){r->rows, r->columns});
  laci_primitive *pd = NULL;
  int sum, bias = matrix_bias(net, fused, r);
  int a = flattened(net, node->inputs[0], r->rows, r->depth, transposed);
  laci_posts *attr = laci_net_posts(net, fused, &sum);
  laci_layout *w = laci_net_any(net, &weight, dt),
              *dst = laci_net_dense(net, &flat, laci_net_result_dt(net, fused->output));
  if (!net->plan.status) {
    const laci_layout *b = bias >= 0 ? net->tensors[bias].md : NULL;
    lac_status st = laci_primitive_matmul(
        &pd, net->onednn, (const laci_layout *const[]){net->tensors[a].md, w, b, dst}, attr);
    if (laci_net_did(net, st, "matrix product")) {
      product_step(net, fused, pd, r, (const int[]){a, bias, sum});
    }
  }
  laci_layout_destroy(w);
  laci_layout_destroy(dst);
  laci_posts_destroy(attr);
}

static bool gemm_fits(laci_net *net, const laci_fused *fused, const char **why) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  *why = "a matrix or a sum that changes";
  return fits_operands(net, node) && laci_plan_is_constant(&net->plan, node->inputs[1]) &&
         fits_bias(net, node, laci_plan_shape(&net->plan, node->outputs[0])->dims[1]);
}

static void lower_gemm(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const laci_shape *y = laci_plan_shape(&net->plan, node->outputs[0]);
  const laci_shape *b = laci_plan_shape(&net->plan, node->inputs[1]);
  bool transposed = laci_node_int(node, "transB", 0) != 0;
  right r = {.rows = y->dims[0],
             .columns = y->dims[1],
             .depth = b->dims[transposed],
             .transposed = transposed,
             .alpha = laci_node_float(node, "alpha", 1),
             .beta = laci_node_float(node, "beta", 1)};
  product(net, fused, &r, laci_node_int(node, "transA", 0) != 0);
}

static bool matmul_fits(laci_net *net, const laci_fused *fused, const char **why) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  *why = "a matrix that changes";
  return fits_operands(net, node) && laci_plan_is_constant(&net->plan, node->inputs[1]) &&
         laci_plan_shape(&net->plan, node->inputs[1])->rank == 2;
}

static void lower_matmul(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const laci_shape *a = laci_plan_shape(&net->plan, node->inputs[0]);
  const laci_shape *b = laci_plan_shape(&net->plan, node->inputs[1]);
  right r = {.rows = laci_shape_count_range(a, 0, a->rank - 1),
             .depth = b->dims[0],
             .columns = b->dims[1],
             .alpha = 1};
  product(net, fused, &r, false);
}

/* ---- Two values ---- */

/** With axes of size 1 in front, so that both have as many. */
static int widened(laci_net *net, int tensor, int rank) {
  if (net->plan.status || tensor < 0) return -1;
  laci_shape shape = net->tensors[tensor].shape, wide = {.rank = rank};
  if (shape.rank == rank) return tensor;
  for (int axis = 0; axis < rank; axis++) {
    int from = axis - (rank - shape.rank);
    wide.dims[axis] = from < 0 ? 1 : shape.dims[from];
  }
  int dense = laci_net_as_dense(net, tensor, laci_net_dt(net));
  return laci_net_view(net, dense, &wide, laci_net_dense(net, &wide, laci_net_dt(net)), false);
}

/** The operands as they lie (transposed, say), or dense where oneDNN has no kernel for that. */
static laci_primitive *batched(laci_net *net, int operands[2], const laci_layout *dst,
                               const laci_posts *attr) {
  laci_primitive *pd = NULL;
  for (int dense = 0; dense < 2 && !net->plan.status; dense++) {
    for (int at = 0; at < 2; at++) {
      /* A part is made whole first: oneDNN 2.6's kernels forget where it starts. */
      operands[at] = dense ? laci_net_as_dense(net, operands[at], laci_net_dt(net))
                           : laci_net_whole(net, operands[at]);
    }
    if (net->plan.status) break;
    const laci_layout *const mds[] = {net->tensors[operands[0]].md, net->tensors[operands[1]].md,
                                      NULL, dst};
    lac_status st = laci_primitive_matmul(&pd, net->onednn, mds, attr);
    if (!st && (dense || !laci_primitive_is_reference(pd))) break;
    if (!st) laci_primitive_destroy(pd);
    pd = NULL;
    if (dense) (void)laci_net_did(net, st, "matrix product");
  }
  return pd;
}

static bool values_fit(laci_net *net, const laci_fused *fused, const char **why) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  *why = "operands of this kind";
  return fits_operands(net, node) && laci_plan_shape(&net->plan, node->inputs[0])->rank > 1;
}

static void product_of_values(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const laci_shape *y = laci_plan_shape(&net->plan, fused->output);
  laci_element dt = laci_net_result_dt(net, fused->output);
  int sum, to = -1;
  int operands[2] = {widened(net, laci_net_read(net, node->inputs[0]), y->rank),
                     widened(net, laci_net_read(net, node->inputs[1]), y->rank)};
  laci_posts *attr = laci_net_posts(net, fused, &sum);
  laci_layout *dst = laci_net_dense(net, y, dt);
  laci_primitive *pd = net->plan.status ? NULL : batched(net, operands, dst, attr);
  if (pd && sum >= 0) {
    to = laci_net_sum_target(net, laci_net_read(net, sum), dst, dt);
  } else if (pd) {
    to = laci_net_tensor_new(net, y, dt, laci_net_dense(net, y, dt),
                             laci_net_buffer_new(net, LACI_PLACE_ARENA, laci_layout_bytes(dst)));
  }
  if (pd) {
    laci_net_step_add(
        net, fused, pd, 3,
        (const int[][2]){
            {LACI_ARG_SRC, operands[0]}, {LACI_ARG_WEIGHTS, operands[1]}, {LACI_ARG_DST, to}});
  }
  laci_net_bind(net, fused->output, to);
  laci_layout_destroy(dst);
  laci_posts_destroy(attr);
}

/* ---- The lists ---- */

const laci_implementation laci_ways_gemm[] = {
    {"constant matrix, by oneDNN", LACI_TAKES_SCALE | LACI_TAKES_FUNCTIONS | LACI_TAKES_SUM,
     gemm_fits, lower_gemm},
    {"matrix that changes, by oneDNN", LACI_TAKES_NOTHING, laci_gemm_values_fit, laci_gemm_values},
    {.name = NULL},
};
const laci_implementation laci_ways_matmul[] = {
    {"constant matrix, by oneDNN", LACI_TAKES_SCALE | LACI_TAKES_FUNCTIONS | LACI_TAKES_SUM,
     matmul_fits, lower_matmul},
    {"two values, by oneDNN", LACI_TAKES_FUNCTIONS | LACI_TAKES_SUM, values_fit, product_of_values},
    {.name = NULL},
};
