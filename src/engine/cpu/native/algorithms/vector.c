/* SPDX-License-Identifier: Apache-2.0
 * Products of few rows with a constant matrix of many zeros. Their time is that of reading the
 * matrix, and kernel/sparse/vector reads only kept weights.
 *
 * The matrix is packed from slices of the constant, in two passes: the first counts, the second
 * fills. The result is small, so fused functions and sums are separate steps after it. */
#include <string.h>

#include "base/divide.h"
#include "base/memory.h"
#include "cpu/cpu.h"
#include "engine/cpu/lower/product.h"
#include "graph/ops.h"
#include "kernel/sparse/vector.h"
#include "engine/cpu/native/native.h"
#include "graph/op.h"
#include "cpu/pool.h"
#include "engine/cpu/onednn/onednn.h"

/** Do the options and the number of kept weights allow the vector kernel for this matrix? */
static bool is_vector_kernel_allowed(const laci_net *net, const laci_right_operand *r, int matrix) {
  const int64_t n = r->depth * r->columns;
  switch (net->use->which) {
    case LACI_NATIVE_USE_ALL: return true;
    case LACI_NATIVE_USE_FASTER:
      if (laci_cpu_level_in_force() == LACI_CPU_ANY || !laci_vector_kernel_may_be_faster(net, n))
        return false;
      break;
    case LACI_NATIVE_USE_ZEROS: break;
    case LACI_NATIVE_USE_NONE:
    case LACI_NATIVE_USE_LISTED: return false;
  }
  return laci_vector_kernel_is_faster(net, laci_net_nonzero_share(net, matrix));
}

bool laci_right_operand_has_few_rows(const laci_right_operand *r) {
  return r->rows <= LACI_SPARSE_VECTORS;
}

bool laci_can_lower_product_sparse(laci_net *net, const laci_fused *fused, const char **why) {
  if (!laci_is_product_with_constant_matrix(net, fused, why)) return false;
  const laci_right_operand r = laci_right_operand_read(net, fused);
  *why = "many rows, dense weights, or bf16";
  if (net->plan.bf16) return false;
  if (!laci_right_operand_has_few_rows(&r) || r.left_transposed) return false;
  if (r.rows < 1 || r.depth < 1 || r.columns < 1) return false;
  return is_vector_kernel_allowed(net, &r, net->plan.graph->nodes[fused->node].inputs[1]);
}

double laci_native_bytes_saved_by_sparse_products(laci_net *net) {
  const double a_bit = 1 / 8.0; /* bytes for each element of the matrix, in addition to those of
                                   kept elements */
  double n = 0;
  const char *why;
  for (int t = 0; t < net->plan.n_scheduled; t++) {
    const laci_fused *fused = &net->plan.fused[net->plan.schedule[t].fused];
    const laci_op *op = net->plan.graph->nodes[fused->node].op;
    if (op != &laci_op_gemm && op != &laci_op_mat_mul) continue;
    if (!laci_can_lower_product_sparse(net, fused, &why)) continue;
    const laci_right_operand r = laci_right_operand_read(net, fused);
    const int matrix = net->plan.graph->nodes[fused->node].inputs[1];
    if (laci_plan_count_uses(&net->plan, matrix) > 1)
      continue; /* other readers may need the matrix with its zeros */
    const double zeros = 1 - laci_net_nonzero_share(net, matrix);
    n += (double)(r.depth * r.columns) * (sizeof(float) * zeros - a_bit);
  }
  return n;
}

/* ---- The matrix ---- */

typedef struct packing {
  const laci_right_operand *r;
  laci_sparse_rows rows;
  bool counted;
} packing;

static bool pack_weight_slice(void *context, int64_t first, int64_t n, const float *x) {
  packing *p = context;
  const laci_right_operand *r = p->r;
  laci_sparse_rows_part part = {.weight = x};
  if (r->transposed) {
    part.row_first = first / r->depth;
    part.n_rows = n / r->depth;
    part.n_columns = part.row_stride = r->depth;
    part.column_stride = 1;
  } else {
    part.column_first = first / r->columns;
    part.n_columns = n / r->columns;
    part.n_rows = part.column_stride = r->columns;
    part.row_stride = 1;
  }
  if (p->counted) laci_sparse_rows_fill_chunks(&p->rows, &part);
  else laci_sparse_rows_count_kept(&p->rows, &part);
  return true;
}

/** Packs the matrix and stores it as a weight: the offsets of its chunks, then their bytes. Returns
 * the weight's index; -1 after a failure. */
