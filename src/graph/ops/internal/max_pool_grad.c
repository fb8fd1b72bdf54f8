/* SPDX-License-Identifier: Apache-2.0
 * lacuna.MaxPoolGrad: inputs dY, X; each dY is added at the position of the largest X under its
 * window, the first of equal ones. The maximum is searched again here, so MaxPool need not store
 * its indices. */
#include "graph/ops/shared/pool_in.h"
#include "tensor/buf.h"

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 2, 2);
  if (st) return st;
  infer->out[0] = *infer->in[1];
  return laci_in_shape(infer, 1) ? laci_pooling_check_gradient_shape(infer, &infer->in[1]->shape)
                                 : LAC_OK;
}

typedef struct job {
  const laci_buf *dy, *places;
  laci_buf *dx;
  int64_t in_spatial, out_spatial;
} job;

static void scatter_channels(int64_t begin, int64_t end, void *context) {
  const job *j = context;
  for (int64_t at = begin * j->out_spatial; at < end * j->out_spatial; at++) {
    int64_t first = at / j->out_spatial * j->in_spatial, place = j->places->i[at];
    /* -1, before the channel: the window had no element */
    if (place >= first) j->dx->f[place] += j->dy->f[at];
  }
}

static lac_status eval(laci_eval *eval) {
  const laci_buf *dy = eval->in[0], *x = eval->in[1];
  laci_buf *y = NULL, *places = NULL;
  lac_status st = laci_check_floats(eval);
  if (!st) st = laci_buf_create(dy->dtype, &dy->shape, &y, eval->err);
  if (!st) st = laci_buf_create(LAC_DTYPE_I64, &dy->shape, &places, eval->err);
  if (st) goto out;
  laci_eval forward = *eval;
  forward.in = &x;
  forward.out = &y;
  forward.n_in = 1;
  st = laci_pooling_eval(&forward, &laci_max_pooling, places);
  if (st) goto out;
  job j = {.dy = dy,
           .places = places,
           .dx = eval->out[0],
           .in_spatial = laci_shape_count_range(&x->shape, 2, x->shape.rank),
           .out_spatial = laci_shape_count_range(&dy->shape, 2, dy->shape.rank)};
  laci_eval_parallel(eval, x->shape.dims[0] * x->shape.dims[1], scatter_channels, &j);
out:
  laci_buf_destroy(y);
  laci_buf_destroy(places);
  return st;
}

const laci_op laci_op_max_pool_grad = {.name = "MaxPoolGrad",
                                       .domain = "lacuna",
                                       .role = LACI_ROLE_PASS_THROUGH,
                                       .infer = infer,
                                       .eval = eval,
                                       .couple = laci_couple_nothing};
