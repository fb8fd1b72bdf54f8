/* SPDX-License-Identifier: Apache-2.0
 * Computes a result in rows, one pass over its elements.
 *
 * Truth values are int64, as all integers in a net, and row-major. An operand that is broadcast is
 * read with strides of 0; floats are read and written as f32. Neighbouring axes that all operands
 * step through alike are one axis, so that rows are long. */
#include "engine/cpu/lower/rows.h"

#include "base/min.h"
#include "cpu/pool.h"

enum {
  OPERANDS = LACI_ROW_OPERANDS,
  CHUNK = 4096 /* maximum number of elements of a row that a thread computes at a time */
};

/** A result, and how each operand is read for it. */
typedef struct rows {
  laci_row_function *compute;
  int n_operands, rank; /* number of operands; rank of the result, at least 1 */
  int64_t sizes[LACI_MAX_RANK], strides[OPERANDS][LACI_MAX_RANK];
  int64_t n_rows, n_chunks;      /* number of rows of the result, and of chunks in a row */
  size_t elements[OPERANDS + 1]; /* bytes of an element of each operand, and last of the result */
} rows;

typedef struct rows_work {
  const rows *r;
  const char *from[OPERANDS];
  char *to;
} rows_work;

/* ---- The run ---- */

static void compute_chunks(int64_t begin, int64_t end, void *context) {
  const rows_work *w = context;
  const rows *r = w->r;
  const int last = r->rank - 1;
  for (int64_t at = begin; at < end; at++) {
    const int64_t row = at / r->n_chunks, first = at % r->n_chunks * CHUNK;
    const void *from[OPERANDS] = {NULL};
    int64_t steps[OPERANDS] = {0};
    for (int k = 0; k < r->n_operands; k++) {
      int64_t place = first * r->strides[k][last];
      for (int64_t axis = last - 1, left = row; axis >= 0; left /= r->sizes[axis--])
        place += left % r->sizes[axis] * r->strides[k][axis];
      from[k] = w->from[k] + place * (int64_t)r->elements[k];
      steps[k] = r->strides[k][last];
    }
    r->compute(laci_min(CHUNK, r->sizes[last] - first),
               w->to + (row * r->sizes[last] + first) * (int64_t)r->elements[OPERANDS], from,
               steps);
  }
}

static lac_status compute_rows(laci_net *net, laci_net_step *step, lac_error *err) {
  const rows *r = step->context;
  rows_work w = {.r = r, .to = laci_net_tensor_data(net, step->tensors[r->n_operands])};
  (void)err;
  for (int k = 0; k < r->n_operands; k++) w.from[k] = laci_net_tensor_data(net, step->tensors[k]);
  const int64_t longest = laci_min(CHUNK, r->sizes[r->rank - 1]);
  laci_pool_for(net->pool, r->n_rows * r->n_chunks, longest > 0 ? CHUNK / longest : 1,
                compute_chunks, &w);
  return LAC_OK;
}

/* ---- The step ---- */

static int read_row_major_tensor(laci_net *net, int value) {
  int tensor = laci_net_read_value(net, value);
  return laci_plan_is_float(&net->plan, value)
             ? laci_net_convert_to_dense(net, tensor, LACI_ELEMENT_F32)
             : tensor;
}

/** Sets the strides of operand x along the axes of the result; the stride is 0 where x is
 * broadcast. */
static void set_broadcast_strides(const laci_shape *x, int rank, int64_t strides[LACI_MAX_RANK]) {
  int64_t stride = 1;
  for (int axis = x->rank - 1; axis >= 0; axis--) {
    strides[rank - x->rank + axis] = x->dims[axis] == 1 ? 0 : stride;
    stride *= x->dims[axis];
  }
}

/** Can axis and the next one be one axis for all operands? */
static bool can_merge_with_next_axis(const rows *r, int axis) {
  if (r->sizes[axis] == 1 || r->sizes[axis + 1] == 1) return true;
  for (int k = 0; k < r->n_operands; k++)
    if (r->strides[k][axis] != r->strides[k][axis + 1] * r->sizes[axis + 1]) return false;
  return true;
}

static void merge_axes(rows *r) {
  for (int axis = r->rank - 2; axis >= 0; axis--) {
    if (!can_merge_with_next_axis(r, axis)) continue;
    const bool by_next = r->sizes[axis + 1] != 1; /* the next axis has the strides of both */
    r->sizes[axis] *= r->sizes[axis + 1];
    for (int k = 0; k < r->n_operands && by_next; k++)
      r->strides[k][axis] = r->strides[k][axis + 1];
    r->rank--;
    for (int after = axis + 1; after < r->rank; after++) {
      r->sizes[after] = r->sizes[after + 1];
      for (int k = 0; k < r->n_operands; k++) r->strides[k][after] = r->strides[k][after + 1];
    }
  }
}

/** Describes the rows of the node's output in *r. */
static void describe_rows(const laci_net *net, const laci_fused *fused, rows *r) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const laci_shape *y = laci_plan_shape(&net->plan, fused->output);
  for (int axis = 0; axis < y->rank; axis++) r->sizes[axis] = y->dims[axis];
  for (int k = 0; k < r->n_operands; k++) {
    const bool is_float = laci_plan_is_float(&net->plan, node->inputs[k]);
    set_broadcast_strides(laci_plan_shape(&net->plan, node->inputs[k]), r->rank, r->strides[k]);
    r->elements[k] = is_float ? sizeof(float) : sizeof(int64_t);
  }
  merge_axes(r);
  r->n_rows = 1;
  for (int axis = 0; axis < r->rank - 1; axis++) r->n_rows *= r->sizes[axis];
  r->n_chunks = (r->sizes[r->rank - 1] + CHUNK - 1) / CHUNK;
}

void laci_rows_add_step(laci_net *net, const laci_fused *fused, laci_row_kind kind, int n) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const laci_shape *y = laci_plan_shape(&net->plan, fused->output);
  bool is_float = laci_plan_is_float(&net->plan, fused->output);
  rows *r = laci_plan_alloc(&net->plan, 1, sizeof *r);
  int tensors[OPERANDS + 1];
  if (!r) return;
  *r = (rows){.compute = laci_row_variant(kind),
              .n_operands = n,
              .rank = y->rank > 0 ? y->rank : 1,
              .sizes = {1}};
  r->elements[OPERANDS] = is_float ? sizeof(float) : sizeof(int64_t);
  describe_rows(net, fused, r);
  for (int k = 0; k < n; k++) tensors[k] = read_row_major_tensor(net, node->inputs[k]);
  size_t bytes = (size_t)laci_shape_count(y) * r->elements[OPERANDS];
  tensors[n] =
      laci_net_tensor_new(net, y, is_float ? LACI_ELEMENT_F32 : LACI_ELEMENT_NONE,
                          is_float ? laci_net_dense_layout(net, y, LACI_ELEMENT_F32) : NULL,
                          laci_net_buffer_new(net, LACI_PLACE_ARENA, bytes));
  laci_net_step *step = laci_net_step_add_code(net, node, compute_rows, n + 1, tensors);
  if (!step) return;
  step->context = r;
  step->kernel = "rows";
  step->shown = tensors[n];
  laci_net_bind_value(net, fused->output, tensors[n]);
}
