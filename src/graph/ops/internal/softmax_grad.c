/* SPDX-License-Identifier: Apache-2.0
 * lacuna.SoftmaxGrad: dX = (dY - sum(dY * Y)) * Y, summed along each line of Y. The attribute axes
 * lists the neighbouring axes that make a line: one, or all from one on (Softmax before opset 13).
 */
#include "graph/ops/shared/grad_in.h"
#include "tensor/buf.h"

/** Reads the attribute axes as the range [*first, *first + *n) of a tensor of that rank. */
static lac_status read_axes(const laci_node *node, int rank, int *first, int *n, lac_error *err) {
  size_t count = 0;
  const int64_t *axes = laci_node_ints(node, "axes", &count);
  bool fits = axes && count >= 1 && count <= (size_t)rank && axes[0] >= 0;
  for (size_t at = 0; fits && at < count; at++)
    fits = axes[at] == axes[0] + (int64_t)at && axes[at] < rank;
  if (!fits) return laci_node_fail(node, err, LAC_BAD_SHAPE, "axes are no neighbours");
  *first = (int)axes[0];
  *n = (int)count;
  return LAC_OK;
}

static lac_status infer(laci_infer *infer) {
  int first, n;
  lac_status st = laci_infer_equal_shapes(infer, 0, 1);
  if (st || infer->in[0]->shape.rank < 0) return st;
  return read_axes(infer->node, infer->in[0]->shape.rank, &first, &n, infer->err);
}

typedef struct job {
  const double *dy, *y;
  double *dx;
  int64_t n, inner;
} job;

static void differentiate_lines(int64_t begin, int64_t end, void *context) {
  const job *j = context;
  for (int64_t line = begin; line < end; line++) {
    int64_t from = line / j->inner * j->n * j->inner + line % j->inner;
    double sum = 0;
    for (int64_t i = 0, at = from; i < j->n; i++, at += j->inner) sum += j->dy[at] * j->y[at];
    for (int64_t i = 0, at = from; i < j->n; i++, at += j->inner)
      j->dx[at] = (j->dy[at] - sum) * j->y[at];
  }
}

static lac_status eval(laci_eval *eval) {
  int first, n;
  const laci_shape *shape = &eval->in[0]->shape;
  lac_status st = laci_check_floats(eval);
  if (!st) st = read_axes(eval->node, shape->rank, &first, &n, eval->err);
  if (st || eval->out[0]->count == 0) return st;
  job j = {.dy = eval->in[0]->f,
           .y = eval->in[1]->f,
           .dx = eval->out[0]->f,
           .n = laci_shape_count_range(shape, first, first + n),
           .inner = laci_shape_count_range(shape, first + n, shape->rank)};
  laci_eval_parallel(eval, eval->out[0]->count / j.n, differentiate_lines, &j);
  return LAC_OK;
}

const laci_op laci_op_softmax_grad = {.name = "SoftmaxGrad",
                                      .domain = "lacuna",
                                      .role = LACI_ROLE_PASS_THROUGH,
                                      .infer = infer,
                                      .eval = eval,
                                      .couple = laci_couple_nothing};