static int pack_weight_matrix(laci_net *net, const laci_fused *fused, const laci_right_operand *r,
                              laci_sparse_rows *rows) {
  const laci_net_weight weight = laci_right_operand_weight(net, fused, r);
  packing p = {.r = r, .rows = {.n_rows = r->columns, .n_columns = r->depth, .pairs = true}};
  const size_t n = (size_t)laci_sparse_rows_n_chunks(&p.rows) + 1;
  const size_t head = (n * sizeof *p.rows.chunk_at + 63) / 64 * 64;
  uint64_t *chunk_at = laci_alloc(n, sizeof *chunk_at);
  int tensor = -1;
  if (!chunk_at) laci_plan_fail_no_memory(&net->plan);
  p.rows.chunk_at = chunk_at;
  laci_net_visit_weight_slices(net, &weight, pack_weight_slice, &p);
  if (!net->plan.status) {
    const size_t bytes = laci_sparse_rows_set_chunk_offsets(&p.rows);
    tensor = laci_net_weight_new(net, head + bytes, weight.value);
  }
  if (tensor >= 0) {
    uint8_t *memory = net->buffers[net->tensors[tensor].buffer].data;
    p.rows.chunk_at = (uint64_t *)(void *)memory;
    p.rows.bytes = memory + head;
    p.counted = true;
    memcpy(p.rows.chunk_at, chunk_at, n * sizeof *chunk_at);
    laci_net_visit_weight_slices(net, &weight, pack_weight_slice, &p);
  }
  laci_free(chunk_at);
  *rows = p.rows;
  return tensor;
}

/* ---- The step ---- */

typedef struct sparse_step {
  laci_sparse_rows rows;
  int n_x;
} sparse_step;

typedef struct work {
  const laci_sparse_rows *rows;
  laci_sparse_vectors v;
} work;

static void multiply_row_ranges(int64_t begin, int64_t end, void *context) {
  const work *w = context;
  laci_sparse_rows_multiply_variant()(w->rows, &w->v, begin, end);
}

static lac_status run_sparse_product(laci_net *net, laci_net_step *step, lac_error *err) {
  enum {
    PARTS = 4
  }; /* number of parts for each thread, so that other threads take over if one is interrupted */
  const sparse_step *s = step->context;
  const int64_t places = laci_sparse_rows_n_places(&s->rows);
  const bool biased = step->tensors[2] >= 0;
  work w = {.rows = &s->rows,
            .v = {.x = laci_net_tensor_data(net, step->tensors[0]),
                  .y = laci_net_tensor_data(net, step->tensors[3]),
                  .n_x = s->n_x,
                  .x_stride = s->rows.n_columns,
                  .y_stride = s->rows.n_rows,
                  .bias = biased ? laci_net_tensor_data(net, step->tensors[2]) : NULL}};
  (void)err;
  laci_pool_for(net->pool, places, laci_ceil_div(places, (int64_t)PARTS * net->n_threads),
                multiply_row_ranges, &w);
  return LAC_OK;
}

/** Adds the step that computes the product with its bias; returns the tensor of the result, [rows,
 * columns]. */
static int add_product_step(laci_net *net, const laci_fused *fused, const laci_right_operand *r) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const laci_shape flat = laci_shape_of(2, (int64_t[]){r->rows, r->columns});
  sparse_step *s = laci_plan_alloc(&net->plan, 1, sizeof *s);
  if (!s) return -1;
  const int x = laci_product_read_matrix(net, node->inputs[0], r->rows, r->depth, false);
  const int bias = laci_right_operand_bias(net, fused, r),
            matrix = pack_weight_matrix(net, fused, r, &s->rows);
  laci_layout *md = laci_net_dense_layout(net, &flat, LACI_ELEMENT_F32);
  const int to = md ? laci_net_new_result(net, &flat, LACI_ELEMENT_F32, md) : -1;
  laci_layout_destroy(md);
  laci_net_step *step =
      laci_net_step_add_code(net, node, run_sparse_product, 4, (int[]){x, matrix, bias, to});
  if (!step) return -1;
  s->n_x = (int)r->rows;
  step->kernel = "sparse vector";
  step->sparse = true;
  step->context = s;
  step->shown = to;
  step->flops = 2 * r->rows * r->depth * r->columns;
  return to;
}

/** Adds a step that adds `value` to the tensor `from`, in place; returns the tensor of the
 * result. */
static int add_sum_step(laci_net *net, const laci_fused *fused, const laci_right_operand *r,
                        int value, int from) {
  const int other = laci_product_read_matrix(net, value, r->rows, r->columns, false);
  laci_primitive *pd = NULL;
  const int to = laci_net_new_result_like(net, from, true);
  if (to < 0 || other < 0) return -1;
  const laci_layout *md = net->tensors[from].md;
  const laci_layout *const mds[] = {md, net->tensors[other].md, md};
  lac_status st = laci_primitive_describe_binary(&pd, net->onednn, LACI_BINARY_ADD, mds, NULL);
  if (!laci_net_check_status(net, st, "sum")) return -1;
  laci_net_step_add(
      net, fused, pd, 3,
      (const int[][2]){{LACI_ARG_SRC, from}, {LACI_ARG_SRC_1, other}, {LACI_ARG_DST, to}});
  return to;
}

void laci_lower_product_sparse(laci_net *net, const laci_fused *fused) {
  const laci_right_operand r = laci_right_operand_read(net, fused);
  const laci_shape *y = laci_plan_shape(&net->plan, fused->output);
  int at = add_product_step(net, fused, &r);
  for (int post = 0; post < fused->n_posts && at >= 0; post++) {
    const laci_post *p = &fused->posts[post];
    at = p->value >= 0 ? add_sum_step(net, fused, &r, p->value, at)
                       : laci_net_apply_function(net, fused, at, &p->function);
  }
  if (at < 0) return;
  laci_net_bind_value(
      net, fused->output,
      laci_net_view_new(net, at, y, laci_net_dense_layout(net, y, LACI_ELEMENT_F32), false));
}
