/* SPDX-License-Identifier: Apache-2.0
 * lacuna.ConvGradWeight: inputs X, dY of a Conv;
 *   dW[k c t] = sum over n, o of dY[n k o] * X[n c o*stride - pad + t*dilation].
 *
 * One element of dW is one long sum, image by image and line by line. This is slow and simple, and
 * gives the same bits for any number of threads. The attribute kernel_shape is the kernel's
 * size. */
#include "graph/ops/shared/conv_in.h"
#include "graph/ops/shared/grad_in.h"
#include "tensor/buf.h"

static lac_status infer(laci_infer *infer) {
  int64_t n_groups = 1;
  int n_spatial = 0;
  laci_node_window window;
  lac_status st = laci_check_n_inputs(infer, 2, 2);
  if (!st) st = laci_conv_read_groups(infer->node, &n_groups, infer->err);
  if (!st) st = laci_conv_check_ranks(infer, &n_spatial);
  if (st) return st;
  const laci_shape *x = &infer->in[0]->shape, *dy = &infer->in[1]->shape;
  infer->out[0].dtype = infer->in[0]->dtype;
  if (!laci_shape_is_known(x) || !laci_shape_is_known(dy)) return LAC_OK;
  if (x->dims[1] % n_groups || dy->dims[1] % n_groups) {
    return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE,
                          "%lld and %lld channels in %lld groups", (long long)x->dims[1],
                          (long long)dy->dims[1], (long long)n_groups);
  }
  laci_shape y = {.rank = x->rank, .dims = {x->dims[0], dy->dims[1]}};
  st = laci_window_read(infer->node, n_spatial, NULL, &window, infer->err);
  if (!st) st = laci_window_infer(infer, &window, x, &y);
  if (!st) st = laci_check_input_shape(infer, 1, &y);
  laci_shape *dw = &infer->out[0].shape;
  *dw = (laci_shape){.rank = x->rank, .dims = {dy->dims[1], x->dims[1] / n_groups}};
  for (int at = 0; at < n_spatial; at++) dw->dims[at + 2] = st ? 0 : window.axis[at].kernel;
  return st;
}

typedef struct job {
  laci_patches p;
  const laci_buf *x, *dy;
  double *dw;
  int64_t n_groups;
} job;

/** Returns the sum of dy * x along one line, for kernel position t. */
static double sum_products_of_line(const laci_conv_axis *axis, const double *x, const double *dy,
                                   int64_t t) {
  int64_t start = t * axis->dilation - axis->pad;
  int64_t first = start < 0 ? (-start + axis->stride - 1) / axis->stride : 0;
  double sum = 0;
  for (int64_t o = first; o < axis->out && start + o * axis->stride < axis->in; o++)
    sum += dy[o] * x[start + o * axis->stride];
  return sum;
}

static double sum_products_of_channel(const laci_conv_axis *axis, const double *x, const double *dy,
                                      const int64_t t[LACI_CONV_AXES]) {
  double sum = 0;
  for (int64_t line = 0; line < axis[0].out * axis[1].out; line++) {
    int64_t i0 = line / axis[1].out * axis[0].stride - axis[0].pad + t[0] * axis[0].dilation;
    int64_t i1 = line % axis[1].out * axis[1].stride - axis[1].pad + t[1] * axis[1].dilation;
    if (i0 < 0 || i0 >= axis[0].in || i1 < 0 || i1 >= axis[1].in) continue;
    sum += sum_products_of_line(&axis[2], x + (i0 * axis[1].in + i1) * axis[2].in,
                                dy + line * axis[2].out, t[2]);
  }
  return sum;
}

static void compute_weight_gradients(int64_t begin, int64_t end, void *context) {
  const job *j = context;
  const laci_conv_axis *axis = j->p.axis;
  int64_t in = laci_patches_input_size(&j->p), out = laci_patches_output_size(&j->p);
  int64_t kernel = laci_patches_kernel_size(&j->p), c_in = j->x->shape.dims[1];
  int64_t c_out = j->dy->shape.dims[1], own = c_in / j->n_groups;
  for (int64_t at = begin; at < end; at++) {
    int64_t rest = at % kernel, c = at / kernel % own, k = at / kernel / own;
    int64_t t[] = {rest / axis[2].kernel / axis[1].kernel, rest / axis[2].kernel % axis[1].kernel,
                   rest % axis[2].kernel};
    int64_t channel = k / (c_out / j->n_groups) * own + c;
    double sum = 0;
    for (int64_t image = 0; image < j->x->shape.dims[0]; image++)
      sum += sum_products_of_channel(axis, j->x->f + (image * c_in + channel) * in,
                                     j->dy->f + (image * c_out + k) * out, t);
    j->dw[at] = sum;
  }
}

static lac_status eval(laci_eval *eval) {
  laci_node_window window;
  const laci_buf *x = eval->in[0];
  laci_buf y = *eval->in[1],
           *dy = &y; /* stands for Conv's output, of which only the shape is read */
  job j = {.x = x, .dy = dy, .dw = eval->out[0]->f};
  lac_status st = laci_check_floats(eval);
  if (!st) st = laci_conv_read_groups(eval->node, &j.n_groups, eval->err);
  if (!st) st = laci_window_read(eval->node, x->shape.rank - 2, NULL, &window, eval->err);
  if (st) return st;
  for (int at = 0; at < window.n_spatial; at++)
    laci_window_resolve_out_size(&window, at, x->shape.dims[at + 2]);
  laci_eval forward = *eval;
  forward.out = &dy;
  st = laci_patches_init(&j.p, &forward, &window);
  if (!st) laci_eval_parallel(eval, eval->out[0]->count, compute_weight_gradients, &j);
  return st;
}

const laci_op laci_op_conv_grad_weight = {.name = "ConvGradWeight",
                                          .domain = "lacuna",
                                          .role = LACI_ROLE_PASS_THROUGH,
                                          .infer = infer,
                                          .eval = eval,
                                          .couple = laci_couple_nothing};
