/* SPDX-License-Identifier: Apache-2.0
 * MatMul: products of the last two axes, with NumPy's rules: an operand of one axis is a row on the
 * left or a column on the right, and the output lacks that axis; the axes before the last two are
 * broadcast.
 *
 * Channels: the contracted axes of both operands share a label, and so one channel order
 * (coupling.h); rows, columns and batch axes keep their labels in y. */
#include "base/error.h"
#include "base/memory.h"
#include "graph/coupling.h"
#include "graph/gradient.h"
#include "graph/ops/shared/expect_in.h"
#include "graph/ops/shared/gemm_f64.h"
#include "graph/ops/shared/op_in.h"
#include "graph/ops/shared/walk_in.h"
#include "tensor/buf.h"

/** The shapes of both operands, with at least two axes. */
typedef struct matrices {
  laci_shape a, b;
  bool row_vanishes, col_vanishes;
} matrices;

static matrices make_matrix_shapes(const laci_shape *a, const laci_shape *b) {
  matrices m = {.a = *a, .b = *b};
  if (a->rank == 1) m.a = laci_shape_of(2, (int64_t[]){1, a->dims[0]});
  if (b->rank == 1) m.b = laci_shape_of(2, (int64_t[]){b->dims[0], 1});
  m.row_vanishes = a->rank == 1;
  m.col_vanishes = b->rank == 1;
  return m;
}

static bool expect_input_shape(const laci_infer *infer, laci_shape *shape) {
  const laci_shape *b = laci_expect_known_shape_of_input(infer, 1);
  if (!b || b->rank < 1) return false;
  return laci_expect_size(infer, -1, -1, b->dims[b->rank > 1 ? b->rank - 2 : 0], shape);
}

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 2, 2);
  if (st) return st;
  infer->out[0].dtype = infer->in[0]->dtype;
  const laci_shape *a = laci_in_shape(infer, 0), *b = laci_in_shape(infer, 1);
  if (!a || !b) return LAC_OK;
  char a_text[128], b_text[128];
  matrices m = make_matrix_shapes(a, b);
  int64_t left = a->rank > 0 ? m.a.dims[m.a.rank - 1] : -1;
  int64_t right = b->rank > 0 ? m.b.dims[m.b.rank - 2] : -1;
  if (a->rank < 1 || b->rank < 1 || (left >= 0 && right >= 0 && left != right)) {
    return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE, "%s and %s cannot be multiplied",
                          laci_shape_text(a, a_text, sizeof a_text),
                          laci_shape_text(b, b_text, sizeof b_text));
  }
  laci_shape a_batch = laci_shape_of(m.a.rank - 2, m.a.dims);
  laci_shape b_batch = laci_shape_of(m.b.rank - 2, m.b.dims);
  laci_shape *y = &infer->out[0].shape;
  st = laci_broadcast_shapes(infer, &a_batch, &b_batch, y);
  if (st || y->rank < 0) return st;
  if (!m.row_vanishes) y->dims[y->rank++] = m.a.dims[m.a.rank - 2];
  if (!m.col_vanishes) y->dims[y->rank++] = m.b.dims[m.b.rank - 1];
  return LAC_OK;
}

/** Fills offsets[batch] for an operand whose batch axes are broadcast to `batches`; each of its
 * matrices has `size` elements. */
static void compute_batch_offsets(const laci_shape *batches, const laci_shape *operand,
                                  int64_t size, int64_t *offsets) {
  laci_shape own = laci_shape_of(operand->rank - 2, operand->dims);
  laci_walk walk;
  laci_walk_begin(&walk, batches);
  laci_walk_add_broadcast(&walk, &own);
  laci_walk_merge_axes(&walk);
  laci_walk_seek_run(&walk, 0);
  for (int64_t run = 0; run < walk.n_runs; run++, laci_walk_next(&walk)) {
    for (int64_t i = 0; i < walk.run; i++) {
      offsets[run * walk.run + i] = (walk.at[0] + i * walk.inner[0]) * size;
    }
  }
}

static lac_status multiply_floats(const laci_eval *eval, const matrices *m,
                                  const laci_shape *batches) {
  int64_t n_batch = laci_shape_count(batches);
  int64_t rows = m->a.dims[m->a.rank - 2], k = m->a.dims[m->a.rank - 1];
  int64_t cols = m->b.dims[m->b.rank - 1];
  int64_t *offsets = laci_alloc((size_t)n_batch * 3, sizeof *offsets);
  if (!offsets) return laci_fail_memory(eval->err, eval->node->name);
  compute_batch_offsets(batches, &m->a, rows * k, offsets);
  compute_batch_offsets(batches, &m->b, k * cols, offsets + n_batch);
  for (int64_t at = 0; at < n_batch; at++) offsets[2 * n_batch + at] = at * rows * cols;
  laci_gemm_matrix right = {
      .data = eval->in[1]->f, .row_stride = cols, .col_stride = 1, .offset = offsets + n_batch};
  laci_gemm product = {.n_batch = n_batch,
                       .m = rows,
                       .n = cols,
                       .k = k,
                       .a = eval->in[0]->f,
                       .a_row_stride = k,
                       .a_col_stride = 1,
                       .a_offset = offsets,
                       .a_period = m->a.rank == 2 ? 1 : n_batch,
                       .pack_b = laci_gemm_pack_matrix,
                       .pack_context = &right,
                       .c = eval->out[0]->f,
                       .c_row_stride = cols,
                       .c_offset = offsets + 2 * n_batch};
  lac_status st = laci_gemm_run(eval, &product);
  laci_free(offsets);
  return st;
}

/* ---- Integers: sums wrap around, as in runtimes ---- */

typedef struct integer_job {
  const laci_eval *eval;
  const int64_t *a_offset, *b_offset; /* [batches] where the matrices of each batch begin */
  int64_t rows, k, cols;
} integer_job;

static void multiply_rows(int64_t begin, int64_t end, void *context) {
  const integer_job *j = context;
  laci_buf *y = j->eval->out[0];
  for (int64_t row = begin; row < end; row++) {
    const int64_t batch = row / j->rows;
    const int64_t *a = j->eval->in[0]->i + j->a_offset[batch] + row % j->rows * j->k;
    const int64_t *b = j->eval->in[1]->i + j->b_offset[batch];
    for (int64_t col = 0; col < j->cols; col++) {
      uint64_t sum = 0;
      for (int64_t at = 0; at < j->k; at++) {
        sum += (uint64_t)a[at] * (uint64_t)b[at * j->cols + col];
      }
      y->i[row * j->cols + col] = laci_int_wrap(y->dtype, (int64_t)sum);
    }
  }
}

static lac_status multiply_integers(const laci_eval *eval, const matrices *m,
                                    const laci_shape *batches) {
  const int64_t n_batch = laci_shape_count(batches);
  integer_job job = {.eval = eval,
                     .rows = m->a.dims[m->a.rank - 2],
                     .k = m->a.dims[m->a.rank - 1],
                     .cols = m->b.dims[m->b.rank - 1]};
  int64_t *offsets = laci_alloc((size_t)n_batch * 2, sizeof *offsets);
  if (!offsets) return laci_fail_memory(eval->err, eval->node->name);
  compute_batch_offsets(batches, &m->a, job.rows * job.k, offsets);
  compute_batch_offsets(batches, &m->b, job.k * job.cols, offsets + n_batch);
  job.a_offset = offsets;
  job.b_offset = offsets + n_batch;
  laci_eval_parallel(eval, n_batch * job.rows, multiply_rows, &job);
  laci_free(offsets);
  return LAC_OK;
}

static lac_status eval(laci_eval *eval) {
  const laci_buf *left = eval->in[0], *right = eval->in[1];
  const bool integers = left->i && right->i && left->dtype == right->dtype && eval->out[0]->i;
  lac_status st = integers ? LAC_OK : laci_check_floats(eval);
  if (st || eval->out[0]->count == 0) return st;
  matrices m = make_matrix_shapes(&eval->in[0]->shape, &eval->in[1]->shape);
  laci_shape batches = eval->out[0]->shape;
  batches.rank -= !m.row_vanishes + !m.col_vanishes;
  if (m.b.rank == 2 && !m.row_vanishes) {
    /* If the right operand is a single matrix, the left batch of matrices is multiplied as one tall
     * matrix. */
    int64_t k = m.a.dims[m.a.rank - 1];
    int64_t rows = laci_shape_count_range(&m.a, 0, m.a.rank - 1);
    m.a = laci_shape_of(2, (int64_t[]){rows, k});
    batches.rank = 0;
  }
  return integers ? multiply_integers(eval, &m, &batches) : multiply_floats(eval, &m, &batches);
}

/** Couples batch axes, aligned at the last one; y has `tail` axes after its batch axes. */
static void couple_batches(laci_coupling *c, int a_rank, int b_rank, int tail) {
  const laci_shape *a = laci_port_shape(c, 0), *b = laci_port_shape(c, 1);
  const laci_shape *y = laci_port_shape(c, LACI_OUT(0));
  for (int back = 1; back <= y->rank - tail; back++) {
    int y_axis = y->rank - tail - back, a_axis = a_rank - 2 - back, b_axis = b_rank - 2 - back;
    int64_t full = y->dims[y_axis];
    int label = laci_coupling_new_label(c);
    bool certain = true;
    for (int port = 0; port < 2; port++) {
      int axis = port == 0 ? a_axis : b_axis;
      if (axis < 0) continue;
      int64_t size = (port == 0 ? a : b)->dims[axis];
      if (size == full) laci_coupling_set_label(c, port, axis, label);
      else if (size == 1) laci_coupling_set_label(c, port, axis, laci_coupling_new_label(c));
      else
        certain = false; /* the axis is FIXED, so the axes of the other operand and the output must
                            be, too */
    }
    if (certain) {
      laci_coupling_set_label(c, LACI_OUT(0), y_axis, label);
      continue;
    }
    if (a_axis >= 0) laci_coupling_set_label(c, 0, a_axis, LACI_FIXED);
    if (b_axis >= 0) laci_coupling_set_label(c, 1, b_axis, LACI_FIXED);
  }
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph, (void)node;
  const laci_shape *a = laci_port_shape(c, 0), *b = laci_port_shape(c, 1);
  const laci_shape *y = laci_port_shape(c, LACI_OUT(0));
  if (!a || !b || !y || a->rank < 1 || b->rank < 1) return laci_coupling_status(c);
  int tail = (a->rank > 1) + (b->rank > 1), batches = y->rank - tail;
  int widest = (a->rank > b->rank ? a->rank : b->rank) - 2;
  if (batches != (widest > 0 ? widest : 0)) return laci_coupling_status(c);
  laci_coupling_mark_described(c, 0);
  laci_coupling_mark_described(c, 1);
  laci_coupling_mark_described(c, LACI_OUT(0));
  int k = laci_coupling_new_label(c);
  laci_coupling_set_label(c, 0, -1, k);
  laci_coupling_set_label(c, 1, b->rank > 1 ? -2 : -1, k);
  if (a->rank > 1) {
    int row = laci_coupling_new_label(c);
    laci_coupling_set_label(c, 0, -2, row);
    laci_coupling_set_label(c, LACI_OUT(0), batches, row);
  }
  if (b->rank > 1) {
    int col = laci_coupling_new_label(c);
    laci_coupling_set_label(c, 1, -1, col);
    laci_coupling_set_label(c, LACI_OUT(0), y->rank - 1, col);
  }
  couple_batches(c, a->rank, b->rank, tail);
  return laci_coupling_status(c);
}

/** Describes operands of two axes as weights; a batch of matrices is no weight. */
static int find_weight_axes(const laci_graph *graph, const laci_node *node,
                            laci_weight_axes axes[2]) {
  int n = 0;
  for (int port = 1; port >= 0; port--) {
    if (!laci_has_input(node, port)) continue;
    const int rank = graph->values[node->inputs[port]].type.shape.rank;
    if (rank >= 0 && rank != 2) continue; /* an operand of unknown rank may have two axes */
    axes[n++] = (laci_weight_axes){.port = port, .k_axis = port, .c_axis = !port, .groups = 1};
  }
  return n;
}

static int add_matrix_transpose(laci_gradient_builder *b, int x) {
  laci_shape shape = laci_gradient_shape_of_value(b, x);
  int64_t order[LACI_MAX_RANK];
  for (int axis = 0; axis < shape.rank; axis++) order[axis] = axis;
  order[shape.rank - 2] = shape.rank - 1;
  order[shape.rank - 1] = shape.rank - 2;
  return laci_gradient_add_transpose(b, x, shape.rank, order);
}

/** Returns the gradient of a single matrix on the right of a batch: one product over all rows of
 * the batch, not a batch of products to be summed. */
static int add_gradient_of_shared_matrix(laci_gradient_builder *b, int a, int dy) {
  laci_shape a_shape = laci_gradient_shape_of_value(b, a),
             y_shape = laci_gradient_shape_of_value(b, dy);
  int64_t rows = laci_shape_count_range(&a_shape, 0, a_shape.rank - 1);
  laci_shape flat_a = {.rank = 2, .dims = {rows, a_shape.dims[a_shape.rank - 1]}};
  laci_shape flat_y = {.rank = 2, .dims = {rows, y_shape.dims[y_shape.rank - 1]}};
  const int inputs[] = {laci_gradient_add_reshape(b, a, &flat_a),
                        laci_gradient_add_reshape(b, dy, &flat_y)};
  laci_attr trans = laci_attr_int("transA", 1);
  return laci_gradient_add_node(
      b,
      &(laci_gradient_node){
          .type = "Gemm", .n_inputs = 2, .inputs = inputs, .n_attrs = 1, .attrs = &trans},
      NULL);
}

/** dA = dY * B^T and dB = A^T * dY, matrix by matrix. Axes that the output lacks are inserted
 * first; broadcast batches are summed. */
static lac_status gradient(laci_gradient_builder *b, const laci_node *node) {
  laci_shape a_shape = laci_gradient_shape_of_input(b, node, 0);
  laci_shape b_shape = laci_gradient_shape_of_input(b, node, 1);
  laci_shape y_shape = laci_gradient_shape_of_value(b, node->outputs[0]);
  matrices m = make_matrix_shapes(&a_shape, &b_shape);
  if (m.row_vanishes || m.col_vanishes) {
    y_shape.rank -= !m.row_vanishes + !m.col_vanishes;
    y_shape.dims[y_shape.rank++] = m.a.dims[m.a.rank - 2];
    y_shape.dims[y_shape.rank++] = m.b.dims[m.b.rank - 1];
  }
  int dy = laci_gradient_add_reshape(b, laci_gradient_of(b, node, 0), &y_shape);
  int left = laci_gradient_add_reshape(b, node->inputs[0], &m.a);
  int right = laci_gradient_add_reshape(b, node->inputs[1], &m.b);
  if (laci_gradient_is_needed(b, node, 0)) {
    int da = laci_gradient_add_binary(b, "MatMul", dy, add_matrix_transpose(b, right));
    da = laci_gradient_add_unbroadcast(b, da, &m.a);
    laci_gradient_contribute(b, node, 0, laci_gradient_add_reshape(b, da, &a_shape));
  }
  if (laci_gradient_is_needed(b, node, 1)) {
    bool one = m.b.rank == 2 && m.a.rank >= 2;
    int db = one ? add_gradient_of_shared_matrix(b, left, dy)
                 : laci_gradient_add_binary(b, "MatMul", add_matrix_transpose(b, left), dy);
    db = laci_gradient_add_unbroadcast(b, db, &m.b);
    laci_gradient_contribute(b, node, 1, laci_gradient_add_reshape(b, db, &b_shape));
  }
  return laci_gradient_status(b);
}

const laci_op laci_op_mat_mul = {.name = "MatMul",
                                 .role = LACI_ROLE_ALLOW,
                                 .integer_weights = true,
                                 .weights = find_weight_axes,
                                 .infer = infer,
                                 .expect = expect_input_shape,
                                 .eval = eval,
                                 .couple = couple_channel_orders,
                                 .gradient = gradient};
